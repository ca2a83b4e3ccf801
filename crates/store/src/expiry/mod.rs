//! Deadlines, and what falls due when.
//!
//! | file | what it holds |
//! |---|---|
//! | `deadline.rs` | when a key or a field goes |
//! | `notes.rs` | the rules for notes of leaves and items of the wheel |
//! | `timer.rs` | what a change of a deadline touches besides the entry |
//! | `supply.rs` | whether any key has a deadline, for eviction |
//! | `reaper.rs` | removing what is due, keys and fields alike: a turn of the wheel, and a sweep of leaves |
//! | `sweep.rs` | keys that are due, by the clock, and the one that is due first where memory is short |
//! | `wheel.rs` | the timing wheel: what falls due when |
//! | `fields.rs` | fields of hashes past their deadlines |
pub(crate) mod deadline;
pub(crate) mod fields;
pub(crate) mod notes;
pub(crate) mod reaper;
pub(crate) mod supply;
pub(crate) mod sweep;
#[cfg(test)]
mod tests;
pub(crate) mod timer;
pub(crate) mod wheel;
