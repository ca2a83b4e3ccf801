//! Integers, ordered by value: sets (`int_set.rs`), whose leaves are Elias-Fano codes (`int_leaf.rs`), and
//! maps of integers to integers (`int_map.rs`), whose leaves are two columns (`paired.rs`).
mod int_leaf;
pub mod int_map;
pub mod int_set;
mod paired;
