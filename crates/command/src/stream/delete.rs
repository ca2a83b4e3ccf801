//! Deleting entries by id: XDEL, XDELEX; and XSETID, which sets the last id and the counts of a stream.
use super::row::{ABOUT, ROW};
use super::{id, trim};
use crate::argument::{int, is_word};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long, work};
use resp::Args;
use store::{Event, Fate, Id, References};

pub(super) const XDEL: Command = Command {
    name: "XDEL",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::DELETE))],
    doc: Doc {
        since: "5.0.0",
        summary: "Deletes entries by id.",
        complexity: "O(log L) for each id where L is the length of the stream.",
        args: &[Arg::key("key", 0), Arg::str("id").many()],
        ..ABOUT
    },
    run: DataRun::Keys(xdel),
    ..ROW
};

pub(super) const XDELEX: Command = Command {
    name: "XDELEX",
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::DELETE))],
    doc: Doc {
        since: "8.2.0",
        summary: "Deletes entries by id, and says what becomes of what groups have pending.",
        complexity: "O(log L) for each id where L is the length of the stream.",
        args: &[
            Arg::key("key", 0),
            Arg::one_of(
                "condition",
                &[
                    Arg::word("keepref", "KEEPREF"),
                    Arg::word("delref", "DELREF"),
                    Arg::word("acked", "ACKED"),
                ],
            )
            .optional(),
            Arg::block("ids", &[Arg::int("numids"), Arg::str("id").many()]).after("IDS"),
        ],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(|call| deleted(call, 2), xdelex).unless(|args| names_few(args, 2))),
    ..ROW
};

pub(super) const XSETID: Command = Command {
    name: "XSETID",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "5.0.0",
        summary: "Sets the last id of a stream, and what it remembers of entries that went.",
        complexity: "O(1)",
        args: &[
            Arg::key("key", 0),
            Arg::str("last-id"),
            Arg::int("entries-added").after("ENTRIESADDED").optional().since("7.0.0"),
            Arg::str("max-deleted-id").after("MAXDELETEDID").optional().since("7.0.0"),
        ],
        history: &[("7.0.0", "Takes the number of entries ever added, and the greatest id deleted.")],
        ..ABOUT
    },
    run: DataRun::Keys(xsetid),
    ..ROW
};

/// XDEL. All ids are read before the first entry is deleted. If the key is missing they are not read.
fn xdel(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let Some(mut stream) = call.view.stream_mut(key)? else {
        call.reply.int(0);
        return Ok(());
    };
    let ids: Vec<Id> = call.args.iter_from(2).map(|text| id::strict(text, 0)).collect::<Result<_, _>>()?;
    let deleted = ids.into_iter().filter(|id| stream.delete(*id)).count() as u64;
    drop(stream);
    call.view.changed(key, deleted, Event::stream("xdel").idle());
    call.reply.int(deleted as i64);
    Ok(())
}

/// `[KEEPREF|DELREF|ACKED] IDS numids id...` from `index` on.
pub(super) fn block(args: &Args<'_>, mut index: usize) -> Result<(References, Vec<Id>), Error> {
    let (mut references, mut ids) = (None, None);
    while index < args.len() {
        let word = args.at(index);
        if is_word(word, "IDS") && ids.is_none() && index + 1 < args.len() {
            let found = listed_ids(args, index + 1)?;
            index += 2 + found.len();
            ids = Some(found);
        } else {
            references = match trim::references(word) {
                Some(found) if references.is_none() => Some(found),
                _ => return Err(Error::syntax()),
            };
            index += 1;
        }
    }
    Ok((references.unwrap_or_default(), ids.ok_or_else(Error::syntax)?))
}

/// Whether a request with such a block from `index` on never takes long: it has few ids, and does not look
/// for them in all groups.
pub(super) fn names_few(args: &Args<'_>, index: usize) -> bool {
    let keeps = |word| matches!(trim::references(word), None | Some(References::Keep));
    args.len() < usize::from(work::NAMED_FEW) && keeps(args.at(index)) && keeps(args.at(args.len() - 1))
}

/// How many steps it takes.
pub(super) fn deleted(call: &mut Call<'_, '_>, index: usize) -> Option<u64> {
    let Ok((references, ids)) = block(&call.args, index) else { return Some(0) };
    let steps = work::STEPS_AN_EDIT + trim::groups_looked_at(call, references);
    Some(steps.saturating_mul(ids.len() as u64))
}

fn listed_ids(args: &Args<'_>, index: usize) -> Result<Vec<Id>, Error> {
    let count =
        int(args.at(index)).ok().and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
    let count = count.ok_or_else(Error::numids_not_positive)?;
    if count > args.len() - 1 - index {
        return Err(Error::numids_mismatch());
    }
    args.iter_from(index + 1).take(count).map(|text| id::strict(text, 0)).collect()
}

/// What XDELEX and XACKDEL say of an entry.
pub(super) fn code(fate: Fate) -> i64 {
    match fate {
        Fate::Missing | Fate::Released => -1,
        Fate::Deleted => 1,
        Fate::Kept => 2,
    }
}

fn xdelex(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let missing = call.view.stream(key)?.is_none();
    let (references, ids) = block(&call.args, 2)?;
    call.reply.array(ids.len());
    if missing {
        ids.iter().for_each(|_| call.reply.int(-1));
        return Ok(());
    }
    let (mut deleted, mut released) = (0, 0);
    if let Some(mut stream) = call.view.stream_mut(key)? {
        for id in ids {
            let fate = stream.delete_with(id, references);
            deleted += u64::from(fate == Fate::Deleted);
            released += u64::from(fate == Fate::Released);
            call.reply.int(code(fate));
        }
    }
    call.view.changed(key, deleted, Event::stream("xdel").idle());
    call.view.dirty(released);
    Ok(())
}

/// What XSETID was given beside the id.
#[derive(Default)]
struct Past {
    entries_added: Option<u64>,
    max_deleted_id: Option<Id>,
}

fn past(call: &Call<'_, '_>, id: Id) -> Result<Past, Error> {
    let (mut past, mut index) = (Past::default(), 3);
    while index < call.args.len() {
        let value = call.args.get(index + 1).ok_or_else(Error::syntax)?;
        let word = call.args.at(index);
        if is_word(word, "ENTRIESADDED") {
            let added = u64::try_from(int(value)?);
            past.entries_added = Some(added.map_err(|_| Error::entries_added_negative())?);
        } else if is_word(word, "MAXDELETEDID") {
            let max = id::strict(value, 0)?;
            if id < max {
                return Err(Error::xsetid_below_given_deleted_id());
            }
            past.max_deleted_id = Some(max);
        } else {
            return Err(Error::syntax());
        }
        index += 2;
    }
    Ok(past)
}

fn xsetid(call: &mut Call<'_, '_>) -> Done {
    let id = id::strict(call.args.at(2), 0)?;
    let past = past(call, id)?;
    let key = call.key(0);
    let mut stream = call.view.stream_mut(key)?.ok_or_else(Error::no_such_key)?;
    if id < stream.max_deleted_id() {
        return Err(Error::xsetid_below_deleted_id());
    }
    if stream.last_entry_id().is_some_and(|last| id < last) {
        return Err(Error::xsetid_below_last_entry());
    }
    if past.entries_added.is_some_and(|added| stream.len() > added) {
        return Err(Error::entries_added_below_len());
    }
    stream.set_last_id(id);
    if let Some(added) = past.entries_added {
        stream.set_entries_added(added);
    }
    if let Some(max) = past.max_deleted_id.filter(|max| *max != Id::MIN) {
        stream.set_max_deleted_id(max);
    }
    drop(stream);
    call.view.changed(key, 1, Event::stream("xsetid").idle().of_groups());
    call.reply.ok();
    Ok(())
}
