//! How far a group has read: the number of entries that it has read, where that can be known, and of those
//! ahead of it.
//!
//! Nobody counts the entries before an id. But a stream knows how many it ever got and how many it has, so
//! the count is known at its ends; from there a group counts on by itself, entry by entry. What was deleted
//! in the middle (a *tombstone*, here the greatest deleted id) makes both uncertain until the group is past
//! it. The rules are those of Redis 7.0 and later, because clients see the numbers.
use super::group::Group;
use super::tree::{Id, Stream};

/// What a stream knows of its past. The counts of its groups follow from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct History {
    len: u64,
    first_id: Id,
    last_id: Id,
    max_deleted_id: Id,
    entries_added: u64,
}

impl Stream {
    pub(super) fn history(&self) -> History {
        History {
            len: self.len(),
            first_id: self.first_id(),
            last_id: self.last_id(),
            max_deleted_id: self.max_deleted_id(),
            entries_added: self.entries_added(),
        }
    }

    /// How many entries were ever added up to `id`, that one included; None where that is not known.
    pub fn entries_up_to(&self, id: Id) -> Option<u64> {
        self.history().entries_up_to(id)
    }

    /// How many entries a group has yet to be given; None where that is not known.
    pub fn lag(&self, group: &Group) -> Option<u64> {
        self.history().lag(group)
    }
}

impl History {
    /// How many entries were ever added up to `id`, that one included; None where that is not known.
    fn entries_up_to(&self, id: Id) -> Option<u64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        if self.len == 0 && id <= self.last_id {
            return Some(self.entries_added);
        }
        if id != Id::MIN && id < self.max_deleted_id {
            return None;
        }
        if id >= self.last_id {
            return (id == self.last_id).then_some(self.entries_added);
        }
        let has_tombstones = self.max_deleted_id != Id::MIN && self.max_deleted_id >= self.first_id;
        if has_tombstones || id > self.first_id {
            return None;
        }
        let gone = self.entries_added.saturating_sub(self.len);
        Some(gone + u64::from(id == self.first_id))
    }

    /// Whether something may have been deleted among the entries behind `after`.
    fn has_tombstones_behind(&self, after: Id) -> bool {
        let deleted = self.max_deleted_id;
        self.len > 0 && deleted != Id::MIN && self.first_id <= deleted && after <= deleted
    }

    fn lag(&self, group: &Group) -> Option<u64> {
        if self.entries_added == 0 || self.len == 0 {
            return Some(0);
        }
        if group.last_id() < self.first_id && self.max_deleted_id < self.first_id {
            return Some(self.len);
        }
        let counted = group.entries_read().filter(|_| !self.has_tombstones_behind(group.last_id()));
        let read = counted.or_else(|| self.entries_up_to(group.last_id()))?;
        Some(self.entries_added.wrapping_sub(read))
    }

    /// How many entries a group has read once it is given `id`, the next entry.
    pub(super) fn entries_read_with(&self, group: &Group, id: Id) -> Option<u64> {
        match group.entries_read() {
            Some(read)
                if group.last_id() >= self.first_id && !self.has_tombstones_behind(group.last_id()) =>
            {
                Some(read + 1)
            }
            read if self.entries_added == 0 => read,
            _ => self.entries_up_to(id),
        }
    }
}
