//! The loops over many bytes: counting bits, finding a byte that differs, combining rows. Plain loops over words of 8 bytes, in
//! shapes that the compiler turns into vector instructions, so that memory is what they wait for.

/// Words side by side, as the compiler keeps them in vector registers.
type Lane = [u64; 4];
const LANE_BYTES: usize = size_of::<Lane>();
/// So many lanes are added up before anything is counted.
const LANES: usize = 16;

/// How many bits are set.
///
/// Counting the bits of a word takes a dozen instructions where the processor has none for it, so lanes are first added up bit by
/// bit, in columns of binary digits, and only the sixteens are counted (Harley and Seal; Muła, Kurz and Lemire, "Faster population
/// counts using AVX2 instructions"). That is twice as fast as counting every word, for what the caches hold.
pub(super) fn count_ones(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<{ LANES * LANE_BYTES }>();
    let mut columns = Columns::default();
    let sixteens: u64 = blocks.iter().map(|block| weight(&columns.add(block))).sum();
    let rest: u64 = rest.iter().map(|byte| u64::from(byte.count_ones())).sum();
    16 * sixteens + columns.weight() + rest
}

/// For every bit of a lane a number of four digits, each digit in a lane of its own.
#[derive(Default)]
struct Columns {
    ones: Lane,
    twos: Lane,
    fours: Lane,
    eights: Lane,
}

impl Columns {
    /// Adds 16 lanes; what is carried counts 16. Half by half, so that little is on its way at a time: it fits the registers.
    #[inline]
    fn add(&mut self, block: &[u8; LANES * LANE_BYTES]) -> Lane {
        let (halves, _) = block.as_chunks::<{ 8 * LANE_BYTES }>();
        let (a, b) = (self.add_8(&halves[0]), self.add_8(&halves[1]));
        add(&mut self.eights, a, b)
    }

    #[inline]
    fn add_8(&mut self, block: &[u8; 8 * LANE_BYTES]) -> Lane {
        let (halves, _) = block.as_chunks::<{ 4 * LANE_BYTES }>();
        let (a, b) = (self.add_4(&halves[0]), self.add_4(&halves[1]));
        add(&mut self.fours, a, b)
    }

    #[inline]
    fn add_4(&mut self, block: &[u8; 4 * LANE_BYTES]) -> Lane {
        let (lanes, _) = block.as_chunks::<LANE_BYTES>();
        let a = add(&mut self.ones, lane(&lanes[0]), lane(&lanes[1]));
        let b = add(&mut self.ones, lane(&lanes[2]), lane(&lanes[3]));
        add(&mut self.twos, a, b)
    }

    fn weight(&self) -> u64 {
        8 * weight(&self.eights) + 4 * weight(&self.fours) + 2 * weight(&self.twos) + weight(&self.ones)
    }
}

#[inline]
fn lane(bytes: &[u8; LANE_BYTES]) -> Lane {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

/// Adds two lanes to a column; what is carried counts twice as much.
#[inline]
fn add(column: &mut Lane, a: Lane, b: Lane) -> Lane {
    let mut carry = [0; 4];
    for (i, (sum, carry)) in column.iter_mut().zip(&mut carry).enumerate() {
        let half = *sum ^ a[i];
        *carry = *sum & a[i] | half & b[i];
        *sum = half ^ b[i];
    }
    carry
}

fn weight(lane: &Lane) -> u64 {
    lane.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// The index of the first byte that is not `blank`.
pub(super) fn find_other(bytes: &[u8], blank: u8) -> Option<usize> {
    // A search that may end at every byte is not vectorised; one that may end at every 64 is.
    let (blocks, _) = bytes.as_chunks::<64>();
    let is_blank = |block: &[u8; 64]| block.iter().fold(0, |other, byte| other | (byte ^ blank)) == 0;
    let skipped = 64 * blocks.iter().take_while(|block| is_blank(block)).count();
    let index = bytes[skipped..].iter().position(|byte| *byte != blank)?;
    Some(skipped + index)
}

/// How rows of bits are combined. `X` is the first, `Y` are the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    And,
    Or,
    Xor,
    /// Of one row.
    Not,
    /// In X and in no Y.
    Diff,
    /// In some Y and not in X.
    Diff1,
    /// In X and in some Y.
    AndOr,
    /// In exactly one row.
    One,
}

/// So many bytes of the result are made at a time: they stay in the nearest cache while row after row is worked in.
const BLOCK_BYTES: usize = 8 << 10;

/// The rows combined, as long as the longest of them; the shorter ones end in zeroes. There is at least one row. The result is
/// written into `room`, whatever that holds, where it is about as large.
pub(super) fn combine(operation: Operation, rows: &[&[u8]], room: Vec<u8>) -> Vec<u8> {
    let len = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let mut result = resized(room, len);
    let mut twice = if operation == Operation::One { vec![0; BLOCK_BYTES.min(len)] } else { Vec::new() };
    for (index, block) in result.chunks_mut(BLOCK_BYTES).enumerate() {
        let (start, end) = (index * BLOCK_BYTES, index * BLOCK_BYTES + block.len());
        let part = |row: &&'_ [u8]| row.len().min(start)..row.len().min(end);
        let mut parts = rows.iter().map(|row| &row[part(row)]);
        let first = parts.next().unwrap_or_default();
        combine_block(operation, block, first, parts, &mut twice);
    }
    result
}

/// `room` with `len` bytes of anything, or as many zeroes of its own.
fn resized(mut room: Vec<u8>, len: usize) -> Vec<u8> {
    if room.capacity() < len || room.capacity() / 2 > len {
        return vec![0; len];
    }
    room.resize(len, 0);
    room
}

/// One block of the result from the same part of every row.
fn combine_block<'r>(
    operation: Operation,
    block: &mut [u8],
    first: &[u8],
    mut others: impl Iterator<Item = &'r [u8]>,
    twice: &mut [u8],
) {
    let start = match operation {
        Operation::Diff1 | Operation::AndOr => others.next().unwrap_or_default(),
        _ => first,
    };
    copy(block, start);
    match operation {
        Operation::And => others.for_each(|row| and(block, row)),
        Operation::Or => others.for_each(|row| or(block, row)),
        Operation::Xor => others.for_each(|row| xor(block, row)),
        Operation::Not => block.iter_mut().for_each(|byte| *byte = !*byte),
        Operation::Diff => others.for_each(|row| and_not(block, row)),
        Operation::Diff1 => {
            others.for_each(|row| or(block, row));
            and_not(block, first);
        }
        Operation::AndOr => {
            others.for_each(|row| or(block, row));
            and(block, first);
        }
        Operation::One => {
            let twice = &mut twice[..block.len()];
            twice.fill(0);
            others.for_each(|row| or_noting_repeats(block, twice, row));
            and_not(block, twice);
        }
    }
}

/// The block is not read first: pages that were never written to cost one fault like this, two otherwise.
fn copy(block: &mut [u8], row: &[u8]) {
    let (start, rest) = block.split_at_mut(row.len());
    start.copy_from_slice(row);
    rest.fill(0);
}

/// What `row` lacks at its end is zero.
fn and(block: &mut [u8], row: &[u8]) {
    let (both, rest) = block.split_at_mut(row.len());
    both.iter_mut().zip(row).for_each(|(byte, other)| *byte &= other);
    rest.fill(0);
}

fn or(block: &mut [u8], row: &[u8]) {
    block.iter_mut().zip(row).for_each(|(byte, other)| *byte |= other);
}

fn xor(block: &mut [u8], row: &[u8]) {
    block.iter_mut().zip(row).for_each(|(byte, other)| *byte ^= other);
}

fn and_not(block: &mut [u8], row: &[u8]) {
    block.iter_mut().zip(row).for_each(|(byte, other)| *byte &= !other);
}

/// `twice` collects what was in `block` already.
fn or_noting_repeats(block: &mut [u8], twice: &mut [u8], row: &[u8]) {
    for ((byte, repeated), other) in block.iter_mut().zip(twice).zip(row) {
        *repeated |= *byte & other;
        *byte |= other;
    }
}
