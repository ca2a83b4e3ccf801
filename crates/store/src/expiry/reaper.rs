//! Removing what is due: the wheel is turned, and the leaves that it names are swept. There are two kinds of
//! things that fall due, keys (`sweep.rs`) and the fields of a large hash (`hash/tree.rs`). Each kind says as
//! [`Dues`] what becomes of one entry; the rest is the same and stands here: what counts as work, the new
//! note of a leaf, and when to look at it again. The rules are in `notes.rs`.
use crate::expiry::notes::{NO_DEADLINE, note_of};
use crate::expiry::wheel::{Item, Step, Wheel};
use base::Millis;
use pack::map::{Form, Found, Map, OrderRange, Removed, Sweep, Sweeper, Sweeping};

/// Looking at so many entries counts as much as removing one.
const LOOKS_PER_REMOVAL: u64 = 16;

/// What becomes of an entry that is looked at.
pub(crate) enum Fate {
    /// It stays, and falls due at this note.
    Stays(u64),
    /// It is due, and is removed.
    Goes,
    /// It is removed before it is due.
    Evicted,
    /// Something in it is due: [`Dues::prune`] is called next. The entry itself falls due at this note.
    Prunes(u64),
}

/// The things of one kind that fall due in the leaves of one map: keys, or fields.
pub(crate) trait Dues<V: Clone, F: Form> {
    /// Says what becomes of an entry. `removals` is how many things this sweep has removed so far.
    fn judge(&mut self, found: &Found<'_, V>, removals: u64) -> Fate;

    /// Removes what is due in an entry. Returns what becomes of the rest, and how many things were removed.
    fn prune(&mut self, _: &mut Sweeping<'_, V, F>) -> (Fate, u64) {
        (Fate::Stays(NO_DEADLINE), 0)
    }

    /// Called for each entry that was removed.
    fn removed(&mut self, key: &[u8], removed: Removed<V>);

    /// Called when all entries of the leaf that covers this range were looked at.
    fn leaf_ends(&mut self, _: OrderRange) {}
}

/// Sweeps leaves, and schedules each again for what stays in it.
pub(crate) struct Reaper<'w, D> {
    /// The wheel in which leaves are scheduled.
    wheel: &'w mut Wheel,
    pub(crate) dues: D,
    /// The earliest note of what stays in the leaf that is being swept.
    earliest: u64,
    looks: u64,
    removals: u64,
}

impl<'w, D> Reaper<'w, D> {
    pub(crate) fn new(wheel: &'w mut Wheel, dues: D) -> Reaper<'w, D> {
        Reaper { wheel, dues, earliest: NO_DEADLINE, looks: 0, removals: 0 }
    }

    /// Turns the wheel to `now` until nothing is due or `budget` is used up: a removal costs 1, and so do a
    /// step of the wheel and looking at some entries. At most about `looks_max` entries are looked at in a
    /// row, so that an item whose one leaf has become thousands holds nobody up for long. Returns how many
    /// things were removed.
    pub(crate) fn run<V: Clone, F: Form>(
        &mut self,
        map: &mut Map<V, F>,
        now: Millis,
        budget: &mut u64,
        looks_max: u64,
    ) -> u64
    where
        D: Dues<V, F>,
    {
        let before = self.removals;
        while *budget > 0 {
            let cost = match self.wheel.step(note_of(now)) {
                Step::Idle => break,
                Step::Moved => 0,
                Step::Fired(item) => {
                    let (looks, removals) = (self.looks, self.removals);
                    if let Some(rest) = map.sweep(item.range, note_of(now), looks_max, self) {
                        self.wheel.schedule(Item { due: item.due, range: rest });
                    }
                    self.removals - removals + (self.looks - looks) / LOOKS_PER_REMOVAL
                }
            };
            *budget = budget.saturating_sub(cost + 1);
        }
        self.removals - before
    }

    fn verdict(&mut self, fate: Fate) -> Sweep {
        let (due, verdict) = match fate {
            Fate::Stays(due) => (due, Sweep::Keep),
            Fate::Goes => return Sweep::Remove,
            Fate::Evicted => return Sweep::Evict,
            Fate::Prunes(due) => (due, Sweep::Prune),
        };
        self.earliest = self.earliest.min(due);
        verdict
    }
}

impl<V: Clone, F: Form, D: Dues<V, F>> Sweeper<V, F> for Reaper<'_, D> {
    fn visit(&mut self, found: Found<'_, V>) -> Sweep {
        self.looks += 1;
        let fate = self.dues.judge(&found, self.removals);
        self.verdict(fate)
    }

    fn prune(&mut self, entry: &mut Sweeping<'_, V, F>) -> Sweep {
        let (fate, removed) = self.dues.prune(entry);
        self.removals += removed;
        self.verdict(fate)
    }

    fn removed(&mut self, key: &[u8], removed: Removed<V>) {
        self.removals += 1;
        self.dues.removed(key, removed);
    }

    fn renote(&mut self, range: OrderRange) -> u64 {
        self.dues.leaf_ends(range);
        let note = std::mem::replace(&mut self.earliest, NO_DEADLINE);
        if note != NO_DEADLINE {
            self.wheel.schedule_again(Item { due: note, range });
        }
        note
    }
}
