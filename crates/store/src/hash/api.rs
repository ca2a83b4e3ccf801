//! Hashes: an image inside the keyspace entry while they are small (`pack::pairs`), in the order in which fields came; a map by the
//! hash of the field behind the entry's pointer from then on (`tree.rs`).
//!
//! ```text
//!           image beyond 256 bytes or 64 fields, or text that has no place in one
//!   image  --------------------------------------------------------------------->  tree
//!          <---------------------------------------------------------------------
//!           at most 8 fields and 96 bytes, after a removal
//! ```
//!
//! A field past its deadline is gone for whoever looks, and goes when it is looked at by whoever writes, or when the
//! sweeper comes (`expiry/sweep.rs`), whichever is first. Only the length counts those that have not gone yet, where there are so many fields that
//! nobody would go through all of them.
//!
//! [`HashMut`] holds the place of the entry while the hash is edited and writes it back when it is dropped, so an edit is one descent of
//! the keyspace; a tree is edited where it is. An image is edited in a buffer of the shard's.
use crate::entry::{Meta, Shape};
use crate::expiry::deadline::Deadline;
use crate::expiry::notes::{NO_DEADLINE, note_of};
use crate::hash::field::{Kept, Mark};
use crate::hash::image::{expire_image, image_due, kept};
use crate::hash::name::HashName;
use crate::hash::tree::{At, HashTree, Lifetime};
use crate::keyspace::shard::Buffers;
use crate::kind::WrongType;
use crate::site::Site;
use crate::value::Parts;
use crate::value::Value;
use crate::{Halt, HashLimits, Key, View};
use base::hash::Seed;
use base::random::Random;
use base::{Item, Millis};
use pack::pairs::{self};
use std::ops::ControlFlow;

/// A hash leaves its entry when its image outgrows either.
const IMAGE_BYTES_MAX: usize = 256;
const IMAGE_LEN_MAX: u64 = 64;
/// A hash returns into its entry when it is no larger than these after a removal: far enough below, so that one which swings around
/// the limit stays outside.
const RETURN_BYTES_MAX: u64 = 96;
const RETURN_LEN_MAX: u64 = 8;
/// So many fields that are due are removed when a hash is opened to be written; the rest is the sweeper's.
const EXPIRED_AT_ONCE: u64 = 128;
/// One field in so many that are drawn must be alive for draws to go on.
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
    Image(&'v [u8]),
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
            (Shape::Hash | Shape::TimedHash, _) => Source::Image(meta.value(inline)),
            (Shape::HashTree, Some(Value::Hash(tree))) => Source::Tree(tree),
            _ => return Err(WrongType),
        };
        Ok(Hash { source, seed, now })
    }

    /// How many fields there are.
    #[allow(clippy::len_without_is_empty, reason = "no hash in the keyspace is empty")]
    pub fn len(&self) -> u64 {
        match self.source {
            Source::Image(image) => {
                pairs::iter(image).filter(|pair| self.is_live(&kept(pair))).count() as u64
            }
            Source::Tree(tree) => tree.len(),
        }
    }

    /// Whether some field is past its deadline and has not gone yet.
    pub fn has_overdue(&self) -> bool {
        let due = match self.source {
            Source::Image(image) => image_due(image),
            Source::Tree(tree) => tree.due().unwrap_or(NO_DEADLINE),
        };
        due <= note_of(self.now)
    }

    /// How many of them a walk shows: without those that are past their deadline and have not gone yet.
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
            Source::Image(image) => {
                let spot = pairs::find(image, Item::classify(field))?;
                kept(&pairs::read(image, spot))
            }
            Source::Tree(tree) => tree.find(self.seed, field)?,
        };
        self.is_live(&found).then_some(found)
    }

    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<Item<'v>> {
        self.kept(field).map(|kept| kept.value)
    }

    /// A field's own deadline; None where there is no such field.
    pub fn deadline(&self, field: &[u8]) -> Option<Deadline> {
        self.kept(field).map(|kept| kept.deadline)
    }

    /// Every field with its value: in the order in which they came while the hash is small.
    pub fn for_each(&self, visit: &mut dyn FnMut(Item<'_>, Item<'_>)) {
        self.for_each_timed(&mut |field, value, _| visit(field, value));
    }

    /// The same with the field's deadline.
    pub fn for_each_timed(&self, visit: &mut dyn FnMut(Item<'_>, Item<'_>, Deadline)) {
        let _ = self.visit_timed(&mut |field, value, deadline| {
            visit(field, value, deadline);
            ControlFlow::Continue(())
        });
    }

    /// Every field with its value, until told to stop.
    pub fn visit(&self, visit: &mut dyn FnMut(Item<'_>, Item<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.visit_timed(&mut |field, value, _| visit(field, value))
    }

    /// The same from a halt on, while the hash does not change. Where to go on behind the last one visited, None at the end.
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
            Source::Image(image) => from.go_on(pairs::iter(image), |pair| show(pair.field, kept(&pair))),
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
            Source::Image(image) => pairs::iter(image).try_for_each(|pair| show(pair.field, kept(&pair))),
            Source::Tree(tree) => tree.visit(&mut show),
        }
    }

    /// Visits about `count` fields from a cursor on; the next cursor, 0 at the end. A field that is there from the call
    /// with 0 to the call that answers 0 is visited at least once. A small hash is visited as a whole.
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

    /// A field chosen uniformly, and its value; None where all are past their deadline.
    pub fn random(&self, random: &mut Random) -> Option<(Item<'v>, Item<'v>)> {
        for _ in 0..DRAWS_MAX {
            let (field, kept) = match self.source {
                Source::Image(image) => {
                    let pair = pairs::iter(image).nth(random.below(pairs::len(image)) as usize)?;
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

/// Where the hash is while it is edited.
enum Body {
    /// In the shard's buffer.
    Draft,
    /// Outside, where it was before.
    Stored,
    /// Outside, but not yet in the keyspace.
    Grown(Box<HashTree>),
}

/// A hash, to edit. Dropping it puts it back; an empty hash takes its key with it.
pub struct HashMut<'v> {
    site: Site<'v>,
    at: At<'v>,
    limits: HashLimits,
    body: Body,
    /// The name, but for a stored tree, which keeps its own.
    name: HashName,
    /// Whether some field had a deadline when the hash was opened.
    was_timed: bool,
    changed: bool,
    removed: bool,
}

impl<'v> HashMut<'v> {
    #[inline]
    fn open(mut site: Site<'v>, at: At<'v>, limits: HashLimits) -> Result<HashMut<'v>, WrongType> {
        let shape = site.shape();
        let (mut name, mut body) = (HashName::Listpack, Body::Draft);
        match shape {
            Some(Shape::HashTree) => body = Body::Stored,
            None | Some(Shape::Hash | Shape::TimedHash) => {
                let (image, buffers) = site.image();
                name = shape.map_or(name, |shape| HashName::of_image(shape, image));
                buffers.pairs.clear();
                buffers.pairs.extend_from_slice(image);
            }
            _ => return Err(WrongType),
        }
        let is_timed = shape.is_some_and(|shape| shape != Shape::Hash);
        let mut hash =
            HashMut { site, at, limits, body, name, was_timed: false, changed: false, removed: false };
        if is_timed {
            hash.expire();
        }
        Ok(hash)
    }

    /// Before the first look: what is due goes.
    fn expire(&mut self) {
        self.was_timed = self.is_timed();
        if !self.was_timed {
            return;
        }
        let now = self.at.now;
        let removed = match &mut self.body {
            Body::Draft => expire_image(&mut self.site.context.buffers.pairs, now),
            _ => {
                let (tree, freed) = self.stored_mut();
                match tree.due() {
                    Some(due) if due <= note_of(now) => tree.expire(now, EXPIRED_AT_ONCE, freed),
                    _ => 0,
                }
            }
        };
        if removed > 0 {
            self.site.context.stats.expired_fields += removed;
            (self.changed, self.removed) = (true, true);
        }
    }

    fn is_timed(&self) -> bool {
        match self.tree() {
            Some(tree) => tree.is_timed(),
            None => {
                // No field of a hash by the first name ever had a deadline.
                self.name != HashName::Listpack && pairs::has_mark(self.draft())
            }
        }
    }

    #[inline]
    fn draft(&self) -> &[u8] {
        &self.site.context.buffers.pairs
    }

    #[inline]
    fn draft_mut(&mut self) -> &mut Vec<u8> {
        &mut self.site.context.buffers.pairs
    }

    /// The tree, if that is what the hash is by now.
    #[inline]
    fn tree(&self) -> Option<&HashTree> {
        match &self.body {
            Body::Draft => None,
            Body::Grown(tree) => Some(tree),
            Body::Stored => match self.site.outside() {
                Some(Value::Hash(tree)) => Some(tree),
                _ => unreachable!("the shape said that a hash lies outside"),
            },
        }
    }

    /// A tree, stored or grown, and where what it frees goes.
    #[inline]
    fn stored_mut(&mut self) -> (&mut HashTree, &mut Vec<crate::Garbage>) {
        match &mut self.body {
            Body::Grown(tree) => (tree, self.site.context.garbage),
            _ => match self.site.outside_and_garbage() {
                (Some(Value::Hash(tree)), garbage) => (tree, garbage),
                _ => unreachable!("the shape said that a hash lies outside"),
            },
        }
    }

    #[allow(clippy::len_without_is_empty, reason = "no hash in the keyspace is empty")]
    pub fn len(&self) -> u64 {
        self.tree().map_or_else(|| pairs::len(self.draft()), HashTree::len)
    }

    fn is_empty(&self) -> bool {
        self.tree().map_or_else(|| pairs::spots(self.draft()).next().is_none(), |tree| tree.len() == 0)
    }

    fn kept(&self, field: &[u8]) -> Option<Kept<'_>> {
        let found = match self.tree() {
            None => {
                let draft = self.draft();
                kept(&pairs::read(draft, pairs::find(draft, Item::classify(field))?))
            }
            Some(tree) => tree.find(self.at.seed, field)?,
        };
        (!found.deadline.is_past(self.at.now)).then_some(found)
    }

    pub fn get(&self, field: &[u8]) -> Option<Item<'_>> {
        self.kept(field).map(|kept| kept.value)
    }

    pub fn deadline(&self, field: &[u8]) -> Option<Deadline> {
        self.kept(field).map(|kept| kept.deadline)
    }

    /// Tells how many fields the command is about to write, so that the name changes as in Redis, which looks at all of them at once and
    /// before writing any.
    pub fn announce(&mut self, fields: u64) {
        if fields > self.limits.entries {
            self.rename(HashName::Hashtable);
        }
    }

    /// The name changes as in Redis where a command could set deadlines, whether or not it does.
    pub fn expect_deadlines(&mut self) {
        self.rename(HashName::ListpackEx);
    }

    /// The same for a field and a value, by their lengths.
    #[inline]
    pub fn expect_text(&mut self, field: &[u8], value: &[u8]) {
        let limit = self.limits.value;
        if field.len() as u64 > limit || value.len() as u64 > limit {
            self.rename(HashName::Hashtable);
        }
    }

    fn rename(&mut self, name: HashName) {
        match self.body {
            Body::Draft => {
                self.changed |= name > self.name;
                self.name = self.name.max(name);
            }
            _ => {
                let tree = self.stored_mut().0;
                tree.name = tree.name.max(name);
            }
        }
    }

    /// Writes a field; whether it is new.
    #[inline]
    pub fn set(&mut self, field: &[u8], value: &[u8], lifetime: Lifetime) -> bool {
        self.expect_text(field, value);
        if matches!(lifetime, Lifetime::Until(_)) {
            self.rename(HashName::ListpackEx);
        }
        self.changed = true;
        let value = Item::classify(value);
        if matches!(self.body, Body::Draft)
            && let Some(is_new) = self.set_in_draft(field, value, lifetime)
        {
            return is_new;
        }
        let (at, entries) = (self.at, self.limits.entries);
        let (tree, freed) = self.stored_mut();
        let is_new = tree.put(at, field, value, lifetime, freed);
        if tree.len() > entries {
            tree.name = HashName::Hashtable;
        }
        is_new
    }

    /// None where the hash had to leave its entry before the field could be written.
    fn set_in_draft(&mut self, field: &[u8], value: Item<'_>, lifetime: Lifetime) -> Option<bool> {
        let name = Item::classify(field);
        if !pairs::fits(name) || !pairs::fits(value) {
            self.leave();
            return None;
        }
        let draft = &mut self.site.context.buffers.pairs;
        let spot = pairs::find(draft, name);
        let before = spot.map_or(Deadline::Never, |spot| kept(&pairs::read(draft, spot)).deadline);
        let mark = Mark::new(lifetime.deadline(before));
        match spot {
            Some(spot) => pairs::set(draft, spot, value, mark.bytes()),
            None => pairs::push(draft, name, value, mark.bytes()),
        }
        let is_over = draft.len() > IMAGE_BYTES_MAX;
        // A field that was there before changes the name too, where the limit has been lowered below what is there.
        if spot.is_none() || self.limits.entries < IMAGE_LEN_MAX {
            let len = pairs::len(draft);
            if len > self.limits.entries {
                self.name = HashName::Hashtable;
            }
            if len > IMAGE_LEN_MAX {
                self.leave();
            }
        }
        if is_over {
            self.leave();
        }
        Some(spot.is_none())
    }

    /// The draft becomes a tree.
    fn leave(&mut self) {
        if !matches!(self.body, Body::Draft) {
            return;
        }
        let mut tree = HashTree::new(self.name);
        let (mut field, at) = (Vec::new(), self.at);
        for pair in pairs::iter(&self.site.context.buffers.pairs) {
            field.clear();
            pair.field.append_to(&mut field);
            let kept = kept(&pair);
            let lifetime = match kept.deadline {
                Deadline::Never => Lifetime::Endless,
                Deadline::At(at) => Lifetime::Until(at),
            };
            tree.put(at, &field, kept.value, lifetime, self.site.context.garbage);
        }
        self.body = Body::Grown(Box::new(tree));
    }

    /// Whether the field was there.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        let at = self.at;
        let is_removed = match self.body {
            Body::Draft => {
                let draft = self.draft_mut();
                let spot = pairs::find(draft, Item::classify(field));
                if let Some(spot) = spot {
                    pairs::remove(draft, spot);
                }
                spot.is_some()
            }
            _ => {
                let (tree, freed) = self.stored_mut();
                tree.remove(at, field, freed)
            }
        };
        if is_removed {
            (self.changed, self.removed) = (true, true);
        }
        is_removed
    }

    /// Gives a field that is there another deadline.
    pub fn set_deadline(&mut self, field: &[u8], deadline: Deadline) {
        if deadline != Deadline::Never {
            self.rename(HashName::ListpackEx);
        }
        self.changed = true;
        let at = self.at;
        match self.body {
            Body::Draft => {
                let draft = self.draft_mut();
                if let Some(spot) = pairs::find(draft, Item::classify(field)) {
                    pairs::set_mark(draft, spot, Mark::new(deadline).bytes());
                }
                if draft.len() > IMAGE_BYTES_MAX {
                    self.leave();
                }
            }
            _ => self.stored_mut().0.set_deadline(at, field, deadline),
        }
    }

    /// A stored tree has become so small that it fits its entry.
    fn return_to_draft(&mut self) {
        let Some(tree) = self.tree() else { return };
        if tree.len() > RETURN_LEN_MAX || tree.bytes() > RETURN_BYTES_MAX {
            return;
        }
        // A clone of a few fields' tree, one increment: the draft and the tree cannot be borrowed at once.
        let tree = tree.clone();
        let draft = self.draft_mut();
        draft.clear();
        tree.for_each(&mut |field, kept| {
            pairs::push(draft, field, kept.value, Mark::new(kept.deadline).bytes());
        });
        self.name = tree.name;
        self.body = Body::Draft;
    }

    fn write_back(&mut self) {
        match std::mem::replace(&mut self.body, Body::Stored) {
            Body::Stored => {}
            Body::Grown(tree) => self.site.put_outside(Shape::HashTree, Value::Hash(*tree)),
            Body::Draft => {
                let name = self.name;
                let is_timed = match name {
                    HashName::Listpack => false,
                    HashName::ListpackEx => true,
                    HashName::Hashtable => pairs::has_mark(self.draft()),
                };
                let shape = if is_timed { Shape::TimedHash } else { Shape::Hash };
                self.site.put_image(shape, |buffers: &mut Buffers| {
                    if name == HashName::Hashtable {
                        pairs::flag(&mut buffers.pairs);
                    }
                    &buffers.pairs[..]
                });
            }
        }
    }

    /// Tells the keyspace of what deadlines the fields have by now.
    fn settle_deadlines(&mut self) {
        let is_timed = self.is_timed();
        self.site.context.timer.volatile.count_hash(self.was_timed, is_timed);
        if is_timed {
            let due = match self.tree() {
                Some(tree) => tree.due().unwrap_or(NO_DEADLINE),
                None => image_due(self.draft()),
            };
            self.site.arm(due);
        }
    }
}

/// The one place where an edited hash becomes an entry again. A command that fails half-way writes back what it has done so far, as if it
/// had stopped there; one that changed nothing writes nothing.
impl Drop for HashMut<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.changed {
            // A new hash that nothing was written to leaves what it was opened over, if that was there, to be removed.
            if self.site.shape().is_none() {
                self.site.remove();
            }
            return;
        }
        if self.is_empty() {
            // An image still counts as it lies in its entry; a tree, as it is.
            if matches!(self.body, Body::Stored) {
                self.site.context.timer.volatile.count_hash(self.was_timed, false);
            }
            return self.site.remove();
        }
        if self.removed && matches!(self.body, Body::Stored) {
            self.return_to_draft();
        }
        if self.was_timed || self.name != HashName::Listpack || !matches!(self.body, Body::Draft) {
            self.settle_deadlines();
        }
        self.write_back();
    }
}

impl View<'_> {
    #[inline]
    pub fn hash(&mut self, key: &Key<'_>) -> Result<Option<Hash<'_>>, WrongType> {
        let (seed, now) = (&self.seeds().fields, self.now());
        let Some(found) = self.look_hash(key) else { return Ok(None) };
        Hash::of((Meta(found.meta), found.inline, found.outside), seed, now).map(Some)
    }

    #[inline]
    pub fn hash_mut<'v>(&'v mut self, key: &Key<'v>) -> Result<Option<HashMut<'v>>, WrongType> {
        let (at, limits) = (At { seed: &self.seeds().fields, now: self.now() }, self.settings().hash);
        self.site(key).map(|site| HashMut::open(site, at, limits)).transpose()
    }

    /// Created empty where missing.
    #[inline]
    pub fn hash_or_new<'v>(&'v mut self, key: &Key<'v>) -> Result<HashMut<'v>, WrongType> {
        let (at, limits) = (At { seed: &self.seeds().fields, now: self.now() }, self.settings().hash);
        HashMut::open(self.site_or_new(key), at, limits)
    }
}
