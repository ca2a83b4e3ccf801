//! Maps and lists over the arena, as the program has them, while extents are emptied around them at random
//! moments: what is read agrees with a model, clones keep what they had, and the extents really empty. A
//! program of its own, because the arena is its allocator.
use base::hash::Seed;
use base::random::Random;
use pack::arena::{self, Arena, Evacuation, Moves, Progress, Stubborn, relocate_vec};
use pack::counted::Counted;
use pack::int_set::IntSet;
use pack::map::{Entry, Map, Shared};
use pack::seq::{Codec, End, Fill, Limits, Seq};
use std::alloc::System;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static HEAP: Counted<Arena<System>> = Counted(Arena(System));

/// One evacuation at a time, so one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<Vec<u8>>)>;

/// A map whose outside values are byte vectors, and what it should hold.
#[derive(Clone)]
struct Pair {
    map: Map<Vec<u8>>,
    model: Model,
}

const SEED: Seed = Seed::new(3, 4);

impl Pair {
    fn put(&mut self, key: &[u8], random: &mut Random) {
        let longest = [60, 60, 60, 1500][random.below(4) as usize];
        let inline = vec![random.below(256) as u8; random.below(longest) as usize];
        let outside = (random.below(3) == 0)
            .then(|| vec![random.below(256) as u8; [40, 700, 3000][random.below(3) as usize]]);
        match self.map.entry(&SEED, SEED.hash(key), key) {
            Entry::Occupied(entry) => {
                drop(entry.replace(5, &inline, outside.clone().map(Shared::new), &mut ()))
            }
            Entry::Vacant(entry) => entry.insert(5, &inline, outside.clone().map(Shared::new), &mut ()),
        }
        self.model.insert(key.to_vec(), (inline, outside));
    }

    fn remove(&mut self, key: &[u8]) {
        let removed = self.map.remove(&SEED, SEED.hash(key), key);
        let expected = self.model.remove(key);
        assert_eq!(removed.map(|r| (r.inline, r.outside.map(|value| value.to_vec()))), expected);
    }

    fn check(&self) {
        assert_eq!(self.map.len(), self.model.len() as u64);
        for (key, (inline, outside)) in &self.model {
            let found = self.map.find(SEED.hash(key), key).expect("it is in the model");
            assert_eq!((found.inline, found.outside), (&inline[..], outside.as_ref()));
        }
    }
}

/// An evacuation that goes on while its owner edits.
struct Mill {
    stubborn: Stubborn,
    place: u32,
    moves: Moves,
    emptied: usize,
}

enum Stage {
    Closing,
    Moving,
    Reopening,
}

impl Mill {
    fn new() -> Mill {
        Mill { stubborn: Stubborn::default(), place: 0, moves: Moves::default(), emptied: 0 }
    }

    /// Plans, closes, moves all of `map`, and reopens, some at a time, calling `between` in between.
    fn round(
        &mut self,
        pair: &mut Pair,
        random: &mut Random,
        between: &mut dyn FnMut(&mut Pair, &mut Random),
    ) {
        let mut evacuation = Evacuation::plan(&self.stubborn).expect("no other goes on");
        let mut stage = Stage::Closing;
        loop {
            between(pair, random);
            let steps = 1 + random.below(300);
            match stage {
                Stage::Closing => {
                    if evacuation.close(steps as usize) == Progress::Done {
                        (stage, self.place) = (Stage::Moving, 0);
                    }
                }
                Stage::Moving => {
                    let effort = self.moves.effort() + steps;
                    let next =
                        pair.map.relocate(self.place, effort, &mut self.moves, &mut |_, value, moves| {
                            moves.note(relocate_vec(value), value.len());
                        });
                    match next {
                        Some(place) => self.place = place,
                        None => {
                            evacuation.rewind();
                            stage = Stage::Reopening;
                        }
                    }
                }
                Stage::Reopening => {
                    if evacuation.reopen(steps as usize, &mut self.stubborn) == Progress::Done {
                        self.emptied += evacuation.extents() - evacuation.left();
                        return;
                    }
                }
            }
        }
    }
}

fn key(n: u64) -> Vec<u8> {
    format!("key:{n:06}").into_bytes()
}

#[test]
fn a_map_is_what_it_was_however_its_memory_moves_and_whoever_shares_it() {
    let _alone = alone();
    let mut moved = 0;
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let mut pair = Pair { map: Map::new(), model: Model::new() };
        (0..12_000).for_each(|n| pair.put(&key(n), &mut random));
        for n in (0..12_000).filter(|n| n % 3 != 0) {
            pair.remove(&key(n));
        }
        let mut clones: Vec<Pair> = Vec::new();
        let mut mill = Mill::new();
        for _ in 0..3 {
            mill.round(&mut pair, &mut random, &mut |pair, random| {
                for _ in 0..random.below(20) {
                    let key = key(random.below(14_000));
                    if random.below(2) == 0 { pair.put(&key, random) } else { pair.remove(&key) }
                }
                match random.below(60) {
                    0 if clones.len() < 4 => clones.push(pair.clone()),
                    1 if !clones.is_empty() => {
                        let clone = clones.swap_remove(random.below(clones.len() as u64) as usize);
                        clone.check();
                    }
                    _ => {}
                }
            });
            pair.check();
        }
        clones.iter().for_each(Pair::check);
        moved += mill.moves.moved;
        while arena::purge(64) > 0 {}
    }
    assert!(moved > 600, "only {moved} blocks moved");
}

#[test]
fn extents_empty_and_leave_little_beside_the_data() {
    let _alone = alone();
    let mut random = Random::new(9);
    let mut pair = Pair { map: Map::new(), model: Model::new() };
    (0..60_000).for_each(|n| pair.put(&key(n), &mut random));
    pair.model = Model::new();
    for n in (0..60_000).filter(|n| n % 5 != 0) {
        pair.map.remove(&SEED, SEED.hash(&key(n)), &key(n));
    }
    while arena::purge(64) > 0 {}
    let before = arena::usage();
    let mut mill = Mill::new();
    for _ in 0..2 {
        mill.round(&mut pair, &mut random, &mut |_, _| {});
    }
    while arena::purge(64) > 0 {}
    let after = arena::usage();
    assert!(before.resident_bytes > before.used_bytes / 2 * 3, "{before:?}");
    // Each test's thread has a stripe, and each stripe keeps an extent: what is left beside the data is told
    // in parts of what was.
    let waste = |usage: arena::Usage| usage.resident_bytes - usage.used_bytes;
    assert!(waste(after) < waste(before) / 4, "{before:?} {after:?}");
    assert!(mill.emptied > 5);
}

#[test]
fn a_clone_keeps_all_that_it_shares_where_it_is() {
    let _alone = alone();
    let mut random = Random::new(5);
    let mut pair = Pair { map: Map::new(), model: Model::new() };
    (0..12_000).for_each(|n| pair.put(&key(n), &mut random));
    (0..12_000).filter(|n| n % 3 != 0).for_each(|n| pair.remove(&key(n)));
    let clone = pair.clone();
    let mut mill = Mill::new();
    mill.round(&mut pair, &mut random, &mut |_, _| {});
    assert_eq!(mill.moves.moved, 0, "all is shared");
    drop(clone);
    mill.round(&mut pair, &mut random, &mut |_, _| {});
    assert!(mill.moves.moved > 0);
    pair.check();
}

#[test]
fn a_list_is_what_it_was_however_its_leaves_move() {
    let _alone = alone();
    let limits = Limits { fill: Fill::Bytes(512), depth: 0, codec: Codec::Lz4 };
    for seed in 0..4 {
        let mut random = Random::new(seed);
        let mut lists: Vec<(Seq, VecDeque<Vec<u8>>)> = Vec::new();
        for _ in 0..400 {
            let (mut seq, mut model) = (Seq::new(), VecDeque::new());
            for n in 0..200 + random.below(400) {
                let value = format!("{seed}:{n}:{}", "x".repeat(random.below(40) as usize)).into_bytes();
                seq.push(End::Tail, &value, &limits);
                model.push_back(value);
            }
            lists.push((seq, model));
        }
        let mut index = 0;
        lists.retain(|_| {
            index += 1;
            index % 3 == 0
        });
        let kept = lists[0].clone();
        let mut evacuation = Evacuation::plan(&Stubborn::default()).expect("no other goes on");
        while evacuation.close(500) == Progress::More {}
        let mut moves = Moves::default();
        for (seq, model) in &mut lists {
            let mut next = Some(0);
            while let Some(from) = next {
                next = seq.relocate(from, moves.effort() + 1 + random.below(20), &mut moves);
                let at = random.below(model.len() as u64);
                match random.below(3) {
                    0 => {
                        seq.insert(at, b"inserted", &limits);
                        model.insert(at as usize, b"inserted".to_vec());
                    }
                    1 => {
                        seq.remove(at, 1, &limits);
                        model.remove(at as usize);
                    }
                    _ => {}
                }
            }
        }
        drop(evacuation);
        lists.push(kept);
        for (seq, model) in &lists {
            let mut read = VecDeque::new();
            seq.visit(0, End::Tail, &mut |_, item| {
                let mut text = Vec::new();
                item.append_to(&mut text);
                read.push_back(text);
                ControlFlow::Continue(())
            });
            assert_eq!(&read, model, "seed {seed}");
        }
        assert!(moves.moved > 100, "seed {seed}: {moves:?}");
        while arena::purge(64) > 0 {}
    }
}

#[test]
fn a_set_of_integers_is_what_it_was_however_its_leaves_move() {
    let _alone = alone();
    for seed in 0..3 {
        let mut random = Random::new(seed);
        let mut sets: Vec<(IntSet, BTreeSet<i64>)> = Vec::new();
        for _ in 0..300 {
            let members: BTreeSet<i64> = (0..4000).map(|_| random.below(1 << 40) as i64).collect();
            sets.push((members.iter().copied().collect(), members));
        }
        let mut index = 0;
        sets.retain(|_| {
            index += 1;
            index % 3 == 0
        });
        let kept = sets[0].clone();
        let mut evacuation = Evacuation::plan(&Stubborn::default()).expect("no other goes on");
        while evacuation.close(500) == Progress::More {}
        let mut moves = Moves::default();
        for (set, model) in &mut sets {
            let mut next = Some(i64::MIN);
            while let Some(from) = next {
                next = set.relocate(from, moves.effort() + 1 + random.below(20), &mut moves);
                let member = random.below(1 << 40) as i64;
                assert_eq!(set.insert(member), model.insert(member));
                let near = model.range(member / 2..).next().copied().unwrap_or(0);
                assert_eq!(set.remove(near), model.remove(&near));
            }
        }
        drop(evacuation);
        sets.push(kept);
        for (set, model) in &sets {
            let mut read = BTreeSet::new();
            set.for_each(&mut |member| assert!(read.insert(member)));
            assert_eq!(&read, model, "seed {seed}");
        }
        assert!(moves.moved > 100, "seed {seed}: {moves:?}");
        while arena::purge(64) > 0 {}
    }
}
