//! What a collection outside its entry is to those who keep it: the shard that frees it, the walk that moves
//! it out of sparse memory, and whoever tells about it. Each type says it once, here by a trait; commands
//! reach it by the type's own value API.
use crate::key_info::KeyInfo;
use pack::arena::Moves;

/// A collection outside its entry. Cloning it costs O(1): copies and snapshots rely on it.
pub(crate) trait Outside {
    /// Elements, as the type's length command counts them.
    fn len(&self) -> u64;

    /// OBJECT ENCODING's name.
    fn encoding(&self) -> &'static str;

    /// About how many bytes it takes; None where that would take long to find out, and may be much.
    fn bytes(&self) -> Option<u64>;

    /// Of how many of [`pack::SOLE_SAMPLES`] parts of it nobody else is an owner at this moment: clones share
    /// all but what was edited since.
    fn count_sole(&self) -> u64 {
        pack::SOLE_SAMPLES
    }

    /// Moves what lies in extents that are being emptied, from a position on (0: the first; what another
    /// number means is the type's own affair). Stops once `moves` says that `effort` was made, and returns
    /// the position to go on from, None at the end. The collection may be edited between two calls: at worst
    /// something is not moved, or looked at twice.
    fn relocate(&mut self, from: u64, effort: u64, moves: &mut Moves) -> Option<u64>;

    /// Adds what is to be told about it: length, bytes, nodes.
    fn describe(&self, info: &mut KeyInfo);
}

/// Of two trees together, each with its number of elements.
pub(crate) fn mean_sole(one: (u64, impl Fn() -> u64), other: (u64, impl Fn() -> u64)) -> u64 {
    let part = |len: u64, count: &dyn Fn() -> u64| if len == 0 { 0 } else { len * count() };
    (part(one.0, &one.1) + part(other.0, &other.1)) / (one.0 + other.0).max(1)
}
