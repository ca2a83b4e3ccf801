//! Times in an append-only file: no key expires while it is run, and a lifetime that counts from the present
//! begins when its command is run.
use crate::append_only::{FIRST, Folder, command, read};
use crate::client::Client;

/// A folder with an append-only file of these commands.
fn with_commands(name: &str, commands: &[&str]) -> Folder {
    Folder::holding(name, &commands.iter().flat_map(|words| command(words)).collect::<Vec<_>>())
}

#[test]
fn a_key_that_has_expired_since_is_there_until_the_file_says_that_it_went() {
    let commands = ["SET k v PXAT 1000", "APPEND k w", "SET m v PXAT 1000", "DEL m", "RPUSH l 1"];
    let folder = with_commands("expired", &commands);
    let server = folder.start().unwrap();
    let mut client = Client::connect(&server);
    client.check("GET k", "$-1\r\n");
    client.check("DBSIZE", ":1\r\n");
    server.stop();
    // That it went is told by then.
    let told = String::from_utf8(read(&folder.file(FIRST))).unwrap();
    assert!(told.ends_with("DEL\r\n$1\r\nk\r\n") || told.ends_with("UNLINK\r\n$1\r\nk\r\n"), "{told}");
}

/// Files of old servers and of other programs have them; Redis and this server write when a lifetime ends.
#[test]
fn lifetimes_that_are_counted_from_the_present_begin_when_the_file_is_run() {
    let commands = [
        "SETEX a 100000 v",
        "PSETEX b 100000000 v",
        "SET c v EX 100000",
        "SET d v",
        "EXPIRE d 100000",
        "MULTI",
        "SET e v PX 100000000",
        "EXEC",
        "SET f v",
        "GETEX f EX 100000",
        "SET gone v PXAT 1000",
        "HSET h one 1 two 2 three 3",
        "HEXPIRE h 100000 FIELDS 1 one",
        "HSETEX h EX 100000 FIELDS 1 two 2",
        "HGETEX h PX 100000000 FIELDS 1 three",
    ];
    let folder = with_commands("relative", &commands);
    for _ in 0..2 {
        let server = folder.start().unwrap();
        let mut client = Client::connect(&server);
        client.check("EXISTS a b c d e f gone", ":6\r\n");
        client.check("DBSIZE", ":7\r\n");
        client.check("HLEN h", ":3\r\n");
        server.stop();
    }
    let server = folder.start().unwrap();
    let mut client = Client::connect(&server);
    for key in ["a", "b", "c", "d", "e", "f"] {
        client.check(&format!("PERSIST {key}"), ":1\r\n");
    }
    client.check("HPERSIST h FIELDS 3 one two three", "*3\r\n:1\r\n:1\r\n:1\r\n");
}

/// Entries would be given to others at once if they were said to be pending since 1970.
#[test]
fn entries_of_a_stream_with_a_deadline_were_not_delivered_in_1970() {
    let commands = [
        "XADD x 1-1 k v",
        "PEXPIREAT x 99999999999999",
        "XGROUP CREATE x g 0",
        "XCLAIM x g c 0 1-1 TIME 1700000000000 RETRYCOUNT 1 FORCE JUSTID LASTID 1-1",
    ];
    let folder = with_commands("pending", &commands);
    let server = folder.start().unwrap();
    let mut client = Client::connect(&server);
    // Fifty years: since 1970 it is more, since the claim of 2023 it is not.
    client.check("XAUTOCLAIM x g d 1600000000000 0 JUSTID", "*3\r\n$3\r\n0-0\r\n*0\r\n*0\r\n");
    client.check("XAUTOCLAIM x g d 1000 0 JUSTID", "*3\r\n$3\r\n0-0\r\n*1\r\n$3\r\n1-1\r\n*0\r\n");
}
