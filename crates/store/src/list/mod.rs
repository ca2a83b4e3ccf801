//! Lists.
//!
//! | file | what it holds |
//! |---|---|
//! | `api.rs` | a list as commands see it, inside its entry or outside |
//! | `build.rs` | a list made of many elements at once |
//! | `image.rs` | a list inside its entry |
//! | `tree.rs` | a list outside its entry |
//! | `listpack.rs` | when Redis would call a list "listpack" |
pub(crate) mod api;
mod build;
mod image;
pub(crate) mod listpack;
pub(crate) mod tree;
