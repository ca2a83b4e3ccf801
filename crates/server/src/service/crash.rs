//! The crash report: when the server stops by a fault of its own, the log says what it was doing.
//!
//! A panic hook writes it, on the thread that panicked, while the locks which that thread held are still held: so it only
//! tries locks, and names the shards that are taken. Memory for the report comes from a stripe of the arena whose lock is free.
//! Of several threads that panic at once one reports and the others stand still; whatever holds that one up, an alarm ends the process. Workers note whom they serve once for each connection's turn, and
//! dispatch notes the command in the client's record anyway; a request pays nothing for this. The process then ends by
//! abort, so that the system keeps a core if it is told to.
//!
//! A fault in memory (SIGSEGV) gets no report: its handler would need unsafe code. DEBUG SEGFAULT writes one first.
use crate::PidFile;
use crate::core::call::ServerCall;
use crate::core::session::ClientRecord;
use crate::core::shared::Shared;
use command::{Done, Error};
use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::fmt::Write;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

/// Where a thread is at home.
struct Home {
    shared: Weak<Shared>,
    worker: usize,
}

thread_local! {
    static HOME: RefCell<Option<Home>> = const { RefCell::new(None) };
}

/// The server that started last, for threads that are no workers.
static LATEST: Mutex<Weak<Shared>> = Mutex::new(Weak::new());

/// This thread is a worker from here on.
pub(crate) fn note_worker(shared: &Arc<Shared>, worker: usize) {
    HOME.set(Some(Home { shared: Arc::downgrade(shared), worker }));
}

/// This server is told of panics anywhere.
pub(crate) fn note_server(shared: &Arc<Shared>) {
    if let Ok(mut latest) = LATEST.lock() {
        *latest = Arc::downgrade(shared);
    }
}

/// A report takes no longer. Who writes it may have to wait for others: for a reader of standard output, for a disk.
const REPORT_SECONDS: u32 = 30;

/// From here on a panic anywhere in the process is reported in the log and ends it. For the program; tests in one process
/// want their panics.
pub fn report_crashes() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        static IS_REPORTING: AtomicBool = AtomicBool::new(false);
        while IS_REPORTING.swap(true, Relaxed) {
            // Another thread reports, and then ends the process. Should this one panic while it reports, that ends it before it comes here.
            std::thread::park();
        }
        nix::unistd::alarm::set(REPORT_SECONDS);
        let reported = home().is_some_and(|(shared, worker)| report(&shared, worker, &cause(panic)));
        if !reported {
            usual(panic);
        }
        std::process::abort();
    }));
}

/// The server of this thread, and which worker it is.
fn home() -> Option<(Arc<Shared>, Option<usize>)> {
    let worker = HOME
        .with_borrow(|home| home.as_ref().and_then(|home| Some((home.shared.upgrade()?, Some(home.worker)))));
    worker.or_else(|| Some((LATEST.try_lock().ok()?.upgrade()?, None)))
}

fn cause(panic: &PanicHookInfo<'_>) -> String {
    let what = panic.payload_as_str().unwrap_or("a panic without words");
    match panic.location() {
        Some(place) => format!("{what} ({place})"),
        None => what.into(),
    }
}

/// Whether it was written.
fn report(shared: &Shared, worker: Option<usize>, cause: &str) -> bool {
    let config = shared.try_config();
    if config.as_ref().is_some_and(|config| !config.crash_log) {
        return false;
    }
    // Before the backtrace is looked up, which takes memory of its own.
    let facts = facts(shared);
    let mut text = String::from("\n\n=== SARDINE BUG REPORT START: Cut & paste starting from here ===\n");
    let _ = writeln!(text, "Sardine {} crashed: {cause}", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(text, "\n------ STACK TRACE ------\n{}", Backtrace::force_capture());
    text.push_str("\n------ EXECUTING ------\n");
    let hides_user = config.as_ref().is_none_or(|config| config.hide_user_data);
    executing(&mut text, shared, worker, hides_user);
    text.push_str("\n------ SERVER ------\n");
    text.push_str(&facts);
    if let Some(config) = &config {
        text.push_str("\n------ CONFIG ------\n");
        text.push_str(&config.told_in_reports());
        PidFile::forget(config);
    }
    text.push_str("\n=== SARDINE BUG REPORT END. Please report the crash with all of the above ===\n");
    shared.log.emergency(&text)
}

/// The thread, its client, the command, the shards that somebody holds.
fn executing(text: &mut String, shared: &Shared, worker: Option<usize>, hides_user: bool) {
    let thread = std::thread::current();
    let _ = writeln!(text, "thread: {}", thread.name().unwrap_or("without a name"));
    if let Some(worker) = worker {
        let _ = writeln!(text, "worker: {worker} of {}", shared.posts.len());
        let id = shared.counters.0[worker].serving.load(Relaxed);
        let record = shared.clients.try_lock().ok().and_then(|clients| clients.get(&id).cloned());
        match record {
            Some(record) => client(text, shared, &record, hides_user),
            None => text.push_str("client: none that is known\n"),
        }
    }
    let _ = writeln!(text, "locked shards: {:?} of {}", shared.keyspace.locked(), shared.keyspace.shards());
}

fn client(text: &mut String, shared: &Shared, record: &ClientRecord, hides_user: bool) {
    match record.last_row.load(Relaxed) {
        ClientRecord::NO_COMMAND => text.push_str("command: none yet\n"),
        row => {
            let _ = writeln!(text, "command: {}", shared.registry.row(row as usize).full_name);
        }
    }
    let commands = record.commands.load(Relaxed);
    let _ = write!(text, "client: id={} fd={} commands before this turn={commands}", record.id, record.fd);
    if let (false, Ok(details)) = (hides_user, record.details.try_lock()) {
        let name = String::from_utf8_lossy(&details.name);
        let lib = String::from_utf8_lossy(&details.lib_name);
        let _ = write!(text, " {:?} db={} name={name} lib-name={lib}", record.peer, details.db);
    }
    text.push('\n');
}

/// A line each, named as in INFO.
fn facts(shared: &Shared) -> String {
    let numbers = [
        ("process_id", u64::from(std::process::id())),
        ("uptime_in_seconds", shared.uptime_s()),
        ("worker_threads", shared.posts.len() as u64),
        ("used_memory", pack::counted::used_bytes() as u64),
        ("used_memory_peak", pack::counted::peak_bytes() as u64),
        ("used_memory_rss", crate::state::system::resident_bytes()),
    ];
    let mut text: String = numbers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let _ = writeln!(text, "multiplexing_api:{}\nrun_id:{}", shared.engine_name, shared.run_id);
    text
}

/// DEBUG PANIC [ALLOCATOR]
pub(crate) fn panic(call: &mut ServerCall<'_>) -> Done {
    match call.args.iter_from(2).next() {
        None => panic!("DEBUG PANIC called"),
        Some(word) if word.eq_ignore_ascii_case(b"allocator") => pack::arena::panic_under_lock(),
        Some(_) => Err(Error::syntax()),
    }
}

/// DEBUG ASSERT
pub(crate) fn assert(_: &mut ServerCall<'_>) -> Done {
    let one_equals_two = std::hint::black_box(1) == 2;
    assert!(one_equals_two, "DEBUG ASSERT called");
    Ok(())
}

/// DEBUG SEGFAULT
pub(crate) fn segfault(call: &mut ServerCall<'_>) -> Done {
    use nix::sys::signal::{Signal, raise};
    let worker = call.session.record.worker;
    report(call.shared, Some(worker), "by signal 11, which DEBUG SEGFAULT raises");
    // Rust's own handler takes the first for a stack that has run over, and steps aside.
    while raise(Signal::SIGSEGV).is_ok() {}
    std::process::abort()
}
