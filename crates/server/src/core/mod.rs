//! What runs a request: who sent it, which command it is, whether it may run, and under which locks.
//!
//! A `session` is a connection's state, `server` what all workers have together. `dispatch` finds the row of
//! a command in the `registry`, asks `refusal`, `permission`, `too_long` and `memory_limit` whether it may
//! run, and hands it a `call`; `error` has the texts of what goes wrong. `modes` says what is checked of a
//! session's requests before they run; `transaction` and `queue` keep those that wait for EXEC, and
//! `dispatch::exec` runs them. `blocking` is for commands whose reply comes later, `cross_protocol` for
//! browsers that a web page makes send HTTP here, `redact` for arguments that nobody else may read.
//! `command_log` keeps the calls that were slow or large, `monitors` says who watches all of them.
//!
//! What happens to keys comes to `key_events`, which tells `notify` (keyspace notifications), `waiters`
//! (clients that wait for keys) and `tracking` (clients that keep copies). `mailbox` carries messages from
//! worker to worker. Of clients, `subscriptions` knows what one listens to, `client_line` is the line of
//! CLIENT LIST, `client_memory` counts what they take, `output_bound` says how much may wait for one unsent.
//! `lent` has requests that take long run on other threads, `written_elsewhere` is what these write.
//! `functions` has the interpreter in which the libraries of functions live. `persistence` writes snapshots
//! of the data and loads them. `crash_report` says what all of this was doing when the server failed.
pub(crate) mod address;
pub(crate) mod blocking;
pub(crate) mod call;
pub(crate) mod client_line;
pub(crate) mod client_memory;
pub(crate) mod command_log;
pub(crate) mod crash_report;
mod cross_protocol;
pub(crate) mod dispatch;
pub(crate) mod error;
pub(crate) mod functions;
pub(crate) mod journal;
pub(crate) mod key_events;
pub(crate) mod lent;
pub(crate) mod mailbox;
pub(crate) mod memory_limit;
pub(crate) mod migrate;
pub(crate) mod modes;
pub(crate) mod monitors;
pub(crate) mod notify;
pub(crate) mod output_bound;
pub(crate) mod parted;
pub(crate) mod permission;
pub(crate) mod persistence;
pub(crate) mod queue;
pub(crate) mod queue_elsewhere;
pub(crate) mod recorder;
pub(crate) mod redact;
pub(crate) mod refusal;
pub(crate) mod registry;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod subscriptions;
mod too_long;
pub(crate) mod tracking;
mod transaction;
mod tries;
pub(crate) mod waiters;
pub(crate) mod written_elsewhere;
