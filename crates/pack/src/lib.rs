//! The packed tree: a copy-on-write B+ tree whose leaves are packed byte blocks. Knows no keys, expiry or commands.
//!
//! | folder | what it holds |
//! |---|---|
//! | `memory` | what leaves are allocated from: [`arena`], and [`counted`], which adds it up; blocks; values outside a leaf |
//! | `code` | how numbers and texts become few bytes, and how those are searched |
//! | `tree` | the tree itself, over any kind of leaf |
//! | `map` | [`map::Map`], ordered by hash: the keyspace, hashes, sets, and both when they are small: [`pairs`], [`set_image`] |
//! | `list` | [`seq::Seq`], ordered by rank |
//! | `sorted` | [`sorted::Sorted`], ordered by score and member |
//! | `integers` | [`int_set::IntSet`] and [`int_map::IntMap`], ordered by value |
//! | `log` | [`log::Log`] and [`records::Records`], ordered by id: streams, and what their consumers have yet to acknowledge |
//!
//! `memory` and `code` know none of the others, and `tree` knows these two. The other folders are made of the three.
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

pub use code::ones::count_ones;
pub use code::simd::prefetch_value;
pub use code::{listpack, lzf, short_int, sixes};
pub use integers::{int_map, int_set};
pub use list::{compressed, image, seq};
pub use log::records;
pub use map::{fields, pairs, set_image, sift};
pub use memory::{arena, counted};
pub use tree::SOLE_SAMPLES;
pub use tree::stats;
