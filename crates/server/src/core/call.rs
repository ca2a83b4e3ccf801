//! What a server command is given.
use crate::core::server::Server;
use crate::core::session::Session;
use base::Millis;
use command::{Acl, Arity, Doc, Done, Flags};
use resp::{Args, Reply};

pub(crate) struct ServerCall<'c> {
    pub(crate) server: &'c Server,
    pub(crate) session: &'c mut Session,
    pub(crate) args: Args<'c>,
    pub(crate) reply: &'c mut Reply,
    pub(crate) now: Millis,
    /// What measures how long something takes (`clock.rs`).
    pub(crate) steady: Millis,
    /// What had arrived on the connection when its turn began, this request included.
    pub(crate) request_bytes: usize,
}

/// How a server command runs.
#[derive(Clone, Copy)]
pub(crate) enum ServerRun {
    /// While other workers go on.
    Shared(fn(&mut ServerCall<'_>) -> Done),
    /// The same, outside the worker's gate: it may wait for a disk or a name server, and touches no data.
    Outside(fn(&mut ServerCall<'_>) -> Done),
    /// With every worker's lock taken.
    Exclusive(fn(&mut ServerCall<'_>) -> Done),
    Container,
}

pub(crate) type ServerCommand = command::Command<ServerRun>;

/// What a row of a server family leaves out: build one with `..ROW`.
pub(crate) const ROW: ServerCommand = ServerCommand {
    name: "",
    arity: Arity::AtLeast(1),
    flags: Flags::NONE,
    acl: Acl::NONE,
    keys: &[],
    doc: Doc::NEW,
    subcommands: &[],
    run: ServerRun::Container,
};

/// The flags of commands that administer the server.
pub(crate) const ADMIN: Flags = Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::LOADING).or(Flags::STALE);
/// The tips of commands that a cluster client sends to every node.
pub(crate) const ON_ALL_NODES: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];
