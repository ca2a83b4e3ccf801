//! LATENCY: how long commands took (HISTOGRAM, if `latency-tracking` is on), and what took longer than
//! `latency-monitor-threshold` (all the other subcommands, from the samples that `state/latency.rs` keeps).
mod doctor;
mod graph;

use crate::commands::help;
use crate::core::call::{ADMIN, ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use crate::core::registry::{Registry, Row};
use crate::state::histogram::Latencies;
use crate::state::latency::Series;
use command::{Arg, Arity, Doc, Done, Flags, Group};

use resp::Reply;

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&LATENCY]);

const LATENCY: ServerCommand = ServerCommand {
    name: "LATENCY",
    arity: Arity::AtLeast(2),
    doc: Doc {
        group: Group::Server,
        since: "2.8.13",
        summary: "Holds the commands that tell what took how long.",
        complexity: "See each subcommand.",
        ..Doc::NEW
    },
    subcommands: &[&DOCTOR, &GRAPH, &HELP, &HISTOGRAM, &HISTORY, &LATEST, &RESET],
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
        complexity: "O(N) where N is the number of commands whose histograms are answered.",
        args: &[Arg::str("command").optional().many()],
        tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
        ..Doc::NEW
    },
    run: ServerRun::Anywhere(histogram),
    ..ROW
};

/// What the rows of subcommands that read the samples have in common.
const SAMPLES: ServerCommand =
    ServerCommand { arity: Arity::Exactly(2), flags: ADMIN, doc: SAMPLES_DOC, ..ROW };
const SAMPLES_DOC: Doc = Doc {
    group: Group::Server,
    since: "2.8.13",
    complexity: "O(1)",
    tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
    ..Doc::NEW
};

const DOCTOR: ServerCommand = ServerCommand {
    name: "DOCTOR",
    doc: Doc { summary: "Says in words what took long, and what can be done.", ..SAMPLES_DOC },
    run: ServerRun::Anywhere(doctor),
    ..SAMPLES
};

const GRAPH: ServerCommand = ServerCommand {
    name: "GRAPH",
    arity: Arity::Exactly(3),
    doc: Doc { summary: "Draws the samples of an event.", args: &[Arg::str("event")], ..SAMPLES_DOC },
    run: ServerRun::Anywhere(graph),
    ..SAMPLES
};

const HISTORY: ServerCommand = ServerCommand {
    name: "HISTORY",
    arity: Arity::Exactly(3),
    doc: Doc { summary: "Answers the samples of an event.", args: &[Arg::str("event")], ..SAMPLES_DOC },
    run: ServerRun::Anywhere(history),
    ..SAMPLES
};

const LATEST: ServerCommand = ServerCommand {
    name: "LATEST",
    doc: Doc { summary: "Answers the last sample and the worst of each event.", ..SAMPLES_DOC },
    run: ServerRun::Anywhere(latest),
    ..SAMPLES
};

const RESET: ServerCommand = ServerCommand {
    name: "RESET",
    arity: Arity::AtLeast(2),
    doc: Doc {
        summary: "Forgets the samples of these events, or of all.",
        args: &[Arg::str("event").optional().many()],
        tips: &["request_policy:all_nodes", "response_policy:agg_sum"],
        ..SAMPLES_DOC
    },
    run: ServerRun::Anywhere(reset),
    ..SAMPLES
};

const HELP: ServerCommand = ServerCommand {
    name: "HELP",
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.or(Flags::STALE),
    doc: help::doc(Group::Server, "2.8.13"),
    run: ServerRun::Anywhere(help),
    ..ROW
};

/// LATENCY HISTOGRAM: for each command that was called, how many calls took at most how long, by powers of
/// two.
fn histogram(call: &mut ServerCall<'_>) -> Done {
    let registry = &call.server.registry;
    let rows: Vec<&Row> = if call.args.len() == 2 {
        registry.all().collect()
    } else {
        call.args.iter_from(2).flat_map(|name| named(registry, name)).collect()
    };
    let measured = |row: &Row| call.server.counters.latencies(row.number);
    let all: Vec<_> = rows.into_iter().filter_map(|row| Some((row, measured(row)?))).collect();
    call.reply.map(all.len());
    for (row, latencies) in all {
        call.reply.bulk(row.full_name.as_bytes());
        write(call.reply, &latencies);
    }
    Ok(())
}

/// The rows that a name means: a command; a subcommand as `config|get`; of a container all its subcommands.
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

fn doctor(call: &mut ServerCall<'_>) -> Done {
    let text = doctor::examine(&call.server.latency.events(), &call.server.config(), call.now.0 / 1000);
    call.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn graph(call: &mut ServerCall<'_>) -> Done {
    let event = String::from_utf8_lossy(call.args.at(2)).into_owned();
    let events = call.server.latency.events();
    let series = events.get(event.as_str());
    let missing = || error::no_samples(&event);
    let text = graph::draw(&event, series.ok_or_else(missing)?, call.now.0 / 1000);
    call.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn history(call: &mut ServerCall<'_>) -> Done {
    let events = call.server.latency.events();
    let series = std::str::from_utf8(call.args.at(2)).ok().and_then(|event| events.get(event));
    call.reply.array(series.map_or(0, |series| series.samples.len()));
    for sample in series.iter().flat_map(|series| &series.samples) {
        call.reply.array(2);
        call.reply.int(sample.time_s);
        call.reply.int(sample.ms as i64);
    }
    Ok(())
}

fn latest(call: &mut ServerCall<'_>) -> Done {
    let events = call.server.latency.events();
    let last = |series: &Series| series.samples.back().copied();
    let all: Vec<_> =
        events.iter().filter_map(|(event, series)| Some((event, last(series)?, series))).collect();
    call.reply.array(all.len());
    for (event, last, series) in all {
        call.reply.array(4);
        call.reply.bulk(event.as_bytes());
        call.reply.int(last.time_s);
        call.reply.int(last.ms as i64);
        call.reply.int(series.worst_ms as i64);
    }
    Ok(())
}

/// Forgets the samples of the named events, or of all. Answers how many of these had samples.
fn reset(call: &mut ServerCall<'_>) -> Done {
    let mut events = call.server.latency.events();
    let before = events.len();
    match call.args.len() {
        2 => events.clear(),
        _ => events.retain(|event, _| call.args.iter_from(2).all(|name| name != event.as_bytes())),
    }
    call.reply.int((before - events.len()) as i64);
    Ok(())
}

fn help(call: &mut ServerCall<'_>) -> Done {
    help::reply(
        call,
        &[
            "DOCTOR",
            "    Say in words what took long, and what can be done.",
            "GRAPH <event>",
            "    Draw the samples of <event>.",
            "HISTORY <event>",
            "    Answer the samples of <event>: seconds since 1970, milliseconds.",
            "LATEST",
            "    Answer for each event its last sample and its worst one.",
            "RESET [<event> ...]",
            "    Forget the samples of these events, or of all.",
            "HISTOGRAM [COMMAND ...]",
            "    Answer how many calls of these commands, or of all, took at most how many",
            "    microseconds, by powers of two.",
        ],
    )
}
