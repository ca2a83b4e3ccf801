//! A server that is killed with SIGKILL, again and again, at any moment: while clients write in pipelines,
//! while its files begin anew and snapshots are written, while it starts. After each start it is compared
//! with what was acknowledged.
//!
//! Each client asks for units: commands of every type, transactions, scripts (`unit`). After a kill a twin
//! that nobody kills runs the same units until it has what the killed server has (`twin`). So it is found out
//! up to which unit of each client the disk was, that nothing before it is missing, and that no unit is there
//! in part. That place must not lie before the last unit
//!
//! * that was acknowledged, with an append-only file: under `everysec` too, because the machine goes on;
//! * that was acknowledged when the last successful SAVE was asked for, where there is a dump file alone.
//!
//! Some units push their number to a list that all clients share, and are told its length. So the order in
//! which they came is known, and must be what is there. Others move money between accounts, whose sum is 0.
mod book;
mod client;
pub mod power;
mod server;
mod twin;
mod unit;

use crate::resp_client::RespClient;
use base::random::Random;
use book::{Book, CLIENTS};
use client::{Asked, Progress};
use server::Server;
use std::fmt;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::thread::sleep;
use std::time::{Duration, Instant};
use unit::Unit;

/// What keeps the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// An append-only file with `appendfsync always`.
    Always,
    /// With `everysec`.
    EverySecond,
    /// A dump file, which SAVE and BGSAVE write.
    Dump,
}

impl Keep {
    pub const ALL: [(&str, Keep); 3] =
        [("always", Keep::Always), ("everysec", Keep::EverySecond), ("dump", Keep::Dump)];
}

/// What a run is.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server's program and arguments that come before the run's own.
    pub server: Vec<String>,
    pub kills: u64,
    pub keep: Keep,
    /// Worker threads of the server.
    pub workers: usize,
    pub seed: u64,
    /// Very many keys, and values of very many elements.
    pub is_large: bool,
}

/// What came of a run in which nothing was lost.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub kills: u64,
    /// How many of them hit a server that was starting.
    pub at_start: u64,
    pub acknowledged: u64,
    /// Units that were there without having been acknowledged.
    pub more: u64,
    /// With dump files: acknowledged units that were lost.
    pub lost: u64,
    /// How long before the kill the oldest of these was acknowledged.
    pub oldest_lost: Duration,
    pub rewrites: u64,
    pub seconds: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { kills, at_start, acknowledged, more, lost, oldest_lost, rewrites, seconds } = self;
        write!(
            f,
            "{kills} kills ({at_start} while it started), {acknowledged} units acknowledged, {more} there that \
             were not, {lost} lost"
        )?;
        if *lost > 0 {
            write!(f, ", the oldest acknowledged {:.2} s before its kill", oldest_lost.as_secs_f64())?;
        }
        write!(f, "; {rewrites} bases written; {seconds:.0} s")
    }
}

/// A life lasts so long, in microseconds, but now and then with `everysec`.
const LIFE_US: u64 = 120_000;
const LONG_LIFE_US: u64 = 2_500_000;
const LONG_ONE_IN: u64 = 15;
/// One start in so many is killed before it is ready.
const KILLED_START_ONE_IN: u64 = 6;
const START_US: u64 = 25_000;

#[allow(clippy::disallowed_methods, reason = "processes are waited for, and their time is a figure")]
fn now() -> Instant {
    Instant::now()
}

/// Kills and looks. An error says what was found, and where the server's files were left.
pub fn run(options: &Options) -> Result<Report, String> {
    let mut run = Run::begin(options)?;
    let began = now();
    let done = (0..options.kills).try_for_each(|kill| {
        run.live_and_die(options).map_err(|why| format!("seed {}, kill {kill}: {why}", options.seed))
    });
    run.report.rewrites = run.server.rewrites();
    run.report.seconds = began.elapsed().as_secs_f64();
    match done {
        Ok(()) => Ok(run.report),
        Err(why) => {
            let log = run.server.log();
            let kept = run.server.keep_files();
            Err(format!("{why}\nits files are in {}; its log ends with\n{log}", kept.display()))
        }
    }
}

struct Run {
    random: Random,
    server: Server,
    book: Book,
    report: Report,
}

impl Run {
    fn begin(options: &Options) -> Result<Run, String> {
        let mut random = Random::new(options.seed);
        let book = Book::begin(random.next_u64(), options.is_large, false)?;
        let mut run = Run { random, server: Server::new(options)?, book, report: Report::default() };
        run.server.launch()?;
        let mut client = run.server.wait_until_ready()?;
        if options.is_large {
            run.fill(&mut client, options.keep).map_err(|error| format!("filling: {error}"))?;
        }
        Ok(run)
    }

    fn fill(&mut self, client: &mut RespClient, keep: Keep) -> io::Result<()> {
        self.book.twin.fill()?;
        twin::fill_keys(client)?;
        for number in 0..CLIENTS {
            let units = unit::filling(number);
            client.call(&["SELECT", &number.to_string()])?;
            for words in units.iter().flat_map(|unit| &unit.requests) {
                client.call(words)?;
            }
            self.book.twin.run(number, &units)?;
        }
        // What POPULATE makes is in no journal.
        client.call(&["SAVE"])?;
        if keep != Keep::Dump {
            let before = self.server.rewrites();
            client.call(&["BGREWRITEAOF"])?;
            while self.server.rewrites() == before {
                sleep(Duration::from_millis(1));
            }
            client.call(&["SET", "filled", "1"])?;
            client.call(&["WAITAOF", "1", "0", "0"])?;
        }
        Ok(())
    }

    /// One life of the server, its end, and a look at what the next one has.
    fn live_and_die(&mut self, options: &Options) -> Result<(), String> {
        let is_long = options.keep == Keep::EverySecond && self.random.below(LONG_ONE_IN) == 0;
        let life = Duration::from_micros(self.random.below(if is_long { LONG_LIFE_US } else { LIFE_US }));
        let (asked, killed) = self.load(options.keep, life)?;
        self.report.kills += 1;
        self.server.launch()?;
        while self.random.below(KILLED_START_ONE_IN) == 0 {
            sleep(Duration::from_micros(self.random.below(START_US)));
            if !self.server.kill() {
                return Err("a start has ended by itself".into());
            }
            self.report.kills += 1;
            self.report.at_start += 1;
            self.server.launch()?;
        }
        let mut actual = self.server.wait_until_ready()?;
        for (asked, found) in asked.iter().zip(self.book.look(&asked, &mut actual)?) {
            self.note(options.keep, asked, found, killed);
        }
        Ok(())
    }

    /// Clients ask until the server is killed, after this time. Returns when that was: a process may wait for
    /// its disk before it is gone.
    fn load(&mut self, keep: Keep, life: Duration) -> Result<(Vec<Asked>, Instant), String> {
        let failed = |error: io::Error| format!("a client: {error}");
        let connections = (0..CLIENTS).map(|_| self.server.connect()).collect::<io::Result<Vec<_>>>();
        let connections = connections.map_err(failed)?;
        let mut admin = self.server.connect().map_err(failed)?;
        let progress: [Progress; CLIENTS] = Default::default();
        let (numbers, drawers) = (self.book.numbers, &mut self.book.drawers);
        let (random, server) = (&mut self.random, &mut self.server);
        let is_over = AtomicBool::new(false);
        let seed = random.next_u64();
        let (mut all, killed, was_alive) = std::thread::scope(|scope| {
            let spawn = |((mut connection, drawer), number): ((RespClient, _), usize)| {
                let progress = &progress[number];
                scope.spawn(move || client::ask(&mut connection, drawer, (numbers[number], keep), progress))
            };
            let clients: Vec<_> = connections.into_iter().zip(drawers).zip(0..).map(spawn).collect();
            let keeper = scope.spawn(|| files_begin_anew(&mut admin, (keep, seed), &progress, &is_over));
            sleep(life);
            let killed = now();
            let was_alive = server.kill();
            is_over.store(true, Relaxed);
            let mut asked: Vec<Asked> =
                clients.into_iter().map(|client| client.join().expect("a client does not panic")).collect();
            keeper.join().expect("it does not panic");
            for (asked, progress) in asked.iter_mut().zip(&progress) {
                asked.on_disk = progress.on_disk.load(SeqCst) as usize;
            }
            (asked, killed, was_alive)
        });
        if !was_alive {
            return Err("the server has ended by itself".into());
        }
        for asked in &mut all {
            self.report.acknowledged += asked.acknowledged as u64;
            if keep != Keep::Dump {
                asked.on_disk = asked.acknowledged;
            }
        }
        Ok((all, killed))
    }

    fn note(&mut self, keep: Keep, asked: &Asked, found: usize, killed: Instant) {
        self.report.more += found.saturating_sub(asked.acknowledged) as u64;
        // Units that change nothing may be counted as lost, marks may not.
        let rest = &asked.units[found.min(asked.acknowledged)..asked.acknowledged];
        if keep != Keep::Dump {
            return;
        }
        let Some(first) = rest.iter().position(Unit::is_mark) else { return };
        self.report.lost += (rest.len() - first) as u64;
        let index = found + first;
        let told = asked.times.iter().find(|(count, _)| *count > index).map(|(_, told)| *told);
        let age = told.map_or(Duration::ZERO, |told| killed.saturating_duration_since(told));
        self.report.oldest_lost = self.report.oldest_lost.max(age);
    }
}

/// Has the files begin anew, and settings change that say how. A dump file has what was acknowledged when
/// SAVE was asked for, once that has succeeded.
fn files_begin_anew(
    admin: &mut RespClient,
    (keep, seed): (Keep, u64),
    progress: &[Progress; CLIENTS],
    is_over: &AtomicBool,
) {
    let mut random = Random::new(seed);
    while !is_over.load(Relaxed) {
        sleep(Duration::from_micros(random.below(20_000)));
        let before = progress.each_ref().map(|progress| progress.acknowledged.load(SeqCst));
        let words: &[&str] = match random.below(8) {
            0 | 1 => &["BGSAVE"],
            2 if keep == Keep::Dump => &["SAVE"],
            2..5 if keep != Keep::Dump => &["BGREWRITEAOF"],
            5 => &["CONFIG", "SET", "aof-use-rdb-preamble", if random.below(2) == 0 { "yes" } else { "no" }],
            6 => &["CONFIG", "SET", "rdb-key-save-delay", ["0", "50", "300"][random.below(3) as usize]],
            _ => continue,
        };
        let Ok(told) = admin.call(words) else { break };
        if words[0] == "SAVE" && told.text() == Some(b"OK") {
            progress.iter().zip(before).for_each(|(progress, before)| progress.on_disk.store(before, SeqCst));
        }
    }
}
