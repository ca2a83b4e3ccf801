//! How deadlines are found again when they come: what the notes of leaves mean, and which items of the wheel
//! they rely on.
//!
//! The wheel of a shard does not hold keys. Every leaf of the keyspace carries a *note*, and every item of
//! the wheel names a range in hash order. Because it is no address, leaves can split, merge and move without
//! telling the wheel.
//!
//! | note | meaning |
//! |---|---|
//! | `u64::MAX` | no entry of the leaf has a deadline |
//! | 2 and up | no entry's deadline is earlier, and items due at just this time cover the whole leaf |
//! | `UNSURE` (0) | two leaves with different notes merged |
//! | `ASKED` (1) | as `UNSURE`, and items that are due at once cover the whole leaf |
//!
//! For a hash, the earliest deadline of its fields counts as well. Fields that are due are removed, and with
//! the last of them the key. A large hash has a wheel of its own (`hash/tree.rs`), which works by the same
//! rules ([`DeadlineNotes`]).
//!
//! When a key gets a deadline earlier than its leaf's note, the leaf's range is scheduled for it and the note
//! lowered. A later deadline costs nothing. When an item fires, the leaves that overlap its range *and whose
//! note is due* are swept: entries that are due are removed, and the earliest deadline of those that stay
//! becomes the leaf's new note, with an item of its own. A leaf whose note is later by now is skipped. So a
//! key whose deadline is moved on all the time is looked at once for each item that fires, not once for each
//! change.
//!
//! When a leaf splits, the half that has nothing due at the note gets its own note and its own item at once
//! ([`DeadlineNotes::note_half`]): about two entries are looked at for each that is inserted. If halves kept
//! the note of the whole, the first deadline in a shard would sweep all its leaves: with a million keys that
//! was 100 ms of work in the first moments, and a p99 of 40 ms.
//!
//! Why a merge of different notes must not take the smaller one: entries that come later, with later
//! deadlines, would rely on its item, which covers only one of the two old ranges; if the leaf splits again,
//! the other half waits for an item that never comes. `UNSURE` instead makes the next deadline in that leaf
//! ask for a sweep of the whole leaf, which sets it right.
use crate::expiry::deadline::Deadline;
use crate::expiry::wheel::Item;
use base::Millis;
use pack::map::{Form, LeafNote, Map, Occupied, OrderRange, Vacant};

const UNSURE: u64 = 0;
const ASKED: u64 = 1;
const FIRST_NOTE: u64 = 2;
pub(crate) const NO_DEADLINE: u64 = u64::MAX;

/// One call of [`Wheel::tidy`](crate::expiry::wheel::Wheel::tidy) looks at so many items.
pub(crate) const ITEMS_PER_TIDYING: usize = 64;

/// The due time of a shard without anything to expire.
pub(crate) const NEVER_DUE: i64 = i64::MAX;

/// An item whose range covers more leaves than this counts as needed, without a look at all of them.
const LEAVES_PER_ITEM: usize = 4;

pub(crate) fn note_of(Millis(ms): Millis) -> u64 {
    u64::try_from(ms).unwrap_or(0).max(FIRST_NOTE)
}

/// The note of a deadline: when a leaf falls due that has nothing else.
pub(crate) fn due_of(deadline: Deadline) -> u64 {
    match deadline {
        Deadline::Never => NO_DEADLINE,
        Deadline::At(at) => note_of(at),
    }
}

/// The time of a note, in milliseconds. Always less than [`NEVER_DUE`], because a note means that something
/// waits.
pub(crate) fn time_of(note: u64) -> i64 {
    i64::try_from(note).unwrap_or(NEVER_DUE).min(NEVER_DUE - 1)
}

/// An entry of a map, or the place for one, whose leaf can be asked for its note.
pub(crate) trait InLeaf {
    fn leaf_note(&self) -> LeafNote;
    fn note(&mut self, note: u64);
}

impl<V: Clone, F: Form> InLeaf for Occupied<'_, V, F> {
    fn leaf_note(&self) -> LeafNote {
        self.leaf()
    }
    fn note(&mut self, note: u64) {
        self.set_note(note);
    }
}

impl<V: Clone, F: Form> InLeaf for Vacant<'_, V, F> {
    fn leaf_note(&self) -> LeafNote {
        self.leaf()
    }
    fn note(&mut self, note: u64) {
        self.set_note(note);
    }
}

/// A wheel and the notes of the leaves that it is for: the keyspace's, or those of one hash's fields.
pub(crate) trait DeadlineNotes {
    /// Puts an item into the wheel.
    fn schedule(&mut self, due: u64, range: OrderRange);

    /// Makes sure that the entry's leaf is looked at when `note` is due. O(1), and mostly nothing is to be
    /// done.
    fn arm(&mut self, entry: &mut impl InLeaf, note: u64) {
        let leaf = entry.leaf_note();
        match leaf.note {
            UNSURE => {
                entry.note(ASKED);
                self.schedule(FIRST_NOTE, leaf.range);
            }
            ASKED => {}
            old if note < old => {
                entry.note(note);
                self.schedule(note, leaf.range);
            }
            _ => {}
        }
    }

    /// The note of half a leaf, of which the entries fall due at these times.
    fn note_half(&mut self, leaf: LeafNote, dues: &mut dyn Iterator<Item = u64>) -> u64 {
        if leaf.note < FIRST_NOTE {
            return leaf.note;
        }
        let earliest = dues.min().unwrap_or(NO_DEADLINE);
        debug_assert!(earliest >= leaf.note, "no entry is due before its leaf's note");
        if earliest > leaf.note && earliest != NO_DEADLINE {
            self.schedule(earliest, leaf.range);
        }
        earliest
    }
}

/// Whether some leaf may rely on this item: one in its range whose note is the item's time, or is `UNSURE` or
/// `ASKED`.
pub(crate) fn is_needed<V: Clone, F: Form>(map: &Map<V, F>, item: Item) -> bool {
    let mut at = item.range.first;
    for _ in 0..LEAVES_PER_ITEM {
        let Some(crowd) = map.crowd(at) else { return false };
        let LeafNote { note, range } = crowd.leaf_note();
        if note < FIRST_NOTE || note == item.due {
            return true;
        }
        match range.last.checked_add(1).filter(|next| *next <= item.range.last) {
            Some(next) => at = next,
            None => return false,
        }
    }
    true
}
