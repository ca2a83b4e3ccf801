//! The entries of one leaf, looked at together. Eviction chooses one among some forty candidates, which lie
//! beside each other, for the price of one walk down the tree.
use crate::map::form::{Form, Keys};
use crate::map::tagged::Tagged;
use crate::map::{Found, LeafNote, OrderRange};

pub struct Crowd<'m, V, F: Form = Keys> {
    leaf: &'m Tagged<V, F>,
    range: OrderRange,
}

impl<'m, V, F: Form> Crowd<'m, V, F> {
    pub(crate) fn new(leaf: &'m Tagged<V, F>, range: OrderRange) -> Crowd<'m, V, F> {
        Crowd { leaf, range }
    }

    /// The note of the leaf and the range of places that it covers.
    pub fn leaf_note(&self) -> LeafNote {
        LeafNote { note: self.leaf.note(), range: self.range }
    }

    /// How many entries the leaf has.
    #[allow(clippy::len_without_is_empty, reason = "only the leaf of a map that was emptied has no entry")]
    pub fn len(&self) -> usize {
        self.leaf.count()
    }

    /// The bytes of uses, in the order in which the entries came; none where they are not kept.
    pub fn uses(&self) -> &'m [u8] {
        self.leaf.uses()
    }

    /// The tag of entry `index`, which keys of one hash share.
    pub fn tag(&self, index: usize) -> u8 {
        self.leaf.tag(index)
    }

    /// The meta of entry `index`, without a look at the rest of it.
    pub fn meta(&self, index: usize) -> u8 {
        self.leaf.meta(self.leaf.slot(index))
    }

    /// The entries of such a meta, in the order in which they came. Each meta lies with its entry, so those
    /// of many are read without a decision in between: the processor fetches them together.
    pub fn having(&self, is_such: impl Fn(u8) -> bool) -> impl Iterator<Item = usize> {
        let (leaf, mut slots) = (self.leaf, self.leaf.slots());
        let (mut begin, mut end, mut such) = (0, 0, 0_u64);
        std::iter::from_fn(move || {
            while such == 0 {
                let metas = slots.by_ref().take(u64::BITS as usize).map(|slot| leaf.meta(slot));
                let count = metas.zip(0..).map(|(meta, bit)| such |= u64::from(is_such(meta)) << bit).count();
                if count == 0 {
                    return None;
                }
                (begin, end) = (end, end + count);
            }
            let index = begin + such.trailing_zeros() as usize;
            such &= such - 1;
            Some(index)
        })
    }

    /// The newest entry of such a meta. Those behind it are not looked at.
    pub fn newest_having(&self, is_such: impl Fn(u8) -> bool) -> Option<usize> {
        self.leaf.slots_from_newest().find(|slot| is_such(self.leaf.meta(*slot))).map(|slot| slot.index)
    }

    /// Entry `index`, in the order in which they came.
    pub fn at(&self, index: usize) -> Found<'m, V> {
        self.leaf.found(self.leaf.slot(index))
    }

    /// All entries, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = Found<'m, V>> {
        self.leaf.slots().map(|slot| self.leaf.found(slot))
    }
}
