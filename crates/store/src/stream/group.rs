//! A group of consumers: up to where it has read, and who holds what.
//!
//! The entries that are pending are kept twice: for the group with all that is known of them, and for each
//! consumer the ids alone. XPENDING asks for both in the order of ids, and neither may be slow because the
//! other is long. A consumer has a number that stays as long as it exists, so a pending entry names its
//! consumer in four bytes.
use super::pending::{PAYLOAD_BYTES, Pending};
use base::Millis;
use pack::arena::Moves;
use pack::log::Id;
use pack::records::Records;
use pack::stats::Stats;
use std::ops::ControlFlow;

/// A consumer's number in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerId(pub(super) u32);

#[derive(Clone)]
pub struct Consumer {
    name: Box<[u8]>,
    /// When it last sent a command.
    pub seen: Millis,
    /// When it was last given an entry; None where it never was.
    pub active: Option<Millis>,
    pending: Records<0>,
}

impl Consumer {
    /// What the consumer is called.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// How many entries the consumer was given and has not acknowledged.
    pub fn pending_len(&self) -> u64 {
        self.pending.len()
    }
}

/// A group of consumers that share the entries of a stream among them.
#[derive(Clone)]
pub struct Group {
    name: Box<[u8]>,
    last_id: Id,
    /// How many entries the group has read; None where that is not known.
    entries_read: Option<u64>,
    pending: Records<PAYLOAD_BYTES>,
    /// The consumers by their numbers; None where the consumer of that number was deleted.
    consumers: Vec<Option<Box<Consumer>>>,
    /// The numbers of deleted consumers, to be given again; and some that are beyond all consumers by now.
    free: Vec<u32>,
    /// The numbers of the consumers, in the order of their names.
    order: Vec<u32>,
}

impl Group {
    pub(super) fn new(name: &[u8], last_id: Id, entries_read: Option<u64>) -> Group {
        Group {
            name: name.into(),
            last_id,
            entries_read,
            pending: Records::new(),
            consumers: Vec::new(),
            free: Vec::new(),
            order: Vec::new(),
        }
    }

    /// What the group is called.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The id up to which entries were given to consumers.
    pub fn last_id(&self) -> Id {
        self.last_id
    }

    /// How many entries the group has read, deleted ones included; None where that cannot be told.
    pub fn entries_read(&self) -> Option<u64> {
        self.entries_read
    }

    /// Sets the id up to which the group has read, and the number of entries up to there.
    pub fn set_progress(&mut self, last_id: Id, entries_read: Option<u64>) {
        (self.last_id, self.entries_read) = (last_id, entries_read);
    }

    /// All consumers, in the order of their names.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = &Consumer> {
        self.order.iter().map(|number| self.consumer(ConsumerId(*number)))
    }

    /// A consumer of this group, which exists.
    pub fn consumer(&self, id: ConsumerId) -> &Consumer {
        self.consumers[id.0 as usize].as_ref().expect("numbers come from this group")
    }

    /// A consumer of this group, which exists, to be edited.
    pub fn consumer_mut(&mut self, id: ConsumerId) -> &mut Consumer {
        self.consumers[id.0 as usize].as_mut().expect("numbers come from this group")
    }

    /// The consumer of this name; None where there is none.
    pub fn find_consumer(&self, name: &[u8]) -> Option<ConsumerId> {
        self.order_index(name).ok().map(|index| ConsumerId(self.order[index]))
    }

    fn order_index(&self, name: &[u8]) -> Result<usize, usize> {
        self.order.binary_search_by(|number| self.consumer(ConsumerId(*number)).name().cmp(name))
    }

    /// Creates a consumer and returns its number; None if there is one of this name already.
    pub fn create_consumer(&mut self, name: &[u8], now: Millis) -> Option<ConsumerId> {
        let index = self.order_index(name).err()?;
        let consumer = Consumer { name: name.into(), seen: now, active: None, pending: Records::new() };
        let number = self.free_number();
        self.consumers[number as usize] = Some(Box::new(consumer));
        self.order.insert(index, number);
        Some(ConsumerId(number))
    }

    /// The number of the next consumer.
    fn free_number(&mut self) -> u32 {
        while let Some(number) = self.free.pop() {
            if (number as usize) < self.consumers.len() {
                return number;
            }
        }
        self.consumers.push(None);
        u32::try_from(self.consumers.len() - 1).expect("a group has fewer than 2^32 consumers")
    }

    /// Gives back the room of consumers that were deleted.
    fn give_room_back(&mut self) {
        while let Some(None) = self.consumers.last() {
            self.consumers.pop();
        }
        if self.consumers.is_empty() {
            self.free.clear();
        }
        give_back(&mut self.consumers);
        give_back(&mut self.free);
        give_back(&mut self.order);
    }

    /// Deletes a consumer with what is pending for it, and returns how many entries that were.
    pub fn delete_consumer(&mut self, name: &[u8]) -> Option<u64> {
        let index = self.order_index(name).ok()?;
        let number = self.order.remove(index);
        let consumer = self.consumers[number as usize].take()?;
        self.free.push(number);
        self.give_room_back();
        consumer.pending.visit(Id::MIN, &mut |id, _| {
            self.pending.remove(id);
            ControlFlow::Continue(())
        });
        Some(consumer.pending.len())
    }

    /// How many entries the consumers of the group were given and have not acknowledged.
    pub fn pending_len(&self) -> u64 {
        self.pending.len()
    }

    /// Who has the entry `id` and since when; None where it is not pending.
    pub fn pending(&self, id: Id) -> Option<Pending> {
        self.pending.get(id).map(|bytes| Pending::decode(id, bytes))
    }

    /// The least and the greatest pending id; None where nothing is pending.
    pub fn pending_ends(&self) -> Option<(Id, Id)> {
        Some((self.pending.first()?.0, self.pending.last()?.0))
    }

    /// Makes an entry pending for a consumer, and not any more for the one that had it before.
    pub fn hold(&mut self, pending: Pending) {
        let Pending { id, consumer, .. } = pending;
        let old = self.pending.insert(id, pending.encode()).map(|bytes| Pending::decode(id, bytes).consumer);
        if old == Some(consumer) {
            return;
        }
        if let Some(old) = old {
            self.consumer_mut(old).pending.remove(id);
        }
        self.consumer_mut(consumer).pending.insert(id, []);
    }

    /// Makes an entry not pending any more, and returns whether it was pending.
    pub fn release(&mut self, id: Id) -> bool {
        let Some(bytes) = self.pending.remove(id) else { return false };
        self.consumer_mut(Pending::decode(id, bytes).consumer).pending.remove(id);
        true
    }

    /// Visits what is pending from the id `from` on, until told to stop.
    pub fn visit_pending(&self, from: Id, visit: &mut dyn FnMut(Pending) -> ControlFlow<()>) {
        self.pending.visit(from, &mut |id, bytes| visit(Pending::decode(id, bytes)));
    }

    /// As [`Group::visit_pending`], for what one consumer has.
    pub fn visit_pending_of(
        &self,
        consumer: ConsumerId,
        from: Id,
        visit: &mut dyn FnMut(Pending) -> ControlFlow<()>,
    ) {
        self.consumer(consumer).pending.visit(from, &mut |id, []| match self.pending(id) {
            Some(pending) => visit(pending),
            None => ControlFlow::Continue(()),
        });
    }

    /// How many bytes the group takes besides the leaves of its pending entries.
    pub(super) fn own_bytes(&self) -> u64 {
        let consumers: usize =
            self.consumers().map(|consumer| size_of::<Consumer>() + consumer.name.len()).sum();
        let slots = self.consumers.capacity() * size_of::<Option<Box<Consumer>>>()
            + (self.order.capacity() + self.free.capacity()) * 4;
        (size_of::<Group>() + self.name.len() + consumers + slots) as u64
    }

    /// About how many bytes the leaves of its pending entries take.
    pub(super) fn allocated_bytes(&self) -> u64 {
        let of_consumers = self.consumers().map(|consumer| consumer.pending.allocated_about());
        self.pending.allocated_about() + of_consumers.sum::<u64>()
    }

    pub(super) fn add_stats(&self, stats: &mut Stats) {
        self.pending.add_stats(stats);
        self.consumers.iter().flatten().for_each(|consumer| consumer.pending.add_stats(stats));
    }

    /// See [`Outside::count_sole`](crate::outside::Outside::count_sole).
    pub(super) fn count_sole(&self, samples: u64) -> u64 {
        self.pending.count_sole(samples)
    }

    pub(super) fn relocate(&mut self, moves: &mut Moves) {
        self.pending.relocate(moves);
        self.consumers.iter_mut().flatten().for_each(|consumer| consumer.pending.relocate(moves));
    }
}

/// Where most of the room is not used, gives back all but twice what is.
fn give_back<T>(list: &mut Vec<T>) {
    if list.capacity() > 4 * list.len().max(1) {
        list.shrink_to(2 * list.len());
    }
}
