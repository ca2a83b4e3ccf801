//! Which time the commands of an append-only file see: none by which a key could expire, and the present one
//! where they count from it.
use crate::append_only::{FIRST, Folder, MANIFEST, ONE, command, read};
use crate::client::Client;

fn commands(all: &[&str]) -> Vec<u8> {
    all.iter().flat_map(|words| command(words)).collect()
}

#[test]
fn a_key_that_has_expired_since_is_there_until_the_file_says_that_it_went() {
    let folder = Folder::new("expired");
    let commands = ["SET k v PXAT 1000", "APPEND k w", "SET m v PXAT 1000", "DEL m", "RPUSH l 1"];
    let bytes: Vec<u8> = commands.iter().flat_map(|words| command(words)).collect();
    folder.write(&[(MANIFEST, ONE), (FIRST, &bytes)]);
    let server = folder.start().unwrap();
    let mut client = Client::connect(&server);
    client.check("GET k", "$-1\r\n");
    client.check("DBSIZE", ":1\r\n");
    server.stop();
    // That it went is told by then.
    let told = String::from_utf8(read(&folder.file(FIRST))).unwrap();
    assert!(told.ends_with("DEL\r\n$1\r\nk\r\n") || told.ends_with("UNLINK\r\n$1\r\nk\r\n"), "{told}");
}

/// As they are in files of old servers and of other programs; Redis and this server write the moment.
#[test]
fn lifetimes_that_are_counted_from_the_present_begin_when_the_file_is_run() {
    let folder = Folder::new("relative");
    let bytes = commands(&[
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
    ]);
    folder.write(&[(MANIFEST, ONE), (FIRST, &bytes)]);
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
    let folder = Folder::new("pending");
    let bytes = commands(&[
        "XADD x 1-1 k v",
        "PEXPIREAT x 99999999999999",
        "XGROUP CREATE x g 0",
        "XCLAIM x g c 0 1-1 TIME 1700000000000 RETRYCOUNT 1 FORCE JUSTID LASTID 1-1",
    ]);
    folder.write(&[(MANIFEST, ONE), (FIRST, &bytes)]);
    let server = folder.start().unwrap();
    let mut client = Client::connect(&server);
    // Some years, and less than the some fifty since 1970.
    client.check("XAUTOCLAIM x g d 1600000000000 0 JUSTID", "*3\r\n$3\r\n0-0\r\n*0\r\n*0\r\n");
    client.check("XAUTOCLAIM x g d 1000 0 JUSTID", "*3\r\n$3\r\n0-0\r\n*1\r\n$3\r\n1-1\r\n*0\r\n");
}
