//! The settings that data commands and values obey: a snapshot of the configuration, replaced as a whole by
//! CONFIG SET. A view borrows it for one command, so no command sees two versions.
use crate::Eviction;
use crate::zset::name::ZSetLimits;
use pack::limits::Lengths;
use pack::log;
use pack::seq::{Codec, Fill, Limits};

/// Only what changes how data is kept or how large it may be; the rest of the configuration is the server's.
#[derive(Clone, Debug)]
pub struct Settings {
    pub list: Limits,
    pub hash: HashLimits,
    pub set: SetLimits,
    pub zset: ZSetLimits,
    pub stream: log::Limits,
    pub proto_max_bulk_len_bytes: u64,
    /// The greatest lengths of keys and elements. Tests lower them; there is no setting for users.
    pub lengths: Lengths,
    /// `hll-sparse-max-bytes`: a HyperLogLog that would be longer becomes an array of registers.
    pub hll_sparse_bytes_max: u64,
    /// `rdbcompression`: whether strings are compressed in dump files, and in what DUMP answers.
    pub rdb_compresses: bool,
    pub lazyfree_user_del: bool,
    pub lazyfree_user_flush: bool,
    pub eviction: Eviction,
    /// Whether there is a limit on memory: `maxmemory` is not 0.
    pub limits_memory: bool,
}

impl Settings {
    /// Whether Redis would keep one object for all keys with the same small integer. It does not where
    /// eviction goes by the uses of each key.
    pub fn shares_integers(&self) -> bool {
        !self.limits_memory || !self.eviction.policy.goes_by_uses()
    }
}

/// By which a set gets its name: `set-max-intset-entries` and the like. Nothing else depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetLimits {
    pub intset_entries: u64,
    pub listpack_entries: u64,
    pub listpack_value_bytes: u64,
}

/// A hash beyond either limit goes by the name "hashtable". Nothing else depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashLimits {
    /// The greatest number of fields.
    pub entries: u64,
    /// The greatest length of a field or a value, in bytes.
    pub value: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            list: Limits { fill: Fill::Bytes(8192), depth: 0, codec: Codec::Lzf },
            hash: HashLimits { entries: 512, value: 64 },
            set: SetLimits { intset_entries: 512, listpack_entries: 128, listpack_value_bytes: 64 },
            zset: ZSetLimits::default(),
            stream: log::Limits { bytes: 4096, entries: 100 },
            proto_max_bulk_len_bytes: 512 << 20,
            lengths: Lengths::default(),
            hll_sparse_bytes_max: 3_000,
            rdb_compresses: true,
            lazyfree_user_del: false,
            lazyfree_user_flush: false,
            eviction: Eviction::default(),
            limits_memory: false,
        }
    }
}
