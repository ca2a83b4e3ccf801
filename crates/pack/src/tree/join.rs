//! What happens to a tree that shrinks: small neighbours below one parent are joined (the owner of the tree
//! joins leaves, the tree its inner nodes), and a root that has one child left is replaced by that child.
//!
//! Lists join their leaves themselves: a neighbour there may be an end that lies outside the tree
//! (`list/chain.rs`), and a list that lost a range joins what is left on both sides of it, whatever the
//! parents.
use super::node::{Child, FANOUT, FANOUT_MIN, Inner, Leaf};
use super::order::{ByHash, Order, OrderRange};
use super::{Path, Tree};

/// Two leaves side by side below one parent.
pub(crate) struct Neighbours<'t, O: Order, L: Leaf> {
    pub(crate) left: &'t L,
    pub(crate) right: &'t L,
    tree: &'t Tree<O, L>,
    /// The path of the left one.
    path: Path,
}

impl<L: Leaf> Neighbours<'_, ByHash, L> {
    /// What the two cover together.
    pub(crate) fn range(&self) -> OrderRange {
        let first = self.tree.range(&self.path).first;
        let mut right = self.path;
        right.set_slot(1, self.path.slot(1) + 1);
        OrderRange { first, last: self.tree.range(&right).last }
    }
}

impl<O: Order, L: Leaf> Tree<O, L> {
    /// Joins a leaf with the one behind it, or else with the one before it, as long as both have the same
    /// parent (elsewhere the range of the right leaf would fall to another node). The first of the two for
    /// which `fits` answers is taken: `join` puts the elements of the right leaf into the left one, and is
    /// told the answer. Returns whether leaves were joined; then no path is valid. Costs two ways down and
    /// the work of `join`.
    pub(crate) fn join_neighbour<T>(
        &mut self,
        path: &Path,
        mut fits: impl FnMut(&Neighbours<'_, O, L>) -> Option<T>,
        join: impl FnOnce(&mut L, L, T),
    ) -> bool {
        if self.height < 2 {
            return false;
        }
        let (inner, slot) = (self.inner(path, 1), path.slot(1));
        assert!(slot < inner.count(), "leaf {slot} of {}", inner.count());
        let fits_at = |left: usize| {
            let mut at = *path;
            at.set_slot(1, left);
            // SAFETY: level 1 has leaves below it.
            let leaf = |slot: usize| unsafe { inner.children()[slot].leaf() };
            fits(&Neighbours { left: leaf(left), right: leaf(left + 1), tree: self, path: at })
        };
        let Some((left, told)) = first_neighbours(slot, inner.count(), fits_at) else { return false };
        join_children(self.inner_mut(path, 1), left, |left, _, right| {
            // SAFETY: as above.
            unsafe { join(left.leaf_mut(), right.into_leaf(), told) };
        });
        self.mend(path);
        true
    }

    /// To be called after a child of the node at level 1 was removed: joins nodes that are nearly empty, and
    /// replaces a root of one child by that child.
    pub(super) fn mend(&mut self, path: &Path) {
        for level in 1..self.height() - 1 {
            if self.inner(path, level).count() >= FANOUT_MIN {
                break;
            }
            self.join_inner(path, level);
        }
        // SAFETY: a root with a height above 1 is an inner node.
        while self.height > 1 && unsafe { self.root.assume_init_ref().inner() }.count() == 1 {
            self.lower();
        }
    }

    /// Joins the node at `level` with a neighbour, where both together leave room for more; an empty one
    /// goes.
    fn join_inner(&mut self, path: &Path, level: usize) {
        let (slot, count) = (path.slot(level + 1), self.inner(path, level).count());
        let parent = self.inner_mut(path, level + 1);
        if count == 0 {
            let (_, mut empty) = parent.remove(slot);
            // SAFETY: it lies at this level, and is not used again.
            unsafe { empty.release(level) };
            return;
        }
        // SAFETY: only level 0 holds leaves.
        let counted = |slot: usize| unsafe { parent.children()[slot].inner().count() };
        let fits = |left: usize| (counted(left) + counted(left + 1) <= FANOUT * 3 / 4).then_some(());
        let Some((left, ())) = first_neighbours(slot, parent.count(), fits) else { return };
        join_children(parent, left, |left, mark, right| {
            // SAFETY: as above.
            unsafe { left.inner_mut().join(mark, right.into_inner()) };
        });
    }

    /// Makes the only child of the root the root.
    fn lower(&mut self) {
        // SAFETY: the root is an inner node; it is moved out, and the field written over.
        let root = unsafe { self.root.assume_init_read().into_inner() };
        debug_assert!(root.level() == self.height() - 1 && root.count() == 1);
        // SAFETY: the child lies one level below.
        let child = unsafe { root.children()[0].share(self.height() - 2) };
        self.root.write(child);
        self.height -= 1;
    }
}

/// The left one of the two neighbours that are joined, and what `fits` tells of the two: the child at `slot`
/// and the one behind it, or else the one before it and the child.
fn first_neighbours<T>(
    slot: usize,
    count: usize,
    mut fits: impl FnMut(usize) -> Option<T>,
) -> Option<(usize, T)> {
    let behind = if slot + 1 < count { fits(slot) } else { None };
    match behind {
        Some(told) => Some((slot, told)),
        None => fits(slot.checked_sub(1)?).map(|told| (slot - 1, told)),
    }
}

/// Makes one child of the one at `left` and the one behind it. `join` is told the mark that the latter had.
fn join_children<O: Order, L: Leaf>(
    parent: &mut Inner<O, L>,
    left: usize,
    join: impl FnOnce(&mut Child<O, L>, O::Mark, Child<O, L>),
) {
    let (mark, right) = parent.remove(left + 1);
    debug_assert!(left < parent.count(), "what is joined has a neighbour");
    let (marks, children) = parent.make_mut();
    marks[left] = O::moved(marks[left], O::NONE, mark);
    join(&mut children[left], mark, right);
}
