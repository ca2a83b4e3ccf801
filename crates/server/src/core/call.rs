//! What a command on the server is given (`ServerCall`), how it may run beside others (`ServerRun`), and the
//! row that describes it (`ServerCommand`). Commands on data see less than this: the keys that are locked for
//! them, through `command::Call`.
use crate::core::server::Server;
use crate::core::session::Session;
use crate::state::pubsub::Publication;
use base::Millis;
use command::{Acl, Arity, Doc, Done, Flags, Parts};
use resp::{Args, Reply};
use std::cell::Cell;
use std::sync::Arc;

/// One request, with everything that its command may look at or change.
pub(crate) struct ServerCall<'c> {
    pub(crate) server: &'c Server,
    pub(crate) session: &'c mut Session,
    /// The request's words, the command's name first.
    pub(crate) args: Args<'c>,
    /// A command appends its answer here, or returns an error and appends nothing.
    pub(crate) reply: &'c mut Reply,
    /// The wall clock when this batch of requests began: what deadlines are compared with.
    pub(crate) now: Millis,
    /// The steady clock at the same moment, to measure how long something takes (`state/clock.rs`).
    pub(crate) steady: Millis,
    /// The batch has come in beside a script that ran for long. So the request has not got the gates that its
    /// row asks for, also where the script has ended since, and must leave the data alone.
    pub(crate) is_shut_out: bool,
    /// What had arrived on the connection when its turn began, this request included.
    pub(crate) request_bytes: usize,
    /// Within a script, where the time stands still: the wall clock in microseconds, once it was read.
    pub(crate) stopped_us: Option<&'c Cell<Option<i64>>>,
    /// Has a worker get a message for its clients: now, or when the script has ended that publishes it.
    pub(crate) post: &'c dyn Fn(usize, &Arc<Publication>),
    /// Has another thread do something; None where nothing can be done elsewhere. What the request comes to
    /// is what that comes to.
    pub(crate) leave: Option<&'c mut Leave<'c>>,
}

/// Has another thread do something.
pub(crate) type Leave<'l> = dyn FnMut(&mut Session, Apart, MayWait) -> std::io::Result<()> + 'l;

/// Whether what is done on another thread may wait for others: then it has a thread of its own, which may be
/// refused. Else it only takes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayWait {
    No,
    Yes,
}

/// What is done on another thread, with the session and the reply of the request.
pub(crate) type Apart = Box<dyn FnOnce(&mut Session, &mut Reply) -> Done + Send>;

/// How a server command runs beside the commands on other workers. Pick the first that is right: the further
/// down, the more it costs the others.
#[derive(Clone, Copy)]
pub(crate) enum ServerRun {
    /// While other workers go on, and also where shards are locked: it touches no data and takes no gate. It
    /// may take locks that are held for moments. EXEC runs such commands under the locks of its keys; for any
    /// other it takes all gates.
    Anywhere(fn(&mut ServerCall<'_>) -> Done),
    /// While other workers go on. It may take locks that are held for moments.
    Shared(fn(&mut ServerCall<'_>) -> Done),
    /// While other workers go on, without the worker's own gate: it may wait for a disk or a name server, and
    /// it touches no data.
    Outside(fn(&mut ServerCall<'_>) -> Done),
    /// With the gates of all workers taken: nothing else runs meanwhile.
    Exclusive(fn(&mut ServerCall<'_>) -> Done),
    /// MULTI: dispatch begins a queue.
    Begin,
    /// EXEC: dispatch runs what the session has queued, under the locks that this needs.
    Queue,
    /// It runs or compiles a script: on the thread of scripts, with all gates taken.
    Script(Scripting),
    /// It runs a function, or changes libraries of functions: likewise.
    Function(Functions),
    /// It only holds subcommands; without one it has too few arguments.
    Container,
}

/// What a command has done with scripts (`core/dispatch/script`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scripting {
    Eval(Access),
    EvalSha(Access),
    /// SCRIPT LOAD
    Load,
}

/// What a command has done with functions (`core/functions`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Functions {
    /// FCALL
    Call(Access),
    Change(Change),
}

/// The commands that change libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Load,
    Delete,
    Flush,
    Restore,
}

/// What a caller allows a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Any,
    ReadOnly,
}

/// A row of a table in `commands`, beside the function that it names.
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
    parts: Parts::Never,
    at_once: None,
    run: ServerRun::Container,
};

/// The flags of commands that administer the server.
pub(crate) const ADMIN: Flags = Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::LOADING).or(Flags::STALE);
/// The tips of commands that a cluster client sends to every primary.
pub(crate) const ON_ALL_SHARDS: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];
/// The tips of commands that a cluster client sends to every node.
pub(crate) const ON_ALL_NODES: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];
