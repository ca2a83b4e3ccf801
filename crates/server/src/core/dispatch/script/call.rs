//! A call of a script: of EVAL, EVALSHA or FCALL, and of their kin that only read.
use crate::core::call::Access;
use crate::core::error;
use crate::core::registry::Row;
use crate::core::tries::Tries;
use crate::state::scripts::Kind;
use command::Error;
use resp::Args;
use script::{Compiled, Flags, Machine, Registered};

/// Where the keys of EVAL begin, behind their number.
pub(super) const FIRST_KEY: usize = 3;

/// See the file's opener.
pub(super) struct ScriptCall<'c, 's> {
    /// What is run, where, and how that has gone before.
    pub(super) code: Code<'c>,
    pub(super) machine: &'c Machine,
    pub(super) tries: &'c Tries,
    /// The request, and how many of its arguments are keys.
    pub(super) row: &'s Row,
    pub(super) access: Access,
    pub(super) args: Args<'c>,
    pub(super) keys: usize,
}

#[derive(Clone, Copy)]
pub(super) enum Code<'c> {
    Script(&'c Compiled),
    Function(&'c Registered),
}

impl Code<'_> {
    pub(super) fn flags(self) -> Flags {
        match self {
            Code::Script(script) => script.flags(),
            Code::Function(function) => function.flags(),
        }
    }

    /// What it is, and its name if it has one.
    pub(super) fn name(self) -> (Kind, Vec<u8>) {
        match self {
            Code::Script(_) => (Kind::Script, Vec::new()),
            Code::Function(function) => (Kind::Function, function.name().into()),
        }
    }
}

/// How many keys EVAL names.
pub(super) fn count_keys(args: &Args<'_>) -> Result<usize, Error> {
    let count = base::text::parse_i64(args.at(2)).ok_or_else(Error::not_an_integer)?;
    let count = usize::try_from(count).map_err(|_| error::negative_keys())?;
    if count > args.len() - FIRST_KEY {
        return Err(error::too_many_keys());
    }
    Ok(count)
}
