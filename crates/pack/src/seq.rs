//! A sequence of byte strings, ordered by rank: the list. Leaves hold packed integers (all elements integers),
//! packed strings, or either of them compressed. Cloning costs one increment.
use crate::stats::Stats;
use base::Item;
use std::ops::ControlFlow;

pub use crate::image;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Head,
    Tail,
}

/// What `list-max-listpack-size` says: at most so many entries a leaf (and 8 KB), or so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    Entries(u32),
    Bytes(u32),
}

/// `list-compress-codec`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    Lzf,
    Lz4,
    Zstd,
}

/// How leaves are filled and compressed; an edit applies the limits it is given to the leaves it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub fill: Fill,
    /// `list-compress-depth`: so many leaves at each end stay open, 0 = no compression.
    pub depth: u32,
    pub codec: Codec,
}

#[derive(Clone)]
pub struct Seq(());

/// DEBUG OBJECT's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    pub leaves: u64,
    pub compressed: u64,
    /// Bytes of all leaves when opened.
    pub uncompressed_bytes: u64,
}

#[allow(unused_variables)]
impl Seq {
    pub fn new() -> Seq {
        todo!()
    }
    pub fn len(&self) -> u64 {
        todo!()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    pub fn push(&mut self, end: End, value: &[u8], limits: &Limits) {
        todo!()
    }
    pub(crate) fn push_item(&mut self, end: End, item: Item<'_>, limits: &Limits) {
        todo!()
    }
    /// Removes at one end and lends what was there.
    pub fn pop<R>(&mut self, end: End, limits: &Limits, take: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        todo!()
    }
    /// Element `index` from the head.
    pub fn get<R>(&self, index: u64, look: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        todo!()
    }
    /// Replaces element `index`, which exists.
    pub fn set(&mut self, index: u64, value: &[u8], limits: &Limits) {
        todo!()
    }
    /// Inserts before element `index` (at most `len`).
    pub fn insert(&mut self, index: u64, value: &[u8], limits: &Limits) {
        todo!()
    }
    /// Removes `count` elements from `index` on (within `len`); whole leaves at a time.
    pub fn remove(&mut self, index: u64, count: u64, limits: &Limits) {
        todo!()
    }
    /// Visits from element `index` towards the tail (or the head, `index` included) until told to stop.
    pub fn visit(&self, index: u64, towards: End, visit: &mut dyn FnMut(u64, Item<'_>) -> ControlFlow<()>) {
        todo!()
    }
    pub fn nodes(&self) -> Nodes {
        todo!()
    }
    pub fn stats(&self) -> Stats {
        todo!()
    }
    /// Everything that is allocated, rounding included.
    pub fn allocated_bytes(&self) -> u64 {
        todo!()
    }
}
