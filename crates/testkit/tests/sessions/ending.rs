//! SHUTDOWN while clients write: what the server has acknowledged is in the dump that it leaves.
use server::Config;
use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;
use testkit::in_process::InProcess;
use testkit::resp_client::RespClient;
use testkit::resp_value::Value;
use testkit::scratch::Scratch;

/// Each adds one to a key of the client's own. All but the first wait until no other worker runs anything.
const WRITES: [&[&[&str]]; 4] = [
    &[&["INCR", "KEY"]],
    &[&["EVAL", "redis.call('incr', ARGV[1]) return redis.call('dbsize')", "0", "KEY"]],
    &[&["EVAL", "redis.call('incr', ARGV[1]) redis.call('move', 'none', 9) return 1", "0", "KEY"]],
    &[&["MULTI"], &["INCR", "KEY"], &["KEYS", "none"], &["EXEC"]],
];

/// Writes until the server has gone. Returns how many writes were acknowledged.
fn write(mut client: RespClient, requests: &[&[&str]], key: &str) -> u64 {
    let named = |word: &&str| if *word == "KEY" { key.to_owned() } else { (*word).to_owned() };
    let requests: Vec<Vec<String>> = requests.iter().map(|words| words.iter().map(named).collect()).collect();
    let mut acknowledged = 0;
    let mut ask = || -> std::io::Result<bool> {
        let mut last = Value::Null(b'$');
        for words in &requests {
            last = client.call(words)?;
        }
        Ok(!matches!(last, Value::Line(b'-', _)))
    };
    while let Ok(is_done) = ask() {
        acknowledged += u64::from(is_done);
    }
    acknowledged
}

#[test]
fn what_was_acknowledged_before_the_server_ended_is_in_its_dump() {
    const ROUNDS: u64 = 12;
    let folder = Scratch::new("ending").unwrap();
    let (mut counts, mut acknowledged) = (BTreeMap::<String, u64>::new(), 0);
    for round in 0..ROUNDS {
        let config = Config { worker_threads: 3, dir: folder.path().into(), ..InProcess::config() };
        let server = InProcess::start(config);
        let mut client = server.client().unwrap();
        for (key, count) in &counts {
            let there = client.call(&["GET", key]).unwrap();
            let there: u64 = String::from_utf8_lossy(there.text().unwrap()).parse().unwrap();
            assert!(there >= *count, "{key}: {count} acknowledged, {there} there, in round {round}");
        }
        assert!(!matches!(client.call(&["FLUSHALL"]).unwrap(), Value::Line(b'-', _)));
        counts = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..8_usize)
                .map(|number| {
                    let (client, key) = (server.client().unwrap(), format!("key:{number}"));
                    scope.spawn(move || (key.clone(), write(client, WRITES[number % WRITES.len()], &key)))
                })
                .collect();
            sleep(Duration::from_millis(20 + round));
            let _ = client.call(&["SHUTDOWN", "SAVE"]);
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        counts.retain(|_, count| *count > 0);
        acknowledged += counts.values().sum::<u64>();
    }
    assert!(acknowledged > 0);
}
