//! A list outside its entry: the packed tree, with what is needed to name it as Redis would (`listpack.rs`).
//! Each edit costs what the tree's does and a few additions.
use crate::End;
use crate::inside::{FEW_BYTES_MAX, Inside, Step};
use crate::key_info::KeyInfo;
use crate::list::listpack::{self, Encoding};
use crate::outside::Outside;
use base::Item;
use pack::arena::Moves;
use pack::seq::{Limits, Seq};
use std::ops::ControlFlow;

/// The limits of a list inside its entry.
pub(super) const INSIDE: Inside<3> = Inside([
    Step { bytes: 192, len: 128 },
    Step { bytes: 512, len: 64 },
    Step { bytes: FEW_BYTES_MAX, len: FEW },
]);
/// How many elements of any length.
pub(super) const FEW: u64 = 32;
/// If more elements than this are removed at once, their sizes are not added up.
const SUMMED_LEN_MAX: u64 = 1024;

/// A list outside its entry.
#[derive(Clone)]
pub(crate) struct ListTree {
    pub(crate) seq: Seq,
    /// The size that the list would have as a listpack. None after a large removal, which does not add up
    /// sizes, until the list is short enough to be measured again.
    pub(crate) listpack_bytes: Option<u64>,
    pub(crate) encoding: Encoding,
}

impl ListTree {
    pub(crate) fn grow(&mut self, bytes: u64) {
        self.listpack_bytes = self.listpack_bytes.map(|sum| sum + bytes);
    }

    pub(crate) fn shrink(&mut self, bytes: u64) {
        self.listpack_bytes = self.listpack_bytes.map(|sum| sum - bytes);
    }

    /// To be called before so much is added: changes the name to "quicklist" if that exceeds the limit.
    pub(crate) fn announce(&mut self, elements: u64, text_bytes: u64, limits: &Limits) {
        let bytes = self.listpack_bytes.unwrap_or(u64::MAX / 2);
        if listpack::exceeds(limits.fill, bytes + text_bytes, self.seq.len() + elements) {
            self.encoding = Encoding::Quicklist;
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, end: End, value: &[u8], limits: &Limits) {
        self.grow(listpack::entry_bytes(Item::classify(value)));
        self.seq.push(end, value, limits);
    }

    /// Adds elements behind all others, as if they came one by one.
    pub(crate) fn append(&mut self, items: &[Item<'_>], limits: &Limits) {
        for (item, elements) in items.iter().zip(1..) {
            self.announce(elements, item.len() as u64, limits);
            self.grow(listpack::entry_bytes(*item));
        }
        self.seq.append_items(items, limits);
    }

    pub(crate) fn pop<R>(
        &mut self,
        end: End,
        limits: &Limits,
        take: impl FnOnce(Item<'_>) -> R,
    ) -> Option<R> {
        let mut bytes = 0;
        let taken = self.seq.pop(end, limits, |item| {
            bytes = listpack::entry_bytes(item);
            take(item)
        });
        self.shrink(bytes);
        taken
    }

    /// Reads the old element first, for its size: a second walk, on a command that is O(log N) anyway.
    pub(crate) fn set(&mut self, index: u64, value: &[u8], limits: &Limits) {
        let old = self.seq.get(index, listpack::entry_bytes).unwrap_or(0);
        self.shrink(old);
        self.grow(listpack::entry_bytes(Item::classify(value)));
        self.seq.set(index, value, limits);
    }

    /// Removes elements, whole leaves at a time. Adding up their sizes must not cost more than that, so
    /// beyond [`SUMMED_LEN_MAX`] elements the size becomes unknown; `settle` measures it again when the list
    /// is short enough for its name to depend on it.
    pub(crate) fn remove(&mut self, index: u64, count: u64, limits: &Limits) {
        if count == 0 {
            return;
        }
        if count <= SUMMED_LEN_MAX {
            let removed = self.sum(index, count);
            self.shrink(removed);
        } else {
            self.listpack_bytes = None;
        }
        self.seq.remove(index, count, limits);
    }

    /// How many bytes `count` elements from `index` on take in a listpack.
    pub(crate) fn sum(&self, index: u64, count: u64) -> u64 {
        let mut sum = 0;
        if count > 0 {
            self.seq.visit(index, End::Tail, &mut |at, item| {
                sum += listpack::entry_bytes(item);
                if at + 1 < index + count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
        }
        sum
    }

    /// To be called after a removal: changes the name back if the list is small enough, and measures an
    /// unknown size once that is cheap.
    pub(crate) fn settle(&mut self, limits: &Limits) {
        let len = self.seq.len();
        if listpack::is_surely_long(limits.fill, len) {
            return;
        }
        if self.listpack_bytes.is_none() {
            self.listpack_bytes = Some(listpack::EMPTY_BYTES + self.sum(0, len));
        }
        let fits = |bytes| listpack::fits_half(limits.fill, bytes, len);
        if self.listpack_bytes.is_some_and(fits) {
            self.encoding = Encoding::Listpack;
        }
    }

    /// Whether it is short enough to lie inside its entry.
    pub(crate) fn is_small(&self) -> bool {
        let takes_back = |bytes: u64| INSIDE.takes_back(bytes as usize, self.seq.len());
        self.listpack_bytes.is_some_and(takes_back)
    }
}

impl Outside for ListTree {
    fn len(&self) -> u64 {
        self.seq.len()
    }

    fn encoding(&self) -> &'static str {
        self.encoding.name()
    }

    fn bytes(&self) -> u64 {
        self.seq.bytes_about()
    }

    fn allocated_bytes(&self) -> u64 {
        self.seq.allocated_about()
    }

    fn count_sole(&self, samples: u64) -> u64 {
        self.seq.count_sole(samples)
    }

    /// Positions are numbers of elements.
    fn relocate(&mut self, from: u64, effort: u64, moves: &mut Moves) -> Option<u64> {
        self.seq.relocate(from, effort, moves)
    }

    fn describe(&self, info: &mut KeyInfo) {
        info.add_tree(&self.seq);
    }
}
