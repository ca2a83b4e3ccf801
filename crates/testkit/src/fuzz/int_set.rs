//! Sets of integers against a tree of the standard library: each three bytes of the input are an edit of a
//! member that lies near others, far from them, or at an end of the range. A clone is held and compared in
//! the end, and both are merged by cursors.
use super::integers::Integers;
use pack::int_set::IntSet;
use std::collections::BTreeSet;

pub(super) fn run(data: &[u8]) {
    let (mut set, mut twin) = (IntSet::new(), BTreeSet::new());
    let mut held = (set.clone(), twin.clone());
    let mut integers = Integers::default();
    for edit in data.chunks_exact(3) {
        let word = i64::from(u16::from_le_bytes([edit[1], edit[2]]));
        let value = integers.choose(edit[0] >> 4, word);
        match edit[0] & 15 {
            0 => held = (set.clone(), twin.clone()),
            1..=5 => assert_eq!(set.remove(value), twin.remove(&value)),
            _ => assert_eq!(set.insert(value), twin.insert(value)),
        }
        assert_eq!((set.len(), set.contains(value)), (twin.len() as u64, twin.contains(&value)));
    }
    compare(&set, &twin);
    compare(&held.0, &held.1);
    merge(&set, &twin, &held.0);
}

fn compare(set: &IntSet, twin: &BTreeSet<i64>) {
    let mut all = Vec::new();
    set.for_each(&mut |value| all.push(value));
    assert!(all.iter().eq(twin), "the set and its twin differ");
    assert_eq!((set.first(), set.last()), (twin.first().copied(), twin.last().copied()));
}

/// Every member of `other`, looked for by a cursor that only goes up.
fn merge(set: &IntSet, twin: &BTreeSet<i64>, other: &IntSet) {
    let mut cursor = set.cursor();
    other.for_each(&mut |value| {
        cursor.seek(value);
        assert_eq!(cursor.value(), twin.range(value..).next().copied());
    });
}
