//! All keys: shards behind mutexes, their databases, and what a command sees of those that it holds.
//!
//! | file | what it holds |
//! |---|---|
//! | `shards.rs` | all shards: who locks what, in which order |
//! | `shard.rs` | one shard: databases, counters, buffers; what is freed where |
//! | `databases.rs` | those of a shard beside database 0, found by their numbers |
//! | `stats.rs`, `garbage.rs` | what a shard counts; values that are freed later |
//! | `seeds.rs` | what names are hashed with |
//! | `locked.rs` | a shard while it is locked; how many keys it has, without the lock |
//! | `ears.rs` | whether anybody listens to a key |
//! | `guards.rs`, `held.rs` | the locks of a view; locks that outlive it |
//! | `keys.rs` | the keys of a command that names several |
//! | `view.rs` | what a command sees of the shards it holds |
//! | `arrivals.rs` | buffers of requests that run, which a key may keep |
//! | `aside.rs` | some data as it was at one moment, for a command that reads it |
//! | `made.rs` | what a command has made of its keys beside, and how it takes their place |
//! | `whole.rs` | work on all keys: walks, counts, flushes |
//! | `relocate.rs` | moving data out of sparse memory |
//! | `repeated.rs` | keys that a command names more than once |
pub(crate) mod arrivals;
pub(crate) mod aside;
pub(crate) mod databases;
pub(crate) mod ears;
#[cfg(test)]
mod ears_tests;
pub(crate) mod frozen;
pub(crate) mod garbage;
pub(crate) mod guards;
pub(crate) mod held;
pub(crate) mod keys;
pub(crate) mod locked;
pub(crate) mod made;
pub(crate) mod relocate;
pub(crate) mod repeated;
#[cfg(test)]
mod scan_tests;
pub(crate) mod seeds;
pub(crate) mod shard;
pub(crate) mod shards;
pub(crate) mod stats;
pub(crate) mod taken;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod view;
pub(crate) mod whole;
