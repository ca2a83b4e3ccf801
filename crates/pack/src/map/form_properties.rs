//! Maps of fields and of members against a tree of the standard library, with clones held.
use crate::map::fields::{Field, Fields, field_of};
use crate::map::{Entry, Form, Map, Members, Shared};
use base::hash::Seed;
use base::random::Random;
use std::collections::{BTreeMap, BTreeSet};

const SEED: Seed = Seed::new(21, 22);

/// Text and numbers, short and long, some of which only look like numbers.
fn name(random: &mut Random) -> Vec<u8> {
    let n = random.below(2000);
    match n % 8 {
        0 => n.to_string().into_bytes(),
        1 => (n as i64 * -0x0123_4567_89AB).to_string().into_bytes(),
        2 => format!("0{n}").into_bytes(),
        3 if n % 64 == 3 => vec![b'l'; n as usize],
        _ => format!("field:{n}").into_bytes(),
    }
}

type Twin = BTreeMap<Vec<u8>, (u8, Vec<u8>, Option<u64>)>;

fn content(map: &Map<u64, Fields>) -> Twin {
    let mut all = Twin::new();
    map.for_each(&mut |found| {
        let mut text = Vec::new();
        field_of(found.meta, found.key).append_to(&mut text);
        let value = (found.meta & Fields::META, found.inline.to_vec(), found.outside.copied());
        assert!(all.insert(text, value).is_none(), "a field twice");
    });
    all
}

fn step(map: &mut Map<u64, Fields>, twin: &mut Twin, random: &mut Random) {
    let text = name(random);
    let (field, hash) = (Field::new(&text), SEED.hash(&text));
    let longest = if random.below(20) == 0 { 500 } else { 12 };
    let inline: Vec<u8> = (0..random.below(longest)).map(|_| random.next_u64() as u8).collect();
    let meta = (random.below(4) << 5) as u8;
    let outside = (random.below(5) == 0).then(|| random.next_u64());
    match map.entry(&SEED, hash, field.name()) {
        Entry::Vacant(entry) => {
            assert!(!twin.contains_key(&text), "a field was lost");
            entry.insert(meta, &inline, outside.map(Shared::new), &mut ());
            twin.insert(text, (meta, inline, outside));
        }
        Entry::Occupied(mut entry) => {
            let old = twin.get_mut(&text).expect("a field came from nowhere");
            match random.below(5) {
                0 | 1 => {
                    assert_eq!(entry.discard().map(|value| *value), old.2);
                    twin.remove(&text);
                }
                2 => {
                    let gone = entry.replace(meta, &inline, outside.map(Shared::new), &mut ());
                    assert_eq!(gone.map(|value| *value), old.2);
                    *old = (meta, inline, outside);
                }
                3 => {
                    entry.replace_inline(meta, &inline, &mut ());
                    (old.0, old.1) = (meta, inline);
                }
                _ => {
                    let fits = old.2.is_none() && old.1.len() == inline.len();
                    assert_eq!(entry.overwrite(meta, &inline), fits);
                    if fits {
                        (old.0, old.1) = (meta, inline);
                    }
                }
            }
        }
    }
}

#[test]
fn maps_of_fields_agree_with_the_twin_and_clones_stay() {
    for seed in 0..4 {
        let mut random = Random::new(seed);
        let (mut map, mut twin): (Map<u64, Fields>, Twin) = (Map::new(), Twin::new());
        let mut held = (map.clone(), twin.clone());
        for turn in 0..12_000 {
            step(&mut map, &mut twin, &mut random);
            if turn % 1000 == 0 {
                assert!(content(&map) == twin, "seed {seed} turn {turn}");
                assert!(content(&held.0) == held.1, "a held clone changed: seed {seed} turn {turn}");
                held = (map.clone(), twin.clone());
                for (text, value) in &twin {
                    let found = map.find(SEED.hash(text), Field::new(text).name()).expect("it is there");
                    assert_eq!((found.meta & Fields::META, found.inline), (value.0, &value.1[..]));
                }
            }
        }
        assert_eq!(map.len(), twin.len() as u64);
    }
}

#[test]
fn maps_of_members_agree_with_the_twin() {
    for seed in 0..4 {
        let mut random = Random::new(seed);
        let (mut map, mut twin): (Map<(), Members>, BTreeSet<Vec<u8>>) = (Map::new(), BTreeSet::new());
        for turn in 0..12_000 {
            let text = if random.below(500) == 0 { Vec::new() } else { name(&mut random) };
            match map.entry(&SEED, SEED.hash(&text), &text) {
                Entry::Vacant(entry) => {
                    entry.insert(0, &[], None, &mut ());
                    assert!(twin.insert(text), "a member was lost");
                }
                Entry::Occupied(entry) if random.below(2) == 0 => {
                    assert!(entry.discard().is_none() && twin.remove(&text), "seed {seed} turn {turn}");
                }
                Entry::Occupied(_) => assert!(twin.contains(&text)),
            }
            if turn % 1000 == 0 {
                let mut all = BTreeSet::new();
                map.for_each(&mut |found| assert!(all.insert(found.key.to_vec()), "a member twice"));
                assert!(all == twin, "seed {seed} turn {turn}");
                let mut scanned = BTreeSet::new();
                let mut at = Some(0);
                while let Some(place) = at {
                    at = map.scan(&SEED, place, &mut |found| {
                        scanned.insert(found.key.to_vec());
                    });
                }
                assert!(scanned == twin);
            }
        }
        assert_eq!(map.len(), twin.len() as u64);
    }
}
