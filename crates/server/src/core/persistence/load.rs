//! Loads the dump file: this thread cuts it into batches, and others, one for each worker, load those.
//!
//! Clients may connect meanwhile. What they ask for is answered with -LOADING, but for commands that say that
//! they run then, of which none touches the data.
use crate::core::memory_limit::free_flushed;
use crate::core::server::Server;
use crate::state::config::{Config, reason};
use crate::state::persistence::{Delay, LOADING, Loading};
use disk::rdb::{Batch, FileReader, LoadCounts, LoadError, LoadRules, Piece};
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

/// The log says how far loading is after so many seconds, and again after as many.
const REPORT_US: i64 = 5_000_000;
/// So many batches wait for each thread that loads.
const BATCHES_AHEAD: usize = 2;

/// Loads the dump file if there is one, when the server starts, and lets requests run then. An error says why
/// it cannot be loaded; the data is then not what the file holds, so the server must not go on.
pub(crate) fn load(server: &Server) -> Result<(), String> {
    let config = server.config();
    let path = config.dir.join(&config.snapshots.file_name);
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            server.persistence.refuse(LOADING, false);
            return Ok(());
        }
        _ => {}
    }
    let began_us = server.clock.steady_us();
    load_file(server, &config, &path, false)?;
    let seconds = (server.clock.steady_us() - began_us) as f64 / 1e6;
    server.log.notice(&format!("DB loaded from disk: {seconds:.3} seconds"));
    server.persistence.refuse(LOADING, false);
    Ok(())
}

/// Loads the file again (DEBUG RELOAD), while the caller holds all gates. What is there goes before, unless
/// `keeps` says that it stays; then a key that is there already is replaced if `replaces` says so, and is an
/// error otherwise.
pub(crate) fn load_again(server: &Server, keeps: bool, replaces: bool) -> Result<(), String> {
    let config = server.config();
    if !keeps {
        free_flushed(server, &mut server.keyspace.clear());
    }
    load_file(server, &config, &config.dir.join(&config.snapshots.file_name), replaces)
}

fn load_file(server: &Server, config: &Config, path: &Path, replaces: bool) -> Result<(), String> {
    let fatal = |why: &str| format!("Fatal error loading the DB from {}: {why}. Exiting.", path.display());
    let (file, bytes) = open(path).map_err(|error| fatal(&reason(&error)))?;
    server.persistence.loading.begin(server.clock.now(), bytes);
    let is_over = AtomicBool::new(false);
    let delay = Delay::new(config.snapshots.load_delay);
    let loading = &server.persistence.loading;
    let go_on = || {
        delay.pass();
        loading.keys.fetch_add(1, Relaxed);
        match is_over.load(Relaxed) || server.is_stopping() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let rules = LoadRules {
        keyspace: &server.keyspace,
        settings: &config.store,
        now: server.clock.now(),
        replaces,
        go_on: &go_on,
    };
    let job = Job { server, rules, is_over: &is_over };
    let counts = job.run(file, config).map_err(|error| fatal(&text_of(&error)))?;
    loading.end(counts.loaded, counts.expired);
    server.log.notice(&format!(
        "Done loading RDB, keys loaded: {}, keys expired: {}, empty keys skipped: {}.",
        counts.loaded, counts.expired, counts.empty
    ));
    // What was loaded does not count as changed since the last snapshot.
    server.persistence.saves.saved_changes.store(server.keyspace.stats().dirty, Relaxed);
    Ok(())
}

/// Opens a regular file, and returns an error for anything else.
fn open(path: &Path) -> io::Result<(File, u64)> {
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
        LoadError::Broken(broken) => format!("{} (at byte {})", broken.what, broken.at),
        LoadError::Version(version) => format!("Can't handle RDB format version {version}"),
        LoadError::Checksum { told, found } => {
            format!("Wrong RDB checksum expected: ({told:x}) but got ({found:x})")
        }
        LoadError::Database(number) => {
            format!("the file has keys in database {number}, and 'databases' says that there are not so many")
        }
        LoadError::Twice(db, key) => {
            format!("the file has the key '{}' twice in database {db}", String::from_utf8_lossy(key))
        }
        LoadError::GivenUp => "it was given up".into(),
    }
}

/// One load of a file, shared by the threads that take part in it.
#[derive(Clone, Copy)]
struct Job<'j> {
    server: &'j Server,
    rules: LoadRules<'j>,
    /// Some thread has failed.
    is_over: &'j AtomicBool,
}

impl Job<'_> {
    fn run(self, file: File, config: &Config) -> Result<LoadCounts, LoadError> {
        let mut reader = FileReader::open(file, self.rules.settings, config.snapshots.has_checksum)?;
        let threads = config.worker_threads.max(1);
        let (sender, receiver) = sync_channel(threads * BATCHES_AHEAD);
        let receiver = Mutex::new(receiver);
        std::thread::scope(|scope| {
            let start = |_| {
                let thread = std::thread::Builder::new().name("sardine-load".into());
                thread.spawn_scoped(scope, || self.load_batches(&receiver))
            };
            let loaders: Vec<_> = (0..threads).map(start).collect::<Result<_, _>>().map_err(LoadError::Io)?;
            let mut done = self.cut(&mut reader, &sender);
            drop(sender);
            for loader in loaders {
                let loaded = loader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                done = match (done, loaded) {
                    (Ok(mut counts), Ok(more)) => {
                        counts += more;
                        Ok(counts)
                    }
                    // What a loader found is the reason for which the reader was stopped.
                    (Err(LoadError::GivenUp) | Ok(_), Err(error)) => Err(error),
                    (Err(error), _) => Err(error),
                };
            }
            done
        })
    }

    /// Reads the file to its end, hands out its keys, and loads those that are too large for that.
    fn cut(
        &self,
        reader: &mut FileReader<File>,
        sender: &SyncSender<Batch>,
    ) -> Result<LoadCounts, LoadError> {
        let Server { log, clock, persistence, .. } = self.server;
        let mut counts = LoadCounts::default();
        let mut functions = Vec::new();
        let mut report_us = clock.steady_us() + REPORT_US;
        log.notice(&format!("Loading RDB of version {}", reader.version()));
        loop {
            match reader.next_piece()? {
                Piece::Batch(batch) => sender.send(batch).map_err(|_| LoadError::GivenUp)?,
                Piece::Large => reader.load_key(&self.rules, &mut counts)?,
                Piece::About(name, text) => self.tell(&name, &text),
                Piece::Function(library) => functions.push(library),
                Piece::Module(name) => log.warning(&format!(
                    "The RDB file has data of module '{name}' beside its keys, which was left out: there are no \
                     modules"
                )),
                Piece::End => break,
            }
            if self.is_over.load(Relaxed) {
                return Err(LoadError::GivenUp);
            }
            persistence.loading.loaded_bytes.store(reader.at(), Relaxed);
            if clock.steady_us() >= report_us {
                report_us = clock.steady_us() + REPORT_US;
                log.notice(&format!("Loading: {:.1}% of the file", persistence.loading.percent()));
            }
        }
        if !functions.is_empty() {
            log.warning(&format!(
                "The RDB file has {} libraries of functions, which cannot be called yet; they are kept for the next \
                 file",
                functions.len()
            ));
        }
        persistence.keep_functions(functions);
        Ok(counts)
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

    /// What each of the other threads does.
    fn load_batches(&self, receiver: &Mutex<Receiver<Batch>>) -> Result<LoadCounts, LoadError> {
        let (mut counts, mut failed) = (LoadCounts::default(), None);
        loop {
            let batch = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            // Without a sender, all of the file was read.
            let Ok(batch) = batch else { return failed.map_or(Ok(counts), Err) };
            // After an error the rest is taken and dropped, so that the reader need not wait for room.
            if failed.is_none()
                && !self.is_over.load(Relaxed)
                && let Err(error) = batch.load(&self.rules, &mut counts)
            {
                self.is_over.store(true, Relaxed);
                failed = Some(error);
            }
        }
    }
}

impl Loading {
    /// How much of the file is loaded.
    pub(crate) fn percent(&self) -> f64 {
        let total = self.total_bytes.load(Relaxed).max(1);
        self.loaded_bytes.load(Relaxed) as f64 / total as f64 * 100.0
    }
}
