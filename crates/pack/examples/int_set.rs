//! Sets of integers: bytes a member and nanoseconds an operation, for members of several kinds and
//! sets of several sizes.
//!
//! `cargo run --release -p pack --example int_set`. One thread; noisy where the machine is shared.
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "a measurement reads the clock and prints"
)]

use base::random::Random;
use pack::arena::Arena;
use pack::int_set::IntSet;
use std::alloc::System;
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: Arena<System> = Arena(System);

type Draw = fn(&mut Random, u64) -> i64;

const KINDS: [(&str, Draw); 4] = [
    ("random below 2^40", |random, _| random.below(1 << 40) as i64),
    ("random below 2^31", |random, _| random.below(1 << 31) as i64),
    ("consecutive", |_, step| step as i64),
    ("rising ids", |random, step| (1 << 60) + (step << 22) as i64 + random.below(1 << 12) as i64),
];

/// What this thread has spent on a processor.
fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel keeps schedstat");
    stat.split_whitespace().next().expect("a number").parse().expect("a number")
}

fn nanos(count: u64, run: impl FnOnce()) -> f64 {
    let start = cpu_ns();
    run();
    (cpu_ns() - start) as f64 / count as f64
}

fn main() {
    println!(
        "{:20} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "members", "count", "bytes", "insert", "contains", "remove"
    );
    for (name, draw) in KINDS {
        for count in [500, 8192, 1_000_000] {
            measure(name, draw, count);
        }
    }
}

fn measure(name: &str, draw: Draw, count: u64) {
    let mut random = Random::new(1);
    let values: Vec<i64> = (0..count).map(|step| draw(&mut random, step)).collect();
    let sets = (1_000_000 / count).max(1);
    let mut all: Vec<IntSet> = (0..sets).map(|_| IntSet::new()).collect();
    let insert = nanos(count * sets, || {
        for set in &mut all {
            values.iter().for_each(|value| {
                black_box(set.insert(*value));
            });
        }
    });
    let bytes: u64 = all.iter().map(|set| set.stats().allocated_bytes()).sum();
    let mut shuffled = values.clone();
    for at in (1..shuffled.len()).rev() {
        shuffled.swap(at, random.below(at as u64 + 1) as usize);
    }
    let contains = nanos(count * sets, || {
        for set in &all {
            shuffled.iter().for_each(|value| {
                black_box(set.contains(*value));
            });
        }
    });
    let remove = nanos(count * sets, || {
        for set in &mut all {
            shuffled.iter().for_each(|value| {
                black_box(set.remove(*value));
            });
        }
    });
    let each = bytes as f64 / (count * sets) as f64;
    println!("{name:20} {count:>9} {each:>9.2} {insert:>9.1} {contains:>9.1} {remove:>9.1}");
}
