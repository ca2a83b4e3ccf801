//! Intersection, union and difference. Integers are merged in order, each set's cursor jumping to where the others are, so the
//! smaller one decides what it costs; texts are looked up, from the side that has fewer. What can be made of a set that is
//! there is a copy of it, which costs nothing, edited: a million members less ten cost ten removals.
//!
//! Sets are named by their keys, and a key that is missing is an empty set.
//!
//! The order of a small result, and the name of a stored one, are Redis's.
use super::fresh::Fresh;
use super::read::Source;
use super::{Members, Name, NewSet, Set};
use crate::outside::Outside;
use crate::settings::SetLimits;
use crate::{Key, View, WrongType};
use base::Item;
use base::hash::Seed;
use pack::int_set::Cursor;
use std::ops::ControlFlow;

/// What becomes of several sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    Intersection,
    Union,
    /// What the first has and no other.
    Difference,
}

impl<'k> View<'k> {
    /// Shows every member that the sets of all keys, at least one, have in common, until told to stop.
    pub fn visit_common(
        &mut self,
        keys: &[Key<'_>],
        visit: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
    ) -> Result<(), WrongType> {
        let sets: Option<Vec<Set<'_>>> = self.sets(keys)?.into_iter().collect();
        if let Some(mut sets) = sets {
            intersect(&mut sets, visit);
        }
        Ok(())
    }

    /// The sets of `keys`, at least one, made into one.
    pub fn merge(&mut self, keys: &[Key<'_>], merge: Merge) -> Result<NewSet<'k>, WrongType> {
        let (seed, limits) = (self.seed(), &self.settings().set);
        let sets = self.sets(keys)?;
        Ok(match merge {
            Merge::Intersection => match sets.into_iter().collect::<Option<Vec<_>>>() {
                Some(mut sets) => intersection(&mut sets, seed, limits),
                None => NewSet::new(Name::Intset, seed, limits),
            },
            Merge::Union => union(&sets.into_iter().flatten().collect::<Vec<_>>(), seed, limits),
            Merge::Difference => {
                let (first, others) = sets.split_first().expect("at least one set");
                let others: Vec<Set<'_>> = others.iter().flatten().copied().collect();
                difference(*first, &others, seed, limits)
            }
        })
    }
}

type Visit<'f> = dyn FnMut(Item<'_>) -> ControlFlow<()> + 'f;

/// Shows every member that all of `sets` have, until told to stop; there is at least one set. They are put into ascending
/// order of their lengths.
fn intersect(sets: &mut [Set<'_>], visit: &mut Visit<'_>) {
    sets.sort_by_key(Set::len);
    let (first, others) = sets.split_first().expect("an intersection of at least one set");
    let Source::Members(_) = first.source else {
        let _ = first.visit(&mut |member| match others.iter().all(|set| set.has(member)) {
            true => visit(member),
            false => ControlFlow::Continue(()),
        });
        return;
    };
    let (mut members, mut images) = (Vec::with_capacity(sets.len()), Vec::new());
    for set in sets.iter() {
        match set.source {
            Source::Members(found) => members.push(found),
            Source::Image(image) => images.push(image),
        }
    }
    let mut visit = |member: Item<'_>| match images.iter().all(|image| image.contains(member)) {
        true => visit(member),
        false => ControlFlow::Continue(()),
    };
    if common_ints(&mut members, &mut visit).is_continue() {
        let _ = common_texts(&mut members, first.seed, &mut visit);
    }
}

/// Each cursor in turn jumps to the greatest of what the others are at, until all are at one.
fn common_ints(sets: &mut [&Members], visit: &mut Visit<'_>) -> ControlFlow<()> {
    sets.sort_by_key(|members| members.ints.len());
    let mut cursors: Vec<Cursor<'_>> = sets.iter().map(|members| members.ints.cursor()).collect();
    let (mut at, mut agreed) = (0, 0);
    let Some(mut value) = cursors[0].value() else { return ControlFlow::Continue(()) };
    loop {
        cursors[at].seek(value);
        match cursors[at].value() {
            None => return ControlFlow::Continue(()),
            Some(found) if found == value => agreed += 1,
            Some(found) => (value, agreed) = (found, 1),
        }
        if agreed >= cursors.len() {
            visit(Item::Int(value))?;
            cursors[at].step();
            let Some(next) = cursors[at].value() else { return ControlFlow::Continue(()) };
            (value, agreed) = (next, 1);
        }
        at = (at + 1) % cursors.len();
    }
}

/// All trees are in hash order, so the lookups of one walk go through the others from left to right too.
fn common_texts(sets: &mut [&Members], seed: &Seed, visit: &mut Visit<'_>) -> ControlFlow<()> {
    sets.sort_by_key(|members| members.texts.len());
    let (first, others) = sets.split_first().expect("an intersection of at least one set");
    first.visit_texts(seed, &mut |text| {
        let hash = seed.hash(text);
        match others.iter().all(|members| members.texts.find(hash, text).is_some()) {
            true => visit(Item::Bytes(text)),
            false => ControlFlow::Continue(()),
        }
    })
}

/// What is common to all, as a set. Redis begins it as a "listpack" where the smallest is one, else as an "intset", and
/// calls it the latter where it may in the end.
fn intersection<'k>(sets: &mut [Set<'_>], seed: &'k Seed, limits: &'k SetLimits) -> NewSet<'k> {
    sets.sort_by_key(Set::len);
    let name = if sets[0].name() == Name::Listpack { Name::Listpack } else { Name::Intset };
    let mut result = NewSet::new(name, seed, limits);
    intersect(sets, &mut |member| {
        result.insert(member);
        ControlFlow::Continue(())
    });
    result.fresh.call_ints_so(seed, limits);
    result
}

/// Fewer members than this are put into a result one by one, in Redis's order of work, which its name can depend on.
const ONE_BY_ONE_MAX: u64 = 512;

/// What any of `sets` has: a copy of the largest, and what the others have beside it.
fn union<'k>(sets: &[Set<'_>], seed: &'k Seed, limits: &'k SetLimits) -> NewSet<'k> {
    let total: u64 = sets.iter().map(Set::len).sum();
    let largest = if total > ONE_BY_ONE_MAX { largest(sets) } else { None };
    let mut result = match largest {
        Some((_, members)) => NewSet::copy_of(members, seed, limits),
        None => NewSet::new(Name::Intset, seed, limits),
    };
    let copied = largest.map(|(index, _)| index);
    for (_, set) in sets.iter().enumerate().filter(|(index, _)| Some(*index) != copied) {
        set.for_each(&mut |member| {
            result.insert(member);
        });
    }
    if copied.is_some() {
        result.name_by_content();
    }
    result
}

/// The set outside its entry that has the most members.
fn largest<'s>(sets: &[Set<'s>]) -> Option<(usize, &'s Members)> {
    let outside = sets.iter().enumerate().filter_map(|(index, set)| match set.source {
        Source::Members(members) => Some((index, members)),
        Source::Image(_) => None,
    });
    outside.max_by_key(|(_, members)| members.len())
}

/// How Redis would find a difference, which a stored one's name tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Adds what it does not find in the other sets.
    LookUps,
    /// Adds all of the first set, then removes.
    Removals,
}

impl Work {
    fn of_redis(first: &Set<'_>, others: &[Set<'_>]) -> Work {
        let removals = first.len() + others.iter().map(Set::len).sum::<u64>();
        let lookups = first.len().saturating_mul(others.len() as u64 + 1) / 2;
        if lookups <= removals { Work::LookUps } else { Work::Removals }
    }
}

/// What `first` has and none of `others`. Either every member of the first is looked for in the others, or the members of
/// the others are removed from a copy of the first, whichever takes fewer steps.
fn difference<'k>(
    first: Option<Set<'_>>,
    others: &[Set<'_>],
    seed: &'k Seed,
    limits: &'k SetLimits,
) -> NewSet<'k> {
    let mut result = NewSet::new(Name::Intset, seed, limits);
    let Some(first) = first else { return result };
    let work = Work::of_redis(&first, others);
    let lookups = first.len().saturating_mul(others.len() as u64);
    match first.source {
        Source::Members(members)
            if first.len() > ONE_BY_ONE_MAX && others.iter().map(Set::len).sum::<u64>() <= lookups =>
        {
            result = NewSet::copy_of(members, seed, limits);
            if work == Work::Removals {
                result.name_by_content();
            }
            result.remove_all(others);
            if work == Work::LookUps {
                result.name_by_content();
            }
        }
        _ if work == Work::Removals => {
            first.for_each(&mut |member| {
                result.insert(member);
            });
            result.remove_all(others);
        }
        _ => first.for_each(&mut |member| {
            if !others.iter().any(|set| set.has(member)) {
                result.insert(member);
            }
        }),
    }
    result
}

impl<'k> NewSet<'k> {
    /// Shares all leaves until one of both is edited.
    fn copy_of(members: &Members, seed: &'k Seed, limits: &'k SetLimits) -> NewSet<'k> {
        NewSet { fresh: Fresh::Members(Box::new(members.clone())), seed, limits }
    }

    fn remove_all(&mut self, sets: &[Set<'_>]) {
        for set in sets {
            set.for_each(&mut |member| {
                self.remove(member);
            });
        }
    }

    /// Forgets what the set has been called.
    fn name_by_content(&mut self) {
        self.fresh.name_by_content(self.seed, self.limits);
    }
}
