//! Keys and elements that are longer than leaves hold are refused, whatever command brings them, and nothing
//! is half done. The limit is low here: what is tested takes no gigabytes.
use crate::client::{Client, config, start};
use server::{Config, Running};
use store::Lengths;

const TOO_LONG: &str = "-ERR key, field, member or element exceeds maximum allowed size (512 MB)\r\n";
const ROW_TOO_LONG: &str = "-ERR Elements are too large to be stored\r\n";
const NO_STRING: &str = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";

fn low() -> Running {
    let mut config: Config = config();
    config.store.lengths = Lengths { element_bytes_max: 100, row_bytes_max: 250 };
    start(config)
}

#[test]
fn what_is_longer_than_a_leaf_holds_is_refused_by_every_command() {
    let server = low();
    let mut client = Client::connect(&server);
    let long = "x".repeat(101);
    let just = "y".repeat(100);
    for command in [
        "LPUSH k a LONG",
        "RPUSHX k LONG",
        "LSET list 0 LONG",
        "LINSERT list BEFORE one LONG",
        "HSET k f LONG",
        "HSET k LONG v",
        "HMSET k f v g LONG",
        "HSETNX k f LONG",
        "HINCRBY k LONG 1",
        "SADD k a b LONG",
        "ZADD k 1 a 2 LONG",
        "ZINCRBY k 1 LONG",
        "GEOADD k 1 1 LONG",
        "XADD k * f LONG",
        "XADD k * LONG v",
        "XGROUP CREATE stream LONG 0",
        "XGROUP CREATECONSUMER stream group LONG",
        "XREADGROUP GROUP group LONG STREAMS stream >",
        "SET LONG v",
        "MSET k v LONG v",
        "APPEND LONG v",
        "SETBIT LONG 1 1",
        "PFADD LONG v",
        "RENAME list LONG",
        "COPY list LONG",
        "SORT list ALPHA STORE LONG",
        "SUNIONSTORE LONG k",
        "BITOP NOT LONG k",
        "DEBUG POPULATE 1 LONG",
    ] {
        client.check("FLUSHALL", "+OK\r\n");
        client.check("RPUSH list one", ":1\r\n");
        client.check("XGROUP CREATE stream group 0 MKSTREAM", "+OK\r\n");
        client.check(&command.replace("LONG", &long), TOO_LONG);
        client.check("EXISTS k", ":0\r\n");
        client.check("DBSIZE", ":2\r\n");
    }
    client.check(&format!("LPUSH k {just}"), ":1\r\n");
    client.check(&format!("SET {just} {long}{long}"), "+OK\r\n");
    client.check("LINDEX k 0", &format!("$100\r\n{just}\r\n"));
}

#[test]
fn reading_what_is_too_long_to_be_there_finds_nothing() {
    let server = low();
    let mut client = Client::connect(&server);
    let long = "x".repeat(101);
    client.check(&format!("GET {long}"), "$-1\r\n");
    client.check("SADD s a", ":1\r\n");
    client.check(&format!("SISMEMBER s {long}"), ":0\r\n");
    client.check(&format!("ECHO {long}"), &format!("$101\r\n{long}\r\n"));
}

#[test]
fn a_string_that_is_too_long_for_an_element_becomes_none_by_sort() {
    let server = low();
    let mut client = Client::connect(&server);
    client.check("RPUSH list one two", ":2\r\n");
    client.check("RPUSH target kept", ":1\r\n");
    client.check("SET v:one short", "+OK\r\n");
    client.check(&format!("SET v:two {}", "x".repeat(101)), "+OK\r\n");
    client.check("SORT list BY nosort GET v:* STORE target", TOO_LONG);
    client.check("LRANGE target 0 -1", "*1\r\n$4\r\nkept\r\n");
    client.check(&format!("SET v:two {}", "x".repeat(100)), "+OK\r\n");
    client.check("SORT list BY nosort GET v:* STORE target", ":2\r\n");
}

#[test]
fn a_stream_takes_no_entry_that_is_too_long_together() {
    let server = low();
    let mut client = Client::connect(&server);
    let value = "x".repeat(90);
    client.check(&format!("XADD k 1-1 a {value} b {value} c {value}"), ROW_TOO_LONG);
    client.check("EXISTS k", ":0\r\n");
    client.check(&format!("XADD k 1-1 a {value} b {value}"), "$3\r\n1-1\r\n");
    client.check(&format!("XADD k 1-2 a {value} b {value} c {value}"), ROW_TOO_LONG);
    client.check("XLEN k", ":1\r\n");
    // Empty fields and values are framed all the same. `split` makes them of neighbouring blanks.
    let fields = "  ".repeat(22);
    client.check(&format!("XADD k 1-2{fields}"), ROW_TOO_LONG);
}

/// Where `proto-max-bulk-len` allows any length, memory does not.
#[test]
fn a_length_that_no_memory_has_is_an_error() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.check("CONFIG SET proto-max-bulk-len 8000000000gb", "+OK\r\n");
    client.check("SETRANGE k 4000000000000000000 x", NO_STRING);
    client.check("SETBIT k 9223372036854775807 1", NO_STRING);
    client.check("BITFIELD k SET u8 9223372036854775000 1", NO_STRING);
    client.check("DEBUG POPULATE 1 key 4000000000000000000", NO_STRING);
    client.check("EXISTS k", ":0\r\n");
    client.check("SETRANGE k 3 x", ":4\r\n");
    client.check("SETRANGE k 4000000000000000000 x", NO_STRING);
    client.check("STRLEN k", ":4\r\n");
}
