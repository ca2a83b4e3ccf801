//! A stream as files have it: in nodes of about a hundred entries, which are the leaves of its log. Whoever
//! trims a stream with `~` sees where they begin and end, so they are written and read as they are.
use crate::stream::tree::{Id, Stream};
use pack::log::{Entries, Limits, NodeSize, Pairs, Sheet};
use std::ops::ControlFlow;

/// Within a node nothing but its length ends it.
const WHOLE: Limits = Limits { bytes: 0, entries: 0 };

impl Stream {
    /// Adds the entries of a node, of which there are some, together. More come to it if it `grows`.
    pub fn add_sheet(&mut self, names: &impl Pairs, sheet: &Sheet<'_>, size: NodeSize, grows: bool) {
        self.log.append_sheet(names, sheet, size, grows);
        let last = *sheet.ids.last().expect("a sheet has entries");
        self.count_added(last, sheet.ids.len() as u64);
    }

    /// Adds an entry of a node, which it may begin.
    pub fn add_to_node(&mut self, id: Id, pairs: &impl Pairs, begins: bool) {
        if begins {
            self.log.append_apart(id, pairs);
        } else {
            self.log.append(id, pairs, &WHOLE);
        }
        self.count_added(id, 1);
    }

    /// The node to which entries were added is complete, and was so large where it came from.
    pub fn end_node(&mut self, size: NodeSize) {
        self.log.note_node(size);
    }

    /// All is loaded: gives back the room for more entries.
    pub fn fit(&mut self) {
        self.log.fit();
    }

    /// How many nodes it has. Visits them all.
    pub fn nodes(&self) -> u64 {
        let mut count = 0;
        self.for_each_leaf(&mut |_| count += 1);
        count
    }

    /// Visits the nodes in their order, until told to stop.
    pub fn visit_nodes(&self, visit: &mut dyn FnMut(&Entries<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.log.visit_leaves(visit)
    }
}
