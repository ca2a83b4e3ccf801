//! DEBUG: what only tests, and people who look inside, need. `enable-debug-command` says who may use it.
//!
//! DEBUG runs with every worker's gate taken, because its SLEEP is there to stop the whole server and its
//! DIGEST sums up data that stands still.
mod clients;
mod crash;
mod digest;
mod disk;
mod populate;
mod protocol;
mod reload;
mod restless;
mod structure;

use crate::commands::help;
use crate::core::call::{ADMIN, ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use command::{Arity, Doc, Done, Error, Flags, Group};
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&DEBUG]);

const DEBUG: ServerCommand = ServerCommand {
    name: "DEBUG",
    arity: Arity::AtLeast(2),
    flags: ADMIN.or(Flags::LOOKS_INSIDE),
    doc: Doc {
        group: Group::Server,
        since: "1.0.0",
        summary: "Holds what tests of the server itself need.",
        complexity: "See each subcommand.",
        is_system: true,
        ..Doc::NEW
    },
    run: ServerRun::Exclusive(debug),
    ..ROW
};

/// One word after DEBUG. In the table of commands DEBUG is one command, as in Redis, so its words have a
/// table of their own.
struct Sub {
    name: &'static str,
    /// How many arguments, DEBUG and the word included.
    args: RangeInclusive<usize>,
    run: fn(&mut ServerCall<'_>) -> Done,
}

/// All words, in alphabetical order.
const SUBS: &[Sub] = &[
    Sub { name: "ASSERT", args: 2..=2, run: crash::assert },
    Sub { name: "CHANGE-REPL-ID", args: 2..=2, run: change_replication_id },
    Sub { name: "CLIENT-EVICTION", args: 2..=2, run: clients::eviction },
    Sub { name: "DICT-RESIZING", args: 3..=3, run: change_nothing },
    Sub { name: "DIGEST", args: 2..=2, run: digest::digest },
    Sub { name: "DIGEST-VALUE", args: 2..=usize::MAX, run: digest::digest_value },
    Sub { name: "DISK", args: 3..=3, run: disk::disk },
    Sub { name: "ERROR", args: 3..=3, run: error },
    Sub { name: "HELP", args: 2..=2, run: help },
    Sub { name: "HTSTATS", args: 3..=4, run: structure::table_stats },
    Sub { name: "HTSTATS-KEY", args: 3..=4, run: structure::table_stats_of_key },
    Sub { name: "LISTPACK", args: 3..=3, run: structure::listpack },
    Sub { name: "LOADAOF", args: 2..=2, run: reload::load_append_only },
    Sub { name: "LOG", args: 3..=3, run: log },
    Sub { name: "OBJECT", args: 3..=3, run: structure::object },
    Sub { name: "PANIC", args: 2..=3, run: crash::panic },
    Sub { name: "PAUSE-CRON", args: 3..=3, run: pause_cron },
    Sub { name: "POPULATE", args: 3..=5, run: populate::populate },
    Sub { name: "PROTOCOL", args: 3..=3, run: protocol::protocol },
    Sub { name: "QUICKLIST", args: 3..=4, run: structure::quicklist },
    Sub { name: "QUICKLIST-PACKED-THRESHOLD", args: 3..=3, run: packed_threshold },
    Sub { name: "RELOAD", args: 2..=usize::MAX, run: reload::reload },
    Sub { name: "RESTLESS", args: 2..=3, run: restless::restless },
    Sub { name: "SEGFAULT", args: 2..=2, run: crash::segfault },
    Sub { name: "SET-ACTIVE-EXPIRE", args: 3..=3, run: set_active_expire },
    Sub { name: "SLEEP", args: 3..=3, run: sleep },
    Sub { name: "STRINGMATCH-TEST", args: 2..=2, run: stringmatch_test },
];

/// Runs the word's function if this client may use DEBUG.
fn debug(call: &mut ServerCall<'_>) -> Done {
    let is_local = call.session.record.is_local();
    if !call.server.config().enable_debug_command.allows(is_local) {
        return Err(Error::not_enabled("DEBUG", "enable-debug-command"));
    }
    let word = call.args.at(1);
    let is_meant =
        |s: &&Sub| s.name.as_bytes().eq_ignore_ascii_case(word) && s.args.contains(&call.args.len());
    match SUBS.iter().find(is_meant) {
        Some(sub) => (sub.run)(call),
        None => Err(Error::unknown_subcommand(word, "DEBUG")),
    }
}

/// Stops every worker, as a server that hangs would.
fn sleep(call: &mut ServerCall<'_>) -> Done {
    let seconds = std::str::from_utf8(call.args.at(2)).ok().and_then(|s| s.parse::<f64>().ok());
    let time = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok()).unwrap_or_default();
    std::thread::sleep(time);
    call.reply.ok();
    Ok(())
}

/// Whether keys are removed when their time comes (1), or only when somebody looks at them (0).
fn set_active_expire(call: &mut ServerCall<'_>) -> Done {
    let is_on = base::text::parse_i64(call.args.at(2)).unwrap_or(0) != 0;
    call.server.expires.store(is_on, Relaxed);
    // Workers that sleep until they are asked have to plan for the next key again.
    call.server.mailboxes.iter().for_each(crate::core::mailbox::Mailbox::wake);
    call.reply.ok();
    Ok(())
}

/// Answers with any error, for tests of clients.
fn error(call: &mut ServerCall<'_>) -> Done {
    Err(error::asked_for(call.args.at(2)))
}

fn log(call: &mut ServerCall<'_>) -> Done {
    call.server.log.warning(&format!("DEBUG LOG: {}", String::from_utf8_lossy(call.args.at(2))));
    call.reply.ok();
    Ok(())
}

fn change_replication_id(call: &mut ServerCall<'_>) -> Done {
    call.server.log.notice("Changing replication IDs after receiving DEBUG change-repl-id");
    call.server.replication_id.change();
    call.reply.ok();
    Ok(())
}

/// DICT-RESIZING: there are no hash tables to resize, so there is nothing to allow or forbid.
fn change_nothing(call: &mut ServerCall<'_>) -> Done {
    call.reply.ok();
    Ok(())
}

/// Stops what the workers do ten times a second (1), or lets it go on (0).
fn pause_cron(call: &mut ServerCall<'_>) -> Done {
    let is_paused = base::text::parse_i64(call.args.at(2)).unwrap_or(0) != 0;
    call.server.is_cron_paused.store(is_paused, Relaxed);
    call.reply.ok();
    Ok(())
}

/// QUICKLIST-PACKED-THRESHOLD: Redis puts longer elements into nodes of their own, which no command shows.
/// Here any leaf takes them, so there is nothing to set.
fn packed_threshold(call: &mut ServerCall<'_>) -> Done {
    const BYTES_MAX: u64 = 4 << 30;
    match base::size::parse_bytes(call.args.at(2)).filter(|bytes| *bytes <= BYTES_MAX) {
        Some(_) => call.reply.ok(),
        None => {
            return Err(error::not_a_memory_value());
        }
    }
    Ok(())
}

/// Compares random texts with random patterns: whatever they are, a comparison ends.
fn stringmatch_test(call: &mut ServerCall<'_>) -> Done {
    const ROUNDS: u32 = 100_000;
    const ALPHABET: &[u8] = b"ab*?[]^-\\\0";
    let mut random = base::random::Random::new(call.server.random_seed);
    let mut text = || -> Vec<u8> {
        let len = random.below(32);
        (0..len).map(|_| ALPHABET[random.below(ALPHABET.len() as u64) as usize]).collect()
    };
    for _ in 0..ROUNDS {
        let (pattern, text) = (text(), text());
        std::hint::black_box(base::glob::matches(&pattern, &text));
    }
    call.reply.simple("Sardine did not crash: test passed");
    Ok(())
}

fn help(call: &mut ServerCall<'_>) -> Done {
    help::reply(call, HELP)
}

const HELP: &[&str] = &[
    "ASSERT",
    "    Stop the server by an assertion that fails.",
    "CHANGE-REPL-ID",
    "    Give the server a new replication id.",
    "CLIENT-EVICTION",
    "    Show how many clients take how much, where maxmemory-clients is set.",
    "DICT-RESIZING <0|1>",
    "    Accepted: there are no hash tables to resize.",
    "DIGEST",
    "    Answer a digest of all data, the one that Redis would answer.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    Answer a digest of each value.",
    "DISK <OK|FULL|BROKEN|FORGETFUL|STUCK|SLOW>",
    "    How the disk behaves: it takes no more; it takes nothing; it cannot sync;",
    "    what is appended waits until this changes; it is taken, but not synced until then.",
    "ERROR <string>",
    "    Answer with <string> as an error.",
    "HTSTATS <dbid> [full]",
    "    Show how many leaves and bytes hold the keys of a database.",
    "HTSTATS-KEY <key> [full]",
    "    Answer that no value is kept in a hash table.",
    "LISTPACK <key>",
    "    Write to the log how the value is stored, if its encoding is listpack.",
    "LOADAOF",
    "    Load the data again from the append-only file.",
    "LOG <message>",
    "    Write <message> to the log.",
    "OBJECT <key>",
    "    Show how the value at <key> is stored.",
    "PANIC [ALLOCATOR]",
    "    Stop the server as a fault of its own would, or one under a lock of the allocator.",
    "PAUSE-CRON <0|1>",
    "    Stop what the server does by itself ten times a second.",
    "POPULATE <count> [<prefix>] [<size>]",
    "    Make <count> keys <prefix>:<number>, with strings of <size> bytes.",
    "PROTOCOL <type>",
    "    Answer with a value of this type: string, integer, double, bignum, null,",
    "    array, set, map, attrib, push, verbatim, true or false.",
    "QUICKLIST <key> [<0|1>]",
    "    Write to the log how the value is stored, if its encoding is quicklist.",
    "QUICKLIST-PACKED-THRESHOLD <size>",
    "    Accepted: elements of any size are stored alike.",
    "RELOAD [MERGE] [NOFLUSH] [NOSAVE]",
    "    Write the data to the dump file and load it again. MERGE: keys that are",
    "    there are replaced. NOFLUSH: what is there stays. NOSAVE: load the file",
    "    that is there.",
    "RESTLESS [<seed>|OFF]",
    "    Do all the time, at random, what the server does rarely by itself. Without",
    "    an argument: show what has been done.",
    "SEGFAULT",
    "    Stop the server by the signal of a fault in memory.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Whether keys past their time go by themselves (1) or when looked at (0).",
    "SLEEP <seconds>",
    "    Stop the whole server for so long; decimals are allowed.",
    "STRINGMATCH-TEST",
    "    Compare random texts with random patterns.",
];
