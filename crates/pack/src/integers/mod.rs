//! Integers, ordered by value: sets (`int_set.rs`), whose leaves are Elias-Fano codes (`elias_fano.rs`), and maps of integers to
//! integers (`int_map.rs`), whose leaves are two columns (`paired.rs`).
mod elias_fano;
pub mod int_map;
pub mod int_set;
mod paired;
