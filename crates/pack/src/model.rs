//! The naive twins: the same behaviour in the plainest way, for the properties to compare with.

use std::collections::{BTreeMap, VecDeque};

use base::random::Random;

/// The seeds that a property tries: so many, or one in `SARDINE_SEEDS_ONE_IN` of them, and two at least,
/// where each step takes long (`cargo xtask valgrind`).
pub(crate) fn seeds(count: u64) -> std::ops::Range<u64> {
    let one_in = std::env::var("SARDINE_SEEDS_ONE_IN").ok().and_then(|text| text.parse().ok());
    0..(count / one_in.unwrap_or(1).max(1)).max(2)
}

/// A list as anyone would write it.
pub(crate) type List = VecDeque<Vec<u8>>;

/// Twin of [`crate::map::Map`]: meta, inline payload and outside value of each key.
pub(crate) type Entries = BTreeMap<Vec<u8>, (u8, Vec<u8>, Option<u64>)>;

/// Values as lists meet them: small and large integers, texts that only look like integers, words, long
/// strings.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Taste {
    Ints,
    Words,
    Mixed,
    /// All as long, for some hundred steps; now and then another.
    Ids,
    /// Now and then beyond any leaf.
    Huge,
}

impl Taste {
    pub(crate) fn any(random: &mut Random) -> Taste {
        [Taste::Ints, Taste::Words, Taste::Mixed, Taste::Ids, Taste::Huge][random.below(5) as usize]
    }

    /// A value to the taste; `step` rises with each, for runs.
    pub(crate) fn value(self, random: &mut Random, step: u64) -> Vec<u8> {
        match self {
            Taste::Ints => int(random, step).to_string().into_bytes(),
            Taste::Words => word(random, 12),
            Taste::Mixed => match random.below(4) {
                0 => int(random, step).to_string().into_bytes(),
                1 => odd(random),
                2 => word(random, 400),
                _ => word(random, 30),
            },
            Taste::Ids => match random.below(100) {
                0 => Taste::Mixed.value(random, step),
                _ => id(random, [16, 36, 1, 247, 248, 8][(step / 150 % 6) as usize]),
            },
            Taste::Huge => match random.below(200) {
                0 => word(random, 70_000),
                1..20 => word(random, 3_000),
                _ => Taste::Mixed.value(random, step),
            },
        }
    }
}

/// Runs and outliers: the shape changes every few hundred steps.
fn int(random: &mut Random, step: u64) -> i64 {
    match step / 300 % 6 {
        0 => step as i64,
        1 => (random.next_u64() >> 33) as i64,
        2 => -(step as i64 * 1_000_003) + random.below(1000) as i64,
        3 => random.next_u64() as i64 >> random.below(64),
        4 => (1 << 60) + (step << 30) as i64 + random.below(1 << 30) as i64,
        _ => [i64::MIN, i64::MAX, 0, -1, 1, i64::MIN + 1, i64::MAX - 1][random.below(7) as usize],
    }
}

fn word(random: &mut Random, len_max: u64) -> Vec<u8> {
    let len = random.below(len_max + 1);
    (0..len).map(|_| b'a' + random.below(26) as u8).collect()
}

fn id(random: &mut Random, len: usize) -> Vec<u8> {
    (0..len).map(|_| b"0123456789abcdef"[random.below(16) as usize]).collect()
}

/// Texts at the border between string and integer.
fn odd(random: &mut Random) -> Vec<u8> {
    let odd: [&[u8]; 10] = [
        b"",
        b"-0",
        b"007",
        b"-",
        b"9223372036854775807",
        b"9223372036854775808",
        b"-9223372036854775808",
        b" 1",
        b"+1",
        b"1e3",
    ];
    odd[random.below(odd.len() as u64) as usize].to_vec()
}
