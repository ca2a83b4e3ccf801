//! A small set: read where it lies in its entry, or edited in a buffer. Integers of an "intset" are kept
//! sorted, everything else in order of insertion, because that is how Redis answers them.
use super::name::Name;
use crate::entry::Shape;
use crate::inside::{FEW_BYTES_MAX, Inside, Step};
use crate::settings::SetLimits;
use base::Item;
use base::text::i64_len;
use pack::ItemIndex;
use pack::set_image::{TEXT_BYTES_MAX, ints, items};
use std::ops::ControlFlow;

/// The limits of a set inside its entry. A walk over its image is shorter than a cache miss is long.
pub(super) const INSIDE: Inside<3> = Inside([
    Step { bytes: 192, len: u64::MAX },
    Step { bytes: 768, len: 96 },
    Step { bytes: FEW_BYTES_MAX, len: 48 },
]);

/// An image of fewer members is sooner walked over than indexed.
pub(super) const INDEXED_LEN_MIN: u64 = 12;

/// A small set, to read.
#[derive(Clone, Copy)]
pub(crate) struct Image<'a> {
    pub(crate) name: Name,
    pub(crate) bytes: &'a [u8],
}

/// A copy of a small set.
#[derive(Clone)]
pub(crate) struct ImageCopy {
    name: Name,
    bytes: Vec<u8>,
}

impl ImageCopy {
    pub(crate) fn of(image: Image<'_>) -> ImageCopy {
        ImageCopy { name: image.name, bytes: image.bytes.to_vec() }
    }

    pub(crate) fn read(&self) -> Image<'_> {
        Image { name: self.name, bytes: &self.bytes }
    }
}

impl<'a> Image<'a> {
    /// The image of an entry of this shape; None where the shape is not that of a set inside its entry.
    #[inline]
    pub(crate) fn of(shape: Shape, bytes: &'a [u8]) -> Option<Image<'a>> {
        let name = match shape {
            Shape::SetOfInts => Name::Intset,
            Shape::SetInOrder => Name::Listpack,
            Shape::SetAsTable => Name::Hashtable,
            _ => return None,
        };
        Some(Image { name, bytes })
    }

    /// Whether it may stay in its entry.
    pub(super) fn may_stay(&self) -> bool {
        INSIDE.holds(self.bytes.len(), || self.len())
    }

    /// How many members. O(1).
    pub(crate) fn len(&self) -> u64 {
        match self.name {
            Name::Intset => ints::len(self.bytes) as u64,
            _ => items::len(self.bytes) as u64,
        }
    }

    /// Whether it is a member: a binary search in an "intset", else a walk over the image.
    #[inline]
    pub(crate) fn contains(&self, member: Item<'_>) -> bool {
        match (self.name, member) {
            (Name::Intset, Item::Int(n)) => ints::find(self.bytes, n).is_ok(),
            (Name::Intset, Item::Bytes(_)) => false,
            _ => items::find(self.bytes, member).is_some(),
        }
    }

    /// For whoever looks for many members in it; None where it is searched by halves.
    pub(super) fn index(&self) -> Option<Box<ItemIndex>> {
        (self.name != Name::Intset).then(|| Box::new(ItemIndex::of(self.bytes)))
    }

    /// Visits every member until told to stop: ascending in an "intset", else in order of insertion.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        match self.name {
            Name::Intset => ints::iter(self.bytes).try_for_each(|n| visit(Item::Int(n))),
            _ => items::iter(self.bytes).try_for_each(|(_, item)| visit(item)),
        }
    }

    /// Member `index`, which exists.
    pub(crate) fn nth(&self, index: u64) -> Item<'a> {
        match self.name {
            Name::Intset => Item::Int(ints::get(self.bytes, index as usize)),
            _ => items::iter(self.bytes).nth(index as usize).expect("a member below the length").1,
        }
    }

    pub(super) fn has_texts(&self) -> bool {
        let is_int = |item: Item<'_>| match item {
            Item::Int(_) => ControlFlow::Continue(()),
            Item::Bytes(_) => ControlFlow::Break(()),
        };
        self.visit(&mut { is_int }).is_break()
    }

    /// The length of the longest member of an "intset", as text.
    fn longest(&self) -> usize {
        match ints::len(self.bytes) {
            0 => 0,
            len => i64_len(ints::get(self.bytes, 0)).max(i64_len(ints::get(self.bytes, len - 1))),
        }
    }
}

/// The shape of an entry that holds an image of this name.
pub(super) fn shape(name: Name) -> Shape {
    match name {
        Name::Intset => Shape::SetOfInts,
        Name::Listpack => Shape::SetInOrder,
        Name::Hashtable => Shape::SetAsTable,
    }
}

/// A small set while it is edited, in a buffer of whoever edits it.
pub(super) struct Draft<'d> {
    pub(super) name: &'d mut Name,
    pub(super) bytes: &'d mut Vec<u8>,
}

impl Draft<'_> {
    pub(super) fn read(&self) -> Image<'_> {
        Image { name: *self.name, bytes: self.bytes }
    }

    /// Adds a member that is not there, and returns whether it had room. The name changes as it must. Where
    /// there was no room the members stay as they are, though the name may have changed already; the tree
    /// that replaces the draft finds the same name.
    pub(super) fn add(&mut self, member: Item<'_>, limits: &SetLimits) -> bool {
        let image = self.read();
        let len = image.len();
        let name = image.name.with(member, len, || image.longest(), limits);
        if let (Name::Intset, Item::Int(n)) = (name, member) {
            return self.add_int(n);
        }
        if member.len() > TEXT_BYTES_MAX {
            return false;
        }
        self.rename(name);
        let bytes = items::len_bytes_with(self.bytes, member);
        let has_room = INSIDE.holds(bytes, || len + 1);
        if has_room {
            items::append(self.bytes, member);
        }
        has_room
    }

    fn add_int(&mut self, n: i64) -> bool {
        let Err(index) = ints::find(self.bytes, n) else { return true };
        let has_room = ints::len_bytes_with(self.bytes, n) <= INSIDE.bytes_of_any();
        if has_room {
            ints::insert(self.bytes, index, n);
        }
        has_room
    }

    /// Removes a member, and returns whether it was one.
    pub(super) fn remove(&mut self, member: Item<'_>) -> bool {
        match (*self.name, member) {
            (Name::Intset, Item::Int(n)) => {
                let found = ints::find(self.bytes, n);
                found.map(|index| ints::remove(self.bytes, index)).is_ok()
            }
            (Name::Intset, Item::Bytes(_)) => false,
            _ => {
                let found = items::find(self.bytes, member);
                found.map(|range| items::remove(self.bytes, range)).is_some()
            }
        }
    }

    /// Makes an "intset" of the draft, all of whose members are integers.
    pub(super) fn sort(&mut self) {
        let mut sorted = Vec::new();
        let _ = self.read().visit(&mut |member| {
            if let Item::Int(n) = member {
                // An image of integers may be longer than that of the same items, because all have one width.
                if let Err(index) = ints::find(&sorted, n) {
                    ints::insert(&mut sorted, index, n);
                }
            }
            ControlFlow::Continue(())
        });
        (*self.name, *self.bytes) = (Name::Intset, sorted);
    }

    /// Gives the set another name, and the image the form that goes with it. A name never changes back to
    /// "intset" here.
    pub(super) fn rename(&mut self, name: Name) {
        if *self.name == Name::Intset && name != Name::Intset {
            let values: Vec<i64> = ints::iter(self.bytes).collect();
            self.bytes.clear();
            values.iter().for_each(|n| items::append(self.bytes, Item::Int(*n)));
        }
        *self.name = name;
    }
}
