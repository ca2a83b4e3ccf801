//! Sets: an image inside the keyspace entry while they are small (`pack::set_image`), two trees behind the
//! entry's pointer from then on: one of integers by value, one of all other members by hash. So one text
//! among a million integers costs one entry, and nothing is converted.
//!
//! ```text
//!           neither 192 bytes, nor 768 and 96 members, nor 2 KB and 48, or a member of more than 247
//!   image  ------------------------------------------------------>  tree
//!          <------------------------------------------------------
//!           at most 16 members whose image is half of that, after a removal
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `name.rs` | "intset", "listpack" or "hashtable", as Redis would call it |
//! | `image.rs` | a small set, read in its entry or edited in a buffer |
//! | `tree.rs` | a set outside its entry |
//! | `read.rs`, `edit.rs` | the value API |
//! | `build.rs` | a set made of all its members at once |
//! | `fresh.rs` | a set that is not in the keyspace yet: results |
//! | `merge.rs` | intersection, union, difference |
//! | `walk.rs` | the same of integers, in order |
#[cfg(test)]
mod apart_tests;
pub(crate) mod build;
pub(crate) mod edit;
pub(crate) mod fresh;
pub(crate) mod image;
pub(crate) mod merge;
mod name;
#[cfg(test)]
mod properties;
pub(crate) mod read;
pub(crate) mod tree;
mod walk;
