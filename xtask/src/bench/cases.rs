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
    pub(crate) settings: &'static [Setting<'static>],
    pub(crate) load: fn(Send<'_>) -> Result<(), String>,
}

const fn case(name: &'static str, load: fn(Send<'_>) -> Result<(), String>) -> Case {
    Case { name, settings: &[], load }
}

const COMPRESSED: &[Setting<'static>] = &[("list-compress-depth", "1"), ("list-compress-codec", "zstd")];

pub(crate) const CASES: &[Case] = &[
    case("str_user_ts", str_user_ts),
    case("str_16_64", str_16_64),
    case("str_ttl", str_ttl),
    case("str_sessions_json", str_sessions_json),
    case("list_ints_seq", list_ints_seq),
    case("list_ints_rand", list_ints_rand),
    case("list_ids", list_ids),
    case("list_words", list_words),
    Case { name: "list_words_zstd", settings: COMPRESSED, load: list_words },
    case("list_blobs_rand", list_blobs_rand),
    Case { name: "list_blobs_json_zstd", settings: COMPRESSED, load: list_blobs_json },
];

/// Debian's `miscfiles` has it.
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
    let names: Vec<String> = words()?.into_iter().filter(|w| (4..10).contains(&w.len())).collect();
    let name = |random: &mut Random| names[random.below(names.len() as u64) as usize].clone();
    for i in 0..300_000u64 {
        let key = format!("session:{}", hex32(&mut random));
        let value = format!(
            "{{\"user_id\": {i}, \"name\": \"{}\", \"email\": \"{}@example.com\", \"roles\": [\"user\"], \"csrf\": \"{}\", \
             \"last_seen\": {}, \"theme\": \"dark\", \"cart\": [{{\"sku\": {}, \"qty\": 1}}]}}",
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
                    "{{\"id\": {id}, \"user\": \"user:{user}\", \"ts\": {time}, \"tags\": [\"{tags}\"], \"body\": \"{body}\"}}"
                );
                text.truncate(2_500);
                text.into_bytes()
            })
            .collect();
        push_all(send, "RPUSH", &format!("blob:{i}"), &values, 100)
    })
}
