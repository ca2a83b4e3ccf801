//! The packed tree: a copy-on-write B+ tree whose leaves are packed byte blocks. Knows no keys, expiry or
//! commands.
//!
//! | folder | what it holds |
//! |---|---|
//! | `classic` | the encodings of Redis as bytes: listpacks, ziplists, LZF and their like |
//! | `memory` | the allocator of leaves ([`arena`]), what is in use ([`counted`]), blocks, shared values |
//! | `code` | how numbers and texts become few bytes, and how those are searched |
//! | `tree` | the tree itself, over any kind of leaf |
//! | `map` | [`map::Map`], ordered by hash: keyspace, hashes, sets; [`pairs`] and [`set_image`], small ones |
//! | `list` | [`seq::Seq`], ordered by rank; [`image`], a small one |
//! | `sorted` | [`sorted::Sorted`], ordered by score and member |
//! | `integers` | [`int_set::IntSet`] and [`int_map::IntMap`], ordered by value |
//! | `log` | [`log::Log`] and [`records::Records`], ordered by id: streams and their pending entries |
//!
//! Each folder knows only those above it in this table, and the last five know nothing of each other, but
//! that a sorted set keeps some of its members in a map: `cargo xtask tidy` refuses other imports.
pub mod classic;
mod code;
mod integers;
pub mod limits;
mod list;
pub mod log;
pub mod map;
mod memory;
#[cfg(test)]
mod model;
pub mod sorted;
mod tree;

pub use classic::{listpack, lzf};
pub use code::ones::count_ones;
pub use code::{short_int, sixes};
pub use integers::{int_map, int_set};
pub use list::{compressed, image, in_place, seq};
pub use log::records;
pub use map::item_index::ItemIndex;
pub use map::{fields, pairs, set_image, sift};
pub use memory::prefetch::{prefetch_to_write, prefetch_value};
pub use memory::twins::end_keeping;
pub use memory::{apart, arena, counted};
pub use tree::SOLE_SAMPLES;
pub use tree::stats;
