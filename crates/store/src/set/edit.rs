//! A set, to edit. It holds its entry until it is dropped, which writes the set back: so an edit is one
//! descent of the keyspace. What lies outside is edited where it lies, and so is an image in a block of its
//! own by the first edits; else an image is copied into a buffer by the first edit that changes it.
use super::fresh::{Body, NewSet};
use super::image::{self, Draft, Image};
use super::name::Name;
use super::tree::{RETURN_LEN_MAX, SetTree};
use crate::edit::{Collection, Edit, Start};
use crate::entry::Shape;
use crate::keyspace::shard::Buffers;
use crate::kind::WrongType;
use crate::outside::Outside;
use crate::settings::SetLimits;
use crate::site::Site;
use crate::{Key, View};
use base::Item;
use base::hash::Seed;
use base::random::Random;
use pack::set_image::{TEXT_BYTES_MAX, items};
use std::ops::ControlFlow;

/// How a set is edited.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'v> {
    pub(super) seed: &'v Seed,
    pub(super) limits: &'v SetLimits,
}

/// A set, to edit. Dropping it puts it back; an empty set takes its key with it.
pub struct SetMut<'v> {
    pub(super) edit: Edit<'v, SetTree>,
    /// How many members the command brings.
    pub(super) expected: u64,
}

/// If fewer members stay than one for so many that are popped, those that stay are drawn at random instead of
/// those that go.
const STAYING_SHARE: u64 = 5;

impl<'v> SetMut<'v> {
    #[inline(always)]
    fn open(site: Site<'v>, rules: Rules<'v>) -> Result<SetMut<'v>, WrongType> {
        let start = Start::of(site.shape())?;
        Ok(SetMut { edit: Edit::new(site, rules, start), expected: 1 })
    }

    /// Puts a set under a key that does not exist.
    pub(super) fn of_new(site: Site<'v>, set: NewSet<'v>) {
        let rules = Rules { seed: set.seed, limits: set.limits };
        SetMut::open(site, rules).expect("where nothing is, nothing is of another type").put(set);
    }

    /// How many members there are: O(1), but for a walk over an image that is no "intset".
    #[allow(clippy::len_without_is_empty, reason = "no set in the keyspace is empty")]
    pub fn len(&self) -> u64 {
        self.edit.tree().map_or_else(|| self.image().len(), SetTree::len)
    }

    /// The set as an image: in its entry, or in the buffer it has been copied to.
    #[inline]
    fn image(&self) -> Image<'_> {
        let bytes = match self.edit.is_untouched() {
            true => self.edit.site.image(),
            false => &self.edit.buffers().text,
        };
        Image { name: self.edit.state, bytes }
    }

    /// The image, to be edited: copied to a buffer first where it has not been.
    fn draft(&mut self) -> Draft<'_> {
        self.edit.open_draft();
        self.edit.is_changed = true;
        Draft { name: &mut self.edit.state, bytes: &mut self.edit.site.context.buffers.text }
    }

    /// Replaces this set by another.
    fn put(&mut self, set: NewSet<'_>) {
        match set.body {
            Body::Members(members) => {
                self.edit.put_tree(members);
                self.edit.has_lost = true;
            }
            Body::Image(name, bytes) => {
                self.edit.buffers_mut().text = bytes;
                self.edit.put_draft(name);
            }
        }
    }

    /// To be called with the number of members that the command brings: as in Redis, the name may change
    /// before any of them is added.
    pub fn announce(&mut self, count: u64) {
        self.expected = count;
        self.edit.expect(count);
        let limits = self.edit.rules.limits;
        if let Some(tree) = self.edit.tree_mut() {
            tree.name = tree.name.expecting(count, limits);
            return;
        }
        let (old, name) = (self.edit.state, self.edit.state.expecting(count, limits));
        let is_nowhere = self.edit.is_new() && self.edit.is_untouched();
        if name != old && !is_nowhere {
            let mut draft = self.draft();
            draft.rename(name);
            if !draft.read().may_stay() {
                self.edit.grow();
            }
        }
    }

    /// Adds a member, and returns whether it is new.
    #[inline]
    pub fn insert(&mut self, member: &[u8]) -> bool {
        let member = Item::classify(member);
        let Rules { seed, limits } = self.edit.rules;
        match self.edit.tree_mut() {
            Some(tree) => tree.insert(member, seed, limits),
            None => self.insert_in_draft(member),
        }
    }

    fn insert_in_draft(&mut self, member: Item<'_>) -> bool {
        if self.image().contains(member) {
            return false;
        }
        if self.insert_apart(member) {
            return true;
        }
        let Rules { seed, limits } = self.edit.rules;
        if self.edit.is_new() && self.edit.is_untouched() {
            self.edit.state = Name::of_new(member, self.expected, limits);
        }
        if !self.draft().add(member, limits) {
            self.edit.grow();
            if let Some(tree) = self.edit.tree_mut() {
                tree.insert(member, seed, limits);
            }
        }
        true
    }

    /// Adds a member that is not there where the image lies, if that is all there is to do; whether it did.
    fn insert_apart(&mut self, member: Item<'_>) -> bool {
        let (name, limits) = (self.edit.state, self.edit.rules.limits);
        let takes = |image: &&[u8]| {
            let (len, bytes) = (items::len(image) as u64, items::len_bytes_with(image, member));
            name != Name::Intset
                && member.len() <= TEXT_BYTES_MAX
                && name.with(member, len, || 0, limits) == name
                && image::INSIDE.holds(bytes, || len + 1)
                && Site::stays_apart(bytes)
        };
        self.edit.image_apart().filter(takes).is_some()
            && self.edit.site.edit_apart(|image| items::append(image, member)).is_some()
    }

    /// Removes a member where the image lies, if that is all there is to do; whether it did.
    fn remove_apart(&mut self, member: Item<'_>) -> bool {
        let is_intset = self.edit.state == Name::Intset;
        let Some(image) = self.edit.image_apart().filter(|_| !is_intset) else { return false };
        let found = items::find(image, member).filter(|it| Site::stays_apart(image.len() - it.len()));
        found.is_some_and(|it| self.edit.site.edit_apart(|image| items::remove(image, it)).is_some())
    }

    /// To be called with the number of members that the command is about to remove.
    pub fn expect_removals(&mut self, members: u64) {
        self.edit.expect(members);
    }

    /// Removes a member, and returns whether it was one.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        self.remove_item(Item::classify(member))
    }

    fn remove_item(&mut self, member: Item<'_>) -> bool {
        if self.remove_apart(member) {
            return true;
        }
        let seed = self.edit.rules.seed;
        let was_there = match self.edit.tree_mut() {
            Some(tree) => tree.remove(member, seed),
            None => self.image().contains(member) && self.draft().remove(member),
        };
        self.edit.is_changed |= was_there;
        self.edit.has_lost |= was_there;
        was_there
    }

    /// Removes `count` members chosen uniformly, or all if there are no more, and shows each to `take`.
    /// O(`count`), or where few members stay, O(members that stay) and a walk over all.
    pub fn pop(&mut self, count: u64, take: &mut dyn FnMut(Item<'_>)) {
        let len = self.len();
        let staying = len.saturating_sub(count);
        if staying == 0 {
            return self.pop_all(take);
        }
        self.edit.expect(count);
        let mut random = self.edit.buffers_mut().random.clone();
        if count > staying.saturating_mul(STAYING_SHARE) {
            self.pop_all_but(staying, &mut random, take);
        } else {
            (0..count).for_each(|_| self.pop_one(&mut random, take));
        }
        self.edit.buffers_mut().random = random;
    }

    /// Removes one member chosen uniformly. It is copied before, because its leaf cannot lend it once it is
    /// removed.
    fn pop_one(&mut self, random: &mut Random, take: &mut dyn FnMut(Item<'_>)) {
        let (mut text, mut int) = (std::mem::take(&mut self.edit.buffers_mut().payload), None);
        text.clear();
        let mut keep = |member: Item<'_>| match member {
            Item::Int(n) => int = Some(n),
            Item::Bytes(bytes) => text.extend_from_slice(bytes),
        };
        match self.edit.tree() {
            Some(tree) => tree.random(random, keep),
            None => {
                let image = self.image();
                keep(image.nth(random.below(image.len())));
            }
        }
        let member = int.map_or(Item::Bytes(&text), Item::Int);
        take(member);
        self.remove_item(member);
        self.edit.buffers_mut().payload = text;
    }

    fn pop_all(&mut self, take: &mut dyn FnMut(Item<'_>)) {
        let mut visit = |member: Item<'_>| {
            take(member);
            ControlFlow::Continue(())
        };
        let _ = match self.edit.tree() {
            Some(tree) => tree.visit(self.edit.rules.seed, &mut visit),
            None => self.image().visit(&mut visit),
        };
        self.edit.clear();
    }

    /// Draws the members that stay into a new set, which replaces the old one. The name of the new set does
    /// not depend on what the old one held before.
    fn pop_all_but(&mut self, staying: u64, random: &mut Random, take: &mut dyn FnMut(Item<'_>)) {
        let Rules { seed, limits } = self.edit.rules;
        let name = self.edit.tree().map_or(self.edit.state, |tree| tree.name);
        let first = if name == Name::Intset { Name::Intset } else { Name::Listpack };
        let mut stays = NewSet::new(first, seed, limits);
        for _ in 0..staying {
            self.pop_one(random, &mut |member| {
                stays.insert(member);
            });
        }
        self.pop_all(take);
        self.put(stays);
    }
}

impl Collection for SetTree {
    type Rules<'v> = Rules<'v>;
    type State = Name;
    const OUTSIDE: Shape = Shape::SetOutside;

    /// A new set gets its name with its first member.
    #[inline]
    fn state(shape: Option<Shape>) -> Option<Name> {
        shape.map_or(Some(Name::Intset), |shape| Image::of(shape, &[]).map(|image| image.name))
    }

    fn shape(name: Name, _: &Buffers) -> Shape {
        image::shape(name)
    }

    fn grow(name: Name, rules: Rules<'_>, buffers: &Buffers) -> SetTree {
        SetTree::of_image(Image { name, bytes: &buffers.text }, rules.seed)
    }

    fn shrink(&self, name: &mut Name, rules: Rules<'_>, buffers: &mut Buffers) -> bool {
        *name = self.name;
        self.to_image(rules.seed, &mut buffers.text)
    }

    #[inline]
    fn settle(edit: &mut Edit<'_, SetTree>) -> bool {
        edit.has_lost && edit.tree().is_some_and(|tree| tree.len() <= RETURN_LEN_MAX)
    }
}

impl<'k> View<'k> {
    /// The set under `key`, to edit; None where there is no such key.
    #[inline]
    pub fn set_mut<'v>(&'v mut self, key: &Key<'v>) -> Result<Option<SetMut<'v>>, WrongType> {
        let rules = Rules { seed: &self.seeds().members, limits: &self.settings().set };
        self.site(key).map(|site| SetMut::open(site, rules)).transpose()
    }

    /// The set under `key`, to edit; a new one where there is no such key. The key is created only if a
    /// member is added.
    #[inline(always)]
    pub fn set_or_new<'v>(&'v mut self, key: &Key<'v>) -> Result<SetMut<'v>, WrongType> {
        let rules = Rules { seed: &self.seeds().members, limits: &self.settings().set };
        SetMut::open(self.site_or_new(key), rules)
    }
}
