//! What the log says when the server stops by a fault of its own: what it was doing, for whom, on which
//! worker, and under which locks. It is written on the thread that failed, which still holds its locks: so it
//! never waits for a lock, and names the shards that are locked. Workers note whom they serve once for each
//! connection's turn, and dispatch notes the command in the client's record anyway; a request pays nothing
//! for this.
use super::server::Server;
use super::session::ClientRecord;
use crate::state::system::pidfile::PidFile;
use crate::state::system::resident_bytes;
use std::backtrace::Backtrace;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

/// Writes the report, unless `crash-log-enabled` says no, and removes the pid file of a server in the
/// background. `cause` says what happened. `worker` is the one on whose thread this runs, if it is one.
/// Returns whether the report was written.
pub(crate) fn report(server: &Server, worker: Option<usize>, cause: &str) -> bool {
    let config = server.try_config();
    if config.as_ref().is_some_and(|config| !config.crash_log) {
        return false;
    }
    // Read before the backtrace is made, which would count as used memory.
    let facts = facts(server);
    let mut text = String::from("\n\n=== SARDINE BUG REPORT START: Cut & paste starting from here ===\n");
    let _ = writeln!(text, "Sardine {} crashed: {cause}", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(text, "\n------ STACK TRACE ------\n{}", Backtrace::force_capture());
    text.push_str("\n------ EXECUTING ------\n");
    let hides_user = config.as_ref().is_none_or(|config| config.hide_user_data);
    executing(&mut text, server, worker, hides_user);
    text.push_str("\n------ SERVER ------\n");
    text.push_str(&facts);
    if let Some(config) = &config {
        text.push_str("\n------ CONFIG ------\n");
        text.push_str(&config.told_in_reports());
        PidFile::forget(config);
    }
    text.push_str("\n=== SARDINE BUG REPORT END. Please report the crash with all of the above ===\n");
    server.log.emergency(&text)
}

/// The thread, its client, the command, the shards that somebody holds.
fn executing(text: &mut String, server: &Server, worker: Option<usize>, hides_user: bool) {
    let thread = std::thread::current();
    let _ = writeln!(text, "thread: {}", thread.name().unwrap_or("without a name"));
    if let Some(worker) = worker {
        let _ = writeln!(text, "worker: {worker} of {}", server.mailboxes.len());
        let id = server.counters.0[worker].serving.load(Relaxed);
        let record = server.clients.try_lock().ok().and_then(|clients| clients.get(&id).cloned());
        match record {
            Some(record) => client(text, server, &record, hides_user),
            None => text.push_str("client: none that is known\n"),
        }
    }
    let _ = writeln!(text, "locked shards: {:?} of {}", server.keyspace.locked(), server.keyspace.shards());
}

/// What is known of the client that is served. `hides_user` leaves out all that it has said about itself.
fn client(text: &mut String, server: &Server, record: &ClientRecord, hides_user: bool) {
    match record.last_row.load(Relaxed) {
        ClientRecord::NO_COMMAND => text.push_str("command: none yet\n"),
        row => {
            let _ = writeln!(text, "command: {}", server.registry.row(row as usize).full_name);
        }
    }
    let commands = record.commands.load(Relaxed);
    let _ = write!(text, "client: id={} fd={} commands before this turn={commands}", record.id, record.fd);
    if let (false, Ok(details)) = (hides_user, record.details.try_lock()) {
        let name = String::from_utf8_lossy(&details.name);
        let lib = String::from_utf8_lossy(&details.lib_name);
        let (addr, laddr) = record.addresses();
        let _ = write!(text, " addr={addr} laddr={laddr} db={} name={name} lib-name={lib}", details.db);
    }
    text.push('\n');
}

/// Figures of the server, a line each, named as in INFO.
fn facts(server: &Server) -> String {
    let numbers = [
        ("process_id", u64::from(std::process::id())),
        ("uptime_in_seconds", server.uptime_s()),
        ("worker_threads", server.mailboxes.len() as u64),
        ("used_memory", pack::counted::used_bytes() as u64),
        ("used_memory_peak", pack::counted::peak_bytes() as u64),
        ("used_memory_rss", resident_bytes()),
    ];
    let mut text: String = numbers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let _ = writeln!(text, "multiplexing_api:{}\nrun_id:{}", server.engine_name, server.run_id);
    text
}
