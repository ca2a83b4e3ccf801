//! A set that is not in the keyspace, or not yet: the result of a command that answers or stores a set.
use super::edit::SetMut;
use super::image::{Draft, INDEXED_LEN_MIN, INSIDE, Image};
use super::name::Name;
use super::read::{Set, Source};
use super::tree::SetTree;
use crate::settings::SetLimits;
use crate::{Key, View};
use base::Item;
use base::hash::Seed;
use pack::ItemIndex;
use pack::set_image::ints;
use std::ops::ControlFlow;

/// A set made by a command, to be answered or stored.
pub struct NewSet<'k> {
    pub(super) body: Body,
    pub(super) seed: &'k Seed,
    pub(super) limits: &'k SetLimits,
    /// Of an image to which members are added one after the other, while nothing else is done to it.
    index: Option<Box<ItemIndex>>,
}

/// Small or large.
pub(super) enum Body {
    Image(Name, Vec<u8>),
    Members(Box<SetTree>),
}

impl<'k> NewSet<'k> {
    pub(super) fn new(name: Name, seed: &'k Seed, limits: &'k SetLimits) -> NewSet<'k> {
        NewSet::of(Body::Image(name, Vec::new()), seed, limits)
    }

    pub(super) fn of(body: Body, seed: &'k Seed, limits: &'k SetLimits) -> NewSet<'k> {
        NewSet { body, seed, limits, index: None }
    }

    /// The set, to be read.
    fn read(&self) -> Set<'_> {
        let source = match &self.body {
            Body::Image(name, bytes) => Source::Image(Image { name: *name, bytes }),
            Body::Members(members) => Source::Members(members),
        };
        Set { source, seed: self.seed }
    }

    /// How many members there are: O(1), but for a walk over an image that is no "intset".
    pub fn len(&self) -> u64 {
        self.read().len()
    }

    /// Whether there are none. Such a result is stored as no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Visits every member, in the order of [`Set::visit`].
    pub fn for_each(&self, visit: &mut dyn FnMut(Item<'_>)) {
        self.read().for_each(visit);
    }

    /// Visits every member until told to stop.
    pub fn visit(&self, visit: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.read().visit(visit)
    }

    /// Adds a member, and returns whether it is new.
    pub(super) fn insert(&mut self, member: Item<'_>) -> bool {
        if let Source::Image(image) = self.read().source {
            if self.index.is_none() && image.len() >= INDEXED_LEN_MIN {
                self.index = image.index();
            }
            if self.is_in_image(member) {
                return false;
            }
            if self.add(member) {
                return true;
            }
            self.grow();
        }
        let Body::Members(members) = &mut self.body else { unreachable!("it has just grown") };
        members.insert(member, self.seed, self.limits)
    }

    /// Adds integers that ascend to a set that has none of them. An empty "intset" becomes the set that they
    /// would make one by one.
    pub(super) fn add_ints(&mut self, values: &[i64]) {
        let (Some(first), Some(last)) = (values.first(), values.last()) else { return };
        let is_fresh = matches!(&self.body, Body::Image(Name::Intset, bytes) if bytes.is_empty());
        let is_intset = values.len() as u64 <= self.limits.intset_entries;
        // One that is no "intset" may be an image of items.
        let is_short = values.len() <= INSIDE.bytes_of_any();
        if !is_fresh || !is_intset && is_short {
            return values.iter().for_each(|value| {
                self.insert(Item::Int(*value));
            });
        }
        let name = if is_intset { Name::Intset } else { Name::Hashtable };
        let len_bytes = ints::len_bytes_of(values.len(), *first, *last);
        if len_bytes > INSIDE.bytes_of_any() {
            self.body = Body::Members(Box::new(SetTree::of_ints(values, name)));
            return;
        }
        let mut image = Vec::with_capacity(len_bytes);
        ints::build(&mut image, values);
        self.body = Body::Image(Name::Intset, image);
        self.rename(name);
    }

    fn is_in_image(&self, member: Item<'_>) -> bool {
        match (&self.index, &self.body) {
            (Some(index), Body::Image(_, bytes)) => index.has(bytes, member),
            _ => self.read().has(member),
        }
    }

    /// Adds a member that is not there to the image, and returns whether it had room.
    fn add(&mut self, member: Item<'_>) -> bool {
        let (limits, index) = (self.limits, self.index.take());
        let Body::Image(name, bytes) = &mut self.body else { return false };
        let (name_before, at) = (*name, bytes.len());
        let is_added = Draft { name, bytes }.add(member, limits);
        if let (Some(mut index), true) = (index, is_added && *name == name_before) {
            index.add(member, at);
            self.index = Some(index);
        }
        is_added
    }

    /// Removes a member, and returns whether it was one.
    pub(super) fn remove(&mut self, member: Item<'_>) -> bool {
        self.index = None;
        match &mut self.body {
            Body::Image(name, bytes) => Draft { name, bytes }.remove(member),
            Body::Members(members) => members.remove(member, self.seed),
        }
    }

    fn grow(&mut self) {
        if let Source::Image(image) = self.read().source {
            self.body = Body::Members(Box::new(SetTree::of_image(image, self.seed)));
        }
    }

    /// Makes a tree of an image that is too long. A new name can make it so, because an image of items may
    /// take more bytes than one of integers.
    fn grow_if_over(&mut self) {
        if matches!(self.read().source, Source::Image(image) if !image.may_stay()) {
            self.grow();
        }
    }

    fn rename(&mut self, name: Name) {
        self.index = None;
        match &mut self.body {
            Body::Members(members) => members.name = name,
            Body::Image(old, bytes) => Draft { name: old, bytes }.rename(name),
        }
        self.grow_if_over();
    }

    fn has_texts(&self) -> bool {
        match self.read().source {
            Source::Image(image) => image.has_texts(),
            Source::Members(members) => !members.texts.is_empty(),
        }
    }

    /// Names the set "intset" if it holds only integers, and no more than `set-max-intset-entries` of them.
    pub(super) fn call_ints_so(&mut self) {
        if matches!(self.body, Body::Image(Name::Intset, _)) {
            return;
        }
        if self.has_texts() || self.len() > self.limits.intset_entries {
            return;
        }
        self.index = None;
        match &mut self.body {
            Body::Members(members) => members.name = Name::Intset,
            Body::Image(name, bytes) => Draft { name, bytes }.sort(),
        }
        self.grow_if_over();
    }

    /// Gives the set the name of one that never held anything but its present members.
    pub(super) fn name_by_content(&mut self) {
        let limits = self.limits;
        let is_short = |member: Item<'_>| match member.len() as u64 <= limits.listpack_value_bytes {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let fits = self.len() <= limits.listpack_entries && self.visit(&mut { is_short }).is_continue();
        let name = if fits && self.has_texts() { Name::Listpack } else { Name::Hashtable };
        self.rename(name);
        self.call_ints_so();
    }
}

impl View<'_> {
    /// Puts a result under `key`, without a deadline, in the place of whatever was there. An empty result is
    /// not stored, and only removes the key. Returns whether the key existed.
    pub fn put_set(&mut self, key: &Key<'_>, set: NewSet<'_>) -> bool {
        let replaced = self.remove_for_result(key);
        if !set.is_empty() {
            SetMut::of_new(self.site_or_new(key), set);
            self.note_stored(key, &replaced);
        }
        replaced.existed
    }
}
