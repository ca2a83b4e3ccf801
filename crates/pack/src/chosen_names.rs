//! Names that somebody has chosen so that they share one place: their leaf cannot be split, and must be right all the same, at a cost
//! that grows with their number and no faster.
use super::*;
use crate::form::Read;
use crate::index::Index;
use crate::placed::Entry as Scored;
use std::cell::Cell;

const SEED: Seed = Seed::new(7, 8);
/// A few times what a leaf may hold.
const CHOSEN: u64 = 5_000;

thread_local! {
    static HASHED: Cell<u64> = const { Cell::new(0) };
    static COMPARED: Cell<u64> = const { Cell::new(0) };
}

fn add_one(counter: &'static std::thread::LocalKey<Cell<u64>>) {
    counter.set(counter.get() + 1);
}

/// Members whose place is the same for all that do not begin with `o`.
struct Chosen;

impl Form for Chosen {
    const COUNT_MAX: usize = Members::COUNT_MAX;
    const BYTES_MAX: usize = Members::BYTES_MAX;
    const META: u8 = Members::META;

    fn is(entry: &[u8], name: Name<'_>) -> bool {
        add_one(&COMPARED);
        Members::is(entry, name)
    }
    fn read(entry: &[u8]) -> Read<'_> {
        Members::read(entry)
    }
    fn head_len(name: Name<'_>) -> usize {
        Members::head_len(name)
    }
    fn write_head(entry: &mut [u8], meta: u8, name: Name<'_>) -> usize {
        Members::write_head(entry, meta, name)
    }
    fn hash(seed: &Seed, name: Name<'_>) -> Hash {
        add_one(&HASHED);
        let hash = seed.hash(name.bytes);
        let place_bits = 0xFFFF_FFFF << 16;
        if name.bytes.starts_with(b"o") { hash } else { Hash(hash.0 & !place_bits | 0x1234_5678 << 16) }
    }
}

fn chosen(n: u64) -> Vec<u8> {
    format!("chosen:{n}").into_bytes()
}

fn insert(map: &mut Map<(), Chosen>, name: &[u8]) {
    let hash = Chosen::hash(&SEED, name.into());
    match map.entry(&SEED, hash, name) {
        Entry::Occupied(_) => panic!("{name:?} is there already"),
        Entry::Vacant(entry) => entry.insert(0, &[], None, &mut ()),
    }
}

fn is_there(map: &Map<(), Chosen>, name: &[u8]) -> bool {
    map.find(Chosen::hash(&SEED, name.into()), name).is_some()
}

/// A name is hashed for itself, and for each attempt to split a leaf, of which there is one for every 96 that come: n / 96 times,
/// half of that on the average. It is compared with those that share its tag, one in 256.
#[test]
fn names_at_one_place_are_all_found_and_cost_no_more_than_their_number() {
    let mut map: Map<(), Chosen> = Map::new();
    (0..1_000).for_each(|n| insert(&mut map, format!("other:{n}").as_bytes()));
    HASHED.set(0);
    COMPARED.set(0);
    (0..CHOSEN).for_each(|n| insert(&mut map, &chosen(n)));
    let attempts = CHOSEN / (Chosen::COUNT_MAX as u64 / 2);
    let hashed = HASHED.get() / if cfg!(debug_assertions) { 2 } else { 1 };
    assert!(hashed < CHOSEN * (attempts / 2 + 4), "{hashed} hashes for {CHOSEN} names");
    assert!(COMPARED.get() < CHOSEN * (CHOSEN / 256), "{} comparisons for {CHOSEN} names", COMPARED.get());
    assert!((0..CHOSEN).all(|n| is_there(&map, &chosen(n))) && !is_there(&map, &chosen(CHOSEN)));
    // Others at their side are not touched, and names that go leave the rest.
    (1_000..2_000).for_each(|n| insert(&mut map, format!("other:{n}").as_bytes()));
    for n in (0..CHOSEN).filter(|n| n % 3 != 0) {
        let name = chosen(n);
        assert!(map.remove(&SEED, Chosen::hash(&SEED, name.as_slice().into()), &name[..]).is_some());
    }
    assert!((0..CHOSEN).all(|n| is_there(&map, &chosen(n)) == (n % 3 == 0)));
    assert!((0..2_000).all(|n| is_there(&map, format!("other:{n}").as_bytes())));
    let (mut seen, mut at) = (0, Some(0));
    while let Some(from) = at {
        at = map.scan(&SEED, from, &mut |_| seen += 1);
    }
    assert_eq!(seen, map.len(), "a walk sees each once");
}

/// Found by trying: with the seed known, as it is here, keys that share all 32 bits of their place take 2^32 tries each; a few that share
/// 20 are enough to fill one leaf with neighbours that only the lower bits part.
#[test]
fn keys_that_share_most_of_their_place_are_parted_by_the_rest() {
    let mut map: Map<(), Members> = Map::new();
    let near =
        (0_u64..).map(|n| format!("key:{n}").into_bytes()).filter(|key| SEED.hash(key).order() >> 20 == 7);
    let near: Vec<Vec<u8>> = near.take(1_000).collect();
    for key in &near {
        let Entry::Vacant(entry) = map.entry(&SEED, SEED.hash(key), key) else { panic!("a key twice") };
        entry.insert(0, &[], None, &mut ());
    }
    assert!(near.iter().all(|key| map.find(SEED.hash(key), key).is_some()));
    assert!(map.stats().tagged.nodes >= 1_000 / Members::COUNT_MAX as u64);
}

#[test]
fn members_of_a_sorted_set_at_one_place_are_told_apart_by_their_scores() {
    let mut index = Index::of(Vec::new());
    for n in 0..CHOSEN {
        index.insert(Scored { place: 0x1234_5678, score: n as f64 });
        index.insert(Scored { place: (n as u32).wrapping_mul(0x9E37_79B9), score: -1.0 });
    }
    for n in 0..CHOSEN {
        let is_it = |score: f64| (score == n as f64).then_some(());
        assert!(index.find(0x1234_5678, is_it).is_some(), "score {n}");
    }
    (0..CHOSEN).for_each(|n| index.remove(Scored { place: 0x1234_5678, score: n as f64 }));
    assert_eq!(index.entries().len() as u64, CHOSEN);
}
