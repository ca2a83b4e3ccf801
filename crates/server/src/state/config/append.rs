//! What the settings of the append-only file say. Their rows are in `persistence_rows`.
use std::path::PathBuf;

/// What the settings of the append-only file say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appending {
    /// `appendonly`
    pub is_wanted: bool,
    /// `appendfilename`: what the names of its files begin with.
    pub file_name: PathBuf,
    /// `appenddirname`: the folder of its files, in the working directory.
    pub folder: PathBuf,
    /// `appendfsync`
    pub sync: AppendSync,
    /// `no-appendfsync-on-rewrite`
    pub rests_while_saving: bool,
    /// `auto-aof-rewrite-percentage`; 0: never.
    pub growth_percent: u32,
    /// `auto-aof-rewrite-min-size`
    pub rewrite_bytes_min: u64,
    /// `aof-load-truncated`
    pub may_be_truncated: bool,
    /// `aof-timestamp-enabled`
    pub has_times: bool,
    /// `aof-use-rdb-preamble`: the base is a dump file, otherwise commands.
    pub begins_with_dump: bool,
    /// `aof-rewrite-incremental-fsync`
    pub syncs_rewrites: bool,
}

/// When the disk is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendSync {
    /// Before each reply to a write.
    Always,
    /// Once a second.
    EverySecond,
    /// When the system does it by itself.
    No,
}

impl Default for Appending {
    fn default() -> Appending {
        Appending {
            is_wanted: false,
            file_name: "appendonly.aof".into(),
            folder: "appendonlydir".into(),
            sync: AppendSync::EverySecond,
            rests_while_saving: false,
            growth_percent: 100,
            rewrite_bytes_min: 64 << 20,
            may_be_truncated: true,
            has_times: false,
            begins_with_dump: true,
            syncs_rewrites: true,
        }
    }
}
