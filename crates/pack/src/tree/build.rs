//! A tree made of all its leaves at once, from the bottom up: each node is written once, and all nodes of a
//! level have about as many children.
use super::node::{Child, FANOUT, Inner, Leaf};
use super::order::Order;
use super::{HEIGHT_MAX, Tree};

impl<O: Order, L: Leaf> Tree<O, L> {
    /// The tree of these leaves with their marks, in their order. None at all make an empty tree.
    pub(crate) fn of_leaves(leaves: Vec<(O::Mark, L)>) -> Tree<O, L> {
        let mut nodes: Vec<(O::Mark, Child<O, L>)> =
            leaves.into_iter().map(|(mark, leaf)| (mark, Child::of_leaf(leaf))).collect();
        let mut level = 0;
        while nodes.len() > 1 {
            level += 1;
            assert!(level < HEIGHT_MAX, "a tree higher than memory is large");
            nodes = above(nodes, level);
        }
        let mut tree = Tree::new();
        if let Some((mark, root)) = nodes.pop() {
            tree.root.write(root);
            (tree.mark, tree.height) = (mark, level as u8 + 1);
        }
        tree
    }
}

/// The nodes at `level` that have these children.
fn above<O: Order, L: Leaf>(
    children: Vec<(O::Mark, Child<O, L>)>,
    level: usize,
) -> Vec<(O::Mark, Child<O, L>)> {
    let (all, count) = (children.len(), children.len().div_ceil(FANOUT));
    let mut children = children.into_iter();
    let node = |index: usize| {
        let mine = all * (index + 1) / count - all * index / count;
        let mut node = Inner::with_room(level, mine);
        for (slot, (mark, child)) in children.by_ref().take(mine).enumerate() {
            node.insert(slot, mark, child);
        }
        debug_assert_eq!(node.count(), mine, "a node has the children that it was made for");
        (O::fold(node.marks()), Child::of_inner(node))
    };
    (0..count).map(node).collect()
}
