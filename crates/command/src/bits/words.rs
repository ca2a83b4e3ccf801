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

impl Operation {
    /// Whether something is kept beside the result until all rows are worked in: X, or the bits that were in
    /// more than one row.
    fn needs_beside(self) -> bool {
        self.begins_beside() || self == Operation::One
    }

    /// Whether that is X.
    fn begins_beside(self) -> bool {
        matches!(self, Operation::Diff1 | Operation::AndOr)
    }
}

/// So many bytes of the result are made at a time: they stay in the nearest cache while row after row is
/// worked in.
const BLOCK_BYTES: usize = 8 << 10;

/// The rows combined, as long as the longest of them; the shorter ones end in zeroes. There is at least one
/// row. The result is written into `room`, whatever that holds, where it is about as large.
pub(super) fn combine(operation: Operation, rows: &[&[u8]], room: Vec<u8>) -> Vec<u8> {
    let len = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let mut result = resized(room, len);
    let mut beside = if operation.needs_beside() { vec![0; BLOCK_BYTES.min(len)] } else { Vec::new() };
    for (index, block) in result.chunks_mut(BLOCK_BYTES).enumerate() {
        let (start, end) = (index * BLOCK_BYTES, index * BLOCK_BYTES + block.len());
        let part = |row: &&'_ [u8]| row.len().min(start)..row.len().min(end);
        let beside_end = beside.len().min(block.len());
        let beside = &mut beside[..beside_end];
        for (number, row) in rows.iter().enumerate() {
            work_in(operation, block, beside, number, &row[part(row)]);
        }
        finish(operation, block, beside);
    }
    result
}

/// A result that short rows are worked into as they come, so that they need not be lent all at once. It is
/// one block, which grows with the longest row.
pub(super) struct Growing {
    operation: Operation,
    result: Vec<u8>,
    beside: Vec<u8>,
    row_count: usize,
}

impl Growing {
    /// Rows of up to so many bytes are short: the result stays in the nearest cache.
    pub(super) const ROW_BYTES_MAX: usize = 2 * BLOCK_BYTES;

    pub(super) fn new(operation: Operation) -> Growing {
        Growing { operation, result: Vec::new(), beside: Vec::new(), row_count: 0 }
    }

    pub(super) fn add(&mut self, row: &[u8]) {
        let Growing { operation, result, beside, row_count } = self;
        let len = row.len().max(result.len());
        if operation.needs_beside() {
            beside.resize(len, 0);
        }
        if *row_count == 0 && !operation.begins_beside() {
            result.extend_from_slice(row);
        } else {
            result.resize(len, 0);
            work_in(*operation, result, beside, *row_count, row);
        }
        *row_count += 1;
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        finish(self.operation, &mut self.result, &self.beside);
        self.result
    }
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

/// Works row `number` into a block of the result. The first row sets every byte of the block, or of what is
/// kept `beside` it, and the first that is combined sets every byte of the block.
fn work_in(operation: Operation, block: &mut [u8], beside: &mut [u8], number: usize, row: &[u8]) {
    match (operation, number) {
        (_, 0) if operation.begins_beside() => copy(beside, row),
        (_, 1) if operation.begins_beside() => copy(block, row),
        (_, 0) => {
            copy(block, row);
            beside.fill(0);
        }
        (Operation::And, _) => and(block, row),
        (Operation::Or | Operation::Diff1 | Operation::AndOr, _) => or(block, row),
        (Operation::Xor, _) => xor(block, row),
        // NOT takes one row.
        (Operation::Not, _) => {}
        (Operation::Diff, _) => and_not(block, row),
        (Operation::One, _) => or_noting_repeats(block, beside, row),
    }
}

/// Makes the result of a block that all rows were worked into.
fn finish(operation: Operation, block: &mut [u8], beside: &[u8]) {
    match operation {
        Operation::And | Operation::Or | Operation::Xor | Operation::Diff => {}
        Operation::Not => block.iter_mut().for_each(|byte| *byte = !*byte),
        Operation::Diff1 | Operation::One => and_not(block, beside),
        Operation::AndOr => and(block, beside),
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
