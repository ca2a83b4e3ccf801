//! Intersection, union and difference. Integers are merged in order (`walk.rs`), and a result of integers is
//! made in one go of those that come out of it; texts are sifted leaf by leaf (`pack::sift`), going
//! through the set that has fewer. A result that is only answered is not built: SUNION shows of each set what
//! the sets before it do not have. A result that is stored begins as a clone of the largest set where that
//! pays, which costs nothing: SDIFFSTORE of a million members less ten costs ten removals.
//!
//! Sets are named by their keys, and a key that is missing is an empty set.
//!
//! The order of a small result, and the name of a stored one, are Redis's.
use super::fresh::{Body, NewSet};
use super::name::Name;
use super::read::{Asked, Set, Source};
use super::tree::SetTree;
use super::walk::{self, Walk};
use crate::kind::WrongType;
use crate::outside::Outside;
use crate::settings::SetLimits;
use crate::{Key, View, first_places};
use base::Item;
use base::hash::Seed;
use pack::sift::Pass;
use std::ops::ControlFlow;

/// How several sets are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    Intersection,
    Union,
    /// The members that the first set has and no other.
    Difference,
}

impl<'k> View<'k> {
    /// Shows every member of the merged sets of `keys`, of which there is at least one, until told to stop.
    pub fn visit_merged(
        &mut self,
        keys: &[Key<'_>],
        merge: Merge,
        visit: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
    ) -> Result<(), WrongType> {
        let (seed, limits) = (&self.seeds().members, &self.settings().set);
        let sets = self.sets(keys)?;
        let _ = match merge {
            Merge::Intersection => match distinct(keys, sets).collect::<Option<Vec<_>>>() {
                Some(mut sets) => intersect(&mut sets, visit),
                None => ControlFlow::Continue(()),
            },
            Merge::Union => {
                let sets: Vec<Set<'_>> = distinct(keys, sets).flatten().collect();
                if is_short_run(&sets) {
                    walk::all(&sets).into_iter().try_for_each(|value| visit(Item::Int(value)))
                } else if is_free_in_order(&sets, limits) {
                    (0..sets.len()).try_for_each(|at| rest(sets[at], &sets[..at], visit))
                } else {
                    union(&sets, seed, limits).visit(visit)
                }
            }
            Merge::Difference => match Minuend::of(keys, &sets) {
                Some(Minuend { first, others, .. })
                    if first.is_of_ints() || matches!(first.source, Source::Members(_)) =>
                {
                    rest(first, &others, visit)
                }
                minuend => difference(minuend, seed, limits).visit(visit),
            },
        };
        Ok(())
    }

    /// The merged sets of `keys`, of which there is at least one, as a new set.
    pub fn merge(&mut self, keys: &[Key<'_>], merge: Merge) -> Result<NewSet<'k>, WrongType> {
        let (seed, limits) = (&self.seeds().members, &self.settings().set);
        let sets = self.sets(keys)?;
        Ok(match merge {
            Merge::Intersection => match distinct(keys, sets).collect::<Option<Vec<_>>>() {
                Some(mut sets) => intersection(&mut sets, seed, limits),
                None => NewSet::new(Name::Intset, seed, limits),
            },
            Merge::Union => union(&distinct(keys, sets).flatten().collect::<Vec<_>>(), seed, limits),
            Merge::Difference => difference(Minuend::of(keys, &sets), seed, limits),
        })
    }
}

/// The sets without those whose key comes a second time: that a member is in the same set again says nothing
/// new.
fn distinct<T>(keys: &[Key<'_>], sets: Vec<T>) -> impl Iterator<Item = T> {
    let firsts = first_places(keys);
    sets.into_iter().enumerate().filter(move |(at, _)| firsts[*at] == *at).map(|(_, set)| set)
}

/// A set from which others are taken away.
struct Minuend<'s> {
    first: Set<'s>,
    /// Those that exist, each once.
    others: Vec<Set<'s>>,
    work: Work,
}

impl<'s> Minuend<'s> {
    /// None where nothing can be left: the first set is missing, or it is taken away from itself.
    fn of(keys: &[Key<'_>], sets: &[Option<Set<'s>>]) -> Option<Minuend<'s>> {
        let firsts = first_places(keys);
        let first = sets[0].filter(|_| !firsts[1..].contains(&0))?;
        let named: Vec<Set<'s>> = sets[1..].iter().flatten().copied().collect();
        let once = (1..sets.len()).filter(|at| firsts[*at] == *at);
        let others = once.filter_map(|at| sets[at]).collect();
        Some(Minuend { first, others, work: Work::of_redis(&first, &named) })
    }
}

/// A union of more sets is built before it is answered, because to show it each member would be looked up in
/// all sets before its own.
const SHOWN_SETS_MAX: usize = 8;

/// Whether a union is certain to have so many members, some of them texts, that Redis answers them in no
/// particular order.
fn is_free_in_order(sets: &[Set<'_>], limits: &SetLimits) -> bool {
    let is_large = |set: &Set<'_>| match set.source {
        Source::Members(members) => members.texts.len() > limits.listpack_entries,
        Source::Image(_) => false,
    };
    sets.len() <= SHOWN_SETS_MAX && sets.iter().any(is_large)
}

type Visit<'f> = dyn FnMut(Item<'_>) -> ControlFlow<()> + 'f;

/// Shows every member that all of `sets` have, until told to stop; there is at least one set. They are put
/// into ascending order of their lengths.
fn intersect(sets: &mut [Set<'_>], visit: &mut Visit<'_>) -> ControlFlow<()> {
    sets.sort_by_key(Set::len);
    let (first, others) = sets.split_first().expect("an intersection of at least one set");
    if first.is_in_order_of_insertion() {
        let others = Asked::all(others, first.len());
        return first.visit(&mut |member| match others.iter().all(|set| set.has(member)) {
            true => visit(member),
            false => ControlFlow::Continue(()),
        });
    }
    let Parts { mut walks, mut trees, images } = Parts::of(sets, first.len());
    let has_texts = trees.len() + images.len() == sets.len();
    let mut visit = |member: Item<'_>| match images.iter().all(|image| image.has(member)) {
        true => visit(member),
        false => ControlFlow::Continue(()),
    };
    walk::common(&mut walks, &mut |value| visit(Item::Int(value)))?;
    match has_texts {
        true => common_texts(&mut trees, first.seed, &mut visit),
        false => ControlFlow::Continue(()),
    }
}

/// Several sets, by the ways in which they are searched.
struct Parts<'s> {
    /// Over the integers of sets outside their entries and of images of integers.
    walks: Vec<Walk<'s>>,
    /// The sets outside their entries, for their texts.
    trees: Vec<&'s SetTree>,
    /// The images in order of insertion.
    images: Vec<Asked<'s>>,
}

impl<'s> Parts<'s> {
    /// Images are asked for `times` members.
    fn of(sets: &[Set<'s>], times: u64) -> Parts<'s> {
        let mut parts =
            Parts { walks: Vec::with_capacity(sets.len()), trees: Vec::new(), images: Vec::new() };
        for set in sets {
            match set.source {
                Source::Image(image) if image.name == Name::Intset => {
                    parts.walks.push(Walk::of_image(image.bytes));
                }
                Source::Image(_) => parts.images.push(Asked::new(*set, times)),
                Source::Members(members) => {
                    parts.walks.push(Walk::of_tree(members));
                    parts.trees.push(members);
                }
            }
        }
        parts
    }
}

fn common_texts(sets: &mut [&SetTree], seed: &Seed, visit: &mut Visit<'_>) -> ControlFlow<()> {
    sets.sort_by_key(|members| members.texts.len());
    let (first, others) = sets.split_first().expect("an intersection of at least one set");
    sift(first, others, Pass::Common, seed, visit)
}

/// Shows the texts of `first` that pass the comparison with all other sets.
fn sift(
    first: &SetTree,
    others: &[&SetTree],
    pass: Pass,
    seed: &Seed,
    visit: &mut Visit<'_>,
) -> ControlFlow<()> {
    if first.texts.is_empty() {
        return ControlFlow::Continue(());
    }
    let others: Vec<_> = others.iter().map(|members| &members.texts).collect();
    first.texts.sift(seed, &others, pass, &mut |text| visit(Item::Bytes(text)))
}

/// Shows every member that `first` has and none of `others`, until told to stop.
fn rest(first: Set<'_>, others: &[Set<'_>], visit: &mut Visit<'_>) -> ControlFlow<()> {
    let (mut own, texts) = match first.source {
        Source::Members(own) => (Walk::of_tree(own), Some(own)),
        Source::Image(image) if image.name == Name::Intset => (Walk::of_image(image.bytes), None),
        Source::Image(image) => {
            let others = Asked::all(others, image.len());
            return image.visit(&mut |member| match others.iter().any(|set| set.has(member)) {
                true => ControlFlow::Continue(()),
                false => visit(member),
            });
        }
    };
    let Parts { mut walks, trees, images } = Parts::of(others, first.len());
    let mut visit = |member: Item<'_>| match images.iter().any(|image| image.has(member)) {
        true => ControlFlow::Continue(()),
        false => visit(member),
    };
    walk::rest(&mut own, &mut walks, &mut |value| visit(Item::Int(value)))?;
    match texts {
        Some(own) => sift(own, &trees, Pass::Rest, first.seed, &mut visit),
        None => ControlFlow::Continue(()),
    }
}

/// The intersection, as a set. Redis begins it as a "listpack" if the smallest set is one, else as an
/// "intset", and in the end names it "intset" if it may be one.
fn intersection<'k>(sets: &mut [Set<'_>], seed: &'k Seed, limits: &'k SetLimits) -> NewSet<'k> {
    sets.sort_by_key(Set::len);
    let name = if sets[0].name() == Name::Listpack { Name::Listpack } else { Name::Intset };
    let mut result = NewSet::new(name, seed, limits);
    result.fill(sets[0].len(), &mut |visit| intersect(sets, visit));
    result.call_ints_so();
    result
}

/// Fewer members than this are put into a result one by one, in Redis's order of work, which its name can
/// depend on.
const ONE_BY_ONE_MAX: u64 = 512;

/// How many integers are at most gathered before a set is made of them.
const RUN_LEN_MAX: u64 = 4096;

/// Adding a member to a tree takes as long as gathering so many for a new one.
const GATHERED_PER_INSERT: u64 = 32;

/// Whether these are sets of integers, and few enough to gather them all.
fn is_short_run(sets: &[Set<'_>]) -> bool {
    sets.iter().all(Set::is_of_ints) && sets.iter().map(Set::len).sum::<u64>() <= RUN_LEN_MAX
}

/// The union: a copy of the largest set, to which the members of the others are added. Integers are gathered
/// and made a set in one go, unless they are many and few of them would be added.
fn union<'k>(sets: &[Set<'_>], seed: &'k Seed, limits: &'k SetLimits) -> NewSet<'k> {
    let total: u64 = sets.iter().map(Set::len).sum();
    let added = total - sets.iter().map(Set::len).max().unwrap_or(0);
    let is_quick = total <= ONE_BY_ONE_MAX || added * GATHERED_PER_INSERT >= total;
    if is_quick && is_short_run(sets) {
        let mut result = NewSet::new(Name::Intset, seed, limits);
        result.add_ints(&walk::all(sets));
        return result;
    }
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
fn largest<'s>(sets: &[Set<'s>]) -> Option<(usize, &'s SetTree)> {
    let outside = sets.iter().enumerate().filter_map(|(index, set)| match set.source {
        Source::Members(members) => Some((index, members)),
        Source::Image(_) => None,
    });
    outside.max_by_key(|(_, members)| members.len())
}

/// How Redis would compute a difference. The name of a stored difference depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// By adding the members that are in no other set.
    LookUps,
    /// By adding all members of the first set, and removing those of the others.
    Removals,
}

impl Work {
    /// Redis counts a set as often as it is named.
    fn of_redis(first: &Set<'_>, others: &[Set<'_>]) -> Work {
        let removals = first.len() + others.iter().map(Set::len).sum::<u64>();
        let lookups = first.len().saturating_mul(others.len() as u64 + 1) / 2;
        if lookups <= removals { Work::LookUps } else { Work::Removals }
    }
}

/// The difference: what the first set has and none of the others. Either every member of the first is looked
/// for in the others, or the members of the others are removed from a copy of the first, whichever takes
/// fewer steps.
fn difference<'k>(minuend: Option<Minuend<'_>>, seed: &'k Seed, limits: &'k SetLimits) -> NewSet<'k> {
    let mut result = NewSet::new(Name::Intset, seed, limits);
    let Some(Minuend { first, others, work }) = minuend else { return result };
    let lookups = first.len().saturating_mul(others.len() as u64);
    match first.source {
        Source::Members(members)
            if first.len() > ONE_BY_ONE_MAX && others.iter().map(Set::len).sum::<u64>() <= lookups =>
        {
            result = NewSet::copy_of(members, seed, limits);
            if work == Work::Removals {
                result.name_by_content();
            }
            result.remove_all(&others);
            if work == Work::LookUps {
                result.name_by_content();
            }
        }
        // That of integers few enough for an "intset" is one, in whatever way it is made.
        _ if work == Work::Removals && !(first.is_of_ints() && first.len() <= limits.intset_entries) => {
            first.for_each(&mut |member| {
                result.insert(member);
            });
            result.remove_all(&others);
        }
        _ => {
            result.fill(first.len(), &mut |visit| rest(first, &others, visit));
        }
    }
    result
}

impl<'k> NewSet<'k> {
    /// Adds the members that `show` shows, all new, `most` at most. The integers that come first, in
    /// ascending order, are gathered, and added in one go.
    fn fill(&mut self, most: u64, show: &mut dyn FnMut(&mut Visit<'_>) -> ControlFlow<()>) {
        let (mut run, mut is_over) = (Vec::with_capacity(most.min(RUN_LEN_MAX) as usize), false);
        let _ = show(&mut |member| {
            match member {
                Item::Int(n) if !is_over && run.last().is_none_or(|last| *last < n) => {
                    run.push(n);
                    is_over = run.len() as u64 == RUN_LEN_MAX;
                    if is_over {
                        self.add_ints(&std::mem::take(&mut run));
                    }
                }
                member => {
                    self.add_ints(&std::mem::take(&mut run));
                    is_over = true;
                    self.insert(member);
                }
            }
            ControlFlow::Continue(())
        });
        self.add_ints(&run);
    }

    /// A copy of a set, which shares all its leaves until one of the two is edited. O(1).
    fn copy_of(members: &SetTree, seed: &'k Seed, limits: &'k SetLimits) -> NewSet<'k> {
        NewSet::of(Body::Members(Box::new(members.clone())), seed, limits)
    }

    fn remove_all(&mut self, sets: &[Set<'_>]) {
        for set in sets {
            set.for_each(&mut |member| {
                self.remove(member);
            });
        }
    }
}
