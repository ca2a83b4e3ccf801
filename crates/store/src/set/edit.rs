//! A set, to edit. It holds the place of its entry until it is dropped, which writes it back: so an edit is one descent of the
//! keyspace. What lies outside is edited where it lies; an image is copied into a buffer by the first edit that changes it.
use super::fresh::Fresh;
use super::image::Draft;
use super::image::Image;
use super::name::Name;
use super::tree::SetTree;
use crate::entry::Shape;
use crate::kind::WrongType;
use crate::outside::Outside;
use crate::settings::SetLimits;
use crate::site::Site;
use crate::value::Value;
use crate::{Key, View};
use base::Item;
use base::hash::Seed;
use base::random::Random;
use std::ops::ControlFlow;

/// A set, to edit. Dropping it puts it back; an empty set takes its key with it.
pub struct SetMut<'v> {
    site: Site<'v>,
    seed: &'v Seed,
    limits: &'v SetLimits,
    body: Body,
    /// How many members the command brings.
    expected: u64,
    is_changed: bool,
    has_lost: bool,
}

/// Where the set is while it is edited.
enum Body {
    /// Nowhere: there was none, and it has no name before its first member comes.
    New,
    /// In its entry, as it was.
    Image(Name),
    /// Outside, where it was before.
    Stored,
    /// Not in the keyspace: to be written back.
    Fresh(Fresh),
}

/// Where fewer than this part of what is popped stays, it is what stays that is chosen.
const STAYING_SHARE: u64 = 5;

impl<'v> SetMut<'v> {
    #[inline]
    fn open(site: Site<'v>, seed: &'v Seed, limits: &'v SetLimits) -> Result<SetMut<'v>, WrongType> {
        let body = match site.shape() {
            None => Body::New,
            Some(Shape::SetOutside) => Body::Stored,
            Some(shape) => Body::Image(Image::of(shape, &[]).ok_or(WrongType)?.name),
        };
        Ok(SetMut { site, seed, limits, body, expected: 1, is_changed: false, has_lost: false })
    }

    #[allow(clippy::len_without_is_empty, reason = "no set in the keyspace is empty")]
    pub fn len(&mut self) -> u64 {
        match &self.body {
            Body::New => 0,
            Body::Image(name) => Image { name: *name, bytes: self.site.image().0 }.len(),
            Body::Stored => self.stored().len(),
            Body::Fresh(fresh) => fresh.len(),
        }
    }

    #[inline]
    fn stored(&self) -> &SetTree {
        match self.site.outside() {
            Some(Value::Set(members)) => members,
            _ => unreachable!("the shape said that a set lies outside"),
        }
    }

    #[inline]
    fn stored_mut(&mut self) -> &mut SetTree {
        match self.site.outside_mut() {
            Some(Value::Set(members)) => members,
            _ => unreachable!("the shape said that a set lies outside"),
        }
    }

    /// Tells how many members the command brings: the set may change its name before any of them comes, as in Redis.
    pub fn announce(&mut self, count: u64) {
        self.expected = count;
        let (seed, limits) = (self.seed, self.limits);
        match &mut self.body {
            Body::New => {}
            Body::Stored => {
                let name = self.stored().name;
                if name.expecting(count, limits) != name {
                    self.stored_mut().name = Name::Hashtable;
                }
            }
            Body::Image(name) if name.expecting(count, limits) == *name => {}
            Body::Image(_) | Body::Fresh(_) => {
                self.is_changed = true;
                let fresh = self.fresh_mut();
                let name = fresh.name().expecting(count, limits);
                fresh.rename(name, seed);
            }
        }
    }

    /// Whether it was not there before.
    #[inline]
    pub fn insert(&mut self, member: &[u8]) -> bool {
        let member = Item::classify(member);
        let (seed, limits) = (self.seed, self.limits);
        match &self.body {
            Body::Stored => return self.stored_mut().insert(member, seed, limits),
            Body::Image(name) if (Image { name: *name, bytes: self.site.image().0 }).contains(member) => {
                return false;
            }
            Body::New => self.body = Body::Fresh(Fresh::new(Name::of_new(member, self.expected, limits))),
            _ => {}
        }
        let is_new = self.fresh_mut().insert(member, seed, limits);
        self.is_changed |= is_new;
        is_new
    }

    /// Whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        self.remove_item(Item::classify(member))
    }

    fn remove_item(&mut self, member: Item<'_>) -> bool {
        let seed = self.seed;
        let was_there = match &self.body {
            Body::New => false,
            Body::Stored => self.stored_mut().remove(member, seed),
            Body::Image(name) => {
                let image = Image { name: *name, bytes: self.site.image().0 };
                image.contains(member) && self.fresh_mut().remove(member, seed)
            }
            Body::Fresh(fresh) => fresh.contains(member, seed) && self.fresh_mut().remove(member, seed),
        };
        self.is_changed |= was_there;
        self.has_lost |= was_there;
        was_there
    }

    /// The set as one that is not in the keyspace, an image copied for that.
    fn fresh_mut(&mut self) -> &mut Fresh {
        if let Body::Image(name) = self.body {
            let (image, buffers) = self.site.image();
            let mut bytes = std::mem::take(&mut buffers.text);
            bytes.clear();
            bytes.extend_from_slice(image);
            self.body = Body::Fresh(Fresh::Draft(Draft { name, bytes }));
        }
        match &mut self.body {
            Body::Fresh(fresh) => fresh,
            _ => unreachable!("what is stored is edited where it lies, and a new set has a first member"),
        }
    }

    /// Removes `count` members chosen uniformly and shows each; all, where there are no more.
    pub fn pop(&mut self, count: u64, take: &mut dyn FnMut(Item<'_>)) {
        let len = self.len();
        let staying = len.saturating_sub(count);
        if staying == 0 {
            return self.pop_all(take);
        }
        let mut random = self.site.context.buffers.random.clone();
        if count > staying.saturating_mul(STAYING_SHARE) {
            self.pop_all_but(staying, &mut random, take);
        } else {
            (0..count).for_each(|_| self.pop_one(&mut random, take));
        }
        self.site.context.buffers.random = random;
    }

    /// A copy: its leaf lends it only until it is removed.
    fn pop_one(&mut self, random: &mut Random, take: &mut dyn FnMut(Item<'_>)) {
        let (mut text, mut int) = (std::mem::take(&mut self.site.context.buffers.payload), None);
        text.clear();
        let mut keep = |member: Item<'_>| match member {
            Item::Int(n) => int = Some(n),
            Item::Bytes(bytes) => text.extend_from_slice(bytes),
        };
        match &self.body {
            Body::Stored => self.stored().random(random, keep),
            Body::Fresh(Fresh::Members(members)) => members.random(random, keep),
            _ => {
                if let Fresh::Draft(draft) = self.fresh_mut() {
                    let image = draft.read();
                    keep(image.nth(random.below(image.len())));
                }
            }
        }
        let member = int.map_or(Item::Bytes(&text), Item::Int);
        take(member);
        self.remove_item(member);
        self.site.context.buffers.payload = text;
    }

    fn pop_all(&mut self, take: &mut dyn FnMut(Item<'_>)) {
        let mut visit = |member: Item<'_>| {
            take(member);
            ControlFlow::Continue(())
        };
        let seed = self.seed;
        let _ = match &self.body {
            Body::New => ControlFlow::Continue(()),
            Body::Image(name) => Image { name: *name, bytes: self.site.image().0 }.visit(&mut visit),
            Body::Stored => self.stored().visit(seed, &mut visit),
            Body::Fresh(fresh) => fresh.visit(seed, &mut visit),
        };
        self.body = Body::Fresh(Fresh::new(Name::Intset));
        (self.is_changed, self.has_lost) = (true, true);
    }

    /// What stays is drawn into a set of its own, which has no name from before.
    fn pop_all_but(&mut self, staying: u64, random: &mut Random, take: &mut dyn FnMut(Item<'_>)) {
        let (seed, limits) = (self.seed, self.limits);
        let name = match &self.body {
            Body::Image(name) => *name,
            Body::Fresh(fresh) => fresh.name(),
            _ => self.stored().name,
        };
        let first = if name == Name::Intset { Name::Intset } else { Name::Listpack };
        let mut stays = Fresh::new(first);
        for _ in 0..staying {
            self.pop_one(random, &mut |member| {
                stays.insert(member, seed, limits);
            });
        }
        self.pop_all(take);
        self.body = Body::Fresh(stays);
    }

    /// After removals: a set may have become small.
    fn settle(&mut self) {
        let seed = self.seed;
        match &mut self.body {
            Body::Fresh(fresh) => fresh.settle(seed),
            Body::Stored => {
                let mut bytes = std::mem::take(&mut self.site.context.buffers.text);
                let (name, is_small) = (self.stored().name, self.stored().to_image(seed, &mut bytes));
                if is_small {
                    self.body = Body::Fresh(Fresh::Draft(Draft { name, bytes }));
                } else {
                    self.site.context.buffers.text = bytes;
                }
            }
            Body::New | Body::Image(_) => {}
        }
    }
}

/// The one place where an edited set becomes an entry again. A command that fails half-way writes back what it has done so far; one
/// that changed nothing writes nothing.
impl Drop for SetMut<'_> {
    fn drop(&mut self) {
        let is_new = matches!(self.body, Body::New);
        if !is_new && !self.has_lost && !self.is_changed {
            return;
        }
        if is_new || self.len() == 0 {
            return self.site.remove();
        }
        if self.has_lost {
            self.settle();
        }
        if let Body::Fresh(fresh) = std::mem::replace(&mut self.body, Body::Stored) {
            fresh.put(&mut self.site);
        }
    }
}

impl<'k> View<'k> {
    #[inline]
    pub fn set_mut<'v>(&'v mut self, key: &Key<'v>) -> Result<Option<SetMut<'v>>, WrongType> {
        let (seed, limits) = (&self.seeds().members, &self.settings().set);
        self.site(key).map(|site| SetMut::open(site, seed, limits)).transpose()
    }

    /// Created empty where missing.
    #[inline]
    pub fn set_or_new<'v>(&'v mut self, key: &Key<'v>) -> Result<SetMut<'v>, WrongType> {
        let (seed, limits) = (&self.seeds().members, &self.settings().set);
        SetMut::open(self.site_or_new(key), seed, limits)
    }
}
