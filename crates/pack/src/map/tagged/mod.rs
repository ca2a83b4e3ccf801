//! The tagged leaf: entries found by a 1-byte tag of their key's hash, in order of insertion.
//!
//! Tags and lengths grow from the front in groups of 16, entries grow from the back towards them, so that an
//! insert moves nothing. A lookup compares 16 tags at once; a match's offset from the end is the sum of the
//! lengths up to its own. Two groups, 32 entries, are one cache line.
//!
//! ```text
//! +------+----------+---------+---------+---------+-- - --+------+------+---------+---------+---------+
//! | note | count,   | 16 tags | 16      | 16 tags |       | uses | room | entry 2 | entry 1 | entry 0 |
//! | u64  | kind u32 |         | lengths |         |       |      |      |         |         |         |
//! +------+----------+---------+---------+---------+-- - --+------+------+---------+---------+---------+
//!
//! where all entries are as long:
//! +------+----------+--------+---------+---------+-- - --+------+------+---------+---------+---------+
//! | note | count,   | length | 16 tags | 16 tags |       | uses | room | entry 2 | entry 1 | entry 0 |
//! | u64  | kind u32 | u32    |         |         |       |      |      |         |         |         |
//! +------+----------+--------+---------+---------+-- - --+------+------+---------+---------+---------+
//!
//! kind:  bits 0..28 count | bit 28, 29 width of a length: 0 = 1 byte, 1 = 2, 2 = 4, 3 = all are as long
//!        | bit 30 some entry has a pointer
//!        | bit 31 there are uses: one byte an entry, the caller's, in order of insertion
//! ```
//!
//! How an entry is laid out is decided by its form (`form.rs`, `fields.rs`): a key and what is kept for it,
//! and a pointer where the first byte says so. The key `ab` (tag 0x51) in the keyspace's form, with meta 3
//! and the payload `xyz`, note unset: `FFFFFFFFFFFFFFFF 01000030 07000000 | 51 00*15 | room | 03 02 6162
//! 78797A`.
//!
//! Uses are a column of their own behind the groups, so that a leaf without them is laid out as if there were
//! no such thing, and one that has them pays a byte an entry and no padding. A leaf gets the column when an
//! entry with such a byte is added, or one of its entries is touched, and loses it when an entry without one
//! is added. An entry without a byte counts as 0.
//!
//! A leaf begins without lengths, since its first entries may all be as long (ids, or fields and values of
//! one kind), and gets their groups when one comes that is not. Then lengths take 1 byte until an entry of
//! 256 bytes or more comes; from there all of the leaf's take 2, or 4 from 65,536 on. What a split or a join
//! makes begins anew. Limits: an entry of 4 GB, 2^28 entries. Cost: an entry takes what its form needs, 1
//! byte for its tag, and 1 for its length where they differ; a leaf takes 24 or 28 bytes, on the average 8 or
//! 16 of a group begun, and the allocator's rounding. The form also says when a leaf is full.
//!
//! A leaf is split by the places of its entries, each half keeps its order of insertion. Entries that share
//! one place cannot be split, and make an oversize leaf.
mod by_tag;
mod fill;
mod gather;
mod kind;
mod payload;
mod room;
mod search;

use crate::code::simd::{self, LANES};
use crate::map::form::{Form, Keys, Name, OUTSIDE};
use crate::memory::arena::Moves;
use crate::memory::block::{self, Block};
use crate::memory::counted::count_copied;
use crate::memory::prefetch::prefetch;
use crate::memory::shared::{POINTER_BYTES, Shared};
use crate::tree::node::Leaf;
pub(crate) use by_tag::{ByTag, Listed};
use fill::Filler;
pub(crate) use gather::{Gathered, leaf_bytes};
use kind::{ALIKE_HEAD_BYTES, Kind, NOTE_BYTES, group_of};
pub(super) use payload::stays_outside;
pub(crate) use payload::tail_len;
use payload::{Tail, laid_apart, laid_out};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

/// A leaf that grows for an entry takes room for a second one, if an entry is at most one part in so many of
/// the leaf and the leaf has at most [`SPARE_MAX`] bytes.
const SPARE_SHARE: usize = 16;
const SPARE_MAX: usize = 4096;

/// What a new leaf has as its note.
pub(crate) const NOTE_NONE: u64 = u64::MAX;
/// The note of a leaf that took over the places of a leaf with another note: neither note holds for all its
/// places.
const NOTE_MIXED: u64 = 0;

/// The note of a leaf that takes over the places of another.
pub(crate) fn joined_note(mine: u64, other: u64) -> u64 {
    if mine == other { mine } else { NOTE_MIXED }
}

pub(crate) struct Tagged<V, F: Form = Keys> {
    block: ManuallyDrop<Block>,
    owns: PhantomData<(Shared<V>, F)>,
}

/// Where an entry is: its number, its length, and the distance of its first byte from the leaf's end. It
/// holds until an entry before it in the order of insertion changes its length or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) index: usize,
    back: usize,
    len: usize,
}

/// An entry taken apart.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'l> {
    pub(crate) meta: u8,
    pub(crate) name: Name<'l>,
    /// The payload, which lies in the entry or in a block of its own.
    pub(crate) inline: &'l [u8],
    tail: Tail,
}

/// What an entry is made of.
#[derive(Clone, Copy)]
pub(crate) struct Draft<'d> {
    pub(crate) tag: u8,
    /// The caller's bits alone.
    pub(crate) meta: u8,
    pub(crate) name: Name<'d>,
    pub(crate) inline: &'d [u8],
    /// The byte that a new entry brings where uses are kept.
    pub(crate) birth: Option<u8>,
}

const LINE_BYTES: usize = 64;

impl<V, F: Form> Tagged<V, F> {
    /// An empty leaf.
    pub(crate) fn new() -> Tagged<V, F> {
        Tagged::with_room(NOTE_NONE, Kind::EMPTY, 1, 0)
    }

    /// An empty leaf with room for `count` entries of `bytes` together, which keeps lengths as `kind` does.
    fn with_room(note: u64, kind: Kind, count: usize, bytes: usize) -> Tagged<V, F> {
        let mut head = [0; ALIKE_HEAD_BYTES];
        head[..NOTE_BYTES].copy_from_slice(&note.to_le_bytes());
        Kind { count: 0, ..kind }.store(&mut head);
        let groups = Kind { count, ..kind }.front_bytes() - kind.head_bytes();
        Tagged::of_block(Block::spread(&head[..kind.head_bytes()], groups + bytes, &[]))
    }

    fn of_block(block: Block) -> Tagged<V, F> {
        Tagged { block: ManuallyDrop::new(block), owns: PhantomData }
    }

    pub(crate) fn count(&self) -> usize {
        Kind::of(&self.block).count
    }

    pub(crate) fn note(&self) -> u64 {
        u64::from_le_bytes(self.block[..NOTE_BYTES].try_into().expect("8 bytes"))
    }

    /// Bytes in use, the block's header included.
    pub(crate) fn used_bytes(&self) -> usize {
        let kind = Kind::of(&self.block);
        block::HEADER_BYTES + kind.front_bytes() + kind.sum_before(&self.block, kind.count)
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        self.block.allocated_bytes()
    }

    pub(crate) fn is_over(&self) -> bool {
        let count = self.count();
        count > F::COUNT_MAX
            || (self.allocated_bytes() > F::BYTES_MAX && count > 1 && self.used_bytes() > F::BYTES_MAX)
    }

    /// Whether another attempt to split an oversize leaf has to wait. An attempt hashes all entries, and
    /// fails if they share one place. So a leaf of more than twice the entries that it may have is tried
    /// again only when half of that limit have been added.
    pub(crate) fn is_waiting_to_split(&self) -> bool {
        let count = self.count();
        count > 2 * F::COUNT_MAX && !count.is_multiple_of(F::COUNT_MAX / 2)
    }

    /// Whether the leaf is so empty that it looks for a neighbour to join.
    pub(crate) fn is_under(&self) -> bool {
        self.count() < F::COUNT_MAX / 4 && self.used_bytes() < F::BYTES_MAX / 4
    }

    /// Whether both would make one leaf that does not split again soon.
    pub(crate) fn can_join(&self, other: &Tagged<V, F>) -> bool {
        self.count() + other.count() <= F::COUNT_MAX * 3 / 4
            && self.used_bytes() + other.used_bytes() <= F::BYTES_MAX * 3 / 4
    }

    /// The cache lines that every lookup reads.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        let start = self.block.address();
        for line in 0..3 {
            prefetch(start.wrapping_add(line * LINE_BYTES));
        }
    }

    /// The cache lines of the first entry with this tag, up to four, or that where a new one would end; to be
    /// called when the leaf's own lines have come.
    #[inline]
    pub(crate) fn prefetch_entry(&self, tag: u8) {
        let end = self.block.as_ptr().wrapping_add(self.block.len());
        match self.first_with(tag) {
            Ok(slot) => {
                let (start, last) = (end.wrapping_sub(slot.back), slot.len.saturating_sub(1));
                for line in 0..4 {
                    prefetch(start.wrapping_add(last.min(line * LINE_BYTES)));
                }
            }
            Err(bytes) => prefetch(end.wrapping_sub(bytes + 1)),
        }
    }

    /// The first entry with this tag, which may have another name; where there is none, how many bytes all
    /// entries take.
    #[inline(always)]
    fn first_with(&self, tag: u8) -> Result<Slot, usize> {
        let leaf = &self.block[..];
        let (kind, mut before) = (Kind::of(leaf), 0);
        for group in 0..kind.groups() {
            let lanes = (kind.count - group * LANES).min(LANES);
            let hits = simd::matches(group_of(leaf, kind.group_at(group)), tag);
            let lane = hits.trailing_zeros() as usize;
            if lane < lanes {
                let (index, back) = (group * LANES + lane, before + kind.sum_first(leaf, group, lane + 1));
                return Ok(Slot { index, back, len: kind.len(leaf, index) });
            }
            before += kind.sum_first(leaf, group, lanes);
        }
        Err(before)
    }

    #[inline(always)]
    pub(crate) fn find(&self, tag: u8, name: Name<'_>) -> Option<Slot> {
        search::find::<F>(&self.block, tag, name)
    }

    /// The entry with this number.
    pub(crate) fn slot(&self, index: usize) -> Slot {
        let kind = Kind::of(&self.block);
        assert!(index < kind.count, "entry {index} of {}", kind.count);
        Slot { index, back: kind.sum_before(&self.block, index + 1), len: kind.len(&self.block, index) }
    }

    /// All entries, in order of insertion.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        let (leaf, kind) = (&self.block[..], Kind::of(&self.block));
        let mut back = 0;
        (0..kind.count).map(move |index| {
            let len = kind.len(leaf, index);
            back += len;
            Slot { index, back, len }
        })
    }

    /// All entries, the one that came last first.
    pub(crate) fn slots_from_newest(&self) -> impl Iterator<Item = Slot> + '_ {
        let (leaf, kind) = (&self.block[..], Kind::of(&self.block));
        let mut back = kind.sum_before(leaf, kind.count);
        (0..kind.count).rev().map(move |index| {
            let len = kind.len(leaf, index);
            let slot = Slot { index, back, len };
            back -= len;
            slot
        })
    }

    #[inline(always)]
    pub(crate) fn parts(&self, slot: Slot) -> Parts<'_> {
        Parts::of::<F>(self.entry(slot))
    }

    /// What the entry is found by, without a look at its payload.
    #[inline(always)]
    pub(crate) fn name(&self, slot: Slot) -> Name<'_> {
        F::read(self.entry(slot)).name
    }

    #[inline]
    pub(crate) fn meta(&self, slot: Slot) -> u8 {
        self.block[self.block.len() - slot.back] & !OUTSIDE
    }

    #[inline]
    pub(crate) fn outside(&self, slot: Slot) -> Option<&V> {
        // SAFETY: the entry owns the reference, and stays as it is while `self` is borrowed.
        Tail::of::<F>(self.entry(slot)).value().map(|bytes| unsafe { Shared::peek(bytes) })
    }

    /// The outside value of an entry of this leaf.
    #[inline(always)]
    pub(crate) fn outside_of<'l>(&'l self, parts: &Parts<'l>) -> Option<&'l V> {
        // SAFETY: the entry owns the reference, and stays as it is while `self` is borrowed.
        parts.tail.value().map(|bytes| unsafe { Shared::peek(bytes) })
    }

    /// Bytes of the content that hold nothing.
    pub(crate) fn room_bytes(&self) -> usize {
        self.block.len() - self.wanted_bytes()
    }

    pub(crate) fn tag(&self, index: usize) -> u8 {
        self.block[Kind::of(&self.block).tag_at(index)]
    }

    /// Bytes that the entry takes in the leaf.
    pub(crate) fn entry_bytes(&self, slot: Slot) -> usize {
        let kind = Kind::of(&self.block);
        slot.len + 1 + kind.width + usize::from(kind.has_uses)
    }

    /// The bytes of all entries, in order of insertion; none where uses are not kept.
    pub(crate) fn uses(&self) -> &[u8] {
        &self.block[Kind::of(&self.block).uses()]
    }

    /// Whether nobody else holds the leaf.
    pub(crate) fn is_sole(&self) -> bool {
        self.block.is_sole()
    }

    /// The content without room.
    fn wanted_bytes(&self) -> usize {
        let kind = Kind::of(&self.block);
        kind.front_bytes() + kind.sum_before(&self.block, kind.count)
    }

    #[inline(always)]
    fn entry(&self, slot: Slot) -> &[u8] {
        debug_assert!(slot.len <= slot.back && slot.back <= self.block.len(), "a stale slot: {slot:?}");
        let start = self.block.len() - slot.back;
        &self.block[start..start + slot.len]
    }

    /// The bytes of all entries.
    fn back_bytes(&self) -> &[u8] {
        let kind = Kind::of(&self.block);
        &self.block[self.block.len() - kind.sum_before(&self.block, kind.count)..]
    }
}

impl<V: Clone, F: Form> Tagged<V, F> {
    pub(crate) fn set_note(&mut self, note: u64) {
        if note != self.note() {
            self.make_mut()[..NOTE_BYTES].copy_from_slice(&note.to_le_bytes());
        }
    }

    /// Adds an entry behind all others. The caller has made sure that there is none with this key.
    pub(crate) fn push(&mut self, draft: &Draft<'_>, outside: Option<Shared<V>>) -> Slot {
        if draft.birth.is_some() != Kind::of(&self.block).has_uses {
            self.convert(draft.birth.is_some());
        }
        let (draft, pointer) = &laid_out::<V, F>(draft, outside);
        let pointer = *pointer;
        let len = entry_len::<F>(draft, pointer);
        let (kind, used) = self.reserve(len, 1, len);
        let leaf = self.block.make_mut();
        let back = used + len;
        let grown = Kind { has_outside: kind.has_outside | pointer.is_some(), ..kind.with(len) };
        assert!(grown.front_bytes() + back <= leaf.len(), "an entry has room");
        let (uses, grown_uses) = (kind.uses(), grown.uses());
        if kind.count.is_multiple_of(LANES) {
            leaf.copy_within(uses.clone(), grown_uses.start);
            leaf[uses.start..grown_uses.start].fill(0);
        }
        if let (true, Some(birth)) = (kind.has_uses, draft.birth) {
            leaf[grown_uses.end - 1] = birth;
        }
        grown.store(leaf);
        grown.set_lane(leaf, kind.count, draft.tag, len);
        let start = leaf.len() - back;
        write_entry::<F>(&mut leaf[start..start + len], draft, pointer);
        self.check();
        Slot { index: kind.count, back, len }
    }

    /// Writes the entry anew, in its place in the order of insertion; what was outside comes back.
    pub(crate) fn replace(
        &mut self,
        slot: Slot,
        draft: &Draft<'_>,
        outside: Option<Shared<V>>,
    ) -> Option<Shared<V>> {
        self.unshare();
        let old = Tail::of::<F>(self.entry(slot));
        if old.is_payload() && outside.is_none() && stays_outside::<F>(draft.inline.len()) {
            self.write_payload(slot, draft.meta, draft.inline);
            return None;
        }
        let (draft, pointer) = laid_out::<V, F>(draft, outside);
        self.rewrite(slot, &draft, pointer);
        // SAFETY: the entry owned what its tail led to, and its bytes were written over.
        unsafe { old.discard() }
    }

    /// Writes the entry anew, in its place in the order of insertion, with its payload in a block of its own.
    /// What was outside comes back.
    pub(crate) fn replace_apart(&mut self, slot: Slot, draft: &Draft<'_>) -> Option<Shared<V>> {
        self.unshare();
        let old = Tail::of::<F>(self.entry(slot));
        if old.is_payload() {
            self.write_payload(slot, draft.meta, draft.inline);
            return None;
        }
        let (draft, pointer) = laid_apart(draft);
        self.rewrite(slot, &draft, Some(pointer));
        // SAFETY: the entry owned what its tail led to, and its bytes were written over.
        unsafe { old.discard() }
    }

    /// Writes meta and payload anew; a value outside stays.
    pub(crate) fn replace_inline(&mut self, slot: Slot, draft: &Draft<'_>) {
        self.unshare();
        match Tail::of::<F>(self.entry(slot)).value() {
            Some(pointer) => self.rewrite(slot, draft, Some(pointer)),
            None => drop(self.replace(slot, draft, None)),
        }
    }

    /// Writes meta and payload where the old ones are, if they are as long and no value lies outside; whether
    /// they were written.
    #[inline]
    pub(crate) fn overwrite(&mut self, slot: Slot, meta: u8, inline: &[u8]) -> bool {
        let parts = self.parts(slot);
        if parts.tail.value().is_some() || parts.inline.len() != inline.len() {
            return false;
        }
        if parts.tail.is_payload() {
            self.write_payload(slot, meta, inline);
            return true;
        }
        let end = self.block.len() - slot.back + slot.len;
        self.make_mut()[end - inline.len()..end].copy_from_slice(inline);
        if F::META != 0 {
            self.set_meta(slot, meta);
        }
        true
    }

    /// Gives an entry another meta, and a payload that is not longer than the old one, with no name at hand;
    /// its slot holds no longer. The leaf grows by a column of lengths at most.
    pub(crate) fn set_inline(&mut self, slot: Slot, meta: u8, inline: &[u8]) {
        if Tail::of::<F>(self.entry(slot)).is_payload() {
            return self.write_payload(slot, meta, inline);
        }
        let tag = self.block[Kind::of(&self.block).tag_at(slot.index)];
        let name = self.name(slot);
        let bytes = name.bytes.to_vec();
        let name = Name { bytes: &bytes, ..name };
        self.replace_inline(slot, &Draft { tag, meta, name, inline, birth: None });
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<Shared<V>> {
        let old = self.take_out(slot);
        self.shrink();
        old
    }

    /// Removes an entry and keeps its bytes as room.
    pub(crate) fn take_out(&mut self, slot: Slot) -> Option<Shared<V>> {
        self.unshare();
        let old = Tail::of::<F>(self.entry(slot));
        let leaf = self.block.make_mut();
        let kind = Kind::of(leaf);
        let (used, end) = (kind.sum_before(leaf, kind.count), leaf.len());
        assert!(slot.back <= used && kind.len(leaf, slot.index) == slot.len, "a stale slot");
        leaf.copy_within(end - used..end - slot.back, end - used + slot.len);
        kind.close_lane(leaf, slot.index);
        let fewer = Kind { count: kind.count - 1, ..kind };
        if kind.has_uses {
            let uses = kind.uses();
            leaf.copy_within(uses.start + slot.index + 1..uses.end, uses.start + slot.index);
            leaf.copy_within(uses.start..uses.end - 1, fewer.uses().start);
        }
        fewer.store(leaf);
        self.check();
        // SAFETY: the entry owned what its tail led to, and is gone.
        unsafe { old.discard() }
    }

    pub(crate) fn set_meta(&mut self, slot: Slot, meta: u8) {
        assert!(meta & !F::META == 0, "a form leaves some bits of meta to the caller");
        let start = self.block.len() - slot.back;
        let byte = &mut self.make_mut()[start];
        *byte = *byte & !F::META | meta;
    }

    /// The bytes of all entries, to be changed where they are.
    pub(crate) fn uses_mut(&mut self) -> &mut [u8] {
        let uses = Kind::of(&self.block).uses();
        &mut self.make_mut()[uses]
    }

    /// Gives an entry that was used the byte that `next` makes of its old one. The slot stays valid.
    #[inline]
    pub(crate) fn touch(&mut self, slot: Slot, next: impl FnOnce(u8) -> u8) {
        if !Kind::of(&self.block).has_uses {
            self.convert(true);
        }
        debug_assert_eq!(self.uses().len(), self.count(), "a byte of uses for each entry");
        let byte = &mut self.uses_mut()[slot.index];
        *byte = next(*byte);
    }

    /// Gives the leaf the column of uses, or takes it off.
    #[cold]
    fn convert(&mut self, has_uses: bool) {
        self.unshare();
        let kind = Kind { has_uses, ..Kind::of(&self.block) };
        let mut other = Tagged::with_room(self.note(), kind, kind.count, self.back_bytes().len());
        Filler::of(&mut other, kind.count).take(self, self.slots());
        self.abandon(other);
    }

    /// The payload, to be edited where it lies; its length stays.
    pub(crate) fn inline_mut(&mut self, slot: Slot) -> &mut [u8] {
        self.unshare();
        let (start, parts) = (self.block.len() - slot.back, self.parts(slot));
        if parts.tail.is_payload() {
            return self.payload_mut(slot);
        }
        let end = start + slot.len - if parts.tail.value().is_some() { POINTER_BYTES } else { 0 };
        let inline = end - parts.inline.len()..end;
        debug_assert!(start <= inline.start, "a payload lies in its entry");
        &mut self.block.make_mut()[inline]
    }

    /// Another reference to the outside value.
    pub(crate) fn share_outside(&self, slot: Slot) -> Option<Shared<V>> {
        Tail::of::<F>(self.entry(slot)).value().map(|bytes| {
            // SAFETY: the leaf owns the reference in these bytes, and keeps it: `ManuallyDrop` gives none
            // back.
            let shared = ManuallyDrop::new(unsafe { Shared::<V>::from_bytes(bytes) });
            Shared::clone(&shared)
        })
    }

    /// The outside value, to be edited; it moves when a clone shares it.
    #[inline]
    pub(crate) fn outside_mut(&mut self, slot: Slot) -> Option<&mut V> {
        self.unshare();
        let mut bytes = Tail::of::<F>(self.entry(slot)).value()?;
        // SAFETY: the entry owns the reference for as long as `self` is borrowed.
        if !unsafe { Shared::<V>::is_sole(bytes) } {
            bytes = self.unshare_outside(slot, bytes);
        }
        // SAFETY: the value has one owner, this entry, which `&mut self` keeps from all others.
        Some(unsafe { Shared::peek_mut(bytes) })
    }

    /// Gives the entry, whose leaf has one owner, an outside value of its own.
    #[cold]
    fn unshare_outside(&mut self, slot: Slot, bytes: [u8; POINTER_BYTES]) -> [u8; POINTER_BYTES] {
        // SAFETY: the entry owns the reference; the pointer is written back before anyone reads the entry.
        let mut shared = ManuallyDrop::new(unsafe { Shared::<V>::from_bytes(bytes) });
        shared.make_mut();
        let bytes = ManuallyDrop::into_inner(shared).into_bytes();
        self.set_pointer(slot, bytes);
        bytes
    }

    /// Moves what lies in extents that are being emptied: the leaf, and what its entries have outside, which
    /// `value` then is shown. What a clone shares stays.
    pub(crate) fn relocate(&mut self, moves: &mut Moves, value: &mut dyn FnMut(&[u8], &mut V, &mut Moves)) {
        self.block.relocate(moves);
        if !Kind::of(&self.block).has_outside || !self.block.is_sole() {
            return;
        }
        let tails = self.slots().map(|slot| Tail::of::<F>(self.entry(slot)));
        tails.filter_map(Tail::value).for_each(|bytes| prefetch(Shared::<V>::address(bytes)));
        for index in 0..self.count() {
            let slot = self.slot(index);
            let tail = Tail::of::<F>(self.entry(slot));
            if tail.is_payload() {
                self.edit_payload(slot, |payload| payload.relocate(moves));
            }
            let Some(bytes) = tail.value() else { continue };
            // SAFETY: our entry owns a reference.
            if unsafe { Shared::<V>::is_sole(bytes) } {
                let bytes = self.relocate_outside(slot, bytes, moves);
                // SAFETY: the entry owns the only reference, and `&mut self` keeps others from the entry.
                let outside = unsafe { Shared::peek_mut(bytes) };
                value(self.name(slot).bytes, outside, moves);
            } else {
                moves.note(false, 0);
            }
        }
    }

    /// The outside value where nobody shares it, nor the leaf.
    pub(crate) fn outside_if_sole(&mut self, slot: Slot) -> Option<&mut V> {
        let bytes = Tail::of::<F>(self.entry(slot)).value()?;
        // SAFETY: our entry owns a reference.
        let is_sole = self.block.is_sole() && unsafe { Shared::<V>::is_sole(bytes) };
        // SAFETY: the entry owns the only reference, and `&mut self` keeps others from the entry.
        is_sole.then(|| unsafe { Shared::peek_mut(bytes) })
    }

    /// Moves the body behind an entry's pointer, where that is called for; the pointer as it is now.
    fn relocate_outside(
        &mut self,
        slot: Slot,
        bytes: [u8; POINTER_BYTES],
        moves: &mut Moves,
    ) -> [u8; POINTER_BYTES] {
        // SAFETY: the entry owns the only reference; what comes back is written in its place.
        let fresh = unsafe { Shared::<V>::relocate(bytes) };
        moves.note(fresh.is_some(), Shared::<V>::body_bytes());
        let Some(fresh) = fresh else { return bytes };
        self.set_pointer(slot, fresh);
        fresh
    }

    /// Writes the pointer at the end of an entry, whose leaf has one owner.
    fn set_pointer(&mut self, slot: Slot, pointer: [u8; POINTER_BYTES]) {
        debug_assert!(slot.len > POINTER_BYTES, "an entry is more than its pointer");
        let end = self.block.len() - slot.back + slot.len;
        self.block.make_mut()[end - POINTER_BYTES..end].copy_from_slice(&pointer);
    }

    /// Cuts off the entries from a place on, about half of the bytes. None if all share one place.
    pub(crate) fn split(&mut self, place: impl Fn(Name<'_>) -> u32) -> Option<(u32, Tagged<V, F>)> {
        let placed: Vec<(u32, Slot)> = self.slots().map(|slot| (place(self.name(slot)), slot)).collect();
        let cut = cut(&placed)?;
        self.unshare();
        let of = |is_left: bool| placed.iter().filter(move |p| (p.0 < cut) == is_left).map(|p| p.1);
        let (left, right) = (self.selected(of(true)), self.selected(of(false)));
        assert!(left.count() > 0 && right.count() > 0 && left.count() + right.count() == self.count());
        self.abandon(left);
        self.check();
        right.check();
        Some((cut, right))
    }

    /// Appends the entries of `other`.
    pub(crate) fn join(&mut self, mut other: Tagged<V, F>) {
        self.unshare();
        other.unshare();
        let (mine, others) = (Kind::of(&self.block), Kind::of(&other.block));
        let kind = Kind {
            has_outside: mine.has_outside | others.has_outside,
            has_uses: mine.has_uses | others.has_uses,
            ..self.slots().chain(other.slots()).fold(Kind::EMPTY, |kind, slot| kind.with(slot.len))
        };
        let bytes = self.back_bytes().len() + other.back_bytes().len();
        let mut joined = Tagged::with_room(joined_note(self.note(), other.note()), kind, kind.count, bytes);
        let mut filler = Filler::of(&mut joined, kind.count);
        filler.take(self, self.slots());
        filler.take(&other, other.slots());
        assert!(filler.kind.count == kind.count, "a joined leaf has the entries of both");
        other.abandon(Tagged::new());
        self.abandon(joined);
        self.check();
    }

    /// A leaf of some of the entries, bit for bit: the references of both are owned once.
    fn selected(&self, slots: impl Iterator<Item = Slot> + Clone) -> Tagged<V, F> {
        let (mut kind, mut bytes) = (Kind { count: 0, width: 0, ..Kind::of(&self.block) }, 0);
        for slot in slots.clone() {
            (kind, bytes) = (kind.with(slot.len), bytes + slot.len);
        }
        let mut leaf = Tagged::with_room(self.note(), kind, kind.count, bytes);
        Filler::of(&mut leaf, kind.count).take(self, slots);
        leaf
    }

    /// Replaces this leaf by `heir`, which has taken over the references of all entries.
    fn abandon(&mut self, heir: Tagged<V, F>) {
        assert!(self.block.is_sole(), "only what nobody shares is taken apart");
        let mut old = ManuallyDrop::new(std::mem::replace(self, heir));
        // SAFETY: the old leaf is not used again, nor dropped: its block goes as mere bytes.
        drop(unsafe { ManuallyDrop::take(&mut old.block) });
    }

    fn rewrite(&mut self, slot: Slot, draft: &Draft<'_>, pointer: Option<[u8; POINTER_BYTES]>) {
        let len = entry_len::<F>(draft, pointer);
        let back = self.resize(slot, len);
        let leaf = self.block.make_mut();
        let kind = Kind::of(leaf);
        if pointer.is_some() && !kind.has_outside {
            Kind { has_outside: true, ..kind }.store(leaf);
        }
        let start = leaf.len() - back;
        write_entry::<F>(&mut leaf[start..start + len], draft, pointer);
        if len < slot.len {
            self.shrink();
        }
        self.check();
    }

    /// Makes the entry `len` bytes long, its content undefined, and moves those after it. Returns its new
    /// distance from the end.
    fn resize(&mut self, slot: Slot, len: usize) -> usize {
        let (kind, used) = self.reserve(len, 0, len.saturating_sub(slot.len));
        let back = slot.back - slot.len + len;
        if len == slot.len {
            return back;
        }
        let leaf = self.block.make_mut();
        let end = leaf.len();
        assert!(slot.back <= used && kind.len(leaf, slot.index) == slot.len, "a stale slot");
        leaf.copy_within(end - used..end - slot.back, end - used + slot.len - len);
        let tag = leaf[kind.tag_at(slot.index)];
        kind.set_lane(leaf, slot.index, tag, len);
        back
    }

    /// Makes sure that there is one owner, that lengths can say `len`, and that there is room for `bytes` and
    /// `lanes` more. Returns what the header says then, and how many bytes all entries take.
    fn reserve(&mut self, len: usize, lanes: usize, bytes: usize) -> (Kind, usize) {
        self.unshare();
        let old = Kind::of(&self.block);
        let kind = old.admitting(len);
        if kind.width != old.width {
            self.widen(kind, bytes);
        }
        let used = kind.sum_before(&self.block, kind.count);
        let wanted = Kind { count: kind.count + lanes, ..kind }.front_bytes() + used + bytes;
        if wanted > self.block.len() {
            // Room for a second entry like it is taken, if that is little: then the next entry moves nothing.
            let is_little = bytes * SPARE_SHARE <= wanted && wanted <= SPARE_MAX;
            let spare = if is_little { bytes } else { 0 };
            self.respread(wanted + spare);
        }
        debug_assert!(used == self.back_bytes().len() && kind.width == Kind::of(&self.block).width);
        (kind, used)
    }

    /// Moves to a block with `len` bytes of content, rounded up.
    fn respread(&mut self, len: usize) {
        let front = &self.block[..Kind::of(&self.block).front_bytes()];
        let back = self.back_bytes();
        debug_assert!(self.block.is_sole() && front.len() + back.len() <= len, "content of {len} bytes");
        let block = Block::spread(front, len - front.len() - back.len(), back);
        // The references have moved with the bytes, so the old block goes as mere bytes.
        *self.block = block;
    }

    /// Rewrites all lengths as `kind` keeps them.
    #[cold]
    fn widen(&mut self, kind: Kind, bytes: usize) {
        debug_assert!(kind.width > Kind::of(&self.block).width, "lengths get a column, or a wider one");
        let more = self.back_bytes().len() + bytes;
        let mut wide = Tagged::with_room(self.note(), kind, kind.count + 1, more);
        Filler::of(&mut wide, kind.count).take(self, self.slots());
        self.abandon(wide);
    }

    /// In builds with checks: groups and entries do not meet, lanes behind the last entry are empty (searches
    /// read them), and nothing is said to lie outside in a form that has no pointers.
    fn check(&self) {
        if cfg!(debug_assertions) {
            let (leaf, kind) = (&self.block[..], Kind::of(&self.block));
            let back = kind.sum_before(leaf, kind.count);
            assert!(kind.front_bytes() + back <= leaf.len(), "groups and entries meet");
            assert!(kind.count > 0 || back == 0, "no entries, and {back} bytes of them");
            assert!(F::META != 0 || !kind.has_outside, "a form without meta has no pointers");
            let unused = (kind.count..kind.groups() * LANES).find(|lane| !kind.is_empty_lane(leaf, *lane));
            assert_eq!(unused, None, "a lane behind the last entry");
            assert_eq!(self.uses().len(), if kind.has_uses { kind.count } else { 0 });
        }
    }

    fn make_mut(&mut self) -> &mut [u8] {
        self.unshare();
        self.block.make_mut()
    }

    /// Copies the leaf if it is shared; outside values are then shared by both copies.
    #[inline(always)]
    fn unshare(&mut self) {
        if !self.block.is_sole() {
            self.unshare_shared();
        }
    }

    #[cold]
    fn unshare_shared(&mut self) {
        *self = count_copied(|| self.copied());
    }

    /// A copy of the leaf. Both own the values outside.
    #[cold]
    fn copied(&self) -> Tagged<V, F> {
        let mut copy = Block::from_slice(&self.block);
        if Kind::of(&copy).has_outside {
            for slot in self.slots() {
                // SAFETY: our entry owns what its tail leads to, and keeps it.
                if let Some(bytes) = unsafe { Tail::of::<F>(self.entry(slot)).share::<V>() } {
                    let end = copy.len() - slot.back + slot.len;
                    copy.make_mut()[end - POINTER_BYTES..end].copy_from_slice(&bytes);
                }
            }
        }
        Tagged::of_block(copy)
    }
}

#[cfg(test)]
impl<V, F: Form> Tagged<V, F> {
    /// Counts so many owners more, or no longer.
    pub(crate) fn pretend_owners(&self, more: u32) {
        self.block.pretend_owners(more);
    }
}

impl<V: Clone, F: Form> Clone for Tagged<V, F> {
    fn clone(&self) -> Tagged<V, F> {
        match self.block.another() {
            Some(block) => Tagged::of_block(block),
            None => self.copied(),
        }
    }
}

impl<V: Clone, F: Form> Leaf for Tagged<V, F> {
    fn is_sole(&self) -> bool {
        self.block.is_sole()
    }

    fn allocated_bytes(&self) -> usize {
        self.block.allocated_bytes()
    }
}

impl<V, F: Form> Drop for Tagged<V, F> {
    fn drop(&mut self) {
        // SAFETY: the field is not used again.
        let block = unsafe { ManuallyDrop::take(&mut self.block) };
        block.drop_with(|leaf| {
            let kind = Kind::of(leaf);
            if !kind.has_outside {
                return;
            }
            let mut start = leaf.len();
            for index in 0..kind.count {
                let len = kind.len(leaf, index);
                start -= len;
                // SAFETY: the entry owned what its tail led to, and the block goes.
                drop(unsafe { Tail::of::<F>(&leaf[start..start + len]).take::<V>() });
            }
        });
    }
}

/// How many entries that came last have to lie at the end, in order, for a leaf to be filled in hash order.
const IN_ORDER: usize = 4;

/// Whether entries come in the order of their places, as where a file is loaded: then none comes to the left
/// of the last one. By chance that is so for one leaf in a million.
fn is_filled_in_order(placed: &[(u32, Slot)], ascending: &[(u32, u32)]) -> bool {
    let Some((_, last)) = placed.split_last_chunk::<IN_ORDER>() else { return false };
    let first_place = ascending[ascending.len() - IN_ORDER].0;
    last[0].0 == first_place && last.is_sorted_by_key(|(place, _)| *place)
}

/// The first place of the right half of a leaf: the cut that leaves the halves nearest to one size; or, where
/// entries come in the order of their places, one that leaves the left half nearly full.
fn cut(placed: &[(u32, Slot)]) -> Option<u32> {
    let mut order: Vec<(u32, u32)> =
        placed.iter().map(|(place, slot)| (*place, slot.len as u32 + 2)).collect();
    order.sort_unstable();
    let all = order.iter().map(|(_, len)| u64::from(*len)).sum::<u64>();
    let half = if is_filled_in_order(placed, &order) { all - all / 8 } else { all / 2 };
    let mut left = 0;
    let mut best: Option<(u64, u32)> = None;
    for pair in order.windows(2) {
        left += u64::from(pair[0].1);
        if pair[0].0 != pair[1].0 && best.is_none_or(|(miss, _)| left.abs_diff(half) < miss) {
            best = Some((left.abs_diff(half), pair[1].0));
        }
    }
    best.map(|(_, place)| place)
}

/// How many bytes the entry of a draft takes in a leaf.
fn len_of<F: Form>(draft: &Draft<'_>, has_outside: bool) -> usize {
    F::head_len(draft.name) + tail_len::<F>(draft.inline.len(), has_outside)
}

fn entry_len<F: Form>(draft: &Draft<'_>, pointer: Option<[u8; POINTER_BYTES]>) -> usize {
    let tail = if pointer.is_some() { POINTER_BYTES } else { 0 };
    F::head_len(draft.name) + draft.inline.len() + tail
}

fn write_entry<F: Form>(entry: &mut [u8], draft: &Draft<'_>, pointer: Option<[u8; POINTER_BYTES]>) {
    assert!(draft.meta & !F::META == 0, "a form leaves some bits of meta to the caller");
    let at = F::write_head(entry, draft.meta, draft.name);
    let (inline, tail) = entry[at..].split_at_mut(draft.inline.len());
    inline.copy_from_slice(draft.inline);
    match pointer {
        Some(bytes) => {
            assert!(F::META != 0, "a form without meta has no pointers");
            tail.copy_from_slice(&bytes);
            entry[0] |= OUTSIDE;
        }
        None => assert!(tail.is_empty(), "an entry is as long as it says"),
    }
}
