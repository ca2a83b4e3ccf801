//! Hashes: an image inside the keyspace entry while they are small (`pack::pairs`), in the order in which
//! fields came; a map by the hash of the field behind the entry's pointer from then on (`tree.rs`).
//!
//! ```text
//!           neither 640 bytes and 64 fields nor 2 KB and 32 are enough, or text that is too long for one
//!   image  --------------------------------------------------------------------->  tree
//!          <---------------------------------------------------------------------
//!           by half of that, after a removal
//! ```
//!
//! A field past its deadline is absent for every command. It is removed when a command that writes opens the
//! hash, or by the sweeper (`expiry/sweep.rs`), whichever comes first. Only the length of a hash outside its
//! entry counts fields that are overdue and not removed yet: leaving them out would take a walk over all
//! fields.
//!
//! [`HashMut`] holds the entry while the hash is edited and writes the hash back when it is dropped, so an
//! edit is one descent of the keyspace; a tree is edited where it lies. An image is edited in one of the
//! shard's buffers, but for a value that takes the place of one as long: a counter beside a long text.
use crate::edit::{Collection, Edit, Start};
use crate::entry::{Meta, Shape};
use crate::expiry::deadline::Deadline;
use crate::expiry::notes::{NO_DEADLINE, note_of};
use crate::hash::field::{Kept, Mark};
use crate::hash::image::{self, INSIDE, expire_image, image_due, kept};
use crate::hash::name::HashName;
use crate::hash::tree::{At, Before, HashTree, Lifetime};
use crate::keyspace::shard::Buffers;
use crate::kind::WrongType;
use crate::site::Site;
use crate::value::Parts;
use crate::value::Value;
use crate::{Halt, HashLimits, Key, View};
use base::hash::Seed;
use base::random::Random;
use base::{Item, Millis};
use pack::ItemIndex;
use pack::pairs::{self, Spot};
use std::ops::ControlFlow;

/// At most so many fields that are due are removed when a hash is opened to be edited. The sweeper removes
/// the others.
const EXPIRED_AT_ONCE: u64 = 128;
/// After so many draws in a row that hit fields past their deadline it is seen whether others are left.
const DRAWS_MAX: u32 = 100;

/// A hash, to read.
#[derive(Clone, Copy)]
pub struct Hash<'v> {
    source: Source<'v>,
    seed: &'v Seed,
    now: Millis,
}

#[derive(Clone, Copy)]
enum Source<'v> {
    /// Inside the entry; no field has a deadline.
    Image(&'v [u8]),
    /// Inside the entry; some field has a deadline.
    TimedImage(&'v [u8]),
    Tree(&'v HashTree),
}

impl<'v> Hash<'v> {
    #[inline]
    pub(crate) fn of(
        (meta, inline, outside): Parts<'v>,
        seed: &'v Seed,
        now: Millis,
    ) -> Result<Hash<'v>, WrongType> {
        let source = match (meta.shape(), outside) {
            (Shape::Hash, _) => Source::Image(meta.value(inline)),
            (Shape::TimedHash, _) => Source::TimedImage(meta.value(inline)),
            (Shape::HashTree, Some(Value::Hash(tree))) => Source::Tree(tree),
            _ => return Err(WrongType),
        };
        Ok(Hash { source, seed, now })
    }

    /// How many fields there are. Inside the entry those that are not past their deadline, by a walk over the
    /// image, which looks at the length of each piece and at deadlines; outside all, in O(1).
    #[allow(clippy::len_without_is_empty, reason = "no hash in the keyspace is empty")]
    pub fn len(&self) -> u64 {
        match self.source {
            Source::Image(image) => pairs::len(image),
            Source::TimedImage(image) => image::live_len(image, self.now),
            Source::Tree(tree) => tree.len(),
        }
    }

    /// Whether some field is past its deadline and not removed yet. O(1), but inside the entry a walk over
    /// the image where some field has a deadline.
    pub fn has_overdue(&self) -> bool {
        let due = match self.source {
            Source::Image(_) => NO_DEADLINE,
            Source::TimedImage(image) => image_due(image),
            Source::Tree(tree) => tree.due().unwrap_or(NO_DEADLINE),
        };
        due <= note_of(self.now)
    }

    /// How many fields a walk shows: all but those past their deadline. Inside the entry a walk over the
    /// image; outside O(1), unless some field is overdue: then a walk over all fields.
    pub fn live_len(&self) -> u64 {
        match self.source {
            Source::Tree(_) if self.has_overdue() => {
                let mut live = 0;
                self.for_each(&mut |_, _| live += 1);
                live
            }
            _ => self.len(),
        }
    }

    fn is_live(&self, kept: &Kept<'_>) -> bool {
        !kept.deadline.is_past(self.now)
    }

    #[inline]
    fn kept(&self, field: &[u8]) -> Option<Kept<'v>> {
        let found = match self.source {
            Source::Image(image) | Source::TimedImage(image) => {
                kept(&pairs::read(image, pairs::find(image, Item::classify(field))?))
            }
            Source::Tree(tree) => tree.find(self.seed, field)?,
        };
        self.is_live(&found).then_some(found)
    }

    /// The value of a field; None where there is no such field or its deadline has passed. Inside the entry
    /// this walks the image, outside it is one descent.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<Item<'v>> {
        self.kept(field).map(|kept| kept.value)
    }

    /// As [`Hash::get`], for one field after the other: those that are asked for in the order in which they
    /// came are found without a walk, and where they are not, the image is indexed. `search` is kept
    /// between the calls, and belongs to this hash.
    #[inline]
    pub fn get_in(&self, search: &mut FieldSearch, field: &[u8]) -> Option<Item<'v>> {
        let (Source::Image(image) | Source::TimedImage(image)) = self.source else { return self.get(field) };
        let found = kept(&pairs::read(image, search.find(image, Item::classify(field))?));
        self.is_live(&found).then_some(found.value)
    }

    /// A field's own deadline; None where there is no such field.
    pub fn deadline(&self, field: &[u8]) -> Option<Deadline> {
        self.kept(field).map(|kept| kept.deadline)
    }

    /// Visits every field with its value; those of a small hash in the order in which they came.
    pub fn for_each(&self, visit: &mut dyn FnMut(Item<'_>, Item<'_>)) {
        self.for_each_timed(&mut |field, value, _| visit(field, value));
    }

    /// As [`Hash::for_each`], with each field's deadline.
    pub fn for_each_timed(&self, visit: &mut dyn FnMut(Item<'_>, Item<'_>, Deadline)) {
        let _ = self.visit_timed(&mut |field, value, deadline| {
            visit(field, value, deadline);
            ControlFlow::Continue(())
        });
    }

    /// As [`Hash::for_each`], until told to stop.
    pub fn visit(&self, visit: &mut dyn FnMut(Item<'_>, Item<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.visit_timed(&mut |field, value, _| visit(field, value))
    }

    /// As [`Hash::visit`], from a halt on; the hash must not change between the calls. Returns the halt
    /// behind the last field visited, None at the end.
    pub fn visit_from(
        &self,
        from: Halt,
        visit: &mut dyn FnMut(Item<'_>, Item<'_>) -> ControlFlow<()>,
    ) -> Option<Halt> {
        let mut show = |field: Item<'_>, kept: Kept<'_>| match self.is_live(&kept) {
            true => visit(field, kept.value),
            false => ControlFlow::Continue(()),
        };
        match self.source {
            Source::Image(image) | Source::TimedImage(image) => {
                from.go_on(pairs::iter(image), |pair| show(pair.field, kept(&pair)))
            }
            Source::Tree(tree) => tree.visit_from(from, &mut show),
        }
    }

    fn visit_timed(
        &self,
        visit: &mut dyn FnMut(Item<'_>, Item<'_>, Deadline) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut show = |field: Item<'_>, kept: Kept<'_>| match self.is_live(&kept) {
            true => visit(field, kept.value, kept.deadline),
            false => ControlFlow::Continue(()),
        };
        match self.source {
            Source::Image(image) | Source::TimedImage(image) => {
                pairs::iter(image).try_for_each(|pair| show(pair.field, kept(&pair)))
            }
            Source::Tree(tree) => tree.visit(&mut show),
        }
    }

    /// As [`Hash::visit`], but only those fields whose number is a bit of `chosen`: the walk numbers them
    /// from 0. It ends behind the last of them, and inside the entry it skips the others without reading
    /// them.
    pub fn visit_chosen(
        &self,
        mut chosen: u64,
        visit: &mut dyn FnMut(Item<'_>, Item<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Source::Image(image) = self.source else { return self.visit_chosen_of_all(chosen, visit) };
        let mut spots = pairs::spots(image);
        while chosen != 0 {
            let skipped = chosen.trailing_zeros();
            let Some(spot) = spots.nth(skipped as usize) else { break };
            let pair = pairs::read(image, spot);
            visit(pair.field, pair.value)?;
            chosen = chosen >> skipped >> 1;
        }
        ControlFlow::Continue(())
    }

    /// [`Hash::visit_chosen`] of a hash whose fields have to be read to be numbered.
    fn visit_chosen_of_all(
        &self,
        mut chosen: u64,
        visit: &mut dyn FnMut(Item<'_>, Item<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.visit(&mut |field, value| {
            let is_chosen = chosen & 1 == 1;
            chosen >>= 1;
            if is_chosen {
                visit(field, value)?;
            }
            if chosen == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    }

    /// Visits about `count` fields from a cursor on, and returns the next cursor, 0 at the end. A field that
    /// is there from the call with 0 to the call that returns 0 is visited at least once. A small hash is
    /// visited as a whole.
    pub fn scan(&self, cursor: u64, count: u64, visit: &mut dyn FnMut(Item<'_>, Item<'_>)) -> u64 {
        let Source::Tree(tree) = self.source else {
            self.for_each(visit);
            return 0;
        };
        tree.scan(self.seed, cursor, count, &mut |field, kept| {
            if self.is_live(&kept) {
                visit(field, kept.value);
            }
        })
    }

    /// A field chosen uniformly, and its value; None where all are past their deadline. Where nearly all are,
    /// this takes as long as a walk through all of them.
    pub fn random(&self, random: &mut Random) -> Option<(Item<'v>, Item<'v>)> {
        self.draw(random).or_else(|| self.draw_patiently(random))
    }

    /// Draws that each hit one of all fields find one that is alive after as many as there are, on average.
    #[cold]
    fn draw_patiently(&self, random: &mut Random) -> Option<(Item<'v>, Item<'v>)> {
        let is_any_alive = self.live_len() > 0;
        is_any_alive.then(|| std::iter::repeat_with(|| self.draw(random)).flatten().next()).flatten()
    }

    /// A field chosen uniformly, and its value; None where nearly all are past their deadline, and no other
    /// was found.
    pub fn draw(&self, random: &mut Random) -> Option<(Item<'v>, Item<'v>)> {
        for _ in 0..DRAWS_MAX {
            let (field, kept) = match self.source {
                Source::Image(image) | Source::TimedImage(image) => {
                    let spot = pairs::spots(image).nth(random.below(pairs::len(image)) as usize)?;
                    let pair = pairs::read(image, spot);
                    (pair.field, kept(&pair))
                }
                Source::Tree(tree) => tree.random(random)?,
            };
            if self.is_live(&kept) {
                return Some((field, kept.value));
            }
        }
        None
    }
}

/// What an edit of a hash goes by.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'v> {
    pub(super) at: At<'v>,
    pub(super) limits: HashLimits,
}

/// What is known of a hash beside its fields while it is edited.
#[derive(Clone, Copy)]
pub(crate) struct State {
    /// The name of a draft. A tree keeps its own, and this one then means nothing.
    pub(super) name: HashName,
    /// Whether some field had a deadline when the hash was opened.
    was_timed: bool,
    /// Whether some field of an image may have a deadline: else nobody walks over it to find out.
    pub(super) may_be_timed: bool,
}

/// A search for one field of a hash after the other, which knows from those before where to look.
#[derive(Default)]
pub struct FieldSearch {
    /// Where the field that was found last ends.
    end: usize,
    /// How many were not where the next one is.
    astray: u32,
    index: Option<Box<ItemIndex>>,
}

/// After so many fields that were not asked for in their order the image is indexed.
const ASTRAY_MAX: u32 = 4;

impl FieldSearch {
    /// The pair of the next field.
    #[inline]
    fn find(&mut self, image: &[u8], field: Item<'_>) -> Option<Spot> {
        if let Some(index) = &self.index {
            return index.pair(image, field);
        }
        let spot = pairs::find_behind(image, field, self.end);
        match spot {
            Some(spot) if spot.end() > self.end => self.end = spot.end(),
            _ => self.stray(image, spot.is_some()),
        }
        spot
    }

    /// A field was not behind the last one: it comes before it, so that the next search begins at the
    /// beginning, or it is not there.
    #[cold]
    fn stray(&mut self, image: &[u8], is_before: bool) {
        self.end = if is_before { 0 } else { self.end };
        self.astray += 1;
        if self.astray == ASTRAY_MAX {
            self.index = ItemIndex::of_pairs(image).map(Box::new);
        }
    }
}

/// A hash, to edit. Dropping it puts it back; an empty hash takes its key with it.
pub struct HashMut<'v> {
    pub(super) edit: Edit<'v, HashTree>,
    /// Where the field ends that was set last, if nothing else was done to the draft since; else 0. None once
    /// they did not come in their order: then each search begins at the beginning.
    last: Option<usize>,
}

impl<'v> HashMut<'v> {
    #[inline(always)]
    fn open(site: Site<'v>, rules: Rules<'v>) -> Result<HashMut<'v>, WrongType> {
        let shape = site.shape();
        let mut start = Start::<HashTree>::of(shape)?;
        if let Some(shape) = shape.filter(|shape| *shape != Shape::HashTree) {
            start.state.name = HashName::of_image(shape, site.image());
        }
        let mut hash = HashMut { edit: Edit::new(site, rules, start), last: Some(0) };
        if shape.is_some_and(|shape| shape != Shape::Hash) {
            hash.expire();
        }
        Ok(hash)
    }

    /// Removes fields that are due, before the command looks at any.
    fn expire(&mut self) {
        let is_timed = is_timed(&self.edit);
        self.edit.state.was_timed = is_timed;
        if !is_timed {
            return;
        }
        let now = self.edit.rules.at.now;
        let mut names = self.edit.site.context.wanted_names();
        let removed = match self.edit.tree_and_garbage() {
            None => expire_image(self.draft_mut(), now, &mut names),
            Some((tree, freed)) => match tree.due() {
                Some(due) if due <= note_of(now) => tree.expire(now, EXPIRED_AT_ONCE, (freed, &mut names)),
                _ => 0,
            },
        };
        if removed > 0 {
            self.edit.site.context.stats.expired_fields += removed;
            self.edit.site.tell_fields(names);
            match self.len() {
                0 => self.begin_anew(),
                _ => (self.edit.is_changed, self.edit.has_lost) = (true, true),
            }
        }
    }

    /// All fields have expired, and the key with them: what the command writes is a new hash.
    #[cold]
    fn begin_anew(&mut self) {
        self.edit.site.context.timer.volatile.count_hash(true, false);
        self.edit.site.end_value();
        self.edit.begin_anew();
    }

    /// Whether there was no such key, or all its fields have expired.
    pub fn is_new(&self) -> bool {
        self.edit.is_new()
    }

    /// The image, wherever it is.
    #[inline]
    fn image(&self) -> &[u8] {
        image_of(&self.edit)
    }

    #[inline]
    fn draft_mut(&mut self) -> &mut Vec<u8> {
        self.last = Some(0);
        self.edit.open_draft();
        &mut self.edit.buffers_mut().text
    }

    /// How many fields there are. Outside the entry that is O(1), and counts fields past their deadline that
    /// are not removed yet; a draft is walked.
    #[allow(clippy::len_without_is_empty, reason = "no hash in the keyspace is empty")]
    pub fn len(&self) -> u64 {
        self.edit.tree().map_or_else(|| pairs::len(self.image()), HashTree::len)
    }

    fn kept(&self, field: &[u8]) -> Option<Kept<'_>> {
        let found = match self.edit.tree() {
            None => {
                let image = self.image();
                kept(&pairs::read(image, pairs::find(image, Item::classify(field))?))
            }
            Some(tree) => tree.find(self.edit.rules.at.seed, field)?,
        };
        (!found.deadline.is_past(self.edit.rules.at.now)).then_some(found)
    }

    /// The value of a field, as [`Hash::get`] finds it.
    pub fn get(&self, field: &[u8]) -> Option<Item<'_>> {
        self.kept(field).map(|kept| kept.value)
    }

    /// A field's own deadline; None where there is no such field.
    pub fn deadline(&self, field: &[u8]) -> Option<Deadline> {
        self.kept(field).map(|kept| kept.deadline)
    }

    /// To be called with the number of fields that the command is about to write. Redis compares that number
    /// with `hash-max-listpack-entries` before it writes any field, so the name may change to "hashtable"
    /// here.
    pub fn announce(&mut self, fields: u64) {
        if fields > self.edit.rules.limits.entries {
            self.rename(HashName::Hashtable);
        }
        self.edit.expect(fields);
    }

    /// To be called by a command that could set deadlines. As in Redis, the name changes whether or not the
    /// command does set one.
    pub fn expect_deadlines(&mut self) {
        self.rename(HashName::ListpackEx);
    }

    /// Changes the name to "hashtable" if this field or value is longer than `hash-max-listpack-value`.
    #[inline]
    pub fn expect_text(&mut self, field: &[u8], value: &[u8]) {
        let limit = self.edit.rules.limits.value;
        if field.len() as u64 > limit || value.len() as u64 > limit {
            self.rename(HashName::Hashtable);
        }
    }

    fn rename(&mut self, name: HashName) {
        match self.edit.tree_mut() {
            Some(tree) => tree.name = tree.name.max(name),
            None => {
                if name > self.edit.state.name {
                    self.edit.open_draft();
                    (self.edit.is_changed, self.edit.state.name) = (true, name);
                }
            }
        }
    }

    /// Writes a field, and returns whether it is new.
    #[inline]
    pub fn set(&mut self, field: &[u8], value: &[u8], lifetime: Lifetime) -> bool {
        self.expect_text(field, value);
        if matches!(lifetime, Lifetime::Until(_)) {
            self.rename(HashName::ListpackEx);
        }
        let value = Item::classify(value);
        if self.edit.is_inside()
            && let Some(is_new) = self.set_in_image(field, value, lifetime)
        {
            return is_new;
        }
        self.edit.is_changed = true;
        let (at, entries) = (self.edit.rules.at, self.edit.rules.limits.entries);
        let (tree, freed) =
            self.edit.tree_and_garbage().expect("a draft that cannot take the field has become a tree");
        let before = tree.put(at, field, value, lifetime, freed);
        if tree.len() > entries {
            tree.name = HashName::Hashtable;
        }
        if before == Before::Overdue {
            self.note_overdue(field);
        }
        before != Before::Field
    }

    /// A field was written over, or removed, that was past its deadline and had not gone yet, because not all
    /// that is due is removed at once: whoever reads the journal has it still.
    #[cold]
    fn note_overdue(&mut self, field: &[u8]) {
        let mut names = self.edit.site.context.wanted_names();
        if let Some(names) = &mut names {
            names.push(field.into());
        }
        self.edit.site.context.stats.expired_fields += 1;
        self.edit.site.tell_fields(names);
    }

    /// [`HashMut::set`] for a hash inside its entry. None, and nothing is written, where the field does not
    /// fit an image: the hash has become a tree then.
    fn set_in_image(&mut self, field: &[u8], value: Item<'_>, lifetime: Lifetime) -> Option<bool> {
        let name = Item::classify(field);
        if !pairs::fits(name, value) {
            self.edit.grow();
            return None;
        }
        let spot = pairs::find_behind(self.image(), name, self.last.unwrap_or(0));
        if let Some(spot) = spot
            && self.set_in_place(spot, value, lifetime)
        {
            self.note_set(Some(spot.end()));
            return Some(false);
        }
        if let Some(end) = self.set_apart((name, spot), value, lifetime) {
            self.note_set(spot.map(|_| end));
            return Some(spot.is_none());
        }
        self.edit.is_changed = true;
        Some(self.set_in_draft((name, spot), value, lifetime))
    }

    /// Writes the field where the image lies, if that is all there is to do; where the pair ends then.
    fn set_apart(
        &mut self,
        (name, spot): (Item<'_>, Option<Spot>),
        value: Item<'_>,
        lifetime: Lifetime,
    ) -> Option<usize> {
        let (entries, state) = (self.edit.rules.limits.entries, self.edit.state);
        let has_marks = state.may_be_timed || matches!(lifetime, Lifetime::Until(_));
        // Else the name may change.
        let is_named = state.name == HashName::Hashtable || entries >= INSIDE.len_max();
        let image = self.edit.image_apart().filter(|_| is_named && !has_marks)?;
        let growth = match spot {
            Some(spot) => pairs::growth(spot, value),
            None => (pairs::item_len(name) + pairs::item_len(value) + pairs::COUNT_BYTES) as isize,
        };
        let bytes = image.len().checked_add_signed(growth)?;
        let len = || pairs::len(image) + u64::from(spot.is_none());
        (Site::stays_apart(bytes) && INSIDE.holds(bytes, len)).then_some(())?;
        self.edit.site.edit_apart(|image| match spot {
            Some(spot) => pairs::set(image, spot, value, None),
            None => {
                pairs::push(image, name, value, None);
                pairs::len_of_kept(image);
                0
            }
        })
    }

    /// Removes a pair where the image lies, if that is all there is to do; whether it did.
    fn remove_apart(&mut self, spot: Spot) -> bool {
        let may_be_timed = self.edit.state.may_be_timed;
        let Some(image) = self.edit.image_apart().filter(|_| !may_be_timed) else { return false };
        let stays = Site::stays_apart(image.len() - spot.bytes());
        stays && self.edit.site.edit_apart(|image| pairs::remove(image, spot)).is_some()
    }

    /// Writes the value where the field has one as long, if that is all there is to do.
    fn set_in_place(&mut self, spot: Spot, value: Item<'_>, lifetime: Lifetime) -> bool {
        let is_all = self.edit.is_untouched()
            && !spot.has_mark()
            && spot.takes(value)
            && !matches!(lifetime, Lifetime::Until(_))
            // Else the name may change.
            && self.edit.rules.limits.entries >= INSIDE.len_max();
        if is_all {
            pairs::overwrite(self.edit.site.image_mut(), spot, value);
        }
        is_all
    }

    /// A field was set that was there and ends here now, or came.
    fn note_set(&mut self, end: Option<usize>) {
        self.last = match (self.last, end) {
            (Some(last), Some(end)) => Some(end).filter(|end| *end > last),
            (last, _) => last.and(Some(0)),
        };
    }

    /// [`HashMut::set_in_image`] where the image is edited in its buffer; it has the field at this spot.
    fn set_in_draft(
        &mut self,
        (name, spot): (Item<'_>, Option<Spot>),
        value: Item<'_>,
        lifetime: Lifetime,
    ) -> bool {
        let (entries, last) = (self.edit.rules.limits.entries, self.last);
        let before = spot.map_or(Deadline::Never, |spot| kept(&pairs::read(self.image(), spot)).deadline);
        let mark = Mark::new(lifetime.deadline(before));
        self.edit.state.may_be_timed |= mark.bytes().is_some();
        let draft = self.draft_mut();
        let bytes_before = draft.len();
        let end = spot.map(|spot| pairs::set(draft, spot, value, mark.bytes()));
        if end.is_none() {
            pairs::push(draft, name, value, mark.bytes());
        }
        // A field that was there changes the name too, if the limit was lowered below the length of the hash.
        let may_be_long = spot.is_none() || entries < INSIDE.len_max();
        if may_be_long || draft.len() > bytes_before {
            let len = if spot.is_none() { pairs::len_of_kept(draft) } else { pairs::len(draft) };
            let bytes = draft.len();
            if may_be_long && len > entries {
                self.edit.state.name = HashName::Hashtable;
            }
            if !INSIDE.holds(bytes, || len) {
                self.edit.grow();
            }
        }
        self.last = last;
        self.note_set(end);
        spot.is_none()
    }

    /// To be called with the number of fields that the command is about to remove.
    pub fn expect_removals(&mut self, fields: u64) {
        self.edit.expect(fields);
    }

    /// Removes a field, and returns whether it was there.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        let at = self.edit.rules.at;
        let before = match self.edit.tree_and_garbage() {
            Some((tree, freed)) => tree.remove(at, field, freed),
            None => {
                let spot = pairs::find(self.image(), Item::classify(field));
                if let Some(spot) = spot {
                    if self.remove_apart(spot) {
                        self.last = Some(0);
                        return true;
                    }
                    pairs::remove(self.draft_mut(), spot);
                }
                if spot.is_some() { Before::Field } else { Before::Nothing }
            }
        };
        if before != Before::Nothing {
            (self.edit.is_changed, self.edit.has_lost) = (true, true);
        }
        if before == Before::Overdue {
            self.note_overdue(field);
        }
        before == Before::Field
    }

    /// Counts a field as expired that a command has removed, because the deadline that it gives has passed.
    pub fn count_expired(&mut self) {
        self.edit.site.context.stats.expired_fields += 1;
    }

    /// Gives a field that is there another deadline. The command must remove the field instead if that
    /// deadline has passed.
    pub fn set_deadline(&mut self, field: &[u8], deadline: Deadline) {
        if deadline != Deadline::Never {
            self.rename(HashName::ListpackEx);
        }
        self.edit.is_changed = true;
        let at = self.edit.rules.at;
        match self.edit.tree_mut() {
            Some(tree) => tree.set_deadline(at, field, deadline),
            None => {
                self.edit.state.may_be_timed |= deadline != Deadline::Never;
                let draft = self.draft_mut();
                if let Some(spot) = pairs::find(draft, Item::classify(field)) {
                    pairs::set_mark(draft, spot, Mark::new(deadline).bytes());
                }
                if !INSIDE.holds(draft.len(), || pairs::len(draft)) {
                    self.edit.grow();
                }
            }
        }
    }
}

impl Collection for HashTree {
    type Rules<'v> = Rules<'v>;
    type State = State;
    const OUTSIDE: Shape = Shape::HashTree;

    #[inline]
    fn state(shape: Option<Shape>) -> Option<State> {
        let may_be_timed = match shape {
            None | Some(Shape::Hash) => false,
            Some(Shape::TimedHash) => true,
            Some(_) => return None,
        };
        Some(State { name: HashName::Listpack, was_timed: false, may_be_timed })
    }

    fn shape(state: State, buffers: &Buffers) -> Shape {
        image::shape(state.name, state.may_be_timed, &buffers.text)
    }

    fn close_draft(state: State, buffers: &mut Buffers) -> &[u8] {
        if state.name == HashName::Hashtable {
            pairs::flag(&mut buffers.text);
        }
        &buffers.text
    }

    #[inline]
    fn is_draft_empty(buffers: &Buffers) -> bool {
        pairs::spots(&buffers.text).next().is_none()
    }

    fn grow(state: State, rules: Rules<'_>, buffers: &Buffers) -> HashTree {
        image::to_tree(&buffers.text, state.name, rules.at)
    }

    fn shrink(&self, state: &mut State, _: Rules<'_>, buffers: &mut Buffers) -> bool {
        (state.name, state.may_be_timed) = (self.name, self.is_timed());
        image::write(&mut buffers.text, self)
    }

    /// Brings the sums over deadlines and the keyspace's wheel up to date with the deadlines of the fields.
    #[inline]
    fn settle(edit: &mut Edit<'_, HashTree>) -> bool {
        let State { was_timed, may_be_timed, .. } = edit.state;
        let (is_timed, due, is_small) = match edit.tree() {
            Some(tree) => (tree.is_timed(), tree.due(), tree.is_small()),
            None if was_timed || may_be_timed => {
                let due = image_due(&edit.buffers().text);
                (due != NO_DEADLINE, Some(due), false)
            }
            None => return false,
        };
        edit.site.context.timer.volatile.count_hash(was_timed, is_timed);
        if is_timed {
            edit.site.arm(due.unwrap_or(NO_DEADLINE));
        }
        is_small
    }
}

/// Whether some field has a deadline.
fn is_timed(edit: &Edit<'_, HashTree>) -> bool {
    match edit.tree() {
        Some(tree) => tree.is_timed(),
        None => edit.state.may_be_timed && pairs::has_mark(image_of(edit)),
    }
}

/// The image of a hash inside its entry.
#[inline]
fn image_of<'e>(edit: &'e Edit<'_, HashTree>) -> &'e [u8] {
    if edit.is_untouched() { edit.site.image() } else { &edit.buffers().text }
}

impl<'k> View<'k> {
    #[inline]
    fn hash_rules(&self) -> Rules<'k> {
        let at = At { seed: &self.seeds().fields, now: self.now() };
        Rules { at, limits: self.settings().hash }
    }

    /// The hash under `key`, to read; None where there is no such key. Fields that are due are removed when
    /// the view ends.
    #[inline]
    pub fn hash(&mut self, key: &Key<'_>) -> Result<Option<Hash<'_>>, WrongType> {
        let (seed, now) = (&self.seeds().fields, self.now());
        let Some(found) = self.look_hash(key) else { return Ok(None) };
        Hash::of((Meta(found.meta), found.inline, found.outside), seed, now).map(Some)
    }

    /// The hash under `key`, to edit; None where there is no such key. Some of the fields that are due are
    /// removed first ([`EXPIRED_AT_ONCE`]).
    #[inline]
    pub fn hash_mut<'v>(&'v mut self, key: &Key<'v>) -> Result<Option<HashMut<'v>>, WrongType> {
        let rules = self.hash_rules();
        self.site(key).map(|site| HashMut::open(site, rules)).transpose()
    }

    /// The hash under `key`, to edit; a new one where there is no such key. It is created only if something
    /// is written.
    #[inline]
    pub fn hash_or_new<'v>(&'v mut self, key: &Key<'v>) -> Result<HashMut<'v>, WrongType> {
        let rules = self.hash_rules();
        HashMut::open(self.site_or_new(key), rules)
    }
}
