//! Requests of few elements that take long because these are long, or because they bring so many bytes: they
//! run elsewhere, as those of many elements do, and do what they would have done at once.
use crate::lent::{all_in_exec, call, figure, hold, listener, server, text, words};
use crate::lent_writes::told;
use testkit::in_process::InProcess;
use testkit::resp_client::RespClient;
use testkit::resp_value::Value;

const ELEMENTS: usize = 120;
/// Builds with checks say much sooner that an element is long.
const BYTES: usize = if cfg!(debug_assertions) { 2_000 } else { 100_000 };

fn element(n: usize) -> String {
    format!("{n}-{}", "abcdefghij".repeat(BYTES / 10))
}

fn send_many(client: &mut RespClient, words: &str, arguments: impl Fn(usize) -> Vec<String>) {
    let mut all: Vec<String> = words.split(' ').map(str::to_owned).collect();
    all.extend((0..ELEMENTS).flat_map(arguments));
    client.call(&all).unwrap();
}

fn fill(client: &mut RespClient) {
    call(client, "FLUSHALL");
    send_many(client, "RPUSH list", |n| vec![element(n)]);
    send_many(client, "SADD set", |n| vec![element(n)]);
    send_many(client, "HSET hash", |n| vec![format!("f{n}"), element(n)]);
    send_many(client, "ZADD zset", |n| vec![(n % 7).to_string(), element(n)]);
    for n in 0..ELEMENTS {
        client.call(&["XADD", "stream", &format!("1-{}", n + 1), "field", &element(n)]).unwrap();
    }
    call(client, "XGROUP CREATE stream group 0");
    call(client, "XGROUP CREATE stream held 0");
    call(client, "XREADGROUP GROUP held one STREAMS stream >");
}

fn fields() -> String {
    (0..ELEMENTS).map(|n| format!(" f{n}")).collect()
}

/// What a request answers, and what the data is afterwards.
fn at_once(client: &mut RespClient, request: &str) -> (Value, String) {
    let answered = all_in_exec(client, &[request]).remove(0);
    (answered, text(&call(client, "DEBUG DIGEST")))
}

fn elsewhere(server: &InProcess, client: &mut RespClient, request: &str) -> (Value, String) {
    let mut other = server.client().unwrap();
    hold(server, client, request);
    assert_eq!(text(&call(&mut other, "PING")), "PONG", "beside {request}");
    server.server.hold_lent(false);
    (client.receive().unwrap(), text(&call(&mut other, "DEBUG DIGEST")))
}

#[test]
fn few_long_elements_are_copied_sorted_and_popped_elsewhere() {
    let server = server();
    let mut client = server.client().unwrap();
    let named = fields();
    let claimed: String = (1..=ELEMENTS).map(|n| format!(" 1-{n}")).collect();
    for request in [
        "LPOP list 100".to_owned(),
        "RPOP list 100".to_owned(),
        "LMPOP 2 none list LEFT COUNT 100".to_owned(),
        "BLMPOP 0 2 none list RIGHT COUNT 100".to_owned(),
        "SORT list ALPHA".to_owned(),
        "SORT list ALPHA STORE d".to_owned(),
        "SUNION set none".to_owned(),
        "SUNIONSTORE d set none".to_owned(),
        "SSCAN set 0 COUNT 1000".to_owned(),
        "ZPOPMIN zset 100".to_owned(),
        "ZRANGESTORE d zset 0 -1".to_owned(),
        "ZUNIONSTORE d 2 zset set".to_owned(),
        format!("HMGET hash{named}"),
        format!("HGETEX hash PERSIST FIELDS {ELEMENTS}{named}"),
        format!("HGETDEL hash FIELDS {ELEMENTS}{named}"),
        "HSCAN hash 0 COUNT 1000".to_owned(),
        "DUMP list".to_owned(),
        "XREADGROUP GROUP group one STREAMS stream >".to_owned(),
        "XREADGROUP GROUP held one STREAMS stream 0".to_owned(),
        "XAUTOCLAIM stream held two 0 0 COUNT 1000".to_owned(),
        format!("XCLAIM stream held two 0{claimed}"),
    ] {
        fill(&mut client);
        let expected = at_once(&mut client, &request);
        fill(&mut client);
        let answered = elsewhere(&server, &mut client, &request);
        assert!(answered == expected, "{request}");
    }
}

#[test]
fn much_that_a_request_of_few_words_brings_is_stored_elsewhere() {
    let server = server();
    let (mut client, mut other) = (server.client().unwrap(), server.client().unwrap());
    for (words, is_pair) in [("RPUSH list", false), ("SADD set", false), ("HSET hash", true), ("MSET", true)]
    {
        let arguments = |n: usize| match is_pair {
            true => vec![format!("name{n}"), element(n)],
            false => vec![element(n)],
        };
        let mut all: Vec<String> = words.split(' ').map(str::to_owned).collect();
        all.extend((0..ELEMENTS).flat_map(arguments));
        call(&mut other, "FLUSHALL");
        for queued in [&["MULTI".to_owned()][..], &["PING".to_owned()], &all, &["EXEC".to_owned()]] {
            client.call(queued).unwrap();
        }
        let digest = text(&call(&mut other, "DEBUG DIGEST"));
        call(&mut other, "FLUSHALL");
        let lent = |other: &mut RespClient| figure(other, "lent_requests").parse::<u64>().unwrap();
        let before = lent(&mut other);
        client.call(&all).unwrap();
        assert_eq!(text(&call(&mut other, "DEBUG DIGEST")), digest, "{words}");
        assert!(lent(&mut other) > before, "{words} runs elsewhere, or in parts");
    }
}

/// What happens to a few keys is told in the order in which they are named, however long their values are.
#[test]
fn events_of_few_keys_come_in_their_order() {
    let server = server();
    let mut client = server.client().unwrap();
    let mut listener = listener(&server);
    let names: Vec<String> = (0..16).map(|n| format!("key{}", n * 7 % 16)).collect();
    let value = element(1).repeat(10);
    let pairs: Vec<&str> = names.iter().flat_map(|name| [name.as_str(), value.as_str()]).collect();
    client.call(&[&["MSET"][..], &pairs].concat()).unwrap();
    let expected: Vec<String> =
        names.iter().flat_map(|name| [format!("new {name}"), format!("set {name}")]).collect();
    let all: Vec<String> = told(&mut listener, &mut client);
    let events = |all: &[String]| -> Vec<String> {
        let event = |line: &String| line.strip_prefix("__keyevent@0__:").map(str::to_owned);
        all.iter().filter_map(event).collect()
    };
    assert_eq!(events(&all), expected);
    assert_ne!(figure(&mut client, "lent_requests"), "0");
}

/// EXEC cannot know how long a key is that its own requests fill.
#[test]
fn a_transaction_that_copies_what_is_long_before_it_sorts_it_runs_elsewhere() {
    let server = server();
    let (mut client, mut other) = (server.client().unwrap(), server.client().unwrap());
    let queue = ["COPY list d", "SORT d ALPHA STORE e", "RENAME e f", "LPOP f 100"];
    fill(&mut client);
    let expected = all_in_exec(&mut client, &queue);
    let digest = text(&call(&mut other, "DEBUG DIGEST"));
    for (first, is_lent) in [("COPY list d", true), ("COPY list d DB 0", false)] {
        fill(&mut client);
        let before = figure(&mut other, "lent_requests");
        for queued in ["MULTI", first].iter().chain(&queue[1..]) {
            client.call(&words(queued)).unwrap();
        }
        let Value::Aggregate(_, answered) = call(&mut client, "EXEC") else { panic!("it runs") };
        assert!(answered == expected, "{first}");
        assert_eq!(text(&call(&mut other, "DEBUG DIGEST")), digest, "{first}");
        assert_eq!(figure(&mut other, "lent_requests") != before, is_lent, "{first}");
    }
}

/// One element that is moved makes its destination no longer than it is.
#[test]
fn a_transaction_that_moves_elements_of_what_is_long_runs_at_once() {
    let server = server();
    let mut client = server.client().unwrap();
    fill(&mut client);
    let queue =
        ["LMOVE list small LEFT RIGHT", "LREM small -1 x", "LMOVE small list LEFT LEFT", "SMOVE set few x"];
    let before = figure(&mut client, "lent_requests");
    for queued in ["MULTI"].iter().chain(&queue) {
        client.call(&words(queued)).unwrap();
    }
    assert!(matches!(call(&mut client, "EXEC"), Value::Aggregate(..)));
    assert_eq!(figure(&mut client, "lent_requests"), before);
}
