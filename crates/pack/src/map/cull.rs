//! One leaf from which entries are taken in order to free memory, found once for all that go.
//!
//! What goes leaves its bytes as room in the leaf. A leaf that the next edit makes larger again needs that
//! room, and then moves nothing; whoever ends the cull says how much of it may stay.
use crate::map::form::{Form, Keys};
use crate::map::{Crowd, Found, Map, OrderRange};
use crate::memory::shared::Shared;
use crate::tree::Path;

pub struct Cull<'m, V: Clone, F: Form = Keys> {
    map: &'m mut Map<V, F>,
    path: Path,
    range: OrderRange,
}

impl<'m, V: Clone, F: Form> Cull<'m, V, F> {
    pub(crate) fn new(map: &'m mut Map<V, F>, path: Path, range: OrderRange) -> Cull<'m, V, F> {
        Cull { map, path, range }
    }

    /// The entries that are left.
    pub fn crowd(&self) -> Crowd<'_, V, F> {
        Crowd::new(self.map.leaf(&self.path), self.range)
    }

    /// Entry `index`, in the order in which they came.
    pub fn at(&self, index: usize) -> Found<'_, V> {
        self.crowd().at(index)
    }

    /// Bytes of the leaf that hold nothing.
    pub fn room_bytes(&self) -> usize {
        self.map.leaf(&self.path).room_bytes()
    }

    /// Removes entry `index`. Returns the value that it owned outside, and how many bytes become free beside
    /// that.
    pub fn remove(&mut self, index: usize) -> (Option<Shared<V>>, usize) {
        debug_assert!(index < self.map.leaf(&self.path).count(), "entry {index} is there");
        self.map.cull_entry(&self.path, index)
    }

    /// Ends the cull. About `kept_bytes` of the leaf's room may stay; the leaf moves to a smaller block only
    /// if it has more.
    pub fn finish(self, kept_bytes: usize) {
        self.map.end_cull(&self.path, self.range, kept_bytes);
    }
}
