//! A map from byte strings to small payloads, ordered by hash: the keyspace, later hashes and sets. Leaves hold
//! tagged entries `key, meta, payload`, in order of insertion within a leaf. An entry may own one value outside, behind
//! a pointer (`V`, shared on clone, copied on write). Cloning the map costs one increment.
use crate::stats::Stats;
use base::hash::{Hash, Seed};

/// One entry as it is read. `meta` is 7 bits that belong to the caller (0..=127); so is `inline`.
pub struct Found<'a, V> {
    pub key: &'a [u8],
    pub meta: u8,
    pub inline: &'a [u8],
    pub outside: Option<&'a V>,
}

/// An entry that left the map.
pub struct Removed<V> {
    pub meta: u8,
    pub inline: Vec<u8>,
    pub outside: Option<V>,
}

#[derive(Clone)]
pub struct Map<V: Clone>(std::marker::PhantomData<V>);

/// A range of places in hash order, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderRange {
    pub first: u32,
    pub last: u32,
}

pub enum Entry<'m, V: Clone> {
    Occupied(Occupied<'m, V>),
    Vacant(Vacant<'m, V>),
}
pub struct Occupied<'m, V: Clone>(std::marker::PhantomData<&'m mut V>);
pub struct Vacant<'m, V: Clone>(std::marker::PhantomData<&'m mut V>);

/// What an edit of a leaf needs to know of the leaf around it.
#[derive(Clone, Copy, Debug)]
pub struct LeafPlace {
    /// The caller's word for this leaf; a new leaf has `u64::MAX`, both halves of a split inherit it, a merge takes the
    /// smaller.
    pub note: u64,
    /// The places this leaf covers now.
    pub range: OrderRange,
}

#[allow(unused_variables)]
impl<V: Clone> Map<V> {
    pub fn new() -> Map<V> {
        todo!()
    }
    pub fn len(&self) -> u64 {
        todo!()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Asks the processor to fetch what `find` of this hash will read.
    pub fn prefetch(&self, hash: Hash) {
        todo!()
    }
    pub fn find(&self, hash: Hash, key: &[u8]) -> Option<Found<'_, V>> {
        todo!()
    }
    /// The place of `key`, to be edited: nodes on the way are copied where they are shared.
    /// `seed` is what `hash` was made with; splits need it.
    pub fn entry<'m>(&'m mut self, seed: &Seed, hash: Hash, key: &'m [u8]) -> Entry<'m, V> {
        todo!()
    }
    /// Removes without looking first.
    pub fn remove(&mut self, seed: &Seed, hash: Hash, key: &[u8]) -> Option<Removed<V>> {
        todo!()
    }
    /// Visits every entry of the first leaf that covers places at or after `from`, but those before `from`. Returns
    /// the place after that leaf's last, None at the end. An entry that stays in the map is visited by a
    /// walk from 0 to None at least once, whatever splits and merges happen between the calls.
    pub fn scan(&self, seed: &Seed, from: u32, visit: &mut dyn FnMut(Found<'_, V>)) -> Option<u32> {
        todo!()
    }
    /// Every entry, in hash order of leaves.
    pub fn for_each(&self, visit: &mut dyn FnMut(Found<'_, V>)) {
        todo!()
    }
    /// Goes through the leaves that overlap `range` and whose note is at most `note_max`; removes the entries for which
    /// `visit` answers `Sweep::Remove` (handing them to `removed` with their key), then sets each such leaf's note
    /// to what `renote` returns for its range (called after its entries were visited).
    pub fn sweep(&mut self, seed: &Seed, range: OrderRange, note_max: u64, sweeper: &mut dyn Sweeper<V>) {
        todo!()
    }
    /// One entry chosen uniformly, from two random words.
    pub fn random(&self, random: &mut base::random::Random) -> Option<Found<'_, V>> {
        todo!()
    }
    pub fn stats(&self) -> Stats {
        todo!()
    }
    /// Allocated bytes of this entry's share: its bytes in the leaf and its leaf's overhead divided by its entries.
    pub fn entry_bytes(&self, hash: Hash, key: &[u8]) -> Option<u64> {
        todo!()
    }
}

pub trait Sweeper<V> {
    /// Whether the entry goes.
    fn visit(&mut self, found: Found<'_, V>) -> Sweep;
    /// An entry that went.
    fn removed(&mut self, key: &[u8], removed: Removed<V>);
    /// All entries of the leaf that covers `range` were visited: its new note.
    fn renote(&mut self, range: OrderRange) -> u64;
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    Keep,
    Remove,
}

#[allow(unused_variables)]
impl<'m, V: Clone> Occupied<'m, V> {
    pub fn found(&self) -> Found<'_, V> {
        todo!()
    }
    pub fn meta(&self) -> u8 {
        todo!()
    }
    pub fn inline(&self) -> &[u8] {
        todo!()
    }
    pub fn outside(&self) -> Option<&V> {
        todo!()
    }
    pub fn set_meta(&mut self, meta: u8) {
        todo!()
    }
    /// To edit in place; the length stays.
    pub fn inline_mut(&mut self) -> &mut [u8] {
        todo!()
    }
    /// Cloned first where a snapshot shares it.
    pub fn outside_mut(&mut self) -> Option<&mut V> {
        todo!()
    }
    /// Replaces meta, payload and outside value; what was outside is returned. May split the leaf.
    pub fn replace(self, meta: u8, inline: &[u8], outside: Option<V>) -> Option<V> {
        todo!()
    }
    /// Replaces meta and inline payload and leaves the outside value where it is.
    pub fn replace_inline(self, meta: u8, inline: &[u8]) {
        todo!()
    }
    pub fn remove(self) -> Removed<V> {
        todo!()
    }
    pub fn leaf(&self) -> LeafPlace {
        todo!()
    }
    pub fn set_note(&mut self, note: u64) {
        todo!()
    }
}

#[allow(unused_variables)]
impl<'m, V: Clone> Vacant<'m, V> {
    pub fn insert(self, meta: u8, inline: &[u8], outside: Option<V>) {
        todo!()
    }
    pub fn leaf(&self) -> LeafPlace {
        todo!()
    }
    /// The leaf's note; it is kept by the split that an insert may cause.
    pub fn set_note(&mut self, note: u64) {
        todo!()
    }
}
