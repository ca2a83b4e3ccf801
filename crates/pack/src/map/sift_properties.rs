//! Sifting against the standard library's sets: maps of all sizes beside each other, and leaves that cannot
//! be split.
use super::*;
use crate::map::Entry;
use crate::map::form::{Members, Read};
use base::hash::Hash;
use base::random::Random;
use std::collections::BTreeSet;

const SEED: Seed = Seed::new(0x1234_5678_9ABC_DEF0, 0x0FED_CBA9_8765_4321);

type Twin = BTreeSet<Vec<u8>>;

/// A form in which all members have one of three places and one of two tags, so that leaves are far larger
/// than usual.
struct Crowded;

impl Form for Crowded {
    const COUNT_MAX: usize = Members::COUNT_MAX;
    const BYTES_MAX: usize = Members::BYTES_MAX;
    const META: u8 = 0;

    fn is(entry: &[u8], name: Name<'_>) -> bool {
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
        let hash = Members::hash(seed, name).0;
        Hash(((hash >> 40) % 3) << 40 | hash & 1)
    }
}

fn text(n: u64) -> Vec<u8> {
    // Some are so long that their leaf keeps lengths of two bytes.
    if n.is_multiple_of(997) { vec![b'x'; 300 + n as usize % 1000] } else { format!("m{n}").into_bytes() }
}

fn map<F: Form>(twin: &Twin) -> Map<(), F> {
    let mut map = Map::new();
    for member in twin {
        let name = Name::from(member);
        if let Entry::Vacant(entry) = map.entry(&SEED, F::hash(&SEED, name), name) {
            entry.insert(0, &[], None, &mut ());
        }
    }
    map
}

fn check<F: Form>(twins: &[Twin], random: &mut Random) {
    let maps: Vec<Map<(), F>> = twins.iter().map(map).collect();
    let others: Vec<&Map<(), F>> = maps[1..].iter().collect();
    for pass in [Pass::Common, Pass::Rest] {
        let has = |member: &Vec<u8>| match pass {
            Pass::Common => twins[1..].iter().all(|twin| twin.contains(member)),
            Pass::Rest => !twins[1..].iter().any(|twin| twin.contains(member)),
        };
        let mut expected = Vec::new();
        maps[0].for_each(&mut |found| expected.push(found.key.to_vec()));
        expected.retain(has);
        let mut shown = Vec::new();
        let flow = maps[0].sift(&SEED, &others, pass, &mut |member| {
            shown.push(member.to_vec());
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue() && shown == expected, "{pass:?}: {} of {}", shown.len(), expected.len());
        let wanted = 1 + random.below(expected.len() as u64 + 1);
        let mut count = 0;
        let flow = maps[0].sift(&SEED, &others, pass, &mut |_| {
            count += 1;
            if count == wanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(
            (flow.is_break(), count),
            (wanted <= expected.len() as u64, wanted.min(expected.len() as u64))
        );
    }
}

fn twins(random: &mut Random, len_max: u64) -> Vec<Twin> {
    let count = 1 + random.below(4);
    let span = 1 + random.below(len_max * 2);
    let twin = |random: &mut Random| {
        let len = [0, 1, 15, 150, len_max / 8, len_max][random.below(6) as usize];
        (0..len.min(len_max)).map(|_| text(random.below(span))).collect()
    };
    (0..count).map(|_| twin(random)).collect()
}

#[test]
fn what_maps_have_in_common_and_what_is_left_agree_with_the_standard_library() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let twins = twins(&mut random, [200, 2000, 9000][seed as usize % 3]);
        check::<Members>(&twins, &mut random);
    }
}

#[test]
fn leaves_that_cannot_be_split_are_sifted_too() {
    for seed in 0..30 {
        let mut random = Random::new(seed);
        let twins = twins(&mut random, 1200);
        check::<Crowded>(&twins, &mut random);
    }
}
