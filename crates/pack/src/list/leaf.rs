//! A list leaf: a run of elements packed into one block of bytes, whatever holds the block.
//!
//! The first byte says how the elements are packed; the two ways have a file each:
//!
//! ```text
//! kind 1  strings.rs  entries back to back, lengths in a column; integers are native integers
//! kind 2  ints.rs     only integers: a line, and distances from it of equal width in bits
//! kind 3  compressed.rs  either of them, packed by a codec; opened before anything else
//! ```
//!
//! Bytes 4..8 are the count in all three.
//!
//! A leaf of integers that gets a string becomes a leaf of strings, and stays one. The same code edits a leaf
//! of the tree (a reference-counted block) and the draft of a short list (a `Vec`): both are a [`Buffer`].
//!
//! On the path of every list command: no allocation but when a leaf grows, no formatting.

use crate::code::words::u32_at;
use crate::list::ints::{self, Ints};
use crate::list::strings::{self, Strings};
use crate::memory::buffer::Buffer;
use crate::tree::end::End;
use base::Item;
use std::ops::{ControlFlow, Range};

/// The leaf may not grow as far as it would have to: the element belongs in another leaf. Nothing was
/// changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// How hard a push looks for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Moves what is there only when that wins room for many pushes to come.
    Amortized,
    /// Moves what is there for a single byte.
    Utmost,
}

pub(crate) const KIND_MASK: u8 = 3;
pub(crate) const KIND_STRINGS: u8 = 1;
pub(crate) const KIND_INTS: u8 = 2;

/// How many elements a leaf of any kind has.
#[inline]
pub(crate) fn count(bytes: &[u8]) -> usize {
    u32_at(bytes, 4) as usize
}

/// How many elements a leaf of the kind of this one may have in so many bytes, however narrow they are.
pub(crate) fn count_max(bytes: &[u8], len_max: usize) -> usize {
    if bytes[0] & KIND_MASK == KIND_INTS { ints::count_max(len_max) } else { usize::MAX }
}

/// Bit 7 of the first byte: compression was tried and did not pay. The next edit that writes the byte forgets
/// it.
const INCOMPRESSIBLE: u8 = 1 << 7;

/// Whether compressing the leaf was tried, and would not have made it shorter by enough.
pub(crate) fn is_marked_incompressible(bytes: &[u8]) -> bool {
    bytes[0] & INCOMPRESSIBLE != 0
}

/// Marks that compressing the leaf did not pay, so that it is not tried again before the next edit.
pub(crate) fn mark_incompressible(bytes: &mut [u8]) {
    bytes[0] |= INCOMPRESSIBLE;
}

/// How many bytes of a leaf hold no element: what sealing gives back at least. Sealing a leaf of integers may
/// give back more, by a narrower line.
pub(crate) fn slack_bytes(bytes: &[u8]) -> usize {
    let used_bytes = Leaf::open(bytes).used_bytes();
    debug_assert!(used_bytes <= bytes.len(), "{used_bytes} of {} bytes", bytes.len());
    bytes.len() - used_bytes
}

/// A leaf, to read.
#[derive(Clone, Copy)]
pub(crate) enum Leaf<'a> {
    Strings(Strings<'a>),
    Ints(Ints<'a>),
}

impl<'a> Leaf<'a> {
    /// Reads the header of a leaf that is not compressed. Inlined, so that each caller reads only what it
    /// needs of it.
    #[inline(always)]
    pub(crate) fn open(bytes: &'a [u8]) -> Leaf<'a> {
        match bytes[0] & KIND_MASK {
            KIND_STRINGS => Leaf::Strings(Strings::open(bytes)),
            KIND_INTS => Leaf::Ints(Ints::open(bytes)),
            kind => unreachable!("leaf of kind {kind}"),
        }
    }

    /// Reads the header of a tight leaf, as [`copy_tight`] makes them.
    #[inline]
    pub(crate) fn open_tight(bytes: &'a [u8]) -> Leaf<'a> {
        match bytes[0] & KIND_MASK {
            KIND_STRINGS => Leaf::Strings(Strings::open_tight(bytes)),
            KIND_INTS => Leaf::Ints(Ints::open_tight(bytes)),
            kind => unreachable!("image of kind {kind}"),
        }
    }

    /// How many elements there are.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        match self {
            Leaf::Strings(strings) => strings.count(),
            Leaf::Ints(ints) => ints.count(),
        }
    }

    /// Element `index`, which exists.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Item<'a> {
        match self {
            Leaf::Strings(strings) => strings.get(index),
            Leaf::Ints(ints) => Item::Int(ints.get(index)),
        }
    }

    /// The bytes that are filled, header included: what the leaf takes once it is sealed.
    pub(crate) fn used_bytes(&self) -> usize {
        match self {
            Leaf::Strings(strings) => strings.used_bytes(),
            Leaf::Ints(ints) => ints.used_bytes(),
        }
    }

    /// Visits from element `index`, which exists, towards an end until told to stop; indexes count from the
    /// leaf's head.
    pub(crate) fn visit(
        &self,
        index: usize,
        towards: End,
        visit: &mut impl FnMut(usize, Item<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        debug_assert!(index < self.count(), "element {index} of {}", self.count());
        match self {
            Leaf::Strings(strings) => strings.visit(index, towards, visit),
            Leaf::Ints(ints) => ints.visit(index, towards, visit),
        }
    }

    /// Visits the elements of a range that are `needle`, until told to stop; indexes count from the leaf's
    /// head. A range that is gone through towards the head begins at its end.
    pub(crate) fn visit_equal(
        &self,
        range: Range<usize>,
        towards: End,
        needle: Item<'_>,
        visit: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut range = range;
        while let Some(index) = self.find(range.clone(), towards, needle) {
            visit(index)?;
            match towards {
                End::Tail => range.start = index + 1,
                End::Head => range.end = index,
            }
        }
        ControlFlow::Continue(())
    }

    /// The first element of a range, in the direction towards an end, that is `needle`.
    fn find(&self, mut range: Range<usize>, towards: End, needle: Item<'_>) -> Option<usize> {
        debug_assert!(range.end <= self.count(), "elements {range:?} of {}", self.count());
        match (self, needle, towards) {
            (Leaf::Strings(strings), ..) => strings.find(range, towards, needle),
            (Leaf::Ints(ints), Item::Int(n), End::Tail) => range.find(|index| ints.get(*index) == n),
            (Leaf::Ints(ints), Item::Int(n), End::Head) => range.rfind(|index| ints.get(*index) == n),
            (Leaf::Ints(_), Item::Bytes(_), _) => None,
        }
    }

    /// Every element, head first.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(Item<'_>)) {
        if self.count() > 0 {
            let _ = self.visit(0, End::Tail, &mut |_, item| {
                visit(item);
                ControlFlow::Continue(())
            });
        }
    }
}

/// The part of a leaf of `count` elements that lies among the next `span` from element `at` on.
pub(crate) fn part_of_span(at: usize, towards: End, span: u64, count: usize) -> Range<usize> {
    debug_assert!(at < count, "element {at} of {count}");
    let span = usize::try_from(span).unwrap_or(usize::MAX);
    match towards {
        End::Tail => at..count.min(at.saturating_add(span)),
        End::Head => (at + 1).saturating_sub(span)..at + 1,
    }
}

/// How large a new leaf begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// With room for one element and a few to come: in a short list more room would be much beside the
    /// elements.
    Small,
    /// As large as a leaf gets: in a long list that is little, and nothing is copied while the leaf grows.
    Whole,
}

/// Makes `buffer` a leaf of the one element `item`, which will grow towards `end` and never beyond `len_max`
/// bytes (but for an element that is longer by itself).
pub(crate) fn start<B: Buffer>(buffer: &mut B, end: End, item: Item<'_>, len_max: usize, start: Start) {
    match item {
        Item::Int(n) => ints::start(buffer, n, len_max, start),
        Item::Bytes(_) => strings::start(buffer, end, item, len_max, start),
    }
}

/// Makes `buffer` a leaf of these elements, at least one, without room, to grow towards the tail.
pub(crate) fn fill<B: Buffer>(buffer: &mut B, items: &[Item<'_>]) {
    let is_int = |item: &Item<'_>| matches!(item, Item::Int(_));
    match items.iter().all(is_int) {
        true => ints::fill(buffer, items),
        false => strings::fill(buffer, items),
    }
}

/// How many of these elements, from the first on, make one leaf of at most `len_max` bytes that is filled at
/// once, but one at least; 0 where they are integers alone, which take no more bytes than a line needs.
pub(crate) fn texts_of_one(items: &[Item<'_>], len_max: usize) -> usize {
    let count = strings::count_that_fits(items, len_max);
    if items[..count].iter().all(|item| matches!(item, Item::Int(_))) { 0 } else { count }
}

/// Adds at an end. Nothing moves but where the leaf has to grow; [`Full`] where it must not grow beyond
/// `len_max` bytes.
#[inline]
pub(crate) fn push<B: Buffer>(buffer: &mut B, end: End, item: Item<'_>, len_max: usize) -> Result<(), Full> {
    if buffer.bytes()[0] & KIND_MASK == KIND_STRINGS {
        return strings::push(buffer, end, item, len_max);
    }
    match item {
        Item::Int(n) => ints::push(buffer, end, n, len_max),
        Item::Bytes(_) => {
            to_strings(buffer, end, item, len_max)?;
            strings::push(buffer, end, item, len_max)
        }
    }
}

/// Removes at an end and lends what was there; the leaf is not empty.
#[inline]
pub(crate) fn pop<B: Buffer, R>(buffer: &mut B, end: End, take: impl FnOnce(Item<'_>) -> R) -> R {
    if buffer.bytes()[0] & KIND_MASK == KIND_STRINGS {
        strings::pop(buffer, end, take)
    } else {
        take(Item::Int(ints::pop(buffer, end)))
    }
}

/// Inserts before element `index`; at `count`, behind the last. Costs a move of what lies behind it, and a
/// leaf of integers is written anew.
pub(crate) fn insert<B: Buffer>(
    buffer: &mut B,
    index: usize,
    item: Item<'_>,
    len_max: usize,
) -> Result<(), Full> {
    assert!(index <= count(buffer.bytes()), "insert at {index} of {}", count(buffer.bytes()));
    match item {
        Item::Int(n) if is_ints(buffer) => ints::insert(buffer, index, n, len_max),
        _ => {
            to_strings(buffer, End::Tail, item, len_max)?;
            strings::insert(buffer, index, item, len_max)
        }
    }
}

/// Replaces element `index`, which exists.
pub(crate) fn set<B: Buffer>(
    buffer: &mut B,
    index: usize,
    item: Item<'_>,
    len_max: usize,
) -> Result<(), Full> {
    assert!(index < count(buffer.bytes()), "set of {index} of {}", count(buffer.bytes()));
    match item {
        Item::Int(n) if is_ints(buffer) => ints::set(buffer, index, n, len_max),
        _ => {
            to_strings(buffer, End::Tail, item, len_max)?;
            strings::set(buffer, index, item, len_max)
        }
    }
}

/// Removes a range of elements. Integers that are left may need more bytes than before, hence the limit.
pub(crate) fn remove<B: Buffer>(buffer: &mut B, range: Range<usize>, len_max: usize) -> Result<(), Full> {
    assert!(range.start <= range.end && range.end <= count(buffer.bytes()), "remove {range:?}");
    if is_ints(buffer) {
        return ints::remove(buffer, range, len_max);
    }
    strings::remove(buffer, range);
    Ok(())
}

/// Gives back all room: the leaf will not grow soon.
pub(crate) fn seal<B: Buffer>(buffer: &mut B) {
    if is_ints(buffer) { ints::seal(buffer) } else { strings::seal(buffer) }
}

/// Makes `target` a sealed leaf of a range of `source`.
pub(crate) fn copy_range<B: Buffer>(source: Leaf<'_>, range: Range<usize>, target: &mut B) {
    match source {
        Leaf::Strings(strings) => strings::copy_range(strings, range, target),
        Leaf::Ints(ints) => ints::copy_range(ints, range, target),
    }
}

/// Makes `target` the tight form of `source`: without room, and with the shortest header, to be read by
/// [`Leaf::open_tight`] and nothing else.
pub(crate) fn copy_tight(source: Leaf<'_>, target: &mut Vec<u8>) {
    match source {
        Leaf::Strings(strings) => strings::copy_tight(strings, target),
        Leaf::Ints(ints) => ints::copy_tight(ints, target),
    }
}

/// At most how long the tight form of `source` is.
pub(crate) fn tight_len_max(source: Leaf<'_>) -> usize {
    match source {
        Leaf::Strings(strings) => strings::tight_len(strings),
        Leaf::Ints(ints) => ints::tight_len_max(ints),
    }
}

/// Makes `target` a leaf of the tight leaf `image`, with room at both ends.
pub(crate) fn open_draft(image: &[u8], target: &mut Vec<u8>) {
    assert!(!image.is_empty(), "the empty list has no leaf");
    match image[0] & KIND_MASK {
        KIND_STRINGS => strings::open_draft(image, target),
        _ => ints::open_draft(image, target),
    }
}

fn is_ints<B: Buffer>(buffer: &B) -> bool {
    buffer.bytes()[0] & KIND_MASK == KIND_INTS
}

/// Turns a leaf of integers into one of strings, for an element that no such leaf takes; [`Full`] where
/// `item` would not fit it then. A leaf of strings stays as it is.
fn to_strings<B: Buffer>(buffer: &mut B, end: End, item: Item<'_>, len_max: usize) -> Result<(), Full> {
    if !is_ints(buffer) {
        return Ok(());
    }
    let ints = Ints::open(buffer.bytes());
    if strings::used_bytes_of(ints) + strings::entry_bytes(item) > len_max {
        return Err(Full);
    }
    let values: Vec<i64> = ints.values();
    strings::start_of_ints(buffer, end, &values);
    Ok(())
}

#[cfg(test)]
#[path = "leaf_properties.rs"]
mod properties;
