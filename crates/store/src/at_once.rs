//! Commands that bring many elements to a key that holds nothing (SADD, HSET, ZADD). They are sorted and laid
//! out leaf by leaf, as when a file is loaded, where element by element leaves would fill up and split.
use std::ops::RangeInclusive;

/// So many elements are laid out at once. Fewer are soon added one by one; of more it is the first, which
/// take 50 bytes each meanwhile.
const COUNTS: RangeInclusive<usize> = 8..=65_536;

/// How many of the `count` elements of a command are laid out at once, where nothing is there yet.
#[inline]
pub(crate) fn count_at_once(count: usize, is_new: bool) -> usize {
    if is_new && count >= *COUNTS.start() { count.min(*COUNTS.end()) } else { 0 }
}
