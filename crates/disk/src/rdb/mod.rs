//! Redis's dump files, and the values in them.
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
//! | `version.rs` | the versions of the format |
//! | `kind.rs` | the types of values, and which version each came with |
//! | `read.rs` | lengths, strings and numbers, read from bytes that may be anything |
//! | `load.rs`, `load_stream.rs` | values, put under a key |
//! | `gather.rs` | the elements of a collection, gathered to be built at once |
//! | `write.rs` | lengths, strings and numbers, written |
//! | `save.rs`, `save_stream.rs` | values of a snapshot, in the types that the version has |
//! | `payload.rs` | what DUMP replies and RESTORE takes |
//! | `functions.rs` | what FUNCTION DUMP replies and FUNCTION RESTORE takes |
//! | `file.rs` | what a file consists of |
//! | `save_file.rs` | files, written from frozen data |
//! | `load_file.rs`, `skip.rs` | files, cut into batches of keys |
//! | `sort.rs` | batches, brought into the order of the keyspace and loaded |
//!
//! Versions: 9 is Redis 5 and 6, 10 is 7.0, 11 is 7.2, 12 is 7.4 and 8; Valkey goes on from 80. What is read
//! comes from anybody: every length is checked before it is believed, memory is taken in proportion to what
//! has arrived, and what cannot be read leaves nothing behind.
mod file;
#[cfg(test)]
mod file_tests;
mod functions;
mod gather;
mod kind;
mod load;
mod load_file;
mod load_stream;
mod payload;
mod read;
mod save;
mod save_file;
mod save_stream;
mod skip;
mod sort;
mod version;
mod write;

pub use crate::source::Broken;
pub(crate) use save_file::{Disk, visit};
pub(crate) use write::Sink;

pub use functions::{LibrariesError, dump_libraries, read_libraries};
pub use load_file::{Batch, FileReader, LoadCounts, LoadError, LoadRules, Piece};
pub use payload::{PayloadError, check, dump, restore, seal};
pub use save::Form;
pub use save_file::{About, FileForm, GoOn, Output, SaveError, Step, save_file};
pub use sort::{Sorted, Sorter};
pub use version::{VERSION_MAX, VERSION_WRITTEN, VERSION_WRITTEN_MAX};
