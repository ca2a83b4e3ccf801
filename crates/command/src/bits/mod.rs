//! Strings as rows of bits: single bits, counts and positions, whole rows combined, and integers of any
//! width.
//!
//! Bit 0 is the most significant bit of the first byte, and so on to the right. What lies behind the end of a
//! string reads as zero; writing there lengthens it. A value that is kept as an integer is read, and edited,
//! as its text.
//!
//! | file | what it holds |
//! |---|---|
//! | `single.rs` | SETBIT, GETBIT; where a bit is |
//! | `range.rs` | BITCOUNT, BITPOS and the ranges that they share |
//! | `combine.rs` | BITOP |
//! | `field.rs` | BITFIELD, BITFIELD_RO |
//! | `integer.rs` | an integer of 1 to 64 bits at any bit of a string, and what happens when it overflows |
//! | `words.rs` | the loops over many bytes |
mod combine;
mod field;
mod integer;
#[cfg(test)]
mod properties;
mod range;
mod row;
mod single;
mod words;

use crate::{Command, checked};

pub const COMMANDS: &[&Command] = checked(&[
    &range::BITCOUNT,
    &field::BITFIELD,
    &field::BITFIELD_RO,
    &combine::BITOP,
    &range::BITPOS,
    &single::GETBIT,
    &single::SETBIT,
]);
