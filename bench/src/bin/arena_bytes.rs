//! Bytes of RSS an entry when a million entries of one size are spread by hash over leaves that grow to their
//! content and split when full, under three allocators: the measurement behind `pack::arena`.
//!
//! `cargo run --release --manifest-path bench/Cargo.toml --bin arena_bytes [entry_bytes ...]`

use base::random::Random;
use std::alloc::{GlobalAlloc, Layout, System};
use std::process::Command;

const ENTRIES: usize = 1_000_000;
const LEAF_HEADER: usize = 16;

struct Leaf {
    block: *mut u8,
    capacity: usize,
    used: usize,
    entries: usize,
}

/// The limits of one run.
#[derive(Clone, Copy)]
struct Shape {
    entry: usize,
    leaf_max: usize,
    entries_max: usize,
}

fn rss_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    pages.split(' ').nth(1).and_then(|p| p.parse::<usize>().ok()).expect("a number") * 4096
}

/// Steps of a thirty-second of the size: what a leaf asks for when it grows.
fn step(size: usize) -> usize {
    let grain = ((1usize << (size - 1).ilog2()) / 32).max(16);
    pack::arena::usable_bytes(size.next_multiple_of(grain) - 8)
}

fn resize(heap: &dyn GlobalAlloc, leaf: &mut Leaf, capacity: usize) {
    // SAFETY: the leaf's block was allocated with its capacity; sizes are not zero.
    unsafe {
        let layout = Layout::from_size_align_unchecked(leaf.capacity, 8);
        leaf.block = heap.realloc(leaf.block, layout, capacity);
        leaf.block.write_bytes(1, capacity);
    }
    leaf.capacity = capacity;
}

fn fresh(heap: &dyn GlobalAlloc, shape: Shape, entries: usize) -> Leaf {
    let used = LEAF_HEADER + entries * shape.entry;
    let capacity = step(used.max(64));
    // SAFETY: the size is not zero, and the block is that long.
    let block = unsafe {
        let block = heap.alloc(Layout::from_size_align_unchecked(capacity, 8));
        block.write_bytes(1, capacity);
        block
    };
    Leaf { block, capacity, used, entries }
}

/// Loads the entries; (leaves, used bytes, capacity bytes).
fn load(heap: &dyn GlobalAlloc, shape: Shape) -> (usize, usize, usize) {
    let mut random = Random::new(1);
    let mut tries: Vec<(u32, u32)> = (0..256).map(|leaf| (u32::MAX, leaf)).collect();
    let mut leaves: Vec<Leaf> = (0..256).map(|_| fresh(heap, shape, 0)).collect();
    let mut loaded = 0;
    while loaded < ENTRIES {
        let hash = random.next_u64();
        let (mut node, mut bit) = ((hash >> 56) as usize, 55);
        while tries[node].0 != u32::MAX {
            node = if hash >> bit & 1 == 0 { tries[node].0 } else { tries[node].1 } as usize;
            bit -= 1;
        }
        let leaf = &mut leaves[tries[node].1 as usize];
        if leaf.used + shape.entry <= shape.leaf_max && leaf.entries < shape.entries_max {
            leaf.used += shape.entry;
            leaf.entries += 1;
            loaded += 1;
            if leaf.used > leaf.capacity {
                let capacity = step(leaf.used);
                resize(heap, leaf, capacity);
            }
            continue;
        }
        let moved = (0..leaf.entries).filter(|_| random.below(2) == 0).count();
        leaf.entries -= moved;
        leaf.used -= moved * shape.entry;
        let capacity = step(leaf.used);
        resize(heap, leaf, capacity);
        let (left, right) = (tries[node].1, leaves.len() as u32);
        leaves.push(fresh(heap, shape, moved));
        tries[node] = (tries.len() as u32, tries.len() as u32 + 1);
        tries.extend([(u32::MAX, left), (u32::MAX, right)]);
    }
    (leaves.len(), leaves.iter().map(|l| l.used).sum(), leaves.iter().map(|l| l.capacity).sum())
}

#[allow(clippy::disallowed_macros)]
fn one(name: &str, shape: Shape) {
    let heap: &dyn GlobalAlloc = match name {
        "mimalloc" => &mimalloc::MiMalloc,
        "jemalloc" => &tikv_jemallocator::Jemalloc,
        "system" => &System,
        _ => &pack::arena::Arena(System),
    };
    // The book-keeping of this program stands outside the figure: reserved and touched before.
    let mut room = vec![1u8; ENTRIES * 4];
    room.truncate(1);
    let before = rss_bytes();
    let (leaves, used, capacity) = load(heap, shape);
    if name == "arena" {
        while pack::arena::purge(1_000) > 0 {}
    }
    let book = leaves * (size_of::<Leaf>() + 16);
    let rss = rss_bytes() - before - book.min(rss_bytes() - before);
    let per = |bytes: usize| bytes as f64 / ENTRIES as f64;
    println!(
        "{name:9} entry {:4}: {leaves:6} leaves, content {:7.2}, asked for {:7.2}, RSS {:7.2} bytes an entry",
        shape.entry,
        per(used),
        per(capacity),
        per(rss)
    );
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [name, entry] = args.as_slice()
        && let Ok(entry) = entry.parse::<usize>()
        && name.parse::<usize>().is_err()
    {
        let leaf_max = if entry < 40 { 1_024 } else { 8_192 };
        one(name, Shape { entry, leaf_max, entries_max: 48 });
        return;
    }
    let entries =
        if args.is_empty() { vec!["21".into(), "58".into(), "84".into(), "258".into()] } else { args };
    let this = std::env::current_exe().expect("a path");
    for entry in entries {
        for name in ["mimalloc", "jemalloc", "system", "arena"] {
            let status = Command::new(&this).args([name, &entry]).status();
            assert!(status.is_ok_and(|s| s.success()), "a run failed");
        }
    }
}
