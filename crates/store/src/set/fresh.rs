//! A set that is not in the keyspace, or not yet: what a command that stores its result makes, and what an edited set is on its way back
//! into its entry.
use super::image::Draft;
use super::image::IMAGE_BYTES_MAX;
use super::name::Name;
use super::tree::SetTree;
use crate::entry::Shape;
use crate::keyspace::shard::Buffers;
use crate::outside::Outside;
use crate::settings::SetLimits;
use crate::site::Site;
use crate::value::Value;
use crate::{Key, View};
use base::Item;
use base::hash::Seed;
use std::ops::ControlFlow;

/// Small or large.
pub(super) enum Fresh {
    Draft(Draft),
    Members(Box<SetTree>),
}

impl Fresh {
    pub(super) fn new(name: Name) -> Fresh {
        Fresh::Draft(Draft { name, bytes: Vec::new() })
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Fresh::Draft(draft) => draft.read().len(),
            Fresh::Members(members) => members.len(),
        }
    }

    pub(super) fn name(&self) -> Name {
        match self {
            Fresh::Draft(draft) => draft.name,
            Fresh::Members(members) => members.name,
        }
    }

    pub(super) fn rename(&mut self, name: Name, seed: &Seed) {
        match self {
            Fresh::Draft(draft) => {
                draft.rename(name);
                self.grow_if_over(seed);
            }
            Fresh::Members(members) => members.name = name,
        }
    }

    /// An image in its other form may be too long.
    fn grow_if_over(&mut self, seed: &Seed) {
        if let Fresh::Draft(draft) = self
            && draft.bytes.len() > IMAGE_BYTES_MAX
        {
            *self = Fresh::Members(Box::new(SetTree::of_image(draft.read(), seed)));
        }
    }

    fn has_texts(&self) -> bool {
        match self {
            Fresh::Draft(draft) => draft.read().has_texts(),
            Fresh::Members(members) => !members.texts.is_empty(),
        }
    }

    /// An "intset" where it holds nothing but integers, and not too many of them.
    pub(super) fn call_ints_so(&mut self, seed: &Seed, limits: &SetLimits) {
        if self.has_texts() || self.len() > limits.intset_entries {
            return;
        }
        match self {
            Fresh::Draft(draft) => {
                draft.sort();
                self.grow_if_over(seed);
            }
            Fresh::Members(members) => members.name = Name::Intset,
        }
    }

    /// The name of a set that never held anything else.
    pub(super) fn name_by_content(&mut self, seed: &Seed, limits: &SetLimits) {
        let is_short = |member: Item<'_>| match member.len() as u64 <= limits.listpack_value_bytes {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let fits = self.len() <= limits.listpack_entries && self.visit(seed, &mut { is_short }).is_continue();
        let name = if fits && self.has_texts() { Name::Listpack } else { Name::Hashtable };
        self.rename(name, seed);
        self.call_ints_so(seed, limits);
    }

    pub(super) fn contains(&self, member: Item<'_>, seed: &Seed) -> bool {
        match self {
            Fresh::Draft(draft) => draft.read().contains(member),
            Fresh::Members(members) => members.contains(member, seed),
        }
    }

    /// Whether it was not there before.
    pub(super) fn insert(&mut self, member: Item<'_>, seed: &Seed, limits: &SetLimits) -> bool {
        match self {
            Fresh::Members(members) => members.insert(member, seed, limits),
            Fresh::Draft(draft) if draft.read().contains(member) => false,
            Fresh::Draft(draft) => {
                if !draft.add(member, limits) {
                    let mut members = Box::new(SetTree::of_image(draft.read(), seed));
                    members.insert(member, seed, limits);
                    *self = Fresh::Members(members);
                }
                true
            }
        }
    }

    /// Whether it was there.
    pub(super) fn remove(&mut self, member: Item<'_>, seed: &Seed) -> bool {
        match self {
            Fresh::Draft(draft) => draft.remove(member),
            Fresh::Members(members) => members.remove(member, seed),
        }
    }

    pub(super) fn visit(
        &self,
        seed: &Seed,
        visit: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            Fresh::Draft(draft) => draft.read().visit(visit),
            Fresh::Members(members) => members.visit(seed, visit),
        }
    }

    /// Makes a large one small again that has become so.
    pub(super) fn settle(&mut self, seed: &Seed) {
        let mut bytes = Vec::new();
        if let Fresh::Members(members) = self
            && members.to_image(seed, &mut bytes)
        {
            *self = Fresh::Draft(Draft { name: members.name, bytes });
        }
    }

    /// Writes it to its place.
    pub(super) fn put(self, site: &mut Site<'_>) {
        match self {
            Fresh::Members(members) => site.put_outside(Shape::SetOutside, Value::Set(*members)),
            Fresh::Draft(draft) => {
                let shape = draft.shape();
                site.context.buffers.text = draft.bytes;
                site.put_image(shape, |buffers: &mut Buffers| &buffers.text);
            }
        }
    }
}

/// The result of a command, to be told or stored.
pub struct NewSet<'k> {
    pub(super) fresh: Fresh,
    pub(super) seed: &'k Seed,
    pub(super) limits: &'k SetLimits,
}

impl<'k> NewSet<'k> {
    pub(super) fn new(name: Name, seed: &'k Seed, limits: &'k SetLimits) -> NewSet<'k> {
        NewSet { fresh: Fresh::new(name), seed, limits }
    }

    pub fn len(&self) -> u64 {
        self.fresh.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn insert(&mut self, member: Item<'_>) -> bool {
        self.fresh.insert(member, self.seed, self.limits)
    }

    pub(super) fn remove(&mut self, member: Item<'_>) -> bool {
        self.fresh.remove(member, self.seed)
    }

    pub fn for_each(&self, visit: &mut dyn FnMut(Item<'_>)) {
        let _ = self.visit(&mut |member| {
            visit(member);
            ControlFlow::Continue(())
        });
    }

    /// Every member until told to stop.
    pub fn visit(&self, visit: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.fresh.visit(self.seed, visit)
    }
}

impl View<'_> {
    /// Puts a result under `key`, without a deadline, in place of whatever was there; an empty one is no key. Whether there was one.
    pub fn put_set(&mut self, key: &Key<'_>, set: NewSet<'_>) -> bool {
        let existed = self.remove(key);
        if !set.is_empty() {
            let NewSet { mut fresh, seed, .. } = set;
            fresh.settle(seed);
            let mut site = self.site_or_new(key);
            fresh.put(&mut site);
        }
        existed
    }
}
