//! The data: shards behind mutexes, databases, keyspace entries, one value API a type, expiry. Knows no RESP
//! and no commands, does no I/O, starts no threads, reads no clock.
//!
//! | where | what it holds |
//! |---|---|
//! | `keyspace/` | shards and their locks, what a command sees of them, work on all keys |
//! | `entry.rs`, `value.rs`, `kind.rs` | the bytes of a keyspace entry; what lies outside; the types |
//! | `string.rs`, `list/`, `hash/`, `set/`, `zset/`, `stream/` | the types: a value API each |
//! | `at_once.rs`, `build.rs` of each type | a collection that is made of all its elements at once |
//! | `arrived.rs` | long strings that stay in the buffer of their request |
//! | `edit.rs`, `site.rs` | the life cycle of a collection that is edited; its entry meanwhile |
//! | `outside.rs` | what a collection outside its entry is to those who keep it |
//! | `snapshot.rs`, `halt.rs` | a value as it was at one moment; where a walk over one stands |
//! | `position.rs` | where a walk over integers and text stands: HSCAN's and SSCAN's cursors |
//! | `event.rs`, `field_names.rs` | what happens to keys, for those who listen |
//! | `expiry/` | deadlines, and what falls due when |
//! | `eviction/` | which key goes when memory is short; when or how often a key was used |
//! | `info.rs`, `key_info.rs`, `lazyfree.rs` | what clients are told about a key; what UNLINK counts |
//! | `settings.rs` | the settings that the data depends on |
//! | `restless/` | for tests: data that comes and goes without a client seeing it |
mod arrived;
mod at_once;
#[cfg(test)]
mod build_tests;
#[cfg(test)]
mod copy_tests;
mod distinct;
mod edit;
#[cfg(test)]
mod edit_tests;
mod entry;
mod event;
mod eviction;
mod expiry;
mod field_names;
mod halt;
mod hash;
mod info;
#[cfg(test)]
mod info_tests;
mod inside;
mod key_info;
mod keyspace;
mod kind;
mod lazyfree;
mod list;
#[cfg(test)]
mod model;
mod outside;
mod position;
#[cfg(test)]
mod properties;
mod restless;
mod set;
mod settings;
mod site;
mod snapshot;
mod stream;
mod string;
mod value;
#[cfg(test)]
mod value_tests;
mod zset;

pub use event::{Classes, Event, Listener, Offer, Told};
pub use eviction::beside::Beside;
pub use eviction::choose::{Evictor, Outcome, counted_holes};
pub use eviction::policy::{Eviction, Policy};
pub use eviction::uses::{Replaced, Usage};
pub use expiry::deadline::Deadline;
pub use halt::Halt;
pub use hash::api::{FieldSearch, Hash, HashMut};
pub use hash::build::NewField;
pub use hash::tree::Lifetime;
pub use info::Brief;
pub use key_info::KeyInfo;
pub use keyspace::arrivals::Arrival;
pub use keyspace::aside::Extent;
pub use keyspace::frozen::{Frozen, FrozenDb, FrozenEntry, FrozenShard};
pub use keyspace::garbage::{Garbage, Weight};
pub use keyspace::held::Held;
pub use keyspace::keys::Keys;
pub use keyspace::made::{Before, Made};
pub use keyspace::relocate::{Mover, MoverStats, StepLimits};
pub use keyspace::repeated::first_places;
pub use keyspace::shards::{BEFORE_ALL, Keyspace, KeyspaceOptions};
pub use keyspace::stats::ShardStats;
pub use keyspace::taken::{Kept, Taken, TooLong};
pub use keyspace::view::{Key, View};
pub use keyspace::whole::{Deadlines, ScanStep};
pub use kind::{EditError, Kind, WrongType};
pub use list::api::{List, ListMut};
pub use pack::count_ones;
pub use pack::end_keeping;
pub use pack::limits::Lengths;
pub use pack::log::{
    Direction, Entries, LEAF_BYTES_MAX as NODE_BYTES_MAX, Limits as StreamLimits, NodeSize, Pairs, Precision,
    Row, Sheet, Trim,
};
pub use pack::seq::{Codec, End, Fill};
pub use pack::sixes;
pub use pack::sorted::{Bound, Entry as ZEntry, Member as ZMember};
pub use restless::{Shadow, Transients};
pub use set::edit::SetMut;
pub use set::fresh::NewSet;
pub use set::merge::Merge;
pub use set::read::Set;
pub use settings::{HashLimits, SetLimits, Settings};
pub use snapshot::{Snapshot, ValueRef};
pub use stream::api::StreamMut;
pub use stream::group::{Consumer, ConsumerId, Group};
pub use stream::pending::Pending;
pub use stream::radix::RadixTree;
pub use stream::references::{Fate, References};
pub use stream::tree::{Acknowledgment, Id, Member, Stream};
pub use string::{AddError, Expiry, Growth, HUGE_STRING_BYTES_MIN, LookUp, has_room_for_string};
pub use value::Form;
pub use zset::api::{LexBound, RankSpan, ZSet, ZSetMut};
pub use zset::copy::ZSetCopy;
pub use zset::name::ZSetLimits;
