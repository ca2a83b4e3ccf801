//! `keyspace_hits` and `keyspace_misses` count the lookups that Redis counts: those of commands that read a
//! value, and of commands that write what they say of the old one; not those of other writes.
use crate::client::{Client, config, request, start};

/// Requests, and the hits and misses that Redis 8.0.2 counted for each.
const COUNTED: [(&str, u64, u64); 36] = [
    ("SET a 1", 0, 0),
    ("COPY a b", 1, 0),
    ("COPY a b", 1, 0),
    ("COPY a b REPLACE", 1, 0),
    ("COPY nosuch b", 0, 1),
    ("RENAME a c", 0, 0),
    ("RENAME nosuch x", 0, 0),
    ("RENAMENX c b", 0, 0),
    ("RENAMENX c d", 0, 0),
    ("MOVE d 1", 0, 0),
    ("MOVE nosuch 1", 0, 0),
    ("TOUCH b nosuch", 1, 1),
    ("RPUSH l 3 1 2", 0, 0),
    ("SORT l", 1, 0),
    ("SORT nosuch", 0, 1),
    ("SORT_RO l", 1, 0),
    ("SORT l STORE l2", 1, 0),
    ("SORT l BY w_* GET #", 1, 3),
    ("OBJECT ENCODING b", 1, 0),
    ("OBJECT REFCOUNT b", 1, 0),
    ("OBJECT REFCOUNT nosuch", 0, 1),
    ("OBJECT IDLETIME b", 1, 0),
    ("OBJECT IDLETIME nosuch", 0, 1),
    ("MEMORY USAGE b", 0, 0),
    ("MEMORY USAGE nosuch", 0, 0),
    ("EXPIRE b 100", 0, 0),
    ("GETEX nosuch", 0, 1),
    ("SET s v GET", 0, 1),
    ("SET s w GET", 1, 0),
    ("SET l w GET", 1, 0),
    ("SET s w NX", 0, 0),
    ("GETSET s x", 1, 0),
    ("GETEX s EX 100", 1, 0),
    ("GETDEL s", 1, 0),
    ("GETDEL s", 0, 1),
    ("DEL b nosuch", 0, 0),
];

#[test]
fn lookups_count_as_hits_and_misses_where_they_do_in_redis() {
    let server = start(config());
    let mut client = Client::connect(&server);
    let mut counts = (0, 0);
    for (line, hits, misses) in COUNTED {
        client.send(b"CLIENT REPLY SKIP\r\n");
        client.send(&request(&line.split(' ').collect::<Vec<_>>()));
        let count = |text: String| text.parse::<u64>().expect("a number");
        let after = (count(client.info("keyspace_hits")), count(client.info("keyspace_misses")));
        assert_eq!((after.0 - counts.0, after.1 - counts.1), (hits, misses), "{line}");
        counts = after;
    }
}

#[test]
fn what_a_client_without_touch_reads_counts_as_unused_but_for_touch() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.check("CONFIG SET maxmemory-policy allkeys-lfu lfu-log-factor 0 lfu-decay-time 0", "+OK\r\n");
    client.check("SET k v", "+OK\r\n");
    client.check("OBJECT FREQ k", ":5\r\n");
    client.check("CLIENT NO-TOUCH on", "+OK\r\n");
    client.check("GET k", "$1\r\nv\r\n");
    client.check("OBJECT FREQ k", ":5\r\n");
    client.check("TOUCH k", ":1\r\n");
    client.check("OBJECT FREQ k", ":6\r\n");
    client.send(b"CLIENT NO-TOUCH off\r\nGET k\r\nOBJECT FREQ k\r\n");
    client.expect("+OK\r\n$1\r\nv\r\n:7\r\n");
    client.check("CLIENT NO-TOUCH on", "+OK\r\n");
    client.check("RESET", "+RESET\r\n");
    client.check("GET k", "$1\r\nv\r\n");
    client.check("OBJECT FREQ k", ":8\r\n");
}
