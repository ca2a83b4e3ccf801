//! A stream: its entries in a packed log, its ids, and its groups. It is always outside its entry.
use super::group::{ConsumerId, Group};
use super::pending::Pending;
use super::radix::RadixTree;
use crate::key_info::KeyInfo;
use crate::outside::{Outside, mean_sole};
use base::Millis;
use pack::arena::Moves;
pub use pack::log::Id;
use pack::log::{Direction, Limits, Log, Pairs, Row, Visit};
use pack::map::Shared;
use std::ops::ControlFlow;

/// A stream, to read.
#[derive(Clone, Default)]
pub struct Stream {
    pub(super) log: Log,
    last_id: Id,
    max_deleted_id: Id,
    entries_added: u64,
    /// The groups, in the order of their names.
    pub(super) groups: Vec<Shared<Group>>,
}

/// A consumer that is given entries, by its group and number.
#[derive(Clone, Copy, Debug)]
pub struct Member<'m> {
    pub group: &'m [u8],
    pub consumer: ConsumerId,
    pub now: Millis,
}

/// Whether what is delivered has to be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgment {
    Awaited,
    /// NOACK
    Waived,
}

impl Stream {
    /// How many entries there are; a stream may be empty.
    #[allow(clippy::len_without_is_empty, reason = "an empty stream is like any other")]
    pub fn len(&self) -> u64 {
        self.log.len()
    }

    /// The greatest id that was ever given, or set.
    pub fn last_id(&self) -> Id {
        self.last_id
    }

    /// The greatest id that was deleted by name.
    pub fn max_deleted_id(&self) -> Id {
        self.max_deleted_id
    }

    /// How many entries were ever added.
    pub fn entries_added(&self) -> u64 {
        self.entries_added
    }

    /// The id of the first entry; the least id where there is none.
    pub fn first_id(&self) -> Id {
        self.log.first_id().unwrap_or(Id::MIN)
    }

    /// The id of the last entry; None where there is none.
    pub fn last_entry_id(&self) -> Option<Id> {
        self.log.last_id()
    }

    /// Whether there is an entry `id`.
    pub fn contains(&self, id: Id) -> bool {
        self.log.contains(id)
    }

    /// Lends the entry `id`; None where it is not there.
    pub fn find<R>(&self, id: Id, look: impl FnOnce(&Row<'_>) -> R) -> Option<R> {
        self.log.find(id, look)
    }

    /// Visits entries from `from` on, itself included, until told to stop.
    pub fn visit(&self, from: Id, direction: Direction, visit: &mut Visit<'_>) {
        self.log.visit(from, direction, visit);
    }

    /// How many entries there are between two ids, both included. It takes two descents.
    pub fn count_between(&self, ids: (Id, Id)) -> u64 {
        self.log.count_between(ids)
    }

    /// Adds an entry. Its id is greater than the last.
    #[inline]
    pub fn add(&mut self, id: Id, pairs: &impl Pairs, limits: &Limits) {
        self.log.append(id, pairs, limits);
        self.count_added(id, 1);
    }

    /// So many entries were added, this the last.
    #[inline]
    pub(super) fn count_added(&mut self, last: Id, count: u64) {
        self.last_id = last;
        // RESTORE and XSETID set it to any number; behind the last comes 0, as in Redis.
        self.entries_added = self.entries_added.wrapping_add(count);
    }

    /// Deletes an entry, and returns whether it was there.
    pub fn delete(&mut self, id: Id) -> bool {
        let was_there = self.log.remove(id);
        if was_there {
            self.max_deleted_id = self.max_deleted_id.max(id);
        }
        was_there
    }

    /// Sets what [`Stream::last_id`] returns (XSETID).
    pub fn set_last_id(&mut self, id: Id) {
        self.last_id = id;
    }

    /// Sets what [`Stream::entries_added`] returns (XSETID).
    pub fn set_entries_added(&mut self, count: u64) {
        self.entries_added = count;
    }

    /// Sets what [`Stream::max_deleted_id`] returns (XSETID).
    pub fn set_max_deleted_id(&mut self, id: Id) {
        self.max_deleted_id = id;
    }

    /// Gives a consumer the next entries that its group has not given to anybody, at most `count`, and moves
    /// the group on. Returns how many there were.
    pub fn deliver(
        &mut self,
        member: Member<'_>,
        count: Option<u64>,
        acknowledgment: Acknowledgment,
        give: &mut dyn FnMut(&Row<'_>),
    ) -> u64 {
        let history = self.history();
        let Ok(index) = self.group_index(member.group) else { return 0 };
        let group = self.groups[index].make_mut();
        let Some(from) = group.last_id().next() else { return 0 };
        let mut given = 0;
        self.log.visit(from, Direction::Up, &mut |row| {
            if count.is_some_and(|count| given >= count) {
                return ControlFlow::Break(());
            }
            give(row);
            given += 1;
            let entries_read = history.entries_read_with(group, row.id);
            group.set_progress(row.id, entries_read);
            if acknowledgment == Acknowledgment::Awaited {
                let Member { consumer, now, .. } = member;
                group.hold(Pending { id: row.id, consumer, delivered: now, count: 1 });
            }
            ControlFlow::Continue(())
        });
        given
    }

    /// All groups, in the order of their names.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = &Group> {
        self.groups.iter().map(|group| &**group)
    }

    /// The group of this name; None where there is none.
    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.group_index(name).ok().map(|index| &*self.groups[index])
    }

    /// The group of this name, to be edited. If a copy of the stream shares it, it is copied first, all but
    /// its leaves of pending entries.
    pub fn group_mut(&mut self, name: &[u8]) -> Option<&mut Group> {
        let index = self.group_index(name).ok()?;
        Some(self.groups[index].make_mut())
    }

    /// All groups in the order of their names, to be edited: each that a copy shares is copied first.
    pub fn groups_mut(&mut self) -> impl Iterator<Item = &mut Group> {
        self.groups.iter_mut().map(Shared::make_mut)
    }

    /// Creates a group, and returns whether it did: false where there is one of this name, which stays as it
    /// is.
    pub fn create_group(&mut self, name: &[u8], last_id: Id, entries_read: Option<u64>) -> bool {
        match self.group_index(name) {
            Ok(_) => false,
            Err(index) => {
                self.groups.insert(index, Shared::new(Group::new(name, last_id, entries_read)));
                true
            }
        }
    }

    /// Deletes a group, and returns whether it was there.
    pub fn destroy_group(&mut self, name: &[u8]) -> bool {
        let index = self.group_index(name);
        index.map(|index| self.groups.remove(index)).is_ok()
    }

    fn group_index(&self, name: &[u8]) -> Result<usize, usize> {
        self.groups.binary_search_by(|group| group.name().cmp(name))
    }

    /// How many groups it has, and consumers of them.
    pub(crate) fn parts(&self) -> u64 {
        self.groups().map(|group| 1 + group.consumers().len() as u64).sum()
    }

    /// Visits the ids that the leaves began with.
    pub fn for_each_leaf(&self, visit: &mut dyn FnMut(Id)) {
        self.log.for_each_base(visit);
    }

    /// The effort by which Redis decides whether to free a stream in the background, counted until it exceeds
    /// `max`: the nodes of its radix tree, and for each group one and as many as the first group has pending
    /// entries.
    pub(crate) fn freeing_effort(&self, max: u64) -> u64 {
        let mut radix = RadixTree::default();
        let walk = self.log.visit_bases(&mut |id| {
            radix.push(id);
            // Each key has at least one node.
            if radix.keys() > max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let nodes = if walk.is_break() { max + 1 } else { radix.nodes() };
        let pending = self.groups().next().map_or(0, Group::pending_len);
        nodes + self.groups.len() as u64 * (1 + pending)
    }
}

/// How many bytes a pending entry and a consumer are taken for where the size of a stream is estimated.
const PENDING_BYTES: u64 = 50;
const CONSUMER_BYTES: u64 = 256;

impl Outside for Stream {
    fn len(&self) -> u64 {
        Stream::len(self)
    }

    fn encoding(&self) -> &'static str {
        "stream"
    }

    fn bytes(&self) -> u64 {
        let of_group = |group: &Group| {
            group.pending_len() * PENDING_BYTES + group.consumers().len() as u64 * CONSUMER_BYTES
        };
        self.log.bytes_about() + self.groups().map(of_group).sum::<u64>()
    }

    fn allocated_bytes(&self) -> u64 {
        let of_group = |group: &Group| group.own_bytes() + group.allocated_bytes();
        size_of::<Stream>() as u64 + self.log.allocated_about() + self.groups().map(of_group).sum::<u64>()
    }

    fn count_sole(&self, samples: u64) -> u64 {
        let is_alone = |group: &&Shared<Group>| !group.is_shared();
        let alone = self.groups.iter().filter(is_alone).max_by_key(|group| group.pending_len());
        let pending = (alone.map_or(0, |group| group.pending_len()), || {
            alone.map_or(0, |group| group.count_sole(samples))
        });
        mean_sole((self.log.len(), || self.log.count_sole(samples)), pending)
    }

    /// Positions are numbers of leaves. Groups are moved with the first: what they keep is little beside the
    /// entries.
    fn relocate(&mut self, from: u64, effort: u64, moves: &mut Moves) -> Option<u64> {
        if from == 0 {
            for group in self.groups.iter_mut().filter(|group| !group.is_shared()) {
                group.make_mut().relocate(moves);
            }
        }
        self.log.relocate(from, effort, moves)
    }

    fn describe(&self, info: &mut KeyInfo) {
        info.len = Stream::len(self);
        info.stats = self.log.stats();
        self.groups().for_each(|group| group.add_stats(&mut info.stats));
        let groups_bytes: u64 = self.groups().map(Group::own_bytes).sum();
        let own_bytes = size_of::<Stream>() as u64 + groups_bytes;
        let leaves_bytes = info.stats.allocated_bytes();
        info.add_outside(own_bytes, own_bytes);
        info.memory_bytes += leaves_bytes;
        let leaves = [info.stats.rows, info.stats.columns];
        info.nodes.leaves = leaves.iter().map(|kind| kind.nodes).sum();
        info.nodes.uncompressed_bytes = leaves.iter().map(|kind| kind.used_bytes).sum();
        info.serialized_bytes = info.nodes.uncompressed_bytes;
    }
}
