//! How long what is kept may be. Leaves count in 32 bits: offsets, lengths, how many entries there are. This is why they never wrap.
//!
//! | what | at most | what a client sees beyond it | checked |
//! |---|---|---|---|
//! | a key, a field, a member, an element, a value of a field, a name | [`ELEMENT_BYTES_MAX`], 512 MB | an error, before the command runs | each argument of a command that writes (`server/src/core/too_long.rs`) |
//! | an element that SORT ... STORE takes from a string | the same | the same error; nothing is stored | in SORT |
//! | an entry of a stream | [`ROW_BYTES_MAX`], 1 GB, as in Redis | Redis's error | in XADD ([`Lengths::is_row_too_long`]) |
//! | a string | `proto-max-bulk-len`, and what the system can map; 64 bits | Redis's error | where one grows |
//! | arguments of a request | 2^31 - 1 | a protocol error | in the parser |
//! | entries of a leaf | a few hundred, or some KB | nothing: the leaf is split | in each form |
//! | entries of a leaf that cannot be split, for their hashes are equal | 2^28, and 4 GB | the server stops with a report | when the leaf is written |
//! | elements of a collection, keys, entries of a stream | 2^64 | nothing | |
//!
//! Why a leaf stays below 4 GB: it is split when it has more than some KB and more than one entry, and an entry has two elements
//! at most (a field and its value). So when an entry comes there are four elements and some KB in it for a moment, and the
//! allocator adds a quarter at most. A stream's leaf takes an entry beside others only where all is small, and holds a
//! first entry once more while it grows. Behind that stands an assertion: no block of 4 GB is ever made (`memory/block.rs`), and
//! what a leaf writes in 32 bits lies within its block.

/// The longest key, field, member or element, and the longest value of a field. It is what Redis lets a client send by default.
pub const ELEMENT_BYTES_MAX: usize = 512 << 20;

/// The most that all fields and values of one stream entry may take together, their frames included.
pub const ROW_BYTES_MAX: usize = 1 << 30;

/// A field or value of a stream entry costs no more than this beside its text: what says how long it is. A client sends as much.
const CELL_FRAME_BYTES: usize = 6;

/// The most that a leaf has beside what is large in it: entries that are small, and frames.
const LEAF_REST_BYTES: usize = 1 << 20;

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
    /// Whether an entry of so many fields, whose names and values have so much text together, is too long for a stream.
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
