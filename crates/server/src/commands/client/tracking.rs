//! CLIENT GETREDIR and TRACKINGINFO: what Redis answers to a connection that does not use client-side
//! caching, which Sardine does not have yet.
use super::{ABOUT, SUB};
use crate::core::call::{ServerCall, ServerCommand, ServerRun};
use command::{Doc, Done};

pub(super) const GETREDIR: ServerCommand = ServerCommand {
    name: "GETREDIR",
    doc: Doc {
        since: "6.0.0",
        summary: "Shows which connection is told of this one's tracked keys.",
        ..ABOUT
    },
    run: ServerRun::Anywhere(redirection),
    ..SUB
};

pub(super) const TRACKINGINFO: ServerCommand = ServerCommand {
    name: "TRACKINGINFO",
    doc: Doc { since: "6.2.0", summary: "Shows how this connection tracks keys.", ..ABOUT },
    run: ServerRun::Anywhere(info),
    ..SUB
};

/// The answer of a connection that does not track.
const NOBODY: i64 = -1;

fn redirection(call: &mut ServerCall<'_>) -> Done {
    call.reply.int(NOBODY);
    Ok(())
}

fn info(call: &mut ServerCall<'_>) -> Done {
    let reply = &mut *call.reply;
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(1);
    reply.bulk(b"off");
    reply.bulk(b"redirect");
    reply.int(NOBODY);
    reply.bulk(b"prefixes");
    reply.array(0);
    Ok(())
}
