//! Union, intersection and difference of sorted sets, with weights and ways to add scores up.
//!
//! The sets are held as copies that share their trees (one increment each), so the result may take the place
//! of one of them. A union adds up in a table; an intersection goes through the smallest set and asks the
//! others; a difference goes through the first. Scores are added from the smallest set to the largest, as in
//! Redis, because sums of doubles depend on it.
use super::row::{ABOUT, ROW};
use super::{Entries, Show, reply_entry, reply_header, store};
use crate::argument::{self, is_word};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long, work};
use base::double::parse_f64;
use base::hash::{Map, Set};
use std::collections::hash_map::Entry;
use std::ops::ControlFlow;
use store::{Event, ZEntry, ZMember, ZSetCopy, first_places};

const WEIGHTS: Arg = Arg::int("weight").after("WEIGHTS").optional().many();
const AGGREGATE: Arg =
    Arg::one_of("aggregate", &[Arg::word("sum", "SUM"), Arg::word("min", "MIN"), Arg::word("max", "MAX")])
        .after("AGGREGATE")
        .optional();

pub(super) const ZUNION: Command = Command {
    name: "ZUNION",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY.or(Flags::MOVABLEKEYS),
    keys: &[KeySpec::count(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "6.2.0",
        summary: "Answers the union of sorted sets.",
        complexity: "O(N)+O(M*log(M)) where N is the number of members in all sets and M that in the result.",
        args: &[
            Arg::int("numkeys"),
            Arg::key("key", 0).many(),
            WEIGHTS,
            AGGREGATE,
            Arg::word("withscores", "WITHSCORES").optional(),
        ],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(added_up, zunion)),
    ..ROW
};

pub(super) const ZUNIONSTORE: Command = Command {
    name: "ZUNIONSTORE",
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLEKEYS),
    keys: &[KeySpec::one(1, Access::OW.or(Access::UPDATE)), KeySpec::count(2, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.0.0",
        summary: "Stores the union of sorted sets.",
        complexity: "O(N)+O(M*log(M)) where N is the number of members in all sets and M that in the result.",
        args: &[
            Arg::key("destination", 0),
            Arg::int("numkeys"),
            Arg::key("key", 1).many(),
            WEIGHTS,
            AGGREGATE,
        ],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(sources_added_up, zunionstore)),
    ..ROW
};

pub(super) const ZINTER: Command = Command {
    name: "ZINTER",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY.or(Flags::MOVABLEKEYS),
    keys: &[KeySpec::count(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "6.2.0",
        summary: "Answers the intersection of sorted sets.",
        complexity: "O(N*K)+O(M*log(M)) where N is the number of members in the smallest set, \
                      K the number of sets and M the number of members in the result.",
        args: &[
            Arg::int("numkeys"),
            Arg::key("key", 0).many(),
            WEIGHTS,
            AGGREGATE,
            Arg::word("withscores", "WITHSCORES").optional(),
        ],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(work::smallest_in_all, zinter)),
    ..ROW
};

pub(super) const ZINTERSTORE: Command = Command {
    name: "ZINTERSTORE",
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLEKEYS),
    keys: &[KeySpec::one(1, Access::OW.or(Access::UPDATE)), KeySpec::count(2, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.0.0",
        summary: "Stores the intersection of sorted sets.",
        complexity: "O(N*K)+O(M*log(M)) where N is the number of members in the smallest set, \
                      K the number of sets and M the number of members in the result.",
        args: &[
            Arg::key("destination", 0),
            Arg::int("numkeys"),
            Arg::key("key", 1).many(),
            WEIGHTS,
            AGGREGATE,
        ],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(work::smallest_of_sources_in_all, zinterstore)),
    ..ROW
};

pub(super) const ZINTERCARD: Command = Command {
    name: "ZINTERCARD",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY.or(Flags::MOVABLEKEYS),
    keys: &[KeySpec::count(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "7.0.0",
        summary: "Counts the members that all of several sorted sets have.",
        complexity: "O(N*K) where N is the number of members in the smallest set and K the number of sets.",
        args: &[Arg::int("numkeys"), Arg::key("key", 0).many(), Arg::int("limit").after("LIMIT").optional()],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(work::smallest_in_all_to_limit, zintercard)),
    ..ROW
};

pub(super) const ZDIFF: Command = Command {
    name: "ZDIFF",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY.or(Flags::MOVABLEKEYS),
    keys: &[KeySpec::count(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "6.2.0",
        summary: "Answers what the first of several sorted sets has and the others have not.",
        complexity: "O(N*K) where N is the number of members in the first set and K the number of sets.",
        args: &[
            Arg::int("numkeys"),
            Arg::key("key", 0).many(),
            Arg::word("withscores", "WITHSCORES").optional(),
        ],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(work::first_in_all, zdiff)),
    ..ROW
};

pub(super) const ZDIFFSTORE: Command = Command {
    name: "ZDIFFSTORE",
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLEKEYS),
    keys: &[KeySpec::one(1, Access::OW.or(Access::UPDATE)), KeySpec::count(2, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "6.2.0",
        summary: "Stores what the first of several sorted sets has and the others have not.",
        complexity: "O(N*K) where N is the number of members in the first set and K the number of sets.",
        args: &[Arg::key("destination", 0), Arg::int("numkeys"), Arg::key("key", 1).many()],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(work::first_of_sources_in_all, zdiffstore)),
    ..ROW
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

/// How the scores of one member become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    /// Two opposite infinities add up to 0. NaN, of which a weight can make a score, counts neither as less
    /// nor as greater than any number.
    fn of(self, a: f64, b: f64) -> f64 {
        match self {
            Aggregate::Sum => number(a + b),
            Aggregate::Min => {
                if b < a {
                    b
                } else {
                    a
                }
            }
            Aggregate::Max => {
                if b > a {
                    b
                } else {
                    a
                }
            }
        }
    }
}

fn number(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// One of the sets that are combined.
struct Input {
    set: ZSetCopy,
    weight: f64,
    /// Inputs of the same key have the same number.
    source: usize,
}

impl Input {
    /// The score times the weight; 0 for an infinite score with the weight 0.
    fn weighted(&self, score: f64) -> f64 {
        number(self.weighted_as_is(score))
    }

    fn weighted_as_is(&self, score: f64) -> f64 {
        self.weight * score
    }
}

/// A request, read.
struct Query {
    inputs: Vec<Input>,
    aggregate: Aggregate,
    show: Show,
    /// ZINTERCARD's; 0: none.
    limit: u64,
}

/// Which options a command takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Answers,
    Stores,
    Counts,
}

/// An element that is added up and put in order takes as long as several that are looked at.
const STEPS_AN_ELEMENT: u64 = 4;

/// The steps that a union takes.
fn added_up(call: &mut Call<'_, '_>) -> Option<u64> {
    Some(work::all_texts(call)?.saturating_mul(STEPS_AN_ELEMENT))
}

fn sources_added_up(call: &mut Call<'_, '_>) -> Option<u64> {
    Some(work::all_of_sources(call)?.saturating_mul(STEPS_AN_ELEMENT))
}

fn zunion(call: &mut Call<'_, '_>) -> Done {
    answer(call, Operation::Union, "zunion")
}

fn zinter(call: &mut Call<'_, '_>) -> Done {
    answer(call, Operation::Intersection, "zinter")
}

fn zdiff(call: &mut Call<'_, '_>) -> Done {
    answer(call, Operation::Difference, "zdiff")
}

fn zunionstore(call: &mut Call<'_, '_>) -> Done {
    put(call, Operation::Union, "zunionstore")
}

fn zinterstore(call: &mut Call<'_, '_>) -> Done {
    put(call, Operation::Intersection, "zinterstore")
}

fn zdiffstore(call: &mut Call<'_, '_>) -> Done {
    put(call, Operation::Difference, "zdiffstore")
}

fn answer(call: &mut Call<'_, '_>, operation: Operation, name: &str) -> Done {
    let query = query(call, operation, Form::Answers, name)?;
    let entries = combined(operation, &query);
    reply_header(call.reply, query.show, entries.len());
    for (member, score) in &entries {
        let entry = ZEntry { score: *score, member: ZMember::of(member) };
        reply_entry(call.reply, query.show, entry);
        if call.reply.is_full() {
            break;
        }
    }
    Ok(())
}

/// `name` is the command's, and its event's.
fn put(call: &mut Call<'_, '_>, operation: Operation, name: &'static str) -> Done {
    let query = query(call, operation, Form::Stores, name)?;
    let entries = combined(operation, &query);
    drop(query);
    let destination = call.key(0);
    let longest = entries.iter().map(|(member, _)| member.len()).max().unwrap_or(0);
    store(call.view, destination, &entries, longest, Event::zset(name), call.reply);
    Ok(())
}

fn zintercard(call: &mut Call<'_, '_>) -> Done {
    let mut query = query(call, Operation::Intersection, Form::Counts, "zintercard")?;
    let mut seen = Set::default();
    query.inputs.retain(|input| seen.insert(input.source));
    let limit = if query.limit == 0 { u64::MAX } else { query.limit };
    let mut count = 0;
    intersect(&query, &mut |_, _| {
        count += 1;
        if count == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    call.reply.int(count as i64);
    Ok(())
}

/// Keys and their types come before options: a key of another type is told first.
fn query(call: &mut Call<'_, '_>, operation: Operation, form: Form, name: &str) -> Result<Query, Error> {
    let at = if form == Form::Stores { 2 } else { 1 };
    let numkeys = argument::int(call.args.at(at))?;
    let numkeys = usize::try_from(numkeys).ok().filter(|n| *n > 0);
    let numkeys = numkeys.ok_or_else(|| Error::no_input_keys(name))?;
    if numkeys > call.args.len() - at - 1 {
        return Err(Error::syntax());
    }
    let mut query = Query { inputs: Vec::new(), aggregate: Aggregate::Sum, show: Show::Members, limit: 0 };
    // Sources count as lookups also where the result is stored.
    call.view.count_lookups();
    let keys = call.keys();
    let keys = &keys[keys.len() - numkeys..];
    for (key, source) in keys.iter().zip(first_places(keys)) {
        let set = call.view.zset_copy(key)?;
        query.inputs.push(Input { set, weight: 1.0, source });
    }
    call.view.ignore_lookups();
    read_options(call, operation, form, at + 1 + numkeys, &mut query)?;
    if operation != Operation::Difference {
        query.inputs.sort_by_key(|input| input.set.len());
    }
    Ok(query)
}

fn read_options(
    call: &Call<'_, '_>,
    operation: Operation,
    form: Form,
    first: usize,
    query: &mut Query,
) -> Result<(), Error> {
    let takes_scores = operation != Operation::Difference && form != Form::Counts;
    let mut at = first;
    while let Some(word) = call.args.get(at) {
        let left = call.args.len() - at - 1;
        at += 1;
        if takes_scores && is_word(word, "WEIGHTS") && left >= query.inputs.len() {
            for input in &mut query.inputs {
                input.weight = parse_f64(call.args.at(at)).ok_or_else(Error::weight_not_a_float)?;
                at += 1;
            }
        } else if takes_scores && is_word(word, "AGGREGATE") && left >= 1 {
            query.aggregate = aggregate(call.args.at(at))?;
            at += 1;
        } else if form == Form::Answers && is_word(word, "WITHSCORES") {
            query.show = Show::Scores;
        } else if form == Form::Counts && is_word(word, "LIMIT") && left >= 1 {
            query.limit = argument::count(call.args.at(at)).map_err(|_| Error::negative_limit())?;
            at += 1;
        } else {
            return Err(Error::syntax());
        }
    }
    Ok(())
}

fn aggregate(word: &[u8]) -> Result<Aggregate, Error> {
    match word {
        _ if is_word(word, "SUM") => Ok(Aggregate::Sum),
        _ if is_word(word, "MIN") => Ok(Aggregate::Min),
        _ if is_word(word, "MAX") => Ok(Aggregate::Max),
        _ => Err(Error::syntax()),
    }
}

/// The result, in the order of a sorted set.
fn combined(operation: Operation, query: &Query) -> Entries {
    let mut entries = match operation {
        Operation::Union => union(query),
        Operation::Intersection => {
            let mut entries = Entries::new();
            intersect(query, &mut |member, score| {
                entries.push((member.to_vec(), score));
                ControlFlow::Continue(())
            });
            entries
        }
        Operation::Difference => difference(query),
    };
    entries.sort_unstable_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
    // A zero of either sign is the same score.
    if entries.iter().any(|entry| entry.1 == 0.0 && entry.1.is_sign_negative()) {
        entries.sort_by(|a, b| a.1.partial_cmp(&b.1).expect("no NaN").then_with(|| a.0.cmp(&b.0)));
    }
    entries
}

fn union(query: &Query) -> Entries {
    let mut sums: Map<Vec<u8>, f64> = Map::default();
    // A set that is named several times in a row is gone through once: no member's scores change their order.
    for same in query.inputs.chunk_by(|a, b| a.source == b.source) {
        same[0].set.for_each(&mut |entry| {
            let scores = same.iter().map(|input| input.weighted(entry.score));
            let aggregated = |a, b| query.aggregate.of(a, b);
            match sums.entry(entry.member.to_vec()) {
                Entry::Occupied(mut sum) => *sum.get_mut() = scores.fold(*sum.get(), aggregated),
                Entry::Vacant(place) => {
                    place.insert(scores.reduce(aggregated).unwrap_or_default());
                }
            }
            ControlFlow::Continue(())
        });
    }
    sums.into_iter().collect()
}

/// Visits what all have, with its score, until told to stop.
fn intersect(query: &Query, visit: &mut dyn FnMut(&[u8], f64) -> ControlFlow<()>) {
    let Some((smallest, others)) = query.inputs.split_first() else { return };
    let places = score_places(&query.inputs);
    let (mut member, mut scores) = (Vec::new(), Vec::new());
    smallest.set.for_each(&mut |entry| {
        member.clear();
        entry.member.append_to(&mut member);
        let mut score = smallest.weighted(entry.score);
        scores.clear();
        scores.push(entry.score);
        for (other, place) in others.iter().zip(&places[1..]) {
            if *place == scores.len() {
                let Some(found) = other.set.score(&member) else { return ControlFlow::Continue(()) };
                scores.push(found);
            }
            let more = scores[*place];
            // As in Redis: in unions an infinite score with the weight 0 is 0, but in intersections only that
            // of the first set.
            score = query.aggregate.of(score, other.weighted_as_is(more));
        }
        visit(&member, score)
    });
}

/// For each input which of the scores of a member is that in its set, where each set is asked once, in the
/// order of the inputs.
fn score_places(inputs: &[Input]) -> Vec<usize> {
    let mut places: Map<usize, usize> = Map::default();
    let place = |input: &Input| {
        let next = places.len();
        *places.entry(input.source).or_insert(next)
    };
    inputs.iter().map(place).collect()
}

/// What only the first has.
fn difference(query: &Query) -> Entries {
    let (mut entries, mut member) = (Entries::new(), Vec::new());
    let Some((first, others)) = query.inputs.split_first() else { return entries };
    if others.iter().any(|other| other.source == first.source) {
        return entries;
    }
    let mut seen = Set::default();
    let others: Vec<&Input> = others.iter().filter(|other| seen.insert(other.source)).collect();
    first.set.for_each(&mut |entry| {
        member.clear();
        entry.member.append_to(&mut member);
        if others.iter().all(|other| other.set.score(&member).is_none()) {
            entries.push((member.clone(), entry.score));
        }
        ControlFlow::Continue(())
    });
    entries
}
