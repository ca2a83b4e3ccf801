//! What every layer shares and none owns: integers, doubles and bytes as text, glob patterns, keyed hashing,
//! random numbers, time and sizes as values. No I/O, no threads, no clock, no globals of its own.
pub mod digest;
pub mod double;
pub mod file_glob;
pub mod glob;
pub mod glob_parts;
mod grisu;
pub mod hash;
pub mod item;
pub mod murmur;
pub mod name;
pub mod permutation;
pub mod quotes;
pub mod random;
pub mod reason;
pub mod short;
pub mod size;
pub mod text;
pub mod time;
pub mod word;

pub use item::Item;
pub use time::Millis;
