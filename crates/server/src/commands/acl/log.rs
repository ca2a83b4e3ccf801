//! ACL LOG: what users' rules refused lately, and logins that were refused (`state/acl/log.rs`).
use super::{ABOUT, too_many};
use crate::core::call::{ADMIN, ROW, ServerCall, ServerCommand, ServerRun};
use crate::state::acl::Reason;
use crate::state::acl::log::{Cause, Context, Entry};
use base::Millis;
use command::{Arg, Arity, Doc, Done, Error};
use resp::Reply;

pub(super) const LOG: ServerCommand = ServerCommand {
    name: "LOG",
    arity: Arity::AtLeast(2),
    flags: ADMIN,
    doc: Doc {
        summary: "Shows what was refused lately, or forgets it.",
        complexity: "O(N) where N is the number of entries answered.",
        args: &[Arg::one_of("operation", &[Arg::int("count"), Arg::word("reset", "RESET")]).optional()],
        history: &[("7.2.0", "The entry's id, and when it was made and updated.")],
        ..ABOUT
    },
    run: ServerRun::Shared(log),
    ..ROW
};

/// How many entries ACL LOG shows when it is given no count.
const COUNT: usize = 10;

fn log(call: &mut ServerCall<'_>) -> Done {
    let count = match call.args.len() {
        2 => COUNT,
        3 if call.args.at(2).eq_ignore_ascii_case(b"RESET") => {
            call.server.accounts.log.reset();
            call.reply.ok();
            return Ok(());
        }
        // A count below 0 asks for no entries.
        3 => base::text::parse_i64(call.args.at(2)).ok_or_else(Error::not_an_integer)?.max(0) as usize,
        _ => return Err(too_many(call)),
    };
    let now = Millis(call.server.clock.now_us() / 1000);
    let entries = call.server.accounts.log.entries();
    call.reply.array(entries.list.len().min(count));
    entries.list.iter().take(count).for_each(|entry| show(call.reply, entry, now));
    Ok(())
}

fn show(reply: &mut Reply, entry: &Entry, now: Millis) {
    reply.map(10);
    reply.bulk(b"count");
    reply.int(entry.count as i64);
    for (name, value) in [
        ("reason", cause(entry.what.cause)),
        ("context", context(entry.what.context)),
        ("object", &entry.what.object),
        ("username", &entry.what.username),
    ] {
        reply.bulk(name.as_bytes());
        reply.bulk(value);
    }
    reply.bulk(b"age-seconds");
    reply.double((now.0 - entry.updated.0) as f64 / 1000.0);
    reply.bulk(b"client-info");
    reply.bulk(&entry.what.client);
    reply.bulk(b"entry-id");
    reply.int(entry.id as i64);
    reply.bulk(b"timestamp-created");
    reply.int(entry.created.0);
    reply.bulk(b"timestamp-last-updated");
    reply.int(entry.updated.0);
}

fn cause(cause: Cause) -> &'static [u8] {
    match cause {
        Cause::Rules(Reason::Command) => b"command",
        Cause::Rules(Reason::Key) => b"key",
        Cause::Rules(Reason::Channel) => b"channel",
        Cause::Login => b"auth",
    }
}

fn context(context: Context) -> &'static [u8] {
    match context {
        Context::Toplevel => b"toplevel",
        Context::Multi => b"multi",
        Context::Lua => b"lua",
    }
}
