//! A short list as one byte string, to live inside its keyspace entry.
//!
//! An image is the tight form of one leaf (`tight.rs`, `strings.rs`, `ints.rs`); the empty list is the empty
//! image. It is read in place. To be edited it is opened in a [`Draft`], a leaf with room at both ends in a
//! buffer that is used again and again, and closed to the next image: two short copies and no allocation.
//! Images are made here alone, never read from outside, so reading asserts what it relies on instead of
//! returning errors.
//!
//! Cost beside the elements (see the leaves): 2 bytes a list of strings; 4 bytes, base and stride (2 to 16
//! bytes) a list of integers.

use crate::list::leaf::{self, Leaf, Start, part_of_span};
use crate::list::limits::Limits;
use crate::list::seq::Seq;
use crate::memory::arena;
use crate::tree::end::End;
use base::Item;
use std::ops::ControlFlow;

/// A draft grows without a limit, because the owner of an image decides how long it may be.
const NO_LIMIT: usize = usize::MAX;

/// Edits a short list: opened from an image, edited, closed to an image. Meant to be used again for the next
/// list.
#[derive(Default)]
pub struct Draft {
    /// One leaf; empty where the list is.
    leaf: Vec<u8>,
    tight: Vec<u8>,
}

impl Draft {
    /// An empty list. Allocates nothing.
    pub fn new() -> Draft {
        Draft::default()
    }

    /// Gives up a buffer that lies in an extent which shall empty (`arena::is_evacuating`). Called between
    /// two edits, when the content is not needed any more.
    pub fn relocate(&mut self) {
        for buffer in [&mut self.leaf, &mut self.tight] {
            if arena::is_evacuating(buffer.as_ptr()) {
                *buffer = Vec::new();
            }
        }
    }

    /// Gives up buffers of more bytes than that. Called between two edits, as [`Draft::relocate`] is.
    #[inline]
    pub fn shrink(&mut self, bytes_max: usize) {
        for buffer in [&mut self.leaf, &mut self.tight] {
            if buffer.capacity() > bytes_max {
                *buffer = Vec::new();
            }
        }
    }

    /// Opens an image (`&[]` is the empty list), in the place of the old content.
    pub fn open(&mut self, image: &[u8]) {
        self.leaf.clear();
        if !image.is_empty() {
            leaf::open_draft(image, &mut self.leaf);
        }
        debug_assert_eq!(self.len(), len(image));
    }

    /// Makes it the list of these elements, in the place of the old content. Texts that read as integers have
    /// been found out ([`Item::classify`]).
    pub fn fill(&mut self, items: &[Item<'_>]) {
        self.leaf.clear();
        if !items.is_empty() {
            leaf::fill(&mut self.leaf, items);
        }
    }

    /// How long the image will be at most: exact for strings, while that of integers may be shorter. Costs no
    /// copy.
    pub fn image_len(&self) -> usize {
        self.read().map_or(0, leaf::tight_len_max)
    }

    /// The image of the content, lent until the next edit. Costs a copy.
    pub fn close(&mut self) -> &[u8] {
        self.tight.clear();
        if !self.leaf.is_empty() {
            leaf::copy_tight(Leaf::open(&self.leaf), &mut self.tight);
        }
        debug_assert!(self.tight.len() <= self.image_len() && len(&self.tight) == self.len());
        &self.tight
    }

    /// The same content as a tree, for a list that outgrows its entry. Costs a push for each element.
    pub fn to_seq(&self, limits: &Limits) -> Seq {
        let mut seq = Seq::new();
        if let Some(leaf) = self.read() {
            leaf.for_each(|item| seq.push_item(End::Tail, item, limits));
        }
        seq
    }

    /// How many elements there are.
    pub fn len(&self) -> u64 {
        self.read().map_or(0, |leaf| leaf.count() as u64)
    }

    /// Whether the list has no elements.
    pub fn is_empty(&self) -> bool {
        self.leaf.is_empty()
    }

    /// Adds at an end. Text that reads as an integer is kept as one.
    pub fn push(&mut self, end: End, value: &[u8]) {
        let item = Item::classify(value);
        if self.leaf.is_empty() {
            leaf::start(&mut self.leaf, end, item, NO_LIMIT, Start::Small);
        } else {
            leaf::push(&mut self.leaf, end, item, NO_LIMIT).expect("a draft has no limit");
        }
    }

    /// Removes at one end and lends what was there.
    pub fn pop<R>(&mut self, end: End, take: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        if self.leaf.is_empty() {
            return None;
        }
        let taken = leaf::pop(&mut self.leaf, end, take);
        self.drop_if_empty();
        Some(taken)
    }

    /// Element `index` from the head.
    pub fn get(&self, index: u64) -> Option<Item<'_>> {
        get_of(self.read()?, index)
    }

    /// Visits from element `index` towards the tail (or the head, `index` included) until told to stop.
    pub fn visit(&self, index: u64, towards: End, visit: &mut dyn FnMut(u64, Item<'_>) -> ControlFlow<()>) {
        if let Some(leaf) = self.read() {
            visit_of(leaf, index, towards, visit);
        }
    }

    /// Visits the elements that are `needle` as [`Seq::visit_equal`] does.
    pub fn visit_equal(
        &self,
        span: (u64, u64),
        towards: End,
        needle: Item<'_>,
        visit: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) {
        if let Some(leaf) = self.read() {
            visit_equal_of(leaf, span, towards, needle, visit);
        }
    }

    /// Replaces element `index`, which exists.
    pub fn set(&mut self, index: u64, value: &[u8]) {
        assert!(index < self.len(), "set of element {index} of {}", self.len());
        leaf::set(&mut self.leaf, index as usize, Item::classify(value), NO_LIMIT)
            .expect("a draft has no limit");
    }

    /// Inserts before element `index` (at most `len`).
    pub fn insert(&mut self, index: u64, value: &[u8]) {
        assert!(index <= self.len(), "insert at {index} of {}", self.len());
        if index == 0 || index == self.len() {
            return self.push(if index == 0 { End::Head } else { End::Tail }, value);
        }
        leaf::insert(&mut self.leaf, index as usize, Item::classify(value), NO_LIMIT)
            .expect("a draft has no limit");
    }

    /// Removes `count` elements from `index` on (within `len`).
    pub fn remove(&mut self, index: u64, count: u64) {
        assert!(index + count <= self.len(), "remove of {count} at {index} of {}", self.len());
        if count > 0 {
            leaf::remove(&mut self.leaf, index as usize..(index + count) as usize, NO_LIMIT)
                .expect("a draft has no limit");
            self.drop_if_empty();
        }
    }

    /// The leaf, if there is one. Inlined, so that each caller reads only what it needs of the header.
    #[inline(always)]
    fn read(&self) -> Option<Leaf<'_>> {
        if self.leaf.is_empty() { None } else { Some(Leaf::open(&self.leaf)) }
    }

    /// Drops a leaf without elements: the draft of an empty list has no leaf.
    fn drop_if_empty(&mut self) {
        if self.read().is_some_and(|leaf| leaf.count() == 0) {
            self.leaf.clear();
        }
    }
}

/// How many elements the list has.
pub fn len(image: &[u8]) -> u64 {
    if image.is_empty() { 0 } else { Leaf::open_tight(image).count() as u64 }
}

/// Element `index` from the head.
pub fn get(image: &[u8], index: u64) -> Option<Item<'_>> {
    if image.is_empty() { None } else { get_of(Leaf::open_tight(image), index) }
}

/// Visits from element `index` towards the tail (or the head, `index` included) until told to stop.
pub fn visit(
    image: &[u8],
    index: u64,
    towards: End,
    visit: &mut dyn FnMut(u64, Item<'_>) -> ControlFlow<()>,
) {
    if !image.is_empty() {
        visit_of(Leaf::open_tight(image), index, towards, visit);
    }
}

/// Visits the elements that are `needle` as [`Seq::visit_equal`] does.
pub fn visit_equal(
    image: &[u8],
    span: (u64, u64),
    towards: End,
    needle: Item<'_>,
    visit: &mut dyn FnMut(u64) -> ControlFlow<()>,
) {
    if !image.is_empty() {
        visit_equal_of(Leaf::open_tight(image), span, towards, needle, visit);
    }
}

fn visit_equal_of(
    leaf: Leaf<'_>,
    (index, span): (u64, u64),
    towards: End,
    needle: Item<'_>,
    visit: &mut dyn FnMut(u64) -> ControlFlow<()>,
) {
    if index < leaf.count() as u64 {
        let range = part_of_span(index as usize, towards, span, leaf.count());
        let _ = leaf.visit_equal(range, towards, needle, &mut |index| visit(index as u64));
    }
}

fn get_of(leaf: Leaf<'_>, index: u64) -> Option<Item<'_>> {
    (index < leaf.count() as u64).then(|| leaf.get(index as usize))
}

fn visit_of(
    leaf: Leaf<'_>,
    index: u64,
    towards: End,
    visit: &mut dyn FnMut(u64, Item<'_>) -> ControlFlow<()>,
) {
    if index < leaf.count() as u64 {
        let _ = leaf.visit(index as usize, towards, &mut |index, item| visit(index as u64, item));
    }
}

#[cfg(test)]
#[path = "image_properties.rs"]
mod properties;
