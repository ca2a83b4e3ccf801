//! A leaf of a set of integers: an Elias-Fano code (`code/elias_fano.rs`) in a block, and how much room it
//! has.
//!
//! A leaf uses all the room that its allocation has, so that most inserts shift bits in place. It is written
//! anew, in the best frame for its elements, for a value below the base or without room, and when removals
//! have left an eighth of it empty.
//!
//! Cost: that of the code, and 12 bytes a leaf for its block's header. [`COUNT_MAX`] bounds what an edit
//! shifts.
use crate::code::elias_fano::{self, EliasFano, Frame, HEADER, Spot, WORD_BYTES};
use crate::memory::arena::Moves;
use crate::memory::block::{self, Block};
use crate::tree::node::Leaf;

/// A leaf with more elements than this is split.
pub(crate) const COUNT_MAX: usize = 512;
const _: () = assert!(COUNT_MAX <= elias_fano::COUNT_MAX);

pub(crate) struct IntLeaf(Block);

impl IntLeaf {
    /// A leaf of `values`, ascending and each once, at least one of them.
    pub(crate) fn of(values: &[i64]) -> IntLeaf {
        IntLeaf::from_base(values[0], values)
    }

    fn from_base(base: i64, values: &[i64]) -> IntLeaf {
        let last = values[values.len() - 1];
        debug_assert!(base <= values[0] && values.len() <= COUNT_MAX && values.is_sorted_by(|a, b| a < b));
        let frame = Frame::fit(base, last, values.len());
        let mut leaf = IntLeaf::with_room(frame, last, values.len());
        elias_fano::fill(leaf.0.make_mut(), values);
        leaf
    }

    /// A leaf without elements that has room for `count` of them up to `last`. What its allocation has beyond
    /// that is shared out as room for further elements, each with three high bits and a low part.
    fn with_room(frame: Frame, last: i64, count: usize) -> IntLeaf {
        let (high, low) = frame.words(last, count);
        let mut block = Block::spread(&[0; HEADER], (high + low) * WORD_BYTES, &[]);
        let words = (block.len() - HEADER) / WORD_BYTES;
        assert!(high + low <= words && high <= elias_fano::COUNT_MAX, "{high} and {low} of {words} words");
        let spare = words - high - low;
        let high = (high + spare * 3 / (frame.width as usize + 3)).min(elias_fano::COUNT_MAX);
        elias_fano::begin(block.make_mut(), frame, high);
        IntLeaf(block)
    }

    /// The code, to read.
    #[inline]
    pub(crate) fn read(&self) -> EliasFano<'_> {
        EliasFano::open(&self.0)
    }

    /// How many elements there are.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.read().count()
    }

    /// Whether it is so small that it should be joined with a neighbour.
    pub(crate) fn is_under(&self) -> bool {
        self.count() < COUNT_MAX / 4
    }

    /// Whether both would make one leaf that does not split again soon.
    pub(crate) fn can_join(&self, other: &IntLeaf) -> bool {
        self.count() + other.count() <= COUNT_MAX * 3 / 4
    }

    /// Bytes in use, the block's header included.
    pub(crate) fn used_bytes(&self) -> usize {
        block::HEADER_BYTES + self.read().used_bytes()
    }

    /// What the block costs, rounding included.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.0.allocated_bytes()
    }

    /// Moves the block where it lies in an extent that shall empty.
    pub(crate) fn relocate(&mut self, moves: &mut Moves) {
        self.0.relocate(moves);
    }

    /// Inserts a value that is not there, at the spot where it was looked for. The leaf is not full.
    #[inline]
    pub(crate) fn insert(&mut self, spot: Spot, value: i64) {
        debug_assert!(!spot.is_found && self.count() < COUNT_MAX);
        if self.read().has_room_for(spot, value) {
            elias_fano::insert(self.0.make_mut(), spot, value);
        } else {
            self.insert_anew(spot, value);
        }
    }

    /// Removes the element that was found at `spot`, and gives room back if there is much.
    pub(crate) fn remove(&mut self, spot: Spot) {
        elias_fano::remove(self.0.make_mut(), spot);
        self.shrink();
    }

    /// Inserts a value by writing a new leaf that has room. If the best frame is the old one, the bits are
    /// copied as they are.
    #[cold]
    fn insert_anew(&mut self, spot: Spot, value: i64) {
        let leaf = self.read();
        let (frame, count, last) = (leaf.frame(), leaf.count() + 1, leaf.last().max(value));
        let is_above = value >= frame.base;
        if is_above && Frame::fit(frame.base, last, count) == frame {
            let mut fresh = IntLeaf::with_room(frame, last, count);
            elias_fano::fill_from(fresh.0.make_mut(), leaf);
            elias_fano::insert(fresh.0.make_mut(), spot, value);
            *self = fresh;
            return;
        }
        let base = if is_above { leaf.first().min(value) } else { some_below(value, last) };
        let mut values = leaf.values();
        values.insert(spot.index, value);
        *self = IntLeaf::from_base(base, &values);
    }

    /// Gives back what removals left empty, once it is an eighth.
    fn shrink(&mut self) {
        let leaf = self.read();
        if leaf.count() == 0 {
            return;
        }
        let wanted = leaf.used_bytes();
        debug_assert!(wanted <= self.0.len(), "{wanted} of {} bytes", self.0.len());
        if (self.0.len() - wanted) * 8 >= self.0.len() && self.0.is_larger_than_for_entries(wanted) {
            *self = IntLeaf::of(&leaf.values());
        }
    }
}

impl Clone for IntLeaf {
    fn clone(&self) -> IntLeaf {
        IntLeaf(self.0.clone())
    }
}

impl Leaf for IntLeaf {
    fn is_sole(&self) -> bool {
        self.0.is_sole()
    }

    fn allocated_bytes(&self) -> usize {
        self.0.allocated_bytes()
    }
}

/// A base for a leaf whose first element has become `first`. It lies a sixteenth of the range lower, so that
/// further elements below the first need no new leaf. That costs about a sixteenth of a bit for each element.
fn some_below(first: i64, last: i64) -> i64 {
    first.saturating_sub_unsigned(last.abs_diff(first) / 16)
}

#[cfg(test)]
#[path = "int_leaf_tests.rs"]
mod tests;
