//! The arithmetic of bits against naive twins that go bit by bit: rows of bits are vectors of booleans,
//! integers are 128 bits wide.
use super::integer::{Format, Overflow};
use super::words::{self, Growing, Operation};
use base::random::Random;

const SEEDS: u64 = 32;
const OPERATIONS: [Operation; 8] = [
    Operation::And,
    Operation::Or,
    Operation::Xor,
    Operation::Not,
    Operation::Diff,
    Operation::Diff1,
    Operation::AndOr,
    Operation::One,
];

fn bits_of(bytes: &[u8]) -> Vec<bool> {
    bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte & (0x80 >> bit) != 0)).collect()
}

fn random_bytes(random: &mut Random, len_max: u64) -> Vec<u8> {
    let mut bytes = vec![0; random.below(len_max) as usize];
    random.fill(&mut bytes);
    bytes
}

/// Whether a bit of the result is set where the rows have `row_bits`.
fn naive(operation: Operation, row_bits: &[bool]) -> bool {
    let (x, others) = (row_bits[0], &row_bits[1..]);
    let in_some = others.contains(&true);
    match operation {
        Operation::And => row_bits.iter().all(|bit| *bit),
        Operation::Or => x || in_some,
        Operation::Xor => row_bits.iter().filter(|bit| **bit).count() % 2 == 1,
        Operation::Not => !x,
        Operation::Diff => x && !in_some,
        Operation::Diff1 => in_some && !x,
        Operation::AndOr => x && in_some,
        Operation::One => row_bits.iter().filter(|bit| **bit).count() == 1,
    }
}

#[test]
fn rows_of_any_lengths_are_combined_as_if_bit_by_bit() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let len_max = [20_000, 2, 20, 200][(seed % 16).min(3) as usize];
        let rows: Vec<Vec<u8>> =
            (0..2 + random.below(4)).map(|_| random_bytes(&mut random, len_max)).collect();
        for operation in OPERATIONS {
            let used = if operation == Operation::Not { &rows[..1] } else { &rows[..] };
            let lent: Vec<&[u8]> = used.iter().map(|row| &row[..]).collect();
            let room = random_bytes(&mut random, 2 * len_max);
            let result = words::combine(operation, &lent, room);
            let mut growing = Growing::new(operation);
            lent.iter().for_each(|row| growing.add(row));
            assert!(growing.finish() == result, "seed {seed} {operation:?}: rows as they come");
            let result = bits_of(&result);
            let twins: Vec<Vec<bool>> = used.iter().map(|row| bits_of(row)).collect();
            let len = twins.iter().map(Vec::len).max().unwrap();
            let expected: Vec<bool> = (0..len)
                .map(|i| {
                    let row_bits: Vec<bool> =
                        twins.iter().map(|row| row.get(i).copied().unwrap_or(false)).collect();
                    naive(operation, &row_bits)
                })
                .collect();
            assert_eq!(result, expected, "seed {seed} {operation:?}");
        }
    }
}

#[test]
fn bits_are_counted_and_other_bytes_found_as_if_one_by_one() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let mut bytes = random_bytes(&mut random, 1_000);
        let ones = bits_of(&bytes).iter().filter(|bit| **bit).count() as u64;
        assert_eq!(store::count_ones(&bytes), ones, "seed {seed}");
        let blank = [0x00, 0xFF][(seed % 2) as usize];
        let first = random.below(bytes.len() as u64 + 1) as usize;
        bytes[..first].fill(blank);
        let expected = bytes.iter().position(|byte| *byte != blank);
        assert_eq!(words::find_other(&bytes, blank), expected, "seed {seed}");
    }
}

fn formats() -> impl Iterator<Item = (String, bool, u32)> {
    let signed = (1..=64).map(|width| (format!("i{width}"), true, width));
    signed.chain((1..=63).map(|width| (format!("u{width}"), false, width)))
}

/// The integer at bit `offset`, bit by bit.
fn naive_read(bits: &[bool], offset: usize, is_signed: bool, width: u32) -> i128 {
    let at = |i: usize| i128::from(bits.get(offset + i).copied().unwrap_or(false));
    let sum = (0..width as usize).fold(0, |sum, i| sum * 2 + at(i));
    if is_signed && at(0) == 1 { sum - (1 << width) } else { sum }
}

#[test]
fn integers_of_every_width_are_read_and_written_at_any_bit_and_their_neighbours_stay() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        for (name, is_signed, width) in formats() {
            let format = Format::parse(name.as_bytes()).unwrap();
            let mut bytes = vec![0; 9 + random.below(20) as usize];
            random.fill(&mut bytes);
            let offset = random.below(bytes.len() as u64 * 8 - u64::from(width) + 1);
            let before = bits_of(&bytes);
            let old = naive_read(&before, offset as usize, is_signed, width);
            assert_eq!(i128::from(format.read(&bytes, offset)), old, "seed {seed} {name} at {offset}");
            let new = format.convert(random.next_u64() as i64, Overflow::Wrap).unwrap();
            format.write(&mut bytes, offset, new);
            let after = bits_of(&bytes);
            assert_eq!(
                naive_read(&after, offset as usize, is_signed, width),
                i128::from(new),
                "seed {seed} {name}"
            );
            let end = offset as usize + width as usize;
            assert_eq!(after[..offset as usize], before[..offset as usize], "seed {seed} {name} at {offset}");
            assert_eq!(after[end..], before[end..], "seed {seed} {name} at {offset}");
        }
    }
}

#[test]
fn what_lies_behind_the_end_reads_as_zeroes() {
    for (name, is_signed, width) in formats() {
        let format = Format::parse(name.as_bytes()).unwrap();
        let bytes = [0xFF; 3];
        for offset in 0..100 {
            let expected = naive_read(&bits_of(&bytes), offset as usize, is_signed, width);
            assert_eq!(i128::from(format.read(&bytes, offset)), expected, "{name} at {offset}");
        }
        assert_eq!(format.read(&bytes, u64::MAX), 0);
    }
}

/// A number near a bound of some width, or anywhere.
fn number(random: &mut Random) -> i64 {
    let near = (1_i64 << random.below(63)).wrapping_add(random.below(5) as i64 - 2);
    match random.below(4) {
        0 => near,
        1 => near.wrapping_neg(),
        2 => random.next_u64() as i64,
        _ => [i64::MIN, i64::MAX, -1, 0, 1][random.below(5) as usize],
    }
}

/// What a result that is `exact` becomes in `width` bits.
fn naive_fit(exact: i128, is_signed: bool, width: u32, overflow: Overflow) -> Option<i128> {
    let (min, max) =
        if is_signed { (-(1_i128 << (width - 1)), (1 << (width - 1)) - 1) } else { (0, (1 << width) - 1) };
    if exact >= min && exact <= max {
        return Some(exact);
    }
    match overflow {
        Overflow::Fail => None,
        Overflow::Saturate => Some(if exact < min { min } else { max }),
        Overflow::Wrap => Some((exact - min).rem_euclid(1 << width) + min),
    }
}

#[test]
fn sums_and_values_that_do_not_fit_wrap_saturate_or_fail() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        for (name, is_signed, width) in formats() {
            let format = Format::parse(name.as_bytes()).unwrap();
            let (old, by) =
                (format.convert(number(&mut random), Overflow::Wrap).unwrap(), number(&mut random));
            for overflow in [Overflow::Wrap, Overflow::Saturate, Overflow::Fail] {
                let context = format!("seed {seed} {name} {overflow:?} {old} {by}");
                let sum = naive_fit(i128::from(old) + i128::from(by), is_signed, width, overflow);
                assert_eq!(format.add(old, by, overflow).map(i128::from), sum, "{context}");
                let value = if is_signed { i128::from(by) } else { i128::from(by as u64) };
                let stored = naive_fit(value, is_signed, width, overflow);
                assert_eq!(format.convert(by, overflow).map(i128::from), stored, "{context}");
            }
        }
    }
}

#[test]
fn only_widths_whose_values_can_be_replied_are_formats() {
    for text in ["i0", "i65", "u0", "u64", "i", "u", "", "8", "x8", "I8", "U8", "i08", "i+8", "i-1", "i 8"] {
        assert_eq!(Format::parse(text.as_bytes()), None, "{text:?}");
    }
}
