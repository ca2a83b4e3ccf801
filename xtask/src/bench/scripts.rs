//! Processor time of scripts, the servers taking turns as in `turns`: one GET and one SET of a key that is
//! declared or not, a SET and a message, the first in a function, nothing at all, a SET and a line
//! for the log that is below its level, a SCAN, and a loop of ten thousand
//! HSET and HGET, after which the hash is asked for its size; writes to collections of 5,000, which are kept
//! as they were until the script has ended; reading a list of 5,000 documents; and the functions of
//! libraries in loops. And how many scripts of
//! forty commands fifty clients are answered in a second by two workers and by one, where their key is
//! declared and where it is not, where all of them write to one that is not, in a function, and where four
//! run in an EXEC.
use super::Options;
use super::anysize::median;
use super::client::{Answer, append_request};
use super::crowd::{CLIENTS, Crowd, Turn};
use super::server::Server;
use super::turns::{cells, draw_key};
use base::random::Random;
use std::time::Instant;

/// A script and how it is called.
struct Case {
    name: &'static str,
    text: &'static str,
    /// How many of its arguments are keys, and what they are.
    keys: &'static str,
    args: &'static [&'static [u8]],
    /// Requests of a turn at depth 1.
    requests: usize,
    depths: &'static [usize],
    /// A script that is run before.
    before: Option<&'static str>,
}

const KEY: &[u8] = b"key:000000000000";
const CASES: &[Case] = &[
    Case {
        name: "getset",
        text: "local v = redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], ARGV[1]) return v",
        keys: "1",
        args: &[KEY, &[b'x'; 64]],
        requests: 4_000,
        depths: &[1, 16],
        before: None,
    },
    Case {
        name: "undeclared",
        text: "local v = redis.call('GET', ARGV[1]) redis.call('SET', ARGV[1], ARGV[2]) return v",
        keys: "0",
        args: &[KEY, &[b'x'; 64]],
        requests: 4_000,
        depths: &[1, 16],
        before: None,
    },
    Case {
        name: "publish",
        text: "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('PUBLISH', 'channel', ARGV[1])",
        keys: "1",
        args: &[KEY, &[b'x'; 64]],
        requests: 4_000,
        depths: &[1, 16],
        before: None,
    },
    Case {
        name: "function",
        text: "#!lua name=bench\nredis.register_function('f', function(keys, args) \
               local v = redis.call('GET', keys[1]) redis.call('SET', keys[1], args[1]) return v end)",
        keys: "1",
        args: &[KEY, &[b'x'; 64]],
        requests: 4_000,
        depths: &[1, 16],
        before: None,
    },
    Case {
        name: "nothing",
        text: "return 1",
        keys: "0",
        args: &[],
        requests: 4_000,
        depths: &[1, 16],
        before: None,
    },
    Case {
        name: "log",
        text: "redis.log(redis.LOG_DEBUG, 'set', KEYS[1]) return redis.call('SET', KEYS[1], ARGV[1])",
        keys: "1",
        args: &[KEY, &[b'x'; 64]],
        requests: 4_000,
        depths: &[1, 16],
        before: None,
    },
    Case {
        name: "scan",
        text: "return redis.call('SCAN', 0)[2]",
        keys: "0",
        args: &[],
        requests: 4_000,
        depths: &[1, 16],
        before: Some("for n = 1, 5000 do redis.call('SET', 'key:' .. n, n) end"),
    },
    Case {
        name: "loop",
        text: "for i = 1, 10000 do redis.call('HSET', KEYS[1], i, i) end \
               for i = 1, 10000 do redis.call('HGET', KEYS[1], i) end return 1",
        keys: "1",
        args: &[b"hash"],
        requests: CLIENTS,
        depths: &[1],
        before: None,
    },
];

/// One write to a collection of 5,000.
const fn large(name: &'static str, text: &'static str, before: &'static str, args: &'static [&[u8]]) -> Case {
    Case { name, text, keys: "1", args, requests: 4_000, depths: &[1, 16], before: Some(before) }
}

const LARGE: &[Case] = &[
    large(
        "zset",
        "local n = string.sub(ARGV[1], 5) \
         return redis.call('ZADD', KEYS[1], n, 'member:' .. n % 5000)",
        "for n = 0, 4999 do redis.call('ZADD', 'zset', n, 'member:' .. n) end",
        &[b"zset", KEY],
    ),
    large(
        "hash",
        "local n = string.sub(ARGV[1], 5) % 5000 return redis.call('HSET', KEYS[1], 'field:' .. n, ARGV[1])",
        "for n = 0, 4999 do redis.call('HSET', 'hash', 'field:' .. n, 'key:000000000000') end",
        &[b"hash", KEY],
    ),
    large(
        "set",
        "local n = string.sub(ARGV[1], 5) % 5000 redis.call('SREM', KEYS[1], 'member:' .. n) \
         return redis.call('SADD', KEYS[1], 'member:' .. n)",
        "for n = 0, 4999 do redis.call('SADD', 'set', 'member:' .. n) end",
        &[b"set", KEY],
    ),
];

/// Documents of some kilobyte that differ in a few bytes in the middle.
const DOCUMENTS: Case = Case {
    requests: 2 * CLIENTS,
    depths: &[1],
    ..large(
        "documents",
        "return #redis.call('LRANGE', KEYS[1], 0, -1)",
        "local half = string.rep('{\"name\":\"value\"},', 32) for n = 100000, 104999 do \
         redis.call('RPUSH', 'documents', '[' .. half .. n .. ',' .. half .. '0]') end",
        &[b"documents"],
    )
};

/// A library's functions in a loop.
const fn library(name: &'static str, text: &'static str) -> Case {
    Case { name, text, keys: "0", args: &[], requests: 2 * CLIENTS, depths: &[1], before: None }
}

const LIBRARIES: &[Case] = &[
    library(
        "json",
        "local text = '{\"id\":1,\"name\":\"abc\",\"tags\":[1,2,3],\"of\":{\"a\":null,\"b\":1.5}}' \
         for i = 1, 200 do text = cjson.encode(cjson.decode(text)) end return text",
    ),
    library(
        "messagepack",
        "local value = {id = 1, name = 'abc', tags = {1, 2, 3}, of = {b = 1.5}} \
         for i = 1, 200 do value = cmsgpack.unpack(cmsgpack.pack(value)) end return value.name",
    ),
    library(
        "bits",
        "local n = 0 for i = 1, 2000 do n = bit.bxor(bit.lshift(n, 5), bit.rshift(n, 2), i) end return bit.tohex(n)",
    ),
    library("insert", "local t = {} for i = 1, 2000 do table.insert(t, i) end return #t"),
    library(
        "strings",
        "local n = 0 for i = 1, 300 do local key = string.rep('k', 3) .. ':' .. i \
         local id = string.match(key, ':(%d+)') n = n + string.find(key, ':', 1, true) \
         for part in string.gmatch(key, '[^:]+') do n = n + #part end key = string.gsub(key, ':', '.') end return n",
    ),
    library(
        "floats",
        "local t = {} for i = 1, 20 do t[i] = i * 1.25 + 0.1 end local text \
         for i = 1, 100 do text = cjson.encode(t) end return text",
    ),
    library(
        "replacements",
        "local s, t, n = string.rep('ab1cd2 ', 20), {['1'] = 'x', ['2'] = 'y'}, 0 \
         for i = 1, 20 do n = n + #s:gsub('%d', t) + #s:gsub('%d', function(d) return d .. d end) end return n",
    ),
    library(
        "structures",
        "local n = 0 for i = 1, 1000 do n = n + struct.unpack('>I4', struct.pack('>I4', i)) end return n",
    ),
];

const FORTY_SETS: &str = "local k = KEYS[1] or ARGV[1] for i = 1, 40 do redis.call('HSET', k, i, i) end";

/// Those that two workers run beside one.
const WORKERS: &[Case] = &[
    Case {
        name: "workers",
        text: FORTY_SETS,
        keys: "1",
        args: &[KEY],
        requests: 1_000,
        depths: &[4],
        before: None,
    },
    Case {
        name: "workers-undeclared",
        text: FORTY_SETS,
        keys: "0",
        args: &[KEY],
        requests: 1_000,
        depths: &[4],
        before: None,
    },
    Case {
        name: "workers-one-key",
        text: "local k = 'key of all' for i = 1, 40 do redis.call('HSET', k, i, ARGV[1]) end",
        keys: "0",
        args: &[KEY],
        requests: 1_000,
        depths: &[4],
        before: None,
    },
    Case {
        name: "workers-exec",
        text: FORTY_SETS,
        keys: "0",
        args: &[KEY],
        requests: 200,
        depths: &[6],
        before: None,
    },
    Case {
        name: "workers-function",
        text: "#!lua name=bench\nredis.register_function('f', function(keys) \
               for i = 1, 40 do redis.call('HSET', keys[1], i, i) end end)",
        keys: "1",
        args: &[KEY],
        requests: 1_000,
        depths: &[4],
        before: None,
    },
];

const ROUNDS: usize = 100;

/// The cases in which a server is compared with its peers.
fn cases() -> impl Iterator<Item = &'static Case> {
    CASES.iter().chain(LARGE).chain([&DOCUMENTS]).chain(LIBRARIES)
}

/// Whether there is a case of this name.
pub(super) fn knows(name: &str) -> bool {
    cases().chain(WORKERS).any(|case| case.name == name)
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let is_wanted = |case: &&Case| options.wants(case.name);
    let servers: Result<Vec<Server>, String> =
        options.servers.iter().map(|spec| Server::start(spec, Some("0"))).collect();
    let servers = servers?;
    super::server::pin_this("1")?;
    let rounds = options.rounds.unwrap_or(ROUNDS);
    for case in cases().filter(is_wanted) {
        for depth in case.depths {
            compare(&servers, case, *depth, rounds)?;
        }
        if case.name == "loop" {
            for server in &servers {
                let bytes = server.client()?.call_int(&[b"MEMORY", b"USAGE", b"hash"])?;
                println!("{:10} the hash of 10,000 fields takes {bytes} bytes in {}", "", server.name);
            }
        }
    }
    drop(servers);
    for case in WORKERS.iter().filter(is_wanted) {
        compare_workers(options, case, rounds)?;
    }
    Ok(())
}

/// The first server with two workers beside itself with one. What sends is not kept off their processors.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn compare_workers(options: &Options, case: &Case, rounds: usize) -> Result<(), String> {
    let Some(spec) = options.servers.first() else { return Ok(()) };
    // Servers inherit where this may run.
    super::server::pin_this("0-1")?;
    let servers =
        [1, 2].map(|workers| Server::start(&spec.with(&format!("--worker-threads {workers}")), None));
    let [one, two] = servers;
    let servers = [one?, two?];
    let call = load(&servers, case)?;
    let key_at = call.windows(KEY.len()).position(|bytes| bytes == KEY).ok_or("bench: it names a key")?;
    let mut requests = in_turn(case, &call).into_iter().cycle();
    let crowds: Result<Vec<Crowd>, String> =
        servers.iter().map(|server| Crowd::connect(server.port)).collect();
    let (mut crowds, mut random, depth) = (crowds?, Random::new(1), case.depths[0]);
    let mut rates = [const { Vec::new() }; 2];
    for round in 0..=rounds {
        for at in [round % 2, 1 - round % 2] {
            let mut write = |out: &mut Vec<u8>| {
                let request = requests.next().expect("they never end");
                out.extend_from_slice(request);
                if request == call {
                    let end = out.len() - request.len() + key_at + KEY.len();
                    draw_key(&mut out[..end], &mut random);
                }
            };
            let began = Instant::now();
            let mut turn = Turn { requests: case.requests * depth, depth, write: &mut write };
            let sent = crowds[at].take_turn(&mut turn)?;
            if round > 0 {
                rates[at].push(sent as f64 / began.elapsed().as_secs_f64());
            }
        }
    }
    let mut ratios: Vec<f64> = rates[1].iter().zip(&rates[0]).map(|(two, one)| two / one).collect();
    println!(
        "{:10} P={depth:<3} {} a second with one worker, x{:.2} with two",
        case.name,
        median(&mut rates[0]) as u64,
        median(&mut ratios)
    );
    Ok(())
}

/// What a client sends, again and again: calls, or EXEC of four.
fn in_turn<'c>(case: &Case, call: &'c [u8]) -> Vec<&'c [u8]> {
    match case.name {
        "workers-exec" => {
            vec![b"*1\r\n$5\r\nMULTI\r\n", call, call, call, call, b"*1\r\n$4\r\nEXEC\r\n"]
        }
        _ => vec![call],
    }
}

/// Has all servers know the script, or the library with the function `f`. Returns its call.
fn load(servers: &[Server], case: &Case) -> Result<Vec<u8>, String> {
    let (text, is_library) = (case.text.as_bytes(), case.text.starts_with("#!lua name="));
    let mut request = Vec::new();
    for server in servers {
        let mut client = server.client()?;
        client.call(&[b"FLUSHALL"])?;
        if let Some(before) = case.before {
            client.call(&[b"EVAL", before.as_bytes(), b"0"])?;
        }
        let loaded = match is_library {
            true => client.call(&[b"FUNCTION", b"LOAD", b"REPLACE", text])?,
            false => client.call(&[b"SCRIPT", b"LOAD", text])?,
        };
        let Answer::Text(sha) = loaded else { return Err("bench: a script is loaded with its name".into()) };
        let call: [&[u8]; 2] = if is_library { [b"FCALL", b"f"] } else { [b"EVALSHA", &sha] };
        let mut words = vec![call[0], call[1], case.keys.as_bytes()];
        words.extend(case.args);
        request.clear();
        append_request(&mut request, &words);
    }
    Ok(request)
}

fn compare(servers: &[Server], case: &Case, depth: usize, rounds: usize) -> Result<(), String> {
    let request = load(servers, case)?;
    let key_at = request.windows(KEY.len()).position(|bytes| bytes == KEY);
    let crowds: Result<Vec<Crowd>, String> =
        servers.iter().map(|server| Crowd::connect(server.port)).collect();
    let (mut crowds, mut random) = (crowds?, Random::new(1));
    let mut times_us = vec![Vec::new(); servers.len()];
    for round in 0..=rounds {
        for at in 0..servers.len() {
            // The servers take turns in being first.
            let at = if round % 2 == 0 { at } else { servers.len() - 1 - at };
            let mut write = |out: &mut Vec<u8>| {
                out.extend_from_slice(&request);
                if let Some(key_at) = key_at {
                    let end = out.len() - request.len() + key_at + KEY.len();
                    draw_key(&mut out[..end], &mut random);
                }
            };
            let before = servers[at].cpu_us();
            let mut turn = Turn { requests: case.requests * depth, depth, write: &mut write };
            let sent = crowds[at].take_turn(&mut turn)?;
            // The first round only warms the caches.
            if round > 0 {
                times_us[at].push((servers[at].cpu_us() - before) / sent as f64);
            }
        }
    }
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    println!("{:10} P={depth:<3} {}", case.name, cells(&names, &times_us, &mut random).join(" | "));
    Ok(())
}
