//! Sets of integers against the standard library's, with clones held, merged and scanned while they change.
use super::*;
use std::collections::BTreeSet;

type Twin = BTreeSet<i64>;

fn check(set: &IntSet, twin: &Twin) {
    assert_eq!(set.len(), twin.len() as u64);
    let mut all = Vec::with_capacity(twin.len());
    set.for_each(&mut |value| all.push(value));
    assert!(all.iter().eq(twin));
    let stats = set.stats();
    assert_eq!(stats.ints.entries, twin.len() as u64);
    assert!(stats.ints.used_bytes <= stats.ints.allocated_bytes);
}

fn value(seed: u64, random: &mut Random, step: u64) -> i64 {
    match seed % 6 {
        0 => random.below(3000) as i64 - 1500,
        1 => random.below(1 << 40) as i64,
        2 => random.next_u64() as i64,
        3 => step as i64 * 17,
        4 => -(step as i64),
        _ => (random.below(20) as i64) << 55 | random.below(700) as i64,
    }
}

#[test]
fn random_edits_agree_with_a_tree_of_the_standard_library() {
    for seed in 0..24 {
        let mut random = Random::new(seed);
        let (mut set, mut twin) = (IntSet::new(), Twin::new());
        let mut held = (set.clone(), twin.clone());
        for step in 0..12_000 {
            // Phases in which it grows, stays, and shrinks.
            let removes = [1, 5, 9][(step / 4000) as usize];
            let chosen = value(seed, &mut random, step);
            let near = twin.range(chosen..).next().copied();
            match near.filter(|_| random.below(10) < removes) {
                Some(value) => assert_eq!(set.remove(value), twin.remove(&value)),
                None => assert_eq!(set.insert(chosen), twin.insert(chosen)),
            }
            assert_eq!(set.contains(chosen), twin.contains(&chosen));
            if step % 1500 == 0 {
                check(&set, &twin);
                check(&held.0, &held.1);
                held = (set.clone(), twin.clone());
            }
        }
        while let Some(value) = twin.pop_first() {
            assert!(set.remove(value) && !set.remove(value));
        }
        check(&set, &twin);
        check(&held.0, &held.1);
    }
}

#[test]
fn a_cursor_steps_and_jumps_as_a_range_of_the_twin_does() {
    let mut random = Random::new(9);
    for seed in 0..12 {
        let values: Vec<i64> = (0..3000).map(|step| value(seed, &mut random, step)).collect();
        let (set, twin): (IntSet, Twin) =
            (values.iter().copied().collect(), values.iter().copied().collect());
        for _ in 0..300 {
            let mut at = values[random.below(3000) as usize].wrapping_add(random.below(5) as i64 - 2);
            let mut cursor = set.cursor_from(at);
            for _ in 0..20 {
                assert_eq!(cursor.value(), twin.range(at..).next().copied(), "seed {seed}, at {at}");
                let Some(value) = cursor.value() else { break };
                let Some(next) = value.checked_add(1) else { break };
                if random.below(2) == 0 {
                    cursor.step();
                    at = next;
                } else {
                    at = next.saturating_add((random.next_u64() >> random.below(64)) as i64 & i64::MAX);
                    cursor.seek(at);
                }
            }
        }
        let mut all = Vec::new();
        let mut cursor = set.cursor();
        while let Some(value) = cursor.value() {
            all.push(value);
            cursor.step();
        }
        assert!(all.iter().eq(&twin));
    }
}

#[test]
fn what_is_ahead_of_a_cursor_is_what_follows_whether_it_is_passed_or_jumped_over() {
    let mut random = Random::new(10);
    for seed in 0..12 {
        let twin: Twin = (0..3000).map(|step| value(seed, &mut random, step)).collect();
        let set: IntSet = twin.iter().copied().collect();
        let mut cursor = set.cursor();
        let mut rest: Vec<i64> = twin.iter().copied().collect();
        while let Some(last) = cursor.ahead().last().copied() {
            let len = cursor.ahead().len();
            assert_eq!(cursor.ahead(), &rest[..len], "seed {seed}");
            let passed = if random.below(3) == 0 && len < rest.len() {
                // Mostly near: so it comes to decode as many as it may.
                let far = if random.below(8) == 0 { 900 } else { 12 };
                let to = rest[(len + random.below(far) as usize).min(rest.len() - 1)];
                let to = to - random.below(to.abs_diff(last).min(3)) as i64;
                cursor.jump(to);
                rest.partition_point(|value| *value < to)
            } else {
                let count = random.below(len as u64 + 1) as usize;
                cursor.pass(count);
                count
            };
            rest.drain(..passed);
        }
        assert!(rest.is_empty() && cursor.value().is_none(), "seed {seed}");
    }
}

#[test]
fn a_scan_visits_what_stays_once_whatever_else_comes_and_goes() {
    let mut random = Random::new(4);
    for _ in 0..20 {
        let kept: Twin = (0..2000).map(|_| random.below(1 << 30) as i64 * 2).collect();
        let mut set: IntSet = kept.iter().copied().collect();
        let (mut seen, mut from) = (Vec::new(), Some(i64::MIN));
        while let Some(place) = from {
            from = set.scan(place, &mut |value| seen.push(value));
            for _ in 0..200 {
                // Odd: never one of those that stay.
                let value = random.below(1 << 30) as i64 * 2 + 1;
                if !set.insert(value) {
                    set.remove(value);
                }
            }
        }
        assert!(seen.iter().filter(|value| *value % 2 == 0).eq(&kept));
    }
}

#[test]
fn members_are_drawn_with_the_same_chance() {
    let mut random = Random::new(8);
    // Leaves of different fill: rising ones are full, the others half full.
    let rising = 0..2000_i64;
    let set: IntSet = rising.chain((0..2000).map(|i| (1 << 40) + (i * 7919) % 2003)).collect();
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..400_000 {
        *counts.entry(set.random(&mut random).expect("it has members")).or_insert(0_u32) += 1;
    }
    assert_eq!(counts.len() as u64, set.len());
    let expect = 400_000.0 / set.len() as f64;
    let chi: f64 = counts.values().map(|n| (f64::from(*n) - expect).powi(2) / expect).sum();
    let free = set.len() as f64 - 1.0;
    assert!((chi - free).abs() < 6.0 * (2.0 * free).sqrt(), "chi-squared {chi} of {free}");
}

#[test]
fn members_that_rise_or_fall_leave_full_leaves() {
    let rising: IntSet = (0..10_000).collect();
    let falling: IntSet = (0..10_000).rev().collect();
    for set in [rising, falling] {
        assert_eq!(set.stats().ints.nodes, 10_000_u64.div_ceil(COUNT_MAX as u64));
    }
}

#[test]
fn a_set_of_values_that_ascend_is_the_one_that_grew_and_takes_edits_as_it_does() {
    for seed in 0..18 {
        let mut random = Random::new(seed);
        let count = [0, 1, 512, 513, 5000, 100_000][random.below(6) as usize];
        let mut twin: Twin = (0..count).map(|step| value(seed, &mut random, step)).collect();
        let values: Vec<i64> = twin.iter().copied().collect();
        let mut set = IntSet::of_sorted(&values);
        check(&set, &twin);
        assert!(values.iter().step_by(97).all(|value| set.contains(*value)));
        for step in 0..3000 {
            let value = value(seed, &mut random, step);
            match twin.range(value..).next().copied().filter(|_| random.below(2) == 0) {
                Some(near) => assert_eq!(set.remove(near), twin.remove(&near)),
                None => assert_eq!(set.insert(value), twin.insert(value)),
            }
        }
        check(&set, &twin);
    }
}
