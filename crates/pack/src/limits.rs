//! How long keys, elements and values may be. Leaves count in 32 bits: offsets, lengths, how many entries
//! there are. These limits are why none of that ever wraps.
//!
//! | what | at most | a client sees beyond it |
//! |---|---|---|
//! | a key, field, member, element, name, a value of a field | [`ELEMENT_BYTES_MAX`], 512 MB | an error (1) |
//! | an element that SORT ... STORE takes from a string | the same | the same; nothing is stored |
//! | an entry of a stream | [`ROW_BYTES_MAX`], 1 GB, as in Redis | Redis's error (2) |
//! | a string | `proto-max-bulk-len`, and what the system can map | Redis's error, where one grows |
//! | arguments of a request | 2^31 - 1 | a protocol error, from the parser |
//! | entries of a leaf | a few hundred, or some KB | nothing: the leaf is split |
//! | entries of one hash, whose leaf cannot be split | 2^28, and 4 GB | the server stops with a report |
//! | elements of a collection, keys, entries of a stream | 2^64 | nothing |
//!
//! (1) Before the command runs: each argument of a command that writes is looked at
//! (`server/src/core/too_long.rs`). (2) In XADD, by [`Lengths::is_row_too_long`].
//!
//! Why a leaf stays below 4 GB: it is split when it has more than some KB and more than one entry, and an
//! entry has two elements at most (a field and its value). So when an entry comes there are four elements and
//! some KB in it for a moment, and the allocator adds a quarter at most. A stream's leaf takes an entry
//! beside others only where all of them are small, and a first entry is there twice while its leaf grows.
//! Behind that stands an assertion: no block of 4 GB is ever made (`memory/block.rs`), and what a leaf writes
//! in 32 bits lies within its block.

/// The longest key, field, member or element, and the longest value of a field. It is what Redis lets a
/// client send by default.
pub const ELEMENT_BYTES_MAX: usize = 512 << 20;

/// The most that all fields and values of one stream entry may take together, their frames included.
pub const ROW_BYTES_MAX: usize = 1 << 30;

/// The most bytes that a field or value of a stream entry takes beside its text, to say how long it is. It
/// takes at least as many in the protocol.
const CELL_FRAME_BYTES: usize = 6;

/// The most bytes that a leaf has beside its large elements: small entries, and the lengths of all entries.
const LEAF_REST_BYTES: usize = 1 << 20;

/// The largest allocation for content of `size` bytes: a block grows by a quarter at most.
const fn with_step(size: usize) -> usize {
    size + size / 4
}

const _: () = assert!(with_step(4 * ELEMENT_BYTES_MAX + LEAF_REST_BYTES) < u32::MAX as usize);
const _: () = assert!(with_step(2 * ROW_BYTES_MAX + LEAF_REST_BYTES) < u32::MAX as usize);

/// The limits in force: those above, or lower ones in tests, which need less memory then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    pub element_bytes_max: usize,
    pub row_bytes_max: usize,
}

impl Default for Lengths {
    fn default() -> Lengths {
        Lengths { element_bytes_max: ELEMENT_BYTES_MAX, row_bytes_max: ROW_BYTES_MAX }
    }
}

impl Lengths {
    /// Whether an entry of so many fields, whose names and values have so much text together, is too long for
    /// a stream.
    pub fn is_row_too_long(&self, text_bytes: usize, fields: usize) -> bool {
        text_bytes.saturating_add(fields.saturating_mul(2 * CELL_FRAME_BYTES)) > self.row_bytes_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_entry_counts_the_frames_of_its_fields() {
        let lengths = Lengths::default();
        assert!(!lengths.is_row_too_long(ROW_BYTES_MAX - 12, 1));
        assert!(lengths.is_row_too_long(ROW_BYTES_MAX - 11, 1));
        assert!(lengths.is_row_too_long(0, 1 << 27) && lengths.is_row_too_long(usize::MAX, usize::MAX));
    }
}
