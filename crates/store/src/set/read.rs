//! A set, to read: the same questions of an image and of what lies outside.
use super::image::{INDEXED_LEN_MIN, Image};
use super::name::Name;
use super::tree::SetTree;
use crate::entry::Meta;
use crate::kind::WrongType;
use crate::outside::Outside;
use crate::value::Value;
use crate::{Halt, Key, View};
use base::Item;
use base::hash::Seed;
use base::random::Random;
use pack::ItemIndex;
use std::ops::ControlFlow;

/// A set, to read. It is lent by the view, or by a result that is not stored yet.
#[derive(Clone, Copy)]
pub struct Set<'v> {
    pub(super) source: Source<'v>,
    pub(super) seed: &'v Seed,
}

#[derive(Clone, Copy)]
pub(super) enum Source<'v> {
    Image(Image<'v>),
    Members(&'v SetTree),
}

/// A set that is asked for many members.
pub(super) struct Asked<'v> {
    set: Set<'v>,
    index: Option<Box<ItemIndex>>,
}

impl<'v> Asked<'v> {
    /// A set that will be asked for about so many.
    pub(super) fn new(set: Set<'v>, times: u64) -> Asked<'v> {
        let index = match set.source {
            Source::Image(image) if times.min(image.len()) >= INDEXED_LEN_MIN => image.index(),
            _ => None,
        };
        Asked { set, index }
    }

    pub(super) fn all(sets: &[Set<'v>], times: u64) -> Vec<Asked<'v>> {
        sets.iter().map(|set| Asked::new(*set, times)).collect()
    }

    #[inline]
    pub(super) fn has(&self, member: Item<'_>) -> bool {
        match (&self.index, self.set.source) {
            (Some(index), Source::Image(image)) => index.has(image.bytes, member),
            _ => self.set.has(member),
        }
    }
}

/// A sample of fewer than one member in so many is drawn member by member; a larger one is picked in one walk
/// over all members.
const DRAWN_SHARE: u64 = 3;

impl<'v> Set<'v> {
    pub(crate) fn of(
        meta: Meta,
        payload: &'v [u8],
        outside: Option<&'v Value>,
        seed: &'v Seed,
    ) -> Result<Set<'v>, WrongType> {
        let source = match outside {
            Some(Value::Set(members)) => Source::Members(members),
            Some(_) => return Err(WrongType),
            None => Source::Image(Image::of(meta.shape(), meta.value(payload)).ok_or(WrongType)?),
        };
        Ok(Set { source, seed })
    }

    /// How many members there are: O(1), but for a walk over an image that is no "intset".
    #[allow(clippy::len_without_is_empty, reason = "no set in the keyspace is empty")]
    pub fn len(&self) -> u64 {
        match self.source {
            Source::Image(image) => image.len(),
            Source::Members(members) => members.len(),
        }
    }

    /// Whether `member` is one. Inside the entry this walks the image, outside it is one descent.
    #[inline]
    pub fn contains(&self, member: &[u8]) -> bool {
        self.has(Item::classify(member))
    }

    #[inline]
    pub(super) fn has(&self, member: Item<'_>) -> bool {
        match self.source {
            Source::Image(image) => image.contains(member),
            Source::Members(members) => members.contains(member, self.seed),
        }
    }

    /// Whether all members are integers, and kept in ascending order.
    pub(super) fn is_of_ints(&self) -> bool {
        match self.source {
            Source::Image(image) => image.name == Name::Intset,
            Source::Members(members) => members.texts.is_empty(),
        }
    }

    /// Whether it is an image whose members have the order in which they came.
    pub(super) fn is_in_order_of_insertion(&self) -> bool {
        matches!(self.source, Source::Image(image) if image.name != Name::Intset)
    }

    pub(super) fn name(&self) -> Name {
        match self.source {
            Source::Image(image) => image.name,
            Source::Members(members) => members.name,
        }
    }

    /// Visits every member until told to stop; those of a small set in the order in which Redis answers them.
    pub fn visit(&self, visit: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        match self.source {
            Source::Image(image) => image.visit(visit),
            Source::Members(members) => members.visit(self.seed, visit),
        }
    }

    /// As [`Set::visit`], from a halt on; the set must not change between the calls. Returns the halt behind
    /// the last member visited, None at the end.
    pub fn visit_from(&self, from: Halt, visit: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>) -> Option<Halt> {
        match self.source {
            Source::Image(image) => from.go_on(0..image.len(), |index| visit(image.nth(index))),
            Source::Members(members) => members.visit_from(from, visit),
        }
    }

    /// Visits every member, in the order of [`Set::visit`].
    pub fn for_each(&self, visit: &mut dyn FnMut(Item<'_>)) {
        let _ = self.visit(&mut |member| {
            visit(member);
            ControlFlow::Continue(())
        });
    }

    /// Visits about `count` members from a cursor on (any number; 0 is the beginning), or all members of a
    /// set that Redis keeps in one block. Returns the next cursor, 0 at the end. A member that is there from
    /// the call with 0 to the one that returns 0 is visited.
    pub fn scan(&self, cursor: u64, count: u64, visit: &mut dyn FnMut(Item<'_>)) -> u64 {
        match self.source {
            Source::Members(members) if members.name == Name::Hashtable => {
                members.scan(self.seed, cursor, count, visit)
            }
            _ => {
                self.for_each(visit);
                0
            }
        }
    }

    /// Lends a member chosen uniformly.
    pub fn random(&self, random: &mut Random, look: impl FnOnce(Item<'_>)) {
        match self.source {
            Source::Image(image) => look(image.nth(random.below(image.len()))),
            Source::Members(members) => members.random(random, look),
        }
    }

    /// Lends `count` different members, or all if there are no more, until told to stop. Each choice of so
    /// many members has the same chance.
    pub fn sample(
        &self,
        count: u64,
        random: &mut Random,
        visit: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
    ) {
        let len = self.len();
        if count >= len {
            let _ = self.visit(visit);
            return;
        }
        if count > len / DRAWN_SHARE {
            return self.pick(count, random, visit);
        }
        let mut seen = base::hash::Set::<Vec<u8>>::default();
        let mut flow = ControlFlow::Continue(());
        while (seen.len() as u64) < count && flow.is_continue() {
            self.random(random, |member| {
                let mut text = Vec::with_capacity(member.len());
                member.append_to(&mut text);
                if seen.insert(text) {
                    flow = visit(member);
                }
            });
        }
    }

    /// Picks a sample in one walk over all members: each is taken with the chance (members still wanted) /
    /// (members left).
    fn pick(&self, count: u64, random: &mut Random, visit: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>) {
        let (mut wanted, mut left) = (count, self.len());
        let _ = self.visit(&mut |member| {
            if random.below(left) < wanted {
                visit(member)?;
                wanted -= 1;
            }
            left -= 1;
            if wanted == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
}

impl<'k> View<'k> {
    /// The set under `key`, to read; None where there is no such key.
    pub fn set(&mut self, key: &Key<'_>) -> Result<Option<Set<'_>>, WrongType> {
        let seed = &self.seeds().members;
        let found = self.look_used(key);
        found.map(|found| Set::of(Meta(found.meta), found.inline, found.outside, seed)).transpose()
    }

    /// The sets under several keys, lent at once; None for each key that is missing.
    pub fn sets(&mut self, keys: &[Key<'_>]) -> Result<Vec<Option<Set<'_>>>, WrongType> {
        let mut are_there = Vec::with_capacity(keys.len());
        for key in keys {
            are_there.push(self.set(key)?.is_some());
        }
        let seed = &self.seeds().members;
        let found = keys.iter().zip(are_there).map(|(key, is_there)| {
            let found = self.peek(key).filter(|_| is_there);
            found.map(|found| Set::of(Meta(found.meta), found.inline, found.outside, seed)).transpose()
        });
        found.collect()
    }
}
