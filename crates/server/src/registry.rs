//! All commands by name: one row each, whoever runs it, built once from the tables.
use crate::call::ServerRun;
use command::{Acl, Arity, DataRun, Doc, Flags, KeySpec};

#[derive(Clone, Copy)]
pub(crate) enum Run {
    Data(DataRun),
    Server(ServerRun),
}

pub(crate) struct Row {
    /// Lower case; subcommands as `client|list`.
    pub(crate) full_name: String,
    pub(crate) name: &'static str,
    pub(crate) arity: Arity,
    pub(crate) flags: Flags,
    pub(crate) acl: Acl,
    pub(crate) keys: &'static [KeySpec],
    pub(crate) doc: &'static Doc,
    pub(crate) run: Run,
    pub(crate) subcommands: Vec<Row>,
    /// Dense, for statistics.
    pub(crate) number: usize,
}

pub(crate) struct Registry {
    pub(crate) rows: Vec<Row>,
}

impl Registry {
    /// The row of a command's name in any case; a container's row where it has subcommands.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Row> {
        self.rows.iter().find(|r| r.name.as_bytes().eq_ignore_ascii_case(name))
    }
}
