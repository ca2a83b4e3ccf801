//! Commands that bring many elements to a key that holds nothing (SADD, HSET, ZADD). They are sorted and laid
//! out leaf by leaf, as when a file is loaded, where element by element leaves would fill up and split.
use std::ops::RangeInclusive;

/// So many elements are laid out at once. Fewer are added one by one just as fast. Of more the first are laid
/// out and the others added to them, because an element takes some 50 bytes meanwhile.
const COUNTS: RangeInclusive<usize> = 8..=65_536;

/// How many of the `count` elements of a command are laid out at once, where nothing is there yet.
#[inline]
pub(crate) fn count_at_once(count: usize, is_new: bool) -> usize {
    if is_new && count >= *COUNTS.start() { count.min(*COUNTS.end()) } else { 0 }
}
