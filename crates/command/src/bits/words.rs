//! The loops over many bytes: finding a byte that differs, combining rows (counting bits is
//! `store::count_ones`). Plain loops, in shapes that the compiler turns into vector instructions, so that
//! memory is what they wait for.

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
    /// The complement of one row.
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

/// So many bytes of the result are made at a time: they stay in the nearest cache while row after row is
/// worked in.
const BLOCK_BYTES: usize = 8 << 10;

/// The rows combined, as long as the longest of them; the shorter ones end in zeroes. There is at least one
/// row. The result is written into `room`, whatever that holds, where it is about as large.
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

/// `room` with a length of `len`, whatever its bytes are; or, if it is too small or far too large, as many
/// zeroes.
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

/// Copies a row over the block, without reading the block: a page that was never written to then costs one
/// fault, otherwise two.
fn copy(block: &mut [u8], row: &[u8]) {
    let (start, rest) = block.split_at_mut(row.len());
    start.copy_from_slice(row);
    rest.fill(0);
}

/// `AND` of the block and a row. What the row lacks at its end counts as zero.
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

/// `OR` of the block and a row; `twice` collects the bits that were set in the block already.
fn or_noting_repeats(block: &mut [u8], twice: &mut [u8], row: &[u8]) {
    for ((byte, repeated), other) in block.iter_mut().zip(twice).zip(row) {
        *repeated |= *byte & other;
        *byte |= other;
    }
}
