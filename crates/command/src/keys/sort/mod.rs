//! SORT and SORT_RO: the elements of a value in order, or what other keys hold for them, answered or stored
//! as a list.
//!
//! ```text
//! elements of the key -> their weights (themselves, or by BY) -> in order -> LIMIT -> what GET names
//!     -> reply or STORE
//! ```
//!
//! The keys that BY and GET name come out of the elements, so nobody can lock them beforehand. A request with
//! such a pattern runs alone on the whole keyspace; all others hold the shards of their one or two keys. Both
//! ways meet in [`run`]; only the lookup of a pattern's key differs.
//!
//! What is sorted is copied out first: it may be what STORE overwrites. Elements come from
//! [`elements::load`], the one place that asks for the type.
mod elements;
mod options;
mod pattern;

use super::row::{ABOUT, ROW};
use crate::{
    Access, Acl, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Find, Flags, KeySpec, KeysOrAll, Long,
    LongWhole, WholeCall, work,
};
use elements::{Elements, Results};
use options::{Sort, Storing};
use pattern::Lookup;
use resp::{Args, Reply};
use store::{End, Event, Extent, Key, Kind, View};

/// A spec that finds no keys: those that BY and GET read are not among the arguments.
const READ_BY_PATTERN: KeySpec = KeySpec {
    access: Access::RO.or(Access::ACCESS),
    notes: "The keys that BY and GET name follow from the elements of the key that is sorted.",
    ..KeySpec::NEW
};

const DESTINATION: KeySpec = KeySpec {
    find: Find::Unknown(options::destination),
    access: Access::OW.or(Access::UPDATE),
    notes: "STORE may stand anywhere among the options.",
    ..KeySpec::NEW
};

const KEY: Arg = Arg::key("key", 0);
const BY: Arg = Arg::key_pattern("by-pattern", 1).after("BY").shown_as("pattern").optional();
const LIMIT: Arg = Arg::block("limit", &[Arg::int("offset"), Arg::int("count")]).after("LIMIT").optional();
const GET: Arg =
    Arg::key_pattern("get-pattern", 1).after("GET").shown_as("pattern").optional().many_with_token();
const ORDER: Arg = Arg::one_of("order", &[Arg::word("asc", "ASC"), Arg::word("desc", "DESC")]).optional();
const SORTING: Arg = Arg::word("sorting", "ALPHA").optional();

pub(super) const SORT: Command = Command {
    name: "SORT",
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLEKEYS),
    acl: Acl::SET.or(Acl::SORTEDSET).or(Acl::LIST).or(Acl::DANGEROUS),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS)), READ_BY_PATTERN, DESTINATION],
    doc: Doc {
        since: "1.0.0",
        summary: "Sorts the elements of a list, a set or a sorted set, and answers or stores them.",
        complexity: "O(N*log(N)) where N is the number of elements; without sorting O(M) where M is what LIMIT takes.",
        args: &[KEY, BY, LIMIT, GET, ORDER, SORTING, Arg::key("destination", 2).after("STORE").optional()],
        ..ABOUT
    },
    run: DataRun::KeysOrAll(&KeysOrAll {
        needs_all: |args| needs_all(args, Storing::Allowed),
        reaches_further: pattern_option,
        keys: Long { work: work_of, writes: work::stores, words_min: 0, is_quick: None, run: sort },
        all: LongWhole { work: |call| work_of_others(call, Storing::Allowed), run: sort_by_others },
    }),
    ..ROW
};

pub(super) const SORT_RO: Command = Command {
    name: "SORT_RO",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY.or(Flags::MOVABLEKEYS),
    acl: Acl::SET.or(Acl::SORTEDSET).or(Acl::LIST).or(Acl::DANGEROUS),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS)), READ_BY_PATTERN],
    doc: Doc {
        since: "7.0.0",
        summary: "Sorts the elements of a list, a set or a sorted set, and answers them.",
        complexity: "O(N*log(N)) where N is the number of elements; without sorting O(M) where M is what LIMIT takes.",
        args: &[KEY, BY, LIMIT, GET, ORDER, SORTING],
        ..ABOUT
    },
    run: DataRun::KeysOrAll(&KeysOrAll {
        needs_all: |args| needs_all(args, Storing::Refused),
        reaches_further: pattern_option,
        keys: Long::reading(work_of, sort_ro),
        all: LongWhole { work: |call| work_of_others(call, Storing::Refused), run: sort_ro_by_others },
    }),
    ..ROW
};

/// Whether a BY or GET names keys that depend on the data. A malformed request counts as one that does not:
/// it is refused with only its own keys locked, and other workers go on.
fn needs_all(args: &Args<'_>, storing: Storing) -> bool {
    Sort::parse(args, storing).is_ok_and(|sort| sort.reads_other_keys())
}

/// The first BY or GET that makes names of keys of what is sorted; a BY without a star does not. As in Redis
/// it is told before what is wrong behind it.
fn pattern_option(args: &Args<'_>) -> Option<&'static str> {
    let mut at = 2;
    while at < args.len() {
        let behind = args.len() - at - 1;
        let is = |word: &[u8], values| args.at(at).eq_ignore_ascii_case(word) && behind >= values;
        at += match () {
            () if is(b"BY", 1) && args.at(at + 1).contains(&b'*') => return Some("BY"),
            () if is(b"GET", 1) => return Some("GET"),
            () if is(b"LIMIT", 2) => 3,
            () if is(b"BY", 1) || is(b"STORE", 1) => 2,
            () => 1,
        };
    }
    None
}

/// An element takes as long to put in order as several take to be looked at.
const STEPS_AN_ELEMENT: u64 = 4;

/// The steps that a request takes; none where it is refused.
fn work_of(call: &mut Call<'_, '_>) -> Option<u64> {
    Some(
        Sort::parse(&call.args, Storing::Allowed)
            .map_or(0, |sort| steps(call.view, call.key(0), &sort.answering(call.reply))),
    )
}

/// The same where each element names a key that is looked up; None where the result is stored.
fn work_of_others(call: &WholeCall<'_>, storing: Storing) -> Option<u64> {
    let sort = Sort::parse(&call.args, storing).ok().filter(|sort| sort.destination.is_none())?;
    let (view, key) = call.keyspace.lock_one(call.db, call.now, call.settings, call.args.at(1));
    Some(steps(&view, &key, &sort.answering(call.reply)))
}

/// All elements are gone through, but of what is not to be sorted those that LIMIT takes.
fn steps(view: &View<'_>, key: &Key<'_>, sort: &Sort<'_>) -> u64 {
    let of = |elements: u64, extent: Extent| {
        let bytes = elements.saturating_mul(extent.element_bytes());
        elements.saturating_mul(STEPS_AN_ELEMENT) + bytes / work::STEP_BYTES
    };
    if sort.by.is_some() {
        let extent = view.extent(key);
        return of(extent.elements, extent);
    }
    let len = view.elements(key);
    let looked_at = match view.peek_kind(key) {
        Some(Kind::Set) => elements::of_set(sort, len as usize).end,
        _ => sort.window(len as usize).len(),
    } as u64;
    if looked_at < work::FEW_ELEMENTS { 0 } else { of(looked_at, view.extent(key)) }
}

fn sort(call: &mut Call<'_, '_>) -> Done {
    on_its_keys(call, Storing::Allowed)
}

fn sort_ro(call: &mut Call<'_, '_>) -> Done {
    on_its_keys(call, Storing::Refused)
}

fn sort_by_others(call: &mut WholeCall<'_>) -> Done {
    alone(call, Storing::Allowed)
}

fn sort_ro_by_others(call: &mut WholeCall<'_>) -> Done {
    alone(call, Storing::Refused)
}

/// The lookups of what is sorted count as hits and misses, also where the result is stored.
fn on_its_keys(call: &mut Call<'_, '_>, storing: Storing) -> Done {
    let sort = Sort::parse(&call.args, storing)?.answering(call.reply);
    call.view.count_lookups();
    let elements = elements::load(call.view, call.key(0), &sort)?;
    let lookup: &mut Lookup<'_> = &mut |_, _, _| unreachable!("no pattern names another key");
    let elements = ordered(&sort, elements, lookup)?;
    match call.keys().get(1) {
        Some(destination) => store(call.view, destination, &elements.results(&sort.get, lookup), call.reply),
        None => {
            elements.answer(&sort.get, lookup, call.reply);
            Ok(())
        }
    }
}

/// Locks one key after another: no other worker runs, so what was read stays true until the reply.
fn alone(call: &mut WholeCall<'_>, storing: Storing) -> Done {
    let sort = Sort::parse(&call.args, storing)?.answering(call.reply);
    let (keyspace, db, now, settings) = (call.keyspace, call.db, call.now, call.settings);
    let leaves_trace = call.leaves_trace;
    let prepare = |view: &mut View<'_>| {
        view.count_lookups();
        if !leaves_trace {
            view.leave_no_trace();
        }
    };
    let elements = {
        let (mut view, key) = keyspace.lock_one(db, now, settings, call.args.at(1));
        prepare(&mut view);
        elements::load(&mut view, &key, &sort)?
    };
    let lookup: &mut Lookup<'_> = &mut |name, field, out| {
        let (mut view, key) = keyspace.lock_one(db, now, settings, name);
        prepare(&mut view);
        pattern::append_value(&mut view, &key, field, out)
    };
    let elements = ordered(&sort, elements, lookup)?;
    let Some(destination) = sort.destination else {
        elements.answer(&sort.get, lookup, call.reply);
        return Ok(());
    };
    let results = elements.results(&sort.get, lookup);
    let (mut view, key) = keyspace.lock_one(db, now, settings, destination);
    if !leaves_trace {
        view.leave_no_trace();
    }
    let done = store(&mut view, &key, &results, call.reply);
    call.garbage.append(&mut view.take_garbage());
    done
}

/// In the order that is asked for, and cut to LIMIT.
fn ordered(sort: &Sort<'_>, mut elements: Elements, lookup: &mut Lookup<'_>) -> Result<Elements, Error> {
    if let Some(by) = &sort.by {
        elements.weigh(by, sort.alpha, lookup)?;
        elements.order_window(sort);
    }
    elements.cut(sort);
    Ok(elements)
}

/// A list takes the place of whatever was there, without a deadline; what GET did not find is an empty text
/// in it. No results, no list. A string may be longer than an element: then nothing changes.
fn store(view: &mut View<'_>, destination: &Key<'_>, results: &Results, reply: &mut Reply) -> Done {
    if results.len_max() > view.settings().lengths.element_bytes_max {
        return Err(Error::element_too_long());
    }
    let replaced = view.remove_for_result(destination);
    if results.len() == 0 {
        view.changed(destination, u64::from(replaced.existed), Event::DEL);
    } else {
        let mut list = view.list_or_new(destination).expect("whatever was there was removed");
        results.iter().for_each(|result| list.push(End::Tail, result.unwrap_or_default()));
        drop(list);
        view.note_stored(destination, &replaced);
        view.changed(destination, results.len() as u64, Event::list("sortstore"));
    }
    reply.int(results.len() as i64);
    Ok(())
}
