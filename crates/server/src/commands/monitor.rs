//! MONITOR: from here on its client is shown every command that any client runs (`core/monitors.rs`).
use crate::core::call::{ADMIN, ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use crate::core::modes::Modes;
use command::{Arity, Doc, Done, Group};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&MONITOR]);

const MONITOR: ServerCommand = ServerCommand {
    name: "MONITOR",
    arity: Arity::Exactly(1),
    flags: ADMIN,
    doc: Doc {
        group: Group::Server,
        since: "1.0.0",
        summary: "Shows every command that the server runs from now on.",
        ..Doc::NEW
    },
    run: ServerRun::Anywhere(monitor),
    ..ROW
};

/// A client that is shown the commands already gets no answer, as in Redis.
fn monitor(call: &mut ServerCall<'_>) -> Done {
    if call.session.modes.has(Modes::EXECUTING) {
        return Err(error::monitor_denied());
    }
    if call.server.monitors.add(&call.session.record) {
        call.reply.ok();
    }
    Ok(())
}
