//! The data sets whose bytes are measured, each seeded, so that every server gets the same.

use base::random::Random;

/// Sends one request; the second argument is how many elements it adds.
pub(crate) type Send<'s> = &'s mut dyn FnMut(&[&[u8]], u64) -> Result<(), String>;

/// Sends all of a data set.
pub(crate) type Load<'l> = &'l dyn Fn(Send<'_>) -> Result<(), String>;

/// The name and value of a CONFIG SET.
pub(crate) type Setting<'s> = (&'s str, &'s str);

pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The command that a server must have to be measured with this case.
    pub(crate) command: &'static str,
    pub(crate) settings: &'static [Setting<'static>],
    pub(crate) load: LoadFn,
}

type LoadFn = fn(Send<'_>) -> Result<(), String>;

const fn case(name: &'static str, command: &'static str, load: LoadFn) -> Case {
    Case { name, command, settings: &[], load }
}

const fn compressed(name: &'static str, command: &'static str, load: LoadFn) -> Case {
    Case { name, command, settings: COMPRESSED, load }
}

const COMPRESSED: &[Setting<'static>] = &[("list-compress-depth", "1"), ("list-compress-codec", "zstd")];

pub(crate) const CASES: &[Case] = &[
    case("str_user_ts", "SET", str_user_ts),
    case("str_16_64", "SET", str_16_64),
    case("str_ttl", "SET", str_ttl),
    case("str_sessions_json", "SET", str_sessions_json),
    case("list_ints_seq", "RPUSH", list_ints_seq),
    case("list_ints_rand", "RPUSH", list_ints_rand),
    case("list_ids", "LPUSH", list_ids),
    case("list_words", "RPUSH", list_words),
    compressed("list_words_zstd", "RPUSH", list_words),
    case("list_blobs_rand", "RPUSH", list_blobs_rand),
    compressed("list_blobs_json_zstd", "RPUSH", list_blobs_json),
    case("hash_small_users", "HSET", hash_small_users),
    case("hash_one_10k", "HSET", hash_one_10k),
    case("hash_one_1m", "HSET", hash_one_1m),
    case("hash_user_ts_bucketed", "HSET", hash_user_ts_bucketed),
    case("set_words", "SADD", set_words),
    case("set_ints_1m", "SADD", set_ints_1m),
    case("set_small", "SADD", set_small),
    case("zset_500", "ZADD", zset_500),
    case("zset_500_a50", "ZADD", zset_500_a50),
    case("zset_1m", "ZADD", zset_1m),
    case("stream_5_fields", "XADD", stream_5_fields),
    case("lists_of_8_uuids", "RPUSH", |send| of_uuids(send, "RPUSH", 8, Pairing::Alone)),
    case("sets_of_8_uuids", "SADD", |send| of_uuids(send, "SADD", 8, Pairing::Alone)),
    case("hashes_of_5_uuids", "HSET", |send| of_uuids(send, "HSET", 5, Pairing::WithItself)),
    case("zsets_of_8_uuids", "ZADD", |send| of_uuids(send, "ZADD", 8, Pairing::BehindScore)),
    case("lists_of_24_uuids", "RPUSH", |send| of_uuids(send, "RPUSH", 24, Pairing::Alone)),
    case("sets_of_24_uuids", "SADD", |send| of_uuids(send, "SADD", 24, Pairing::Alone)),
    case("hashes_of_12_uuids", "HSET", |send| of_uuids(send, "HSET", 12, Pairing::WithItself)),
    case("zsets_of_24_uuids", "ZADD", |send| of_uuids(send, "ZADD", 24, Pairing::BehindScore)),
    case("sets_of_100_uuids", "SADD", |send| of_uuids(send, "SADD", 100, Pairing::Alone)),
    case("hashes_of_100_uuids", "HSET", |send| of_uuids(send, "HSET", 100, Pairing::WithItself)),
    case("lists_of_40_ids", "RPUSH", |send| of_ids(send, "RPUSH", 40, Pairing::Alone)),
    case("sets_of_40_ids", "SADD", |send| of_ids(send, "SADD", 40, Pairing::Alone)),
    case("zsets_of_40_ids", "ZADD", |send| of_ids(send, "ZADD", 40, Pairing::BehindScore)),
    case("hashes_of_33_flags", "HSET", hashes_of_flags),
    case("hash_profiles", "HSET", hash_profiles),
    case("hash_sessions", "HSET", hash_sessions),
    case("str_1k", "SET", str_1k),
    case("lists_of_1_job", "RPUSH", lists_of_1_job),
];

/// The list of words in Debian's package `miscfiles`.
const WORDS: &str = "/usr/share/dict/web2";

pub(crate) fn words() -> Result<Vec<String>, String> {
    let text =
        std::fs::read_to_string(WORDS).map_err(|e| format!("bench: {WORDS} (package miscfiles): {e}"))?;
    Ok(text.lines().filter(|w| !w.is_empty()).map(String::from).collect())
}

pub(crate) fn push_all(
    send: Send<'_>,
    verb: &str,
    key: &str,
    values: &[Vec<u8>],
    a_request: usize,
) -> Result<(), String> {
    for some in values.chunks(a_request) {
        let mut args: Vec<&[u8]> = vec![verb.as_bytes(), key.as_bytes()];
        args.extend(some.iter().map(Vec::as_slice));
        send(&args, some.len() as u64)?;
    }
    Ok(())
}

pub(crate) fn random_bytes(random: &mut Random, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| random.next_u64().to_le_bytes()).collect();
    bytes.truncate(len);
    bytes
}

fn str_user_ts(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(9);
    for i in 0..1_000_000 {
        let time = 1_499_256_798_295 + random.below(1_000_000_000);
        send(&[b"SET", format!("user:{i}").as_bytes(), time.to_string().as_bytes()], 1)?;
    }
    Ok(())
}

fn str_16_64(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(10);
    for i in 0..1_000_000 {
        send(&[b"SET", format!("key:{i:012}").as_bytes(), &random_bytes(&mut random, 64)], 1)?;
    }
    Ok(())
}

fn str_ttl(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(11);
    for i in 0..1_000_000 {
        let ttl = (3_600 + random.below(86_400)).to_string();
        let value = random_bytes(&mut random, 32);
        send(&[b"SET", format!("session:{i:08x}").as_bytes(), &value, b"EX", ttl.as_bytes()], 1)?;
    }
    Ok(())
}

fn hex32(random: &mut Random) -> String {
    format!("{:016x}{:016x}", random.next_u64(), random.next_u64())
}

fn str_sessions_json(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(12);
    let names = names()?;
    let name = |random: &mut Random| names[random.below(names.len() as u64) as usize].clone();
    for i in 0..300_000u64 {
        let key = format!("session:{}", hex32(&mut random));
        let value = format!(
            "{{\"user_id\": {i}, \"name\": \"{}\", \"email\": \"{}@example.com\", \"roles\": [\"user\"], \
             \"csrf\": \"{}\", \"last_seen\": {}, \"theme\": \"dark\", \"cart\": [{{\"sku\": {}, \"qty\": 1}}]}}",
            name(&mut random),
            name(&mut random),
            hex32(&mut random),
            1_700_000_000 + i,
            random.below(1_000_000)
        );
        send(&[b"SET", key.as_bytes(), value.as_bytes()], 1)?;
    }
    Ok(())
}

fn list_ints_seq(send: Send<'_>) -> Result<(), String> {
    let values: Vec<Vec<u8>> = (0..1_000_000).map(|n: u32| n.to_string().into_bytes()).collect();
    (0..10).try_for_each(|i| push_all(send, "RPUSH", &format!("list:{i}"), &values, 1_000))
}

fn list_ints_rand(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(1);
    (0..10).try_for_each(|i| {
        let values: Vec<Vec<u8>> =
            (0..1_000_000).map(|_| random.below(1 << 31).to_string().into_bytes()).collect();
        push_all(send, "RPUSH", &format!("list:{i}"), &values, 1_000)
    })
}

/// Timelines: rising 64-bit ids, 800 a list, the newest first.
fn list_ids(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(2);
    (0..10_000).try_for_each(|i| {
        let mut id = 1u64 << 60;
        let mut next = || {
            id += random.below(1 << 30);
            id.to_string().into_bytes()
        };
        let values: Vec<Vec<u8>> = (0..800).map(|_| next()).collect();
        push_all(send, "LPUSH", &format!("tl:{i}"), &values, 800)
    })
}

fn list_words(send: Send<'_>) -> Result<(), String> {
    let values: Vec<Vec<u8>> = words()?.into_iter().map(String::into_bytes).collect();
    (0..20).try_for_each(|_| push_all(send, "RPUSH", "abc", &values, 500))
}

fn list_blobs_rand(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(3);
    (0..150).try_for_each(|i| {
        let values: Vec<Vec<u8>> = (0..800).map(|_| random_bytes(&mut random, 2_500)).collect();
        push_all(send, "RPUSH", &format!("blob:{i}"), &values, 100)
    })
}

fn list_blobs_json(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(4);
    let words = words()?;
    let some = |random: &mut Random, count: usize, between: &str| {
        let chosen: Vec<&str> =
            (0..count).map(|_| words[random.below(words.len() as u64) as usize].as_str()).collect();
        chosen.join(between)
    };
    (0..150).try_for_each(|i: u64| {
        let values: Vec<Vec<u8>> = (0..800)
            .map(|j| {
                let id = i * 800 + j;
                let tags = some(&mut random, 8, "\", \"");
                let body = some(&mut random, 220, " ");
                let (user, time) = (random.below(1_000_000), 1_700_000_000_000 + id);
                let mut text = format!(
                    "{{\"id\": {id}, \"user\": \"user:{user}\", \"ts\": {time}, \"tags\": [\"{tags}\"], \
                     \"body\": \"{body}\"}}"
                );
                text.truncate(2_500);
                text.into_bytes()
            })
            .collect();
        push_all(send, "RPUSH", &format!("blob:{i}"), &values, 100)
    })
}

/// One request of many words that adds `elements`.
fn send_words(
    send: Send<'_>,
    command: &str,
    key: &str,
    words: &[String],
    elements: u64,
) -> Result<(), String> {
    let mut args: Vec<&[u8]> = vec![command.as_bytes(), key.as_bytes()];
    args.extend(words.iter().map(String::as_bytes));
    send(&args, elements)
}

/// Elements `0..count`, a hundred a request, each as the words that `words` makes of it.
fn send_all<const WORDS: usize>(
    send: Send<'_>,
    command: &str,
    key: &str,
    count: u64,
    words: &mut dyn FnMut(u64) -> [String; WORDS],
) -> Result<(), String> {
    (0..count).step_by(100).try_for_each(|start| {
        let elements = start..count.min(start + 100);
        let len = elements.end - start;
        let words: Vec<String> = elements.flat_map(&mut *words).collect();
        send_words(send, command, key, &words, len)
    })
}

/// Words that could be names.
fn names() -> Result<Vec<String>, String> {
    Ok(words()?.into_iter().filter(|w| (4..10).contains(&w.len())).collect())
}

/// Objects of five fields; an element is a whole object.
fn hash_small_users(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(5);
    let names = names()?;
    let mut name = || names[random.below(names.len() as u64) as usize].clone();
    (0..500_000).try_for_each(|i: u64| {
        let mut words = vec!["id".to_string(), i.to_string()];
        for field in ["firstname", "lastname", "location", "twitter"] {
            words.extend([field.to_string(), name()]);
        }
        send_words(send, "HSET", &format!("user:{i}"), &words, 1)
    })
}

fn hash_one_10k(send: Send<'_>) -> Result<(), String> {
    (0..10_000).try_for_each(|i: u64| send_words(send, "HSET", "test", &[i.to_string(), i.to_string()], 1))
}

fn hash_one_1m(send: Send<'_>) -> Result<(), String> {
    let pair = &mut |i| [format!("field:{i}"), format!("value:{i}")];
    send_all(send, "HSET", "test", 1_000_000, pair)
}

/// The data of `str_user_ts` in hashes of a thousand: how users of Redis save memory by hand.
fn hash_user_ts_bucketed(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(9);
    (0..1_000).try_for_each(|group: u64| {
        let mut pair = |i: u64| {
            let time = 1_499_256_798_295 + random.below(1_000_000_000);
            [format!("user:{}", group * 1_000 + i), time.to_string()]
        };
        let words: Vec<String> = (0..1_000).flat_map(&mut pair).collect();
        send_words(send, "HSET", &format!("group:{group}"), &words, 1_000)
    })
}

fn set_words(send: Send<'_>) -> Result<(), String> {
    let mut words: Vec<Vec<u8>> = words()?.into_iter().map(String::into_bytes).collect();
    words.truncate(235_000);
    push_all(send, "SADD", "words", &words, 100)
}

fn set_ints_1m(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(6);
    send_all(send, "SADD", "ints", 1_000_000, &mut |_| [random.below(1 << 40).to_string()])
}

/// What stands beside an element.
enum Pairing {
    Alone,
    WithItself,
    BehindScore,
}

/// Many keys, each with some texts of 36 bytes, as many programs name things.
fn of_uuids(send: Send<'_>, verb: &str, count: usize, pairing: Pairing) -> Result<(), String> {
    of_texts(send, verb, count, pairing, |random| {
        let mut uuid = hex32(random);
        [8, 13, 18, 23].into_iter().for_each(|at| uuid.insert(at, '-'));
        uuid
    })
}

/// The same with texts of 16 digits.
fn of_ids(send: Send<'_>, verb: &str, count: usize, pairing: Pairing) -> Result<(), String> {
    of_texts(send, verb, count, pairing, |random| format!("{:016x}", random.next_u64()))
}

fn of_texts(
    send: Send<'_>,
    verb: &str,
    count: usize,
    pairing: Pairing,
    text: fn(&mut Random) -> String,
) -> Result<(), String> {
    let mut random = Random::new(19);
    for key in 0..(2_000_000 / count).min(50_000) {
        let mut args = vec![verb.as_bytes().to_vec(), format!("key:{key}").into_bytes()];
        for index in 0..count {
            let text = text(&mut random);
            match pairing {
                Pairing::Alone => {}
                Pairing::WithItself => args.push(text.clone().into_bytes()),
                Pairing::BehindScore => args.push(index.to_string().into_bytes()),
            }
            args.push(text.into_bytes());
        }
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        send(&args, count as u64)?;
    }
    Ok(())
}

/// Hashes that have just left their entry: short names, and a digit each.
fn hashes_of_flags(send: Send<'_>) -> Result<(), String> {
    const COUNT: u64 = 33;
    for key in 0..20_000 {
        let mut args = vec![b"HSET".to_vec(), format!("flags:{key}").into_bytes()];
        for field in 0..COUNT {
            args.extend([format!("flag_{field}").into_bytes(), (key % 10).to_string().into_bytes()]);
        }
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        send(&args, COUNT)?;
    }
    Ok(())
}

/// 100,000 hashes of 12 fields with texts of 16 to 36 bytes.
fn hash_profiles(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(20);
    for key in 0..100_000 {
        let mut args = vec![b"HSET".to_vec(), format!("profile:{key}").into_bytes()];
        for field in 0..12 {
            let len = 16 + random.below(21) as usize;
            args.push(format!("field_{field}").into_bytes());
            args.push(random_bytes(&mut random, len));
        }
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        send(&args, 12)?;
    }
    Ok(())
}

/// 100,000 hashes of a document of 200 to 1,900 bytes and two small fields.
fn hash_sessions(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(22);
    for key in 0..100_000 {
        let len = 200 + random.below(1701) as usize;
        let (name, user, data) = (format!("session:{key}"), key.to_string(), random_bytes(&mut random, len));
        let words: [&[u8]; 8] =
            [b"HSET", name.as_bytes(), b"data", &data, b"user", user.as_bytes(), b"csrf", &data[..32]];
        send(&words, 1)?;
    }
    Ok(())
}

/// 20,000 lists of one element of 2 to 8 KB.
fn lists_of_1_job(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(23);
    for key in 0..20_000 {
        let len = 2_000 + random.below(6_001) as usize;
        send(&[b"RPUSH", format!("queue:{key}").as_bytes(), &random_bytes(&mut random, len)], 1)?;
    }
    Ok(())
}

/// 100,000 strings of 500 to 1,500 bytes.
fn str_1k(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(21);
    for key in 0..100_000 {
        let len = 500 + random.below(1001) as usize;
        send(&[b"SET", format!("page:{key}").as_bytes(), &random_bytes(&mut random, len)], 1)?;
    }
    Ok(())
}

fn set_small(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(7);
    (0..200_000).try_for_each(|i: u64| {
        let tags: Vec<String> = (0..10).map(|_| format!("tag{}", random.below(100_000))).collect();
        send_words(send, "SADD", &format!("s:{i}"), &tags, 10)
    })
}

/// 2,000 sorted sets of 500 members, with scores from 1 on.
fn zsets_of_500(send: Send<'_>, prefix: &str) -> Result<(), String> {
    let words: Vec<String> = (1..=500).flat_map(|n| [n.to_string(), format!("{prefix}{n}")]).collect();
    (0..2_000).try_for_each(|i: u64| send_words(send, "ZADD", &format!("z:{i}"), &words, 500))
}

fn zset_500(send: Send<'_>) -> Result<(), String> {
    zsets_of_500(send, "val-")
}

fn zset_500_a50(send: Send<'_>) -> Result<(), String> {
    zsets_of_500(send, &"A".repeat(50))
}

/// A leader board.
fn zset_1m(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(8);
    let pair = &mut |i| [random.below(10_000_000).to_string(), format!("player:{i}")];
    send_all(send, "ZADD", "lb", 1_000_000, pair)
}

/// A log of requests, ten entries a millisecond.
fn stream_5_fields(send: Send<'_>) -> Result<(), String> {
    let mut random = Random::new(13);
    (0..500_000).try_for_each(|i: u64| {
        let id = format!("{}-{}", 1_700_000_000_000 + i / 10, i % 10);
        let host = format!("web-{}", random.below(20));
        let path = format!("/item/{}", random.below(1_000));
        let status = 200 + random.below(5) * 100;
        let bytes = random.below(100_000);
        let fields =
            ["host", &host, "path", &path, "status", &status.to_string(), "bytes", &bytes.to_string()];
        let number = ["request".to_string(), i.to_string()];
        let words: Vec<String> = std::iter::once(id).chain(fields.map(String::from)).chain(number).collect();
        send_words(send, "XADD", "log", &words, 1)
    })
}
