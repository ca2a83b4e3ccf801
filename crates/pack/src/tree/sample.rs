//! About what all nodes of a tree take, as far as some of them tell.
//!
//! A tree of up to [`LEAVES`] leaves below one node is gone through as a whole, so its figure is exact. Of
//! any other so many leaves are looked at, spread evenly over it: at each node as many children as there are
//! leaves to look at below it, and each stands for those beside it too. What that costs does not grow with
//! the tree.
//!
//! Elements are counted with the bytes. Where a leaf's bytes follow from how many elements it has, the bytes
//! of an element are known better than the number of leaves, and the owner knows how many elements there are:
//! [`Sample::of_entries`]. Leaves that take the same bytes whatever is in them (those of lists) are counted
//! by the nodes above them: [`Sample::bytes`].
use super::node::{Child, Leaf};
use super::order::Order;
use super::{Node, Tree};

/// So many leaves are looked at.
pub(crate) const LEAVES: usize = 32;
/// The same where each of their entries is.
pub(crate) const LEAVES_OF_ENTRIES: usize = 8;

/// What the nodes that were looked at stand for. A node may stand for a number of nodes that is no integer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    bytes: f64,
    entries: f64,
}

impl Sample {
    /// The bytes of all nodes; exact where all were looked at.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.max(0.0).round() as u64
    }

    /// The bytes of all nodes of a tree that has so many elements; exact where all were looked at. Below 0
    /// where the owner has taken more from them than they have.
    pub(crate) fn of_entries(&self, entries: u64) -> i64 {
        let share = if self.entries > 0.0 { entries as f64 / self.entries } else { 1.0 };
        (self.bytes * share).round() as i64
    }
}

impl<O: Order, L: Leaf> Tree<O, L> {
    /// What its nodes take, as far as [`LEAVES`] leaves tell. `weigh` tells of a leaf the bytes that count
    /// and the number of elements.
    pub(crate) fn sample(&self, weigh: &mut dyn FnMut(&L) -> (i64, usize)) -> Sample {
        self.sample_of(LEAVES, weigh)
    }

    /// The same, as far as so many leaves tell.
    pub(crate) fn sample_of(&self, leaves: usize, weigh: &mut dyn FnMut(&L) -> (i64, usize)) -> Sample {
        let mut sample = Sample::default();
        if let Some(root) = self.root() {
            visit_some(root, self.height() - 1, (leaves, 1.0), &mut |node, times| match node {
                Node::Inner(inner) => sample.bytes += times * inner.allocated_bytes() as f64,
                Node::Leaf(leaf) => {
                    let (bytes, entries) = weigh(leaf);
                    sample.bytes += times * bytes as f64;
                    sample.entries += times * entries as f64;
                }
            });
        }
        sample
    }
}

/// Visits a node and so many leaves below it, with the nodes above them. It stands for `times` nodes.
fn visit_some<O: Order, L: Leaf>(
    node: &Child<O, L>,
    level: usize,
    (leaves, times): (usize, f64),
    visit: &mut dyn FnMut(Node<'_, O, L>, f64),
) {
    if level == 0 {
        // SAFETY: level 0 holds leaves.
        return visit(Node::Leaf(unsafe { node.leaf() }), times);
    }
    // SAFETY: every other level holds inner nodes.
    let inner = unsafe { node.inner() };
    visit(Node::Inner(inner), times);
    let chosen = inner.count().min(leaves);
    let below = (leaves / chosen, times * inner.count() as f64 / chosen as f64);
    for number in 0..chosen {
        let slot = (2 * number + 1) * inner.count() / (2 * chosen);
        visit_some(&inner.children()[slot], level - 1, below, visit);
    }
}
