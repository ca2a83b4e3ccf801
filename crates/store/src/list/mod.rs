//! Lists.
//!
//! | file | what it holds |
//! |---|---|
//! | `api.rs` | a list as commands see it, inside its entry or outside |
//! | `at_ends.rs` | edits at the ends of a list inside its entry, made where it lies |
//! | `build.rs` | a list made of many elements at once |
//! | `image.rs` | a list inside its entry |
//! | `tree.rs` | a list outside its entry |
//! | `listpack.rs` | when Redis would call a list "listpack" |
pub(crate) mod api;
mod at_ends;
#[cfg(test)]
mod at_ends_tests;
mod build;
mod image;
pub(crate) mod listpack;
pub(crate) mod tree;
