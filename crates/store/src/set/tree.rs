//! A set outside its entry: a tree of integers by value and a tree of texts by hash. A member that reads as
//! an integer is always in the first, so there is one tree in which to look for each.
use super::image::{INSIDE, Image};
use super::name::Name;
use crate::distinct::arrange;
use crate::halt::{Halt, Stage};
use crate::key_info::KeyInfo;
use crate::outside::{Outside, mean_sole};
use crate::position::{Position, cell, walk_cells};
use crate::settings::SetLimits;
use base::Item;
use base::hash::Seed;
use base::random::Random;
use base::text::i64_len;
use pack::arena::Moves;
use pack::int_set::IntSet;
use pack::map::build::{Fill, MapBuilder};
use pack::map::{self, Entry, Map, Stop};
use pack::set_image::{TEXT_BYTES_MAX, ints, items};
use pack::sift::Pass;
use std::ops::ControlFlow;

/// A set outside its entry. Cloning it is two increments.
#[derive(Clone)]
pub(crate) struct SetTree {
    /// The members that read as integers, in ascending order.
    pub(super) ints: IntSet,
    /// All other members, by hash. An entry is a member and nothing else.
    pub(super) texts: Map<(), map::Members>,
    /// What OBJECT ENCODING says.
    pub(super) name: Name,
}

/// A set of more members does not return into its entry.
pub(super) const RETURN_LEN_MAX: u64 = 16;

impl SetTree {
    pub(super) fn new(name: Name) -> SetTree {
        SetTree { ints: IntSet::new(), texts: Map::new(), name }
    }

    /// The tree of the members of an image.
    pub(super) fn of_image(image: Image<'_>, seed: &Seed) -> SetTree {
        let mut members = SetTree::new(image.name);
        let _ = image.visit(&mut |member| {
            members.add(member, seed);
            ControlFlow::Continue(())
        });
        members
    }

    /// The tree of integers that ascend.
    pub(super) fn of_ints(values: &[i64], name: Name) -> SetTree {
        SetTree { ints: IntSet::of_sorted(values), texts: Map::new(), name }
    }

    /// The tree of these members; None where one is there twice. Texts that fit one leaf keep their order.
    pub(super) fn of_members(members: &[Item<'_>], name: Name, seed: &Seed) -> Option<SetTree> {
        let (mut ints, mut texts) = (Vec::new(), Vec::new());
        for (member, index) in members.iter().zip(0..) {
            match member {
                Item::Int(n) => ints.push(*n),
                Item::Bytes(text) => texts.push((seed.hash(text), index)),
            }
        }
        ints.sort_unstable();
        let text = |index: u32| members[index as usize];
        let fill = Fill::of::<map::Members>(texts.iter().map(|(_, index)| text(*index).len()));
        if ints.windows(2).any(|pair| pair[0] == pair[1]) || !arrange(&mut texts, fill == Fill::OneLeaf, text)
        {
            return None;
        }
        let mut builder = MapBuilder::new(fill);
        for (hash, index) in texts {
            if let Item::Bytes(text) = text(index) {
                builder.push(hash, text, (0, &[]), None);
            }
        }
        Some(SetTree { ints: IntSet::of_sorted(&ints), texts: builder.finish(), name })
    }

    /// Whether it is a member: one descent of the tree that it would be in.
    #[inline]
    pub(crate) fn contains(&self, member: Item<'_>, seed: &Seed) -> bool {
        match member {
            Item::Int(n) => self.ints.contains(n),
            Item::Bytes(text) => !self.texts.is_empty() && self.texts.find(seed.hash(text), text).is_some(),
        }
    }

    /// Adds a member, and returns whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, member: Item<'_>, seed: &Seed, limits: &SetLimits) -> bool {
        let len = self.len();
        if !self.add(member, seed) {
            return false;
        }
        self.name = self.name.with(member, len, || self.longest(), limits);
        true
    }

    /// Adds a member without changing the name, and returns whether it is new.
    #[inline]
    pub(super) fn add(&mut self, member: Item<'_>, seed: &Seed) -> bool {
        let text = match member {
            Item::Int(n) => return self.ints.insert(n),
            Item::Bytes(text) => text,
        };
        match self.texts.entry(seed, seed.hash(text), text) {
            Entry::Occupied(_) => false,
            Entry::Vacant(entry) => {
                entry.insert(0, &[], None, &mut ());
                true
            }
        }
    }

    /// Removes a member, and returns whether it was one.
    pub(super) fn remove(&mut self, member: Item<'_>, seed: &Seed) -> bool {
        match member {
            Item::Int(n) => self.ints.remove(n),
            Item::Bytes(text) => self.texts.remove(seed, seed.hash(text), text).is_some(),
        }
    }

    /// Visits every member until told to stop: integers in ascending order, then texts in hash order of
    /// leaves.
    pub(crate) fn visit(
        &self,
        seed: &Seed,
        visit: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut cursor = self.ints.cursor();
        while let Some(n) = cursor.value() {
            visit(Item::Int(n))?;
            cursor.step();
        }
        self.visit_texts(seed, &mut |text| visit(Item::Bytes(text)))
    }

    /// As [`SetTree::visit`], from a halt on; the set must not change between the calls. Returns the halt
    /// behind the last member visited, None at the end.
    pub(super) fn visit_from(
        &self,
        from: Halt,
        visit: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
    ) -> Option<Halt> {
        let stop = match from.0 {
            Stage::Text(stop) => stop,
            Stage::Int(first) => {
                let mut cursor = self.ints.cursor_from(first);
                while let Some(n) = cursor.value() {
                    if visit(Item::Int(n)).is_break() {
                        return Some(Halt::behind(n));
                    }
                    cursor.step();
                }
                Stop::default()
            }
            Stage::Image(_) => unreachable!("a set that does not change stays where it is"),
        };
        let stop = self.texts.visit_from(stop, &mut |found| visit(Item::Bytes(found.key)));
        stop.map(|stop| Halt(Stage::Text(stop)))
    }

    /// Visits the texts alone, in the order of [`SetTree::visit`].
    pub(super) fn visit_texts(
        &self,
        seed: &Seed,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.texts.sift(seed, &[], Pass::Rest, visit)
    }

    /// Lends a member chosen uniformly, if there is one.
    pub(super) fn random(&self, random: &mut Random, look: impl FnOnce(Item<'_>)) {
        let is_int = random.below(self.len().max(1)) < self.ints.len();
        match is_int {
            true => self.ints.random(random).map(|n| look(Item::Int(n))),
            false => self.texts.random(random).map(|found| look(Item::Bytes(found.key))),
        };
    }

    /// Visits about `count` members from a position on ([`crate::position`]; 0: the beginning) and returns
    /// the position after them, 0 at the end.
    pub(super) fn scan(&self, seed: &Seed, from: u64, count: u64, visit: &mut dyn FnMut(Item<'_>)) -> u64 {
        let mut seen = 0;
        let first = match Position::of(from) {
            Position::Int(first) => first,
            Position::Text(place) => {
                let mut place = place;
                while let Some(next) = self.texts.scan(seed, place, &mut |found| {
                    seen += 1;
                    visit(Item::Bytes(found.key));
                }) {
                    place = next;
                    if seen >= count {
                        return u64::from(next);
                    }
                }
                match self.ints.first() {
                    Some(first) if seen < count => first,
                    first => return first.map_or(0, cell),
                }
            }
        };
        self.scan_ints(first, count - seen, visit)
    }

    fn scan_ints(&self, from: i64, count: u64, visit: &mut dyn FnMut(Item<'_>)) -> u64 {
        let mut seen = 0;
        let next = walk_cells(from, |from| {
            let next = self.ints.scan(from, &mut |n| {
                seen += 1;
                visit(Item::Int(n));
            });
            (next, seen >= count)
        });
        next.unwrap_or(0)
    }

    /// Writes the image of a set of at most [`RETURN_LEN_MAX`] members, and returns whether it is small
    /// enough.
    pub(super) fn to_image(&self, seed: &Seed, image: &mut Vec<u8>) -> bool {
        image.clear();
        self.visit(seed, &mut |member| {
            match member {
                Item::Int(n) if self.name == Name::Intset => ints::insert(image, ints::len(image), n),
                Item::Bytes(text) if text.len() > TEXT_BYTES_MAX => return ControlFlow::Break(()),
                member => items::append(image, member),
            }
            match INSIDE.takes_back(image.len(), self.len()) {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })
        .is_continue()
    }

    /// The length of the longest integer as text, which is that of the least or the greatest.
    #[cold]
    fn longest(&self) -> usize {
        let ends = [self.ints.first(), self.ints.last()];
        ends.into_iter().flatten().map(i64_len).max().unwrap_or(0)
    }
}

impl Outside for SetTree {
    fn len(&self) -> u64 {
        self.ints.len() + self.texts.len()
    }

    fn encoding(&self) -> &'static str {
        self.name.text()
    }

    fn bytes(&self) -> u64 {
        self.ints.bytes_about() + self.texts.bytes_about()
    }

    fn allocated_bytes(&self) -> u64 {
        self.ints.allocated_about() + self.texts.allocated_about(&|_| 0).unsigned_abs()
    }

    fn count_sole(&self, samples: u64) -> u64 {
        let (ints, texts) = (self.ints.len(), self.texts.len());
        mean_sole((ints, || self.ints.count_sole(samples)), (texts, || self.texts.count_sole(samples)))
    }

    /// Texts come first, then integers: the positions of [`crate::position`] are in this order too.
    fn relocate(&mut self, from: u64, effort: u64, moves: &mut Moves) -> Option<u64> {
        let first = match Position::of(from) {
            Position::Int(first) => first,
            Position::Text(place) => {
                let rest = self.texts.relocate(place, effort, moves, &mut |_, (), _| {});
                if rest.is_some() {
                    return rest.map(u64::from);
                }
                let first = self.ints.first()?;
                if moves.effort() >= effort {
                    return Some(cell(first));
                }
                first
            }
        };
        walk_cells(first, |from| (self.ints.relocate(from, effort, moves), true))
    }

    fn describe(&self, info: &mut KeyInfo) {
        info.len = self.len();
        info.add_outside(0, 0);
        for stats in [self.ints.stats(), self.texts.stats()] {
            info.memory_bytes += stats.allocated_bytes();
            info.stats.merge(&stats);
        }
        info.serialized_bytes = info.stats.tagged.used_bytes + info.stats.ints.used_bytes;
    }
}
