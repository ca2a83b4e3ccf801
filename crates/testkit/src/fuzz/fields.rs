//! The map of a hash's fields against a tree of the standard library: each four bytes of the input are an
//! edit of one of two thousand fields. A clone is held and compared in the end.
use base::hash::Seed;
use pack::fields::{Field, Fields, field_of};
use pack::map::{Entry, Form, Map, Shared};
use std::collections::BTreeMap;

const SEED: Seed = Seed::new(13, 14);

/// An entry as the test keeps it: its meta bits, the bytes inside the leaf, and the value outside.
type Twin = BTreeMap<Vec<u8>, (u8, Vec<u8>, Option<u16>)>;

pub(super) fn run(data: &[u8]) {
    let (mut map, mut twin): (Map<u16, Fields>, Twin) = (Map::new(), Twin::new());
    let mut held = (map.clone(), twin.clone());
    for edit in data.chunks_exact(4) {
        match edit[0] {
            0..=7 => held = (map.clone(), twin.clone()),
            _ => apply(edit, &mut map, &mut twin),
        }
        assert_eq!(map.len(), twin.len() as u64);
    }
    compare(&map, &twin);
    compare(&held.0, &held.1);
}

fn name(word: u16) -> Vec<u8> {
    match word % 4 {
        0 => word.to_string().into_bytes(),
        1 => format!("-{word}000000").into_bytes(),
        2 if word % 64 == 2 => vec![b'f'; usize::from(word)],
        _ => format!("field:{word}").into_bytes(),
    }
}

fn apply(edit: &[u8], map: &mut Map<u16, Fields>, twin: &mut Twin) {
    let word = u16::from_le_bytes([edit[2], edit[3]]);
    let text = name(word % 2000);
    let inline =
        vec![edit[1]; if edit[1] & 15 == 0 { usize::from(word) % 600 } else { usize::from(edit[1] >> 3) }];
    let meta = edit[1] & Fields::META;
    let outside = (edit[0] & 8 != 0).then_some(word);
    let field = Field::new(&text);
    match map.entry(&SEED, SEED.hash(&text), field.name()) {
        Entry::Vacant(entry) => {
            assert!(!twin.contains_key(&text), "a field was lost");
            entry.insert(meta, &inline, outside.map(Shared::new), &mut ());
            twin.insert(text, (meta, inline, outside));
        }
        Entry::Occupied(mut entry) => {
            let old = twin.get_mut(&text).expect("a field came from nowhere");
            match edit[0] % 4 {
                0 => {
                    assert_eq!(entry.discard().map(|value| *value), old.2);
                    twin.remove(&text);
                }
                1 if entry.overwrite(meta, &inline) => (old.0, old.1) = (meta, inline),
                2 => {
                    entry.replace_inline(meta, &inline, &mut ());
                    (old.0, old.1) = (meta, inline);
                }
                _ => {
                    drop(entry.replace(meta, &inline, outside.map(Shared::new), &mut ()));
                    *old = (meta, inline, outside);
                }
            }
        }
    }
}

fn compare(map: &Map<u16, Fields>, twin: &Twin) {
    let mut all = Twin::new();
    map.for_each(&mut |found| {
        let mut text = Vec::new();
        field_of(found.meta, found.key).append_to(&mut text);
        let value = (found.meta & Fields::META, found.inline.to_vec(), found.outside.copied());
        assert!(all.insert(text, value).is_none(), "a field is there twice");
    });
    assert!(all == *twin, "the map and its twin differ");
    for text in twin.keys() {
        assert!(
            map.find(SEED.hash(text), Field::new(text).name()).is_some(),
            "what a walk finds a lookup finds"
        );
    }
}
