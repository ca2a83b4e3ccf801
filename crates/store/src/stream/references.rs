//! Entries that groups still refer to, and what becomes of the references when an entry goes.
//!
//! A group refers to an entry while a consumer has yet to acknowledge it, and while it has yet to be
//! delivered. XDEL and trimming leave what is pending alone, so ids stay there that no entry has; since Redis
//! 8.2 one may ask for more.
use super::group::Group;
use super::tree::{Id, Stream};
use pack::log::{Direction, Precision, Trim};
use std::ops::ControlFlow;

/// What becomes of an entry's references when it shall go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum References {
    /// They stay.
    #[default]
    Keep,
    /// They go with it.
    Delete,
    /// The entry stays as long as there are any.
    Respect,
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Missing,
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

    /// Takes an id out of what is pending in all groups.
    fn release_everywhere(&mut self, id: Id) {
        if self.groups().any(|group| group.pending(id).is_some()) {
            self.groups_mut().for_each(|group| {
                group.release(id);
            });
        }
    }

    /// Deletes the entry `id` as far as `references` allows, and says what became of it.
    pub fn delete_with(&mut self, id: Id, references: References) -> Fate {
        match references {
            References::Keep => {}
            References::Delete => self.release_everywhere(id),
            References::Respect => {
                if self.contains(id) && self.is_referred_to(id) {
                    return Fate::Kept;
                }
            }
        }
        if self.delete(id) { Fate::Deleted } else { Fate::Missing }
    }

    /// How many entries went.
    pub fn trim_with(&mut self, trim: Trim, precision: Precision, references: References) -> u64 {
        if references == References::Keep || self.groups.is_empty() {
            return self.log.trim(trim, precision);
        }
        if references == References::Respect {
            return self.trim_unreferred(trim, precision);
        }
        // A clone costs an increment, and knows the ids of what went.
        let before = self.log.clone();
        let count = self.log.trim(trim, precision);
        for id in first_ids(&before, count, &mut |_| true, trim) {
            self.release_everywhere(id);
        }
        count
    }

    /// Entries that are referred to are passed over, those behind them may go. Leaves are not considered: few
    /// of them would go whole.
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

/// The first so many ids that trimming is about and `goes` lets go.
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
