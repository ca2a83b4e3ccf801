//! A hash outside its entry: a map by the hash of the field (`pack::map`, in the form of `pack::fields`),
//! beside it a map of integers (`pack::int_map`), with what OBJECT ENCODING must know, and the deadlines of
//! fields.
//!
//! ```text
//!   young: the first map, one leaf, fields in the order in which they came
//!     |    the leaf is full
//!   grown: fields that are integers, with integers as values and no deadline, lie in the second map
//! ```
//!
//! A field of the second map takes two to five bytes, where an entry of the first takes seven and more. It
//! moves to the first map when it gets a deadline or a value that is no integer. Fields move the other way
//! only when the one leaf is full, so a walk that visits the second map before the first misses none.
//!
//! A hash of which no field ever had a deadline keeps nothing for them. With the first one it gets a wheel of
//! its own, which works as the keyspace's does (`expiry/notes.rs`): ranges of hashes wait in it, leaves have
//! notes. When it next has to turn is the hash's due time; the keyspace counts it among the deadlines of its
//! leaf, so the sweeper comes by.
//!
//! On the path of every request on a large hash: nothing here allocates but leaves and what lies outside
//! them.
use crate::expiry::deadline::Deadline;
use crate::expiry::notes::{DeadlineNotes, ITEMS_PER_TIDYING, due_of, is_needed, note_of};
use crate::expiry::reaper::{Dues, Fate, Reaper};
use crate::expiry::wheel::{Item as Waiting, Wheel};
use crate::field_names::Names;
use crate::halt::{Halt, Stage};
use crate::hash::field::Kept;
use crate::hash::image::INSIDE;
use crate::hash::name::HashName;
use crate::key_info::{KeyInfo, string_dump_bytes};
use crate::keyspace::garbage::Garbage;
use crate::outside::{Outside, mean_sole};
use crate::position::{Position, cell, walk_cells};
use base::hash::Seed;
use base::random::Random;
use base::text::{I64Text, i64_len};
use base::{Item, Millis};
use pack::arena::{Moves, footprint_bytes, relocate_box, relocate_vec};
use pack::fields::{Field, Fields, LEAF_LEN_MAX, field_of};
use pack::int_map::IntMap;
use pack::map::{Entry, Found, LeafNote, Map, Notes, OrderRange, Removed, Shared, Stop};
use std::ops::ControlFlow;

/// A sweep looks at a leaf or a little more: all of a leaf's fields may be due, and each that goes moves the
/// others.
const LOOKS_PER_SWEEP: u64 = 64;
/// A value of more bytes is freed in the background: it would hold a worker up.
const DROPPED_BYTES_MAX: usize = 1 << 20;

/// A hash outside its entry.
#[derive(Clone)]
pub(crate) struct HashTree {
    pub(super) map: Map<Vec<u8>, Fields>,
    /// The second map: integer fields with integer values and no deadline. None instead of an empty map.
    pub(super) ints: Option<Box<IntMap>>,
    pub(super) is_grown: bool,
    /// How long the text of all fields and values is together.
    pub(super) text_bytes: u64,
    pub(crate) name: HashName,
    timed: Option<Box<Timed>>,
}

/// What a hash of which some field had a deadline keeps for them.
#[derive(Clone, Default)]
struct Timed {
    wheel: Option<Box<Wheel>>,
    /// How many fields have a deadline now.
    fields: u64,
}

/// What an edit of a field's deadline does to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// The field has no deadline.
    Endless,
    /// The field's deadline stays as it was.
    Kept,
    Until(Millis),
}

/// What was there before a field was written or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    Nothing,
    /// One past its deadline, which counts as removed and was not yet.
    Overdue,
    Field,
}

/// What an edit of a tree needs to know: the seed that fields are hashed with, and the time.
#[derive(Clone, Copy)]
pub(crate) struct At<'s> {
    pub(crate) seed: &'s Seed,
    pub(crate) now: Millis,
}

impl HashTree {
    pub(crate) fn new(name: HashName) -> HashTree {
        HashTree { map: Map::new(), ints: None, is_grown: false, text_bytes: 0, name, timed: None }
    }

    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.map.len() + self.ints_len()
    }

    /// About what the hash takes: the text of all fields and values, and four bytes for each field.
    pub(crate) fn bytes(&self) -> u64 {
        self.text_bytes + 4 * self.len()
    }

    /// Whether it is small enough to return into its entry, if its texts are not too long for an image.
    #[inline]
    pub(crate) fn is_small(&self) -> bool {
        INSIDE.takes_back(self.bytes() as usize, self.len())
    }

    /// What is kept for a field, whatever its deadline.
    #[inline]
    pub(crate) fn find(&self, seed: &Seed, field: &[u8]) -> Option<Kept<'_>> {
        let name = Item::classify(field);
        if let Some(value) = self.int_value(name) {
            return Some(Kept::endless(value));
        }
        self.map.find(seed.hash(field), Field::of(name).name()).map(|found| Kept::of(&found))
    }

    #[inline]
    fn ints_len(&self) -> u64 {
        self.ints.as_ref().map_or(0, |ints| ints.len())
    }

    /// The value of a field of the map of integers; None where the field is not there.
    #[inline]
    fn int_value(&self, name: Item<'_>) -> Option<i64> {
        match (name, &self.ints) {
            (Item::Int(key), Some(ints)) => ints.get(key),
            _ => None,
        }
    }

    /// Writes a field, and returns what was there; one past its deadline counts as removed. Large values that
    /// were replaced are left in `freed`.
    #[inline]
    pub(crate) fn put(
        &mut self,
        at: At<'_>,
        field: &[u8],
        value: Item<'_>,
        lifetime: Lifetime,
        freed: &mut Vec<Garbage>,
    ) -> Before {
        match Item::classify(field) {
            Item::Int(key) => self.put_int(at, (key, field), value, lifetime, freed),
            name => self.put_in_map(at, (name, field), value, lifetime, freed),
        }
    }

    /// [`HashTree::put`] for a field that is an integer, which may lie in either map.
    fn put_int(
        &mut self,
        at: At<'_>,
        (key, field): (i64, &[u8]),
        value: Item<'_>,
        lifetime: Lifetime,
        freed: &mut Vec<Garbage>,
    ) -> Before {
        let name = Item::Int(key);
        if let (Item::Int(number), Lifetime::Endless | Lifetime::Kept) = (value, lifetime) {
            // First, because it may move this very field.
            let takes_ints = self.takes_ints(at.seed);
            if let Some(old) = self.ints.as_mut().and_then(|ints| ints.replace(key, number)) {
                if number != old {
                    self.text_bytes += i64_len(number) as u64;
                    self.text_bytes -= i64_len(old) as u64;
                }
                return Before::Field;
            }
            if takes_ints && (self.map.is_empty() || !self.has_in_map(at.seed, name, field)) {
                self.ints.get_or_insert_default().add(key, number);
                self.text_bytes += (i64_len(key) + i64_len(number)) as u64;
                return Before::Nothing;
            }
        }
        let was_int = self.take_int(name);
        let before = self.put_in_map(at, (name, field), value, lifetime, freed);
        if was_int { Before::Field } else { before }
    }

    fn has_in_map(&self, seed: &Seed, name: Item<'_>, field: &[u8]) -> bool {
        self.map.find(seed.hash(field), Field::of(name).name()).is_some()
    }

    /// Whether a new integer field with an integer value goes to the map of integers: it does once the first
    /// leaf of the other map has been full. The first call that finds this moves the integers of that leaf
    /// too.
    fn takes_ints(&mut self, seed: &Seed) -> bool {
        if !self.is_grown && self.map.len() >= LEAF_LEN_MAX {
            self.is_grown = true;
            self.gather_ints(seed);
        }
        self.is_grown
    }

    /// Integers with integer values that came before the first leaf was full move to the map of integers.
    #[cold]
    fn gather_ints(&mut self, seed: &Seed) {
        let mut gathered = Vec::new();
        self.map.for_each(&mut |found| {
            let (field, kept) = (field_of(found.meta, found.key), Kept::of(&found));
            if let (Item::Int(key), Item::Int(value), Deadline::Never) = (field, kept.value, kept.deadline) {
                gathered.push((key, value));
            }
        });
        for (key, value) in gathered {
            let mut text = I64Text::new();
            let hash = seed.hash(text.format(key));
            self.map.remove(seed, hash, Field::of(Item::Int(key)).name());
            self.ints.get_or_insert_default().add(key, value);
        }
    }

    /// Removes a field from the map of integers, and returns whether it was there.
    fn take_int(&mut self, name: Item<'_>) -> bool {
        let (Item::Int(key), Some(ints)) = (name, &mut self.ints) else { return false };
        let Some(value) = ints.remove(key) else { return false };
        if ints.is_empty() {
            self.ints = None;
        }
        self.text_bytes -= (i64_len(key) + i64_len(value)) as u64;
        true
    }

    #[inline]
    fn put_in_map(
        &mut self,
        at: At<'_>,
        (name, field): (Item<'_>, &[u8]),
        value: Item<'_>,
        lifetime: Lifetime,
        freed: &mut Vec<Garbage>,
    ) -> Before {
        let (name, hash) = (Field::of(name), at.seed.hash(field));
        let mut notes = FieldNotes { now: at.now, timed: &mut self.timed };
        let before = match self.map.entry(at.seed, hash, name.name()) {
            Entry::Vacant(mut entry) => {
                let kept = Kept { value, deadline: lifetime.deadline(Deadline::Never) };
                self.text_bytes += (field.len() + value.len()) as u64;
                notes.change(&mut entry, Deadline::Never, kept.deadline);
                kept.lay_out(|meta, inline| entry.insert(meta, inline, kept.outside(), &mut notes));
                self.is_grown |= !self.map.is_one_leaf();
                Before::Nothing
            }
            Entry::Occupied(mut entry) => {
                let old = Kept::of(&entry.found());
                let is_overdue = old.deadline.is_past(at.now);
                let deadline = if is_overdue { Deadline::Never } else { old.deadline };
                let (old_deadline, kept) =
                    (old.deadline, Kept { value, deadline: lifetime.deadline(deadline) });
                self.text_bytes += value.len() as u64;
                self.text_bytes -= old.value.len() as u64;
                notes.change(&mut entry, old_deadline, kept.deadline);
                let outside = kept.outside();
                kept.lay_out(|meta, inline| match outside {
                    None if entry.overwrite(meta, inline) => {}
                    outside => free(entry.replace(meta, inline, outside, &mut notes), freed),
                });
                if is_overdue { Before::Overdue } else { Before::Field }
            }
        };
        self.tidy_wheel();
        before
    }

    /// Drops some items of the wheel that were left by fields which were removed before their deadline.
    #[inline]
    fn tidy_wheel(&mut self) {
        if let Some(Timed { wheel: Some(wheel), .. }) = self.timed.as_deref_mut()
            && wheel.is_untidy()
        {
            wheel.tidy(ITEMS_PER_TIDYING, |item| is_needed(&self.map, item));
        }
    }

    /// Gives a field another deadline. Its value stays. O(log fields).
    pub(crate) fn set_deadline(&mut self, at: At<'_>, field: &[u8], deadline: Deadline) {
        let name = Item::classify(field);
        if let Some(value) = self.int_value(name) {
            if let Deadline::At(due) = deadline {
                self.take_int(name);
                let lifetime = Lifetime::Until(due);
                self.put_in_map(at, (name, field), Item::Int(value), lifetime, &mut Vec::new());
            }
            return;
        }
        let (name, hash) = (Field::of(name), at.seed.hash(field));
        let mut notes = FieldNotes { now: at.now, timed: &mut self.timed };
        let Entry::Occupied(mut entry) = self.map.entry(at.seed, hash, name.name()) else { return };
        let found = entry.found();
        let old = Kept::of(&found);
        let (old_deadline, is_outside) = (old.deadline, found.outside.is_some());
        let mut text = Vec::new();
        // A value outside stays where it is: only the bytes before the pointer are written.
        let value = match old.value {
            Item::Int(n) => Item::Int(n),
            Item::Bytes(_) if is_outside => Item::Bytes(&[]),
            Item::Bytes(bytes) => {
                text.extend_from_slice(bytes);
                Item::Bytes(&text)
            }
        };
        notes.change(&mut entry, old_deadline, deadline);
        Kept { value, deadline }.lay_out(|meta, inline| entry.replace_inline(meta, inline, &mut notes));
        self.tidy_wheel();
    }

    /// Removes a field, and returns what was there. A large value is left in `freed`.
    pub(crate) fn remove(&mut self, at: At<'_>, field: &[u8], freed: &mut Vec<Garbage>) -> Before {
        let name = Item::classify(field);
        if self.take_int(name) {
            return Before::Field;
        }
        let (name, hash) = (Field::of(name), at.seed.hash(field));
        let Entry::Occupied(entry) = self.map.entry(at.seed, hash, name.name()) else {
            return Before::Nothing;
        };
        let kept = Kept::of(&entry.found());
        let deadline = kept.deadline;
        self.text_bytes -= (field.len() + kept.value.len()) as u64;
        free(entry.discard(), freed);
        forget(&mut self.timed, deadline);
        if deadline.is_past(at.now) { Before::Overdue } else { Before::Field }
    }

    /// Every field with what is kept for it, those past their deadline included, until told to stop: those of
    /// the map of integers in ascending order, then the others in hash order of leaves.
    pub(crate) fn visit(
        &self,
        visit: &mut dyn FnMut(Item<'_>, Kept<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if let Some(ints) = &self.ints {
            ints.visit(&mut |key, value| visit(Item::Int(key), Kept::endless(value)))?;
        }
        self.map.visit(&mut |found| visit(field_of(found.meta, found.key), Kept::of(&found)))
    }

    /// As [`HashTree::visit`], from a halt on; the hash must not change between the calls. Returns the halt
    /// behind the last field visited, None at the end.
    pub(crate) fn visit_from(
        &self,
        from: Halt,
        visit: &mut dyn FnMut(Item<'_>, Kept<'_>) -> ControlFlow<()>,
    ) -> Option<Halt> {
        let stop = match from.0 {
            Stage::Text(stop) => stop,
            Stage::Int(first) => {
                let mut last = first;
                let flow = self.ints.as_ref().map_or(ControlFlow::Continue(()), |ints| {
                    ints.visit_from(first, &mut |key, value| {
                        last = key;
                        visit(Item::Int(key), Kept::endless(value))
                    })
                });
                if flow.is_break() {
                    return Some(Halt::behind(last));
                }
                Stop::default()
            }
            Stage::Image(_) => unreachable!("a hash that does not change stays where it is"),
        };
        let stop =
            self.map.visit_from(stop, &mut |found| visit(field_of(found.meta, found.key), Kept::of(&found)));
        stop.map(|stop| Halt(Stage::Text(stop)))
    }

    /// Visits about `count` fields from a position on ([`crate::position`]; 0: the beginning) and returns the
    /// position after them, 0 at the end. A walk visits each field that stays at least once. The map of
    /// integers comes first: a field that moves to the other map meanwhile is visited there.
    pub(crate) fn scan(
        &self,
        seed: &Seed,
        from: u64,
        count: u64,
        visit: &mut dyn FnMut(Item<'_>, Kept<'_>),
    ) -> u64 {
        let mut seen = 0;
        let (first, mut place) = match Position::of(from) {
            Position::Text(0) => (Some(i64::MIN), 0),
            Position::Text(place) => (None, place),
            Position::Int(first) => (Some(first), 0),
        };
        let next = first.zip(self.ints.as_ref()).and_then(|(first, ints)| {
            walk_cells(first, |from| {
                let next = ints.scan(from, &mut |key, value| {
                    seen += 1;
                    visit(Item::Int(key), Kept::endless(value));
                });
                (next, seen >= count)
            })
        });
        if let Some(next) = next {
            return next;
        }
        while let Some(next) = self.map.scan(seed, place, &mut |found| {
            seen += 1;
            visit(field_of(found.meta, found.key), Kept::of(&found));
        }) {
            place = next;
            if seen >= count {
                return u64::from(next);
            }
        }
        0
    }

    /// A field chosen uniformly, past its deadline or not.
    pub(crate) fn random(&self, random: &mut Random) -> Option<(Item<'_>, Kept<'_>)> {
        if let Some(ints) = &self.ints
            && random.below(self.len()) < ints.len()
        {
            let (key, value) = ints.random(random)?;
            return Some((Item::Int(key), Kept::endless(value)));
        }
        let found = self.map.random(random)?;
        Some((field_of(found.meta, found.key), Kept::of(&found)))
    }

    /// Whether some field has a deadline.
    pub(crate) fn is_timed(&self) -> bool {
        self.timed.as_ref().is_some_and(|timed| timed.fields > 0)
    }

    /// A time before which no field is due, as a note; None where no field has a deadline. O(1).
    pub(crate) fn due(&self) -> Option<u64> {
        let timed = self.timed.as_ref().filter(|timed| timed.fields > 0)?;
        timed.wheel.as_ref()?.next_due()
    }

    /// Removes fields that are due, at most about `max`, and returns how many. [`HashTree::due`] tells
    /// whether there are more.
    pub(crate) fn expire(
        &mut self,
        now: Millis,
        max: u64,
        (freed, names): (&mut Vec<Garbage>, &mut Names),
    ) -> u64 {
        let HashTree { map, text_bytes, timed, .. } = self;
        let Some(Timed { wheel: Some(wheel), fields }) = timed.as_deref_mut() else { return 0 };
        let dues = FieldDues { now, text_bytes, freed, names };
        let mut budget = max;
        let removed = Reaper::new(wheel, dues).run(map, now, &mut budget, LOOKS_PER_SWEEP);
        *fields -= removed;
        if *fields == 0 && wheel.is_empty() {
            self.timed = None;
        }
        removed
    }
}

impl Lifetime {
    pub(crate) fn deadline(self, before: Deadline) -> Deadline {
        match self {
            Lifetime::Endless => Deadline::Never,
            Lifetime::Kept => before,
            Lifetime::Until(at) => Deadline::At(at),
        }
    }
}

/// Counts the removal of a field with this deadline.
fn forget(timed: &mut Option<Box<Timed>>, deadline: Deadline) {
    if deadline != Deadline::Never
        && let Some(timed) = timed
    {
        timed.fields -= 1;
    }
}

/// Frees a value that lay outside its entry: at once, or in the background (`freed`) if it is long and nobody
/// else holds it.
fn free(outside: Option<Shared<Vec<u8>>>, freed: &mut Vec<Garbage>) {
    if let Some(text) = outside
        && text.len() > DROPPED_BYTES_MAX
        && !text.is_shared()
    {
        freed.push(Garbage::of_bytes(text.len() as u64, text));
    }
}

/// The wheel of a tree that is being edited, made with the first deadline.
struct FieldNotes<'t> {
    now: Millis,
    timed: &'t mut Option<Box<Timed>>,
}

impl FieldNotes<'_> {
    #[inline]
    fn change(&mut self, entry: &mut impl crate::expiry::notes::InLeaf, old: Deadline, new: Deadline) {
        if old == new {
            return;
        }
        forget(self.timed, old);
        if let Deadline::At(at) = new {
            self.timed.get_or_insert_default().fields += 1;
            self.arm(entry, note_of(at));
        }
    }
}

impl DeadlineNotes for FieldNotes<'_> {
    fn schedule(&mut self, due: u64, range: OrderRange) {
        let now = note_of(self.now);
        let wheel = &mut self.timed.get_or_insert_default().wheel;
        wheel.get_or_insert_with(|| Box::new(Wheel::new(now))).schedule(Waiting { due, range });
    }
}

impl Notes<Vec<u8>> for FieldNotes<'_> {
    fn after_split(&mut self, leaf: LeafNote, entries: &mut dyn Iterator<Item = Found<'_, Vec<u8>>>) -> u64 {
        self.note_half(leaf, &mut entries.map(|found| earliest_of(&found)))
    }
}

fn earliest_of(found: &Found<'_, Vec<u8>>) -> u64 {
    due_of(Kept::deadline_of(found.meta, found.inline))
}

/// What a sweep does to the fields of a hash: it removes those that are due.
struct FieldDues<'t> {
    now: Millis,
    text_bytes: &'t mut u64,
    freed: &'t mut Vec<Garbage>,
    /// Takes the names of the fields that go, where somebody wants them.
    names: &'t mut Names,
}

impl Dues<Vec<u8>, Fields> for FieldDues<'_> {
    fn judge(&mut self, found: &Found<'_, Vec<u8>>, _: u64) -> Fate {
        let kept = Kept::of(found);
        if !kept.deadline.is_past(self.now) {
            return Fate::Stays(due_of(kept.deadline));
        }
        let field = field_of(found.meta, found.key);
        *self.text_bytes -= (field.len() + kept.value.len()) as u64;
        if let Some(names) = self.names {
            let mut name = Vec::new();
            field.append_to(&mut name);
            names.push(name.into());
        }
        Fate::Goes
    }

    fn removed(&mut self, _: &[u8], removed: Removed<Vec<u8>>) {
        free(removed.outside, self.freed);
    }
}

impl Outside for HashTree {
    fn len(&self) -> u64 {
        HashTree::len(self)
    }

    fn encoding(&self) -> &'static str {
        self.name.text()
    }

    fn bytes(&self) -> u64 {
        HashTree::bytes(self)
    }

    fn allocated_bytes(&self) -> u64 {
        let ints = self.ints.as_ref();
        // How long all texts are is known, so of those in leaves that are looked at only what they take
        // besides counts for the others: then a few long values among many short ones are no matter. Where
        // there are integers too, it is not known how much of it is theirs.
        let (texts_bytes, known) = if ints.is_none() { (self.text_bytes, -1) } else { (0, 0) };
        let map_bytes = self.map.allocated_about(&|found| {
            let text_bytes = field_of(found.meta, found.key).len() + Kept::of(&found).value.len();
            found.outside.map_or(0, |text| text.capacity() as i64) + known * text_bytes as i64
        });
        let wheel = self.timed.as_ref().and_then(|timed| timed.wheel.as_ref());
        texts_bytes.saturating_add_signed(map_bytes)
            + ints.map_or(0, |ints| footprint_bytes(size_of::<IntMap>()) as u64 + ints.allocated_about())
            + wheel.map_or(0, |wheel| wheel.allocated_bytes())
    }

    fn count_sole(&self, samples: u64) -> u64 {
        let map = self.ints.as_deref();
        let ints = (map.map_or(0, IntMap::len), || map.map_or(0, |map| map.count_sole(samples)));
        mean_sole(ints, (self.map.len(), || self.map.count_sole(samples)))
    }

    fn relocate(&mut self, from: u64, effort: u64, moves: &mut Moves) -> Option<u64> {
        if from == 0
            && let Some(timed) = self.timed.take()
        {
            let mut timed = relocate_box(timed);
            if let Some(wheel) = timed.wheel.take() {
                let mut wheel = relocate_box(wheel);
                wheel.relocate(moves);
                timed.wheel = Some(wheel);
            }
            self.timed = Some(timed);
        }
        if from == 0
            && let Some(ints) = self.ints.take()
        {
            self.ints = Some(relocate_box(ints));
        }
        let first = match Position::of(from) {
            Position::Int(first) => first,
            Position::Text(place) => {
                let next = self.map.relocate(place, effort, moves, &mut |_, text, moves| {
                    let has_moved = relocate_vec(text);
                    moves.note(has_moved, text.len());
                });
                if next.is_some() {
                    return next.map(u64::from);
                }
                let first = self.ints.as_ref()?.first()?;
                if moves.effort() >= effort {
                    return Some(cell(first));
                }
                first
            }
        };
        let ints = self.ints.as_mut()?;
        walk_cells(first, |from| (ints.relocate(from, effort, moves), true))
    }

    fn describe(&self, info: &mut KeyInfo) {
        let (mut texts_bytes, mut dump_bytes) = (0, 0);
        self.map.for_each(&mut |found| texts_bytes += found.outside.map_or(0, |text| text.capacity() as u64));
        // Of all: integers, which come first, tell nothing of texts.
        let _ = self.visit(&mut |field, kept| {
            dump_bytes += string_dump_bytes(field) + string_dump_bytes(kept.value);
            ControlFlow::Continue(())
        });
        let mut stats = self.map.stats();
        if let Some(ints) = &self.ints {
            stats.merge(&ints.stats());
            info.memory_bytes += footprint_bytes(size_of::<IntMap>()) as u64;
        }
        info.add_fields(self.len(), stats, dump_bytes);
        let wheel = self.timed.as_ref().and_then(|timed| timed.wheel.as_ref());
        info.memory_bytes += texts_bytes + wheel.map_or(0, |wheel| wheel.allocated_bytes());
    }
}
