//! The name that Redis would give a set, by its content, its history and the thresholds. How the set is kept
//! does not depend on the name, except in an image: the integers of an "intset" are sorted, an image of
//! another name keeps the order of insertion.
//!
//! ```text
//! a first member    an integer, and set-max-intset-entries takes all that the command brings: intset
//!                   otherwise, and set-max-listpack-entries takes all: listpack, else hashtable
//! a command brings  more than the threshold of the present name: hashtable
//! intset            + integer: hashtable beyond set-max-intset-entries members
//!                   + text: listpack where that may be, else hashtable
//! listpack          + any: hashtable beyond set-max-listpack-entries members or set-max-listpack-value bytes
//! ```
//!
//! No removal changes a name. Asked of Redis 8.0.2.
use crate::settings::SetLimits;
use base::Item;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Intset,
    Listpack,
    Hashtable,
}

impl Name {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Name::Intset => "intset",
            Name::Listpack => "listpack",
            Name::Hashtable => "hashtable",
        }
    }

    /// The name of a new set, to which `first` is about to be added by a command that brings `count` members.
    pub(super) fn of_new(first: Item<'_>, count: u64, limits: &SetLimits) -> Name {
        if matches!(first, Item::Int(_)) && count <= limits.intset_entries {
            Name::Intset
        } else if count <= limits.listpack_entries {
            Name::Listpack
        } else {
            Name::Hashtable
        }
    }

    /// The name after these members came one by one to a new set, by a command that brings `count`, and how
    /// many of them came before it ceased to be an "intset".
    pub(super) fn of_members(members: &[Item<'_>], count: u64, limits: &SetLimits) -> (Name, usize) {
        let Some(first) = members.first() else { return (Name::Intset, 0) };
        let (mut name, mut ints) = (Name::of_new(*first, count, limits), 0);
        for (index, member) in members.iter().enumerate() {
            let longest = || members[..index].iter().map(Item::len).max().unwrap_or(0);
            name = name.with(*member, index as u64, longest, limits);
            match name {
                Name::Intset => ints += 1,
                Name::Listpack => {}
                Name::Hashtable => break,
            }
        }
        (name, ints)
    }

    /// The name when a command is about to bring `count` members.
    pub(super) fn expecting(self, count: u64, limits: &SetLimits) -> Name {
        match self {
            Name::Intset if count > limits.intset_entries => Name::Hashtable,
            Name::Listpack if count > limits.listpack_entries => Name::Hashtable,
            same => same,
        }
    }

    /// The name after `member` was added to `len` others. `longest` tells the length of the longest of these
    /// as text; it is called only where a text is added to integers.
    #[inline]
    pub(super) fn with(
        self,
        member: Item<'_>,
        len: u64,
        longest: impl FnOnce() -> usize,
        limits: &SetLimits,
    ) -> Name {
        let fits = || len < limits.listpack_entries && member.len() as u64 <= limits.listpack_value_bytes;
        match (self, member) {
            (Name::Hashtable, _) => Name::Hashtable,
            (Name::Intset, Item::Int(_)) if len < limits.intset_entries => Name::Intset,
            (Name::Intset, Item::Int(_)) => Name::Hashtable,
            (Name::Intset, _) if fits() && longest() as u64 <= limits.listpack_value_bytes => Name::Listpack,
            (Name::Listpack, _) if fits() => Name::Listpack,
            _ => Name::Hashtable,
        }
    }
}
