//! The way down: one loop from the root to a leaf, or to a node above leaves, for all that is looked for in a
//! tree. The caller's closure chooses the child at each node. It is compiled into the loop, and so is the
//! [`Path`], which costs nothing where nobody asks for it. On the path of every request.
//!
//! There are two forms. [`Tree::descend`] only reads. [`Tree::descend_mut`] hands out the nodes themselves,
//! because an edit copies those that a clone shares, and an edit that moves memory or counts elements has
//! work to do at each.
use super::node::{Child, Inner, Leaf};
use super::order::Order;
use super::{HEIGHT_MAX, Path, Tree};

impl<O: Order, L: Leaf> Tree<O, L> {
    /// Goes down to a leaf: at each node to the child of the number that `choose` says, which is told the
    /// node and its level. None in a tree without leaves, and as soon as `choose` says so.
    #[inline(always)]
    pub(super) fn descend<'t>(
        &'t self,
        choose: impl FnMut(&'t Inner<O, L>, usize) -> Option<usize>,
    ) -> Option<(Path, &'t L)> {
        let (path, node) = self.descend_to(0, choose)?;
        // SAFETY: level 0 holds leaves.
        Some((path, unsafe { node.leaf() }))
    }

    /// The same to a node at level `to`.
    #[inline(always)]
    pub(super) fn descend_to<'t>(
        &'t self,
        to: usize,
        choose: impl FnMut(&'t Inner<O, L>, usize) -> Option<usize>,
    ) -> Option<(Path, &'t Child<O, L>)> {
        // SAFETY: the root's level is one less than the height, and the tree is borrowed for `'t`; so is what
        // is found in it.
        unsafe {
            let (path, node) = down((&raw const *self.root()?).cast_mut(), self.height(), to, choose)?;
            Some((path, &*node))
        }
    }

    /// Goes down to level `to`, which is less than the height: at each node to the child that `step` lends,
    /// which is told the node and its level. None as soon as `step` says so.
    #[inline(always)]
    pub(super) fn descend_mut(
        &mut self,
        to: usize,
        mut step: impl for<'n> FnMut(&'n mut Inner<O, L>, usize) -> Option<&'n mut Child<O, L>>,
    ) -> Option<&mut Child<O, L>> {
        assert!(self.height() > to, "a path comes from a tree that has leaves");
        // SAFETY: with a height of 1 and more the root is there.
        let mut node = unsafe { self.root.assume_init_mut() };
        for level in (to + 1..self.height as usize).rev() {
            // SAFETY: a node above another is an inner one.
            node = step(unsafe { node.inner_mut() }, level)?;
        }
        Some(node)
    }
}

/// Goes down from `node`, which lies at level `height - 1`, to level `to`.
///
/// # Safety
/// `node` lies at this level, and nobody writes to it or to what lies below for all of `'t`.
#[inline(always)]
pub(super) unsafe fn down<'t, O: Order, L: Leaf + 't>(
    mut node: *mut Child<O, L>,
    height: usize,
    to: usize,
    mut choose: impl FnMut(&'t Inner<O, L>, usize) -> Option<usize>,
) -> Option<(Path, *mut Child<O, L>)> {
    let mut path = Path::FIRST;
    debug_assert!(to < height && height <= HEIGHT_MAX, "level {to} of {height}");
    for level in (to + 1..height).rev() {
        // SAFETY: the caller's promise; a node above another is an inner one.
        let inner: &'t Inner<O, L> = unsafe { (*node).inner() };
        debug_assert_eq!(inner.level(), level, "a node at another level than its place says");
        let slot = choose(inner, level)?;
        path = path.with_slot(level, slot);
        node = inner.child_address(slot);
    }
    Some((path, node))
}
