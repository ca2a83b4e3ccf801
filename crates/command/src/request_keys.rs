//! Which arguments of a request are keys: the one place where the key specs of a row meet a request. Dispatch
//! locks the shards of what is found here, COMMAND GETKEYS shows it, and tests run commands on it without a
//! server.
//!
//! Most commands have their only key, or their first, as a certain argument. [`FixedKeys`] says so once for
//! each row, so that a request of such a command is not walked through at all; [`key_positions`] finds the
//! keys of any request. Both are on the path of every request and allocate nothing but room for the caller's
//! `positions`.
use crate::{Access, Arity, Begin, Find, Flags, KeySpec};
use resp::Args;

/// Which arguments of a command are keys in every request, as far as its row alone tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixedKeys {
    None,
    /// Exactly one, at this argument.
    One(usize),
    /// One at `first`, and one after every `step` arguments from there on: exactly one where nothing follows.
    From {
        first: usize,
        step: usize,
    },
    /// Several, the first of them at this argument. For a container: the argument is the first key of all its
    /// subcommands that have keys.
    First(usize),
    /// Which arguments are keys depends on the request.
    Many,
}

impl FixedKeys {
    /// The fixed keys of a command with these key specs. An argument counts only if every request that passes
    /// the arity check has it; of keys that are counted the count has to be there.
    pub fn of(keys: &[KeySpec], flags: Flags, arity: Arity) -> FixedKeys {
        let mut specs = keys.iter().filter(|spec| spec.is_of_keys());
        let Some(first) = specs.next() else { return FixedKeys::None };
        let Begin::Index(index) = first.begin else { return FixedKeys::Many };
        if first.rule.is_some() {
            return FixedKeys::Many;
        }
        let is_there = index < arity.fewest();
        let is_fixed = is_there && specs.next().is_none() && !flags.has(Flags::MOVABLEKEYS);
        match first.find {
            Find::Range { last: 0, .. } if is_fixed => FixedKeys::One(index),
            Find::Range { last: -1, step, limit: 0 } if is_fixed => FixedKeys::From { first: index, step },
            Find::Range { .. } if is_there => FixedKeys::First(index),
            // Where there are keys at all: EVAL may have none, and then looks no further.
            Find::Count { index: 0, first, .. } if is_there => FixedKeys::First(index + first),
            _ => FixedKeys::Many,
        }
    }

    /// The fixed keys of a container: the first key of its subcommands, if all that have keys have it as the
    /// same argument.
    pub fn of_container(subcommands: impl Iterator<Item = FixedKeys>) -> FixedKeys {
        let mut firsts = subcommands.filter(|fixed| *fixed != FixedKeys::None).map(FixedKeys::first);
        match firsts.next() {
            Some(Some(first)) if firsts.all(|other| other == Some(first)) => FixedKeys::First(first),
            _ => FixedKeys::None,
        }
    }

    /// The argument that is the first key, in every request that has keys; None where it depends on the
    /// request.
    #[inline]
    pub fn first(self) -> Option<usize> {
        match self {
            FixedKeys::One(first) | FixedKeys::From { first, .. } | FixedKeys::First(first) => Some(first),
            FixedKeys::None | FixedKeys::Many => None,
        }
    }

    /// The key, if the request has exactly one, which argument it is follows from the row, and `args` is long
    /// enough.
    #[inline]
    pub fn only_key<'a>(self, args: &Args<'a>) -> Option<&'a [u8]> {
        args.get(self.only(args.len())?)
    }

    /// Which argument that is, of so many.
    #[inline]
    pub fn only(self, args_len: usize) -> Option<usize> {
        match self {
            FixedKeys::One(index) => Some(index),
            FixedKeys::From { first, step } if args_len == first + step => Some(first),
            FixedKeys::From { .. } | FixedKeys::First(_) | FixedKeys::None | FixedKeys::Many => None,
        }
    }
}

/// Appends the positions of all keys in `args`, in the order of the key specs. A key that the request is too
/// short for, or that a malformed count announces, is left out: the command reports those errors itself.
#[inline]
pub fn key_positions(keys: &[KeySpec], args: &Args<'_>, positions: &mut Vec<u32>) {
    for spec in keys.iter().filter(|spec| spec.is_of_keys()) {
        spec.extract(args, positions);
    }
}

/// A key of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUse {
    /// Which argument it is.
    pub position: u32,
    /// What this request does with it.
    pub access: Access,
}

/// The keys of a request that is looked at and not run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct KeyUses {
    /// In the order of the key specs.
    pub found: Vec<KeyUse>,
    /// A spec whose keys begin at a fixed argument found none, so the request cannot be right. Keys behind a
    /// word may be absent.
    pub lacks_some: bool,
}

/// All keys of a request with what it does with each. It allocates: the path of every request asks
/// [`key_positions`].
pub fn key_uses(keys: &[KeySpec], args: &Args<'_>) -> KeyUses {
    let (mut uses, mut positions) = (KeyUses::default(), Vec::new());
    for spec in keys.iter().filter(|spec| spec.is_of_keys()) {
        positions.clear();
        spec.extract(args, &mut positions);
        let must_be_there = matches!(spec.begin, Begin::Index(_)) && spec.rule.is_none();
        uses.lacks_some |= positions.is_empty() && must_be_there;
        let access = spec.access_in(args);
        uses.found.extend(positions.iter().map(|position| KeyUse { position: *position, access }));
    }
    uses.lacks_some |= uses.found.is_empty() && keys.iter().any(|spec| spec.rule.is_some());
    uses
}
