//! The sorted set against a map of the standard library: each six bytes of the input are an edit of one of
//! two thousand members. A clone is held and compared in the end.
use base::hash::Seed;
use pack::sorted::{Bound, End, Sorted};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

const SEED: Seed = Seed::new(21, 22);

type Twin = BTreeMap<Vec<u8>, f64>;

pub(super) fn run(data: &[u8]) {
    let (mut set, mut twin) = (Sorted::new(), Twin::new());
    let mut held = (set.clone(), twin.clone());
    for edit in data.chunks_exact(6) {
        match edit[0] {
            0..=3 => held = (set.clone(), twin.clone()),
            _ => apply(edit, &mut set, &mut twin),
        }
        assert_eq!(set.len(), twin.len() as u64);
    }
    compare(&set, &twin);
    compare(&held.0, &held.1);
}

/// Names that share beginnings, numbers among them; some so long that few fit a leaf.
fn member(kind: u8, word: u16) -> Vec<u8> {
    match kind % 8 {
        0 => vec![b'x'; usize::from(word) % 3000],
        1 => word.to_string().into_bytes(),
        2 => format!("field:{:07}", word % 2000).into_bytes(),
        3 => word.to_le_bytes().to_vec(),
        _ => format!("user:{}", word % 2000).into_bytes(),
    }
}

fn score(kind: u8, word: u16) -> f64 {
    match kind % 8 {
        0 => 0.0,
        1 => -0.0,
        2 => f64::from(word) / 100.0,
        3 => f64::from(word).sqrt(),
        4 => [f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE][usize::from(word % 4)],
        5 => f64::from(word % 4),
        6 => -f64::from(word) * 1e12,
        _ => f64::from(word),
    }
}

fn apply(edit: &[u8], set: &mut Sorted, twin: &mut Twin) {
    let member = member(edit[1], u16::from_le_bytes([edit[2], edit[3]]));
    let score = score(edit[0] / 16, u16::from_le_bytes([edit[4], edit[5]]));
    match edit[0] % 8 {
        0 | 1 => {
            let expected = twin.remove(&member).map(f64::to_bits);
            assert_eq!(set.remove(&SEED, &member).map(f64::to_bits), expected);
        }
        2 => {
            let (from, to) = (set.rank_at(&Bound::least(score)), set.rank_at(&Bound::greatest(score)));
            assert_eq!(to - from, twin.values().filter(|other| **other == score).count() as u64);
            set.remove_range(&SEED, from, to - from);
            twin.retain(|_, other| *other != score);
        }
        _ => {
            let old = set.update(&SEED, &member, |_| Some(score));
            assert_eq!(old.map(f64::to_bits), twin.insert(member, score).map(f64::to_bits));
        }
    }
}

fn compare(set: &Sorted, twin: &Twin) {
    let mut expected: Vec<(f64, &Vec<u8>)> = twin.iter().map(|(member, score)| (*score, member)).collect();
    expected.sort_by(|a, b| a.0.partial_cmp(&b.0).expect("no NaN").then_with(|| a.1.cmp(b.1)));
    let mut rank = 0;
    set.visit(0, End::Tail, &mut |entry| {
        let (score, member) = expected[rank];
        assert_eq!((entry.score.to_bits(), &entry.member.to_vec()), (score.to_bits(), member));
        let found = set.rank(&SEED, member).expect("what a walk finds a lookup finds");
        assert_eq!((found.0, found.1.to_bits()), (rank as u64, score.to_bits()));
        rank += 1;
        ControlFlow::Continue(())
    });
    assert_eq!(rank, expected.len());
    let (mut seen, mut cursor) = (0, Some(0));
    while let Some(from) = cursor {
        cursor = set.scan(&SEED, from, 10, &mut |_| seen += 1);
    }
    assert!(seen >= expected.len(), "a scan misses nobody");
}
