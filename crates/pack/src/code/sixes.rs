//! Numbers of 6 bits without gaps, as the registers of a HyperLogLog lie: the greatest of several rows,
//! number by number, and how often each value occurs.
//!
//! ```text
//! byte    0         1         2        3
//!         11000000  22221111  33333322  55444444   ...     the index of the number that a bit belongs to
//! ```
//!
//! Of four numbers in three bytes two lie within a byte, and two across a border. Greatest ones are therefore
//! kept in two rows of as many bytes, in which numbers are compared byte by byte, as vectors do it, without
//! ever being unpacked:
//!
//! ```text
//! byte         0           1           2
//! within       ..000000    ........    333333..
//! across       ........    111111..    ..222222      of the bytes before and here: (before >> 4 | here << 4)
//! ```
//!
//! Values are counted two neighbours at a time, 12 bits: half as many steps, and steps that follow each other
//! seldom wait for the same counter. Example: 1, 2, 3, 4 are `81 30 10`; within `01 00 10`, across `00 08
//! 03`.
use crate::code::wide::widened;
use std::array::from_fn;

/// Rows are processed in blocks of so many bytes: a multiple of a vector and of a group of three bytes.
const BLOCK_BYTES: usize = 48;
/// How many numbers lie in a block. A row holds a multiple of it.
pub const BLOCK_NUMBERS: usize = BLOCK_BYTES * 8 / 6;
/// How many values a number may have.
pub const VALUES: usize = 64;

const WITHIN: [u8; BLOCK_BYTES] = mask([0x3F, 0x00, 0xFC]);
const ACROSS: [u8; BLOCK_BYTES] = mask([0x00, 0xFC, 0x3F]);

const fn mask(group: [u8; 3]) -> [u8; BLOCK_BYTES] {
    let mut mask = [0; BLOCK_BYTES];
    let mut at = 0;
    while at < BLOCK_BYTES {
        mask[at] = group[at % 3];
        at += 1;
    }
    mask
}

/// The greatest numbers of several rows.
pub struct Greatest {
    within: Vec<u8>,
    /// As many bytes as `within`, and one more, which stays 0.
    across: Vec<u8>,
}

impl Greatest {
    /// Numbers that are all 0; `count` is a multiple of [`BLOCK_NUMBERS`].
    pub fn zeros(count: usize) -> Greatest {
        assert!(count.is_multiple_of(BLOCK_NUMBERS), "{count} numbers are no whole blocks");
        let bytes = count * 6 / 8;
        Greatest { within: vec![0; bytes], across: vec![0; bytes + 1] }
    }

    /// How many numbers there are.
    #[allow(clippy::len_without_is_empty, reason = "there are always some")]
    pub fn len(&self) -> usize {
        self.within.len() * 8 / 6
    }

    /// Number `index`, below 64.
    pub fn get(&self, index: usize) -> u8 {
        debug_assert!(index < self.len(), "number {index} of {}", self.len());
        let at = index / 4 * 3;
        match index % 4 {
            0 => self.within[at],
            1 => self.across[at + 1] >> 2,
            2 => self.across[at + 2],
            _ => self.within[at + 2] >> 2,
        }
    }

    /// Makes a number at least `value`, which has 6 bits.
    #[inline]
    pub fn raise(&mut self, index: usize, value: u8) {
        debug_assert!(
            usize::from(value) < VALUES && index < self.len(),
            "{value} at {index} of {}",
            self.len()
        );
        let at = index / 4 * 3;
        let (byte, value) = match index % 4 {
            0 => (&mut self.within[at], value),
            1 => (&mut self.across[at + 1], value << 2),
            2 => (&mut self.across[at + 2], value),
            _ => (&mut self.within[at + 2], value << 2),
        };
        *byte = value.max(*byte);
    }

    /// Raises each number to that of a row at the same index, where that is greater. A row has as many
    /// numbers.
    pub fn raise_all(&mut self, row: &[u8]) {
        assert_eq!(row.len(), self.within.len(), "rows of the same length");
        let across = &mut self.across[..row.len()];
        // The first byte of a block looks at the one before it, though it takes nothing from there.
        let (head, _) = row.split_at(BLOCK_BYTES.min(row.len()));
        let mut first = [0; BLOCK_BYTES + 1];
        first[1..=head.len()].copy_from_slice(head);
        raise_blocks(&mut self.within[..head.len()], &mut across[..head.len()], &first[..=head.len()]);
        if row.len() > head.len() {
            let at = head.len();
            raise_blocks(&mut self.within[at..], &mut across[at..], &row[at - 1..]);
        }
    }

    /// Makes a row of as many numbers hold these.
    pub fn write(&self, row: &mut [u8]) {
        assert_eq!(row.len(), self.within.len(), "rows of the same length");
        write_row(row, &self.within, &self.across);
    }
}

widened! { fn raise_blocks(within: &mut [u8], across: &mut [u8], row: &[u8]) = raise_blocks_portably }

/// Raises the numbers of two rows to those of `row`, which begins one byte before them.
#[inline(always)]
fn raise_blocks_portably(within: &mut [u8], across: &mut [u8], row: &[u8]) {
    debug_assert!(within.len() == across.len() && row.len() == within.len() + 1, "{} bytes", row.len());
    let blocks = within.as_chunks_mut::<BLOCK_BYTES>().0.iter_mut();
    let blocks = blocks
        .zip(across.as_chunks_mut::<BLOCK_BYTES>().0)
        .zip(row.windows(BLOCK_BYTES + 1).step_by(BLOCK_BYTES));
    for ((within, across), row) in blocks {
        for at in 0..BLOCK_BYTES {
            within[at] = within[at].max(row[at + 1] & WITHIN[at]);
            across[at] = across[at].max((row[at] >> 4 | row[at + 1] << 4) & ACROSS[at]);
        }
    }
}

widened! { fn write_row(row: &mut [u8], within: &[u8], across: &[u8]) = write_row_portably }

#[inline(always)]
fn write_row_portably(row: &mut [u8], within: &[u8], across: &[u8]) {
    let behind = &across[1..];
    for (((byte, within), across), behind) in row.iter_mut().zip(within).zip(across).zip(behind) {
        *byte = within | across >> 4 | behind << 4;
    }
}

/// How often each two neighbours occur together. There are two tables, so that equal ones which follow each
/// other wait half as long for their counter.
type Tables = [[u16; VALUES * VALUES]; 2];
/// Bytes that are read together: they hold 16 numbers.
const READ_BYTES: usize = 12;
/// A counter of 16 bits cannot overflow in a row of so many bytes.
const ROW_BYTES_MAX: usize = u16::MAX as usize / 2 * 3 / 2;

/// Adds to `counts` how often each value occurs in a row of whole blocks.
pub fn count(row: &[u8], counts: &mut [u32; VALUES]) {
    assert!(
        row.len() <= ROW_BYTES_MAX && row.len().is_multiple_of(READ_BYTES),
        "a row of {} bytes",
        row.len()
    );
    let mut tables: Tables = [[0; VALUES * VALUES]; 2];
    let mut count_two =
        |table: usize, two: u64| tables[table][(two % (VALUES * VALUES) as u64) as usize] += 1;
    for bytes in row.as_chunks::<READ_BYTES>().0 {
        let low = u64::from_le_bytes(from_fn(|at| bytes[at]));
        // The bits of the group from bit 32 on.
        let high = u64::from_le_bytes(from_fn(|at| bytes[READ_BYTES - 8 + at]));
        count_two(0, low);
        count_two(1, low >> 12);
        count_two(0, low >> 24);
        count_two(1, low >> 36);
        count_two(0, low >> 48);
        count_two(1, high >> 28);
        count_two(0, high >> 40);
        count_two(1, high >> 52);
    }
    add_up(&tables, counts);
}

widened! { fn add_up(tables: &Tables, counts: &mut [u32; VALUES]) = add_up_portably }

/// Of two neighbours the lower number is the column of a table, the higher one its line.
#[inline(always)]
fn add_up_portably(tables: &Tables, counts: &mut [u32; VALUES]) {
    let mut columns = [0; VALUES];
    let lines = tables[0].as_chunks::<VALUES>().0.iter().zip(tables[1].as_chunks::<VALUES>().0);
    for (high, (a, b)) in lines.enumerate() {
        let mut sum = 0;
        for at in 0..VALUES {
            // No sum of all of them exceeds 16 bits.
            let both = a[at] + b[at];
            columns[at] += both;
            sum += both;
        }
        counts[high] += u32::from(sum);
    }
    counts.iter_mut().zip(columns).for_each(|(count, column)| *count += u32::from(column));
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    const COUNT: usize = 16_384;

    fn packed(numbers: &[u8]) -> Vec<u8> {
        let groups = numbers.as_chunks::<4>().0.iter();
        groups.flat_map(|[a, b, c, d]| [a | b << 6, b >> 2 | c << 4, c >> 4 | d << 2]).collect()
    }

    fn numbers(random: &mut Random, count: usize) -> Vec<u8> {
        let below = [1, 2, 12, 64][random.below(4) as usize];
        (0..count).map(|_| random.below(below) as u8).collect()
    }

    #[test]
    fn the_example_in_the_opener_is_true() {
        let mut row = vec![0; BLOCK_BYTES];
        row[..3].copy_from_slice(&[0x81, 0x30, 0x10]);
        let mut greatest = Greatest::zeros(BLOCK_NUMBERS);
        greatest.raise_all(&row);
        assert_eq!((&greatest.within[..3], &greatest.across[..3]), (&[1, 0, 0x10][..], &[0, 8, 3][..]));
        assert_eq!([0, 1, 2, 3, 4].map(|index| greatest.get(index)), [1, 2, 3, 4, 0]);
    }

    #[test]
    fn the_greatest_of_rows_are_those_of_their_numbers() {
        for (seed, blocks) in (0..60).zip([1, 2, 3, COUNT / BLOCK_NUMBERS].into_iter().cycle()) {
            let mut random = Random::new(seed);
            let count = blocks * BLOCK_NUMBERS;
            let (mut greatest, mut twin) = (Greatest::zeros(count), vec![0; count]);
            for _ in 0..4 {
                let row = numbers(&mut random, count);
                greatest.raise_all(&packed(&row));
                twin.iter_mut().zip(&row).for_each(|(twin, number)| *twin = (*twin).max(*number));
                let (index, value) = (random.below(count as u64) as usize, random.below(64) as u8);
                greatest.raise(index, value);
                twin[index] = twin[index].max(value);
                let own: Vec<u8> = (0..greatest.len()).map(|index| greatest.get(index)).collect();
                assert_eq!(own, twin, "seed {seed}");
                let mut row = vec![0xAA; count * 6 / 8];
                greatest.write(&mut row);
                assert_eq!(row, packed(&twin), "seed {seed}");
            }
        }
    }

    #[test]
    fn portable_versions_do_what_the_chosen_ones_do() {
        let mut random = Random::new(9);
        let bytes = 4 * BLOCK_BYTES;
        let mut any = |len: usize| (0..len).map(|_| random.next_u64() as u8).collect::<Vec<u8>>();
        let (within, across, row) = (any(bytes), any(bytes), any(bytes + 1));
        let (mut a, mut b) = ((within.clone(), across.clone()), (within, across));
        raise_blocks(&mut a.0, &mut a.1, &row);
        raise_blocks_portably(&mut b.0, &mut b.1, &row);
        assert_eq!(a, b);
        let (mut c, mut d) = (vec![0; bytes], vec![0; bytes]);
        write_row(&mut c, &a.0, &row);
        write_row_portably(&mut d, &a.0, &row);
        assert_eq!(c, d);
    }

    #[test]
    fn every_number_is_counted_once() {
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let row = numbers(&mut random, COUNT);
            let mut twin = [0; VALUES];
            row.iter().for_each(|number| twin[usize::from(*number)] += 1);
            let mut counts = [0; VALUES];
            count(&packed(&row), &mut counts);
            assert_eq!(counts, twin, "seed {seed}");
        }
        let mut counts = [5; VALUES];
        count(&[0xFF; 12_288], &mut counts);
        assert_eq!((counts[63], counts[0]), (16_389, 5));
    }
}
