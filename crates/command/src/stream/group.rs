//! XGROUP: groups and their consumers come and go.
use super::row::{ABOUT, CONSUMER_CREATED, ROW};
use super::{id, steps_in_group};
use crate::argument::{int, is_word};
use crate::help::reply_help;
use crate::{
    Access, Acl, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long, Scope, WholeCall,
};
use store::{Event, Id, StreamMut};

pub(super) const XGROUP: Command = Command {
    name: "XGROUP",
    arity: Arity::AtLeast(2),
    flags: Flags::NONE,
    acl: Acl::NONE,
    doc: Doc {
        since: "5.0.0",
        summary: "Holds the commands that manage groups of consumers.",
        complexity: "See each subcommand.",
        ..ABOUT
    },
    subcommands: &[
        &XGROUP_DELCONSUMER,
        &XGROUP_CREATECONSUMER,
        &XGROUP_CREATE,
        &XGROUP_SETID,
        &XGROUP_HELP,
        &XGROUP_DESTROY,
    ],
    run: DataRun::Container,
    ..ROW
};

const XGROUP_CREATE: Command = Command {
    name: "CREATE",
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[KeySpec::one(2, Access::RW.or(Access::INSERT))],
    doc: Doc {
        since: "5.0.0",
        summary: "Creates a group of consumers.",
        complexity: "O(log G) where G is the number of groups.",
        args: &[
            Arg::key("key", 0),
            Arg::str("group"),
            Arg::one_of("id-selector", &[Arg::str("id"), Arg::word("new-id", "$")]),
            Arg::word("mkstream", "MKSTREAM").optional(),
            Arg::int("entriesread").after("ENTRIESREAD").optional().shown_as("entries-read"),
        ],
        history: &[("7.0.0", "Takes `ENTRIESREAD`.")],
        ..ABOUT
    },
    run: DataRun::Keys(create),
    ..ROW
};

const XGROUP_CREATECONSUMER: Command = Command {
    name: "CREATECONSUMER",
    arity: Arity::Exactly(5),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[KeySpec::one(2, Access::RW.or(Access::INSERT))],
    doc: Doc {
        since: "6.2.0",
        summary: "Creates a consumer in a group.",
        complexity: "O(log C) where C is the number of consumers.",
        args: &[Arg::key("key", 0), Arg::str("group"), Arg::str("consumer")],
        ..ABOUT
    },
    run: DataRun::Keys(createconsumer),
    ..ROW
};

const XGROUP_DELCONSUMER: Command = Command {
    name: "DELCONSUMER",
    arity: Arity::Exactly(5),
    flags: Flags::WRITE,
    keys: &[KeySpec::one(2, Access::RW.or(Access::DELETE))],
    doc: Doc {
        since: "5.0.0",
        summary: "Removes a consumer from a group, and what it holds.",
        complexity: "O(N log P) where N is what the consumer holds and P what is pending in the group.",
        args: &[Arg::key("key", 0), Arg::str("group"), Arg::str("consumer")],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(held_by_consumer, delconsumer)),
    ..ROW
};

const XGROUP_DESTROY: Command = Command {
    name: "DESTROY",
    arity: Arity::Exactly(4),
    flags: Flags::WRITE,
    keys: &[KeySpec::one(2, Access::RW.or(Access::DELETE))],
    doc: Doc {
        since: "5.0.0",
        summary: "Removes a group of consumers.",
        complexity: "O(N) where N is what is pending in the group.",
        args: &[Arg::key("key", 0), Arg::str("group")],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(held_in_group, destroy)),
    ..ROW
};

const XGROUP_HELP: Command = Command {
    name: "HELP",
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.or(Flags::STALE),
    doc: Doc { since: "5.0.0", summary: "Lists the subcommands.", complexity: "O(1)", ..ABOUT },
    run: DataRun::Whole(Scope::Shared, help),
    ..ROW
};

const XGROUP_SETID: Command = Command {
    name: "SETID",
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE,
    keys: &[KeySpec::one(2, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "5.0.0",
        summary: "Sets the id behind which a group reads on.",
        complexity: "O(1)",
        args: &[
            Arg::key("key", 0),
            Arg::str("group"),
            Arg::one_of("id-selector", &[Arg::str("id"), Arg::word("new-id", "$")]),
            Arg::int("entriesread").after("ENTRIESREAD").optional().shown_as("entries-read"),
        ],
        history: &[("7.0.0", "Takes `ENTRIESREAD`.")],
        ..ABOUT
    },
    run: DataRun::Keys(setid),
    ..ROW
};

/// What may follow the id.
#[derive(Default)]
struct Options {
    creates_key: bool,
    entries_read: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Subcommand {
    Create,
    SetId,
}

fn options(call: &Call<'_, '_>, subcommand: Subcommand) -> Result<Options, Error> {
    let (mut options, mut index) = (Options::default(), 5);
    while index < call.args.len() {
        let word = call.args.at(index);
        if subcommand == Subcommand::Create && is_word(word, "MKSTREAM") {
            options.creates_key = true;
            index += 1;
        } else if is_word(word, "ENTRIESREAD") && index + 1 < call.args.len() {
            options.entries_read = match int(call.args.at(index + 1))? {
                -1 => None,
                n => Some(u64::try_from(n).map_err(|_| Error::entries_read_negative())?),
            };
            index += 2;
        } else {
            return Err(Error::unknown_subcommand(call.args.at(1), "XGROUP"));
        }
    }
    Ok(options)
}

/// `$` is the last id.
fn progress(text: &[u8], last: Id) -> Result<Id, Error> {
    if text == b"$" { Ok(last) } else { id::strict(text, 0) }
}

fn create(call: &mut Call<'_, '_>) -> Done {
    let options = options(call, Subcommand::Create)?;
    let (key, name) = (call.key(0), call.args.at(3));
    let stream = call.view.stream(key)?;
    if stream.is_none() && !options.creates_key {
        return Err(Error::xgroup_without_key());
    }
    let (is_new, event) = (stream.is_none(), Event::stream("xgroup-create"));
    let last = stream.map_or(Id::MIN, store::Stream::last_id);
    if call.args.len() > 8 {
        return Err(Error::unknown_subcommand(call.args.at(1), "XGROUP"));
    }
    let id = progress(call.args.at(4), last)?;
    if !call.view.stream_or_new(key)?.create_group(name, id, options.entries_read) {
        return Err(Error::group_exists());
    }
    // As in Redis a key that has come to be wakes those who wait for it, though it holds nothing.
    let event = if is_new { event } else { event.idle().of_groups() };
    call.view.changed(key, 1, event);
    call.reply.ok();
    Ok(())
}

/// What the consumer holds, each of which is looked for in the group and removed.
fn held_by_consumer(call: &mut Call<'_, '_>) -> Option<u64> {
    const STEPS_A_REMOVAL: u64 = 2;
    let args = call.args;
    steps_in_group(call, args.at(3), |group| {
        let consumer = group.find_consumer(args.at(4))?;
        Some(group.consumer(consumer).pending_len() * STEPS_A_REMOVAL)
    })
}

/// What is freed with the group.
fn held_in_group(call: &mut Call<'_, '_>) -> Option<u64> {
    const FREED_A_STEP: u64 = 16;
    steps_in_group(call, call.args.at(3), |group| {
        Some(group.pending_len() / FREED_A_STEP + group.consumers().len() as u64)
    })
}

/// The stream of a group that exists.
fn existing<'v>(call: &'v mut Call<'_, '_>) -> Result<StreamMut<'v>, Error> {
    let (key, name) = (call.key(0), call.args.at(3));
    let stream = call.view.stream_mut(key)?.ok_or_else(Error::xgroup_without_key)?;
    if stream.group(name).is_none() {
        return Err(Error::no_group_of_key(key.bytes(), name));
    }
    Ok(stream)
}

fn setid(call: &mut Call<'_, '_>) -> Done {
    let options = options(call, Subcommand::SetId)?;
    let (name, text) = (call.args.at(3), call.args.at(4));
    let (count, subcommand) = (call.args.len(), call.args.at(1));
    let mut stream = existing(call)?;
    if count > 7 {
        return Err(Error::unknown_subcommand(subcommand, "XGROUP"));
    }
    let id = if text == b"$" { stream.last_id() } else { id::any(text)? };
    if let Some(group) = stream.group_mut(name) {
        group.set_progress(id, options.entries_read);
    }
    drop(stream);
    let key = call.key(0);
    call.view.changed(key, 1, Event::stream("xgroup-setid").idle().of_groups());
    call.reply.ok();
    Ok(())
}

fn destroy(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let mut stream = call.view.stream_mut(key)?.ok_or_else(Error::xgroup_without_key)?;
    let was_there = stream.destroy_group(call.args.at(3));
    drop(stream);
    call.view.changed(key, u64::from(was_there), Event::stream("xgroup-destroy").of_groups());
    call.reply.int(i64::from(was_there));
    Ok(())
}

fn createconsumer(call: &mut Call<'_, '_>) -> Done {
    let (now, name, consumer) = (call.view.clock(), call.args.at(3), call.args.at(4));
    let mut stream = existing(call)?;
    let created = stream.group_mut(name).and_then(|group| group.create_consumer(consumer, now)).is_some();
    drop(stream);
    let key = call.key(0);
    call.view.changed(key, u64::from(created), CONSUMER_CREATED);
    call.reply.int(i64::from(created));
    Ok(())
}

fn delconsumer(call: &mut Call<'_, '_>) -> Done {
    let (name, consumer) = (call.args.at(3), call.args.at(4));
    let mut stream = existing(call)?;
    let pending = stream.group_mut(name).and_then(|group| group.delete_consumer(consumer));
    drop(stream);
    let key = call.key(0);
    call.view.changed(
        key,
        u64::from(pending.is_some()),
        Event::stream("xgroup-delconsumer").idle().of_groups(),
    );
    call.reply.int(pending.unwrap_or(0) as i64);
    Ok(())
}

fn help(call: &mut WholeCall<'_>) -> Done {
    reply_help(
        call,
        &[
            (
                "CREATE <key> <group> <id|$> [MKSTREAM] [ENTRIESREAD <count>]",
                "Creates a group that reads on behind the id; with MKSTREAM the stream too.",
            ),
            ("CREATECONSUMER <key> <group> <consumer>", "Creates a consumer in the group."),
            ("DELCONSUMER <key> <group> <consumer>", "Removes a consumer, and what it holds."),
            ("DESTROY <key> <group>", "Removes the group."),
            ("SETID <key> <group> <id|$> [ENTRIESREAD <count>]", "Lets the group read on behind the id."),
        ],
    )
}
