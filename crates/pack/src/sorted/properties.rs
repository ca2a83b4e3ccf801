//! Sorted sets against their naive twin: seeded streams of edits, clones held and checked, scans while scores
//! change.
use super::*;
use crate::model::seeds;
use crate::sorted::scored::properties::{any_member, any_score, order};
use base::random::Random;
use std::collections::{BTreeMap, BTreeSet};

const SEED: Seed = Seed::new(3, 4);

/// Each member's score.
type Twin = BTreeMap<Vec<u8>, f64>;

fn in_order(twin: &Twin) -> Vec<(f64, Vec<u8>)> {
    let mut all: Vec<_> = twin.iter().map(|(member, score)| (*score, member.clone())).collect();
    all.sort_by(order);
    all
}

fn entries(set: &Sorted, from: u64, towards: End) -> Vec<(f64, Vec<u8>)> {
    let mut all = Vec::new();
    set.visit(from, towards, &mut |entry| {
        all.push((entry.score, entry.member.to_vec()));
        ControlFlow::Continue(())
    });
    all
}

fn check(set: &Sorted, twin: &Twin) {
    let expected = in_order(twin);
    assert_eq!(set.len(), twin.len() as u64);
    assert_eq!(entries(set, 0, End::Tail), expected);
    let down = entries(set, set.len().saturating_sub(1), End::Head);
    assert!(down.iter().eq(expected.iter().rev()));
    for (rank, (score, member)) in expected.iter().enumerate() {
        let found = set.rank(&SEED, member).unwrap_or_else(|| panic!("{member:?} is lost"));
        assert_eq!((found.0, found.1.to_bits()), (rank as u64, score.to_bits()));
        assert_eq!(set.score(&SEED, member).map(f64::to_bits), Some(score.to_bits()));
    }
    check_several(set, &expected);
    if let Some(index) = &set.index {
        assert_eq!(index.entries().len(), twin.len(), "the index holds each member once");
    }
    check_runs(set, &expected);
    let stats = set.stats();
    assert_eq!(stats.scored.entries, set.len());
    assert_eq!(stats.placed.entries, if set.index.is_some() { set.len() } else { 0 });
}

/// Lookups side by side find what each finds alone, also where some of the members are not there.
fn check_several(set: &Sorted, expected: &[(f64, Vec<u8>)]) {
    for chunk in expected.chunks_exact(3) {
        let absent = [&chunk[0].1[..], b"?"].concat();
        let members = [&chunk[0].1[..], &chunk[1].1, &absent, &chunk[2].1];
        let alone = members.map(|member| set.score(&SEED, member).map(f64::to_bits));
        assert_eq!(set.scores(&SEED, members).map(|score| score.map(f64::to_bits)), alone, "{members:?}");
    }
}

/// The members of long runs are kept by hash, those of short ones are not.
fn check_runs(set: &Sorted, expected: &[(f64, Vec<u8>)]) {
    let mut twins = 0;
    for run in expected.chunk_by(|a, b| a.0 == b.0) {
        let here = |entry: &&(f64, Vec<u8>)| {
            set.long_runs.as_ref().is_some_and(|t| t.has(SEED.hash(&entry.1), &entry.1))
        };
        let count = run.iter().filter(here).count();
        assert!(count == 0 || count == run.len(), "{count} of {} are twins", run.len());
        assert!(run.len() as u64 <= LONG_MAX || count > 0, "a long run is unknown");
        assert!(run.len() as u64 >= long_runs::LONG_MIN || count == 0, "a short run is still known");
        twins += count as u64;
    }
    assert_eq!(set.long_runs.as_ref().map_or(0, |twins| twins.len()), twins);
}

struct Run {
    random: Random,
    set: Sorted,
    twin: Twin,
    members: u64,
    scores: u64,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = Random::new(seed);
        let (members, scores) = (random.below(10), random.below(8));
        Run { random, set: Sorted::new(), twin: Twin::new(), members, scores }
    }

    fn member(&mut self) -> Vec<u8> {
        let n = self.random.below(3000);
        match self.members {
            0..=3 => format!("user:{n}").into_bytes(),
            4 => format!("field:{n:07}").into_bytes(),
            5 => vec![b'x'; n as usize],
            other => any_member(&mut self.random, other - 2),
        }
    }

    fn score(&mut self) -> f64 {
        let taste = if self.random.below(50) == 0 { self.random.below(8) } else { self.scores };
        any_score(&mut self.random, taste)
    }

    fn step(&mut self) {
        let (member, score) = (self.member(), self.score());
        match self.random.below(12) {
            0..=7 => {
                let old = self.set.update(&SEED, &member, |_| Some(score));
                assert_eq!(old, self.twin.insert(member, score));
            }
            8..=9 => {
                assert_eq!(self.set.remove(&SEED, &member), self.twin.remove(&member));
            }
            10 if self.random.below(10) == 0 => self.remove_range(),
            _ => self.check_bound(score, &member),
        }
    }

    fn remove_range(&mut self) {
        let len = self.set.len();
        let rank = self.random.below(len + 1);
        let max = if self.random.below(4) == 0 { len } else { 300 };
        let count = self.random.below((len - rank).min(max) + 1);
        let gone = in_order(&self.twin).into_iter().skip(rank as usize).take(count as usize);
        self.set.remove_range(&SEED, rank, count);
        for (_, member) in gone {
            self.twin.remove(&member);
        }
    }

    fn check_bound(&mut self, score: f64, member: &[u8]) {
        for edge in [Edge::Least, Edge::Before(member), Edge::After(member), Edge::Greatest] {
            let bound = Bound { score, edge };
            let is_before = |entry: &(Vec<u8>, f64)| {
                bound.is_after(Entry { score: entry.1, member: Member::of(&entry.0) })
            };
            let before = self.twin.clone().into_iter().filter(is_before).count();
            assert_eq!(self.set.rank_at(&bound), before as u64, "{bound:?}");
        }
        assert_eq!(self.set.score(&SEED, member), self.twin.get(member).copied());
    }
}

/// No leaf is asked for the score of a member of a long run, unless another member is at its place of the
/// index; and such a member leaves the run, and comes back, as any other does.
#[test]
fn a_member_of_a_long_run_is_known_by_its_hash() {
    let name = |n: u64| format!("m{n}").into_bytes();
    let twins = |set: &Sorted| {
        let known = |n: &u64| set.look_up(SEED.hash(&name(*n)), &name(*n));
        (0..4000).filter(|n| matches!(known(n), Some(Known::InLongRun(7.0)))).count()
    };
    let mut set = Sorted::new();
    for n in 0..4000 {
        assert_eq!(set.update(&SEED, &name(n), |_| Some(n as f64)), None);
    }
    assert_eq!(twins(&set), 0);
    for n in 0..4000 {
        assert_eq!(set.update(&SEED, &name(n), |_| Some(7.0)), Some(n as f64));
    }
    assert!(twins(&set) > 3500, "{} of 4000", twins(&set));
    assert_eq!(set.score(&SEED, b"m4000"), None);
    let mut twin: Twin = (0..4000).map(|n| (name(n), 7.0)).collect();
    for n in (0..4000).step_by(3) {
        assert_eq!(set.update(&SEED, &name(n), |old| old.map(|_| 9.5)), twin.insert(name(n), 9.5));
        assert_eq!(set.update(&SEED, &name(n + 1), |_| Some(7.0)), twin.insert(name(n + 1), 7.0));
    }
    check(&set, &twin);
}

/// Places of the index are shared by some of so many members, whose scores are equal and not the same.
#[test]
fn members_at_one_place_keep_the_sign_of_their_zero() {
    let score = |n: u64| if n.is_multiple_of(2) { 0.0 } else { -0.0_f64 };
    let name = |n: u64| format!("m{n}").into_bytes();
    for seed in (0..4).map(|n| Seed::new(n, 1)) {
        let mut set = Sorted::new();
        for n in 0..4000 {
            assert_eq!(set.update(&seed, &name(n), |_| Some(score(n))), None);
        }
        for n in 0..4000 {
            assert_eq!(set.score(&seed, &name(n)).map(f64::to_bits), Some(score(n).to_bits()), "member {n}");
        }
        for n in (0..4000).step_by(3) {
            assert_eq!(set.remove(&seed, &name(n)).map(f64::to_bits), Some(score(n).to_bits()), "member {n}");
        }
        // All that are taken out here have their own entry in the index.
        (0..200).for_each(|_| set.remove_range(&seed, 7, 10));
        assert_eq!(set.len(), 4000 - 1334 - 2000);
    }
}

#[test]
fn random_edits_agree_with_a_map_and_clones_stay() {
    for seed in 0..24 {
        let mut run = Run::new(seed);
        let mut held = Vec::new();
        for step in 0..3000 {
            run.step();
            if step % 500 == 499 {
                check(&run.set, &run.twin);
                held.push((run.set.clone(), run.twin.clone()));
            }
        }
        held.iter().for_each(|(set, twin)| check(set, twin));
    }
}

#[test]
fn a_large_set_gets_whole_places_and_keeps_every_member() {
    let (mut set, mut twin, mut random) = (Sorted::new(), Twin::new(), Random::new(1));
    for n in 0..40_000_u64 {
        let member = format!("player:{n}").into_bytes();
        let score = random.below(10_000_000) as f64;
        set.update(&SEED, &member, |_| Some(score));
        twin.insert(member, score);
    }
    assert_eq!(set.index.as_ref().map(Index::grain), Some(Grain::Fine));
    check(&set, &twin);
    let clone = set.clone();
    for n in (0..40_000_u64).filter(|n| n % 100 != 0) {
        let member = format!("player:{n}").into_bytes();
        assert_eq!(set.remove(&SEED, &member), twin.remove(&member));
    }
    check(&set, &twin);
    assert_eq!(clone.len(), 40_000);
    assert!(set.stats().allocated_bytes() < 20_000, "what shrinks gives memory back");
}

#[test]
fn rising_and_falling_scores_leave_full_leaves_behind() {
    for direction in [1.0, -1.0] {
        let mut set = Sorted::new();
        for n in 0..12_800 {
            let member = format!("m:{n}");
            set.update(&SEED, member.as_bytes(), |_| Some(direction * f64::from(n)));
        }
        assert!(set.stats().scored.nodes <= 101, "{} leaves", set.stats().scored.nodes);
    }
}

#[test]
fn five_hundred_members_take_less_than_half_of_the_mark() {
    let mut set = Sorted::new();
    for n in 1..=500 {
        set.update(&SEED, format!("val-{n}").as_bytes(), |_| Some(f64::from(n)));
    }
    let bytes = set.stats().allocated_bytes();
    assert!(bytes < 8288 / 2 + 500, "{bytes} bytes: {:#?}", set.stats());
}

#[test]
fn a_scan_finds_every_member_that_stays_while_scores_change() {
    for seed in seeds(12) {
        let mut random = Random::new(seed);
        let (mut set, count) = (Sorted::new(), [100, 3000, 10_000][seed as usize % 3]);
        let name = |n: u64| format!("member:{n}").into_bytes();
        let spread = [1, 5, 1_000_000][random.below(3) as usize];
        for n in 0..count {
            let score = random.below(spread) as f64;
            set.update(&SEED, &name(n), |_| Some(score));
        }
        let (mut seen, mut cursor) = (BTreeSet::new(), Some(0));
        while let Some(from) = cursor {
            let at_once = [1, 10, 1000][random.below(3) as usize];
            cursor = set.scan(&SEED, from, at_once, &mut |entry| {
                seen.insert(entry.member.to_vec());
            });
            for _ in 0..100 {
                let (n, score) = (random.below(count), random.below(spread) as f64);
                match random.below(4) {
                    0 => drop(set.remove(&SEED, &name(n * 3))),
                    _ => drop(set.update(&SEED, &name(n), |old| old.map(|_| score))),
                }
            }
        }
        for n in (0..count).filter(|n| n % 3 != 0) {
            assert!(seen.contains(&name(n)), "seed {seed}: member {n} was missed");
        }
    }
}

#[test]
fn an_image_becomes_a_set() {
    let mut bytes = Vec::new();
    let mut twin = Twin::new();
    for n in 0..100 {
        let (member, score) = (format!("m{n}").into_bytes(), f64::from(n % 7));
        image::insert(&mut bytes, &member, score);
        twin.insert(member, score);
    }
    check(&Sorted::of_image(&bytes), &twin);
    assert_eq!(image::find(&bytes, b"m3").map(|found| found.1), Some(3.0));
    let rank = image::find(&bytes, b"m3").unwrap().0;
    image::set_score(&mut bytes, rank, b"m3", -1.0);
    assert_eq!(image::find(&bytes, b"m3"), Some((0, -1.0)));
    image::remove(&mut bytes, 0, 100);
    assert!(bytes.is_empty() && image::len(&bytes) == 0 && image::find(&bytes, b"m3").is_none());
}

#[test]
fn a_set_of_all_its_entries_is_the_one_that_grew_and_takes_edits_as_it_does() {
    for seed in seeds(40) {
        let mut run = Run::new(seed);
        let count = [3, 60, 130, 700, 3000][run.random.below(5) as usize];
        for _ in 0..count {
            let (member, score) = (run.member(), run.score());
            run.twin.insert(member, score);
        }
        let all = in_order(&run.twin);
        let member = Member::classify;
        let mut entries: Vec<Entry<'_>> =
            all.iter().map(|(score, text)| Entry { score: *score, member: member(text) }).collect();
        run.set = Sorted::of_entries(&SEED, &entries).expect("each member is there once");
        check(&run.set, &run.twin);
        for _ in 0..300 {
            run.step();
        }
        check(&run.set, &run.twin);
        let again = entries[run.random.below(entries.len() as u64) as usize].member;
        entries.push(Entry { score: f64::INFINITY, member: again });
        assert!(Sorted::of_entries(&SEED, &entries).is_none(), "a member is there twice");
    }
    assert!(Sorted::of_entries(&SEED, &[]).is_some_and(|set| set.is_empty()));
}

#[test]
fn a_set_of_all_its_entries_fills_its_leaves() {
    let names: Vec<String> = (0..20_000).map(|n| format!("member:{n:06}")).collect();
    let entries: Vec<Entry<'_>> = (0..)
        .zip(&names)
        .map(|(n, name)| Entry { score: f64::from(n), member: Member::of(name.as_bytes()) })
        .collect();
    let set = Sorted::of_entries(&SEED, &entries).expect("each member is there once");
    assert_eq!(set.stats().scored.nodes, 20_000_u64.div_ceil(COUNT_MAX as u64));
}

/// A queue of jobs by time that has as many as a leaf: the newest comes and goes.
#[test]
fn a_full_leaf_keeps_its_index_while_members_come_and_go_at_its_end() {
    let (mut set, mut twin) = (Sorted::new(), Twin::new());
    let name = |n: usize| format!("job:{n}").into_bytes();
    let mut add = |set: &mut Sorted, n: usize| {
        set.update(&SEED, &name(n), |_| Some(n as f64));
        twin.insert(name(n), n as f64);
    };
    (0..=COUNT_MAX).for_each(|n| add(&mut set, n));
    for _ in 0..3 {
        assert!(set.index.is_some() && set.tree.height() == 2);
        set.remove(&SEED, &name(COUNT_MAX));
        assert!(set.index.is_some() && set.tree.height() == 1);
        add(&mut set, COUNT_MAX);
    }
    check(&set, &twin);
    for n in (COUNT_MAX * 3 / 4..=COUNT_MAX).rev() {
        set.remove(&SEED, &name(n));
        twin.remove(&name(n));
        check(&set, &twin);
    }
    assert!(set.index.is_none() && set.len() == COUNT_MAX as u64 * 3 / 4);
}
