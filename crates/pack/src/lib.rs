//! The packed tree: a copy-on-write B+ tree whose leaves are packed byte blocks. Its faces: [`map::Map`], ordered by
//! hash, [`int_set::IntSet`] and [`int_map::IntMap`], ordered by value, [`seq::Seq`], ordered by rank, [`sorted::Sorted`], by score and member, [`log::Log`] and [`records::Records`], ordered by id. Beside them what leaves are allocated from: [`arena`], and [`counted`], which adds it
//! up. Knows no keys, expiry or commands.
mod alloc;
pub mod arena;
mod block;
mod cell;
mod chain;
pub mod classic;
mod column;
mod columns;
pub mod compressed;
pub mod counted;
mod crowd;
mod cull;
mod elias_fano;
pub mod fields;
mod form;
pub mod image;
mod index;
pub mod int_map;
pub mod int_set;
mod ints;
mod leaf;
mod lengths;
pub mod listpack;
pub mod log;
pub mod map;
mod member;
#[cfg(test)]
mod model;
mod node;
mod ones;
mod order;
mod paired;
pub mod pairs;
mod placed;
pub mod records;
mod rows;
mod score;
mod scored;
pub mod seq;
pub mod set_image;
mod shared;
pub mod short_int;
mod simd;
pub mod sixes;
pub mod sorted;
pub mod stats;
mod strings;
mod tagged;
mod tree;
mod twins;
mod two_columns;
mod varint;
mod wide;

pub use ones::count_ones;
pub use simd::prefetch_value;
