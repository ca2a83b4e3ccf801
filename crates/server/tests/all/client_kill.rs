//! CLIENT KILL and LIST over several workers: whom each filter means.
use crate::client::{Client, config, start, start_at_noon};
use server::Config;
use std::time::Duration;

fn id(client: &mut Client) -> String {
    client.ask("CLIENT ID").trim_start_matches(':').trim().to_owned()
}

/// A field of a client's line in CLIENT LIST.
fn field(asker: &mut Client, id: &str, name: &str) -> String {
    let line = asker.ask(&format!("CLIENT LIST ID {id}"));
    let found = line.split_whitespace().find_map(|f| f.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name} in {line:?}")).to_owned()
}

#[test]
fn filters_that_are_given_together_must_all_match() {
    let server = start(config());
    let [mut a, mut b, mut c] = [(); 3].map(|()| Client::connect(&server));
    let (id_b, id_c) = (id(&mut b), id(&mut c));
    let addr = field(&mut a, &id_b, "addr");
    let laddr = field(&mut a, &id_b, "laddr");
    a.check(&format!("CLIENT KILL ID {id_c} ADDR {addr}"), ":0\r\n");
    a.check(&format!("CLIENT KILL LADDR {addr}"), ":0\r\n");
    a.check(&format!("CLIENT KILL ID {id_b} TYPE pubsub"), ":0\r\n");
    a.check(&format!("CLIENT KILL ID {id_b} MAXAGE 100"), ":0\r\n");
    b.check("PING", "+PONG\r\n");
    let all = format!("CLIENT KILL ID {id_b} ADDR {addr} LADDR {laddr} TYPE normal USER default SKIPME yes");
    a.check(&all, ":1\r\n");
    b.expect_end();
    c.check("PING", "+PONG\r\n");
}

#[test]
fn a_client_that_has_said_goodbye_is_listed_until_it_has_read_its_replies() {
    const BYTES: usize = 64 << 20;
    let server = start(config());
    let [mut asker, mut leaver] = [(); 2].map(|()| Client::connect(&server));
    let id = id(&mut leaver);
    asker.check(&format!("SETRANGE big {} x", BYTES - 1), &format!(":{BYTES}\r\n"));
    assert_eq!(field(&mut asker, &id, "flags"), "N");
    // In a transaction the reply is written at once; otherwise nothing behind it runs before it is read.
    leaver.send(b"MULTI\r\nGET big\r\nEXEC\r\nQUIT\r\n");
    while field(&mut asker, &id, "cmd") != "quit" {}
    // The command is listed when it begins, the flag when it has run.
    while field(&mut asker, &id, "flags") == "N" {}
    assert_eq!(field(&mut asker, &id, "flags"), "c");
    drop(leaver);
    while asker.ask(&format!("CLIENT LIST ID {id}")).contains("id=") {}
}

#[test]
fn the_letters_of_a_client_stand_in_the_order_of_redis() {
    let server = start(config());
    let [mut asker, mut watcher] = [(); 2].map(|()| Client::connect(&server));
    let id = id(&mut watcher);
    for request in ["CLIENT TRACKING ON BCAST REDIRECT 1", "WATCH k", "MULTI"] {
        watcher.ask(request);
    }
    asker.check("SET k 1", "+OK\r\n");
    assert_eq!(field(&mut asker, &id, "flags"), "xtBd");
}

#[test]
fn the_last_of_the_same_filter_counts() {
    let server = start(config());
    let [mut a, mut b, mut c] = [(); 3].map(|()| Client::connect(&server));
    let (id_b, id_c) = (id(&mut b), id(&mut c));
    a.check(&format!("CLIENT KILL ID {id_b} ID {id_c}"), ":1\r\n");
    c.expect_end();
    b.check("PING", "+PONG\r\n");
}

#[test]
fn the_old_form_kills_by_address_and_oneself_after_the_reply() {
    let server = start(config());
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    let (id_a, id_b) = (id(&mut a), id(&mut b));
    let addr_b = field(&mut a, &id_b, "addr");
    a.check(&format!("CLIENT KILL {addr_b}"), "+OK\r\n");
    b.expect_end();
    let addr_a = field(&mut a, &id_a, "addr");
    a.check(&format!("CLIENT KILL {addr_a}"), "+OK\r\n");
    a.expect_end();
}

#[test]
fn skipme_says_whether_the_one_that_asks_is_spared() {
    let server = start(config());
    let [mut a, mut b, mut c] = [(); 3].map(|()| Client::connect(&server));
    [&mut a, &mut b, &mut c].into_iter().for_each(|client| client.check("PING", "+PONG\r\n"));
    a.check("CLIENT KILL TYPE normal", ":2\r\n");
    b.expect_end();
    c.expect_end();
    let mut d = Client::connect(&server);
    d.check("PING", "+PONG\r\n");
    a.check("CLIENT KILL USER default SKIPME no", ":2\r\n");
    d.expect_end();
    a.expect_end();
}

#[test]
fn maxage_means_those_that_are_connected_at_least_so_long() {
    let (server, time) = start_at_noon(config());
    let mut old = Client::connect(&server);
    old.check("PING", "+PONG\r\n");
    time.advance(Duration::from_secs(10));
    let mut young = Client::connect(&server);
    young.check("PING", "+PONG\r\n");
    time.advance(Duration::from_secs(5));
    young.check("CLIENT KILL MAXAGE 16", ":0\r\n");
    young.check("CLIENT KILL MAXAGE 15", ":1\r\n");
    old.expect_end();
    young.check("CLIENT KILL MAXAGE 5", ":0\r\n");
}

#[test]
fn list_shows_what_a_client_is_and_does() {
    let (server, time) = start_at_noon(config());
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    let id_b = id(&mut b);
    b.check("CLIENT SETNAME me", "+OK\r\n");
    b.check("CLIENT SETINFO lib-name lib", "+OK\r\n");
    b.check("CLIENT SETINFO lib-ver 1.2", "+OK\r\n");
    b.check("CLIENT NO-EVICT on", "+OK\r\n");
    b.check("CLIENT NO-TOUCH on", "+OK\r\n");
    b.check("SELECT 5", "+OK\r\n");
    time.advance(Duration::from_secs(7));
    b.send(b"*2\r\n$4\r\nECHO\r\n$1000\r\nabc");
    let list = format!("CLIENT LIST ID {id_b}");
    while field(&mut a, &id_b, "qbuf") == "0" {}
    let line = a.ask(&list);
    let [addr, laddr, fd, memory, worker] =
        ["addr", "laddr", "fd", "tot-mem", "io-thread"].map(|name| field(&mut a, &id_b, name));
    assert!(memory.parse::<u64>().unwrap() > 300, "{memory}");
    let expected = format!(
        "id={id_b} addr={addr} laddr={laddr} fd={fd} name=me age=7 idle=0 flags=eT db=5 sub=0 psub=0 ssub=0 multi=-1 \
         watch=0 qbuf=24 qbuf-free=0 argv-mem=64 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem={memory} events=r \
         cmd=select user=default redir=-1 resp=2 lib-name=lib lib-ver=1.2 io-thread={worker}\n"
    );
    assert_eq!(line, expected);
    assert!(["0", "1"].contains(&worker.as_str()));
    b.send("x".repeat(997).as_bytes());
    b.send(b"\r\n");
    b.expect(&crate::client::bulk(&format!("abc{}", "x".repeat(997))));
    assert_eq!(field(&mut a, &id_b, "qbuf"), "0");
    assert_eq!(field(&mut a, &id_b, "cmd"), "echo");
    time.advance(Duration::from_secs(3));
    assert_eq!((field(&mut a, &id_b, "age"), field(&mut a, &id_b, "idle")), ("10".into(), "3".into()));
}

#[test]
fn a_client_sees_its_own_pipeline_and_the_arguments_of_its_own_request() {
    let server = start(config());
    let mut client = Client::connect(&server);
    let info = "*2\r\n$6\r\nCLIENT\r\n$4\r\nINFO\r\n";
    let ping = "*1\r\n$4\r\nPING\r\n";
    for (before, after) in [("", ""), (ping, ""), ("", ping)] {
        let pipeline = [before, info, after].concat();
        client.send(pipeline.as_bytes());
        client.expect(if before.is_empty() { "" } else { "+PONG\r\n" });
        let line = client.bulk();
        client.expect(if after.is_empty() { "" } else { "+PONG\r\n" });
        let expected = format!(" qbuf={} qbuf-free=0 argv-mem=10 ", pipeline.len());
        assert!(line.contains(&expected), "{line}");
    }
}

#[test]
fn list_by_several_ids_shows_them_in_the_order_given() {
    let server = start(Config { worker_threads: 3, ..config() });
    let [mut a, mut b, mut c] = [(); 3].map(|()| Client::connect(&server));
    let (id_a, id_b, id_c) = (id(&mut a), id(&mut b), id(&mut c));
    let list = a.ask(&format!("CLIENT LIST ID {id_c} 999999 {id_a} {id_b}"));
    let ids: Vec<&str> = list.lines().map(|line| line.split_once(' ').unwrap().0).collect();
    assert_eq!(ids, [id_c, id_a, id_b].map(|id| format!("id={id}")));
    assert_eq!(a.ask("CLIENT LIST TYPE normal").lines().count(), 3);
}
