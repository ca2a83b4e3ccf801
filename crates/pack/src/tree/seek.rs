//! Searches from the root down, one for each [`Order`](super::order::Order): which child of a node covers
//! what is sought. On the path of every request.
use super::node::{Child, Inner, Leaf};
use super::order::{ByHash, ById, ByRank, ByScore, ByValue, Id, Order, OrderRange, ScoreMark};
use super::{Held, Path, Tree};
use crate::code::quarters::count_before;
use crate::memory::arena::Moves;

impl<L: Leaf> Tree<ByRank, L> {
    /// The leaf that holds element `index`, and where in it; `index == total` is the end of the last leaf.
    /// None in a tree without leaves.
    pub(crate) fn seek(&self, index: u64) -> Option<(Path, u64)> {
        assert!(index <= self.mark, "element {index} of {}", self.mark);
        let (mut path, mut rest) = (self.first()?, index);
        let mut node = self.root()?;
        for level in (1..self.height()).rev() {
            // SAFETY: only level 0 holds leaves.
            let inner = unsafe { node.inner() };
            let slot = child_at(inner.marks(), &mut rest);
            path.set_slot(level, slot);
            node = &inner.children()[slot];
        }
        Some((path, rest))
    }

    /// The leaf that holds element `index`, to be read, and where in it.
    pub(crate) fn leaf_at_rank(&self, index: u64) -> Option<(&L, u64)> {
        assert!(index <= self.mark, "element {index} of {}", self.mark);
        let (mut node, mut rest) = (self.root()?, index);
        for _ in 1..self.height() {
            // SAFETY: only level 0 holds leaves.
            let inner = unsafe { node.inner() };
            node = &inner.children()[child_at(inner.marks(), &mut rest)];
        }
        // SAFETY: after height - 1 steps down the node is a leaf.
        Some((unsafe { node.leaf() }, rest))
    }
}

/// The child that holds element `rest` (the last, where it is the end of all), which then counts from that
/// child's start. Eight counts are added up at a time, because each step of a chain of comparisons waits for
/// the one before.
fn child_at(marks: &[u64], rest: &mut u64) -> usize {
    let mut slot = 0;
    for eight in marks.as_chunks::<8>().0 {
        let sum: u64 = eight.iter().sum();
        if *rest < sum {
            break;
        }
        *rest -= sum;
        slot += 8;
    }
    while slot < marks.len() && *rest >= marks[slot] {
        *rest -= marks[slot];
        slot += 1;
    }
    if slot == marks.len() {
        slot -= 1;
        *rest += marks[slot];
    }
    slot
}

impl OrderRange {
    /// The child that covers `place`, and what it covers.
    fn child<L: Leaf>(self, inner: &Inner<ByHash, L>, place: u32) -> (usize, OrderRange) {
        let marks = inner.marks();
        let guess = self.guess(marks.len(), place);
        // It comes while the marks do.
        inner.prefetch_child(guess);
        let slot = child_of_place(marks, place, guess);
        let first = if slot == 0 { self.first } else { marks[slot] };
        let last = if slot + 1 < marks.len() { marks[slot + 1] - 1 } else { self.last };
        (slot, OrderRange { first, last })
    }

    /// About which of so many children it is: hashes are uniform.
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

/// For few marks, and where the guess misses.
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

    /// The same with the leaf itself.
    #[inline]
    pub(crate) fn seek_leaf(&self, place: u32) -> Option<(Path, OrderRange, &L)> {
        let (mut path, mut bounds) = (self.first()?, OrderRange::ALL);
        let mut node = self.root()?;
        for level in (1..self.height()).rev() {
            // SAFETY: only level 0 holds leaves.
            let inner = unsafe { node.inner() };
            let (slot, inside) = bounds.child(inner, place);
            path.set_slot(level, slot);
            bounds = inside;
            node = &inner.children()[slot];
        }
        // SAFETY: after height - 1 steps down the node is a leaf.
        Some((path, bounds, unsafe { node.leaf() }))
    }

    /// The leaf that covers `place`, to be changed where no clone shares the way to it.
    pub(crate) fn held_at(&mut self, place: u32) -> Option<Held<'_, L>> {
        let (mut bounds, mut is_sole) = (OrderRange::ALL, true);
        let height = self.height();
        self.root()?;
        let mut node: *mut Child<ByHash, L> = self.root.as_mut_ptr();
        for _ in 1..height {
            // SAFETY: only level 0 holds leaves; the child lives as long as the tree, which is borrowed.
            let inner = unsafe { (*node).inner() };
            let (slot, inside) = bounds.child(inner, place);
            is_sole &= inner.is_sole();
            (node, bounds) = (inner.child_place(slot), inside);
        }
        // SAFETY: after height - 1 steps down the node is a leaf. It is lent for writing only where this
        // tree, borrowed for writing, is the one owner of every node above it: then nobody else can reach the
        // handle.
        unsafe {
            match is_sole {
                true => Some(Held::Sole((*node).leaf_mut())),
                false => Some(Held::Shared((*node).leaf())),
            }
        }
    }

    /// The leaf that covers `place`, to be read.
    pub(crate) fn leaf_at(&self, place: u32) -> Option<&L> {
        let (mut node, mut bounds) = (self.root()?, OrderRange::ALL);
        for _ in 1..self.height() {
            // SAFETY: only level 0 holds leaves.
            let inner = unsafe { node.inner() };
            let (slot, inside) = bounds.child(inner, place);
            (node, bounds) = (&inner.children()[slot], inside);
        }
        // SAFETY: after height - 1 steps down the node is a leaf.
        Some(unsafe { node.leaf() })
    }
}

impl<L: Leaf> Tree<ByValue, L> {
    /// The leaf that covers `value`. None in a tree without leaves.
    pub(crate) fn seek(&self, value: i64) -> Option<Path> {
        let (mut path, mut node) = (self.first()?, self.root()?);
        for level in (1..self.height()).rev() {
            // SAFETY: only level 0 holds leaves.
            let inner = unsafe { node.inner() };
            let slot = child_of_value(inner.marks(), value);
            path.set_slot(level, slot);
            node = &inner.children()[slot];
        }
        Some(path)
    }

    /// The leaf that covers `value`, to be read.
    pub(crate) fn leaf_at(&self, value: i64) -> Option<&L> {
        let mut node = self.root()?;
        for _ in 1..self.height() {
            // SAFETY: only level 0 holds leaves.
            let inner = unsafe { node.inner() };
            node = &inner.children()[child_of_value(inner.marks(), value)];
        }
        // SAFETY: after height - 1 steps down the node is a leaf.
        Some(unsafe { node.leaf() })
    }

    /// Hands the leaves from the one that covers `from` on to `relocate`, until `moves` says that `effort`
    /// was made. Where to go on, as `first` tells of a leaf, None at the end.
    pub(crate) fn relocate_from(
        &mut self,
        from: i64,
        effort: u64,
        moves: &mut Moves,
        relocate: impl Fn(&mut L, &mut Moves),
        first: impl Fn(&L) -> i64,
    ) -> Option<i64> {
        let mut path = self.seek(from)?;
        loop {
            if let Some(leaf) = self.relocate(&path, moves) {
                relocate(leaf, moves);
            }
            if !self.next(&mut path) {
                return None;
            }
            if moves.effort() >= effort {
                return Some(first(self.leaf(&path)));
            }
        }
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
        let mut path = self.first()?;
        let mut node = self.root()?;
        for level in (1..self.height()).rev() {
            // SAFETY: only level 0 holds leaves.
            let inner = unsafe { node.inner() };
            let marks = &inner.marks()[1..];
            let slot = count_before(marks.len(), |slot| marks[slot] <= id);
            path.set_slot(level, slot);
            node = &inner.children()[slot];
        }
        Some(path)
    }
}

impl<L: Leaf> Tree<ByScore, L> {
    /// The leaf in which a place of this score lies: the last whose first element comes before the place, as
    /// `is_before` tells of a leaf, or the first of all. Leaves are asked only where scores do not decide.
    #[inline]
    pub(crate) fn seek(&self, score: f64, mut is_before: impl FnMut(&L) -> bool) -> Option<(Path, &L)> {
        self.seek_unless(score, |leaf| Some(is_before(leaf)))
    }

    /// The same; None as soon as `is_before` says so instead of answering.
    #[inline]
    pub(crate) fn seek_unless(
        &self,
        score: f64,
        mut is_before: impl FnMut(&L) -> Option<bool>,
    ) -> Option<(Path, &L)> {
        let (mut path, mut node) = (self.first()?, self.root()?);
        for level in (1..self.height()).rev() {
            // SAFETY: only level 0 holds leaves.
            let inner = unsafe { node.inner() };
            let marks = inner.marks();
            let others = &marks[1..];
            let mut low = count_before(others.len(), |slot| {
                // SAFETY: a search asks for nothing beyond the end (tested there).
                let mark = unsafe { others.get_unchecked(slot) };
                mark.score < score
            });
            // Nearly always the next child begins with a greater score.
            let mut high = match marks.get(low + 1) {
                Some(next) if next.score <= score => {
                    let equal = &others[low..];
                    low + count_before(equal.len(), |slot| equal[slot].score <= score)
                }
                _ => low,
            };
            while low < high {
                let middle = low + (high - low).div_ceil(2);
                if is_before(first_leaf(&inner.children()[middle], level - 1))? {
                    low = middle;
                } else {
                    high = middle - 1;
                }
            }
            path.set_slot(level, low);
            node = &inner.children()[low];
        }
        // SAFETY: after height - 1 steps down the node is a leaf.
        Some((path, unsafe { node.leaf() }))
    }

    /// The leaf, to be edited, which gets so many elements more, or loses some.
    pub(crate) fn leaf_with(&mut self, path: &Path, more: i64) -> &mut L {
        assert!(!self.is_empty(), "a path comes from a tree that has leaves");
        self.mark.count = self.mark.count.strict_add_signed(more);
        // SAFETY: with a height of 1 and more the root is there.
        let mut node = unsafe { self.root.assume_init_mut() };
        for level in (1..self.height as usize).rev() {
            // SAFETY: only level 0 holds leaves.
            let (marks, children) = unsafe { node.inner_mut().make_mut() };
            let slot = path.slot(level);
            marks[slot].count = marks[slot].count.strict_add_signed(more);
            node = &mut children[slot];
        }
        // SAFETY: after height - 1 steps down the node is a leaf.
        unsafe { node.leaf_mut() }
    }

    /// How many elements stand before the leaf.
    pub(crate) fn rank(&self, path: &Path) -> u64 {
        let Some(mut node) = self.root() else { return 0 };
        let mut rank = 0;
        for level in (1..self.height()).rev() {
            // SAFETY: only level 0 holds leaves.
            let inner = unsafe { node.inner() };
            let slot = path.slot(level);
            rank += inner.marks()[..slot].iter().map(|mark| mark.count).sum::<u64>();
            node = &inner.children()[slot];
        }
        rank
    }

    /// The leaf that holds element `index`, and where in it; `index == total` is the end of the last leaf.
    pub(crate) fn seek_rank(&self, index: u64) -> Option<(Path, u64)> {
        assert!(index <= self.mark.count, "element {index} of {}", self.mark.count);
        let (mut path, mut rest) = (self.first()?, index);
        let mut node = self.root()?;
        for level in (1..self.height()).rev() {
            // SAFETY: only level 0 holds leaves.
            let inner = unsafe { node.inner() };
            let slot = child_of_rank(inner.marks(), &mut rest);
            path.set_slot(level, slot);
            node = &inner.children()[slot];
        }
        Some((path, rest))
    }
}

/// As [`child_at`], for counts that stand beside scores.
fn child_of_rank(marks: &[ScoreMark], rest: &mut u64) -> usize {
    let mut slot = 0;
    for eight in marks.as_chunks::<8>().0 {
        let sum: u64 = eight.iter().map(|mark| mark.count).sum();
        if *rest < sum {
            break;
        }
        *rest -= sum;
        slot += 8;
    }
    while slot < marks.len() && *rest >= marks[slot].count {
        *rest -= marks[slot].count;
        slot += 1;
    }
    if slot == marks.len() {
        slot -= 1;
        *rest += marks[slot].count;
    }
    slot
}

/// The first leaf below a child at `level`.
fn first_leaf<O: Order, L: Leaf>(child: &Child<O, L>, level: usize) -> &L {
    let mut node = child;
    for _ in 0..level {
        // SAFETY: only level 0 holds leaves.
        node = unsafe { &node.inner().children()[0] };
    }
    // SAFETY: `level` steps down lie the leaves.
    unsafe { node.leaf() }
}
