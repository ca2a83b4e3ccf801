//! MEMORY USAGE and Sardine's own MEMORY LAYOUT: what a key takes, and where its bytes are.
//!
//! Both sum up what is allocated, node by node, with the rounding that the allocator makes: the key's bytes
//! in its leaf, its share of the leaf's head and room, and everything behind its pointer. LAYOUT and USAGE
//! with SAMPLES 0 go through all nodes; USAGE otherwise looks at some leaves of a large value, which takes
//! the same few microseconds of a thousand elements and of millions.
use super::row::{ABOUT, ROW};
use crate::argument::{int, is_word};
use crate::help::reply_help;
use crate::{
    Access, Acl, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, Group, KeySpec, Long, Scope,
    WholeCall, work,
};
use resp::Reply;
use store::KeyInfo;

pub(super) const MEMORY: Command = Command {
    name: "MEMORY",
    arity: Arity::AtLeast(2),
    flags: Flags::NONE,
    acl: Acl::NONE,
    doc: Doc {
        group: Group::Server,
        since: "4.0.0",
        summary: "Holds the commands that look at memory.",
        complexity: "See each subcommand.",
        ..ABOUT
    },
    subcommands: &[&MEMORY_HELP, &MEMORY_LAYOUT, &MEMORY_USAGE],
    run: DataRun::Container,
    ..ROW
};

pub(super) const MEMORY_HELP: Command = Command {
    name: "HELP",
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.or(Flags::STALE),
    acl: Acl::NONE,
    doc: Doc {
        group: Group::Server,
        since: "4.0.0",
        summary: "Lists the subcommands.",
        complexity: "O(1)",
        ..ABOUT
    },
    run: DataRun::Whole(Scope::Shared, help),
    ..ROW
};

pub(super) const MEMORY_USAGE: Command = Command {
    name: "USAGE",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY,
    acl: Acl::NONE,
    keys: &[KeySpec::one(2, Access::RO)],
    doc: Doc {
        group: Group::Server,
        since: "4.0.0",
        summary: "Answers how many bytes a key takes.",
        complexity: "O(1); with SAMPLES 0 O(N) where N is the number of nodes that hold the value.",
        args: &[Arg::key("key", 0), Arg::int("count").after("SAMPLES").optional()],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(weighed, usage)),
    ..ROW
};

const MEMORY_LAYOUT: Command = Command {
    name: "LAYOUT",
    arity: Arity::Exactly(3),
    flags: Flags::READONLY,
    acl: Acl::NONE,
    keys: &[KeySpec::one(2, Access::RO)],
    doc: Doc {
        group: Group::Server,
        since: "8.0.2",
        summary: "Answers where the bytes of a key are: nodes, entries and bytes by kind.",
        complexity: "O(N) where N is the number of nodes that hold the value.",
        args: &[Arg::key("key", 0)],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(work::all, layout)),
    ..ROW
};

fn help(call: &mut WholeCall<'_>) -> Done {
    reply_help(
        call,
        &[
            ("DOCTOR", "In words, what is remarkable about where the memory goes."),
            ("LAYOUT <key>", "Where the bytes of the key are: nodes, entries and bytes by kind."),
            ("MALLOC-STATS", "What the arena holds, stripe by stripe."),
            ("PURGE", "Gives free pages back to the system, all that can be."),
            ("STATS", "Where the memory of the process goes."),
            (
                "USAGE <key> [SAMPLES <count>]",
                "The bytes that the key takes. With SAMPLES 0 all nodes count, else some.",
            ),
        ],
    )
}

/// How much of a large value is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Samples {
    Some,
    All,
}

fn usage(call: &mut Call<'_, '_>) -> Done {
    let samples = samples(call)?;
    let key = call.key(0);
    call.view.ignore_lookups();
    let bytes = match samples {
        Samples::Some => call.view.memory_bytes(key),
        Samples::All => call.view.info(key).map(|info| info.memory_bytes),
    };
    match bytes {
        Some(bytes) => call.reply.int(bytes as i64),
        None => call.reply.null(),
    }
    Ok(())
}

/// As many samples as Redis takes tell less than what is looked at here whatever their number, but 0 is all.
fn samples(call: &Call<'_, '_>) -> Result<Samples, Error> {
    let mut samples = Samples::Some;
    let mut words = call.args.iter_from(3);
    while let Some(word) = words.next() {
        let count = words.next().filter(|_| is_word(word, "SAMPLES")).ok_or_else(Error::syntax)?;
        samples = match int(count)? {
            ..0 => return Err(Error::syntax()),
            0 => Samples::All,
            1.. => Samples::Some,
        };
    }
    Ok(samples)
}

/// All elements where all are gone through; else, of a stream, its groups and their consumers.
fn weighed(call: &mut Call<'_, '_>) -> Option<u64> {
    const STEPS_A_PART: u64 = 16;
    match samples(call) {
        Ok(Samples::All) => work::all(call),
        Ok(Samples::Some) => Some(call.view.parts(call.key(0)) * STEPS_A_PART),
        Err(_) => Some(0),
    }
}

fn layout(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    call.view.ignore_lookups();
    match call.view.info(key) {
        Some(info) => reply_layout(call.reply, &info),
        None => call.reply.null(),
    }
    Ok(())
}

/// A map of maps, by names that do not depend on the type: a kind of node that the value has none of is shown
/// with zeros, so that tools can add replies up.
fn reply_layout(reply: &mut Reply, info: &KeyInfo) {
    let stats = &info.stats;
    let kinds = [
        ("inner", &stats.inner),
        ("tagged", &stats.tagged),
        ("strings", &stats.strings),
        ("ints", &stats.ints),
        ("compressed", &stats.compressed),
        ("rows", &stats.rows),
        ("columns", &stats.columns),
        ("records", &stats.records),
        ("scored", &stats.scored),
        ("placed", &stats.placed),
        ("outside", &stats.outside),
    ];
    reply.map(9);
    pair(reply, "type", info.kind.name());
    pair(reply, "encoding", info.encoding);
    pair(reply, "place", if info.is_inline { "entry" } else { "outside" });
    number(reply, "length", info.len);
    number(reply, "bytes", info.memory_bytes);
    number(reply, "serialized", info.serialized_bytes);
    number(reply, "height", u64::from(stats.height));
    number(reply, "compressed.raw", stats.compressed_raw_bytes);
    reply.bulk(b"nodes");
    reply.map(kinds.len());
    for (name, kind) in kinds {
        reply.bulk(name.as_bytes());
        reply.map(5);
        number(reply, "count", kind.nodes);
        number(reply, "entries", kind.entries);
        number(reply, "used", kind.used_bytes);
        number(reply, "allocated", kind.allocated_bytes);
        // Per cent; a kind without nodes wastes nothing.
        number(reply, "fill", (kind.used_bytes * 100).checked_div(kind.allocated_bytes).unwrap_or(100));
    }
}

fn pair(reply: &mut Reply, name: &str, text: &str) {
    reply.bulk(name.as_bytes());
    reply.bulk(text.as_bytes());
}

fn number(reply: &mut Reply, name: &str, n: u64) {
    reply.bulk(name.as_bytes());
    reply.int(n as i64);
}
