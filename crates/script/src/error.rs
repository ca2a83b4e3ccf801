//! The texts of the errors that scripts and their callers see, with their codes, as Redis 8.0.2 gives them.
//! Those of Lua's own functions and of the libraries stand where they are raised, because they have no code.

/// An error of the code that most have.
pub(crate) fn coded(text: impl AsRef<[u8]>) -> Vec<u8> {
    [b"ERR ", text.as_ref()].concat()
}

/// A script that does not compile.
pub(crate) fn not_compiled(text: &[u8]) -> Vec<u8> {
    [b"ERR Error compiling script (new function): ", text].concat()
}

pub(crate) const NO_HOST: &str = "ERR redis.call can only be used while a script runs";
pub(crate) const BAD_TYPES: &str = "ERR Lua redis lib command arguments must be strings or integers";
pub(crate) const NO_ARGUMENTS: &str = "ERR Please specify at least one argument for this redis lib call";
pub(crate) const ACL_COMMAND: &str = "ERR Invalid command passed to redis.acl_check_cmd()";
pub(crate) const ACL_ARITY: &str = "ERR Wrong number of args for redis.acl_check_cmd()";
pub(crate) const SHA_ARITY: &str = "ERR wrong number of arguments";
pub(crate) const LOG_ARITY: &str = "ERR redis.log() requires two arguments or more.";
pub(crate) const LOG_NUMBER: &str = "ERR First argument must be a number (log level).";
pub(crate) const LOG_LEVEL: &str = "ERR Invalid log level.";
pub(crate) const REPLY_ARGUMENTS: &str = "ERR wrong number or type of arguments";
pub(crate) const SETRESP_ARITY: &str = "ERR redis.setresp() requires one argument.";
pub(crate) const SETRESP_VERSION: &str = "ERR RESP version must be 2 or 3.";
pub(crate) const SET_REPL_ARITY: &str = "ERR redis.set_repl() requires one argument.";
pub(crate) const SET_REPL_FLAGS: &str =
    "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
pub(crate) const STACK_LIMIT: &str = "ERR reached lua stack limit";
pub(crate) const UNKNOWN: &str = "ERR unknown error";
