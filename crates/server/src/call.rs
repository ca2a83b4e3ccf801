//! What a server command is given.
use crate::session::Session;
use crate::shared::Shared;
use base::Millis;
use command::Done;
use resp::{Args, Reply};

pub(crate) struct ServerCall<'c> {
    pub(crate) shared: &'c Shared,
    pub(crate) session: &'c mut Session,
    pub(crate) args: Args<'c>,
    pub(crate) reply: &'c mut Reply,
    pub(crate) now: Millis,
}

/// How a server command runs.
#[derive(Clone, Copy)]
pub(crate) enum ServerRun {
    /// While other workers go on.
    Shared(fn(&mut ServerCall<'_>) -> Done),
    /// With every worker's lock taken.
    Exclusive(fn(&mut ServerCall<'_>) -> Done),
    Container,
}

pub(crate) type ServerCommand = command::Command<ServerRun>;
