//! Sets: an image inside the keyspace entry while they are small (`pack::set_image`), two trees behind the entry's pointer from then
//! on: integers by value, all other members by hash. So one text among a million integers costs one entry of its own
//! tree, and nothing is converted.
//!
//! ```text
//!           image beyond 192 bytes, or a member of more than 247
//!   image  ------------------------------------------------------>  members
//!          <------------------------------------------------------
//!           at most 16 members whose image is half of that, after a removal
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `name.rs` | "intset", "listpack" or "hashtable", as Redis would call it |
//! | `image.rs` | a small set, read in its entry or edited in a buffer |
//! | `members.rs` | a set outside its entry |
//! | `place.rs` | where a walk stands: SSCAN's cursor |
//! | `read.rs`, `edit.rs` | the value API |
//! | `fresh.rs` | a set that is not in the keyspace yet: results |
//! | `merge.rs` | intersection, union, difference |
mod edit;
mod fresh;
mod image;
mod members;
mod merge;
mod name;
#[cfg(test)]
mod properties;
mod read;

pub use edit::SetMut;
pub use fresh::NewSet;
pub(crate) use image::Image;
pub(crate) use members::SetTree;
pub use merge::Merge;
pub(crate) use name::Name;
pub use read::Set;

/// A set leaves its entry when its image outgrows this. The entry is then below 256 bytes, so that its leaf keeps
/// lengths of one byte, and a walk over the image is shorter than a cache miss is long.
const IMAGE_BYTES_MAX: usize = 192;
