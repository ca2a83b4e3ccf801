//! Lists.
//!
//! | file | what it holds |
//! |---|---|
//! | `api.rs` | a list as commands see it, inside its entry or outside |
//! | `tree.rs` | a list outside its entry |
//! | `listpack.rs` | when Redis would call a list "listpack" |
pub(crate) mod api;
pub(crate) mod listpack;
pub(crate) mod tree;
