//! Sorted sets.
//!
//! | file | what it holds |
//! |---|---|
//! | `api.rs` | a sorted set as commands see it, inside its entry or outside |
//! | `build.rs` | a sorted set made of all its entries at once |
//! | `image.rs` | a sorted set inside its entry |
//! | `tree.rs` | a sorted set outside its entry |
//! | `name.rs` | "listpack" or "skiplist", as Redis would call it |
//! | `copy.rs` | a copy, to be read while other keys are edited |
pub(crate) mod api;
mod build;
pub(crate) mod copy;
mod image;
pub(crate) mod name;
pub(crate) mod tree;
