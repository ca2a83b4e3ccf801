//! Hashes.
//!
//! | file | what it holds |
//! |---|---|
//! | `api.rs` | a hash as commands see it, inside its entry or outside |
//! | `tree.rs` | a hash outside its entry, with a timing wheel for its fields |
//! | `field.rs` | what is kept for one field: the value, and the deadline where there is one |
pub(crate) mod api;
pub(crate) mod field;
#[cfg(test)]
mod properties;
pub(crate) mod tree;
