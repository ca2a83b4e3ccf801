//! Loads the dump file: this thread cuts it into batches; others, one for each worker, sort their keys and
//! then load them (`disk/src/rdb/sort.rs`).
//!
//! Clients may connect meanwhile. What they ask for is answered with -LOADING, but for commands that say that
//! they run then, of which none touches the data.
use crate::core::error;
use crate::core::functions::{FunctionInterpreter, Limit};
use crate::core::memory_limit::free_flushed;
use crate::core::server::Server;
use crate::state::config::{Config, reason};
use crate::state::disk::leave_memory;
use crate::state::persistence::{Delay, Loading};
use crate::state::scripts::Former;
use base::Millis;
use disk::rdb::{Batch, FileReader, LoadCounts, LoadError, LoadRules, Piece, Sorted, Sorter};
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// The log says how far loading is after so many seconds, and again after as many.
const REPORT_US: i64 = 5_000_000;
/// So many batches wait for each thread that sorts.
const BATCHES_AHEAD: usize = 2;
/// So much of a file is held at most before it is loaded.
const HELD_BYTES_MAX: u64 = 1 << 30;

/// Loads the dump file if there is one, when the server starts.
pub(crate) fn load(server: &Server) -> Result<(), String> {
    let config = server.config();
    if !has_data(&config) {
        return Ok(());
    }
    let (began_us, path) = (server.clock.steady_us(), path(&config));
    let fatal = |why: String| {
        format!(
            "Fatal error loading the DB from {}: {why}. Exiting. (`sardine check` says what can be read of a file.)",
            path.display()
        )
    };
    load_file(server, &config, &path, false).map_err(fatal)?;
    let seconds = (server.clock.steady_us() - began_us) as f64 / 1e6;
    server.log.notice(&format!("DB loaded from disk: {seconds:.3} seconds"));
    Ok(())
}

/// Whether there is a dump file, or something in its place.
pub(crate) fn has_data(config: &Config) -> bool {
    let is_named = !config.snapshots.file_name.as_os_str().is_empty();
    is_named && !std::fs::metadata(path(config)).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn path(config: &Config) -> PathBuf {
    config.dir.join(&config.snapshots.file_name)
}

/// Loads the file again (DEBUG RELOAD), while the caller holds all gates. What is there goes before, unless
/// `keeps` says that it stays; then a key that is there already is replaced if `replaces` says so, and is an
/// error otherwise.
pub(crate) fn load_again(server: &Server, keeps: bool, replaces: bool) -> Result<(), String> {
    let config = server.config();
    if !keeps {
        free_flushed(server, &mut server.keyspace.flush(None).1);
        server.scripts.libraries.flush();
    }
    let path = path(&config);
    load_file(server, &config, &path, replaces)
        .map_err(|why| format!("Cannot load {}: {why}", path.display()))
}

fn load_file(server: &Server, config: &Config, path: &Path, replaces: bool) -> Result<(), String> {
    let (file, bytes) = open(path).map_err(|error| reason(&error))?;
    server.persistence.loading.begin(server.clock.now(), bytes);
    let again = file.try_clone().ok();
    let times = (server.clock.now(), replaces);
    let (counts, _) = load_dump(server, config, file, times)?;
    again.iter().for_each(leave_memory);
    server.persistence.loading.end(counts.loaded, counts.expired);
    server.log.notice(&format!(
        "Done loading RDB, keys loaded: {}, keys expired: {}, empty keys skipped: {}.",
        counts.loaded, counts.expired, counts.empty
    ));
    // What was loaded does not count as changed since the last snapshot.
    server.persistence.saves.saved_changes.store(server.keyspace.stats().dirty, Relaxed);
    Ok(())
}

/// Loads a dump file, or the one that an append-only file begins with. Keys whose deadline has passed by
/// `now` are left out. Returns where it ends, too.
pub(super) fn load_dump(
    server: &Server,
    config: &Config,
    file: File,
    (now, replaces): (Millis, bool),
) -> Result<(LoadCounts, u64), String> {
    let is_over = AtomicBool::new(false);
    let delay = Delay::new(config.snapshots.load_delay);
    let loading = &server.persistence.loading;
    let go_on = || {
        delay.pass(|| server.config().snapshots.load_delay);
        loading.keys.fetch_add(1, Relaxed);
        match is_over.load(Relaxed) || server.is_stopping() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let rules =
        LoadRules { keyspace: &server.keyspace, settings: &config.store, now, replaces, go_on: &go_on };
    let report_us = AtomicI64::new(server.clock.steady_us() + REPORT_US);
    let job = Job { server, rules, is_over: &is_over, report_us: &report_us };
    job.run(file, config).map_err(|error| text_of(&error))
}

/// Opens a regular file, and returns an error for anything else.
pub(super) fn open(path: &Path) -> io::Result<(File, u64)> {
    // A pipe or a device would be waited for, or have no end.
    let about = std::fs::metadata(path)?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok((File::open(path)?, about.len()))
}

/// The words for an error in a file.
fn text_of(error: &LoadError) -> String {
    match error {
        LoadError::Io(error) => reason(error),
        other => other.to_string(),
    }
}

/// One load of a file, shared by the threads that take part in it.
#[derive(Clone, Copy)]
struct Job<'j> {
    server: &'j Server,
    rules: LoadRules<'j>,
    /// Some thread has failed.
    is_over: &'j AtomicBool,
    /// When the log is told next how far it is.
    report_us: &'j AtomicI64,
}

/// A file that is being read, and what has compiled the libraries that it has.
struct Input {
    reader: FileReader<File>,
    functions: Option<FunctionInterpreter>,
}

/// How a round of a load has ended.
#[derive(PartialEq, Eq)]
enum Round {
    /// Enough of the file is held to be loaded now.
    Full,
    /// All of the file was read.
    Last,
}

impl Job<'_> {
    fn run(self, file: File, config: &Config) -> Result<(LoadCounts, u64), LoadError> {
        let len = file.metadata().map_err(LoadError::Io)?.len();
        let reader = FileReader::open(file, len, self.rules.settings, config.snapshots.has_checksum)?;
        self.server.log.notice(&format!("Loading RDB of version {}", reader.version()));
        let threads = config.worker_threads.max(1);
        let sorted = Sorted::new(self.server.keyspace.shards(), reader.version());
        let mut input = Input { reader, functions: None };
        let mut counts = LoadCounts::default();
        loop {
            let (round, more) = self.round(&mut input, &sorted, threads)?;
            counts += more;
            if round == Round::Last {
                return Ok((counts, input.reader.at()));
            }
        }
    }

    /// Reads, while other threads sort, until enough is held or the file is at its end. Then the same threads
    /// load it, so that what is held is freed where they allocate.
    fn round(
        &self,
        input: &mut Input,
        sorted: &Sorted,
        threads: usize,
    ) -> Result<(Round, LoadCounts), LoadError> {
        let (sender, receiver) = sync_channel(threads * BATCHES_AHEAD);
        let (receiver, sorting, next) = (Mutex::new(receiver), RwLock::new(()), AtomicUsize::new(0));
        let work = || {
            let sorts = sorting.read();
            let sorted_counts = self.sort_batches(&receiver, sorted);
            drop(sorts);
            // All of them have sorted when somebody may write.
            drop(sorting.write());
            let mut counts = sorted_counts?;
            counts += self.load_shards(sorted, &next)?;
            Ok(counts)
        };
        std::thread::scope(|scope| {
            // It is dropped whatever happens: then those who sort come to an end.
            let sender = sender;
            let ends = |_: &LoadError| self.is_over.store(true, Relaxed);
            let workers = spawn(scope, threads, work).inspect_err(ends)?;
            let read = self.read(input, sorted, &sender).inspect_err(ends);
            drop(sender);
            let counts = joined(workers);
            let (ended, mut more) = read.or_else(|error| match (error, &counts) {
                // What a sorter found is the reason for which the reader was stopped.
                (LoadError::GivenUp, Err(_)) => Ok((Round::Full, LoadCounts::default())),
                (error, _) => Err(error),
            })?;
            more += counts?;
            Ok((ended, more))
        })
    }

    /// Hands out the keys of the file, and loads those that are too large for that.
    fn read(
        &self,
        Input { reader, functions }: &mut Input,
        sorted: &Sorted,
        sender: &SyncSender<Batch>,
    ) -> Result<(Round, LoadCounts), LoadError> {
        let Server { log, persistence, .. } = self.server;
        let mut counts = LoadCounts::default();
        while sorted.bytes() < HELD_BYTES_MAX {
            match reader.next_piece()? {
                Piece::Batch(batch) => sender.send(batch).map_err(|_| LoadError::GivenUp)?,
                Piece::Large => reader.load_key(&self.rules, &mut counts)?,
                Piece::About(name, text) => self.tell(&name, &text),
                Piece::Function(code) => self.load_library(functions, &code)?,
                Piece::Module(name) => log.warning(&format!(
                    "The RDB file has data of module '{name}' beside its keys, which was left out: there are no \
                     modules"
                )),
                Piece::End => return Ok((Round::Last, counts)),
            }
            // No key is loaded while a part of the file is read, so the end of the server is looked for here.
            if self.is_over.load(Relaxed) || self.server.is_stopping() {
                return Err(LoadError::GivenUp);
            }
            persistence.loading.read_bytes.store(reader.at(), Relaxed);
            self.report();
        }
        Ok((Round::Full, counts))
    }

    /// Puts a library in force. One that is there already is replaced, or an error, as a key would be.
    fn load_library(
        &self,
        functions: &mut Option<FunctionInterpreter>,
        code: &[u8],
    ) -> Result<(), LoadError> {
        let server = self.server;
        let former = if self.rules.replaces { Former::Goes } else { Former::Stays };
        let interpreter =
            functions.get_or_insert_with(|| FunctionInterpreter::new(&server.scripts.libraries));
        let loaded = interpreter.load(server, code, (former, Limit::Nothing));
        interpreter.collect();
        loaded.map(drop).map_err(|why| LoadError::Library(error::without_code(&why)))
    }

    /// What each of the threads does that sort.
    fn sort_batches(
        &self,
        receiver: &Mutex<Receiver<Batch>>,
        sorted: &Sorted,
    ) -> Result<LoadCounts, LoadError> {
        let (mut counts, mut failed) = (LoadCounts::default(), None);
        let mut sorter = Sorter::new(sorted);
        loop {
            let batch = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(batch) = batch else { break };
            // After an error the rest is taken and dropped, so that the reader need not wait for room.
            if failed.is_none()
                && !self.is_over.load(Relaxed)
                && let Err(error) = sorter.sort(&batch, &self.rules, &mut counts)
            {
                self.is_over.store(true, Relaxed);
                failed = Some(error);
            }
        }
        sorter.finish();
        failed.map_or(Ok(counts), Err)
    }

    /// What each of the threads does that load: one shard after the other, as long as there is one left.
    fn load_shards(&self, sorted: &Sorted, next: &AtomicUsize) -> Result<LoadCounts, LoadError> {
        let mut counts = LoadCounts::default();
        loop {
            let shard = next.fetch_add(1, Relaxed);
            if shard >= sorted.shards() || self.is_over.load(Relaxed) {
                return Ok(counts);
            }
            match sorted.load(shard, &self.rules, &mut counts) {
                Ok(bytes) => self.server.persistence.loading.loaded_bytes.fetch_add(bytes, Relaxed),
                Err(error) => {
                    self.is_over.store(true, Relaxed);
                    return Err(error);
                }
            };
            self.report();
        }
    }

    /// Logs from time to time how far it is.
    fn report(&self) {
        let Server { log, clock, persistence, .. } = self.server;
        let (now_us, due_us) = (clock.steady_us(), self.report_us.load(Relaxed));
        let next_us = now_us + REPORT_US;
        if now_us >= due_us && self.report_us.compare_exchange(due_us, next_us, Relaxed, Relaxed).is_ok() {
            log.notice(&format!("Loading: {:.1}%", persistence.loading.percent()));
        }
    }

    /// Logs what the file says of who wrote it.
    fn tell(&self, name: &[u8], text: &[u8]) {
        let Server { log, clock, persistence, .. } = self.server;
        let shown = String::from_utf8_lossy(text);
        let number = base::text::parse_i64(text);
        match (name, number) {
            (b"redis-ver" | b"valkey-ver", _) => {
                log.notice(&format!("Loading RDB produced by version {shown}"))
            }
            (b"ctime", Some(time_s)) => {
                let age_s = (clock.now().0 / 1000).saturating_sub(time_s).max(0);
                log.notice(&format!("RDB age {age_s} seconds"));
            }
            (b"used-mem", Some(bytes)) => {
                let bytes = bytes.max(0) as u64;
                persistence.loading.used_memory_bytes.store(bytes, Relaxed);
                let mib = bytes as f64 / f64::from(1 << 20);
                log.notice(&format!("RDB memory usage when created {mib:.2} Mb"));
            }
            _ => {}
        }
    }
}

type Loader<'s> = ScopedJoinHandle<'s, Result<LoadCounts, LoadError>>;

/// Starts so many threads that all do this.
fn spawn<'s, 'e>(
    scope: &'s Scope<'s, 'e>,
    threads: usize,
    work: impl Fn() -> Result<LoadCounts, LoadError> + Copy + Send + 's,
) -> Result<Vec<Loader<'s>>, LoadError> {
    let start = |_| Builder::new().name("sardine-load".into()).spawn_scoped(scope, work);
    (0..threads).map(start).collect::<Result<_, _>>().map_err(LoadError::Io)
}

/// Waits for them; the first error, if there is one, and rather the one for which others have given up.
fn joined(threads: Vec<Loader<'_>>) -> Result<LoadCounts, LoadError> {
    let mut sum = Ok(LoadCounts::default());
    for thread in threads {
        let counts = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sum = match (sum, counts) {
            (Ok(mut sum), Ok(more)) => {
                sum += more;
                Ok(sum)
            }
            (Err(LoadError::GivenUp), Err(error)) | (Err(error), _) | (_, Err(error)) => Err(error),
        };
    }
    sum
}

impl Loading {
    /// How much of the file is loaded.
    pub(crate) fn loaded_percent(&self) -> f64 {
        self.loaded_bytes.load(Relaxed) as f64 / self.total_bytes.load(Relaxed).max(1) as f64 * 100.0
    }

    /// How much of the work is done: to read the file is the lesser part of it.
    pub(crate) fn percent(&self) -> f64 {
        const READING: f64 = 0.3;
        let total = self.total_bytes.load(Relaxed).max(1) as f64;
        let (read, loaded) = (self.read_bytes.load(Relaxed) as f64, self.loaded_bytes.load(Relaxed) as f64);
        (read * READING + loaded * (1.0 - READING)) / total * 100.0
    }
}
