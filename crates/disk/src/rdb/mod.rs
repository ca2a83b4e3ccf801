//! Values in the format of Redis's dump files.
//!
//! ```text
//! value   = | type: u8 | what the type says |
//! string  = | length | bytes |     or an integer, or compressed
//! length  = 00llllll               6 bits
//!           01llllll l             14 bits
//!           80 llll                32 bits, the highest byte first
//!           81 llllllll            64 bits
//!           C0 C1 C2               in place of a string: an integer of 8, 16, 32 bits, the lowest byte first
//!           C3                     in place of a string: compressed length, length, bytes of LZF
//! payload = | type: u8 | ... | version: u16 | checksum: u64 |     what DUMP replies, all lowest byte first
//! ```
//!
//! | file | what it does |
//! |---|---|
//! | `kind.rs` | the types of values, and which version each came with |
//! | `source.rs`, `read.rs` | lengths, strings and numbers, read from bytes that may be anything |
//! | `load.rs`, `load_stream.rs` | values, put under a key |
//! | `write.rs` | lengths, strings and numbers, written |
//! | `save.rs`, `save_stream.rs` | values of a snapshot, in the types that the version has |
//! | `payload.rs` | what DUMP replies and RESTORE takes |
//!
//! Versions: 9 is Redis 5 and 6, 10 is 7.0, 11 is 7.2, 12 is 7.4 and 8; Valkey goes on from 80. What is read
//! comes from anybody: every length is checked before it is believed, memory is taken in proportion to what
//! has arrived, and what cannot be read leaves nothing behind.
mod kind;
mod load;
mod load_stream;
mod payload;
mod read;
mod save;
mod save_stream;
mod source;
mod write;

pub use payload::{PayloadError, check, dump, restore, seal};
pub use save::Form;

/// The version that is written where nobody asks for another: redis-server 7.0 reads it, and all later ones.
pub const VERSION_WRITTEN: u16 = 10;
/// The version in which fields of hashes have deadlines.
const VERSION_TIMED_FIELDS: u16 = 12;
/// The versions that Valkey counts for itself begin here.
const VERSION_VALKEY: u16 = 80;
/// The newest version that is read.
pub const VERSION_MAX: u16 = 80;

/// Bytes that are no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What is wrong.
    pub what: &'static str,
    /// At which byte.
    pub at: u64,
}
