//! Lists against their naive twin: seeded streams of edits, with limits that change and clones that are held.

use super::*;
use crate::model::{List, Taste, seeds};
use base::random::Random;

const DEFAULT: Limits = Limits { fill: Fill::Bytes(8192), depth: 0, codec: Codec::Lzf };

fn text(item: Item<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    item.append_to(&mut text);
    text
}

fn any_limits(random: &mut Random) -> Limits {
    let fills =
        [Fill::Entries(1), Fill::Entries(3), Fill::Entries(128), Fill::Bytes(4096), Fill::Bytes(8192)];
    let codecs = [Codec::Lzf, Codec::Lz4, Codec::Zstd];
    Limits {
        fill: fills[random.below(5) as usize],
        depth: [0, 1, 1, 2, 3, 7][random.below(6) as usize],
        codec: codecs[random.below(3) as usize],
    }
}

fn texts(seq: &Seq, from: u64, towards: End, count: usize) -> Vec<Vec<u8>> {
    let (mut seen, mut expected) = (Vec::new(), from);
    seq.visit(from, towards, &mut |index, item| {
        assert_eq!(index, expected);
        expected = if towards == End::Tail { expected + 1 } else { expected.wrapping_sub(1) };
        seen.push(text(item));
        if seen.len() == count { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    seen
}

fn check(seq: &Seq, model: &List) {
    assert_eq!(seq.len(), model.len() as u64);
    let all = texts(seq, 0, End::Tail, usize::MAX);
    assert!(all.iter().eq(model), "the lists differ");
    assert_eq!(seq.get(model.len() as u64, text), None);
    let (stats, nodes) = (seq.stats(), seq.nodes());
    let kinds = [stats.strings, stats.ints, stats.compressed];
    assert_eq!(kinds.iter().map(|kind| kind.entries).sum::<u64>(), seq.len());
    assert_eq!(kinds.iter().map(|kind| kind.nodes).sum::<u64>(), nodes.leaves);
    assert_eq!(stats.compressed.nodes, nodes.compressed);
    let allocated = kinds.iter().map(|kind| kind.allocated_bytes).sum::<u64>() + stats.inner.allocated_bytes;
    assert_eq!(allocated, seq.allocated_bytes());
}

/// A walk over equal elements sees what a walk over all sees of them.
fn check_equal(seq: &Seq, model: &List, random: &mut Random) {
    let len = model.len() as u64;
    let (at, span) = (random.below(len), [1, 3, 50, u64::MAX][random.below(4) as usize]);
    let needle = match random.below(3) {
        0 => b"no element".to_vec(),
        _ => model[random.below(len) as usize].clone(),
    };
    let reach = span.min(len) as usize;
    let up = (at as usize..model.len()).take(reach).filter(|index| model[*index] == needle);
    let down = (0..=at as usize).rev().take(reach).filter(|index| model[*index] == needle);
    let expected: [Vec<usize>; 2] = [up.collect(), down.collect()];
    for (towards, expected) in [End::Tail, End::Head].into_iter().zip(expected) {
        for wanted in [1, usize::MAX] {
            let mut seen = Vec::new();
            seq.visit_equal((at, span), towards, Item::classify(&needle), &mut |index| {
                seen.push(index as usize);
                if seen.len() == wanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert!(
                seen.iter().eq(expected.iter().take(wanted)),
                "{towards:?} of {span} from {at}: {seen:?}"
            );
        }
    }
}

fn check_some(seq: &Seq, model: &List, random: &mut Random) {
    assert_eq!(seq.len(), model.len() as u64);
    if model.is_empty() {
        return;
    }
    check_equal(seq, model, random);
    let at = random.below(model.len() as u64);
    assert_eq!(seq.get(at, text).as_ref(), model.get(at as usize));
    let up = texts(seq, at, End::Tail, 20);
    assert!(up.iter().eq(model.iter().skip(at as usize).take(20)));
    let down = texts(seq, at, End::Head, 20);
    assert!(down.iter().eq(model.iter().take(at as usize + 1).rev().take(20)));
}

struct Run {
    random: Random,
    seq: Seq,
    model: List,
    limits: Limits,
    taste: Taste,
    step: u64,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = Random::new(seed);
        let (limits, taste) = (any_limits(&mut random), Taste::any(&mut random));
        Run { random, seq: Seq::new(), model: List::new(), limits, taste, step: seed * 300 }
    }

    /// Begins with some elements that come at once.
    fn load(&mut self) {
        let count = [0, 1, 7, 50, 200][self.random.below(5) as usize];
        self.model = (0..count).map(|_| self.value()).collect();
        let items: Vec<Item<'_>> = self.model.iter().map(|value| Item::classify(value)).collect();
        self.seq = Seq::of_items(&items, &self.limits);
        check(&self.seq, &self.model);
    }

    /// Adds some elements behind the others that come at once.
    fn append(&mut self) {
        let count = [0, 1, 40, 300][self.random.below(4) as usize];
        let values: Vec<Vec<u8>> = (0..count).map(|_| self.value()).collect();
        let items: Vec<Item<'_>> = values.iter().map(|value| Item::classify(value)).collect();
        self.seq.append_items(&items, &self.limits);
        self.model.extend(values);
    }

    fn push(&mut self, end: End) {
        let value = self.value();
        self.seq.push(end, &value, &self.limits);
        match end {
            End::Head => self.model.push_front(value),
            End::Tail => self.model.push_back(value),
        }
    }

    fn pop(&mut self, end: End) {
        let expected = if end == End::Head { self.model.pop_front() } else { self.model.pop_back() };
        assert_eq!(self.seq.pop(end, &self.limits, text), expected);
    }

    fn value(&mut self) -> Vec<u8> {
        self.step += 1;
        self.taste.value(&mut self.random, self.step)
    }

    fn end(&mut self) -> End {
        if self.random.below(2) == 0 { End::Head } else { End::Tail }
    }

    fn edit(&mut self, growing: bool) {
        let at = self.random.below(self.model.len() as u64 + 1);
        let end = self.end();
        match self.random.below(24) {
            0..=11 if growing => (0..1 + self.random.below(60)).for_each(|_| self.push(end)),
            0..=11 => (0..1 + self.random.below(60)).for_each(|_| self.pop(end)),
            12..=13 => self.push(end),
            14 => self.pop(end),
            15..=18 => {
                let value = self.value();
                self.seq.insert(at, &value, &self.limits);
                self.model.insert(at as usize, value);
            }
            19..=21 if at < self.model.len() as u64 => {
                let value = self.value();
                self.seq.set(at, &value, &self.limits);
                self.model[at as usize] = value;
            }
            22 => self.remove(at, 3),
            23 if !growing => self.remove(at, 400),
            23 => self.append(),
            _ => {}
        }
    }

    fn remove(&mut self, at: u64, count_max: u64) {
        let count = self.random.below(count_max.min(self.model.len() as u64 - at) + 1);
        self.seq.remove(at, count, &self.limits);
        self.model.drain(at as usize..(at + count) as usize);
    }
}

fn run(seed: u64) {
    let mut run = Run::new(seed);
    run.load();
    let mut held: Vec<(Seq, List)> = Vec::new();
    for step in 0..400u64 {
        if run.random.below(100) == 0 {
            run.limits = any_limits(&mut run.random);
            run.taste = Taste::any(&mut run.random);
        }
        run.edit(step % 200 < 130);
        check_some(&run.seq, &run.model, &mut run.random);
        if run.random.below(60) == 0 {
            check(&run.seq, &run.model);
            held.push((run.seq.clone(), run.model.clone()));
        }
        if held.len() > 2 {
            let (seq, model) = held.swap_remove(run.random.below(3) as usize);
            check(&seq, &model);
        }
    }
    check(&run.seq, &run.model);
    held.iter().for_each(|(seq, model)| check(seq, model));
}

#[test]
fn a_list_holds_what_a_deque_holds_under_any_limits() {
    for seed in seeds(150) {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

fn filled(limits: &Limits, count: u64, value: impl Fn(u64) -> Vec<u8>) -> Seq {
    let mut seq = Seq::new();
    (0..count).for_each(|n| seq.push(End::Tail, &value(n), limits));
    seq
}

#[test]
fn a_leaf_takes_as_many_entries_or_bytes_as_the_limit_says() {
    let by_entries = Limits { fill: Fill::Entries(7), ..DEFAULT };
    assert_eq!(filled(&by_entries, 70, |n| format!("v{n}").into_bytes()).nodes().leaves, 10);
    let by_bytes = Limits { fill: Fill::Bytes(4096), ..DEFAULT };
    let seq = filled(&by_bytes, 63 * 20, |_| vec![b'x'; 63]);
    assert_eq!(seq.nodes().leaves, 20, "63 entries of 64 bytes fill a leaf of 4 KB");
    let entries_of_4k = Limits { fill: Fill::Entries(100), ..DEFAULT };
    assert_eq!(filled(&entries_of_4k, 8, |_| vec![b'x'; 4000]).nodes().leaves, 4, "8 KB hold two");
}

/// An element without bytes takes room for its length. Where it took none, one leaf had as many as anybody
/// cared to push, until its count wrapped and all were lost.
#[test]
fn a_leaf_of_empty_elements_is_bounded_as_any_other() {
    let limits = Limits { fill: Fill::Bytes(4096), ..DEFAULT };
    let mut seq = filled(&limits, 40_000, |_| Vec::new());
    assert!(seq.nodes().leaves >= 10, "{:?}", seq.nodes());
    seq.insert(20_000, b"x", &limits);
    seq.remove(20_000, 1, &limits);
    assert!(seq.nodes().leaves >= 10 && seq.len() == 40_000);
}

#[test]
fn an_element_beyond_the_limit_has_a_leaf_of_its_own() {
    let seq = filled(&DEFAULT, 30, |n| if n % 10 == 5 { vec![b'h'; 70_000] } else { b"small".to_vec() });
    assert_eq!(seq.nodes().leaves, 7);
}

#[test]
fn depth_keeps_so_many_leaves_open_at_each_end() {
    for depth in 1..4 {
        let limits = Limits { fill: Fill::Entries(10), depth, codec: Codec::Lz4 };
        let mut seq = filled(&limits, 200, |n| vec![b'a' + (n % 3) as u8; 50]);
        let open = 2 * u64::from(depth);
        assert_eq!(seq.nodes().compressed, 20 - open);
        (0..50).for_each(|_| drop(seq.pop(End::Head, &limits, text)));
        assert_eq!(seq.nodes().compressed, 15 - open);
        seq.insert(75, b"in the middle of what is closed", &limits);
        assert_eq!(seq.nodes().compressed, 16 - open);
    }
}

#[test]
fn removing_most_of_a_list_joins_what_is_left() {
    let mut seq = filled(&DEFAULT, 20_000, |n| format!("value {n}").into_bytes());
    let leaves = seq.nodes().leaves;
    seq.remove(10, 19_980, &DEFAULT);
    assert!(leaves > 20 && seq.nodes().leaves == 1 && seq.allocated_bytes() < 1024);
}

/// A capped list loses its elements one by one: if its leaves were joined, or only tried, each request would
/// copy them.
#[test]
fn a_leaf_that_shrinks_at_an_end_is_not_joined() {
    let value = |n| format!("value {n}").into_bytes();
    let (mut seq, mut first) = (filled(&DEFAULT, 1, value), 1);
    while seq.nodes().leaves == 1 {
        seq.push(End::Tail, &value(first), &DEFAULT);
        first += 1;
    }
    for n in first..first + 100 {
        seq.push(End::Tail, &value(n), &DEFAULT);
    }
    let mut joined = seq.clone();
    while seq.nodes().leaves > 1 {
        seq.remove(0, 1, &DEFAULT);
        seq.remove(0, 0, &DEFAULT);
    }
    assert_eq!(seq.len(), 101, "the second leaf has what it had");
    joined.remove(50, joined.len() - 250, &DEFAULT);
    assert_eq!((joined.nodes().leaves, joined.len()), (1, 250), "joined where the middle is cut out");
}

/// How many bytes a list takes on the average while `step` goes over it, for each that it took when built.
fn rolling(len: u64, bytes: usize, step: impl Fn(&mut Seq, u64)) -> f64 {
    let mut seq = filled(&DEFAULT, len, |n| format!("{n:0bytes$}").into_bytes());
    let (built, steps) = (seq.allocated_bytes(), 40 * len);
    let mut sum = 0;
    for n in 0..steps {
        step(&mut seq, n);
        sum += seq.allocated_bytes();
    }
    sum as f64 / (steps * built) as f64
}

#[test]
fn a_list_that_is_a_queue_or_is_cut_to_a_length_takes_little_more_than_one_that_was_just_built() {
    for (len, bytes) in [(100, 100), (300, 36), (500, 36), (50, 400), (1000, 12), (2000, 36)] {
        let value = |n| format!("{n:0bytes$}").into_bytes();
        let queue = rolling(len, bytes, |seq, n| {
            seq.push(End::Tail, &value(n), &DEFAULT);
            let _ = seq.pop(End::Head, &DEFAULT, |_| ());
        });
        let timeline = rolling(len, bytes, |seq, n| {
            seq.push(End::Head, &value(n), &DEFAULT);
            if n % 10 == 0 {
                seq.remove(len, seq.len() - len, &DEFAULT);
            }
        });
        assert!(queue < 1.2 && timeline < 1.2, "{len} of {bytes}: {queue:.2} {timeline:.2}");
    }
}

#[test]
fn a_queue_of_few_long_elements_takes_no_more_than_when_it_was_built() {
    for (len, bytes) in [(2, 2000), (3, 700), (5, 450), (20, 200)] {
        let queue = rolling(len, bytes, |seq, n| {
            seq.push(End::Head, format!("{n:0bytes$}").as_bytes(), &DEFAULT);
            let _ = seq.pop(End::Tail, &DEFAULT, |_| ());
        });
        assert!(queue < 1.1, "{len} of {bytes}: {queue:.2}");
    }
}

#[test]
fn what_few_elements_are_left_in_a_leaf_does_not_keep_it_large() {
    for (len, bytes, left) in
        [(7, 1100, 1), (7, 1100, 3), (80, 100, 3), (200, 36, 1), (300, 36, 7), (3, 2600, 1)]
    {
        let mut seq = filled(&DEFAULT, len, |n| format!("{n:0bytes$}").into_bytes());
        for _ in left..len {
            let _ = seq.pop(End::Head, &DEFAULT, |_| ());
        }
        let built = filled(&DEFAULT, left, |n| format!("{n:0bytes$}").into_bytes());
        let (kept, fresh) = (seq.allocated_bytes(), built.allocated_bytes());
        assert!(kept <= (fresh * 3 / 2).max(512), "{left} of {len} of {bytes} bytes: {kept}, fresh {fresh}");
    }
    let mut seq = filled(&DEFAULT, 50, |n| format!("e{n}").into_bytes());
    seq.push(End::Tail, &[b'x'; 7000], &DEFAULT);
    let _ = seq.pop(End::Tail, &DEFAULT, |_| ());
    assert!(seq.allocated_bytes() < 600, "{}", seq.allocated_bytes());
}

#[test]
fn a_clone_shares_every_leaf_until_one_is_written() {
    let mut seq = filled(&DEFAULT, 10_000, |n| format!("value {n}").into_bytes());
    let snapshot = seq.clone();
    seq.set(5_000, b"changed", &DEFAULT);
    seq.push(End::Head, b"new", &DEFAULT);
    assert_eq!(snapshot.len(), 10_000);
    assert_eq!(snapshot.get(5_000, text), Some(b"value 5000".to_vec()));
    assert_eq!(seq.get(5_001, text), Some(b"changed".to_vec()));
}

/// Asserts that a list takes about what one takes that is built of the same elements.
fn assert_tight(seq: &Seq, what: &str) {
    let all = texts(seq, 0, End::Tail, usize::MAX);
    let built = filled(&DEFAULT, all.len() as u64, |n| all[n as usize].clone());
    let (kept, fresh) = (seq.allocated_bytes(), built.allocated_bytes());
    assert!(kept <= (fresh * 2).max(640), "{what}: {kept}, fresh {fresh}");
}

#[test]
fn elements_that_become_shorter_or_go_from_the_middle_leave_no_room_behind() {
    for (len, bytes) in [(30, 1100), (100, 120), (3000, 100), (3000, 12), (40, 6000)] {
        let long = |n: u64| format!("{n:0bytes$}").into_bytes();
        let mut shorter = filled(&DEFAULT, len, long);
        for index in 0..len {
            shorter.set(index, b"ok", &DEFAULT);
        }
        assert_tight(&shorter, &format!("{len} of {bytes} made shorter"));
        let mut thinner = filled(&DEFAULT, len, long);
        // Seven of eight, from the head on.
        for index in 0..len / 8 {
            (0..7).for_each(|_| thinner.remove(index, 1, &DEFAULT));
        }
        assert_tight(&thinner, &format!("an eighth of {len} of {bytes}"));
    }
}
