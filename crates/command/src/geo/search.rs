//! GEOSEARCH and GEOSEARCHSTORE, and the one way in which all searches are run, answered and stored.
use super::cell::{Cell, Point, to_i64};
use super::distance;
use super::query::{Columns, Grammar, Order, Query, Source, StoredScore};
use super::row::{ABOUT, ROW};
use super::shape::{Shape, Within};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, LONG_STEPS, Long};
use resp::Reply;
use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};
use store::{Bound, End, Event, Key, View, ZEntry, ZMember, ZSet};

const FROM_MEMBER: Arg = Arg::str("member").after("FROMMEMBER");
const FROM_POINT: Arg =
    Arg::block("fromlonlat", &[Arg::double("longitude"), Arg::double("latitude")]).after("FROMLONLAT");
const FROM: Arg = Arg::one_of("from", &[FROM_MEMBER, FROM_POINT]);
pub(super) const UNIT: Arg = Arg::one_of(
    "unit",
    &[Arg::word("m", "M"), Arg::word("km", "KM"), Arg::word("ft", "FT"), Arg::word("mi", "MI")],
);
const BY: Arg = Arg::one_of(
    "by",
    &[
        Arg::block("circle", &[Arg::double("radius").after("BYRADIUS"), UNIT]),
        Arg::block("box", &[Arg::double("width").after("BYBOX"), Arg::double("height"), UNIT]),
    ],
);
pub(super) const ORDER: Arg =
    Arg::one_of("order", &[Arg::word("asc", "ASC"), Arg::word("desc", "DESC")]).optional();
const COUNT: Arg =
    Arg::block("count-block", &[Arg::int("count").after("COUNT"), Arg::word("any", "ANY").optional()])
        .optional();
const HISTORY: &[(&str, &str)] = &[("7.0.0", "Takes units in upper case.")];
const WITHCOORD: Arg = Arg::word("withcoord", "WITHCOORD").optional();
const WITHDIST: Arg = Arg::word("withdist", "WITHDIST").optional();
const WITHHASH: Arg = Arg::word("withhash", "WITHHASH").optional();

pub(super) const GEOSEARCH: Command = Command {
    name: "GEOSEARCH",
    arity: Arity::AtLeast(7),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "6.2.0",
        summary: "Answers the members within a circle or a box.",
        complexity: "O(N+log(M)) where N is the number of members in the cells around the shape, M of all.",
        args: &[Arg::key("key", 0), FROM, BY, ORDER, COUNT, WITHCOORD, WITHDIST, WITHHASH],
        history: HISTORY,
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(|call| members_searched(call, 0, Grammar::Search), geosearch)),
    ..ROW
};

pub(super) const GEOSEARCHSTORE: Command = Command {
    name: "GEOSEARCHSTORE",
    arity: Arity::AtLeast(8),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[KeySpec::one(1, Access::OW.or(Access::UPDATE)), KeySpec::one(2, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "6.2.0",
        summary: "Stores the members within a circle or a box in a sorted set.",
        complexity: "O(N+log(M)) where N is the number of members in the cells around the shape, M of all.",
        args: &[
            Arg::key("destination", 0),
            Arg::key("source", 1),
            FROM,
            BY,
            ORDER,
            COUNT,
            Arg::word("storedist", "STOREDIST").optional(),
        ],
        history: HISTORY,
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(
        |call| members_searched(call, 1, Grammar::SearchStore),
        geosearchstore,
    )),
    ..ROW
};

fn geosearch(call: &mut Call<'_, '_>) -> Done {
    let source = call.key(0);
    run(call, *source, Grammar::Search)
}

fn geosearchstore(call: &mut Call<'_, '_>) -> Done {
    let source = call.key(1);
    run(call, *source, Grammar::SearchStore)
}

/// Members that were found. Their names lie one behind the other in one buffer.
#[derive(Default)]
struct Results {
    names: Vec<u8>,
    found: Vec<Found>,
}

struct Found {
    name: Range<usize>,
    score: f64,
    point: Point,
    distance_m: f64,
}

impl Results {
    fn push(&mut self, entry: &ZEntry<'_>, point: Point, distance_m: f64) {
        let start = self.names.len();
        entry.member.append_to(&mut self.names);
        let name = start..self.names.len();
        self.found.push(Found { name, score: entry.score, point, distance_m });
    }

    fn name(&self, found: &Found) -> &[u8] {
        &self.names[found.name.clone()]
    }
}

/// The type is checked before the options. Lookups count in the commands that store, too.
pub(super) fn run(call: &mut Call<'_, '_>, source: Key<'_>, grammar: Grammar) -> Done {
    call.view.count_lookups();
    let is_missing = call.view.zset(&source)?.is_none();
    call.view.ignore_lookups();
    let mut members = Members { view: call.view, key: source, is_missing };
    let query = Query::parse(call.args, grammar, &mut members)?;
    let mut results = match query.shape {
        Some(shape) if !is_missing => find(call.view, &source, &shape, &query)?,
        _ => Results::default(),
    };
    choose(&mut results.found, &query);
    match query.destination {
        Some(name) => store(call, name, &results, &query, grammar),
        None => {
            answer(call.reply, &results, &query);
            Ok(())
        }
    }
}

/// How many steps a search in this key takes: as many as there are members in the cells around. They are
/// counted only where all members together are many.
pub(super) fn members_searched(call: &mut Call<'_, '_>, source: usize, grammar: Grammar) -> Option<u64> {
    let source = call.key(source);
    if call.view.elements(source) < LONG_STEPS {
        return Some(0);
    }
    Some(members_around(call, source, grammar).unwrap_or(0))
}

/// How many members the cells have that are searched; None where the request is refused.
fn members_around(call: &mut Call<'_, '_>, source: &Key<'_>, grammar: Grammar) -> Option<u64> {
    let mut members = Members { view: call.view, key: *source, is_missing: false };
    let query = Query::parse(call.args, grammar, &mut members).ok()?;
    if query.is_any && query.count < LONG_STEPS {
        return Some(query.count);
    }
    let (set, shape) = (call.view.zset(source).ok()??, query.shape?);
    let rank = |score: f64| set.rank_at(&Bound::least(score));
    let members_of = |cell: Cell| {
        let scores = cell.scores();
        rank(scores.end).saturating_sub(rank(scores.start))
    };
    let all: u64 = shape.cells().into_iter().map(members_of).sum();
    Some(if query.is_any { all.min(query.count) } else { all })
}

/// The sorted set that is searched.
struct Members<'m, 'k> {
    view: &'m mut View<'k>,
    key: Key<'m>,
    is_missing: bool,
}

impl Source for Members<'_, '_> {
    fn is_missing(&self) -> bool {
        self.is_missing
    }

    fn position(&mut self, member: &[u8]) -> Option<Point> {
        let set = self.view.zset(&self.key).ok().flatten();
        set.and_then(|set| set.score(member)).map(Point::of_score)
    }
}

/// Everything within the shape, cell by cell; with ANY no more than are wanted.
fn find(view: &mut View<'_>, key: &Key<'_>, shape: &Shape, query: &Query<'_>) -> Result<Results, Error> {
    let results = Results::default();
    let Some(set) = view.zset(key)? else { return Ok(results) };
    let wanted = if query.is_any { usize::try_from(query.count).unwrap_or(usize::MAX) } else { usize::MAX };
    let mut search = Search { set: &set, within: shape.within(), wanted, results };
    for cell in shape.cells() {
        let scores = cell.scores();
        let ranks = search.rank(scores.start)..search.rank(scores.end);
        if search.look_in(cell, ranks).is_break() {
            break;
        }
    }
    Ok(search.results)
}

/// A cell with at least so many members is divided into quarters, so that those outside the shape can be left
/// out.
const DIVIDED_LEN_MIN: u64 = 64;

struct Search<'s> {
    set: &'s ZSet<'s>,
    within: Within,
    wanted: usize,
    results: Results,
}

impl Search<'_> {
    /// How many members come before this score.
    fn rank(&self, score: f64) -> u64 {
        self.set.rank_at(&Bound::least(score))
    }

    /// Looks at the members of a cell, which are those of these ranks, in their order; no further than until
    /// enough are found.
    fn look_in(&mut self, cell: Cell, ranks: Range<u64>) -> ControlFlow<()> {
        let quarters = if ranks.end - ranks.start >= DIVIDED_LEN_MIN { cell.quarters() } else { None };
        let Some(quarters) = quarters else { return self.look_at(ranks) };
        // Where the quarter before this one ends.
        let mut known = Some(ranks.start);
        for (index, quarter) in quarters.into_iter().enumerate() {
            if self.within.is_beyond(quarter) {
                known = None;
                continue;
            }
            let scores = quarter.scores();
            let start = known.unwrap_or_else(|| self.rank(scores.start));
            let end = if index == 3 { ranks.end } else { self.rank(scores.end) };
            self.look_in(quarter, start..end)?;
            known = Some(end);
        }
        ControlFlow::Continue(())
    }

    /// Looks at the members of these ranks.
    fn look_at(&mut self, ranks: Range<u64>) -> ControlFlow<()> {
        let Search { set, within, wanted, results } = self;
        let (mut left, mut flow) = (ranks.end - ranks.start, ControlFlow::Continue(()));
        if left == 0 {
            return flow;
        }
        set.visit(ranks.start, End::Tail, &mut |entry| {
            let point = Point::of_score(entry.score);
            if let Some(distance_m) = within.distance_to(point) {
                results.push(&entry, point, distance_m);
            }
            left -= 1;
            if results.found.len() >= *wanted {
                flow = ControlFlow::Break(());
            }
            if left == 0 { ControlFlow::Break(()) } else { flow }
        });
        flow
    }
}

/// Brings the results into the order that was asked for, and cuts them to COUNT. Results of the same distance
/// stay in the order in which they were found.
fn choose(found: &mut Vec<Found>, query: &Query<'_>) {
    let count = if query.count > 0 { usize::try_from(query.count).unwrap_or(usize::MAX) } else { usize::MAX };
    // The offsets of names rise in the order in which members were found.
    let rising = |a: &Found, b: &Found| a.distance_m.total_cmp(&b.distance_m);
    let then_found = |order: Ordering, a: &Found, b: &Found| {
        order.then_with(|| (a.name.start, a.name.end).cmp(&(b.name.start, b.name.end)))
    };
    match query.order {
        Order::None => {}
        Order::Nearest => sort_first(found, count, |a, b| then_found(rising(a, b), a, b)),
        Order::Farthest => sort_first(found, count, |a, b| then_found(rising(b, a), a, b)),
    }
    found.truncate(count);
}

/// Puts the nearest `count`, or the farthest, in order at the front; the others stay unordered behind them.
fn sort_first(found: &mut [Found], count: usize, compare: impl Fn(&Found, &Found) -> Ordering) {
    let first = if count < found.len() {
        found.select_nth_unstable_by(count, &compare);
        &mut found[..count]
    } else {
        found
    };
    first.sort_unstable_by(&compare);
}

/// Replies names alone, or each with the columns that were asked for.
fn answer(reply: &mut Reply, results: &Results, query: &Query<'_>) {
    let Columns { distance, hash, position } = query.columns;
    reply.array(results.found.len());
    for one in &results.found {
        if query.columns.count() > 0 {
            reply.array(1 + query.columns.count());
        }
        reply.bulk(results.name(one));
        if distance {
            reply.bulk(distance::Text::of(in_unit(one, query)).as_bytes());
        }
        if hash {
            reply.int(to_i64(one.score));
        }
        if position {
            reply_point(reply, one.point);
        }
        if reply.is_full() {
            break;
        }
    }
}

fn in_unit(one: &Found, query: &Query<'_>) -> f64 {
    query.shape.map_or(0.0, |shape| shape.unit.of_metres(one.distance_m))
}

/// Longitude and latitude.
pub(super) fn reply_point(reply: &mut Reply, point: Point) {
    reply.array(2);
    reply.double(point.lon);
    reply.double(point.lat);
}

/// Stores the results. If there are none, no key is left, whatever the destination held before.
fn store(
    call: &mut Call<'_, '_>,
    name: &[u8],
    results: &Results,
    query: &Query<'_>,
    grammar: Grammar,
) -> Done {
    let found = &results.found;
    let destination = call.keys().iter().find(|key| key.bytes() == name);
    let destination = *destination.expect("the key specs of the row find every destination");
    let score = |one: &Found| match query.stored_score {
        StoredScore::Position => one.score,
        StoredScore::Distance => in_unit(one, query),
    };
    let replaced = call.view.remove_for_result(&destination);
    if found.is_empty() {
        call.view.changed(&destination, u64::from(replaced.existed), Event::DEL);
    } else {
        let mut set = call.view.zset_or_new(&destination)?;
        let entry = |one| ZEntry { score: score(one), member: ZMember::classify(results.name(one)) };
        let is_built = set.build(&mut found.iter().map(entry).collect::<Vec<_>>());
        debug_assert!(is_built, "no member is there twice");
        drop(set);
        let event = if grammar == Grammar::SearchStore { "geosearchstore" } else { "georadiusstore" };
        call.view.note_stored(&destination, &replaced);
        call.view.changed(&destination, found.len() as u64, Event::zset(event));
    }
    call.reply.int(found.len() as i64);
    Ok(())
}
