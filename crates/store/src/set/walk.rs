//! Walks over the integers of sets in ascending order, and what several such walks have in common or leave:
//! the same for an "intset" inside its entry and for the tree of a set outside. A walk jumps to where the
//! others are, so that the smaller set decides what a merge costs.
use super::read::{Set, Source};
use super::tree::SetTree;
use pack::int_set::Cursor;
use pack::set_image::ints;
use std::ops::ControlFlow;

/// The integers of a set, from one of them on.
#[allow(clippy::large_enum_variant, reason = "a command has a few walks, which it does not keep")]
pub(super) enum Walk<'s> {
    Image { values: Vec<i64>, at: usize },
    Tree { cursor: Cursor<'s>, len: u64 },
}

impl<'s> Walk<'s> {
    /// From the first integer of an image of integers.
    pub(super) fn of_image(bytes: &[u8]) -> Walk<'s> {
        Walk::Image { values: ints::iter(bytes).collect(), at: 0 }
    }

    /// From the first integer of a set outside its entry.
    pub(super) fn of_tree(members: &'s SetTree) -> Walk<'s> {
        Walk::Tree { cursor: members.ints.cursor(), len: members.ints.len() }
    }

    /// How many integers the set has. O(1).
    fn len(&self) -> u64 {
        match self {
            Walk::Image { values, .. } => values.len() as u64,
            Walk::Tree { len, .. } => *len,
        }
    }

    /// Some integers from the one on at which the walk is; none only behind the last of all.
    #[inline]
    fn ahead(&self) -> &[i64] {
        match self {
            Walk::Image { values, at } => &values[*at..],
            Walk::Tree { cursor, .. } => cursor.ahead(),
        }
    }

    /// On over so many of those that are ahead.
    #[inline]
    fn pass(&mut self, count: usize) {
        match self {
            Walk::Image { at, .. } => *at += count,
            Walk::Tree { cursor, .. } => cursor.pass(count),
        }
    }

    /// Beyond those that are ahead, to the first integer that is not less than `value`, which is greater than
    /// all of them.
    #[inline]
    fn jump(&mut self, value: i64) {
        match self {
            Walk::Image { values, at } => *at = values.len(),
            Walk::Tree { cursor, .. } => cursor.jump(value),
        }
    }

    /// On to the first integer that is not less than `value`, never back. Returns whether it is this one.
    #[inline]
    fn reaches(&mut self, value: i64) -> bool {
        match self {
            Walk::Image { values, at } => {
                *at += values[*at..].iter().take_while(|other| **other < value).count();
                values.get(*at) == Some(&value)
            }
            Walk::Tree { cursor, .. } => {
                cursor.seek(value);
                cursor.value() == Some(value)
            }
        }
    }
}

/// Shows the integers that all walks pass, of which there is at least one, until told to stop. The two of
/// the shortest sets are compared, and the others follow to where these agree.
pub(super) fn common(
    walks: &mut [Walk<'_>],
    show: &mut dyn FnMut(i64) -> ControlFlow<()>,
) -> ControlFlow<()> {
    walks.sort_by_key(Walk::len);
    match walks {
        [] => ControlFlow::Continue(()),
        [own] => rest(own, &mut [], show),
        [one, two, others @ ..] => {
            common_of_two(one, two, &mut |value| match others.iter_mut().all(|walk| walk.reaches(value)) {
                true => show(value),
                false => ControlFlow::Continue(()),
            })
        }
    }
}

/// Which of two walks is at the lesser integer cannot be guessed, so no branch depends on it: both go on by
/// what a comparison yields. A walk that has passed all that is ahead jumps to where the other is.
fn common_of_two(
    one: &mut Walk<'_>,
    two: &mut Walk<'_>,
    show: &mut dyn FnMut(i64) -> ControlFlow<()>,
) -> ControlFlow<()> {
    loop {
        let (here, there) = (one.ahead(), two.ahead());
        if here.is_empty() || there.is_empty() {
            return ControlFlow::Continue(());
        }
        let (mut at, mut other) = (0, 0);
        while let (Some(value), Some(found)) = (here.get(at), there.get(other)) {
            if value == found {
                show(*value)?;
            }
            (at, other) = (at + usize::from(value <= found), other + usize::from(found <= value));
        }
        match (here.get(at).copied(), there.get(other).copied()) {
            (None, Some(value)) => {
                one.jump(value);
                two.pass(other);
            }
            (Some(value), None) => {
                one.pass(at);
                two.jump(value);
            }
            _ => {
                one.pass(at);
                two.pass(other);
            }
        }
    }
}

/// Shows the integers of one walk that the others do not pass, until told to stop. The others follow it.
pub(super) fn rest(
    own: &mut Walk<'_>,
    others: &mut [Walk<'_>],
    show: &mut dyn FnMut(i64) -> ControlFlow<()>,
) -> ControlFlow<()> {
    loop {
        let values = own.ahead();
        if values.is_empty() {
            return ControlFlow::Continue(());
        }
        for value in values {
            if !others.iter_mut().any(|walk| walk.reaches(*value)) {
                show(*value)?;
            }
        }
        own.pass(values.len());
    }
}

/// The integers of all these sets, ascending and each once. The sets hold nothing else.
pub(super) fn all(sets: &[Set<'_>]) -> Vec<i64> {
    let mut values = Vec::with_capacity(sets.iter().map(Set::len).sum::<u64>() as usize);
    for set in sets {
        match set.source {
            Source::Image(image) => values.extend(ints::iter(image.bytes)),
            Source::Members(members) => members.ints.for_each(&mut |value| values.push(value)),
        }
    }
    // Sorting finds the runs that the sets are, and merges them.
    values.sort();
    values.dedup();
    values
}
