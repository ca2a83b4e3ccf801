//! Lists.
//!
//! | file | what it holds |
//! |---|---|
//! | `api.rs` | a list as commands see it, inside its entry or outside |
//! | `in_place.rs` | edits of a list inside its entry, made where it lies |
//! | `build.rs` | a list made of many elements at once |
//! | `image.rs` | a list inside its entry |
//! | `tree.rs` | a list outside its entry |
//! | `listpack.rs` | when Redis would call a list "listpack" |
pub(crate) mod api;
mod build;
mod image;
mod in_place;
#[cfg(test)]
mod in_place_tests;
pub(crate) mod listpack;
pub(crate) mod tree;
