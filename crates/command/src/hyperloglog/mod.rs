//! HyperLogLog: how many different elements were added, within a percent, in 12 KB at most. Its value is a
//! string, byte for byte the one that Redis makes: GET, SET, DUMP and clients that keep such strings
//! elsewhere may take them from one server to the other.
//!
//! An element's hash chooses one of 16,384 registers and proposes a value for it, one more than the zeros
//! that the rest of the hash ends with; the register keeps the largest proposal. Few registers are set at
//! first, so a sketch begins as runs (`sparse.rs`) and becomes an array (`dense.rs`) when the runs take more
//! than `hll-sparse-max-bytes`. The number of elements follows from how many registers hold each value
//! (`estimate.rs`).
//!
//! | file | what it holds |
//! |---|---|
//! | `sketch.rs` | the string: header, cached count, what works on either encoding |
//! | `sparse.rs`, `dense.rs` | the registers as runs, and as an array of 6 bits each |
//! | `estimate.rs` | from registers to a number of elements |
//! | `add.rs`, `count.rs`, `debug.rs` | the commands |
mod add;
mod count;
mod debug;
mod dense;
mod estimate;
#[cfg(test)]
mod properties;
mod row;
mod sketch;
mod sparse;

use crate::{Command, Error, checked};
use sketch::{Corrupt, Sketch};

pub const COMMANDS: &[&Command] =
    checked(&[&add::PFADD, &count::PFCOUNT, &debug::PFDEBUG, &count::PFMERGE, &debug::PFSELFTEST]);

/// The sketch that a string is.
fn sketch(text: &[u8]) -> Result<Sketch<'_>, Error> {
    Sketch::parse(text).ok_or_else(Error::not_a_sketch)
}

impl From<Corrupt> for Error {
    fn from(_: Corrupt) -> Error {
        Error::corrupt_sketch()
    }
}
