//! Maps of integers against a tree of the standard library: each four bytes of the input are an edit of a key
//! that lies near others, far from them, or at an end of the range, with a value of some width. A clone is
//! held and compared in the end.
use super::integers::Integers;
use pack::int_map::IntMap;
use std::collections::BTreeMap;

pub(super) fn run(data: &[u8]) {
    let (mut map, mut twin) = (IntMap::new(), BTreeMap::new());
    let mut held = (map.clone(), twin.clone());
    let mut integers = Integers::default();
    for edit in data.as_chunks::<4>().0 {
        let word = i64::from(u16::from_le_bytes([edit[1], edit[2]]));
        let key = integers.choose(edit[0] >> 4, word);
        let value = i64::from(edit[3] as i8).wrapping_mul(1 << (word & 63));
        match edit[0] & 15 {
            0 => held = (map.clone(), twin.clone()),
            1..=5 => assert_eq!(map.remove(key), twin.remove(&key)),
            _ => assert_eq!(map.insert(key, value), twin.insert(key, value)),
        }
        assert_eq!((map.len(), map.get(key)), (twin.len() as u64, twin.get(&key).copied()));
    }
    compare(&map, &twin);
    compare(&held.0, &held.1);
}

fn compare(map: &IntMap, twin: &BTreeMap<i64, i64>) {
    let mut all = Vec::new();
    map.for_each(&mut |key, value| all.push((key, value)));
    assert!(
        all.iter().copied().eq(twin.iter().map(|(key, value)| (*key, *value))),
        "the map and its twin differ"
    );
    let (mut from, mut walked) = (Some(i64::MIN), Vec::new());
    while let Some(at) = from {
        from = map.scan(at, &mut |key, value| walked.push((key, value)));
    }
    assert_eq!(walked, all);
}
