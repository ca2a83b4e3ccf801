//! Streams: entries in the order of their ids, and the groups of consumers that read them.
//!
//! | what | where |
//! |---|---|
//! | entries | a log of packed leaves (`pack::log`) |
//! | pending: given to a consumer, not acknowledged | records (`pack::records`), of group and consumer |
//! | groups | here, each behind a count, in the order of their names |
//!
//! A stream lies outside its entry from the first and lives on when it runs empty, as in Redis. Copying one
//! costs an increment for its entries and one for each group; what is written afterwards is copied as far as
//! the write reaches.
//!
//! Besides its entries a stream remembers three things: the last id it gave (ids rise for ever), the greatest
//! that was deleted by name, and how many entries it ever got. From the last two follows what a group has
//! read and what lags behind it (`progress.rs`).
pub(crate) mod api;
pub(crate) mod group;
mod nodes;
pub(crate) mod pending;
mod progress;
pub(crate) mod radix;
pub(crate) mod references;
#[cfg(test)]
mod tests;
pub(crate) mod tree;
