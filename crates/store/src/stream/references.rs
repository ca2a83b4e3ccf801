//! References of groups to entries, and what becomes of them when an entry is deleted.
//!
//! A group refers to an entry while a consumer has yet to acknowledge it, and while it has yet to be
//! delivered. XDEL and trimming do not touch what is pending, so ids without an entry stay there. Since Redis
//! 8.2 a command may ask for another treatment.
use super::group::Group;
use super::tree::{Id, Stream};
use pack::log::{Direction, Precision, Trim};
use std::ops::ControlFlow;

/// What is to become of an entry's references when it is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum References {
    /// They stay.
    #[default]
    Keep,
    /// They are removed with it.
    Delete,
    /// The entry is deleted only if there are none.
    Respect,
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Missing,
    /// It was missing, but groups had its id pending, and have it no longer.
    Released,
    Deleted,
    /// It stays, because it is referred to.
    Kept,
}

impl Group {
    fn refers_to(&self, id: Id) -> bool {
        self.last_id() < id || self.pending(id).is_some()
    }
}

impl Stream {
    fn is_referred_to(&self, id: Id) -> bool {
        self.groups().any(|group| group.refers_to(id))
    }

    /// Makes an id not pending any more, in all groups, and says whether it was in any.
    fn release_everywhere(&mut self, id: Id) -> bool {
        let is_pending = self.groups().any(|group| group.pending(id).is_some());
        if is_pending {
            self.groups_mut().for_each(|group| {
                group.release(id);
            });
        }
        is_pending
    }

    /// Deletes the entry `id` as far as `references` allows, and says what became of it.
    pub fn delete_with(&mut self, id: Id, references: References) -> Fate {
        let is_released = match references {
            References::Keep => false,
            References::Delete => self.release_everywhere(id),
            References::Respect if self.contains(id) && self.is_referred_to(id) => return Fate::Kept,
            References::Respect => false,
        };
        match self.delete(id) {
            true => Fate::Deleted,
            false if is_released => Fate::Released,
            false => Fate::Missing,
        }
    }

    /// Trims the stream as far as `references` allows, and returns how many entries were removed.
    pub fn trim_with(&mut self, trim: Trim, precision: Precision, references: References) -> u64 {
        if references == References::Keep || self.groups.is_empty() {
            return self.log.trim(trim, precision);
        }
        if references == References::Respect {
            return self.trim_unreferred(trim, precision);
        }
        // A clone costs an increment, and tells afterwards which ids were removed.
        let before = self.log.clone();
        let count = self.log.trim(trim, precision);
        for id in first_ids(&before, count, &mut |_| true, trim) {
            self.release_everywhere(id);
        }
        count
    }

    /// Trims entries that nothing refers to, those behind a referred one included. Entries are looked at one
    /// by one, because few leaves could be removed as a whole.
    fn trim_unreferred(&mut self, trim: Trim, precision: Precision) -> u64 {
        let excess = match trim {
            Trim::MaxLen(max) => self.len().saturating_sub(max),
            Trim::MinId(_) => u64::MAX,
        };
        let limit = match precision {
            Precision::Exact => excess,
            Precision::Leaves { entries_max } => excess.min(entries_max),
        };
        let ids = first_ids(&self.log, limit, &mut |id| !self.is_referred_to(id), trim);
        ids.into_iter().filter(|id| self.log.remove(*id)).count() as u64
    }
}

/// The first `count` ids that `trim` is about and for which `goes` says yes.
fn first_ids(log: &pack::log::Log, count: u64, goes: &mut dyn FnMut(Id) -> bool, trim: Trim) -> Vec<Id> {
    let mut ids = Vec::new();
    log.visit(Id::MIN, Direction::Up, &mut |row| {
        let is_meant = !matches!(trim, Trim::MinId(min) if row.id >= min);
        if ids.len() as u64 >= count || !is_meant {
            return ControlFlow::Break(());
        }
        if goes(row.id) {
            ids.push(row.id);
        }
        ControlFlow::Continue(())
    });
    ids
}
