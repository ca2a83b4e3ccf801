//! Elements by value: LPOS, LREM, LINSERT. Each compares element after element, as they are stored; a needle
//! that reads as an integer is compared as one.
//!
//! There is no index by value, so all of them are O(N) and hold their shard meanwhile. LREM collects the
//! indexes of what goes before it removes anything, and removes from the highest down: a removal then moves
//! no index that is still to come, and neighbours leave their leaf in one edit.
use super::row::{ABOUT, ROW};
use crate::argument::{int, is_word};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long, work};
use base::Item;
use std::ops::ControlFlow;
use store::{End, Event, List, ListMut};

pub(super) const LPOS: Command = Command {
    name: "LPOS",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "6.0.6",
        summary: "Answers the indexes of an element's occurrences.",
        complexity: "O(N) where N is the number of elements looked at: \
                      all of them without `MAXLEN` and enough matches.",
        args: &[
            Arg::key("key", 0),
            Arg::str("element"),
            Arg::int("rank").after("RANK").optional(),
            Arg::int("num-matches").after("COUNT").optional(),
            Arg::int("len").after("MAXLEN").optional(),
        ],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(compared, lpos)),
    ..ROW
};

pub(super) const LREM: Command = Command {
    name: "LREM",
    arity: Arity::Exactly(4),
    flags: Flags::WRITE,
    keys: &[KeySpec::one(1, Access::RW.or(Access::DELETE))],
    doc: Doc {
        since: "1.0.0",
        summary: "Removes occurrences of an element.",
        complexity: "O(N) where N is the length of the list.",
        args: &[Arg::key("key", 0), Arg::int("count"), Arg::str("element")],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(removed, lrem)),
    ..ROW
};

pub(super) const LINSERT: Command = Command {
    name: "LINSERT",
    arity: Arity::Exactly(5),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[KeySpec::one(1, Access::RW.or(Access::INSERT))],
    doc: Doc {
        since: "2.2.0",
        summary: "Inserts an element before or after another.",
        complexity: "O(N) where N is the number of elements before the pivot.",
        args: &[
            Arg::key("key", 0),
            Arg::one_of("where", &[Arg::word("before", "BEFORE"), Arg::word("after", "AFTER")]),
            Arg::str("pivot"),
            Arg::str("element"),
        ],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(searched, linsert)),
    ..ROW
};

/// A search, as the options of LPOS describe it.
struct Search {
    /// Matches to skip before the first that counts.
    skipped: u64,
    towards: End,
    /// At most so many matches; None: one, replied alone instead of in an array.
    count: Option<u64>,
    /// At most so many elements are compared.
    compared_max: u64,
}

impl Search {
    /// For the first match from the head, among all elements.
    const ALL: Search = Search { skipped: 0, towards: End::Tail, count: None, compared_max: u64::MAX };
}

/// So many elements are compared in a step: they are not looked at one by one.
const STEP_ELEMENTS: u64 = 8;
/// An element that is compared, and perhaps removed, takes as long as two that are compared.
const STEP_REMOVED: u64 = STEP_ELEMENTS / 2;
/// So many elements of a long list are compared before a search is sent to another thread: to send it takes
/// longer, and it may end among them.
const PROBED_ELEMENTS: u64 = work::LONG_STEPS * STEP_ELEMENTS / 64;
/// A search for more matches than this is not expected to end among them.
const PROBED_MATCHES: u64 = 16;

/// The steps of LPOS.
fn compared(call: &mut Call<'_, '_>) -> Option<u64> {
    let Ok(search) = search(call) else { return Some(0) };
    steps(call, 2, &search, STEP_ELEMENTS)
}

/// The steps of LINSERT.
fn searched(call: &mut Call<'_, '_>) -> Option<u64> {
    steps(call, 3, &Search::ALL, STEP_ELEMENTS)
}

/// The steps of LREM.
fn removed(call: &mut Call<'_, '_>) -> Option<u64> {
    let (towards, wanted) = removals(signed_count(call.args.at(2)).unwrap_or(0));
    steps(call, 3, &Search { towards, count: Some(wanted), ..Search::ALL }, STEP_REMOVED)
}

/// The steps of a search for the argument of this number, where so many elements are one: those that it takes
/// to compare all elements, unless the first elements have as many matches as are wanted.
fn steps(call: &mut Call<'_, '_>, needle: usize, search: &Search, step_elements: u64) -> Option<u64> {
    let steps = work::all(call)?.min(search.compared_max) / step_elements;
    let wanted = search.count.unwrap_or(1);
    if steps < work::LONG_STEPS || search.skipped.saturating_add(wanted) > PROBED_MATCHES {
        return Some(steps);
    }
    let Some(list) = call.view.peek_list(call.key(0)) else { return Some(0) };
    let (needle, mut found) = (Item::classify(call.args.at(needle)), 0);
    let probe = Search { compared_max: PROBED_ELEMENTS, ..*search };
    for_each_match(&list, needle, &probe, wanted, &mut |_| {
        found += 1;
        ControlFlow::Continue(())
    });
    Some(if found == wanted { PROBED_ELEMENTS / step_elements } else { steps })
}

/// LPOS. With COUNT the answer is an array whose length is known last, so its header is inserted afterwards.
fn lpos(call: &mut Call<'_, '_>) -> Done {
    let search = search(call)?;
    let needle = Item::classify(call.args.at(2));
    let key = call.key(0);
    let list = call.view.list(key)?;
    let Some(wanted) = search.count else {
        let mut found = None;
        if let Some(list) = list {
            for_each_match(&list, needle, &search, 1, &mut |index| {
                found = Some(index);
                ControlFlow::Break(())
            });
        }
        match found {
            Some(index) => call.reply.int(index as i64),
            None => call.reply.null(),
        }
        return Ok(());
    };
    let header = call.reply.deferred();
    let mut count = 0;
    if let Some(list) = list {
        for_each_match(&list, needle, &search, wanted, &mut |index| {
            call.reply.int(index as i64);
            count += 1;
            call.reply.flow()
        });
    }
    call.reply.fill_array(header, count);
    Ok(())
}

/// Visits the indexes of up to `wanted` matches that the options ask for, or until told to stop.
fn for_each_match(
    list: &List<'_>,
    needle: Item<'_>,
    search: &Search,
    wanted: u64,
    visit: &mut dyn FnMut(u64) -> ControlFlow<()>,
) {
    let first = first_index(list.len(), search.towards);
    let mut matches = 0;
    let last = search.skipped.saturating_add(wanted);
    list.visit_equal((first, search.compared_max), search.towards, needle, &mut |index| {
        matches += 1;
        if matches > search.skipped {
            visit(index)?;
        }
        if matches == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
}

/// Where a search towards this end begins.
fn first_index(len: u64, towards: End) -> u64 {
    match towards {
        End::Tail => 0,
        End::Head => len - 1,
    }
}

/// Options may come twice; the last counts.
fn search(call: &Call<'_, '_>) -> Result<Search, Error> {
    let mut search = Search::ALL;
    let mut words = call.args.iter_from(3);
    while let Some(word) = words.next() {
        let value = words.next();
        if is_word(word, "RANK") {
            (search.skipped, search.towards) = rank(value.ok_or_else(Error::syntax)?)?;
        } else if is_word(word, "COUNT") {
            let count = limit(value.ok_or_else(Error::syntax)?);
            search.count = Some(count.ok_or_else(Error::negative_count)?);
        } else if is_word(word, "MAXLEN") {
            let max = limit(value.ok_or_else(Error::syntax)?);
            search.compared_max = max.ok_or_else(Error::negative_maxlen)?;
        } else {
            return Err(Error::syntax());
        }
    }
    Ok(search)
}

/// RANK's number: how many matches are skipped, and the end towards which the search goes.
fn rank(text: &[u8]) -> Result<(u64, End), Error> {
    let rank = signed_count(text)?;
    let skipped = rank.unsigned_abs().checked_sub(1).ok_or_else(Error::zero_rank)?;
    Ok((skipped, if rank < 0 { End::Head } else { End::Tail }))
}

/// A count whose sign says a direction. The least integer is refused, because it has no opposite.
fn signed_count(text: &[u8]) -> Result<i64, Error> {
    match int(text)? {
        i64::MIN => Err(Error::not_between(-i64::MAX, i64::MAX)),
        n => Ok(n),
    }
}

/// A limit where 0 means none.
fn limit(text: &[u8]) -> Option<u64> {
    match u64::try_from(base::text::parse_i64(text)?).ok()? {
        0 => Some(u64::MAX),
        n => Some(n),
    }
}

fn lrem(call: &mut Call<'_, '_>) -> Done {
    let count = signed_count(call.args.at(2))?;
    let needle = Item::classify(call.args.at(3));
    let key = call.key(0);
    let Some(mut list) = call.view.list_mut(key)? else {
        call.reply.int(0);
        return Ok(());
    };
    let indexes = matches(&list, needle, count);
    remove_all(&mut list, &indexes);
    drop(list);
    call.view.reduced(key, indexes.len() as u64, Event::list("lrem"));
    call.reply.int(indexes.len() as i64);
    Ok(())
}

/// What LREM's count says: the end towards which it searches, the head where it is negative; and how many it
/// removes at most, all where it is 0.
fn removals(count: i64) -> (End, u64) {
    let towards = if count < 0 { End::Head } else { End::Tail };
    (towards, if count == 0 { u64::MAX } else { count.unsigned_abs() })
}

/// The indexes of the elements that LREM removes, highest first.
fn matches(list: &ListMut<'_>, needle: Item<'_>, count: i64) -> Vec<u64> {
    let (towards, wanted) = removals(count);
    let mut indexes = Vec::new();
    list.visit_equal(first_index(list.len(), towards), towards, needle, &mut |index| {
        indexes.push(index);
        if indexes.len() as u64 == wanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if towards == End::Tail {
        indexes.reverse();
    }
    indexes
}

/// Removes the elements at `indexes` (highest first), neighbours together.
fn remove_all(list: &mut ListMut<'_>, indexes: &[u64]) {
    for run in indexes.chunk_by(|higher, lower| higher - 1 == *lower) {
        list.remove(run[run.len() - 1], run.len() as u64);
    }
}

/// LINSERT. It answers 0 if there is no list, -1 if the list has no such pivot. The word BEFORE or AFTER is
/// checked first, so a wrong one is always an error.
fn linsert(call: &mut Call<'_, '_>) -> Done {
    let side = call.args.at(2);
    let offset = if is_word(side, "BEFORE") {
        0
    } else if is_word(side, "AFTER") {
        1
    } else {
        return Err(Error::syntax());
    };
    let key = call.key(0);
    let Some(mut list) = call.view.list_mut(key)? else {
        call.reply.int(0);
        return Ok(());
    };
    // This comes before the search for the pivot, because the name changes even if there is none.
    list.announce(1, call.args.at(4).len() as u64);
    let Some(pivot) = first_match(&list, Item::classify(call.args.at(3))) else {
        call.reply.int(-1);
        return Ok(());
    };
    list.insert(pivot + offset, call.args.at(4));
    let len = list.len();
    drop(list);
    call.view.changed(key, 1, Event::list("linsert"));
    call.reply.int(len as i64);
    Ok(())
}

/// The index of the first element from the head that is the needle.
fn first_match(list: &ListMut<'_>, needle: Item<'_>) -> Option<u64> {
    let mut found = None;
    list.visit_equal(0, End::Tail, needle, &mut |index| {
        found = Some(index);
        ControlFlow::Break(())
    });
    found
}
