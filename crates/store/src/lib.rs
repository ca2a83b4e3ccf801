//! The data: shards behind mutexes, databases, keyspace entries, one value API a type, expiry. Knows no RESP and no
//! commands, does no I/O, starts no threads, reads no clock.
mod keyspace;
mod list;
mod settings;
mod string;
mod view;
mod whole;

pub use keyspace::{Garbage, Keyspace, KeyspaceOptions, ShardStats};
pub use list::{List, ListMut};
pub use pack::seq::{Codec, End, Fill};
pub use settings::Settings;
pub use string::{AddError, Expiry, Form};
pub use view::{Deadline, Key, KeyInfo, Kind, View, WrongType};
pub use whole::ScanStep;
