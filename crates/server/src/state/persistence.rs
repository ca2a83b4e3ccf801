//! What is known of the dump file: whether it is being loaded, whether a snapshot is being written, how the
//! last ones ended. `core/persistence` does the work.
use crate::state::disk::Disk;
use crate::state::lock::lock;
use base::Millis;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicU64};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Nothing is refused.
pub(crate) const NOTHING: u8 = 0;
/// The data is being loaded: only commands that say so run.
pub(crate) const LOADING: u8 = 1;
/// The last snapshot in the background has failed: writes are refused.
pub(crate) const UNSAVED: u8 = 2;
/// The append-only file cannot be written: so are writes then.
pub(crate) const UNWRITTEN: u8 = 4;

/// All of it; one for a server.
pub(crate) struct Persistence {
    /// What keeps requests from running, as a bit for each reason: workers look at it at every
    /// turn of a connection.
    refusing: AtomicU8,
    pub(crate) loading: Loading,
    pub(crate) saves: Saves,
    /// The threads that write.
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// What its files are on.
    pub(crate) disk: Arc<Disk>,
}

/// The file that is being loaded, or was loaded last.
#[derive(Default)]
pub(crate) struct Loading {
    pub(crate) began_s: AtomicI64,
    pub(crate) total_bytes: AtomicU64,
    /// How much of it was read, and how much of that loaded.
    pub(crate) read_bytes: AtomicU64,
    pub(crate) loaded_bytes: AtomicU64,
    /// `used-mem` of the file.
    pub(crate) used_memory_bytes: AtomicU64,
    /// Keys that are loaded so far, or were loaded; those that were left out because they had expired.
    pub(crate) keys: AtomicU64,
    pub(crate) expired: AtomicU64,
    /// Commands of an append-only file that were answered with an error.
    pub(crate) failed: AtomicU64,
}

/// Snapshots.
pub(crate) struct Saves {
    /// The one that is being written.
    running: Mutex<Option<Arc<Save>>>,
    /// When the last one was written, or the server started; seconds of the Unix time.
    pub(crate) last_s: AtomicI64,
    /// How many changes the data had had by then.
    pub(crate) saved_changes: AtomicU64,
    /// When one was last begun in the background.
    pub(crate) tried_s: AtomicI64,
    /// How long the last one took in the background; -1: there was none.
    pub(crate) took_s: AtomicI64,
    /// Whether the last one has. What follows for writes is decided under this lock.
    pub(crate) has_failed: Mutex<bool>,
    /// How many were begun, but for those that a command or the end of the server waits for with all gates.
    pub(crate) count: AtomicU64,
    /// How many bytes were copied while the last one was written.
    pub(crate) copied_bytes: AtomicU64,
}

/// A snapshot that is being written.
pub(crate) struct Save {
    pub(crate) began: Millis,
    /// `pack`'s count of copied bytes when the data was frozen.
    copied_before: u64,
    /// Keys in all, and keys that are written.
    pub(crate) keys: u64,
    pub(crate) written: AtomicU64,
    is_given_up: AtomicBool,
}

impl Persistence {
    /// `now`: the server starts.
    pub(crate) fn new(now: Millis) -> Persistence {
        Persistence {
            refusing: AtomicU8::new(NOTHING),
            loading: Loading::default(),
            saves: Saves {
                running: Mutex::default(),
                last_s: AtomicI64::new(now.0 / 1000),
                saved_changes: AtomicU64::new(0),
                tried_s: AtomicI64::new(0),
                took_s: AtomicI64::new(-1),
                has_failed: Mutex::new(false),
                count: AtomicU64::new(0),
                copied_bytes: AtomicU64::new(0),
            },
            threads: Mutex::default(),
            disk: Arc::default(),
        }
    }

    /// What keeps requests from running. It costs one load of a word.
    #[inline]
    pub(crate) fn refusing(&self) -> u8 {
        self.refusing.load(Relaxed)
    }

    /// Whether the data is being loaded.
    pub(crate) fn is_loading(&self) -> bool {
        self.refusing() & LOADING != 0
    }

    /// From here on requests are refused for this reason, or no longer.
    pub(crate) fn refuse(&self, why: u8, is_so: bool) {
        match is_so {
            true => self.refusing.fetch_or(why, Relaxed),
            false => self.refusing.fetch_and(!why, Relaxed),
        };
    }

    /// Keeps the handle of a thread that writes, and forgets those that have ended.
    pub(crate) fn keep_thread(&self, thread: JoinHandle<()>) {
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }

    /// Gives up what is being written, and waits for the threads.
    pub(crate) fn end(&self) {
        self.saves.give_up();
        let threads = std::mem::take(&mut *lock(&self.threads));
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}

impl Loading {
    /// A file of so many bytes is loaded from here on.
    pub(crate) fn begin(&self, now: Millis, total_bytes: u64) {
        self.began_s.store(now.0 / 1000, Relaxed);
        self.total_bytes.store(total_bytes, Relaxed);
        let of_files = [&self.read_bytes, &self.loaded_bytes, &self.used_memory_bytes];
        let of_keys = [&self.keys, &self.expired, &self.failed];
        of_files.into_iter().chain(of_keys).for_each(|count| count.store(0, Relaxed));
    }

    /// It is loaded.
    pub(crate) fn end(&self, keys: u64, expired: u64) {
        self.keys.store(keys, Relaxed);
        self.expired.store(expired, Relaxed);
    }
}

impl Saves {
    /// The one that is being written.
    pub(crate) fn running(&self) -> Option<Arc<Save>> {
        lock(&self.running).clone()
    }

    /// Begins one of so many keys; None while another is being written.
    pub(crate) fn begin(&self, now: Millis, keys: u64) -> Option<Arc<Save>> {
        let mut running = lock(&self.running);
        if running.is_some() {
            return None;
        }
        Some(Arc::clone(running.insert(Arc::new(Save::new(now, keys)))))
    }

    /// The one that is being written has ended.
    pub(crate) fn end(&self) {
        if let Some(save) = lock(&self.running).take() {
            self.copied_bytes.store(save.copied_bytes(), Relaxed);
        }
    }

    /// Asks the one that is being written to stop.
    pub(crate) fn give_up(&self) {
        if let Some(save) = self.running() {
            save.give_up();
        }
    }

    /// It was written; the data had had so many changes when it was frozen.
    pub(crate) fn note_saved(&self, now: Millis, changes: u64) {
        self.last_s.store(now.0 / 1000, Relaxed);
        self.saved_changes.store(changes, Relaxed);
    }

    pub(crate) fn has_failed(&self) -> bool {
        *lock(&self.has_failed)
    }
}

impl Save {
    /// The data was frozen, with so many keys.
    pub(crate) fn new(now: Millis, keys: u64) -> Save {
        Save {
            began: now,
            copied_before: pack::counted::copied_bytes(),
            keys,
            written: AtomicU64::new(0),
            is_given_up: AtomicBool::new(false),
        }
    }

    /// Nobody wants it any more.
    pub(crate) fn give_up(&self) {
        self.is_given_up.store(true, Relaxed);
    }

    /// Whether nobody wants it any more.
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Relaxed)
    }

    /// How many bytes commands have copied because the snapshot holds them, or did: the more of it is
    /// written, the more of what it held is free again.
    pub(crate) fn copied_bytes(&self) -> u64 {
        pack::counted::copied_bytes() - self.copied_before
    }

    /// A key is written. Breaks off if nobody wants the rest.
    pub(crate) fn note_key(&self) -> ControlFlow<()> {
        self.written.fetch_add(1, Relaxed);
        if self.is_given_up() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// What `rdb-key-save-delay` and `key-load-delay` ask for: so many microseconds after each key, or one after
/// so many keys where the number is negative. One that was there at the beginning follows the setting: who
/// lifts it waits no longer. One that comes later is not seen, since nobody looks who does not wait.
pub(crate) struct Delay {
    setting: AtomicI32,
    keys: AtomicU64,
}

impl Delay {
    pub(crate) fn new(setting: i32) -> Delay {
        Delay { setting: AtomicI32::new(setting), keys: AtomicU64::new(0) }
    }

    /// Whether it waits at all.
    pub(crate) fn is_set(&self) -> bool {
        self.setting.load(Relaxed) != 0
    }

    /// Waits after a key, and asks then what the setting is now.
    #[inline]
    pub(crate) fn pass(&self, setting_now: impl FnOnce() -> i32) {
        if self.is_set() {
            self.wait();
            self.setting.store(setting_now(), Relaxed);
        }
    }

    fn wait(&self) {
        match self.setting.load(Relaxed) {
            micros @ 1.. => std::thread::sleep(Duration::from_micros(micros as u64)),
            0 => {}
            keys => {
                if self.keys.fetch_add(1, Relaxed).is_multiple_of(u64::from(keys.unsigned_abs())) {
                    std::thread::sleep(Duration::from_micros(1));
                }
            }
        }
    }
}
