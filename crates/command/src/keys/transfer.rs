//! Whole keys under other names and in other databases: RENAME, MOVE, COPY. A value changes hands or gets a
//! second owner; nothing of what lies outside its entry is copied, so a list of any length costs the same.
//! What a copy and its source share is copied when either is written, and no further than the write reaches
//! (`View::copy` in `store`).
//!
//! A key's shard is the same in every database, so MOVE and COPY ... DB need no lock that the keys alone do
//! not name.
use super::row::{ABOUT, ROW};
use crate::argument::{database, is_word};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec};
use store::{Event, Key};

pub(super) const COPY: Command = Command {
    name: "COPY",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::OTHER_DATABASES),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS)), KeySpec::one(2, Access::OW.or(Access::UPDATE))],
    doc: Doc {
        since: "6.2.0",
        summary: "Copies the value of one key, with its deadline, to another.",
        complexity: "O(1); what copy and source share is copied piece by piece when it is written.",
        args: &[
            Arg::key("source", 0),
            Arg::key("destination", 1),
            Arg::int("destination-db").after("DB").optional(),
            Arg::word("replace", "REPLACE").optional(),
        ],
        ..ABOUT
    },
    run: DataRun::Keys(copy),
    ..ROW
};

pub(super) const MOVE: Command = Command {
    name: "MOVE",
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.or(Flags::FAST).or(Flags::OTHER_DATABASES),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::UPDATE))],
    doc: Doc {
        since: "1.0.0",
        summary: "Moves a key to another database, unless it is there already.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::int("db")],
        ..ABOUT
    },
    run: DataRun::Keys(move_key),
    ..ROW
};

pub(super) const RENAME: Command = Command {
    name: "RENAME",
    arity: Arity::Exactly(3),
    flags: Flags::WRITE,
    keys: &[
        KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::DELETE)),
        KeySpec::one(2, Access::OW.or(Access::UPDATE)),
    ],
    doc: Doc {
        since: "1.0.0",
        summary: "Gives a key another name, and overwrites what had it.",
        complexity: "O(1); what is overwritten and large is freed in the background.",
        args: &[Arg::key("key", 0), Arg::key("newkey", 1)],
        ..ABOUT
    },
    run: DataRun::Keys(rename),
    ..ROW
};

pub(super) const RENAMENX: Command = Command {
    name: "RENAMENX",
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[
        KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::DELETE)),
        KeySpec::one(2, Access::OW.or(Access::INSERT)),
    ],
    doc: Doc {
        since: "1.0.0",
        summary: "Gives a key another name that no key has yet.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::key("newkey", 1)],
        history: &[("3.2.0", "A key's own name is no error.")],
        ..ABOUT
    },
    run: DataRun::Keys(renamenx),
    ..ROW
};

/// Whether a key that exists at the destination is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occupied {
    Replace,
    Keep,
}

/// Copying a key onto itself, which is the same name in the same database, is refused before either is looked
/// up.
fn copy(call: &mut Call<'_, '_>) -> Done {
    let source = call.key(0);
    let (destination, occupied) = copy_options(call)?;
    if is_same(source, &destination) {
        return Err(Error::same_key());
    }
    let value = call.view.copy(source);
    call.view.note_lookup(source, value.is_some());
    let value = value.filter(|_| occupied == Occupied::Replace || !call.view.exists_used(&destination));
    let is_copied = value.is_some();
    if let Some(value) = value {
        call.view.put_taken(&destination, value);
        call.view.changed(&destination, 1, Event::generic("copy_to"));
    }
    call.reply.int(i64::from(is_copied));
    Ok(())
}

/// The destination, and whether what is there is replaced. The last DB counts.
fn copy_options<'k>(call: &Call<'_, 'k>) -> Result<(Key<'k>, Occupied), Error> {
    let (mut destination, mut occupied) = (*call.key(1), Occupied::Keep);
    let mut words = call.args.iter_from(3);
    while let Some(word) = words.next() {
        if is_word(word, "REPLACE") {
            occupied = Occupied::Replace;
        } else if is_word(word, "DB") {
            let db = words.next().ok_or_else(Error::syntax)?;
            destination = destination.in_db(database(db, call.view.databases())?);
        } else {
            return Err(Error::syntax());
        }
    }
    Ok((destination, occupied))
}

fn is_same(source: &Key<'_>, destination: &Key<'_>) -> bool {
    source.bytes() == destination.bytes() && source.db() == destination.db()
}

fn move_key(call: &mut Call<'_, '_>) -> Done {
    let source = call.key(0);
    let destination = source.in_db(database(call.args.at(2), call.view.databases())?);
    if is_same(source, &destination) {
        return Err(Error::same_key());
    }
    let is_moved =
        call.view.exists_used(source) && pass_on(call, source, &destination, Occupied::Keep, MOVED);
    call.reply.int(i64::from(is_moved));
    Ok(())
}

fn rename(call: &mut Call<'_, '_>) -> Done {
    let (source, destination) = (call.key(0), call.key(1));
    if !call.view.exists_used(source) {
        return Err(Error::no_such_key());
    }
    if !is_same(source, destination) {
        pass_on(call, source, destination, Occupied::Replace, RENAMED);
    }
    call.reply.ok();
    Ok(())
}

/// RENAMENX. Renaming an existing key to its own name answers 0, because the name is taken.
fn renamenx(call: &mut Call<'_, '_>) -> Done {
    let (source, destination) = (call.key(0), call.key(1));
    if !call.view.exists_used(source) {
        return Err(Error::no_such_key());
    }
    let is_renamed =
        !is_same(source, destination) && pass_on(call, source, destination, Occupied::Keep, RENAMED);
    call.reply.int(i64::from(is_renamed));
    Ok(())
}

/// What is published of the key that a value leaves, and of the one that it comes to.
const MOVED: [Event; 2] = [Event::generic("move_from").of_end(), Event::generic("move_to")];
const RENAMED: [Event; 2] = [Event::generic("rename_from").of_end(), Event::generic("rename_to")];

/// Moves the value of `source`, which exists, to another key, with its deadline. Returns whether it did.
fn pass_on(
    call: &mut Call<'_, '_>,
    source: &Key<'_>,
    destination: &Key<'_>,
    occupied: Occupied,
    events: [Event; 2],
) -> bool {
    if occupied == Occupied::Keep && call.view.exists_used(destination) {
        return false;
    }
    let Some(value) = call.view.take(source) else { return false };
    call.view.put_taken(destination, value);
    call.view.changed(source, 1, events[0]);
    call.view.touched(destination, events[1]);
    true
}
