//! MEMORY's commands about the whole process: STATS, DOCTOR, PURGE, MALLOC-STATS. Those about one key (USAGE,
//! LAYOUT) are in the crate `command`; the registry joins both parts under one name.
mod doctor;
mod figures;

use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use command::{Arity, Doc, Done, Group};
use doctor::Patient;
pub(crate) use figures::{Figures, function_bytes, script_bytes};
use pack::arena;
use resp::Reply;
use std::fmt::Write;

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&MEMORY]);

/// Joined with the container in `command`, which has the documentation.
const MEMORY: ServerCommand = ServerCommand {
    name: "MEMORY",
    arity: Arity::AtLeast(2),
    doc: ABOUT,
    subcommands: &[&DOCTOR, &MALLOC_STATS, &PURGE, &STATS],
    run: ServerRun::Container,
    ..ROW
};

const ABOUT: Doc = Doc {
    group: Group::Server,
    since: "4.0.0",
    summary: "Holds the commands that look at memory.",
    complexity: "See each subcommand.",
    tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    ..Doc::NEW
};

const DOCTOR: ServerCommand = ServerCommand {
    name: "DOCTOR",
    arity: Arity::Exactly(2),
    doc: Doc { summary: "Says in words where memory is lost.", complexity: "O(1)", ..ABOUT },
    run: ServerRun::Shared(doctor),
    ..ROW
};

const MALLOC_STATS: ServerCommand = ServerCommand {
    name: "MALLOC-STATS",
    arity: Arity::Exactly(2),
    doc: Doc {
        summary: "Shows what the arena holds.",
        complexity: "O(N) where N is the number of extents of the arena.",
        ..ABOUT
    },
    run: ServerRun::Shared(malloc_stats),
    ..ROW
};

const PURGE: ServerCommand = ServerCommand {
    name: "PURGE",
    arity: Arity::Exactly(2),
    doc: Doc {
        summary: "Gives free pages back to the system.",
        complexity: "O(N) where N is the number of extents of the arena.",
        tips: crate::core::call::ON_ALL_SHARDS,
        ..ABOUT
    },
    run: ServerRun::Shared(purge),
    ..ROW
};

const STATS: ServerCommand = ServerCommand {
    name: "STATS",
    arity: Arity::Exactly(2),
    doc: Doc { summary: "Answers where memory goes.", complexity: "O(1)", ..ABOUT },
    run: ServerRun::Shared(stats),
    ..ROW
};

/// The value of one field of MEMORY STATS.
enum Value {
    Bytes(u64),
    Signed(i64),
    Ratio(f64),
    /// How many bytes the timing wheels of one database take.
    Wheels(u64),
}

fn stats(call: &mut ServerCall<'_>) -> Done {
    let fields = fields(call);
    call.reply.map(fields.len());
    for (name, value) in &fields {
        call.reply.bulk(name.as_bytes());
        write(call.reply, value);
    }
    Ok(())
}

fn write(reply: &mut Reply, value: &Value) {
    match value {
        Value::Bytes(n) => reply.int(*n as i64),
        Value::Signed(n) => reply.int(*n),
        Value::Ratio(x) => reply.double(*x),
        Value::Wheels(bytes) => {
            reply.map(1);
            reply.bulk(b"overhead.hashtable.expires");
            reply.int(*bytes as i64);
        }
    }
}

/// Redis's names, for what has a meaning here, and some of Sardine's own. What does not exist yet takes 0
/// bytes.
fn fields(call: &ServerCall<'_>) -> Vec<(String, Value)> {
    let figures = Figures::of(call.server);
    let keyspace = &call.server.keyspace;
    let mut fields: Vec<(String, Value)> = Vec::new();
    let mut add = |name: &str, value| fields.push((name.to_owned(), value));
    add("peak.allocated", Value::Bytes(figures.peak));
    add("total.allocated", Value::Bytes(figures.used));
    add("startup.allocated", Value::Bytes(figures.startup));
    for absent in ["replication.backlog", "replica.fullsync.buffer", "clients.slaves"] {
        add(absent, Value::Bytes(0));
    }
    add("clients.normal", Value::Bytes(figures.clients));
    for absent in ["cluster.links", "aof.buffer"] {
        add(absent, Value::Bytes(0));
    }
    add("lua.caches", Value::Bytes(call.server.scripts.cache.size().1 as u64));
    let libraries = &call.server.scripts.libraries;
    add("functions.caches", Value::Bytes(libraries.now().bytes() as u64));
    add("script.VMs", Value::Bytes(call.server.interpreter_bytes() + call.server.functions_bytes()));
    let mut keys = 0;
    for db in (0..keyspace.databases()).filter(|db| !keyspace.is_empty(*db)) {
        keys += keyspace.len(db);
        add(&format!("db.{db}"), Value::Wheels(keyspace.wheel_bytes(Some(db))));
    }
    add("overhead.total", Value::Bytes(figures.overhead()));
    add("keys.count", Value::Bytes(keys));
    add("keys.bytes-per-key", Value::Bytes(figures.dataset().checked_div(keys).unwrap_or(0)));
    add("dataset.bytes", Value::Bytes(figures.dataset()));
    add("dataset.percentage", Value::Ratio(figures.dataset_percent()));
    add("peak.percentage", Value::Ratio(figures.peak_percent()));
    add("allocator.allocated", Value::Bytes(figures.used));
    let held = figures.allocator_resident();
    add("allocator.resident", Value::Bytes(held));
    add("rss-overhead.ratio", Value::Ratio(figures.resident as f64 / held.max(1) as f64));
    add("rss-overhead.bytes", Value::Bytes(figures.resident - held));
    add("arena.used", Value::Bytes(figures.arena.used_bytes as u64));
    add("arena.resident", Value::Bytes(figures.arena.resident_bytes as u64));
    add("arena.mapped", Value::Bytes(figures.arena.mapped_bytes as u64));
    add("arena.holes", Value::Bytes(figures.arena.hole_bytes as u64));
    add("fragmentation", Value::Ratio(figures.fragmentation()));
    add("fragmentation.bytes", Value::Signed(figures.fragmentation_bytes()));
    fields
}

fn doctor(call: &mut ServerCall<'_>) -> Done {
    let text = doctor::examine(&Patient {
        figures: Figures::of(call.server),
        clients: call.server.clients().len() as u64,
        maxmemory: call.server.config().maxmemory_bytes,
        machine: crate::state::system::total_bytes(),
        pending: call.server.background.pending(),
    });
    call.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// Gives free pages back until none is left, on this thread: when the reply comes, it is done. Other workers
/// go on.
fn purge(call: &mut ServerCall<'_>) -> Done {
    const BLOCKS_AT_A_TIME: usize = 256;
    arena::purge_kept();
    while arena::is_purge_due() && arena::purge(BLOCKS_AT_A_TIME) > 0 {}
    call.reply.ok();
    Ok(())
}

/// What the arena holds, in all and stripe by stripe, for people to read.
fn malloc_stats(call: &mut ServerCall<'_>) -> Done {
    let config = call.server.config();
    let figures = Figures::of(call.server);
    let arena = figures.arena;
    let mut text = format!(
        "Allocator: {}\nIn use: {} bytes, of which {} in the arena\nResident: {} bytes, of which {} in the arena\n\
         Arena: {} bytes mapped, {} in huge pages\n\n",
        config.allocator,
        figures.used,
        arena.used_bytes,
        figures.resident,
        arena.resident_bytes,
        arena.mapped_bytes,
        arena::huge_bytes()
    );
    text += "stripe       mapped     resident         used    free blocks         free   given back      largest\n";
    for (number, stripe) in arena::stripes().enumerate().filter(|(_, stripe)| stripe.usage.mapped_bytes > 0) {
        let _ = writeln!(
            text,
            "{number:>6} {:>12} {:>12} {:>12} {:>14} {:>12} {:>12} {:>12}",
            stripe.usage.mapped_bytes,
            stripe.usage.resident_bytes,
            stripe.usage.used_bytes,
            stripe.free_blocks,
            stripe.free_bytes,
            stripe.given_back_bytes,
            stripe.largest_bytes
        );
    }
    call.reply.verbatim("txt", text.as_bytes());
    Ok(())
}
