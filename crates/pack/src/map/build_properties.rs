//! Maps that are built, and maps whose entries come in order, against those that grew.
use super::*;
use crate::map::{Entry, Keys, Members, Notes};
use crate::model::seeds;
use base::hash::Seed;
use base::random::Random;
use std::collections::BTreeMap;

const SEED: Seed = Seed::new(5, 6);

type Twin = BTreeMap<Vec<u8>, Vec<u8>>;

fn twin(random: &mut Random) -> Twin {
    let count = [0, 1, 40, 200, 3000, 30_000][random.below(6) as usize];
    let len = [3, 40, 400][random.below(3) as usize];
    let pair = |n: u64| (format!("key:{n}").into_bytes(), vec![b'v'; random.below(len) as usize]);
    (0..count).map(pair).collect()
}

/// The keys in the order of their places.
fn in_order(twin: &Twin) -> Vec<(Hash, &Vec<u8>)> {
    let mut all: Vec<(Hash, &Vec<u8>)> = twin.keys().map(|key| (SEED.hash(key), key)).collect();
    all.sort_by_key(|(hash, _)| (hash.order(), hash.0));
    all
}

fn check(map: &Map<u64>, twin: &Twin) {
    assert_eq!(map.len(), twin.len() as u64);
    let mut places = Vec::new();
    map.for_each(&mut |found| {
        assert_eq!(twin.get(found.key).map(Vec::as_slice), Some(found.inline));
        places.push(SEED.hash(found.key).order());
    });
    assert_eq!(places.len(), twin.len());
    for (key, value) in twin {
        let found = map.find(SEED.hash(key), key).unwrap_or_else(|| panic!("{key:?} is lost"));
        assert_eq!((found.inline, found.outside.copied()), (&value[..], outside(value)));
    }
    let mut seen = 0;
    let mut from = Some(0);
    while let Some(at) = from {
        from = map.scan(&SEED, at, &mut |_| seen += 1);
    }
    assert_eq!(seen, twin.len(), "each leaf covers the places of its entries");
}

fn outside(value: &[u8]) -> Option<u64> {
    value.len().is_multiple_of(7).then_some(value.len() as u64)
}

fn edit(map: &mut Map<u64>, twin: &mut Twin, random: &mut Random) {
    for _ in 0..2000 {
        let key = format!("key:{}", random.below(4000)).into_bytes();
        let value = vec![b'w'; random.below(60) as usize];
        if random.below(3) == 0 {
            assert_eq!(map.remove(&SEED, SEED.hash(&key), &key).is_some(), twin.remove(&key).is_some());
            continue;
        }
        put(map, &key, &value, &mut ());
        twin.insert(key, value);
    }
    check(map, twin);
}

fn put(map: &mut Map<u64>, key: &[u8], value: &[u8], notes: &mut impl Notes<u64>) {
    match map.entry(&SEED, SEED.hash(key), key) {
        Entry::Vacant(entry) => entry.insert(0, value, outside(value).map(Shared::new), notes),
        Entry::Occupied(entry) => drop(entry.replace(0, value, outside(value).map(Shared::new), notes)),
    }
}

fn grown(twin: &Twin) -> Map<u64> {
    let mut map = Map::new();
    twin.iter().for_each(|(key, value)| put(&mut map, key, value, &mut ()));
    map
}

#[test]
fn a_map_that_is_built_is_the_one_that_grew_and_takes_edits_as_it_does() {
    for seed in seeds(24) {
        let mut random = Random::new(seed);
        let mut twin = twin(&mut random);
        let bytes = |(key, value): (&Vec<u8>, &Vec<u8>)| {
            MapBuilder::<u64, Keys>::entry_bytes(Name::from(key), value.len(), outside(value).is_some())
        };
        let fill = Fill::of::<Keys>(twin.iter().map(bytes));
        let mut builder = MapBuilder::new(fill);
        for (hash, key) in in_order(&twin) {
            let value = &twin[key];
            builder.push(hash, key, (0, value), outside(value).map(Shared::new));
        }
        let mut map = builder.finish();
        assert_eq!(map.is_one_leaf(), fill == Fill::OneLeaf);
        check(&map, &twin);
        let (built, grown) = (map.stats().allocated_bytes(), grown(&twin).stats().allocated_bytes());
        assert!(built <= grown + grown / 50 + 256, "{built} bytes, {grown} where it grew");
        let held = (map.clone(), twin.clone());
        edit(&mut map, &mut twin, &mut random);
        check(&held.0, &held.1);
    }
}

/// What a load tells of its keys.
struct InOrder;

impl Notes<u64> for InOrder {
    fn after_split(
        &mut self,
        leaf: crate::map::LeafNote,
        _: &mut dyn Iterator<Item = crate::map::Found<'_, u64>>,
    ) -> u64 {
        leaf.note
    }

    fn is_in_order(&self) -> bool {
        true
    }
}

#[test]
fn entries_that_come_in_order_fill_leaves_and_leave_no_room() {
    for seed in seeds(24) {
        let mut random = Random::new(seed);
        let mut twin = twin(&mut random);
        // Now and then some are there before.
        let mut map = Map::new();
        let before = if random.below(3) == 0 { twin.len() / 3 } else { 0 };
        twin.iter().take(before).for_each(|(key, value)| put(&mut map, key, value, &mut ()));
        for (_, key) in in_order(&twin) {
            put(&mut map, key, &twin[key], &mut InOrder);
        }
        map.seal_leaf(u32::MAX);
        check(&map, &twin);
        let (filled, grown) = (map.stats().allocated_bytes(), grown(&twin).stats().allocated_bytes());
        assert!(filled <= grown + grown / 20 + 256, "{filled} bytes, {grown} where it grew");
        edit(&mut map, &mut twin, &mut random);
    }
}

#[test]
fn entries_of_one_place_share_a_leaf_when_a_map_is_built() {
    let mut builder: MapBuilder<(), Members> = MapBuilder::new(Fill::ThreeQuarters);
    let names: Vec<String> = (0..700).map(|n| format!("{n}")).collect();
    // Hashes of the test's own, all of one place: the map only files them.
    names.iter().for_each(|name| builder.push(Hash(7 << 20), name, (0, &[]), None));
    let map = builder.finish();
    assert!(map.is_one_leaf() && map.len() == 700);
}
