//! The connections of one engine: a slab whose slots carry generations.
//!
//! A `ConnId` is a slot's index and the generation it had when the connection was put in. Taking a connection
//! out raises the generation, so an id that outlived its connection finds nothing, whoever has the slot now.
//! Generation 0 is never given out: as a kernel token it marks what is no connection (the waker, a listener,
//! a timer).
//!
//! A slot is given again only after the next `reuse`, which every poll begins with: whoever keeps connections
//! by their index has then seen the `Gone` of the one before, in whichever order it takes the events of a
//! poll.
use crate::ConnId;

/// io_uring's tokens have 28 bits for the index (`uring/token.rs`).
pub(crate) const INDEX_MAX: u32 = (1 << 28) - 1;

/// Where a connection is between `adopt` and `Gone`. Each engine's opener says who moves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Open,
    /// Closed with something queued; nothing is read any more.
    Flushing,
    /// Closed or failed; `Gone` has not been told.
    Dying,
}

struct Slot<C> {
    generation: u32,
    conn: Option<C>,
}

pub(crate) struct Table<C> {
    slots: Vec<Slot<C>>,
    free: Vec<u32>,
    /// Slots whose connection was taken out since the last `reuse`: not yet given again.
    left: Vec<u32>,
}

impl<C> Table<C> {
    /// Without connections.
    pub(crate) fn new() -> Table<C> {
        Table { slots: Vec::new(), free: Vec::new(), left: Vec::new() }
    }

    /// Puts a connection in a free slot, or in a new one.
    pub(crate) fn insert(&mut self, conn: C) -> ConnId {
        let index = self.free.pop().unwrap_or_else(|| self.grow());
        let slot = &mut self.slots[index as usize];
        assert!(slot.conn.is_none(), "a free slot holds a connection");
        slot.conn = Some(conn);
        ConnId { index, generation: slot.generation }
    }

    /// Adds a slot and returns its index.
    fn grow(&mut self) -> u32 {
        let index = self.slots.len() as u32;
        assert!(index <= INDEX_MAX, "more connections than tokens can name");
        self.slots.push(Slot { generation: 1, conn: None });
        index
    }

    /// The connection with this id; None where it is gone.
    pub(crate) fn get(&self, id: ConnId) -> Option<&C> {
        let slot = self.slots.get(id.index as usize)?;
        if slot.generation == id.generation { slot.conn.as_ref() } else { None }
    }

    /// The connection with this id, to be changed; None where it is gone.
    pub(crate) fn get_mut(&mut self, id: ConnId) -> Option<&mut C> {
        let slot = self.slots.get_mut(id.index as usize)?;
        if slot.generation == id.generation { slot.conn.as_mut() } else { None }
    }

    /// All connections. Goes over all slots.
    pub(crate) fn ids(&self) -> Vec<ConnId> {
        let live = self.slots.iter().enumerate().filter(|(_, slot)| slot.conn.is_some());
        live.map(|(index, slot)| ConnId { index: index as u32, generation: slot.generation }).collect()
    }

    /// Takes a connection out. Its id names nothing from now on.
    pub(crate) fn remove(&mut self, id: ConnId) -> Option<C> {
        let slot = self.slots.get_mut(id.index as usize).filter(|slot| slot.generation == id.generation)?;
        let conn = slot.conn.take()?;
        slot.generation = slot.generation.checked_add(1).unwrap_or(1);
        self.left.push(id.index);
        Some(conn)
    }

    /// Lets the slots be given again whose connections have been taken out.
    pub(crate) fn reuse(&mut self) {
        self.free.append(&mut self.left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_finds_its_connection_and_no_later_one_of_the_same_slot() {
        let mut table = Table::new();
        let first = table.insert('a');
        assert_eq!(table.remove(first), Some('a'));
        table.reuse();
        let second = table.insert('b');
        assert_eq!(second.index, first.index);
        assert_eq!(table.get(first), None);
        assert_eq!(table.remove(first), None);
        assert_eq!(table.get_mut(second).copied(), Some('b'));
    }

    #[test]
    fn a_slot_is_given_again_once_its_end_is_known() {
        let mut table = Table::new();
        let first = table.insert('a');
        table.remove(first);
        let second = table.insert('b');
        assert_ne!(second.index, first.index);
        table.reuse();
        assert_eq!(table.insert('c').index, first.index);
    }

    #[test]
    fn generations_wrap_past_zero() {
        let mut table = Table::new();
        let id = table.insert(1);
        table.slots[0].generation = u32::MAX;
        assert_eq!(table.remove(ConnId { generation: u32::MAX, ..id }), Some(1));
        table.reuse();
        assert_eq!(table.insert(2).generation, 1);
    }
}
