//! What every collection outside its entry can do, whatever its type: for the shard that frees it, the walk
//! that moves it out of sparse memory, and commands that describe it. Commands that read or edit it use the
//! type's own value API.
use crate::key_info::KeyInfo;
use pack::arena::Moves;

/// A collection outside its entry. Cloning it costs O(1): copies and snapshots rely on it.
pub(crate) trait Outside {
    /// How many elements there are, as the type's length command counts them.
    fn len(&self) -> u64;

    /// OBJECT ENCODING's name.
    fn encoding(&self) -> &'static str;

    /// About how many bytes it takes, as far as a few of its leaves tell.
    fn bytes(&self) -> u64;

    /// How many bytes it has allocated, as [`Outside::describe`] adds them up, but of a large tree as far as
    /// some of its leaves tell: what that costs does not grow with the tree.
    fn allocated_bytes(&self) -> u64;

    /// Of about how many of so many equal parts nobody else is an owner at this moment. Clones share
    /// everything but what was edited since.
    fn count_sole(&self, samples: u64) -> u64;

    /// Moves what lies in extents that are being emptied, from a position on (0: the first; what another
    /// number means is the type's own affair). Stops once `moves` says that `effort` was made, and returns
    /// the position to go on from, None at the end. The collection may be edited between two calls: at worst
    /// something is not moved, or looked at twice.
    fn relocate(&mut self, from: u64, effort: u64, moves: &mut Moves) -> Option<u64>;

    /// Adds its length, bytes and nodes to what a client is told about the key.
    fn describe(&self, info: &mut KeyInfo);
}

/// [`Outside::count_sole`] of two trees together; each comes with its number of elements, by which it counts.
pub(crate) fn mean_sole(one: (u64, impl Fn() -> u64), other: (u64, impl Fn() -> u64)) -> u64 {
    let part = |len: u64, count: &dyn Fn() -> u64| if len == 0 { 0 } else { len * count() };
    (part(one.0, &one.1) + part(other.0, &other.1)) / (one.0 + other.0).max(1)
}
