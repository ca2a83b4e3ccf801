//! What a data command sees: the shards of its keys, locked, one database of them, the time, the settings. A [`Key`]
//! can only come from the lock that made the view, so a command cannot name a shard that it does not hold.
use crate::{Garbage, Settings};
use base::Millis;
use std::marker::PhantomData;

/// A key whose shard is locked by the view it came with.
#[derive(Clone, Copy)]
pub struct Key<'k>(PhantomData<&'k [u8]>);

#[allow(unused_variables)]
impl<'k> Key<'k> {
    pub fn bytes(&self) -> &'k [u8] {
        todo!()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    String,
    List,
}
impl Kind {
    /// TYPE's word.
    pub fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::List => "list",
        }
    }
}

/// The key holds a value of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType;

/// When a key that exists goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    Never,
    At(Millis),
}

/// What OBJECT, DEBUG OBJECT, MEMORY USAGE and MEMORY LAYOUT report.
#[derive(Clone, Debug)]
pub struct KeyInfo {
    pub kind: Kind,
    pub encoding: &'static str,
    /// Whether the value lies inside its keyspace entry.
    pub is_inline: bool,
    /// Elements, or bytes of a string.
    pub len: u64,
    /// All bytes that the key costs: its entry with its share of the leaf's overhead, and what lies outside.
    pub memory_bytes: u64,
    /// The size that Redis would serialize it to, about.
    pub serialized_bytes: u64,
    pub stats: pack::stats::Stats,
    pub nodes: pack::seq::Nodes,
}

pub struct View<'k>(PhantomData<&'k ()>);

#[allow(unused_variables)]
impl<'k> View<'k> {
    pub fn now(&self) -> Millis {
        todo!()
    }
    pub fn settings(&self) -> &'k Settings {
        todo!()
    }
    /// From here on lookups count as keyspace hits and misses (dispatch calls it for commands that read).
    pub fn count_lookups(&mut self) {
        todo!()
    }
    /// A key past its deadline is removed by whatever looks at it: every method here behaves as if it were gone.
    pub fn exists(&mut self, key: &Key<'_>) -> bool {
        todo!()
    }
    pub fn kind(&mut self, key: &Key<'_>) -> Option<Kind> {
        todo!()
    }
    pub fn deadline(&mut self, key: &Key<'_>) -> Option<Deadline> {
        todo!()
    }
    /// Whether the key existed. A deadline that has passed removes the key.
    pub fn set_deadline(&mut self, key: &Key<'_>, deadline: Deadline) -> bool {
        todo!()
    }
    /// Whether it existed. What is large is left for the background.
    pub fn remove(&mut self, key: &Key<'_>) -> bool {
        todo!()
    }
    /// OBJECT ENCODING's name under the thresholds.
    pub fn info(&mut self, key: &Key<'_>) -> Option<KeyInfo> {
        todo!()
    }
    /// A write changed so many things (`rdb_changes_since_last_save`). The value APIs do not count: commands do, as Redis does.
    pub fn dirty(&mut self, changes: u64) {
        todo!()
    }
    /// Takes what is to be freed elsewhere; nearly always empty.
    pub fn take_garbage(&mut self) -> Vec<Garbage> {
        todo!()
    }
}
