//! The map against its naive twin, with clones held and checked, and every outside value accounted for.
use super::*;
use crate::code::simd;
use crate::memory::block;
use crate::memory::refs::REFS_MAX;
use crate::model::Entries;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const SEED: Seed = Seed::new(0x1234_5678_9ABC_DEF0, 0x0FED_CBA9_8765_4321);

/// An outside value that counts how many live.
#[derive(Debug)]
struct Counted(u64, Arc<AtomicI64>);

impl Counted {
    fn new(value: u64, live: &Arc<AtomicI64>) -> Counted {
        live.fetch_add(1, Ordering::Relaxed);
        Counted(value, live.clone())
    }
}

impl Clone for Counted {
    fn clone(&self) -> Counted {
        Counted::new(self.0, &self.1)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

type Content = BTreeMap<Vec<u8>, (u8, Vec<u8>, Option<u64>)>;

fn content(map: &Map<Counted>) -> Content {
    let mut all = BTreeMap::new();
    map.for_each(&mut |found| {
        let value = (found.meta, found.inline.to_vec(), found.outside.map(|counted| counted.0));
        assert!(all.insert(found.key.to_vec(), value).is_none(), "a key twice");
    });
    all
}

/// Every entry lies in the leaf that covers its place, and no leaf is over its limits unless it must be.
fn check(map: &Map<Counted>) {
    let (mut at, mut entries) = (Some(0), 0);
    while let Some(from) = at {
        let Some((path, range)) = map.tree.seek(from) else { break };
        assert_eq!(range.first, from, "ranges follow each other");
        let leaf = map.tree.leaf(&path);
        let mut places = Vec::new();
        for slot in leaf.slots() {
            let hash = SEED.hash(leaf.parts(slot).name.bytes);
            assert!((range.first..=range.last).contains(&hash.order()));
            assert_eq!(leaf.find(hash.tag(), leaf.parts(slot).name), Some(slot));
            assert_eq!(leaf.slot(slot.index), slot);
            places.push(hash.order());
        }
        places.dedup();
        assert!(places.len() < 2 || !leaf.is_over(), "an oversize leaf of {} places", places.len());
        assert!(!places.is_empty() || map.tree.height() == 1, "an empty leaf");
        entries += leaf.count() as u64;
        at = range.last.checked_add(1);
    }
    assert_eq!(entries, map.len());
}

/// Puts a value under `key`, whatever was there.
fn put(map: &mut Map<Counted>, key: &[u8], inline: &[u8], outside: Option<Shared<Counted>>) {
    match map.entry(&SEED, SEED.hash(key), key) {
        Entry::Vacant(entry) => entry.insert(0, inline, outside, &mut ()),
        Entry::Occupied(entry) => drop(entry.replace(0, inline, outside, &mut ())),
    }
}

/// Takes some entries out of a leaf of both.
fn cull(map: &mut Map<Counted>, model: &mut Entries, random: &mut Random) {
    let Some(mut cull) = map.cull(random.next_u64() as u32) else { return };
    let count = cull.crowd().len();
    let goes = random.below(4).min(count as u64);
    for gone in 0..goes {
        let count = count as u64 - gone;
        let index = random.below(count) as usize;
        let found = cull.at(index);
        assert_eq!(SEED.hash(found.key).tag(), cull.crowd().tag(index));
        assert_eq!(found.meta, cull.crowd().meta(index));
        let (key, meta, inline) = (found.key.to_vec(), found.meta, found.inline.to_vec());
        let room = cull.room_bytes();
        let (outside, bytes) = cull.remove(index);
        let surely_in_leaf = if inline.len() > Keys::PAYLOAD_INSIDE_MAX / 4 * 3 { 0 } else { inline.len() };
        assert!(bytes > key.len() + inline.len());
        assert!(cull.room_bytes() >= room + key.len() + surely_in_leaf);
        let removed = (meta, inline, outside.map(|counted| counted.0));
        assert_eq!(Some(removed), model.remove(&key));
    }
    let kept = random.below(600) as usize;
    let range = cull.crowd().leaf_note().range;
    cull.finish(kept);
    let Some(after) = map.cull(range.first).filter(|after| after.crowd().leaf_note().range == range) else {
        return;
    };
    // A growth step may stay too.
    assert!(goes == 0 || after.room_bytes() <= kept + 300, "{} bytes stay of {kept}", after.room_bytes());
}

/// Writes a payload of the old length, or a longer one, where the old one is, if that is possible.
fn overwrite(entry: &mut Occupied<'_, Counted>, model: &mut Entries, key: &[u8], meta: u8) {
    let payload = vec![meta; entry.inline().len() + usize::from(meta & 1)];
    let fits = entry.outside().is_none() && meta & 1 == 0;
    assert_eq!(entry.overwrite(meta, &payload), fits);
    if fits {
        model.insert(key.to_vec(), (meta, payload, None));
    }
}

/// A key of those that there are, and how long a payload it gets: of any length, or nearly always of the same
/// one, as leaves without lengths have them.
fn key_and_len(random: &mut Random, alike: bool) -> (Vec<u8>, u64) {
    let n = random.below(3000);
    if alike && random.below(90) > 0 {
        return (format!("key:{n:04}").into_bytes(), 12);
    }
    let key =
        if n.is_multiple_of(50) { vec![b'k'; 200 + n as usize] } else { format!("key:{n}").into_bytes() };
    // Payloads around the length from which they lie in a block of their own, too.
    let longest = [700, 40, 40, 2000, 40, 40, 40][n as usize % 7];
    (key, random.below(longest))
}

/// How long entries are in a run, and whether there are more and more of them.
#[derive(Clone, Copy)]
struct Turn {
    alike: bool,
    growing: bool,
}

/// One random edit of both.
fn step(
    map: &mut Map<Counted>,
    model: &mut Entries,
    random: &mut Random,
    live: &Arc<AtomicI64>,
    Turn { alike, growing }: Turn,
) {
    let (key, len) = key_and_len(random, alike);
    let inline: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
    let meta = random.below(128) as u8;
    let is_outside = random.below(2) == 0 && (!alike || random.below(30) == 0);
    let value = is_outside.then(|| random.next_u64());
    let outside = value.map(|value| Shared::new(Counted::new(value, live)));
    let removes = random.below(10) < if growing { 2 } else { 7 };
    let old = model.get(&key).cloned();
    match map.entry(&SEED, SEED.hash(&key), &key) {
        Entry::Vacant(entry) => {
            assert!(old.is_none(), "a key was lost");
            if !removes {
                entry.insert(meta, &inline, outside, &mut ());
                model.insert(key, (meta, inline, value));
            }
        }
        Entry::Occupied(entry) if removes => {
            let removed = entry.remove();
            let removed = (removed.meta, removed.inline, removed.outside.map(|counted| counted.0));
            assert_eq!(Some(removed), model.remove(&key));
        }
        Entry::Occupied(mut entry) => {
            let (old_meta, old_inline, old_value) = old.expect("a key came from nowhere");
            assert_eq!((entry.meta(), entry.inline()), (old_meta, &old_inline[..]));
            match random.below(6) {
                5 => overwrite(&mut entry, model, &key, meta),
                0 => {
                    let gone = entry.replace(meta, &inline, outside, &mut ());
                    assert_eq!(gone.map(|counted| counted.0), old_value);
                    model.insert(key, (meta, inline, value));
                }
                1 => {
                    entry.replace_inline(meta, &inline, &mut ());
                    model.insert(key, (meta, inline, old_value));
                }
                2 => {
                    entry.set_meta(meta);
                    entry.inline_mut().fill(meta);
                    model.insert(key, (meta, vec![meta; old_inline.len()], old_value));
                }
                3 => {
                    let shared = entry.share_outside();
                    assert_eq!(shared.as_ref().map(|counted| counted.0), old_value);
                    // Further edits of either must not show in the other.
                    let other = format!("key:{}", random.below(3000) / 50 * 50 + 1).into_bytes();
                    put(map, &other, &inline, shared);
                    model.insert(other, (0, inline, old_value));
                }
                _ => {
                    let new = entry.outside_mut().map(|counted| {
                        counted.0 += 1;
                        counted.0
                    });
                    assert_eq!(new, old_value.map(|value| value.wrapping_add(1)));
                    model.insert(key, (old_meta, old_inline, new));
                }
            }
        }
    }
}

#[test]
fn random_edits_agree_with_the_twin_and_clones_stay() {
    for seed in 0..8 {
        let live = Arc::new(AtomicI64::new(0));
        let mut random = Random::new(seed);
        let alike = seed % 2 == 1;
        let mut map: Map<Counted> = Map::new();
        let mut model = Entries::new();
        let mut held: Vec<(Map<Counted>, Content)> = Vec::new();
        for turn in 0..24_000 {
            let growing = (turn / 6000) % 2 == 0;
            step(&mut map, &mut model, &mut random, &live, Turn { alike, growing });
            if turn % 20 == 0 {
                cull(&mut map, &mut model, &mut random);
            }
            assert_eq!(map.len(), model.len() as u64);
            if turn % 400 == 0 {
                check(&map);
                assert!(content(&map) == model, "seed {seed} turn {turn}");
                held.push((map.clone(), model.clone()));
            }
            if held.len() > 3 {
                let (old, then) = held.swap_remove(random.below(3) as usize);
                assert!(content(&old) == then, "a held clone changed: seed {seed} turn {turn}");
            }
        }
        drop((map, held));
        assert_eq!(live.load(Ordering::Relaxed), 0, "outside values leak: seed {seed}");
    }
}

#[test]
fn a_leaf_keeps_lengths_from_the_first_entry_that_is_not_as_long_until_it_is_split() {
    let mut map: Map<()> = Map::new();
    let put =
        |map: &mut Map<()>, key: &str, payload: &[u8]| match map.entry(&SEED, SEED.hash(key.as_bytes()), key)
        {
            Entry::Vacant(entry) => entry.insert(0, payload, None, &mut ()),
            Entry::Occupied(entry) => drop(entry.replace(0, payload, None, &mut ())),
        };
    let key = |n: u64| format!("k{n:03}");
    (0..40).for_each(|n| put(&mut map, &key(n), b"value"));
    let bytes = |map: &Map<()>| map.stats().tagged.used_bytes as usize;
    let groups = 3 * simd::LANES;
    let entries = 40 * (2 + 4 + 5);
    assert_eq!(bytes(&map), block::HEADER_BYTES + 16 + groups + entries, "tags alone");
    // A value of another length that goes again leaves the lengths that it has brought.
    put(&mut map, &key(7), b"longer");
    assert_eq!(bytes(&map), block::HEADER_BYTES + 12 + 2 * groups + entries + 1);
    put(&mut map, &key(7), b"value");
    assert_eq!(bytes(&map), block::HEADER_BYTES + 12 + 2 * groups + entries);
    (40..60).for_each(|n| put(&mut map, &key(n), b"value"));
    let all = map.stats();
    assert_eq!(all.tagged.nodes, 2);
    let most_groups = 5 * simd::LANES;
    assert!(bytes(&map) <= 2 * (block::HEADER_BYTES + 16) + most_groups + 60 * 11, "halves without lengths");
    (0..60).for_each(|n| {
        let found = map.find(SEED.hash(key(n).as_bytes()), &key(n)).expect("it was put");
        assert_eq!(found.inline, b"value");
    });
}

#[test]
fn a_long_payload_lies_in_a_block_of_its_own_until_it_is_short() {
    let mut map: Map<u64> = Map::new();
    let mut put = |len: usize| {
        let payload = vec![len as u8; len];
        match map.entry(&SEED, SEED.hash(b"k"), b"k") {
            Entry::Vacant(entry) => entry.insert(5, &payload, None, &mut ()),
            Entry::Occupied(entry) => drop(entry.replace(5, &payload, None, &mut ())),
        }
        let found = map.find(SEED.hash(b"k"), b"k").expect("it was put");
        assert_eq!((found.meta, found.inline, found.outside), (5, &payload[..], None));
        let all = map.stats();
        let bytes = map.entry_bytes(SEED.hash(b"k"), b"k").expect("it was put");
        assert_eq!(bytes, all.tagged.allocated_bytes + all.outside.allocated_bytes);
        assert!(bytes > len as u64);
        all.outside.nodes == 1
    };
    let limit = Keys::PAYLOAD_INSIDE_MAX;
    let is_outside = [limit, limit + 1, 5000, limit, limit * 3 / 4 + 1, limit * 3 / 4, limit].map(&mut put);
    assert_eq!(is_outside, [false, true, true, true, true, false, false]);
}

#[test]
fn every_key_is_found_and_no_other() {
    let mut map: Map<u64> = Map::new();
    for n in 0..50_000u64 {
        let key = format!("user:{n}");
        let Entry::Vacant(entry) = map.entry(&SEED, SEED.hash(key.as_bytes()), key.as_bytes()) else {
            panic!("{key} is there before it came");
        };
        entry.insert((n % 128) as u8, &n.to_le_bytes(), (n % 10 == 0).then(|| Shared::new(n)), &mut ());
    }
    for n in 0..50_000u64 {
        let key = format!("user:{n}");
        let found = map.find(SEED.hash(key.as_bytes()), key.as_bytes()).expect("it is there");
        assert_eq!((found.key, found.meta), (key.as_bytes(), (n % 128) as u8));
        assert_eq!(
            (found.inline, found.outside.copied()),
            (&n.to_le_bytes()[..], (n % 10 == 0).then_some(n))
        );
        let other = format!("user:{}", n + 50_000);
        assert!(map.find(SEED.hash(other.as_bytes()), other.as_bytes()).is_none());
    }
}

#[test]
fn removing_everything_leaves_no_leaf() {
    let mut map: Map<()> = Map::new();
    let keys: Vec<String> = (0..20_000).map(|n| format!("k{n}")).collect();
    for key in &keys {
        let Entry::Vacant(entry) = map.entry(&SEED, SEED.hash(key.as_bytes()), key.as_bytes()) else {
            panic!()
        };
        entry.insert(0, b"v", None, &mut ());
    }
    let full = map.stats();
    for key in &keys[..19_000] {
        assert!(map.remove(&SEED, SEED.hash(key.as_bytes()), key.as_bytes()).is_some());
    }
    let sparse = map.stats();
    assert!(sparse.tagged.nodes * 8 < full.tagged.nodes, "{sparse:?} after {full:?}: the tree rots");
    for key in &keys[19_000..] {
        assert!(map.remove(&SEED, SEED.hash(key.as_bytes()), key.as_bytes()).is_some());
    }
    assert_eq!(map.stats(), Stats::default());
}

#[test]
fn a_leaf_keeps_the_order_of_insertion() {
    let mut map: Map<()> = Map::new();
    let insert = |map: &mut Map<()>, key: &str, value: &str| match map.entry(
        &SEED,
        SEED.hash(key.as_bytes()),
        key.as_bytes(),
    ) {
        Entry::Vacant(entry) => entry.insert(0, value.as_bytes(), None, &mut ()),
        Entry::Occupied(entry) => entry.replace_inline(0, value.as_bytes(), &mut ()),
    };
    let keys: Vec<String> = (0..30).map(|n| format!("field{n}")).collect();
    keys.iter().for_each(|key| insert(&mut map, key, "1"));
    insert(&mut map, "field7", "a much longer value than before");
    map.remove(&SEED, SEED.hash(b"field3"), b"field3");
    insert(&mut map, "field3", "back again, at the end");
    let mut seen = Vec::new();
    map.for_each(&mut |found| seen.push(String::from_utf8(found.key.to_vec()).unwrap()));
    let mut wanted = keys.clone();
    wanted.remove(3);
    wanted.push("field3".into());
    assert_eq!(seen, wanted);
}

#[test]
fn a_scan_sees_what_stays_whatever_comes_and_goes() {
    let mut random = Random::new(9);
    let mut map: Map<Counted> = Map::new();
    let live = Arc::new(AtomicI64::new(0));
    let stays: Vec<Vec<u8>> = (0..2000).map(|n| format!("stays:{n}").into_bytes()).collect();
    for key in &stays {
        let Entry::Vacant(entry) = map.entry(&SEED, SEED.hash(key), key) else { panic!() };
        entry.insert(1, b"", None, &mut ());
    }
    for round in 0..4u64 {
        let mut seen = BTreeMap::new();
        let mut model: Entries = content(&map);
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            cursor = map.scan(&SEED, from, &mut |found| {
                assert!(SEED.hash(found.key).order() >= from);
                *seen.entry(found.key.to_vec()).or_insert(0) += 1;
            });
            for _ in 0..60 {
                step(
                    &mut map,
                    &mut model,
                    &mut random,
                    &live,
                    Turn { alike: round % 3 == 2, growing: round % 2 == 0 },
                );
            }
        }
        assert!(stays.iter().all(|key| seen.contains_key(key)), "round {round}");
    }
}

/// Removes what its inline payload (a little-endian time) says is due.
struct Due {
    now: u64,
    gone: Vec<Vec<u8>>,
    next: u64,
}

impl Sweeper<Counted> for Due {
    fn visit(&mut self, found: Found<'_, Counted>) -> Sweep {
        let due = u64::from_le_bytes(found.inline.try_into().unwrap());
        if due <= self.now {
            return Sweep::Remove;
        }
        self.next = self.next.min(due);
        Sweep::Keep
    }

    fn removed(&mut self, key: &[u8], removed: Removed<Counted>) {
        assert!(removed.outside.is_some());
        self.gone.push(key.to_vec());
    }

    fn renote(&mut self, range: OrderRange) -> u64 {
        assert!(range.first <= range.last);
        std::mem::replace(&mut self.next, u64::MAX)
    }
}

#[test]
fn sweeps_remove_what_is_due_and_nothing_else() {
    let live = Arc::new(AtomicI64::new(0));
    let mut random = Random::new(21);
    let mut map: Map<Counted> = Map::new();
    let mut due: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for n in 0..20_000u64 {
        let (key, at) = (format!("session:{n}").into_bytes(), random.below(1000) + 1);
        let Entry::Vacant(mut entry) = map.entry(&SEED, SEED.hash(&key), &key) else { panic!() };
        let note = entry.leaf().note.min(at);
        entry.set_note(note);
        entry.insert(0, &at.to_le_bytes(), Some(Shared::new(Counted::new(n, &live))), &mut ());
        due.insert(key, at);
    }
    let snapshot = map.clone();
    for now in (0..=1000).step_by(100) {
        let mut sweeper = Due { now, gone: Vec::new(), next: u64::MAX };
        for quarter in 0..4u32 {
            let range = OrderRange { first: quarter << 30, last: (quarter << 30) + ((1 << 30) - 1) };
            let mut rest = Some(range);
            while let Some(range) = rest {
                rest = map.sweep(range, now, 1 + random.below(300), &mut sweeper);
            }
        }
        sweeper.gone.sort();
        let wanted: Vec<Vec<u8>> =
            due.iter().filter(|(_, at)| **at <= now).map(|(key, _)| key.clone()).collect();
        assert_eq!(sweeper.gone.len(), wanted.len());
        assert!(sweeper.gone == wanted, "at {now}");
        due.retain(|_, at| *at > now);
        assert_eq!(map.len(), due.len() as u64);
    }
    assert!(map.is_empty() && snapshot.len() == 20_000);
    drop((map, snapshot));
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

/// Removes `keys` of 2,000 after giving the leaf of one of them the note 5, where all others have 77.
fn notes_after_removing(keys: std::ops::Range<u64>) -> Vec<u64> {
    let mut map: Map<()> = Map::new();
    for n in 0..2000u64 {
        let key = format!("n{n}");
        let Entry::Vacant(mut entry) = map.entry(&SEED, SEED.hash(key.as_bytes()), key.as_bytes()) else {
            panic!()
        };
        assert_eq!(entry.leaf().note, if n == 0 { u64::MAX } else { 77 });
        entry.set_note(77);
        entry.insert(0, b"", None, &mut ());
    }
    for n in keys {
        let key = format!("n{n}");
        let Entry::Occupied(mut entry) = map.entry(&SEED, SEED.hash(key.as_bytes()), key.as_bytes()) else {
            panic!()
        };
        if n == 500 {
            entry.set_note(5);
        }
        entry.remove();
    }
    let mut notes = Vec::new();
    map.tree.for_each_leaf(&mut |leaf| notes.push(leaf.note()));
    notes
}

#[test]
fn notes_are_inherited_by_both_halves_and_a_merge_keeps_only_what_both_have() {
    assert!(notes_after_removing(501..1999).iter().all(|note| *note == 77));
    assert_eq!(notes_after_removing(0..1990), [0]);
}

#[test]
fn keys_of_one_place_make_an_oversize_leaf() {
    let mut leaf: Tagged<()> = Tagged::new();
    let keys: Vec<String> = (0..Keys::COUNT_MAX * 3).map(|n| format!("same{n:03}")).collect();
    for key in &keys {
        leaf.push(&Draft { tag: 7, meta: 0, name: key.into(), inline: b"x", birth: None }, None);
    }
    assert!(leaf.is_over() && leaf.split(|_| 5).is_none());
    for key in &keys {
        let slot = leaf.find(7, key.into()).expect("found among equals");
        assert_eq!(leaf.parts(slot).name.bytes, key.as_bytes());
    }
    let (cut, right) =
        leaf.split(|name| u32::from(name.bytes == keys[9].as_bytes())).expect("one has another place");
    assert_eq!((cut, right.count(), leaf.count()), (1, 1, Keys::COUNT_MAX * 3 - 1));
}

#[test]
fn random_draws_reach_every_entry_about_as_often() {
    let mut map: Map<()> = Map::new();
    for n in 0..1000 {
        let key = format!("r{n}");
        let Entry::Vacant(entry) = map.entry(&SEED, SEED.hash(key.as_bytes()), key.as_bytes()) else {
            panic!()
        };
        entry.insert(0, b"", None, &mut ());
    }
    let mut random = Random::new(1);
    let mut drawn: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    for _ in 0..100_000 {
        *drawn.entry(map.random(&mut random).unwrap().key.to_vec()).or_default() += 1;
    }
    assert_eq!(drawn.len(), 1000);
    // 100 each on the average, with a deviation of 10: six of them either way.
    assert!(drawn.values().all(|times| (40..160).contains(times)), "{:?}", drawn.values().max());
    assert!(Map::<()>::new().random(&mut random).is_none());
}

#[test]
fn entries_of_every_length_are_kept() {
    let mut map: Map<()> = Map::new();
    let lengths = [
        0, 1, 120, 121, 127, 128, 129, 250, 251, 252, 253, 254, 255, 256, 300, 5000, 16_383, 16_384, 65_530,
        70_000,
    ];
    for (n, len) in lengths.iter().enumerate() {
        for side in 0..2 {
            let (key_len, inline_len) = if side == 0 { (*len, 3) } else { (8, *len) };
            let mut key = vec![b'0' + n as u8; key_len];
            key.extend_from_slice(&[side]);
            let Entry::Vacant(entry) = map.entry(&SEED, SEED.hash(&key), &key) else {
                panic!("{len} {side}")
            };
            entry.insert(5, &vec![n as u8; inline_len], None, &mut ());
        }
    }
    for (n, len) in lengths.iter().enumerate() {
        for side in 0..2 {
            let (key_len, inline_len) = if side == 0 { (*len, 3) } else { (8, *len) };
            let mut key = vec![b'0' + n as u8; key_len];
            key.extend_from_slice(&[side]);
            let found = map.find(SEED.hash(&key), &key).expect("it is there");
            assert_eq!((found.meta, found.inline), (5, &vec![n as u8; inline_len][..]));
            assert!(map.entry_bytes(SEED.hash(&key), &key).unwrap() >= (key_len + inline_len + 4) as u64);
        }
    }
}

/// What the byte of each key should be.
type Bytes = BTreeMap<Vec<u8>, u8>;

/// New entries begin with this byte of uses.
struct Births(Option<u8>);

impl<V> Notes<V> for Births {
    fn after_split(&mut self, leaf: LeafNote, _: &mut dyn Iterator<Item = Found<'_, V>>) -> u64 {
        leaf.note
    }
    fn birth(&self) -> Option<u8> {
        self.0
    }
}

/// Puts an entry of some size, and what its byte is expected to be.
fn put_used(map: &mut Map<Counted>, twin: &mut BTreeMap<Vec<u8>, u8>, key: &[u8], len: usize, birth: u8) {
    let inline = vec![7; len];
    match map.entry(&SEED, SEED.hash(key), key) {
        Entry::Occupied(mut entry) => {
            entry.touch(|old| old.wrapping_mul(3));
            let _ = entry.replace(1, &inline, None, &mut Births(Some(birth)));
            twin.entry(key.to_vec()).and_modify(|byte| *byte = byte.wrapping_mul(3));
        }
        Entry::Vacant(entry) => {
            entry.insert(1, &inline, None, &mut Births(Some(birth)));
            twin.insert(key.to_vec(), birth);
        }
    }
}

fn uses_of(map: &Map<Counted>) -> BTreeMap<Vec<u8>, u8> {
    let mut all = BTreeMap::new();
    map.for_each(&mut |found| {
        let byte = map.use_of(SEED.hash(found.key), found.key).unwrap();
        all.insert(found.key.to_vec(), byte);
    });
    all
}

#[test]
fn every_entry_keeps_its_byte_of_uses_through_all_edits_and_clones_keep_theirs() {
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let (mut map, mut twin): (Map<Counted>, Bytes) = (Map::new(), Bytes::new());
        let mut held: Option<(Map<Counted>, Bytes)> = None;
        // Values that make lengths of one byte, of two, and leaves of few entries.
        let longest = [20, 400, 3000][seed as usize % 3];
        for step in 0..6000 {
            let key = format!("k{}", random.below(700)).into_bytes();
            let hash = SEED.hash(&key);
            match random.below(9) {
                8 => {
                    let Some(mut cull) = map.cull(hash.order()) else { continue };
                    let count = cull.crowd().len();
                    if count > 1 {
                        let index = random.below(count as u64) as usize;
                        let (key, byte) = (cull.at(index).key.to_vec(), cull.crowd().uses()[index]);
                        assert_eq!(twin.remove(&key), Some(byte));
                        cull.remove(index);
                        cull.finish(longest as usize);
                    }
                }
                0..3 => put_used(&mut map, &mut twin, &key, random.below(longest) as usize, step as u8),
                3..5 => {
                    assert_eq!(map.remove(&SEED, hash, &key).is_some(), twin.remove(&key).is_some());
                }
                5 => {
                    assert_eq!(map.evict(&SEED, hash, &key).is_some(), twin.remove(&key).is_some());
                }
                6 => {
                    let is_found = map.find_used(hash, &key, |old| old ^ 0x55).is_some();
                    let byte = twin.get_mut(&key);
                    assert_eq!(is_found, byte.is_some());
                    if let Some(byte) = byte {
                        let now = map.use_of(hash, &key).unwrap();
                        assert!(
                            now == *byte ^ 0x55 || (held.is_some() && now == *byte),
                            "seed {seed} {step}"
                        );
                        *byte = now;
                    }
                }
                _ if random.below(100) == 0 => {
                    if let Some((old, then)) = held.take() {
                        assert_eq!(uses_of(&old), then, "seed {seed}: a clone changed");
                    }
                    held = (random.below(2) == 0).then(|| (map.clone(), twin.clone()));
                }
                _ => {}
            }
            if step % 500 == 0 {
                check(&map);
                assert_eq!(uses_of(&map), twin, "seed {seed} step {step}");
            }
        }
    }
}

#[test]
fn a_column_of_uses_comes_with_a_touch_and_goes_with_an_entry_without() {
    let mut map: Map<Counted> = Map::new();
    let put = |map: &mut Map<Counted>, key: &[u8], birth| {
        let Entry::Vacant(entry) = map.entry(&SEED, SEED.hash(key), key) else { panic!() };
        entry.insert(0, b"v", None, &mut Births(birth));
    };
    (0..20).for_each(|n| put(&mut map, format!("k{n}").as_bytes(), None));
    let uses = |map: &Map<Counted>| map.crowd(0).unwrap().uses().to_vec();
    let bytes = |map: &Map<Counted>| map.stats().tagged.used_bytes;
    let plain = bytes(&map);
    assert!(uses(&map).is_empty());
    map.visit_uses(0, &mut |_| panic!("there are none"));
    assert!(map.find_used(SEED.hash(b"k3"), b"k3", |old| old + 9).is_some());
    assert_eq!(uses(&map).iter().map(|byte| u32::from(*byte)).sum::<u32>(), 9);
    assert_eq!(bytes(&map), plain + 20, "a byte an entry");
    assert_eq!(map.visit_uses(0, &mut |uses| uses.fill(5)), None);
    assert_eq!(map.use_of(SEED.hash(b"k7"), b"k7"), Some(5));
    put(&mut map, b"x", None);
    assert!(uses(&map).is_empty());
    put(&mut map, b"y", Some(3));
    assert_eq!((uses(&map).len(), uses(&map).last().copied()), (22, Some(3)));
}

#[test]
fn one_owner_more_than_can_be_counted_gets_a_leaf_and_outside_values_of_its_own() {
    let live = Arc::new(AtomicI64::new(0));
    let mut map: Map<Counted> = Map::new();
    for n in 0..6_u64 {
        let key = n.to_string().into_bytes();
        let Entry::Vacant(entry) = map.entry(&SEED, SEED.hash(&key), &key) else { panic!("a key twice") };
        let outside = (n % 2 == 0).then(|| Shared::new(Counted::new(n, &live)));
        entry.insert(1, b"inline", outside, &mut ());
    }
    let (path, _) = map.tree.seek(0).expect("there is a leaf");
    let first = map.tree.leaf(&path).slots().find_map(|slot| map.tree.leaf(&path).share_outside(slot));
    let first = first.expect("there are outside values");
    first.pretend_owners(REFS_MAX - 2);
    map.tree.leaf(&path).pretend_owners(REFS_MAX - 1);
    let copy = map.clone();
    map.tree.leaf(&path).pretend_owners(0_u32.wrapping_sub(REFS_MAX - 1));
    first.pretend_owners(0_u32.wrapping_sub(REFS_MAX - 2));
    drop(first);
    assert_eq!(
        live.load(Ordering::Relaxed),
        4,
        "of one value there was one owner too many, the others are shared"
    );
    let expected = content(&map);
    assert_eq!(content(&copy), expected);
    drop(map);
    check(&copy);
    assert_eq!((content(&copy), live.load(Ordering::Relaxed)), (expected, 3));
    drop(copy);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

#[test]
fn a_map_is_let_go_of_leaf_by_leaf_and_what_a_clone_holds_stays() {
    let (live, mut map) = (Arc::default(), Map::new());
    let fill = |map: &mut Map<Counted>, keys: std::ops::Range<u64>| {
        for n in keys {
            put(map, n.to_string().as_bytes(), b"text", Some(Shared::new(Counted::new(n, &live))));
        }
    };
    let left = |map: Map<Counted>| {
        let mut counts = vec![live.load(Ordering::Relaxed)];
        map.let_go(&mut || counts.push(live.load(Ordering::Relaxed)));
        counts
    };
    fill(&mut map, 0..20_000);
    assert_eq!(left(map.clone()), [20_000], "another has all of it");
    let (before, kept) = (map.clone(), content(&map));
    fill(&mut map, 0..20_000);
    let counts = left(map);
    assert_eq!((counts.first(), counts.last()), (Some(&40_000), Some(&20_000)));
    assert!(counts.windows(2).all(|pair| (0..=500).contains(&(pair[0] - pair[1]))), "a leaf at a time");
    assert_eq!(content(&before), kept);
    check(&before);
    let counts = left(before);
    assert_eq!((counts.len() > 40, counts.last()), (true, Some(&0)));
    assert_eq!(left(Map::new()), [0]);
    let mut small = Map::new();
    fill(&mut small, 0..3);
    assert_eq!(left(small), [3]);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}
