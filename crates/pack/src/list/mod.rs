//! Lists: byte strings in an order that whoever pushes them decides. The list itself is `seq.rs`; its leaves
//! lie in a chain (`chain.rs`). A leaf (`leaf.rs`) holds integers (`ints.rs`) or strings (`strings.rs`), open
//! or compressed (`compressed.rs`); a short list is one leaf without room (`tight.rs`) inside its keyspace
//! entry (`image.rs`), which can be edited where it lies (`in_place.rs`). How large a leaf may
//! get: `limits.rs`.
mod chain;
pub mod compressed;
pub mod image;
pub mod in_place;
pub(crate) mod ints;
pub(crate) mod leaf;
pub(crate) mod limits;
pub mod seq;
pub(crate) mod strings;
mod tight;
