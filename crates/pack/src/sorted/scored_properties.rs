//! The scored leaf against a sorted vector: random edits, in a block and in a plain buffer, with members and
//! scores to many tastes.
use super::*;
use crate::model::seeds;
use base::random::Random;

type Twin = Vec<(f64, Vec<u8>)>;

/// Members that share beginnings, numbers behind them, and texts that only look like numbers.
pub(crate) fn any_member(random: &mut Random, taste: u64) -> Vec<u8> {
    let n = random.below(300);
    match taste {
        0 => format!("val-{n}").into_bytes(),
        1 => format!("field:{n:07}").into_bytes(),
        2 => n.to_string().into_bytes(),
        3 => (0..random.below(4)).map(|_| b'a' + random.below(3) as u8).collect(),
        4 => vec![b'x'; n as usize * 3],
        5 => ["", "0", "00", "-0", "-1", "9223372036854775808", "a", "a0", "a00", "a1"]
            [random.below(10) as usize]
            .into(),
        6 => format!("{}{n}", ["user:", "user:1", "user", "other:"][random.below(4) as usize]).into_bytes(),
        _ => (0..random.below(20)).map(|_| random.next_u64() as u8).collect(),
    }
}

pub(crate) fn any_score(random: &mut Random, taste: u64) -> f64 {
    match taste {
        0 => random.below(500) as f64,
        1 => 0.0,
        2 => random.below(10) as f64,
        3 => random.below(10_000) as f64 / 100.0,
        4 => random.unit_f64(),
        5 => [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY][random.below(6) as usize],
        6 => 1.7e12 + random.below(1 << 30) as f64,
        _ => (random.next_u64() as i64 >> random.below(64)) as f64,
    }
}

pub(crate) fn order(a: &(f64, Vec<u8>), b: &(f64, Vec<u8>)) -> Ordering {
    a.0.partial_cmp(&b.0).unwrap().then_with(|| a.1.cmp(&b.1))
}

fn check(bytes: &[u8], twin: &Twin, random: &mut Random) {
    let leaf = Scored::open(bytes);
    assert_eq!(leaf.count(), twin.len());
    let flat = |entry: Entry<'_>| (entry.score.to_bits(), entry.member.to_vec());
    let expected: Vec<_> = twin.iter().map(|(score, member)| (score.to_bits(), member.clone())).collect();
    assert_eq!(leaf.entries(0).map(flat).collect::<Vec<_>>(), expected);
    if twin.is_empty() {
        return;
    }
    let at = random.below(twin.len() as u64) as usize;
    assert!(leaf.entries(at).map(flat).eq(expected[at..].iter().cloned()));
    assert!(leaf.entries_down(at).map(flat).eq(expected[..=at].iter().rev().cloned()));
    let (score, member) = &twin[at];
    assert_eq!((leaf.find(*score, member), leaf.find_member(member)), (Some(at), Some(at)));
    assert_eq!(leaf.member(at).compare(member), Ordering::Equal);
}

fn check_absent(bytes: &[u8], twin: &Twin, score: f64, member: &[u8]) {
    let leaf = Scored::open(bytes);
    let place = |entry: &(f64, Vec<u8>)| (score, member.to_vec()) == *entry;
    assert_eq!(leaf.find(score, member), twin.iter().position(place));
    assert_eq!(leaf.find_member(member), twin.iter().position(|entry| entry.1 == member));
    for edge in [Edge::Least, Edge::Before(member), Edge::After(member), Edge::Greatest] {
        let before = |entry: &(f64, Vec<u8>)| {
            Bound { score, edge }.is_after(Entry { score: entry.0, member: Member::of(&entry.1) })
        };
        assert_eq!(leaf.position(score, edge), twin.partition_point(before), "{score} {edge:?} of {twin:?}");
    }
}

fn run<B: Buffer>(buffer: &mut B, seed: u64) {
    let random = &mut Random::new(seed);
    let mut twin = Twin::new();
    let (members, scores) = (random.below(8), random.below(8));
    for step in 0..400 {
        let foreign = random.below(8);
        let member = any_member(random, if step % 40 == 39 { foreign } else { members });
        let score = any_score(random, if step % 50 == 49 { foreign } else { scores });
        check_absent(buffer.bytes(), &twin, score, &member);
        match twin.iter().position(|entry| entry.1 == member) {
            Some(at) if random.below(2) == 0 => {
                let end = (at + 1 + random.below(4) as usize).min(twin.len());
                remove(buffer, at..end);
                twin.drain(at..end);
            }
            Some(at) => {
                let same = (twin[at].0, member);
                set_score(buffer, at, same.0);
            }
            None if twin.len() < 200 => {
                let entry = (score, member);
                let at = twin.partition_point(|other| order(other, &entry).is_lt());
                insert(buffer, at, score, &entry.1);
                twin.insert(at, entry);
            }
            None => {
                remove(buffer, 0..150);
                twin.drain(..150);
            }
        }
        check(buffer.bytes(), &twin, random);
    }
}

#[test]
fn random_edits_agree_with_a_sorted_vector() {
    for seed in seeds(50) {
        run(&mut Vec::new(), seed);
        run(&mut Block::with_capacity(0), seed);
    }
}

#[test]
fn the_example_in_the_opener_is_true() {
    let mut leaf = Vec::new();
    insert(&mut leaf, 0, 100.0, b"player:7");
    insert(&mut leaf, 1, 101.0, b"player:300");
    let expected = b"\x02\x01\x00\x07player:\x64\x65\xF8\xF9\x07\x2C\x01";
    assert_eq!(leaf, expected);
}

#[test]
fn a_prefix_ends_before_a_number_but_behind_its_zeros() {
    fn prefix(members: &[&'static str]) -> String {
        let entry = |member: &&'static str| Entry { score: 0.0, member: Member::of(member.as_bytes()) };
        let entries: Vec<Entry<'_>> = members.iter().map(entry).collect();
        members.first().map_or("", |first| &first[..prefix_len(first.as_bytes(), &entries)]).to_string()
    }
    assert_eq!(prefix(&["val-1", "val-10", "val-199"]), "val-");
    assert_eq!(prefix(&["field:000123", "field:000199"]), "field:000");
    assert_eq!(prefix(&["field:000123"]), "field:000");
    assert_eq!(prefix(&["alice"]), "");
    assert_eq!(prefix(&["alice", "alina"]), "ali");
    assert_eq!(prefix(&["a", "b"]), "");
}
