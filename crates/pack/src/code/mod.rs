//! Codes: how numbers and texts become few bytes, and how bytes are searched, compared and counted many at a
//! time. What leaves of several kinds are made of; the leaves themselves are in the folders of their faces.
//!
//! | what | files |
//! |---|---|
//! | numbers, each by itself | `short_int.rs`, `varint.rs` (LEB128), `words.rs` (16, 32, 64 bits) |
//! | columns of numbers | `fixed_width.rs`, `sixes.rs` (6 bits each), `lengths.rs`, `two_columns.rs` |
//! | integers that rise | `elias_fano.rs`, over runs of bits (`bits.rs`) |
//! | scores as numbers of a column | `score.rs` |
//! | searching and comparing | `simd.rs` (16 tags at once), `probe.rs` (texts), `quarters.rs` (what rises) |
//! | counting over many bytes | `ones.rs` (set bits), `wide.rs` (loops compiled for what a processor has) |
pub(crate) mod bits;
pub(crate) mod elias_fano;
pub(crate) mod fixed_width;
pub(crate) mod lengths;
pub(crate) mod ones;
pub(crate) mod probe;
pub(crate) mod quarters;
pub(crate) mod score;
pub mod short_int;
pub(crate) mod simd;
pub mod sixes;
pub(crate) mod two_columns;
pub(crate) mod varint;
pub(crate) mod wide;
pub(crate) mod words;
