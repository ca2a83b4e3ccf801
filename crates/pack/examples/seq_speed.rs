//! Nanoseconds an operation on lists: pushes and pops at the ends, reads by index, edits of short lists
//! in their packed form.
//!
//! `cargo run --release -p pack --example seq_speed`. One thread; noisy where the machine is shared, so each
//! figure is the best of several rounds.
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "a measurement reads the clock and prints"
)]

use base::random::Random;
use pack::arena::Arena;
use pack::image::Draft;
use pack::seq::{Codec, End, Fill, Limits, Seq};
use std::alloc::System;
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: Arena<System> = Arena(System);

const LIMITS: Limits = Limits { fill: Fill::Bytes(8192), depth: 0, codec: Codec::Lz4 };

/// What this thread has spent on a processor.
fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel keeps schedstat");
    stat.split_whitespace().next().expect("a number").parse().expect("a number")
}

/// The best of five rounds of `count` operations each.
fn report(name: &str, count: u64, mut round: impl FnMut(u64)) {
    let best = (0..5)
        .map(|_| {
            let start = cpu_ns();
            round(count);
            (cpu_ns() - start) as f64 / count as f64
        })
        .fold(f64::MAX, f64::min);
    println!("{name:42} {best:9.1} ns");
}

fn ends() {
    let value = [b'v'; 64];
    let mut seq = Seq::new();
    (0..3_000_000).for_each(|_| seq.push(End::Head, &value, &LIMITS));
    report("LPUSH 64 bytes, list of millions", 1_000_000, |count| {
        (0..count).for_each(|_| seq.push(End::Head, black_box(&value), &LIMITS));
    });
    report("LPUSH + RPOP 64 bytes", 1_000_000, |count| {
        for _ in 0..count {
            seq.push(End::Head, black_box(&value), &LIMITS);
            seq.pop(End::Tail, &LIMITS, |item| black_box(item.len()));
        }
    });
    report("RPOP 64 bytes", 1_000_000, |count| {
        for _ in 0..count {
            seq.pop(End::Tail, &LIMITS, |item| black_box(item.len()));
        }
    });
    let mut short = Seq::new();
    (0..100).for_each(|_| short.push(End::Tail, &value, &LIMITS));
    report("RPUSH + LPOP 64 bytes, list of 100", 1_000_000, |count| {
        for _ in 0..count {
            short.push(End::Tail, black_box(&value), &LIMITS);
            short.pop(End::Head, &LIMITS, |item| black_box(item.len()));
        }
    });
    let mut ints = Seq::new();
    let mut random = Random::new(1);
    let texts: Vec<String> = (0..1 << 16).map(|_| random.below(1 << 31).to_string()).collect();
    report("RPUSH random integers", 1_000_000, |count| {
        (0..count).for_each(|n| ints.push(End::Tail, texts[n as usize & 0xFFFF].as_bytes(), &LIMITS));
    });
}

fn reads() {
    let mut strings = Seq::new();
    let mut ints = Seq::new();
    for n in 0..10_000_000u64 {
        strings.push(End::Tail, b"0123456789", &LIMITS);
        ints.push(End::Tail, (n * 7 % 1_000_003).to_string().as_bytes(), &LIMITS);
    }
    for (name, seq) in [("strings", &strings), ("integers", &ints)] {
        for index in [0, 5_000_000, 5_000_300, 9_999_999] {
            report(&format!("get {index} of 10M {name}"), 1_000_000, |count| {
                for _ in 0..count {
                    black_box(seq.get(black_box(index), |item| item.len()));
                }
            });
        }
        let mut random = Random::new(2);
        report(&format!("get anywhere of 10M {name}"), 1_000_000, |count| {
            for _ in 0..count {
                black_box(seq.get(random.below(10_000_000), |item| item.len()));
            }
        });
    }
}

fn middle() {
    let mut seq = Seq::new();
    (0..1_000_000).for_each(|_| seq.push(End::Tail, &[b'v'; 64], &LIMITS));
    let mut random = Random::new(3);
    report("insert anywhere, 64 bytes in 1M", 100_000, |count| {
        (0..count).for_each(|_| seq.insert(random.below(seq.len()), &[b'w'; 64], &LIMITS));
    });
    report("set anywhere, 64 bytes in 1M", 100_000, |count| {
        (0..count).for_each(|_| seq.set(random.below(seq.len()), &[b'x'; 64], &LIMITS));
    });
}

fn images() {
    let mut draft = Draft::new();
    ["one", "two", "three", "four", "five"].iter().for_each(|v| draft.push(End::Tail, v.as_bytes()));
    let image = draft.close().to_vec();
    report("open, LPUSH, close an image of 5 strings", 1_000_000, |count| {
        for _ in 0..count {
            draft.open(black_box(&image));
            draft.push(End::Head, b"zero");
            black_box(draft.close());
        }
    });
    draft.open(&[]);
    (0..5).for_each(|n| draft.push(End::Tail, (n * n).to_string().as_bytes()));
    let image = draft.close().to_vec();
    report("open, LPUSH, close an image of 5 integers", 1_000_000, |count| {
        for _ in 0..count {
            draft.open(black_box(&image));
            draft.push(End::Head, b"7");
            black_box(draft.close());
        }
    });
    report("get 3 of an image of 5 integers", 1_000_000, |count| {
        for _ in 0..count {
            black_box(pack::image::get(black_box(&image), 3));
        }
    });
}

fn main() {
    ends();
    images();
    middle();
    reads();
}
