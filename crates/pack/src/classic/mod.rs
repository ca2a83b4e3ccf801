//! The byte formats of Redis's own encodings, as dump files carry them.
pub mod lzf;
