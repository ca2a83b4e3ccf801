//! TIME: the server's wall clock, for clients that compare theirs with it.
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use command::{Arity, Doc, Done, Flags, Group};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&TIME]);

const TIME: ServerCommand = ServerCommand {
    name: "TIME",
    arity: Arity::Exactly(1),
    flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST),
    doc: Doc {
        group: Group::Server,
        since: "2.6.0",
        summary: "Answers the time: seconds since 1970, and the microseconds of the present one.",
        complexity: "O(1)",
        tips: &["nondeterministic_output"],
        ..Doc::NEW
    },
    run: ServerRun::Anywhere(time),
    ..ROW
};

/// Answers seconds and microseconds. It reads the clock itself: the time of a batch is in milliseconds. For a
/// script time stands still, until it has run so long that others are answered with BUSY: one that waits for
/// a time to come ends.
fn time(call: &mut ServerCall<'_>) -> Done {
    let now_us = match call.stopped_us.filter(|_| !call.server.gates.is_ajar()) {
        None => call.server.clock.now_us(),
        Some(stopped) => {
            let now_us = stopped.get().unwrap_or_else(|| call.server.clock.now_us());
            stopped.set(Some(now_us));
            now_us
        }
    };
    call.reply.array(2);
    call.reply.bulk_int(now_us.div_euclid(1_000_000));
    call.reply.bulk_int(now_us.rem_euclid(1_000_000));
    Ok(())
}
