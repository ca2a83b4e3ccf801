//! The panic hook: when the server stops by a fault of its own, it has the crash report written
//! (`core/crash_report.rs`).
//!
//! The thread that panics may hold any lock, also that of the memory allocator: so memory for the report
//! comes from a stripe of the arena whose lock is free. Of several threads that panic at once one reports,
//! and the others wait for the end. Whatever holds the report up, an alarm ends the process. It ends by
//! abort, so that the system writes a core file if it is told to.
//!
//! A fault in memory (SIGSEGV) gets no report: its handler would need unsafe code. DEBUG SEGFAULT writes one
//! first.
use crate::core::crash_report::report;
use crate::core::server::Server;
use std::cell::RefCell;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

/// The server whose worker a thread is, and which one.
struct Home {
    server: Weak<Server>,
    worker: usize,
}

thread_local! {
    static HOME: RefCell<Option<Home>> = const { RefCell::new(None) };
}

/// The server that started last, for threads that are no workers.
static LATEST: Mutex<Weak<Server>> = Mutex::new(Weak::new());

/// Says that this thread is a worker of this server: a panic on it is reported to that server's log.
pub(crate) fn note_worker(server: &Arc<Server>, worker: usize) {
    HOME.set(Some(Home { server: Arc::downgrade(server), worker }));
}

/// Has a panic on a thread that is no worker reported to this server's log.
pub(crate) fn note_server(server: &Arc<Server>) {
    if let Ok(mut latest) = LATEST.lock() {
        *latest = Arc::downgrade(server);
    }
}

/// A report may take so long: writing it may mean waiting for a disk, or for the reader of standard output.
const REPORT_SECONDS: u32 = 30;

/// From here on a panic anywhere in the process is reported in the log and ends the process. For the program;
/// tests run several servers in one process, and their panics are theirs.
pub fn report_crashes() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        static IS_REPORTING: AtomicBool = AtomicBool::new(false);
        while IS_REPORTING.swap(true, Relaxed) {
            // Another thread reports, and then ends the process. If this is that thread, and it panics while
            // it reports, the language ends the process before this is reached.
            std::thread::park();
        }
        nix::unistd::alarm::set(REPORT_SECONDS);
        let reported = home().is_some_and(|(server, worker)| report(&server, worker, &cause(panic)));
        if !reported {
            usual(panic);
        }
        std::process::abort();
    }));
}

/// The server of this thread, and which worker it is.
fn home() -> Option<(Arc<Server>, Option<usize>)> {
    let worker = HOME
        .with_borrow(|home| home.as_ref().and_then(|home| Some((home.server.upgrade()?, Some(home.worker)))));
    worker.or_else(|| Some((LATEST.try_lock().ok()?.upgrade()?, None)))
}

/// What a panic says, and where in the source it happened.
fn cause(panic: &PanicHookInfo<'_>) -> String {
    let what = panic.payload_as_str().unwrap_or("a panic without words");
    match panic.location() {
        Some(place) => format!("{what} ({place})"),
        None => what.into(),
    }
}
