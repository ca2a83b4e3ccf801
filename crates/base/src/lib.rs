//! What every layer shares and none owns: integers and bytes as text, glob patterns, keyed hashing, random
//! numbers, time as a value, limits. No I/O, no threads, no clock, no globals.
pub mod glob;
pub mod hash;
pub mod item;
pub mod random;
pub mod text;
pub mod time;

pub use item::Item;
pub use time::Millis;
