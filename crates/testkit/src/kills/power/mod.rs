//! A server on a disk that fails, tears, forgets and reorders, all from one seed (`disk`): it starts, clients
//! write, its files begin anew, calls of the system fail; then the power fails, and the next server starts
//! with what is left. What had to be kept must be there, as after a kill.
//!
//! The server is one of this process, in a folder of its own; its disk is asked for what a failure of power
//! would leave, and that is put into the folder of the next one. Clients go on for a moment meanwhile, until
//! they have the replies to all that they have asked for, so that it is known which requests were refused.
mod disk;

use super::book::{Book, CLIENTS};
use super::client::{self, Asked, Progress};
use super::{Keep, files_begin_anew};
use crate::resp_client::RespClient;
use crate::scratch::Scratch;
use base::random::Random;
use disk::{Image, SimulatedDisk};
use server::{Allow, AppendSync, Appending, Clock, Config, Log, Running, Snapshots};
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::thread::sleep;
use std::time::Duration;

/// What came of the failures of some seeds.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub seeds: u64,
    /// How often the power failed.
    pub failures: u64,
    /// Calls of the system that failed.
    pub failed_calls: u64,
    /// Starts that failed with the disk.
    pub failed_starts: u64,
    /// Files whose end had to be cut off by hand, since it was none that a crash of the process leaves.
    pub repairs: u64,
    pub acknowledged: u64,
    /// Requests that were refused because of the disk.
    pub refused: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { seeds, failures, failed_calls, failed_starts, repairs, acknowledged, refused } = self;
        write!(
            f,
            "{seeds} seeds: {failures} failures of power, {failed_calls} calls of the system failed, {failed_starts} \
             starts with them; {acknowledged} units acknowledged, {refused} of them refused; {repairs} files had to \
             be cut at their end"
        )
    }
}

/// Servers that one seed starts.
const LIVES: u64 = 4;
/// A life lasts so long, in microseconds; longer where calls fail, since they are tried again after 100 ms.
const LIFE_US: u64 = 20_000;
const LONG_LIFE_US: u64 = 280_000;
/// One call of so many fails; 0: none does.
const FAILS_OF: [u64; 6] = [0, 0, 150, 40, 15, 5];
/// A start on a disk that fails is tried so often before it works.
const STARTS: u64 = 3;
/// What was cut may end in a transaction that has no end, and so on.
const REPAIRS_MAX: u64 = 3;

/// Runs one seed. An error says what was found.
pub fn run(seed: u64, report: &mut Report) -> Result<(), String> {
    let mut random = Random::new(seed);
    let keep = [Keep::Always, Keep::EverySecond, Keep::Always, Keep::Dump][random.below(4) as usize];
    let book = Book::begin(random.next_u64(), false, true)?;
    let mut run = Run { random, keep, book, report };
    run.report.seeds += 1;
    run.live(seed).map_err(|why| format!("seed {seed}, {keep:?}: {why}"))
}

struct Run<'r> {
    random: Random,
    keep: Keep,
    book: Book,
    report: &'r mut Report,
}

impl Run<'_> {
    fn live(&mut self, seed: u64) -> Result<(), String> {
        let failed = |error: io::Error| format!("a folder: {error}");
        let mut folder = Scratch::new("power").map_err(failed)?;
        let mut asked: Option<(Vec<Asked>, Scratch)> = None;
        for life in 0..=LIVES {
            let disk = self.disk(folder.path()).map_err(failed)?;
            let (server, disk) = self.start(folder.path(), disk)?;
            let mut actual = RespClient::connect(&server.addresses[0].into()).map_err(failed)?;
            if let Some((asked, former)) = &asked {
                self.book.look(asked, &mut actual).map_err(|why| {
                    let kept = [former.keep(), folder.keep()].map(|path| path.display().to_string());
                    let on_disk: Vec<usize> = asked.iter().map(|asked| asked.on_disk).collect();
                    format!(
                        "life {life} of seed {seed}, {on_disk:?} had to be kept, files are in {kept:?}: {why}"
                    )
                })?;
            }
            if life == LIVES {
                break;
            }
            let (image, more) = self.load(&server, &disk)?;
            self.report.failures += 1;
            self.report.failed_calls += disk.failed();
            server.stop();
            let next = Scratch::new("power").map_err(failed)?;
            image.write(folder.path(), next.path()).map_err(failed)?;
            asked = Some((more, std::mem::replace(&mut folder, next)));
        }
        Ok(())
    }

    /// With `everysec` a sync that fails leaves a gap in the file, which the server notices: it begins the
    /// file anew. What was acknowledged before that has an order no longer, so such a disk is for `always`.
    fn disk(&mut self, folder: &Path) -> io::Result<Arc<SimulatedDisk>> {
        let loses = self.keep != Keep::EverySecond;
        SimulatedDisk::of(folder, self.random.next_u64(), loses).map(Arc::new)
    }

    fn config(&mut self, folder: &Path) -> Config {
        let append = Appending {
            is_wanted: self.keep != Keep::Dump,
            sync: if self.keep == Keep::Always { AppendSync::Always } else { AppendSync::EverySecond },
            rewrite_bytes_min: 20_000,
            growth_percent: 60,
            ..Appending::default()
        };
        Config {
            bind: vec!["127.0.0.1".into()],
            port: 0,
            picks_port: true,
            worker_threads: 1 + self.random.below(3) as usize,
            dir: folder.into(),
            logfile: Some(folder.join("log")),
            append,
            enable_debug_command: Allow::Local,
            snapshots: Snapshots::never(),
            ..Config::default()
        }
    }

    /// Starts a server, on a disk that may fail meanwhile; then it is tried again, on one that works in the
    /// end.
    fn start(
        &mut self,
        folder: &Path,
        mut disk: Arc<SimulatedDisk>,
    ) -> Result<(Running, Arc<SimulatedDisk>), String> {
        let (mut attempt, mut repairs) = (0, 0);
        while repairs < REPAIRS_MAX {
            let fails_of = if attempt == STARTS { 0 } else { self.fails_of() };
            attempt += u64::from(attempt < STARTS);
            disk.fail_one_of(fails_of);
            let config = self.config(folder);
            let log = Log::open(&config, Clock::real()).map_err(|error| error.0)?;
            let running = server::start_when(config, Clock::real(), log, |_| {});
            let running = running.map_err(|error| error.to_string())?;
            running.watch_disk(disk.clone());
            let loaded = running.load().map_err(|error| error.to_string());
            disk.fail_one_of(0);
            match loaded {
                Ok(()) => return Ok((running, disk)),
                Err(_) if fails_of > 0 => self.report.failed_starts += 1,
                Err(why) => {
                    running.stop();
                    repair(folder, &why).ok_or(format!("it does not start: {why}"))?;
                    (repairs, self.report.repairs) = (repairs + 1, self.report.repairs + 1);
                    disk = self.disk(folder).map_err(|error| error.to_string())?;
                }
            }
        }
        Err("it does not start after its files were cut".into())
    }

    fn fails_of(&mut self) -> u64 {
        FAILS_OF[self.random.below(FAILS_OF.len() as u64) as usize]
    }

    /// Clients write until the power fails. Returns what that leaves, and what they have asked for.
    fn load(&mut self, server: &Running, disk: &SimulatedDisk) -> Result<(Image, Vec<Asked>), String> {
        let connect = || RespClient::connect(&server.addresses[0].into());
        let failed = |error: io::Error| format!("a client: {error}");
        let connections = (0..CLIENTS).map(|_| connect()).collect::<io::Result<Vec<_>>>().map_err(failed)?;
        let mut admin = connect().map_err(failed)?;
        let (keep, numbers, seed) = (self.keep, self.book.numbers, self.random.next_u64());
        let (random, drawers) = (&mut self.random, &mut self.book.drawers);
        let progress: [Progress; CLIENTS] = Default::default();
        let is_over = AtomicBool::new(false);
        let (image, mut all) = std::thread::scope(|scope| {
            let spawn = |((mut connection, drawer), number): ((RespClient, _), usize)| {
                let progress = &progress[number];
                scope.spawn(move || client::ask(&mut connection, drawer, (numbers[number], keep), progress))
            };
            let clients: Vec<_> = connections.into_iter().zip(drawers).zip(0..).map(spawn).collect();
            let keeper = scope.spawn(|| files_begin_anew(&mut admin, (keep, seed), &progress, &is_over));
            let fails_of = FAILS_OF[random.below(FAILS_OF.len() as u64) as usize];
            for _ in 0..1 + random.below(3) {
                disk.fail_one_of(if random.below(3) > 0 { fails_of } else { 0 });
                let most = if fails_of > 0 { LONG_LIFE_US } else { LIFE_US };
                sleep(Duration::from_micros(random.below(most)));
            }
            // What had to be kept by now. It is known before the power fails.
            let kept: [(u64, u64); CLIENTS] = std::array::from_fn(|client| {
                let Progress { acknowledged, on_disk, .. } = &progress[client];
                (acknowledged.load(SeqCst), on_disk.load(SeqCst))
            });
            let image = disk.image();
            disk.fail_one_of(0);
            is_over.store(true, Relaxed);
            progress.iter().for_each(|progress| progress.is_over.store(true, SeqCst));
            let mut all: Vec<Asked> =
                clients.into_iter().map(|client| client.join().expect("a client does not panic")).collect();
            keeper.join().expect("it does not panic");
            for (asked, (acknowledged, on_disk)) in all.iter_mut().zip(kept) {
                asked.on_disk = if keep == Keep::Always { acknowledged } else { on_disk } as usize;
            }
            (image, all)
        });
        for asked in &mut all {
            self.report.acknowledged += asked.acknowledged as u64;
            self.report.refused += asked.units.iter().filter(|unit| unit.is_void()).count() as u64;
        }
        Ok((image, all))
    }
}

/// Cuts the last file of commands where a server says that it is no file of commands any more, as `sardine
/// check --fix` does: a failure of power leaves more than the end of a process does. None if that was not
/// what the server said.
fn repair(folder: &Path, why: &str) -> Option<()> {
    let (_, at) = why.split_once("(at byte ")?;
    let at: u64 = at.split_once(')')?.0.parse().ok()?;
    let folder = folder.join("appendonlydir");
    let text = fs::read(folder.join("appendonly.aof.manifest")).ok()?;
    let manifest = ::disk::aof::manifest::Manifest::parse(&text).ok()?;
    let mut paths = manifest.increments.iter().map(|part| folder.join(OsStr::from_bytes(&part.name)));
    // Behind it there may be one more, to which nothing was written yet.
    let last = paths.rfind(|path| fs::metadata(path).is_ok_and(|about| about.len() > 0))?;
    let is_cut = why.contains(last.to_str()?) && at < fs::metadata(&last).ok()?.len();
    is_cut.then(|| File::options().write(true).open(last)?.set_len(at)).and_then(Result::ok)
}
