//! SAVE, BGSAVE, LASTSAVE and BGREWRITEAOF. `core/persistence` writes the files.
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use crate::core::persistence::{Refused, Then, append, save_in_background};
use crate::state::config::reason;
use command::{Acl, Arg, Arity, Doc, Done, Error, Flags, Group};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&BGREWRITEAOF, &BGSAVE, &LASTSAVE, &SAVE]);

const ABOUT: Doc = Doc { group: Group::Server, since: "1.0.0", ..Doc::NEW };
const FLAGS: Flags = Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::NO_ASYNC_LOADING);

const BGREWRITEAOF: ServerCommand = ServerCommand {
    name: "BGREWRITEAOF",
    arity: Arity::Exactly(1),
    flags: FLAGS,
    doc: Doc {
        summary: "Has the append-only file begin anew, from the data as it is now.",
        complexity: "O(1)",
        ..ABOUT
    },
    run: ServerRun::Anywhere(bgrewriteaof),
    ..ROW
};

const BGSAVE: ServerCommand = ServerCommand {
    name: "BGSAVE",
    arity: Arity::AtLeast(1),
    flags: FLAGS,
    doc: Doc {
        summary: "Begins to write the data, as it is now, to the dump file.",
        complexity: "O(1)",
        args: &[Arg::word("schedule", "SCHEDULE").since("3.2.2").optional()],
        history: &[("3.2.2", "Takes `SCHEDULE`.")],
        ..ABOUT
    },
    run: ServerRun::Exclusive(bgsave),
    ..ROW
};

const SAVE: ServerCommand = ServerCommand {
    name: "SAVE",
    arity: Arity::Exactly(1),
    flags: FLAGS.or(Flags::NO_MULTI),
    doc: Doc {
        summary: "Writes the data, as it is now, to the dump file, and answers when that is done.",
        complexity: "O(N) where N is the number of keys in all databases",
        ..ABOUT
    },
    run: ServerRun::Exclusive(save),
    ..ROW
};

const LASTSAVE: ServerCommand = ServerCommand {
    name: "LASTSAVE",
    arity: Arity::Exactly(1),
    flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST),
    acl: Acl::ADMIN.or(Acl::DANGEROUS),
    doc: Doc {
        summary: "Answers when the data was last written to the dump file, in seconds of the Unix time.",
        complexity: "O(1)",
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: ServerRun::Anywhere(lastsave),
    ..ROW
};

/// A snapshot can always begin at once, so SCHEDULE makes no difference: nothing else keeps it waiting but
/// another snapshot, and that is an error in Redis too.
fn bgsave(call: &mut ServerCall<'_>) -> Done {
    match call.args.get(1) {
        None => {}
        Some(word) if call.args.len() == 2 && word.eq_ignore_ascii_case(b"schedule") => {}
        Some(_) => return Err(Error::syntax()),
    }
    match save_in_background(call.server, call.now, Then::Nothing) {
        Ok(()) => {
            call.server.log.notice("Background saving started");
            call.reply.simple("Background saving started");
            Ok(())
        }
        Err(refused) => Err(text_of(refused)),
    }
}

/// A thread does it. Unlike in Redis it need not wait for a snapshot that is being written.
fn bgrewriteaof(call: &mut ServerCall<'_>) -> Done {
    let append = &call.server.append;
    if append.is_rewriting() {
        return Err(error::rewrite_in_progress());
    }
    if let Err(error) = append::can_begin(&call.server.config()).and_then(|()| append::start(call.server)) {
        call.server.log.warning(&format!("Can't rewrite the append-only file: {}", reason(&error)));
        append.rewrites.has_failed.store(true, Relaxed);
        return Err(error::rewrite_impossible());
    }
    if !append.order_rewrite() {
        return Err(error::rewrite_in_progress());
    }
    call.server.log.notice("Background append only file rewriting started");
    call.reply.simple("Background append only file rewriting started");
    Ok(())
}

/// Answers when the file is written. Redis serves nobody meanwhile; here only this client waits.
fn save(call: &mut ServerCall<'_>) -> Done {
    call.wait_for_answer();
    let client = Arc::clone(&call.session.record);
    save_in_background(call.server, call.now, Then::Answer(client)).map_err(|refused| {
        call.wait_no_longer();
        text_of(refused)
    })
}

fn text_of(refused: Refused) -> Error {
    match refused {
        Refused::Busy => error::save_in_progress(),
        Refused::NoThread => error::unspecified(),
    }
}

fn lastsave(call: &mut ServerCall<'_>) -> Done {
    call.reply.int(call.server.persistence.saves.last_s.load(Relaxed));
    Ok(())
}
