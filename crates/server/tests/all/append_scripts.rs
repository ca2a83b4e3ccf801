//! Scripts in an append-only file: Redis before 5 wrote EVAL itself, and other programs may.
use crate::append_only::{FIRST, Folder, read};
use crate::client::{Client, request};

const ADD: &str = "return redis.call('INCRBY', KEYS[1], ARGV[1])";
const ADD_SHA: &str = "8cd00688c05c46bde4a2e60658ef20a2e5c0b248";
const LIBRARY: &str = "#!lua name=lib
local count = 0
redis.register_function('f', function(keys) count = count + 1; redis.call('SET', keys[1], count) end)";

#[test]
fn scripts_run_again_in_their_databases_and_transactions() {
    let requests: &[&[&str]] = &[
        &["EVAL", ADD, "1", "n", "5"],
        &["EVALSHA", ADD_SHA, "1", "n", "7"],
        &["EVALSHA", "0000000000000000000000000000000000000000", "1", "n", "1"],
        &["EVAL", "redis.call('SET', 'half', 1); redis.call('LPUSH', 'half', 2)", "0"],
        &["EVAL", "for i = 1, 1000 do redis.call('RPUSH', 'l' .. i, i) end", "0"],
        &["EVAL", "redis.call('SELECT', 3); redis.call('SET', 'a', 3)", "0"],
        &["SET", "gone", "v", "PXAT", "1000"],
        &["EVAL", "redis.call('APPEND', 'gone', 'w'); redis.call('SETEX', 'stays', 100000, 'v')", "0"],
        &["MULTI"],
        &["SET", "m", "1"],
        &["EVAL", ADD, "1", "m", "1"],
        &["EVAL", "redis.call('SET', 'of' .. redis.call('GET', 'm'), 'v')", "0"],
        &["EXEC"],
        &["FUNCTION", "LOAD", LIBRARY],
        &["FCALL", "f", "1", "f1"],
        &["FCALL", "f", "1", "f2"],
        &["SELECT", "2"],
        &["EVAL", "redis.call('SET', 'b', redis.call('DBSIZE'))", "0"],
        // The file ends in the middle of a transaction.
        &["MULTI"],
        &["EVAL", ADD, "1", "n", "1"],
    ];
    let bytes: Vec<u8> = requests.iter().flat_map(|words| request(words)).collect();
    let folder = Folder::holding("scripts", &bytes);
    let read_all = |client: &mut Client| {
        client.check("GET n", "$2\r\n12\r\n");
        client.check("GET half", "$1\r\n1\r\n");
        client.check("LRANGE l1000 0 -1", "*1\r\n$4\r\n1000\r\n");
        client.check("GET gone", "$-1\r\n");
        client.check("PERSIST stays", ":1\r\n");
        client.check("MGET m of2 f1 f2", "*4\r\n$1\r\n2\r\n$1\r\nv\r\n$1\r\n1\r\n$1\r\n2\r\n");
        client.check("SELECT 3", "+OK\r\n");
        client.check("GET a", "$1\r\n3\r\n");
        client.check("SELECT 2", "+OK\r\n");
        client.check("GET b", "$1\r\n0\r\n");
        client.check("DBSIZE", ":1\r\n");
        client.check("SELECT 0", "+OK\r\n");
    };
    for _ in 0..2 {
        let server = folder.start().unwrap();
        let mut client = Client::connect(&server);
        read_all(&mut client);
        // What was loaded is not written again.
        let file = read(&folder.file(FIRST));
        assert_eq!(file.windows(4).filter(|word| word == b"l999").count(), 0);
        client.check("EXPIRE stays 100000", ":1\r\n");
        client.check("SLOWLOG LEN", ":0\r\n");
        server.stop();
    }
    let server = folder.start().unwrap();
    let mut client = Client::connect(&server);
    client.check("DEBUG LOADAOF", "+OK\r\n");
    read_all(&mut client);
}

/// Writes of a script that are not for the file are not in it, and are gone after the next start; the next
/// command is in it again.
#[test]
fn a_script_may_keep_its_writes_out_of_the_file() {
    let folder = Folder::new("withheld");
    folder.write(&[]);
    let server = folder.start().unwrap();
    let mut client = Client::connect(&server);
    client.check("SET gone 1 PX 1", "+OK\r\n");
    std::thread::sleep(std::time::Duration::from_millis(3));
    let withheld = "redis.call('SET', 'a', 1)
        redis.set_repl(redis.REPL_NONE) redis.call('SET', 'b', 1) redis.call('INCR', 'gone')
        redis.set_repl(redis.REPL_REPLICA) redis.call('SET', 'c', 1)
        redis.set_repl(redis.REPL_AOF) redis.call('SET', 'd', 1)
        redis.set_repl(redis.REPL_NONE) redis.call('MSET', 'e', 1, 'f', 1)";
    for keys in [0, 1] {
        client.send(&request(&["EVAL", withheld, &keys.to_string(), "a"]));
        client.expect("$-1\r\n");
    }
    client.check("SET g 1", "+OK\r\n");
    client.check("MULTI", "+OK\r\n");
    client.send(&request(&["EVAL", "redis.set_repl(0) redis.call('SET', 'h', 1)", "0"]));
    client.expect("+QUEUED\r\n");
    client.check("SET i 1", "+QUEUED\r\n");
    client.check("EXEC", "*2\r\n$-1\r\n+OK\r\n");
    client.check("EXISTS a b c d e f g h i gone", ":10\r\n");
    server.stop();
    let server = folder.start().unwrap();
    let mut client = Client::connect(&server);
    client.check("EXISTS a d g i", ":4\r\n");
    client.check("DBSIZE", ":4\r\n");
}
