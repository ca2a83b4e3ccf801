//! The map by hash against a tree of the standard library: each four bytes of the input are an edit of one of
//! two thousand keys. A clone is held and compared in the end. Values outside count themselves, so that one
//! lost or dropped twice is seen.
use base::hash::Seed;
use pack::map::{Entry, Found, Map, Shared};
use std::collections::BTreeMap;
use std::rc::Rc;

const SEED: Seed = Seed::new(11, 12);

/// An entry as the test keeps it: its meta bits, the bytes inside the leaf, and the value outside.
type Value = (u8, Vec<u8>, Option<u16>);
type Twin = BTreeMap<Vec<u8>, Value>;
/// A value outside: counted by the other owner of the `Rc`.
type Outside = (u16, Rc<()>);

pub(super) fn run(data: &[u8]) {
    let live = Rc::new(());
    let (mut map, mut twin): (Map<Outside>, Twin) = (Map::new(), Twin::new());
    let mut held = (map.clone(), twin.clone());
    for edit in data.chunks_exact(4) {
        match edit[0] {
            0..=7 => held = (map.clone(), twin.clone()),
            _ => apply(edit, &mut map, &mut twin, &live),
        }
        assert_eq!(map.len(), twin.len() as u64);
    }
    compare(&map, &twin);
    compare(&held.0, &held.1);
    drop((map, held));
    assert_eq!(Rc::strong_count(&live), 1, "values outside are leaked");
}

/// Mostly short, so that leaves fill; some so long that a leaf's lengths widen.
fn inline(kind: u8, word: u16) -> Vec<u8> {
    match kind & 15 {
        0 => vec![kind; usize::from(word) % 5000],
        1..=3 => vec![kind; usize::from(word) % 400],
        _ => word.to_le_bytes().repeat(usize::from(kind >> 4)),
    }
}

fn apply(edit: &[u8], map: &mut Map<Outside>, twin: &mut Twin, live: &Rc<()>) {
    let word = u16::from_le_bytes([edit[2], edit[3]]);
    let key = format!("key:{}", word % 2000).into_bytes();
    let (meta, inline) = (edit[1] & 127, inline(edit[1], word));
    let outside = (edit[0] & 8 != 0).then_some(word);
    let shared = outside.map(|word| Shared::new((word, Rc::clone(live))));
    match map.entry(&SEED, SEED.hash(&key), &key) {
        Entry::Vacant(entry) => {
            assert!(!twin.contains_key(&key), "a key was lost");
            entry.insert(meta, &inline, shared, &mut ());
            twin.insert(key, (meta, inline, outside));
        }
        Entry::Occupied(mut entry) => {
            let old = twin.get(&key).cloned().expect("a key came from nowhere");
            match edit[0] % 5 {
                0 | 1 => {
                    let gone = entry.remove();
                    assert_eq!((gone.meta, gone.inline, gone.outside.map(|value| value.0)), old);
                    twin.remove(&key);
                }
                2 => {
                    drop(entry.replace(meta, &inline, shared, &mut ()));
                    twin.insert(key, (meta, inline, outside));
                }
                3 => {
                    entry.replace_inline(meta, &inline, &mut ());
                    twin.insert(key, (meta, inline, old.2));
                }
                _ => {
                    let changed = entry.outside_mut().map(|value| {
                        value.0 = word;
                        word
                    });
                    assert_eq!(changed.is_some(), old.2.is_some());
                    twin.insert(key, (old.0, old.1, changed));
                }
            }
        }
    }
}

fn compare(map: &Map<Outside>, twin: &Twin) {
    let mut all = Twin::new();
    map.for_each(&mut |found: Found<'_, Outside>| {
        let value = (found.meta, found.inline.to_vec(), found.outside.map(|value| value.0));
        assert!(all.insert(found.key.to_vec(), value).is_none(), "a key is there twice");
    });
    assert!(all == *twin, "the map and its twin differ");
    for (key, value) in twin {
        let found = map.find(SEED.hash(key), key).expect("what a walk finds a lookup finds");
        assert_eq!(found.inline, value.1);
    }
}
