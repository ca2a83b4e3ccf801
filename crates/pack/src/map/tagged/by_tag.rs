//! A leaf's entries listed by their tags: made once for many lookups in the same leaf.
//!
//! A search of the leaf itself compares its tags and adds up its lengths, some hundred instructions for each
//! lookup. Listing them costs about eight for each entry of the leaf, and a lookup in the list then a few, so
//! it pays from one lookup for every ten entries on.
//!
//! ```text
//! heads   256 x u8    for each tag the last entry that has it, counted from 1; 0: none
//! nexts   256 x u8    for each entry the one before it with the same tag
//! backs   256 x u32   for each entry how far its first byte is from the leaf's end
//! ```
use super::Tagged;
use super::kind::Kind;
use crate::map::form::{Form, Name};

/// The most entries that a list can hold: an ordinary leaf has fewer, and one whose entries share a place in
/// hash order may have more.
const COUNT_MAX: usize = u8::MAX as usize;

pub(crate) struct ByTag {
    heads: [u8; 256],
    nexts: [u8; 256],
    backs: [u32; 256],
}

/// An entry's tag and name.
pub(crate) type Listed<'l> = (u8, Name<'l>);

impl<V, F: Form> Tagged<V, F> {
    /// Appends all entries, in order of insertion.
    pub(crate) fn list<'l>(&'l self, entries: &mut Vec<Listed<'l>>) {
        let (bytes, mut start) = (&self.block[..], self.block.len());
        Kind::of(bytes).for_each_lane(bytes, |tag, len| {
            debug_assert!(len <= start, "an entry lies within its leaf");
            start -= len;
            entries.push((tag, F::read(&bytes[start..start + len]).name));
        });
    }
}

impl ByTag {
    pub(crate) fn new() -> ByTag {
        ByTag { heads: [0; 256], nexts: [0; 256], backs: [0; 256] }
    }

    /// Lists the entries of a leaf; whether it has so few.
    pub(crate) fn fill<V, F: Form>(&mut self, leaf: &Tagged<V, F>) -> bool {
        let (bytes, kind) = (&leaf.block[..], Kind::of(&leaf.block));
        if kind.count > COUNT_MAX {
            return false;
        }
        self.heads = [0; 256];
        let (mut number, mut back) = (0, 0);
        kind.for_each_lane(bytes, |tag, len| {
            (number, back) = (number + 1, back + len as u32);
            self.nexts[number] = std::mem::replace(&mut self.heads[tag as usize], number as u8);
            self.backs[number] = back;
        });
        true
    }

    /// Whether the leaf, which was listed last, has an entry with this tag and name.
    #[inline]
    pub(crate) fn has<V, F: Form>(&self, leaf: &Tagged<V, F>, tag: u8, name: Name<'_>) -> bool {
        let mut number = self.heads[tag as usize] as usize;
        while number != 0 {
            debug_assert!(number <= leaf.count(), "the leaf that was listed has this entry");
            let end = leaf.block.len();
            let (start, stop) = (self.backs[number] as usize, self.backs[number - 1] as usize);
            if F::is(&leaf.block[end - start..end - stop], name) {
                return true;
            }
            number = self.nexts[number] as usize;
        }
        false
    }
}
