//! Job queues that people run, whose processes and server are killed: BullMQ, Celery and asynq as their
//! registries have them, and a book in which nothing may be lost or doubled.
//!
//! The programs are in `tests/queues`; `cargo xtask setup` installs what they need into
//! `target/clients/queues`. Each plays three roles, as processes of their own: `add` adds jobs, several times
//! `work` does them, `watch` asks the queue itself. They speak in lines. Written by them:
//!
//! ```text
//! added UNIT ID...     add: these jobs are in the queue, as the library says (a flow is one unit)
//! again ID             this job may be there twice, for the adder before had not heard of it, or was handed
//! out
//!                      again, as the queue itself says
//! paused               add: nothing more is on its way
//! all                  add: there are no more
//! taken ID             work: the job was handed out, where that can be told before it begins
//! begin ID [hold]      work: it begins; with `hold` it never ends: kill me
//! fail ID              work: it fails now, as planned
//! done ID              work: its effect is there
//! kept ID              work: the library says that the queue has noted its end, or its failure
//! status DONE LEFT FAILED [WORD...]   watch: how many jobs are where
//! job ID COMPLETIONS REPEATS          watch: how often the queue has completed it, and says that it handed
//! it
//!                                     out again because its worker was silent
//! accounted            watch: these were all jobs
//! wrong TEXT           any: what must not be
//! note TEXT            any: something to show where the run fails
//! ```
//!
//! Read by them: `pause`, `go` and `resend ID...` (add), `status`, `account` and `revive ID...` (watch). The
//! last one spares the waiting until the leases of somebody killed have passed, where a library has no
//! setting for that, and is answered by `revived`; `*` means all that are leased. A process ends when its
//! input does, so none outlives the harness.
//!
//! Every id begins with the number of its unit, which follows from the seed; an adder that was killed begins
//! again with the first unit that was not acknowledged. Where the library can refuse an id that is there
//! already, it does; else the one job in doubt may be there twice.
//!
//! Servers listen on a loopback address of the harness's own, on a port below those that the system gives to
//! clients. So a server that is killed comes back to its port: nobody can have taken it meanwhile.

mod book;
mod cpu;
mod drive;
mod process;
mod program;
mod replay;
mod server;

pub use cpu::{Measured, measure};
pub use drive::run;
pub use program::{Program, installed};
pub use replay::{Scripts, replay};
pub use server::Server;

use std::fmt;
use std::time::{Duration, Instant};

/// What a run is.
#[derive(Clone, Debug)]
pub struct Options {
    pub program: Program,
    /// The server's name in figures.
    pub name: String,
    /// The server's program and its arguments, without address and folder.
    pub server: Vec<String>,
    pub jobs: u64,
    pub seed: u64,
    pub workers: usize,
    /// Workers that are killed with a job in their hands, about; half as many processes are killed anywhere.
    pub kills: u64,
    /// The server writes an append-only file and is killed so many times.
    pub crashes: u64,
    pub caution: Caution,
    /// What the killed have leased is let go at once, instead of when its time has passed: a minute and more
    /// where a library has no setting for it.
    pub is_hasty: bool,
}

/// What is done before the server is killed, so that what was acknowledged must be there afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caution {
    /// Nothing was added for so long: `appendfsync everysec` promises that it may lose no more.
    Wait(Duration),
    /// The server was asked (WAITAOF) whether everything is on the disk.
    Ask,
}

/// What came of a run in which nothing was lost or doubled.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub jobs: u64,
    pub worker_kills: u64,
    pub adder_kills: u64,
    pub server_kills: u64,
    /// Jobs that were in the hands of a process when it was killed.
    pub in_hand: u64,
    /// Effects beyond one a job, of jobs whose worker or server was killed.
    pub explained: u64,
    /// Effects beyond one a job, because a living worker was silent for longer than the queue allows.
    pub silent: u64,
    /// Jobs that the queue itself has dropped, and that were sent again.
    pub dropped: u64,
    pub seconds: f64,
    /// Of the server, all its lives together.
    pub cpu_us_per_job: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { jobs, worker_kills, adder_kills, server_kills, in_hand, .. } = self;
        write!(
            f,
            "{jobs} jobs, each completed once; killed: {worker_kills} workers, {adder_kills} adders, "
        )?;
        write!(
            f,
            "the server {server_kills} times; {in_hand} jobs in their hands, {} effects ",
            self.explained
        )?;
        write!(f, "repeated for that, {} for a silent worker; ", self.silent)?;
        if self.dropped > 0 {
            write!(f, "{} sent again, which the queue itself had dropped; ", self.dropped)?;
        }
        write!(f, "{:.1} s, server CPU {:.0} us a job", self.seconds, self.cpu_us_per_job)
    }
}

#[allow(clippy::disallowed_methods, reason = "processes are waited for, and their time is a figure")]
fn now() -> Instant {
    Instant::now()
}
