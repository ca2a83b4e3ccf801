//! Whether a command on a large value stops anyone: while one client sends it, another of the same worker
//! times PING without a pause. Every command whose work grows with its data or its request has a line, worst
//! first.
//!
//! The value is made anew before each command, so that it has one owner and nothing of it is shared. What is
//! told is the longest PING in the least of some rounds: whatever else the machine does only adds to it. The
//! time of the command itself stands beside it, as its client sees it.

use super::Options;
use super::client::Client;
use super::server::{Server, Spec};
use super::stalls::WORKER_CORE;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Instant;

/// Elements of a collection.
const KEYS: u64 = 1_000_000;
const ROUNDS: usize = 2;
/// Elements of one request while data is loaded.
const AT_ONCE: u64 = 500;

const LIST: &str = "RPUSH k element:#";
const NUMBERS: &str = "SADD k #";
const SET: &str = "SADD k member:#";
const TWO_SETS: &str = "SADD k member:#;SADD l other:#";
const HASH: &str = "HSET k field:# value:#";
const ZSET: &str = "ZADD k # member:#";
const TWO_ZSETS: &str = "ZADD k # member:#;ZADD l # other:#";
const STREAM: &str = "XADD k 0-# field value";
const GROUP: &str = "XADD k 0-# field value;XGROUP CREATE k g 0";
const HELD: &str = "XADD k 0-# field value;XGROUP CREATE k g 0;XREADGROUP GROUP g c STREAMS k >";
const PLACES: &str = "GEOADD k 0.# 0.# place:#";
/// A hundred elements of a megabyte.
const LONG_LIST: &str = "RPUSH k {1}*100";
const STRING_1: &str = "SETRANGE k 1048575 x";
const STRING_16: &str = "SETRANGE k 16777215 x";
const STRING_100: &str = "SETRANGE k 104857599 x";
const TWO_TEXTS: &str = "SETRANGE k 5000 x;SETRANGE l 5000 x";
const TWO_STRINGS: &str = "SETRANGE k 104857599 x;SETRANGE l 104857599 x";

/// What is loaded, and the command. `#` is the element's number, `word*n` the word so many times, `#*n` the
/// numbers below n, `{dump}` what DUMP says of k, `{n}` a text of so many megabytes, and `{n}*m` m of these.
/// A line behind `@` is sent by a client of its own, and its reply is not waited for.
const CASES: [(&str, &str); 164] = [
    ("", "RPUSH k {1}*100"),
    (LONG_LIST, "LPOP k 100"),
    (LONG_LIST, "LMPOP 1 k RIGHT COUNT 100"),
    (LONG_LIST, "SORT k ALPHA"),
    (LONG_LIST, "SORT k ALPHA STORE l"),
    ("RPUSH k {1}*100;MULTI;COPY k d;SORT d ALPHA STORE e;LPOP d 100", "EXEC"),
    (STRING_1, "GET k"),
    (STRING_16, "GET k"),
    (STRING_100, "GET k"),
    (STRING_16, "GETRANGE k 1 -2"),
    (STRING_100, "GETRANGE k 1 -2"),
    (STRING_16, "GETSET k x"),
    (STRING_100, "GETDEL k"),
    (STRING_16, "MGET k"),
    (STRING_100, "MGET k k"),
    ("SET k x", "MGET k*1000000"),
    ("SET k x", "EXISTS k*1000000"),
    ("SET k x", "DEL key:#*1000000"),
    ("", "MSET #*1000000"),
    ("", "SET k {16}"),
    ("", "SET k {100}"),
    (STRING_100, "STRLEN k"),
    (STRING_16, "APPEND k x"),
    (STRING_100, "APPEND k x"),
    ("", "APPEND k {16}"),
    (STRING_100, "SETRANGE k 5 x"),
    ("", "SETRANGE k 1000000 x"),
    ("", "SETRANGE k 16777215 x"),
    ("", "SETRANGE k 104857599 x"),
    ("SET k x", "SETRANGE k 104857599 x"),
    ("", "SETBIT k 838860799 1"),
    ("", "BITFIELD k SET u8 838860792 1"),
    (STRING_100, "GETEX k"),
    (STRING_100, "SUBSTR k 1 -2"),
    (STRING_100, "SET k x GET"),
    (TWO_TEXTS, "LCS k l"),
    ("", "PFADD k #*1000000"),
    (STRING_100, "BITCOUNT k"),
    (STRING_100, "BITPOS k 1"),
    (TWO_STRINGS, "BITOP AND d k l"),
    (TWO_STRINGS, "BITOP XOR d k l"),
    (STRING_100, "BITOP NOT d k"),
    (STRING_16, "BITOP NOT d k"),
    ("PFADD k # ", "PFMERGE d k*1000"),
    ("PFADD k # ", "PFCOUNT k*1000"),
    (STRING_100, "COPY k d"),
    (STRING_100, "RENAME k d"),
    (HASH, "COPY k d"),
    (HASH, "MOVE k 1"),
    (HASH, "EXPIRE k -1"),
    (HASH, "SET k x"),
    (STRING_100, "DUMP k"),
    (STRING_16, "RESTORE d 0 {dump}"),
    (LIST, "RESTORE d 0 {dump}"),
    (SET, "RESTORE d 0 {dump}"),
    (HASH, "RESTORE d 0 {dump}"),
    (ZSET, "RESTORE d 0 {dump}"),
    (STREAM, "RESTORE d 0 {dump}"),
    (LIST, "LRANGE k 0 -1"),
    (LIST, "LPOS k nothing"),
    (LIST, "LPOS k element:5 COUNT 0"),
    (LIST, "LREM k 0 nothing"),
    (LIST, "LREM k 0 element:500000"),
    ("RPUSH k same*1000 other", "LREM k 0 same"),
    ("RPUSH k same same same", "LREM k 0 same"),
    (LIST, "LINSERT k AFTER element:999999 x"),
    (LIST, "LSET k 500000 x"),
    (LIST, "LTRIM k 499999 500000"),
    (LIST, "LTRIM k 1 -2"),
    (LIST, "LPOP k 999999"),
    (LIST, "RPOP k 1000000"),
    (LIST, "LMPOP 1 k LEFT COUNT 999999"),
    (LIST, "COPY k d"),
    (LIST, "DEL k"),
    (LIST, "SORT k ALPHA LIMIT 0 1"),
    (LIST, "SORT k ALPHA STORE d"),
    (NUMBERS, "SORT k BY w* STORE d"),
    (NUMBERS, "SORT k GET w* STORE d"),
    (NUMBERS, "SORT k BY w*"),
    ("", "RPUSH k #*1000000"),
    ("", "SADD k #*1000000"),
    ("", "ZADD k #*1000000"),
    ("", "HSET k #*1000000"),
    ("", "LPUSH k #*1000000"),
    (SET, "SMEMBERS k"),
    (SET, "SPOP k 999999"),
    (SET, "SPOP k 500000"),
    (NUMBERS, "SPOP k 500000"),
    (SET, "SREM k member:#*1000000"),
    (SET, "SMISMEMBER k member:#*1000000"),
    (SET, "SRANDMEMBER k -1000000"),
    (SET, "SRANDMEMBER k 500000"),
    (TWO_SETS, "SUNION k l"),
    ("SADD k x", "SINTER k*100000"),
    ("", "SUNION k#*100000"),
    ("", "SUNIONSTORE d k#*100000"),
    ("", "ZUNION 100000 k#*100000"),
    ("", "PFMERGE d k#*100000"),
    ("", "BLPOP k#*100000 0.1"),
    ("", "WATCH k#*100000"),
    ("", "EVAL return(1) 100000 k#*100000"),
    (TWO_SETS, "SUNIONSTORE d k l"),
    (TWO_SETS, "SINTERSTORE d k l"),
    (TWO_SETS, "SDIFFSTORE d k l"),
    (HASH, "HGETALL k"),
    (HASH, "HDEL k field:#*1000000"),
    (HASH, "HMGET k field:#*1000000"),
    (HASH, "HRANDFIELD k -1000000"),
    (HASH, "HRANDFIELD k 500000"),
    (HASH, "HTTL k FIELDS 1000000 field:#*1000000"),
    (HASH, "HGETDEL k FIELDS 1000000 field:#*1000000"),
    (HASH, "HEXPIRE k 100 FIELDS 1000000 field:#*1000000"),
    (HASH, "HPEXPIRE k 1 FIELDS 1000000 field:#*1000000"),
    (ZSET, "ZRANGE k 0 -1"),
    (ZSET, "ZRANGESTORE d k 0 -1"),
    (ZSET, "ZREMRANGEBYRANK k 0 499999"),
    (ZSET, "ZREMRANGEBYSCORE k 0 499999"),
    (ZSET, "ZREMRANGEBYLEX k - +"),
    (ZSET, "ZPOPMIN k 500000"),
    (ZSET, "ZMPOP 1 k MAX COUNT 999999"),
    (ZSET, "ZREM k member:#*1000000"),
    (ZSET, "ZMSCORE k member:#*1000000"),
    (ZSET, "ZRANDMEMBER k -1000000"),
    (ZSET, "ZRANDMEMBER k 500000"),
    (TWO_ZSETS, "ZUNIONSTORE d 2 k l"),
    (TWO_ZSETS, "ZINTERSTORE d 2 k l"),
    (TWO_ZSETS, "ZDIFFSTORE d 2 k l"),
    (PLACES, "GEOSEARCH k FROMLONLAT 0 0 BYRADIUS 200 km"),
    (PLACES, "GEOSEARCHSTORE d k FROMLONLAT 0 0 BYRADIUS 200 km"),
    (PLACES, "GEOPOS k place:#*1000000"),
    (STREAM, "XRANGE k - +"),
    (STREAM, "XREAD STREAMS k k 0 0"),
    (STREAM, "XTRIM k MAXLEN 1"),
    (STREAM, "XADD k MAXLEN 1 * field value"),
    (STREAM, "XDEL k 0-#*1000000"),
    (STREAM, "XINFO STREAM k FULL COUNT 0"),
    (GROUP, "XREADGROUP GROUP g c STREAMS k >"),
    (HELD, "XREADGROUP GROUP g c STREAMS k 0"),
    (HELD, "XPENDING k g - + 1000000"),
    (HELD, "XPENDING k g - + 1000000 c"),
    (HELD, "XPENDING k g IDLE 100000000 - + 10"),
    (HELD, "XACK k g 0-#*1000000"),
    (HELD, "XCLAIM k g d 0 0-#*1000000"),
    (HELD, "XAUTOCLAIM k g d 0 - COUNT 1000000"),
    (HELD, "XAUTOCLAIM k g d 100000000 - COUNT 2000"),
    (HELD, "XGROUP DELCONSUMER k g c"),
    (HELD, "XGROUP DESTROY k g"),
    (HELD, "XTRIM k MAXLEN 0 DELREF"),
    (HELD, "XINFO STREAM k FULL COUNT 0"),
    (HASH, "MEMORY USAGE k SAMPLES 0"),
    ("SET key:# x", "FLUSHALL"),
    ("SET key:# x", "SWAPDB 0 1"),
    ("SET key:# x", "KEYS *"),
    ("SET key:# x", "SCAN 0 COUNT 1000000"),
    ("HELLO 3", "SUBSCRIBE c#*100000"),
    ("HELLO 3", "PSUBSCRIBE c#*100000"),
    ("@SUBSCRIBE c#*100000", "PUBSUB CHANNELS"),
    ("@BLMPOP 0 1 k LEFT COUNT 1000000", "RPUSH k #*1000000"),
    ("@BZMPOP 0 1 k MIN COUNT 1000000", "ZADD k #*1000000"),
    ("MULTI;SADD k #*1000000", "EXEC"),
    ("MULTI;SET key:# x", "EXEC"),
    ("SADD k member:#;MULTI;SUNION k l", "EXEC"),
    ("SADD k member:#;ACL SETUSER u on nopass ~* +@all -get;AUTH u x;MULTI;SUNION k l", "EXEC"),
    ("SADD k member:#;HELLO 3;CLIENT TRACKING ON;MULTI;SUNION k l", "EXEC"),
];

/// A command's line.
struct Row {
    what: String,
    longest_us: u64,
    own_us: u64,
}

/// Whether there is a request of this name.
pub(super) fn knows(name: &str) -> bool {
    CASES.iter().any(|(_, request)| request.starts_with(name))
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    options.servers.iter().try_for_each(|spec| one(spec, options))
}

fn one(spec: &Spec, options: &Options) -> Result<(), String> {
    let server = Server::start(spec, None)?;
    server.isolate_worker(WORKER_CORE)?;
    let keys = options.keys.unwrap_or(KEYS);
    let mut rows = Vec::new();
    for (fill, request) in CASES {
        let is_wanted =
            options.names.is_empty() || options.names.iter().any(|name| request.starts_with(name));
        if !is_wanted {
            continue;
        }
        let mut best: Option<Row> = None;
        for _ in 0..options.rounds.unwrap_or(ROUNDS) {
            let row = measure(&server, keys, fill, request).map_err(|why| format!("{request}: {why}"))?;
            if best.as_ref().is_none_or(|best| row.longest_us < best.longest_us) {
                best = Some(row);
            }
        }
        rows.extend(best);
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.longest_us));
    println!(
        "{}: the longest PING of another client meanwhile, and the command's own time, in ms",
        server.name
    );
    for Row { what, longest_us, own_us } in &rows {
        println!("{:10.2} {:10.2}  {what}", *longest_us as f64 / 1e3, *own_us as f64 / 1e3);
    }
    let over = rows.iter().filter(|row| row.longest_us > 1_000).count();
    println!("{over} of {} over 1 ms", rows.len());
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn measure(server: &Server, keys: u64, fill: &str, request: &str) -> Result<Row, String> {
    let mut client = server.client()?;
    client.call(&[b"FLUSHALL"])?;
    let mut others = Vec::new();
    for line in fill.split(';').filter(|line| !line.is_empty()) {
        match line.strip_prefix('@') {
            Some(line) => {
                let mut other = server.client()?;
                let words = words(&mut client, line)?;
                other.send_only(&words.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
                others.push(other);
            }
            None => load(&mut client, line, keys)?,
        }
    }
    let words = words(&mut client, request)?;
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let last = fill.strip_prefix("SETRANGE k ").and_then(|rest| rest.split(' ').next());
    let what = match last {
        _ if request == "EXEC" => format!("EXEC ({fill})"),
        Some(last) => format!("{request} ({} MB)", last.parse::<u64>().unwrap_or(0).div_ceil(1 << 20)),
        None => format!("{request} ({})", fill.split(' ').next().unwrap_or("")),
    };
    // Threads that run what takes long were started by the worker, beside which they are not to run.
    server.isolate_worker(WORKER_CORE)?;
    // What freeing the data before has left to do.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let (is_over, longest_us, begun) = (AtomicBool::new(false), AtomicU64::new(0), AtomicBool::new(false));
    let mut probe = server.client()?;
    let own_us = std::thread::scope(|scope| {
        let watch = || -> Result<(), String> {
            while !is_over.load(SeqCst) {
                let start = Instant::now();
                probe.call(&[b"PING"])?;
                longest_us.fetch_max(start.elapsed().as_micros() as u64, SeqCst);
                if !begun.swap(true, SeqCst) {
                    // The first one has found nobody at work.
                    longest_us.store(0, SeqCst);
                }
            }
            Ok(())
        };
        let watcher = scope.spawn(watch);
        while !begun.load(SeqCst) && !watcher.is_finished() {
            std::thread::yield_now();
        }
        let start = Instant::now();
        let done = client.call_unread(&words);
        let own_us = start.elapsed().as_micros() as u64;
        is_over.store(true, SeqCst);
        watcher.join().map_err(|_| "the probe failed".to_string())??;
        done.map(|_| own_us)
    })?;
    Ok(Row { what, longest_us: longest_us.into_inner(), own_us })
}

/// Carries out a line of what is loaded: once for each element, many elements a request, if it names them.
fn load(client: &mut Client, line: &str, count: u64) -> Result<(), String> {
    let Some(at) = line.find('#').filter(|_| !line.contains("#*")) else {
        let words = words(client, line)?;
        return client.call(&words.iter().map(Vec::as_slice).collect::<Vec<_>>()).map(drop);
    };
    let head = &line[..line[..at].rfind(' ').map_or(0, |space| space)];
    let element = line[head.len()..].trim();
    let at_once = if head.starts_with("XADD") || head == "SET" { 1 } else { AT_ONCE };
    for first in (0..count).step_by(at_once as usize) {
        let mut request: Vec<Vec<u8>> = head.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        for n in first..count.min(first + at_once) {
            let n = if head.starts_with("XADD") { n + 1 } else { n };
            request.extend(element.split(' ').map(|word| word.replace('#', &n.to_string()).into_bytes()));
        }
        let request: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
        client.pipe(&request, 64)?;
    }
    client.flush()
}

/// The words of a request.
fn words(client: &mut Client, line: &str) -> Result<Vec<Vec<u8>>, String> {
    let mut words = Vec::new();
    for word in line.split(' ') {
        let repeated = word.split_once('*').and_then(|(word, times)| Some((word, times.parse().ok()?)));
        let (word, times): (&str, u64) = repeated.unwrap_or((word, 1));
        match word.strip_prefix('{').and_then(|word| word.strip_suffix('}')) {
            Some("dump") => match client.call(&[b"DUMP", b"k"])? {
                super::client::Answer::Text(text) => words.push(text),
                other => return Err(format!("DUMP says {other:?}")),
            },
            Some(megabytes) => {
                let text = vec![b'x'; megabytes.parse::<usize>().unwrap_or(1) << 20];
                words.extend((0..times).map(|_| text.clone()));
            }
            None => words.extend((0..times).map(|n| word.replace('#', &n.to_string()).into_bytes())),
        }
    }
    Ok(words)
}
