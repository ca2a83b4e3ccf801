//! The data: shards behind mutexes, databases, keyspace entries, one value API a type, expiry. Knows no RESP and no
//! commands, does no I/O, starts no threads, reads no clock.
//!
//! | file | what it holds |
//! |---|---|
//! | `keyspace.rs` | all shards: who locks what, in which order |
//! | `locked.rs` | a shard while it is locked; how many keys it has, without the lock |
//! | `shard.rs` | one shard: databases, counters, buffers; what is freed where |
//! | `view.rs` | what a command sees of the shards it holds |
//! | `entry.rs` | the bytes of a keyspace entry |
//! | `string.rs`, `list.rs`, `hash.rs`, `stream/` | one value API a type |
//! | `site.rs` | the place of a collection's entry while it is edited |
//! | `snapshot.rs` | a value as it was at one moment, to be read later |
//! | `outside.rs` | what a collection outside its entry is to those who keep it |
//! | `tree.rs` | a list outside its entry |
//! | `fields.rs`, `field.rs` | a hash outside its entry; what it keeps for one field |
//! | `overdue.rs` | fields past their deadlines |
//! | `set/` | sets: images, two trees, names, merging |
//! | `listpack.rs` | when Redis would call a list "listpack" |
//! | `expire.rs`, `wheel.rs` | deadlines, and what falls due when |
//! | `evict.rs`, `evict_beside.rs` | which key goes when memory is short |
//! | `uses.rs`, `calendar.rs`, `hand.rs` | when or how often a key was used, in a byte |
//! | `relocate.rs` | moving data out of sparse memory |
//! | `restless/` | data that comes and goes unseen, for tests |
//! | `whole.rs`, `info.rs` | work on all keys; what is to be told about one |
mod calendar;
#[cfg(test)]
mod copy_tests;
mod entry;
mod evict;
mod evict_beside;
#[cfg(test)]
mod evict_beside_tests;
#[cfg(test)]
mod evict_tests;
mod expire;
#[cfg(test)]
mod expire_tests;
mod field;
mod fields;
mod halt;
mod hand;
mod hash;
#[cfg(test)]
mod hash_properties;
mod info;
mod keys;
mod keyspace;
#[cfg(test)]
mod keyspace_tests;
mod lazyfree;
mod list;
mod listpack;
mod locked;
#[cfg(test)]
mod model;
mod outside;
mod overdue;
mod place;
#[cfg(test)]
mod properties;
mod relocate;
mod restless;
#[cfg(test)]
mod scan_tests;
mod set;
mod settings;
mod shard;
mod site;
mod snapshot;
mod stream;
mod string;
mod tree;
mod uses;
#[cfg(test)]
mod uses_tests;
#[cfg(test)]
mod value_tests;
mod view;
mod wheel;
mod whole;
mod zset;

pub use evict::{Eviction, Evictor, Outcome, Policy, counted_holes};
pub use evict_beside::Beside;
pub use fields::Lifetime;
pub use halt::Halt;
pub use hash::{Hash, HashMut};
pub use info::{Brief, KeyInfo};
pub use keys::Keys;
pub use keyspace::{Garbage, Keyspace, KeyspaceOptions, ShardStats, Weight};
pub use list::{List, ListMut};
pub use pack::count_ones;
pub use pack::limits::Lengths;
pub use pack::log::{Direction, Limits as StreamLimits, Pairs, Precision, Row, Trim};
pub use pack::seq::{Codec, End, Fill};
pub use pack::sixes;
pub use pack::sorted::{Bound, Entry as ZEntry, Member as ZMember};
pub use relocate::{Mover, MoverStats, StepLimits};
pub use restless::{Shadow, Transients};
pub use set::{Merge, NewSet, Set, SetMut};
pub use settings::{HashLimits, SetLimits, Settings};
pub use snapshot::Snapshot;
pub use stream::{
    Acknowledgment, Consumer, ConsumerId, Fate, Group, Id, Member, Pending, RadixTree, References, Stream,
    StreamMut,
};
pub use string::{AddError, Expiry, Form, Growth, HUGE_STRING_BYTES_MIN, LookUp, has_room_for_string};
pub use uses::Usage;
pub use view::{Deadline, Key, Kind, Taken, View, WrongType};
pub use whole::{Deadlines, ScanStep};
pub use zset::{LexBound, RankSpan, ZSet, ZSetCopy, ZSetLimits, ZSetMut};
