//! What a running script may ask of the server, and how the functions of the interpreter reach it.
//!
//! The functions that Lua sees are made once and live as long as their interpreter, so they cannot hold a
//! borrow of the server. The host of the running script lies in a scoped thread-local instead
//! (`scoped-tls-hkt`): it is there exactly as long as [`lend`] runs, and two servers in a process, or two
//! interpreters on a thread, do not see each other's.
use resp::{Args, Reply};
use scoped_tls_hkt::scoped_thread_local;

/// The levels of `redis.log`, in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    Debug,
    Verbose,
    Notice,
    Warning,
}

/// The end of a script that it cannot catch: the text is the error that its caller is told, code included
/// ("ERR Script killed by user with SCRIPT KILL.").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop(pub Vec<u8>);

/// What `redis.acl_check_cmd` found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AclCheck {
    Allowed,
    Denied,
    UnknownCommand,
    WrongArity,
}

/// The server, as a running script sees it. Commands that the host refuses answer with an error reply, as
/// they do to clients.
pub trait Host {
    /// Runs a command and writes its reply, in the protocol that the reply names. `Err` ends the script.
    fn command(&mut self, args: Args<'_>, reply: &mut Reply) -> Result<(), Stop>;

    /// Whether messages of this level go to the log. One that does not is never put together.
    fn wants_log(&self, _level: LogLevel) -> bool {
        true
    }

    /// `redis.log`: the message as the script built it, not yet cut.
    fn log(&mut self, level: LogLevel, message: &[u8]);

    /// `redis.acl_check_cmd`.
    fn acl_check(&mut self, args: Args<'_>) -> AclCheck;

    /// Asked every few thousand instructions, and as often by long loops of the libraries. `Err` ends the
    /// script.
    fn interrupt(&mut self) -> Result<(), Stop>;

    /// An error stands in what the script returns. Those of commands are in the server's statistics already
    /// (`is_counted`). The text has its code.
    fn returned_error(&mut self, _text: &[u8], _is_counted: bool) {}

    /// `redis.set_repl`: which of the file (1) and the replicas (2) are told of later writes. Where nobody is
    /// told of any there is nothing to be done.
    fn set_replication(&mut self, _targets: u8) {}
}

scoped_thread_local!(static mut HOST: for<'a> &'a mut dyn Host);

/// Runs `f` with `host` in reach of the functions that Lua calls meanwhile.
pub(crate) fn lend<R>(host: &mut dyn Host, f: impl FnOnce() -> R) -> R {
    HOST.set(host, f)
}

/// The host of the script that runs on this thread; None where there is none, as while a script is compiled.
pub(crate) fn with<R>(f: impl FnOnce(&mut dyn Host) -> R) -> Option<R> {
    if HOST.is_set() { Some(HOST.with(f)) } else { None }
}
