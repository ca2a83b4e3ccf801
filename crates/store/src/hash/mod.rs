//! Hashes.
//!
//! | file | what it holds |
//! |---|---|
//! | `api.rs` | a hash as commands see it, inside its entry or outside |
//! | `build.rs` | a hash made of all its fields at once |
//! | `tree.rs` | a hash outside its entry, with a timing wheel for its fields |
//! | `image.rs` | a hash inside its entry |
//! | `due.rs` | when fields fall due, wherever the hash lies |
//! | `name.rs` | "listpack", "listpackex" or "hashtable", as Redis would call it |
//! | `field.rs` | what is kept for one field: the value, and the deadline where there is one |
#[cfg(test)]
mod apart_tests;
pub(crate) mod api;
pub(crate) mod build;
pub(crate) mod due;
pub(crate) mod field;
pub(crate) mod image;
pub(crate) mod name;
#[cfg(test)]
mod properties;
pub(crate) mod tree;
