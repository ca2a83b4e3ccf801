//! The panic hook: when the server stops by a fault of its own, it has the crash report written
//! (`core/crash_report.rs`).
//!
//! Memory for the report comes from a stripe of the arena whose lock is free. Of several threads that panic
//! at once one reports and the others stand still; whatever holds that one up, an alarm ends the process. It
//! then ends by abort, so that the system keeps a core if it is told to.
//!
//! A fault in memory (SIGSEGV) gets no report: its handler would need unsafe code. DEBUG SEGFAULT writes one
//! first.
use crate::core::crash_report::report;
use crate::core::server::Server;
use std::cell::RefCell;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

/// Where a thread is at home.
struct Home {
    server: Weak<Server>,
    worker: usize,
}

thread_local! {
    static HOME: RefCell<Option<Home>> = const { RefCell::new(None) };
}

/// The server that started last, for threads that are no workers.
static LATEST: Mutex<Weak<Server>> = Mutex::new(Weak::new());

/// This thread is a worker from here on.
pub(crate) fn note_worker(server: &Arc<Server>, worker: usize) {
    HOME.set(Some(Home { server: Arc::downgrade(server), worker }));
}

/// This server is told of panics anywhere.
pub(crate) fn note_server(server: &Arc<Server>) {
    if let Ok(mut latest) = LATEST.lock() {
        *latest = Arc::downgrade(server);
    }
}

/// A report takes no longer. Who writes it may have to wait for others: for a reader of standard output, for
/// a disk.
const REPORT_SECONDS: u32 = 30;

/// From here on a panic anywhere in the process is reported in the log and ends it. For the program; tests in
/// one process want their panics.
pub fn report_crashes() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        static IS_REPORTING: AtomicBool = AtomicBool::new(false);
        while IS_REPORTING.swap(true, Relaxed) {
            // Another thread reports, and then ends the process. Should this one panic while it reports, that
            // ends it before it comes here.
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

fn cause(panic: &PanicHookInfo<'_>) -> String {
    let what = panic.payload_as_str().unwrap_or("a panic without words");
    match panic.location() {
        Some(place) => format!("{what} ({place})"),
        None => what.into(),
    }
}
