//! What the server keeps beside its data, apart from the commands that show and change it. Nothing here knows
//! a command, a session or a worker.
//!
//! * Settings and where they come from: `config`. Users, and what each may do: `acl`.
//! * Time: `clock`, and `expiry_watch`, which says which worker wakes for the next key that expires.
//! * Figures: the `counters` of each worker, the `histogram` of how long commands took, `latency` for what
//!   took too long.
//! * What workers agree on: `gate` (who may run now), `pause` (CLIENT PAUSE), `listening` (the sockets),
//!   `tls` (keys and certificates).
//! * Memory: `memory_pressure` (for how long it was over `maxmemory`, and how much workers are freeing),
//!   `defrag`, and what the `background` thread is asked for.
//! * The process: the `log` with its way to `syslog`, what the operating `system` says of it and allows it,
//!   the `reason` of an error, the `start_error` that keeps it from starting.
//! * Who listens to which channel: `pubsub`; who watches which key: `watched`.
//! * The `journal`: what writes have come to, and who reads it; and its `tail`, for the case that the process
//!   is killed.
//! * The texts of `scripts`, and the script that runs for long.
//! * What workers lend to other threads: `lending`. Keys on their way to another server: `moving`.
//! * The `disk`: whatever changes a file of the data, so that tests can have it fail.
//! * The `replication` id, and the `restless` mode of tests.
/// The version of Redis whose behaviour clients can count on: they choose what to send by it.
pub const REDIS_VERSION: &str = "8.0.2";

pub(crate) mod acl;
pub(crate) mod append_only;
pub(crate) mod background;
pub(crate) mod clock;
pub(crate) mod config;
pub(crate) mod counters;
pub(crate) mod defrag;
pub(crate) mod disk;
pub(crate) mod expiry_watch;
pub(crate) mod fruitless;
pub(crate) mod gate;
pub(crate) mod histogram;
pub(crate) mod journal;
pub(crate) mod latency;
pub(crate) mod lending;
pub(crate) mod listening;
pub(crate) mod lock;
pub(crate) mod log;
pub(crate) mod memory_pressure;
pub(crate) mod moving;
pub(crate) mod pause;
pub(crate) mod persistence;
pub(crate) mod pubsub;
pub(crate) mod replication;
pub(crate) mod restless;
pub(crate) mod scripts;
pub(crate) mod start_error;
mod syslog;
pub(crate) mod system;
pub(crate) mod tail;
pub(crate) mod tls;
pub(crate) mod watched;
