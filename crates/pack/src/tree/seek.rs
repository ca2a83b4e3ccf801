//! Searches from the root down, one for each [`Order`](super::order::Order): which child of a node covers
//! what is sought. On the path of every request.
use super::descent::down;
use super::node::{Child, Inner, Leaf};
use super::order::{
    ByEntry, ByHash, ById, ByRank, ByScore, ByValue, CountMark, Id, Order, OrderRange, ScoreMark,
};
use super::{Held, Path, Tree};
use crate::code::quarters::count_before;

impl<L: Leaf> Tree<ByRank, L> {
    /// The leaf that holds element `index`, and where in it; `index == total` is the end of the last leaf.
    /// None in a tree without leaves.
    pub(crate) fn seek(&self, index: u64) -> Option<(Path, u64)> {
        assert!(index <= self.mark, "element {index} of {}", self.mark);
        let mut rest = index;
        let (path, _) = self.descend(|inner, _| Some(child_of_rank(inner.marks(), &mut rest)))?;
        Some((path, rest))
    }

    /// The leaf that holds element `index`, to be read, and where in it.
    pub(crate) fn leaf_at_rank(&self, index: u64) -> Option<(&L, u64)> {
        assert!(index <= self.mark, "element {index} of {}", self.mark);
        let mut rest = index;
        let (_, leaf) = self.descend(|inner, _| Some(child_of_rank(inner.marks(), &mut rest)))?;
        Some((leaf, rest))
    }
}

/// A mark that says how many elements lie below its child.
pub(crate) trait Counted {
    fn count(&self) -> u64;
    /// The count, to be changed.
    fn count_mut(&mut self) -> &mut u64;
}

impl Counted for u64 {
    #[inline(always)]
    fn count(&self) -> u64 {
        *self
    }
    #[inline(always)]
    fn count_mut(&mut self) -> &mut u64 {
        self
    }
}

impl<K> Counted for CountMark<K> {
    #[inline(always)]
    fn count(&self) -> u64 {
        self.count
    }
    #[inline(always)]
    fn count_mut(&mut self) -> &mut u64 {
        &mut self.count
    }
}

/// What trees by rank, by score and by entry have in common: marks that count.
impl<O: Order<Mark: Counted>, L: Leaf> Tree<O, L> {
    /// How many elements stand before the leaf.
    pub(crate) fn rank(&self, path: &Path) -> u64 {
        let mut rank = 0;
        self.descend(|inner, level| {
            let slot = path.slot(level);
            rank += inner.marks()[..slot].iter().map(Counted::count).sum::<u64>();
            Some(slot)
        });
        rank
    }

    /// The leaf, to be edited, which gets so many elements more, or loses some.
    pub(crate) fn leaf_with(&mut self, path: &Path, more: i64) -> &mut L {
        let total = self.mark.count_mut();
        *total = total.strict_add_signed(more);
        debug_assert!(!self.is_empty(), "a leaf lies in a tree");
        let leaf = self.descend_mut(0, |inner, level| {
            let (mark, child) = inner.child_mut(path.slot(level));
            let count = mark.count_mut();
            *count = count.strict_add_signed(more);
            Some(child)
        });
        // SAFETY: level 0 holds leaves.
        unsafe { leaf.expect("nothing ends the way down").leaf_mut() }
    }
}

/// The child that holds element `rest` (the last, where it is the end of all), which then counts from that
/// child's start. Eight counts are added up at a time, because each step of a chain of comparisons waits for
/// the one before.
fn child_of_rank(marks: &[impl Counted], rest: &mut u64) -> usize {
    debug_assert!(!marks.is_empty(), "a node has children");
    let mut slot = 0;
    for eight in marks.as_chunks::<8>().0 {
        let sum: u64 = eight.iter().map(Counted::count).sum();
        if *rest < sum {
            break;
        }
        *rest -= sum;
        slot += 8;
    }
    while slot < marks.len() && *rest >= marks[slot].count() {
        *rest -= marks[slot].count();
        slot += 1;
    }
    if slot == marks.len() {
        slot -= 1;
        *rest += marks[slot].count();
    }
    slot
}

impl OrderRange {
    /// Which child of a node of this range covers `place`. The range becomes that of the child.
    #[inline(always)]
    fn enter<L: Leaf>(&mut self, inner: &Inner<ByHash, L>, place: u32) -> usize {
        let marks = inner.marks();
        let guess = self.guess(marks.len(), place);
        // The child's cache line is fetched while the marks are compared.
        inner.prefetch_child(guess);
        let slot = child_of_place(marks, place, guess);
        debug_assert!(slot == 0 || marks[slot] <= place, "the child begins at or before the place");
        debug_assert!(marks.get(slot + 1).is_none_or(|next| *next > place), "the next one begins behind it");
        *self = self.of_child(marks, slot);
        slot
    }

    /// What one child of a node with this range covers.
    #[inline(always)]
    fn of_child(self, marks: &[u32], slot: usize) -> OrderRange {
        let first = if slot == 0 { self.first } else { marks[slot] };
        let last = if slot + 1 < marks.len() { marks[slot + 1] - 1 } else { self.last };
        OrderRange { first, last }
    }

    /// Guesses which of so many children covers the place: hashes are uniform.
    #[inline(always)]
    fn guess(self, children: usize, place: u32) -> usize {
        // A root covers all places, and every search begins there: no division.
        if self == OrderRange::ALL {
            return ((u64::from(place) * children as u64) >> u32::BITS) as usize;
        }
        let span = u64::from(self.last - self.first) + 1;
        (u64::from(place - self.first) * children as u64 / span) as usize
    }
}

/// The last child whose mark is at most `place`, or the first. The guess is a slot or two off; a window
/// around it is counted without branches, and the rare miss starts anew from all marks.
#[inline(always)]
fn child_of_place(marks: &[u32], place: u32, guess: usize) -> usize {
    let from = guess.saturating_sub(WINDOW / 2 - 1).min(marks.len().saturating_sub(WINDOW));
    if let Some(window) = marks[from..].first_chunk::<WINDOW>() {
        let under = window.iter().map(|mark| u32::from(*mark <= place)).sum::<u32>() as usize;
        // The first child's own mark says nothing: it counts as under every place.
        let under = under + usize::from(from == 0 && window[0] > place);
        if under > 0 && (under < WINDOW || from + WINDOW == marks.len()) {
            return from + under - 1;
        }
    }
    child_of_any(marks, place)
}

/// The search by halves, for nodes of few marks and where the guess misses.
#[inline(never)]
fn child_of_any(marks: &[u32], place: u32) -> usize {
    marks[1..].partition_point(|mark| *mark <= place)
}

/// Marks that are compared at once.
const WINDOW: usize = 16;

impl<L: Leaf> Tree<ByHash, L> {
    /// The leaf that covers `place`, and all the places it covers. None in a tree without leaves.
    pub(crate) fn seek(&self, place: u32) -> Option<(Path, OrderRange)> {
        self.seek_leaf(place).map(|(path, range, _)| (path, range))
    }

    /// As [`Tree::seek`], with the leaf itself.
    #[inline]
    pub(crate) fn seek_leaf(&self, place: u32) -> Option<(Path, OrderRange, &L)> {
        let mut range = OrderRange::ALL;
        let (path, leaf) = self.descend(|inner, _| Some(range.enter(inner, place)))?;
        Some((path, range, leaf))
    }

    /// All the places that a leaf covers.
    pub(crate) fn range(&self, path: &Path) -> OrderRange {
        let mut range = OrderRange::ALL;
        self.descend(|inner, level| {
            let slot = path.slot(level);
            range = range.of_child(inner.marks(), slot);
            Some(slot)
        });
        range
    }

    /// The leaf that covers `place`, and whether it may be edited: it may not if a clone shares it or a node
    /// above it.
    pub(crate) fn held_at(&mut self, place: u32) -> Option<Held<'_, L>> {
        let (mut range, mut is_sole) = (OrderRange::ALL, true);
        self.root()?;
        let (root, height) = (self.root.as_mut_ptr(), self.height());
        let choose = |inner: &Inner<ByHash, L>, _| {
            let slot = range.enter(inner, place);
            is_sole &= inner.is_sole_parent(slot);
            Some(slot)
        };
        // SAFETY: the root's level is one less than the height, and the tree is borrowed. The leaf is lent
        // for writing only where this tree, borrowed for writing, is the one owner of every node above it:
        // then nobody else can reach the handle.
        unsafe {
            let (_, leaf) = down(root, height, 0, choose)?;
            match is_sole {
                true => Some(Held::Sole((*leaf).leaf_mut())),
                false => Some(Held::Shared((*leaf).leaf())),
            }
        }
    }

    /// The leaf that covers `place`, to be read.
    pub(crate) fn leaf_at(&self, place: u32) -> Option<&L> {
        let mut range = OrderRange::ALL;
        self.descend(|inner, _| Some(range.enter(inner, place))).map(|(_, leaf)| leaf)
    }
}

impl<L: Leaf> Tree<ByValue, L> {
    /// The leaf that covers `value`. None in a tree without leaves.
    pub(crate) fn seek(&self, value: i64) -> Option<Path> {
        self.descend(|inner, _| Some(child_of_value(inner.marks(), value))).map(|(path, _)| path)
    }

    /// The leaf that covers `value`, to be read.
    pub(crate) fn leaf_at(&self, value: i64) -> Option<&L> {
        self.descend(|inner, _| Some(child_of_value(inner.marks(), value))).map(|(_, leaf)| leaf)
    }
}

/// The last child whose mark is at most `value`, or the first.
#[inline]
fn child_of_value(marks: &[i64], value: i64) -> usize {
    let marks = &marks[1..];
    count_before(marks.len(), |slot| marks[slot] <= value)
}

impl<L: Leaf> Tree<ById, L> {
    /// The leaf that covers `id`. None in a tree without leaves.
    pub(crate) fn seek(&self, id: Id) -> Option<Path> {
        let choose = |inner: &Inner<ById, L>, _| {
            let marks = &inner.marks()[1..];
            Some(count_before(marks.len(), |slot| marks[slot] <= id))
        };
        self.descend(choose).map(|(path, _)| path)
    }
}

impl<L: Leaf> Tree<ByEntry, L> {
    /// The leaf that covers `id`. None in a tree without leaves.
    pub(crate) fn seek(&self, id: Id) -> Option<Path> {
        let choose = |inner: &Inner<ByEntry, L>, _| {
            let marks = &inner.marks()[1..];
            Some(count_before(marks.len(), |slot| marks[slot].least <= id))
        };
        self.descend(choose).map(|(path, _)| path)
    }
}

impl<L: Leaf> Tree<ByScore, L> {
    /// The leaf in which a bound of this score lies: the last whose first element comes before the bound, as
    /// `is_before` tells of a leaf, or the first of all. Leaves are asked only where scores do not decide.
    #[inline]
    pub(crate) fn seek(&self, score: f64, mut is_before: impl FnMut(&L) -> bool) -> Option<(Path, &L)> {
        self.seek_unless(score, |leaf| Some(is_before(leaf)))
    }

    /// As `seek`, but the search ends with None as soon as `is_before` returns None.
    #[inline]
    pub(crate) fn seek_unless(
        &self,
        score: f64,
        mut is_before: impl FnMut(&L) -> Option<bool>,
    ) -> Option<(Path, &L)> {
        self.descend(|inner, level| {
            let (mut low, mut high) = children_of_score(inner.marks(), score);
            while low < high {
                let middle = low + (high - low).div_ceil(2);
                if is_before(first_leaf(&inner.children()[middle], level - 1))? {
                    low = middle;
                } else {
                    high = middle - 1;
                }
            }
            Some(low)
        })
    }

    /// The leaf that holds element `index`, and where in it; `index == total` is the end of the last leaf.
    pub(crate) fn seek_rank(&self, index: u64) -> Option<(Path, u64)> {
        assert!(index <= self.mark.count, "element {index} of {}", self.mark.count);
        let mut rest = index;
        let (path, _) = self.descend(|inner, _| Some(child_of_rank(inner.marks(), &mut rest)))?;
        Some((path, rest))
    }

    /// The leaf that holds element `index`, to be read, and where in it.
    pub(crate) fn leaf_at_rank(&self, index: u64) -> Option<(&L, u64)> {
        assert!(index <= self.mark.count, "element {index} of {}", self.mark.count);
        let mut rest = index;
        let (_, leaf) = self.descend(|inner, _| Some(child_of_rank(inner.marks(), &mut rest)))?;
        Some((leaf, rest))
    }
}

/// The children in which a bound of this score may lie, first and last: among equal scores their leaves
/// decide.
///
/// The bits of a positive double, as an integer, compare with those of all other doubles as the doubles do,
/// and sooner: the next step of the search does not wait for the processor's floating-point unit.
#[inline(always)]
fn children_of_score(marks: &[ScoreMark], score: f64) -> (usize, usize) {
    let bits = |score: f64| score.to_bits() as i64;
    match score > 0.0 {
        true => children_between(marks, |mark| bits(mark) < bits(score), |mark| bits(mark) <= bits(score)),
        false => children_between(marks, |mark| mark < score, |mark| mark <= score),
    }
}

/// The same, told which scores are below the one that is looked for, and which are not above it.
#[inline(always)]
fn children_between(
    marks: &[ScoreMark],
    is_below: impl Fn(f64) -> bool,
    is_not_above: impl Fn(f64) -> bool,
) -> (usize, usize) {
    let others = &marks[1..];
    let low = count_before(others.len(), |slot| {
        // SAFETY: a search asks for nothing beyond the end (tested there).
        let mark = unsafe { others.get_unchecked(slot) };
        is_below(mark.least)
    });
    // Nearly always the next child begins with a greater score.
    let high = match marks.get(low + 1) {
        Some(next) if is_not_above(next.least) => {
            let equal = &others[low..];
            low + count_before(equal.len(), |slot| is_not_above(equal[slot].least))
        }
        _ => low,
    };
    (low, high)
}

/// The first leaf below a child at `level`.
fn first_leaf<O: Order, L: Leaf>(child: &Child<O, L>, level: usize) -> &L {
    // SAFETY: the child is borrowed and lies at this level, and level 0 holds leaves.
    unsafe {
        let (_, leaf) = down((&raw const *child).cast_mut(), level + 1, 0, |_, _| Some(0))
            .expect("nothing ends the way down");
        (*leaf).leaf()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    /// The last child that begins below the score, and the last that does not begin above it; or the first.
    #[test]
    fn children_are_told_by_the_order_of_doubles_whatever_their_signs() {
        const SCORES: [f64; 11] = [
            f64::NEG_INFINITY,
            -1e300,
            -2.5,
            -f64::MIN_POSITIVE,
            -0.0,
            0.0,
            f64::from_bits(1),
            2.5,
            3.0,
            1e300,
            f64::INFINITY,
        ];
        let mut random = Random::new(11);
        for _ in 0..3000 {
            let count = 1 + random.below(40) as usize;
            let mut scores: Vec<f64> =
                (0..count).map(|_| SCORES[random.below(SCORES.len() as u64) as usize]).collect();
            // The two zeros stand in any order.
            scores.sort_by(|a, b| a.partial_cmp(b).expect("none is NaN"));
            let marks: Vec<ScoreMark> =
                scores.iter().map(|score| ScoreMark { count: 1, least: *score }).collect();
            for score in SCORES {
                let last = |is_in: &dyn Fn(f64) -> bool| (1..count).filter(|at| is_in(scores[*at])).count();
                let expected = (last(&|mark| mark < score), last(&|mark| mark <= score));
                assert_eq!(children_of_score(&marks, score), expected, "{score} in {scores:?}");
            }
        }
    }
}
