//! Intersection, union and difference of sets, answered, stored or counted.
//!
//! A key that is missing is an empty set; one of another type is refused, also where the result is known to
//! be empty before it is looked at. What is stored takes the place of whatever was there, which is not read;
//! an empty result leaves no key.
use super::row::{ABOUT, ROW};
use crate::argument::{count as positive, is_word};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long, work};
use base::text::parse_i64;
use std::ops::ControlFlow;
use store::{Event, Merge};

const READ: KeySpec = KeySpec::range(1, -1, 1, Access::RO.or(Access::ACCESS));
const STORED: &[KeySpec] = &[
    KeySpec::one(1, Access::OW.or(Access::UPDATE)),
    KeySpec::range(2, -1, 1, Access::RO.or(Access::ACCESS)),
];
const READ_ARGS: &[Arg] = &[Arg::key("key", 0).many()];
const STORE_ARGS: &[Arg] = &[Arg::key("destination", 0), Arg::key("key", 1).many()];

pub(super) const SINTER: Command = Command {
    name: "SINTER",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    keys: &[READ],
    doc: Doc {
        since: "1.0.0",
        summary: "Answers the members that several sets have in common.",
        complexity: "O(N*M*log(L)) where N is the \
                      length of the smallest set, M the number of sets and L their lengths.",
        args: READ_ARGS,
        tips: &["nondeterministic_output_order"],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(work::smallest_in_all, sinter)),
    ..ROW
};

pub(super) const SINTERSTORE: Command = Command {
    name: "SINTERSTORE",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: STORED,
    doc: Doc {
        since: "1.0.0",
        summary: "Stores the members that several sets have in common.",
        complexity: "O(N*M*log(L)) where N is the \
                      length of the smallest set, M the number of sets and L their lengths.",
        args: STORE_ARGS,
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(work::smallest_of_sources_in_all, sinterstore)),
    ..ROW
};

pub(super) const SINTERCARD: Command = Command {
    name: "SINTERCARD",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY.or(Flags::MOVABLEKEYS),
    keys: &[KeySpec::count(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "7.0.0",
        summary: "Answers how many members several sets have in common.",
        complexity: "O(N*M*log(L)) where N is the \
                      length of the smallest set, M the number of sets and L their lengths.",
        args: &[Arg::int("numkeys"), Arg::key("key", 0).many(), Arg::int("limit").after("LIMIT").optional()],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(work::smallest_in_all_to_limit, sintercard)),
    ..ROW
};

pub(super) const SUNION: Command = Command {
    name: "SUNION",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    keys: &[READ],
    doc: Doc {
        since: "1.0.0",
        summary: "Answers the members that any of several sets has.",
        complexity: "O(N*log(N)) where N is the number of members in all sets.",
        args: READ_ARGS,
        tips: &["nondeterministic_output_order"],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(work::all_texts, sunion)),
    ..ROW
};

pub(super) const SUNIONSTORE: Command = Command {
    name: "SUNIONSTORE",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: STORED,
    doc: Doc {
        since: "1.0.0",
        summary: "Stores the members that any of several sets has.",
        complexity: "O(N*log(N)) where N is the number of members in all sets but the largest.",
        args: STORE_ARGS,
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(work::all_of_sources, sunionstore)),
    ..ROW
};

pub(super) const SDIFF: Command = Command {
    name: "SDIFF",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    keys: &[READ],
    doc: Doc {
        since: "1.0.0",
        summary: "Answers the members that the first of several sets has and no other.",
        complexity: "O(N*log(N)) where N is the number of members in all sets.",
        args: READ_ARGS,
        tips: &["nondeterministic_output_order"],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(work::first_in_all, sdiff)),
    ..ROW
};

pub(super) const SDIFFSTORE: Command = Command {
    name: "SDIFFSTORE",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: STORED,
    doc: Doc {
        since: "1.0.0",
        summary: "Stores the members that the first of several sets has and no other.",
        complexity: "O(N*log(N)) where N is the number of members in all sets but the first.",
        args: STORE_ARGS,
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(work::first_of_sources_in_all, sdiffstore)),
    ..ROW
};

fn sinter(call: &mut Call<'_, '_>) -> Done {
    answer(call, Merge::Intersection)
}

fn sunion(call: &mut Call<'_, '_>) -> Done {
    answer(call, Merge::Union)
}

fn sdiff(call: &mut Call<'_, '_>) -> Done {
    answer(call, Merge::Difference)
}

/// Replies the merged set. How many members it has is known last, so its header is inserted afterwards.
fn answer(call: &mut Call<'_, '_>, merge: Merge) -> Done {
    let header = call.reply.deferred();
    let mut len = 0;
    call.view.visit_merged(call.keys(), merge, &mut |member| {
        len += 1;
        call.reply.item(member);
        call.reply.flow()
    })?;
    call.reply.fill_set(header, len);
    Ok(())
}

fn sinterstore(call: &mut Call<'_, '_>) -> Done {
    store(call, Merge::Intersection)
}

fn sunionstore(call: &mut Call<'_, '_>) -> Done {
    store(call, Merge::Union)
}

fn sdiffstore(call: &mut Call<'_, '_>) -> Done {
    store(call, Merge::Difference)
}

/// Stores the merged set. As in Redis a stored result counts as one change, and so does an empty one if it
/// removes a key. The lookups of the sources count.
fn store(call: &mut Call<'_, '_>, merge: Merge) -> Done {
    let (destination, sources) = call.keys().split_first().expect("the table asks for two keys");
    call.view.count_lookups();
    let result = call.view.merge(sources, merge)?;
    call.view.ignore_lookups();
    let len = result.len();
    let existed = call.view.put_set(destination, result);
    let event = match (len, merge) {
        (0, _) => Event::DEL,
        (_, Merge::Intersection) => Event::set("sinterstore"),
        (_, Merge::Union) => Event::set("sunionstore"),
        (_, Merge::Difference) => Event::set("sdiffstore"),
    };
    call.view.changed(destination, u64::from(existed || len > 0), event);
    call.reply.int(len as i64);
    Ok(())
}

/// SINTERCARD. The keys that are locked were found by the same count of keys as is read here.
fn sintercard(call: &mut Call<'_, '_>) -> Done {
    let numkeys = parse_i64(call.args.at(1)).filter(|n| *n > 0).ok_or_else(Error::numkeys_not_positive)?;
    let rest = usize::try_from(numkeys).ok().and_then(|n| n.checked_add(2));
    let rest = rest.filter(|rest| *rest <= call.args.len()).ok_or_else(Error::more_keys_than_arguments)?;
    let limit = sintercard_limit(call, rest)?;
    let mut common = 0;
    call.view.visit_merged(call.keys(), Merge::Intersection, &mut |_| {
        common += 1;
        if common == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    call.reply.int(common as i64);
    Ok(())
}

/// Reads the arguments from `at` on: LIMIT with its number, any number of times, of which the last counts. 0
/// is no limit.
fn sintercard_limit(call: &Call<'_, '_>, at: usize) -> Result<u64, Error> {
    let (mut words, mut limit) = (call.args.iter_from(at), 0);
    while let Some(word) = words.next() {
        let value = words.next().filter(|_| is_word(word, "LIMIT")).ok_or_else(Error::syntax)?;
        limit = positive(value).map_err(|_| Error::negative_limit())?;
    }
    Ok(limit)
}
