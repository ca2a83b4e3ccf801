//! Bytes an element of several kinds of lists, and where they go: payload, leaves, unused room, inner nodes.
//!
//! `cargo run --release -p pack --example seq_bytes [case ...]`, words from `/usr/share/dict/web2` (or
//! `WORDS`). The same data as the server's memory benchmark, but without keyspace and server around it. What
//! is resident is not shown: the memory of one case is used again by the next.
#![allow(clippy::disallowed_macros, reason = "a measurement prints")]

use base::random::Random;
use pack::arena::Arena;
use pack::seq::{Codec, End, Fill, Limits, Seq};
use std::alloc::System;
use std::sync::LazyLock;

#[global_allocator]
static ALLOCATOR: Arena<System> = Arena(System);

const OPEN: Limits = Limits { fill: Fill::Bytes(8192), depth: 0, codec: Codec::Lzf };

/// Lists, and the bytes of text that went in.
#[derive(Default)]
struct Data {
    lists: Vec<Seq>,
    text_bytes: u64,
}

impl Data {
    fn list(&mut self) {
        self.lists.push(Seq::new());
    }

    fn push(&mut self, end: End, value: &[u8], limits: &Limits) {
        self.text_bytes += value.len() as u64;
        self.lists.last_mut().expect("a list is begun first").push(end, value, limits);
    }
}

/// Read once and kept, so that it is in none of the differences.
static TEXT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let path = std::env::var("WORDS").unwrap_or("/usr/share/dict/web2".into());
    std::fs::read(path).expect("a word list")
});
static WORDS: LazyLock<Vec<&'static [u8]>> =
    LazyLock::new(|| TEXT.split(|b| *b == b'\n').filter(|word| !word.is_empty()).collect());

fn ints_seq(data: &mut Data, _limits: &Limits) {
    for _ in 0..10 {
        data.list();
        (0..1_000_000).for_each(|n| data.push(End::Tail, n.to_string().as_bytes(), &OPEN));
    }
}

fn ints_rand(data: &mut Data, _limits: &Limits) {
    let mut random = Random::new(1);
    for _ in 0..10 {
        data.list();
        (0..1_000_000)
            .for_each(|_| data.push(End::Tail, random.below(1 << 31).to_string().as_bytes(), &OPEN));
    }
}

fn ids(data: &mut Data, _limits: &Limits) {
    let mut random = Random::new(2);
    for _ in 0..10_000 {
        data.list();
        let mut id = 1u64 << 60;
        for _ in 0..800 {
            id += random.below(1 << 30);
            data.push(End::Head, id.to_string().as_bytes(), &OPEN);
        }
    }
}

fn list_words(data: &mut Data, limits: &Limits) {
    data.list();
    for _ in 0..20 {
        WORDS.iter().for_each(|word| data.push(End::Tail, word, limits));
    }
}

fn blobs_rand(data: &mut Data, limits: &Limits) {
    let mut random = Random::new(3);
    for _ in 0..40 {
        data.list();
        for _ in 0..800 {
            let blob: Vec<u8> = (0..2500).map(|_| random.next_u64() as u8).collect();
            data.push(End::Tail, &blob, limits);
        }
    }
}

fn blobs_json(data: &mut Data, limits: &Limits) {
    let mut random = Random::new(4);
    for list in 0..40 {
        data.list();
        for item in 0..800 {
            let json = json(list * 800 + item, &mut random);
            data.push(End::Tail, json.as_bytes(), limits);
        }
    }
}

fn json(id: u64, random: &mut Random) -> String {
    let mut some = |count: usize, between: &str| {
        let chosen = (0..count).map(|_| WORDS[random.below(WORDS.len() as u64) as usize]);
        chosen.map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>().join(between)
    };
    let (tags, body) = (some(8, "\", \""), some(220, " "));
    let user = random.below(1_000_000);
    let ts = 1_700_000_000_000 + id;
    let mut json = format!(
        "{{\"id\": {id}, \"user\": \"user:{user}\", \"ts\": {ts}, \"tags\": [\"{tags}\"], \"body\": \"{body}\"}}"
    );
    json.truncate(2500);
    json
}

fn measure(name: &str, fill: fn(&mut Data, &Limits), limits: &Limits) {
    let mut data = Data::default();
    fill(&mut data, limits);
    let count: u64 = data.lists.iter().map(Seq::len).sum();
    let per = |bytes: u64| bytes as f64 / count as f64;
    let sum = |part: fn(&Seq) -> u64| per(data.lists.iter().map(part).sum());
    println!(
        "{name:22} {:8.2} allocated | text {:8.2} leaves used {:8.2} slack {:6.2} \
         inner {:5.3} leaves {} compressed {}",
        sum(Seq::allocated_bytes),
        per(data.text_bytes),
        sum(|s| leaves(s, |kind| kind.used_bytes)),
        sum(|s| leaves(s, |kind| kind.allocated_bytes - kind.used_bytes)),
        sum(|s| s.stats().inner.allocated_bytes),
        data.lists.iter().map(|s| s.nodes().leaves).sum::<u64>(),
        data.lists.iter().map(|s| s.nodes().compressed).sum::<u64>(),
    );
}

fn leaves(seq: &Seq, part: fn(&pack::stats::Kind) -> u64) -> u64 {
    let stats = seq.stats();
    part(&stats.strings) + part(&stats.ints) + part(&stats.compressed)
}

type FillLists = fn(&mut Data, &Limits);

fn main() {
    assert!(!WORDS.is_empty());
    let with = |codec| Limits { depth: 1, codec, ..OPEN };
    let cases: [(&str, FillLists, Limits); 12] = [
        ("list_ints_seq", ints_seq, OPEN),
        ("list_ints_rand", ints_rand, OPEN),
        ("list_ids", ids, OPEN),
        ("list_words", list_words, OPEN),
        ("list_words lzf", list_words, with(Codec::Lzf)),
        ("list_words lz4", list_words, with(Codec::Lz4)),
        ("list_words zstd", list_words, with(Codec::Zstd)),
        ("list_blobs_rand", blobs_rand, OPEN),
        ("list_blobs_json", blobs_json, OPEN),
        ("list_blobs_json lzf", blobs_json, with(Codec::Lzf)),
        ("list_blobs_json lz4", blobs_json, with(Codec::Lz4)),
        ("list_blobs_json zstd", blobs_json, with(Codec::Zstd)),
    ];
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    for (name, fill, limits) in cases {
        if chosen.is_empty() || chosen.iter().any(|c| name.starts_with(c.as_str())) {
            measure(name, fill, &limits);
        }
    }
}
