//! Deadlines, and what falls due when.
//!
//! | file | what it holds |
//! |---|---|
//! | `sweep.rs` | what is due goes, by the clock: the notes of leaves, and the sweep of those whose time has come |
//! | `wheel.rs` | the timing wheel: what falls due when |
//! | `fields.rs` | fields of hashes past their deadlines |
pub(crate) mod fields;
pub(crate) mod sweep;
#[cfg(test)]
mod tests;
pub(crate) mod wheel;
