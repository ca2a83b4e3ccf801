//! Searching by quarters in numbers that rise: marks of an inner node, codes of a leaf. On the path of every
//! lookup in a tree by score, value or id.
//!
//! A search by halves waits for one load after the other: seven of them in a hundred codes, each to know
//! where the next one is. A search by quarters looks at three elements at once, and these loads do not wait
//! for one another, and so is done after half as many waits: a hundred codes in 16 ns for 35, on one machine.
//! Eighths take more comparisons than the waits they save. There are no branches on what is compared: a step
//! that waits for a guess costs more than the loads.
use std::hint::select_unpredictable;
use std::ops::Range;

/// How many of `count` elements `is_before` says yes to; these come before all others. Asks for elements
/// below `count` only: callers rely on it.
#[inline(always)]
pub(crate) fn count_before(count: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut first, mut left) = (0, count);
    while left >= 4 {
        let quarter = left / 4;
        let (one, two, three) = (first + quarter, first + 2 * quarter, first + 3 * quarter);
        let [in_one, in_two, in_three] = [one, two, three].map(|end| is_before(end - 1));
        let low = select_unpredictable(in_one, one, first);
        let high = select_unpredictable(in_three, three, two);
        first = select_unpredictable(in_two, high, low);
        // What is left is one of the quarters; the last one includes the remainder of the division.
        left -= 3 * quarter;
    }
    let mut last = 0;
    for index in 0..3 {
        if index < left {
            last += usize::from(is_before(first + index));
        }
    }
    first + last
}

/// The first element of `range` that `is_before` says no to, or the end of the range; all elements before it
/// get a yes. Searches by halves, which is right where looking at an element costs more than waiting for the
/// comparison before. Asks for elements of the range only.
#[inline]
pub(crate) fn first_not_before(range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let Range { start: mut low, end: mut high } = range;
    while low < high {
        let middle = (low + high) / 2;
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_among_so_many_is_found() {
        for count in 0..300 {
            for before in 0..=count {
                assert_eq!(count_before(count, |index| index < before), before, "of {count}");
                let halves = first_not_before(7..7 + count, |index| index < 7 + before);
                assert_eq!(halves, 7 + before, "of {count}, by halves");
            }
        }
    }

    #[test]
    fn a_search_asks_for_nothing_beyond_the_end() {
        for count in 0..300 {
            for before in 0..=count {
                count_before(count, |index| {
                    assert!(index < count, "{index} of {count}");
                    index < before
                });
                first_not_before(5..5 + count, |index| {
                    assert!((5..5 + count).contains(&index), "{index} of {count}");
                    index < 5 + before
                });
            }
        }
    }
}
