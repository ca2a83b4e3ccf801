//! A map from byte strings to small payloads, ordered by hash: the keyspace, hashes, sets. Leaves hold tagged
//! entries, in order of insertion within a leaf, laid out as the map's form says (`form.rs`): a key, some
//! bits of meta, a payload. An entry may own one value outside, behind a pointer (`V`, shared on clone or by
//! [`Occupied::share_outside`], copied on write). Cloning the map costs one increment.
//!
//! No table ever doubles: a leaf that grows over its limit is split, one that shrinks far under it joins a
//! neighbour, and that is all that an edit can cost. Looking up an entry to edit it copies nothing; the first
//! change copies the nodes on the way that a clone shares.
//!
//! On the path of every request: no allocation but a leaf's own, no formatting, no clock.
pub mod build;
mod crowd;
mod cull;
pub mod fields;
pub(crate) mod form;
pub mod item_index;
pub mod pairs;
pub mod set_image;
pub mod sift;
mod tagged;

use crate::memory::apart::Apart;
use crate::memory::arena::Moves;
pub use crate::memory::shared::Shared;
use crate::tree::order::ByHash;
pub use crate::tree::order::OrderRange;
use crate::tree::sample::{LEAVES, LEAVES_OF_ENTRIES};
use crate::tree::stats::Stats;
use crate::tree::{Held, Path, Tree};
use base::hash::{Hash, Seed};
use base::random::Random;
pub use crowd::Crowd;
pub use cull::Cull;
pub use form::{Form, Keys, Members, Name};
use std::ops::ControlFlow;
use tagged::{Draft, NOTE_NONE, Slot, Tagged, joined_note};

/// One entry as it is read. Bits of `meta` belong to the caller, in the keyspace all seven (0..=127); so does
/// `inline`.
pub struct Found<'a, V> {
    /// As the form keeps it: of a hash's field, [`crate::map::fields::field_of`] tells more.
    pub key: &'a [u8],
    pub meta: u8,
    pub inline: &'a [u8],
    pub outside: Option<&'a V>,
}

/// An entry that left the map.
pub struct Removed<V> {
    pub meta: u8,
    pub inline: Vec<u8>,
    pub outside: Option<Shared<V>>,
}

pub struct Map<V: Clone, F: Form = Keys> {
    tree: Tree<ByHash, Tagged<V, F>>,
    len: u64,
}

pub enum Entry<'m, V: Clone, F: Form = Keys> {
    Occupied(Occupied<'m, V, F>),
    Vacant(Vacant<'m, V, F>),
}

/// An entry that is there.
pub struct Occupied<'m, V: Clone, F: Form = Keys> {
    map: &'m mut Map<V, F>,
    seed: &'m Seed,
    name: Name<'m>,
    tag: u8,
    path: Path,
    range: OrderRange,
    slot: Slot,
}

/// Where an entry would be, if it were there.
pub struct Vacant<'m, V: Clone, F: Form = Keys> {
    map: &'m mut Map<V, F>,
    seed: &'m Seed,
    name: Name<'m>,
    hash: Hash,
    /// None in a map without leaves.
    path: Option<Path>,
    range: OrderRange,
}

/// Where a walk over the entries of a map stopped. It holds for as long as the map does not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// A place that the leaf covers in which the walk goes on.
    place: u32,
    /// How many entries of that leaf have been visited.
    index: u32,
}

/// The note of a leaf, and the places that it covers.
#[derive(Clone, Copy, Debug)]
pub struct LeafNote {
    /// A number that the caller keeps about this leaf and its places (in the keyspace, the earliest
    /// deadline). A new leaf has `u64::MAX`, and [`Notes`] gives each half of a split its own. A leaf that
    /// takes over the places of another keeps its note if both had the same, else it gets 0: what holds for
    /// the one leaf need not hold for the places of the other.
    pub note: u64,
    /// The places this leaf covers now.
    pub range: OrderRange,
}

/// Called when an edit splits a leaf, to keep the notes of leaves right.
pub trait Notes<V> {
    /// A leaf with a note was split, and `leaf` is one half, still with the note of the whole. Returns its
    /// own note.
    fn after_split(&mut self, leaf: LeafNote, entries: &mut dyn Iterator<Item = Found<'_, V>>) -> u64;
    /// The byte of uses that a new entry begins with; None where uses are not kept.
    fn birth(&self) -> Option<u8> {
        None
    }
    /// Whether new entries come in the order of their places, as when a file is loaded. Then a leaf takes
    /// room for all of its entries at once, and a full one is not split: the next entry begins another.
    fn is_in_order(&self) -> bool {
        false
    }
}

/// For maps whose leaves have no notes.
impl<V> Notes<V> for () {
    fn after_split(&mut self, leaf: LeafNote, _: &mut dyn Iterator<Item = Found<'_, V>>) -> u64 {
        leaf.note
    }
}

/// Goes through leaves and decides what stays.
pub trait Sweeper<V: Clone, F: Form = Keys> {
    /// Decides about one entry.
    fn visit(&mut self, found: Found<'_, V>) -> Sweep;
    /// Makes an entry smaller for which `visit` returned [`Sweep::Prune`]. Returns whether it stays or is
    /// removed.
    fn prune(&mut self, _: &mut Sweeping<'_, V, F>) -> Sweep {
        Sweep::Keep
    }
    /// Called for each entry that was removed.
    fn removed(&mut self, key: &[u8], removed: Removed<V>);
    /// Called when all entries of the leaf that covers `range` were visited. Returns its new note.
    fn renote(&mut self, range: OrderRange) -> u64;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    Keep,
    Remove,
    /// [`Sweeper::prune`] is called, which may make the entry smaller, and decides.
    Prune,
    /// It is removed as [`Map::evict`] removes.
    Evict,
}

/// An entry that a sweep makes smaller.
pub struct Sweeping<'m, V: Clone, F: Form = Keys> {
    leaf: &'m mut Tagged<V, F>,
    index: usize,
}

impl<V: Clone, F: Form> Sweeping<'_, V, F> {
    /// The entry as it is now.
    pub fn found(&self) -> Found<'_, V> {
        self.leaf.found(self.leaf.slot(self.index))
    }

    /// The value outside, to be edited: cloned first where a snapshot shares it.
    pub fn outside_mut(&mut self) -> Option<&mut V> {
        self.leaf.outside_mut(self.leaf.slot(self.index))
    }

    /// Gives the entry another meta, and a payload that is not longer than the old one.
    pub fn set_inline(&mut self, meta: u8, inline: &[u8]) {
        let slot = self.leaf.slot(self.index);
        assert!(inline.len() <= self.leaf.parts(slot).inline.len(), "a sweep makes nothing larger");
        self.leaf.set_inline(slot, meta, inline);
    }
}

impl<V: Clone, F: Form> Map<V, F> {
    /// An empty map allocates nothing.
    pub fn new() -> Map<V, F> {
        Map { tree: Tree::new(), len: 0 }
    }

    /// How many entries there are. O(1).
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no more than one leaf, which keeps entries in the order in which they came.
    pub fn is_one_leaf(&self) -> bool {
        self.tree.height() < 2
    }

    /// Whether there are none. O(1).
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Asks the processor to fetch what `find` of this hash will read.
    #[inline]
    pub fn prefetch(&self, hash: Hash) {
        if let Some(leaf) = self.tree.leaf_at(hash.order()) {
            leaf.prefetch();
        }
    }

    /// Asks for the entry that `find` of this hash will read. Worth calling, some time after `prefetch`, for
    /// many hashes in turn; alone it only does the work of `find` twice.
    #[inline]
    pub fn prefetch_entry(&self, hash: Hash) {
        if let Some(leaf) = self.tree.leaf_at(hash.order()) {
            leaf.prefetch_entry(hash.tag());
        }
    }

    /// The entry of a key, whose hash is `hash`; None where there is none. One way down the tree, and a
    /// search of one leaf.
    #[inline(always)]
    pub fn find<'n>(&self, hash: Hash, key: impl Into<Name<'n>>) -> Option<Found<'_, V>> {
        let leaf = self.tree.leaf_at(hash.order())?;
        let slot = leaf.find(hash.tag(), key.into())?;
        Some(leaf.found(slot))
    }

    /// As `find`, and gives the entry the byte of uses that `next` makes of its old one. Nothing is copied
    /// for that: an entry that a clone shares stays as it is.
    #[inline]
    pub fn find_used<'n>(
        &mut self,
        hash: Hash,
        key: impl Into<Name<'n>>,
        next: impl FnOnce(u8) -> u8,
    ) -> Option<Found<'_, V>> {
        let name = key.into();
        let (leaf, slot): (&Tagged<V, F>, Slot) = match self.tree.held_at(hash.order())? {
            Held::Sole(leaf) => {
                let slot = leaf.find(hash.tag(), name)?;
                if leaf.is_sole() {
                    leaf.touch(slot, next);
                }
                (leaf, slot)
            }
            Held::Shared(leaf) => (leaf, leaf.find(hash.tag(), name)?),
        };
        Some(leaf.found(slot))
    }

    /// The byte of uses of an entry, 0 where it has none.
    pub fn use_of<'n>(&self, hash: Hash, key: impl Into<Name<'n>>) -> Option<u8> {
        let leaf = self.tree.leaf_at(hash.order())?;
        let slot = leaf.find(hash.tag(), key.into())?;
        Some(leaf.uses().get(slot.index).copied().unwrap_or(0))
    }

    /// Hands the bytes of uses of the leaf that covers `place` to `visit`, unless it has none or a clone
    /// shares it. Returns the place after that leaf's last, None at the end.
    pub fn visit_uses(&mut self, place: u32, visit: &mut dyn FnMut(&mut [u8])) -> Option<u32> {
        let (_, range) = self.tree.seek(place)?;
        if let Some(Held::Sole(leaf)) = self.tree.held_at(place)
            && leaf.is_sole()
            && !leaf.uses().is_empty()
        {
            visit(leaf.uses_mut());
        }
        range.last.checked_add(1)
    }

    /// The entry of `key`, or where it would be, to be edited: the first change copies the nodes on the way
    /// that a clone shares. `seed` is what `hash` was made with; splits need it.
    pub fn entry<'m>(&'m mut self, seed: &'m Seed, hash: Hash, key: impl Into<Name<'m>>) -> Entry<'m, V, F> {
        let name = key.into();
        debug_assert_eq!(F::hash(seed, name), hash);
        let Some((path, range, leaf)) = self.tree.seek_leaf(hash.order()) else {
            return Entry::Vacant(Vacant { map: self, seed, name, hash, path: None, range: OrderRange::ALL });
        };
        let tag = hash.tag();
        match leaf.find(tag, name) {
            Some(slot) => Entry::Occupied(Occupied { map: self, seed, name, tag, path, range, slot }),
            None => Entry::Vacant(Vacant { map: self, seed, name, hash, path: Some(path), range }),
        }
    }

    /// Removes the entry of a key, and returns what it held; None where there is none.
    pub fn remove<'n>(&mut self, seed: &Seed, hash: Hash, key: impl Into<Name<'n>>) -> Option<Removed<V>> {
        let name: Name<'n> = key.into();
        match self.entry(seed, hash, name) {
            Entry::Occupied(entry) => Some(entry.remove()),
            Entry::Vacant(_) => None,
        }
    }

    /// Removes an entry in order to free memory: all that it took goes back, where [`Map::remove`] leaves
    /// some room in the leaf for the next one.
    pub fn evict<'n>(&mut self, seed: &Seed, hash: Hash, key: impl Into<Name<'n>>) -> Option<Removed<V>> {
        let name: Name<'n> = key.into();
        let Entry::Occupied(entry) = self.entry(seed, hash, name) else { return None };
        let (path, slot, place) = (entry.path, entry.slot, entry.range.first);
        let removed = self.take(&path, slot);
        self.tree.leaf_mut(&path).fit(0);
        self.join_if_under(place);
        Some(removed)
    }

    /// Gives back the room of the leaf that covers `place`: no more entries come to it in order.
    pub fn seal_leaf(&mut self, place: u32) {
        if let Some((path, _)) = self.tree.seek(place) {
            self.tree.leaf_mut(&path).seal();
        }
    }

    /// Drops the map, with a `pause` behind each leaf that goes with it.
    pub fn let_go(self, pause: &mut dyn FnMut()) {
        self.tree.let_go(pause);
    }

    /// The entries of the leaf that covers `place`.
    pub fn crowd(&self, place: u32) -> Option<Crowd<'_, V, F>> {
        let (path, range) = self.tree.seek(place)?;
        Some(Crowd::new(self.tree.leaf(&path), range))
    }

    /// Sets the note of the leaf that covers `place`.
    pub fn note_leaf(&mut self, place: u32, note: u64) {
        if let Some((path, _)) = self.tree.seek(place) {
            self.set_note(&path, note);
        }
    }

    /// The leaf that covers `place`, for entries to be taken from it.
    pub fn cull(&mut self, place: u32) -> Option<Cull<'_, V, F>> {
        let (path, range) = self.tree.seek(place)?;
        Some(Cull::new(self, path, range))
    }

    pub(crate) fn leaf(&self, path: &Path) -> &Tagged<V, F> {
        self.tree.leaf(path)
    }

    /// Does the work of [`Cull::remove`].
    pub(crate) fn cull_entry(&mut self, path: &Path, index: usize) -> (Option<Shared<V>>, usize) {
        let leaf = self.tree.leaf_mut(path);
        let slot = leaf.slot(index);
        let bytes = leaf.entry_bytes(slot) + leaf.payload_bytes(slot).map_or(0, |bytes| bytes.allocated);
        let outside = leaf.take_out(slot);
        self.len -= 1;
        (outside, bytes)
    }

    /// Does the work of [`Cull::finish`].
    pub(crate) fn end_cull(&mut self, path: &Path, range: OrderRange, kept_bytes: usize) {
        let leaf = self.tree.leaf(path);
        if leaf.room_bytes() > kept_bytes {
            self.tree.leaf_mut(path).fit(kept_bytes);
        }
        if self.tree.leaf(path).is_under() {
            self.join_if_under(range.first);
        }
    }

    /// Visits every entry of the first leaf that covers places at or after `from`, but those before `from`.
    /// Returns the place after that leaf's last, None at the end. An entry that stays in the map is visited
    /// by a walk from 0 to None at least once, whatever splits and merges happen between the calls.
    pub fn scan(&self, seed: &Seed, from: u32, visit: &mut dyn FnMut(Found<'_, V>)) -> Option<u32> {
        let (path, range) = self.tree.seek(from)?;
        let leaf = self.tree.leaf(&path);
        debug_assert!(range.first <= from && from <= range.last, "the leaf covers the place");
        for slot in leaf.slots() {
            if range.first >= from || F::hash(seed, leaf.name(slot)).order() >= from {
                visit(leaf.found(slot));
            }
        }
        range.last.checked_add(1)
    }

    /// The leaf that covers `place`, and all places that it covers.
    pub(crate) fn leaf_from(&self, place: u32) -> Option<(&Tagged<V, F>, OrderRange)> {
        let (path, range) = self.tree.seek(place)?;
        Some((self.tree.leaf(&path), range))
    }

    /// Visits every entry, in hash order of leaves.
    pub fn for_each(&self, visit: &mut dyn FnMut(Found<'_, V>)) {
        self.tree.for_each_leaf(&mut |leaf| leaf.slots().for_each(|slot| visit(leaf.found(slot))));
    }

    /// The same until told to stop.
    pub fn visit(&self, visit: &mut dyn FnMut(Found<'_, V>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.tree.visit_leaves(&mut |leaf| leaf.slots().try_for_each(|slot| visit(leaf.found(slot))))
    }

    /// Visits entries from a stop on, in the order of [`Map::visit`], until told to stop. Where to go on
    /// behind the last one visited, None at the end. A stop is good for as long as the map does not change.
    pub fn visit_from(
        &self,
        from: Stop,
        visit: &mut dyn FnMut(Found<'_, V>) -> ControlFlow<()>,
    ) -> Option<Stop> {
        let Stop { mut place, mut index } = from;
        while let Some((leaf, range)) = self.leaf_from(place) {
            for slot in leaf.slots().skip(index as usize) {
                if visit(leaf.found(slot)).is_break() {
                    return Some(Stop { place, index: slot.index as u32 + 1 });
                }
            }
            (place, index) = (range.last.checked_add(1)?, 0);
        }
        None
    }

    /// Goes through the leaves that overlap `range` and whose note is at most `note_max`; removes the entries
    /// for which `visit` does not answer `Sweep::Keep` (handing them to `removed` with their key), then sets
    /// each such leaf's note to what `renote` returns for its range (called after its entries were visited).
    /// A leaf that then joins a neighbour may be visited once more. Stops after about `looks` leaves and
    /// entries together, and returns what is left of `range`.
    pub fn sweep(
        &mut self,
        range: OrderRange,
        note_max: u64,
        mut looks: u64,
        sweeper: &mut dyn Sweeper<V, F>,
    ) -> Option<OrderRange> {
        let mut at = range.first;
        while let Some((path, covered)) = self.tree.seek(at) {
            let leaf = self.tree.leaf(&path);
            looks = looks.saturating_sub(1);
            if leaf.note() <= note_max {
                looks = looks.saturating_sub(leaf.count() as u64);
                self.sweep_leaf(&path, covered, sweeper);
                self.join_if_under(covered.first);
            }
            at = covered.last.checked_add(1).filter(|next| *next <= range.last)?;
            if looks == 0 {
                return Some(OrderRange { first: at, ..range });
            }
        }
        None
    }

    /// Moves what lies in extents that are being emptied (`arena::is_evacuating`), leaf by leaf from the one
    /// that covers `from` on: the leaf, the nodes above it, and the bodies of values outside, each of which
    /// is then shown to `value` with its key. Stops once `moves` says that `effort` was made, and returns the
    /// place to go on from, None at the end.
    pub fn relocate(
        &mut self,
        from: u32,
        effort: u64,
        moves: &mut Moves,
        value: &mut dyn FnMut(&[u8], &mut V, &mut Moves),
    ) -> Option<u32> {
        let (path, _) = self.tree.seek(from)?;
        let next = self.tree.relocate_from(path, effort, moves, |leaf, moves| leaf.relocate(moves, value))?;
        Some(self.tree.range(&next).first)
    }

    /// One entry chosen uniformly, from random words.
    pub fn random(&self, random: &mut Random) -> Option<Found<'_, V>> {
        if self.is_empty() {
            return None;
        }
        let (leaf, index) = self.tree.draw_element(random, F::COUNT_MAX, |leaf| leaf.count())?;
        Some(leaf.found(leaf.slot(index)))
    }

    /// About how many bytes it takes. Looks at a few leaves.
    pub fn bytes_about(&self) -> u64 {
        self.tree.leaf_bytes_about()
    }

    /// How many of so many leaves, spread evenly, nobody else holds at this moment.
    pub fn count_sole(&self, samples: u64) -> u64 {
        self.tree.count_sole(samples)
    }

    /// About how many bytes it takes, with what lies outside of leaves and what `more` says of each entry
    /// that has meta. Looks at some of its leaves. Below 0 where `more` is.
    pub fn allocated_about(&self, more: &dyn Fn(Found<'_, V>) -> i64) -> i64 {
        let leaves = if F::META == 0 { LEAVES } else { LEAVES_OF_ENTRIES };
        let sample = self.tree.sample_of(leaves, &mut |leaf| {
            let owners = if F::META == 0 { 0 } else { leaf.count() };
            let outside: i64 = leaf
                .slots()
                .take(owners)
                .map(|slot| {
                    let body = leaf.outside(slot).map_or(0, |_| Shared::<V>::allocated_bytes());
                    let payload = leaf.payload_bytes(slot).map_or(0, |bytes| bytes.allocated);
                    (body + payload) as i64 + more(leaf.found(slot))
                })
                .sum();
            (leaf.allocated_bytes() as i64 + outside, leaf.count())
        });
        sample.of_entries(self.len)
    }

    /// Where the bytes are, by kind of node. Goes through all leaves.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats { height: self.tree.height() as u32, ..Stats::default() };
        self.tree.add_stats(&mut stats, |stats, leaf| {
            stats.tagged.add(leaf.count() as u64, leaf.used_bytes(), leaf.allocated_bytes());
            let owners = if F::META == 0 { 0 } else { leaf.count() };
            for slot in leaf.slots().take(owners) {
                if leaf.outside(slot).is_some() {
                    stats.outside.add(1, Shared::<V>::body_bytes(), Shared::<V>::allocated_bytes());
                }
                if let Some(bytes) = leaf.payload_bytes(slot) {
                    stats.outside.add(1, bytes.used, bytes.allocated);
                }
            }
        });
        stats
    }

    /// Allocated bytes of this entry's share: its bytes in the leaf, its leaf's overhead divided by its
    /// entries, and a payload in a block of its own.
    pub fn entry_bytes<'n>(&self, hash: Hash, key: impl Into<Name<'n>>) -> Option<u64> {
        let leaf = self.tree.leaf_at(hash.order())?;
        let slot = leaf.find(hash.tag(), key.into())?;
        let entries: usize = leaf.slots().map(|slot| leaf.entry_bytes(slot)).sum();
        let overhead = (leaf.allocated_bytes() - entries).div_ceil(leaf.count());
        let payload = leaf.payload_bytes(slot).map_or(0, |bytes| bytes.allocated);
        Some((leaf.entry_bytes(slot) + overhead + payload) as u64)
    }

    fn sweep_leaf(&mut self, path: &Path, range: OrderRange, sweeper: &mut dyn Sweeper<V, F>) {
        let mut index = 0;
        while index < self.tree.leaf(path).count() {
            let leaf = self.tree.leaf(path);
            let mut verdict = sweeper.visit(leaf.found(leaf.slot(index)));
            if verdict == Sweep::Prune {
                verdict = sweeper.prune(&mut Sweeping { leaf: self.tree.leaf_mut(path), index });
            }
            if verdict == Sweep::Keep {
                index += 1;
                continue;
            }
            let leaf = self.tree.leaf(path);
            let slot = leaf.slot(index);
            let key = leaf.name(slot).bytes.to_vec();
            let removed = self.take(path, slot);
            if verdict == Sweep::Evict {
                self.tree.leaf_mut(path).fit(0);
            }
            sweeper.removed(&key, removed);
        }
        let note = sweeper.renote(range);
        self.set_note(path, note);
    }

    /// Removes an entry from its leaf, without joining leaves.
    fn take(&mut self, path: &Path, slot: Slot) -> Removed<V> {
        let leaf = self.tree.leaf_mut(path);
        let parts = leaf.parts(slot);
        let (meta, inline) = (parts.meta, parts.inline.to_vec());
        let outside = leaf.remove(slot);
        assert!(self.len > 0, "a map without entries has none to give");
        self.len -= 1;
        Removed { meta, inline, outside }
    }

    fn set_note(&mut self, path: &Path, note: u64) {
        if self.tree.leaf(path).note() != note {
            self.tree.leaf_mut(path).set_note(note);
        }
    }

    /// Splits the leaf that covers `place` until no part of it is over its limit, or cannot be split.
    fn split_if_over(&mut self, seed: &Seed, place: u32, notes: &mut impl Notes<V>) {
        let Some((mut path, range)) = self.tree.seek(place) else { return };
        let leaf = self.tree.leaf(&path);
        if !leaf.is_over() || leaf.is_waiting_to_split() {
            return;
        }
        let place = |name: Name<'_>| F::hash(seed, name).order();
        let Some((cut, right)) = self.tree.leaf_mut(&path).split(place) else { return };
        assert!(range.first < cut && cut <= range.last, "a cut at {cut} of {range:?}");
        let is_noted = right.note() != NOTE_NONE;
        self.tree.insert_after(&mut path, cut, right);
        for half in [range.first, cut] {
            if is_noted {
                self.note_half(half, notes);
            }
            self.split_if_over(seed, half, notes);
        }
    }

    fn note_half(&mut self, place: u32, notes: &mut impl Notes<V>) {
        let (path, range) = self.tree.seek(place).expect("a split leaves two leaves");
        let leaf = self.tree.leaf(&path);
        let place = LeafNote { note: leaf.note(), range };
        let note = notes.after_split(place, &mut leaf.slots().map(|slot| leaf.found(slot)));
        self.set_note(&path, note);
    }

    /// Joins the leaf that covers `place` with a neighbour if both have become small; an empty one goes.
    fn join_if_under(&mut self, place: u32) {
        let Some((path, _)) = self.tree.seek(place) else { return };
        let leaf = self.tree.leaf(&path);
        if leaf.count() == 0 {
            let note = leaf.note();
            self.tree.remove(&path);
            if let Some((heir, _)) = self.tree.seek(place) {
                self.set_note(&heir, joined_note(self.tree.leaf(&heir).note(), note));
            }
        } else if leaf.is_under() {
            self.tree.join_neighbour(
                &path,
                |pair| pair.left.can_join(pair.right).then_some(()),
                |left, right, ()| left.join(right),
            );
        }
    }
}

impl<V: Clone, F: Form> Clone for Map<V, F> {
    fn clone(&self) -> Map<V, F> {
        Map { tree: self.tree.clone(), len: self.len }
    }
}

impl<V: Clone, F: Form> Default for Map<V, F> {
    fn default() -> Map<V, F> {
        Map::new()
    }
}

impl<V, F: Form> Tagged<V, F> {
    #[inline(always)]
    pub(crate) fn found(&self, slot: Slot) -> Found<'_, V> {
        let parts = self.parts(slot);
        Found {
            key: parts.name.bytes,
            meta: parts.meta,
            inline: parts.inline,
            outside: self.outside_of(&parts),
        }
    }
}

impl<'m, V: Clone, F: Form> Occupied<'m, V, F> {
    /// The entry, to be read.
    #[inline]
    pub fn found(&self) -> Found<'_, V> {
        self.tagged().found(self.slot)
    }

    /// The caller's bits, without a look at the rest of the entry.
    #[inline]
    pub fn meta(&self) -> u8 {
        self.tagged().meta(self.slot)
    }

    /// The payload that lies in the leaf.
    #[inline]
    pub fn inline(&self) -> &[u8] {
        self.tagged().parts(self.slot).inline
    }

    /// The value outside the leaf, if the entry owns one.
    #[inline]
    pub fn outside(&self) -> Option<&V> {
        self.tagged().outside(self.slot)
    }

    /// Another owner of the value outside, which is copied when either of the two writes to it.
    pub fn share_outside(&self) -> Option<Shared<V>> {
        self.tagged().share_outside(self.slot)
    }

    /// Gives the entry the byte of uses that `next` makes of its old one.
    pub fn touch(&mut self, next: impl FnOnce(u8) -> u8) {
        let slot = self.slot;
        self.tagged_mut().touch(slot, next);
    }

    /// Gives the entry other bits of the caller's; the payload stays.
    pub fn set_meta(&mut self, meta: u8) {
        let slot = self.slot;
        self.tagged_mut().set_meta(slot, meta);
    }

    /// The payload, to be edited where it lies; its length stays.
    pub fn inline_mut(&mut self) -> &mut [u8] {
        let slot = self.slot;
        self.tagged_mut().inline_mut(slot)
    }

    /// Whether the payload lies in a block of its own.
    pub fn is_apart(&self) -> bool {
        self.tagged().is_apart(self.slot)
    }

    /// Whether a payload of so many bytes that lies in a block of its own stays there when it is replaced.
    pub fn stays_apart(payload_bytes: usize) -> bool {
        tagged::stays_outside::<F>(payload_bytes)
    }

    /// Edits the payload from its byte `from` on where it lies, in a block of its own, which it stays in
    /// whatever its length. None, and nothing done, where it lies in the leaf.
    pub fn edit_apart<R>(&mut self, from: usize, edit: impl FnOnce(&mut Apart<'_>) -> R) -> Option<R> {
        let slot = self.slot;
        self.tagged_mut().edit_payload(slot, |block| edit(&mut Apart::new(block, from)))
    }

    /// The value outside, to be edited: cloned first where a snapshot shares it.
    #[inline]
    pub fn outside_mut(&mut self) -> Option<&mut V> {
        let slot = self.slot;
        self.tagged_mut().outside_mut(slot)
    }

    /// The value outside where nobody shares it, nor the leaf: nothing is copied.
    pub fn outside_if_sole(&mut self) -> Option<&mut V> {
        let mut moves = Moves::default();
        self.map.tree.relocate(&self.path, &mut moves)?.outside_if_sole(self.slot)
    }

    /// Writes meta (the caller's bits) and payload where the old ones are, if they are as long and nothing
    /// lies outside; whether they were written.
    #[inline]
    pub fn overwrite(&mut self, meta: u8, inline: &[u8]) -> bool {
        let slot = self.slot;
        self.tagged_mut().overwrite(slot, meta, inline)
    }

    /// Replaces meta, payload and outside value; what was outside is returned. May split the leaf.
    pub fn replace(
        mut self,
        meta: u8,
        inline: &[u8],
        outside: Option<Shared<V>>,
        notes: &mut impl Notes<V>,
    ) -> Option<Shared<V>> {
        let (slot, draft) = (self.slot, Draft { tag: self.tag, meta, name: self.name, inline, birth: None });
        let old = self.tagged_mut().replace(slot, &draft, outside);
        self.settle(notes);
        old
    }

    /// Replaces meta and payload, which is put into a block of its own whatever its length. A value that was
    /// outside is returned.
    pub fn replace_apart(mut self, meta: u8, inline: &[u8], notes: &mut impl Notes<V>) -> Option<Shared<V>> {
        let (slot, draft) = (self.slot, Draft { tag: self.tag, meta, name: self.name, inline, birth: None });
        let old = self.tagged_mut().replace_apart(slot, &draft);
        self.settle(notes);
        old
    }

    /// Replaces meta and inline payload and leaves the outside value where it is.
    pub fn replace_inline(mut self, meta: u8, inline: &[u8], notes: &mut impl Notes<V>) {
        let (slot, draft) = (self.slot, Draft { tag: self.tag, meta, name: self.name, inline, birth: None });
        self.tagged_mut().replace_inline(slot, &draft);
        self.settle(notes);
    }

    /// Removes the entry, and returns what it held. The leaf may join a neighbour.
    pub fn remove(self) -> Removed<V> {
        let removed = self.map.take(&self.path, self.slot);
        self.join();
        removed
    }

    /// Removes the entry without a copy of what lay inside.
    pub fn discard(self) -> Option<Shared<V>> {
        let outside = self.map.tree.leaf_mut(&self.path).remove(self.slot);
        self.map.len -= 1;
        self.join();
        outside
    }

    /// Joins the leaf, which has lost an entry, with a neighbour if it has become small. Its path still
    /// holds, so one look at the leaf says most often that there is nothing to do.
    fn join(self) {
        let leaf = self.tagged();
        if leaf.count() == 0 || leaf.is_under() {
            self.map.join_if_under(self.range.first);
        }
    }

    /// The note of the leaf that the entry lies in, and the range of places that the leaf covers. O(1).
    pub fn leaf(&self) -> LeafNote {
        LeafNote { note: self.tagged().note(), range: self.range }
    }

    /// Gives the leaf of this entry another note.
    pub fn set_note(&mut self, note: u64) {
        self.map.set_note(&self.path, note);
    }

    /// Splits the leaf, or joins it with a neighbour, if an edit has made it too large or too small.
    fn settle(self, notes: &mut impl Notes<V>) {
        if self.tagged().is_over() {
            self.map.split_if_over(self.seed, self.range.first, notes);
        } else if self.tagged().is_under() {
            self.map.join_if_under(self.range.first);
        }
    }

    fn tagged(&self) -> &Tagged<V, F> {
        self.map.tree.leaf(&self.path)
    }

    fn tagged_mut(&mut self) -> &mut Tagged<V, F> {
        self.map.tree.leaf_mut(&self.path)
    }
}

impl<'m, V: Clone, F: Form> Vacant<'m, V, F> {
    /// Puts the entry in: the caller's bits, a payload, and perhaps a value outside. May split the leaf, of
    /// which `notes` is told.
    pub fn insert(mut self, meta: u8, inline: &[u8], outside: Option<Shared<V>>, notes: &mut impl Notes<V>) {
        let path = self.planted();
        debug_assert!(
            (self.range.first..=self.range.last).contains(&self.hash.order()),
            "its leaf covers it"
        );
        let draft = Draft { tag: self.hash.tag(), meta, name: self.name, inline, birth: notes.birth() };
        if notes.is_in_order() && self.range.last == u32::MAX {
            return self.insert_in_order(path, &draft, outside, notes);
        }
        let leaf = self.map.tree.leaf_mut(&path);
        leaf.push(&draft, outside);
        let is_over = leaf.is_over();
        self.map.len += 1;
        if is_over {
            self.map.split_if_over(self.seed, self.range.first, notes);
        }
    }

    /// Puts an entry into the last leaf that comes behind all others, or nearly so.
    fn insert_in_order(
        self,
        mut path: Path,
        draft: &Draft<'_>,
        outside: Option<Shared<V>>,
        notes: &mut impl Notes<V>,
    ) {
        let (seed, place) = (self.seed, self.hash.order());
        self.map.len += 1;
        let leaf = self.map.tree.leaf(&path);
        if leaf.is_filled_with(draft, outside.as_ref())
            && leaf.note() == NOTE_NONE
            && leaf.slots().all(|slot| F::hash(seed, leaf.name(slot)).order() < place)
        {
            self.map.tree.leaf_mut(&path).seal();
            let mut fresh = Tagged::new();
            fresh.take_room();
            fresh.push(draft, outside);
            return self.map.tree.insert_after(&mut path, place, fresh);
        }
        let leaf = self.map.tree.leaf_mut(&path);
        if !leaf.has_room_for(draft, outside.as_ref()) {
            leaf.take_room();
        }
        leaf.push(draft, outside);
        if leaf.is_over() {
            self.map.split_if_over(seed, self.range.first, notes);
        }
    }

    /// The note of the leaf that the entry would lie in, and the range of places that the leaf covers. O(1).
    pub fn leaf(&self) -> LeafNote {
        let note = self.path.map_or(NOTE_NONE, |path| self.map.tree.leaf(&path).note());
        LeafNote { note, range: self.range }
    }

    /// Gives that leaf another note; a map without leaves gets its first.
    pub fn set_note(&mut self, note: u64) {
        let path = self.planted();
        self.map.set_note(&path, note);
    }

    /// The path to the leaf. A map without leaves gets its first one.
    fn planted(&mut self) -> Path {
        *self.path.get_or_insert_with(|| self.map.tree.plant(0, Tagged::new()))
    }
}

#[cfg(test)]
mod chosen_names;
#[cfg(test)]
mod tests;
