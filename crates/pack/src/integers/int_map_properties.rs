//! Maps of integers against the standard library's, with clones held, walked and drawn from while they
//! change.
use super::*;
use std::collections::{BTreeMap, BTreeSet};

type Twin = BTreeMap<i64, i64>;

fn check(map: &IntMap, twin: &Twin) {
    assert_eq!(map.len(), twin.len() as u64);
    let mut all = Vec::with_capacity(twin.len());
    map.for_each(&mut |key, value| all.push((key, value)));
    assert!(all.iter().copied().eq(twin.iter().map(|(key, value)| (*key, *value))));
    assert_eq!(map.first(), twin.keys().next().copied());
    let stats = map.stats();
    assert_eq!(stats.ints.entries, twin.len() as u64);
    assert!(stats.ints.used_bytes <= stats.ints.allocated_bytes);
}

fn key(taste: u64, random: &mut Random, step: u64) -> i64 {
    match taste {
        0 => random.below(3000) as i64 - 1500,
        1 => random.below(1 << 40) as i64,
        2 => random.next_u64() as i64,
        3 => step as i64 * 17,
        4 => -(step as i64),
        _ => [i64::MIN, i64::MAX, 0, 1, -1][random.below(5) as usize].wrapping_add(random.below(300) as i64),
    }
}

fn value(taste: u64, random: &mut Random) -> i64 {
    match taste {
        0 => random.below(10) as i64,
        1 => 1_700_000_000_000 + random.below(100_000) as i64,
        2 => random.next_u64() as i64 >> random.below(64),
        _ => [i64::MIN, i64::MAX, 0][random.below(3) as usize],
    }
}

#[test]
fn random_edits_agree_with_a_tree_of_the_standard_library() {
    for seed in 0..24 {
        let mut random = Random::new(seed);
        let (mut map, mut twin) = (IntMap::new(), Twin::new());
        let mut held = (map.clone(), twin.clone());
        for step in 0..9_000 {
            // Phases in which it grows, stays, and shrinks.
            let removes = [1, 5, 9][(step / 3000) as usize];
            let chosen = key(seed % 6, &mut random, step);
            let near = twin.range(chosen..).next().map(|(key, _)| *key);
            match near.filter(|_| random.below(10) < removes) {
                Some(key) => assert_eq!(map.remove(key), twin.remove(&key)),
                None => {
                    let value = value(seed / 6, &mut random);
                    let key = near.filter(|_| random.below(4) == 0).unwrap_or(chosen);
                    assert_eq!(map.insert(key, value), twin.insert(key, value));
                }
            }
            assert_eq!(map.get(chosen), twin.get(&chosen).copied());
            if step % 1500 == 0 {
                check(&map, &twin);
                check(&held.0, &held.1);
                held = (map.clone(), twin.clone());
            }
        }
        while let Some((key, value)) = twin.pop_first() {
            assert_eq!((map.remove(key), map.remove(key)), (Some(value), None));
        }
        check(&map, &twin);
        check(&held.0, &held.1);
    }
}

#[test]
fn a_walk_shows_each_key_that_stays_once_while_others_come_and_go() {
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let (mut map, mut stays) = (IntMap::new(), BTreeSet::new());
        for step in 0..4000 {
            let key = key(seed, &mut random, step);
            map.insert(key, 0);
            if random.below(2) == 0 {
                stays.insert(key);
            }
        }
        let (mut from, mut seen) = (Some(i64::MIN), Vec::new());
        while let Some(at) = from {
            from = map.scan(at, &mut |key, _| seen.push(key));
            for step in 0..200 {
                let key = key(seed, &mut random, 4000 + step);
                if !stays.contains(&key) {
                    map.remove(key);
                }
                map.insert(key, 1);
            }
        }
        assert!(seen.is_sorted(), "a walk goes up");
        assert!(seen.iter().filter(|key| stays.contains(key)).eq(&stays));
    }
}

#[test]
fn every_key_is_drawn_about_as_often() {
    let (mut map, mut random) = (IntMap::new(), Random::new(1));
    for key in 0..1000 {
        map.insert(key * key, -key);
    }
    (0..300).for_each(|key| assert_eq!(map.remove(key * key), Some(-key)));
    let mut draws = BTreeMap::<i64, u32>::new();
    for _ in 0..70_000 {
        let (key, value) = map.random(&mut random).unwrap();
        assert_eq!(key, value * value);
        *draws.entry(key).or_default() += 1;
    }
    assert_eq!(draws.len(), 700);
    assert!(draws.values().all(|count| (50..160).contains(count)), "{draws:?}");
}

#[test]
fn keys_that_rise_take_two_bytes_with_values_that_do() {
    let mut map = IntMap::new();
    (0..10_000).for_each(|n| assert_eq!(map.insert(n, n), None));
    let bytes = map.stats().allocated_bytes();
    assert!(bytes < 2 * 10_000 + 10_000 / 2, "{bytes} bytes");
}

#[test]
fn a_map_of_keys_that_ascend_is_the_one_that_grew_and_takes_edits_as_it_does() {
    for seed in 0..18 {
        let mut random = Random::new(seed);
        let count = [0, 1, 300, 5000, 40_000][random.below(5) as usize];
        let pair = |step| (key(seed % 6, &mut random, step), value(seed / 15, &mut random));
        let mut twin: Twin = (0..count).map(pair).collect();
        let pairs: Vec<(i64, i64)> = twin.iter().map(|(key, value)| (*key, *value)).collect();
        let mut map = IntMap::of_sorted(&pairs);
        check(&map, &twin);
        for step in 0..3000 {
            let (key, value) = (key(seed % 6, &mut random, step), value(seed / 15, &mut random));
            match twin.range(key..).next().map(|(key, _)| *key).filter(|_| random.below(2) == 0) {
                Some(near) => assert_eq!(map.remove(near), twin.remove(&near)),
                None => assert_eq!(map.insert(key, value), twin.insert(key, value)),
            }
        }
        check(&map, &twin);
    }
}
