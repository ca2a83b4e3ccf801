//! LATENCY: how long commands took, by command. `latency-tracking` says whether they are measured at all, and
//! `latency-tracking-every` how many: where not all are, those that were stand for the others.
use crate::call::{ADMIN, ROW, ServerCall, ServerCommand, ServerRun};
use crate::help;
use crate::histogram::Latencies;
use crate::registry::{Registry, Row};
use command::{Arg, Arity, Doc, Done, Flags, Group};
use resp::Reply;

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&LATENCY]);

const LATENCY: ServerCommand = ServerCommand {
    name: "LATENCY",
    arity: Arity::AtLeast(2),
    doc: Doc {
        group: Group::Server,
        since: "2.8.13",
        summary: "Holds the commands that tell how long commands take.",
        complexity: "Depends on subcommand.",
        ..Doc::NEW
    },
    subcommands: &[&HELP, &HISTOGRAM],
    run: ServerRun::Container,
    ..ROW
};

const HISTOGRAM: ServerCommand = ServerCommand {
    name: "HISTOGRAM",
    arity: Arity::AtLeast(2),
    flags: ADMIN,
    doc: Doc {
        group: Group::Server,
        since: "7.0.0",
        summary: "Answers how many calls of each command took at most how long.",
        complexity: "O(N) where N is the number of commands with latency information being retrieved.",
        args: &[Arg::str("command").optional().many()],
        tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
        ..Doc::NEW
    },
    run: ServerRun::Shared(histogram),
    ..ROW
};

const HELP: ServerCommand = ServerCommand {
    name: "HELP",
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.or(Flags::STALE),
    doc: help::doc(Group::Server, "2.8.13"),
    run: ServerRun::Shared(help),
    ..ROW
};

fn histogram(call: &mut ServerCall<'_>) -> Done {
    let registry = &call.shared.registry;
    let rows: Vec<&Row> = if call.args.len() == 2 {
        registry.all().collect()
    } else {
        call.args.iter_from(2).flat_map(|name| named(registry, name)).collect()
    };
    let measured = |row: &Row| call.shared.counters.latencies(row.number);
    let all: Vec<_> = rows.into_iter().filter_map(|row| Some((row, measured(row)?))).collect();
    call.reply.map(all.len());
    for (row, latencies) in all {
        call.reply.bulk(row.full_name.as_bytes());
        write(call.reply, &latencies);
    }
    Ok(())
}

/// A command; a subcommand as `config|get`; a container stands for its subcommands.
fn named<'r>(registry: &'r Registry, name: &[u8]) -> Vec<&'r Row> {
    let mut words = name.splitn(2, |b| *b == b'|');
    let row = words.next().and_then(|first| registry.find(first));
    match (row, words.next()) {
        (Some(row), None) if row.subcommands.is_empty() => vec![row],
        (Some(row), None) => row.subcommands.iter().collect(),
        (Some(row), Some(word)) => row.subcommand(word).into_iter().collect(),
        (None, _) => Vec::new(),
    }
}

fn write(reply: &mut Reply, latencies: &Latencies) {
    let powers = latencies.by_power();
    reply.map(2);
    reply.bulk(b"calls");
    reply.int(latencies.calls() as i64);
    reply.bulk(b"histogram_usec");
    reply.map(powers.len());
    for (time_us, calls) in powers {
        reply.int(time_us as i64);
        reply.int(calls as i64);
    }
}

fn help(call: &mut ServerCall<'_>) -> Done {
    help::reply(
        call.reply,
        "LATENCY",
        &[
            "HISTOGRAM [COMMAND ...]",
            "    Answer how many calls of these commands, or of all, took at most how many",
            "    microseconds, by powers of two.",
        ],
    );
    Ok(())
}
