//! Two columns of codes behind a header, each code of a column as wide as the others: the body of leaves that
//! keep two numbers an element ([`crate::sorted::placed`], [`crate::integers::paired`]).
//!
//! ```text
//! | header, which begins with the count as a u16 | first column: count codes | second column: count codes |
//! ```
//!
//! An edit moves what lies behind it by the bytes of one element at most. Only the count of the header is
//! known here; the rest belongs to the caller.
use crate::code::fixed_width::write_code;
use crate::memory::block::Block;

/// Adds an element before element `index` of `count`: the width and the code of each column.
pub(crate) fn insert(block: &mut Block, start: usize, count: usize, index: usize, codes: [(usize, u64); 2]) {
    let [(first_width, first), (second_width, second)] = codes;
    let old_len = block.len();
    assert!(index <= count && start + count * (first_width + second_width) == old_len, "insert {index}");
    let first_at = start + index * first_width;
    let second_at = start + count * first_width + index * second_width;
    block.gap(old_len, 0, first_width + second_width);
    let bytes = block.make_mut();
    bytes.copy_within(second_at..old_len, second_at + first_width + second_width);
    bytes.copy_within(first_at..second_at, first_at + first_width);
    write_code(bytes, first_at, first_width, first);
    write_code(bytes, second_at + first_width, second_width, second);
    set_count(bytes, count + 1);
}

/// Takes element `index` of `count` out: the bytes of a code of each column.
pub(crate) fn remove(block: &mut Block, start: usize, count: usize, index: usize, widths: [usize; 2]) {
    let [first_width, second_width] = widths;
    let len = block.len();
    assert!(index < count && start + count * (first_width + second_width) == len, "remove {index}");
    let first_at = start + index * first_width;
    let second_at = start + count * first_width + index * second_width;
    let bytes = block.make_mut();
    bytes.copy_within(first_at + first_width..second_at, first_at);
    bytes.copy_within(second_at + second_width..len, second_at - first_width);
    set_count(bytes, count - 1);
    block.truncate(len - first_width - second_width);
}

/// Writes the count into the header.
fn set_count(bytes: &mut [u8], count: usize) {
    bytes[..2].copy_from_slice(&said(count));
}

/// The greatest count that a header can say. A leaf whose header says this may have more elements: how many
/// follows from its length.
pub(crate) const COUNT_SAID_MAX: usize = u16::MAX as usize;

/// The first two bytes of the header of a leaf of `count` elements.
pub(crate) fn said(count: usize) -> [u8; 2] {
    (count.min(COUNT_SAID_MAX) as u16).to_le_bytes()
}
