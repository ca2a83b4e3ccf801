//! The background thread. Large values that left the keyspace come here (`state/background.rs`), so that no
//! worker pays for their size. It also gives the pages of free blocks back to the system, which takes about a
//! millisecond for 4 MB, puts full extents into huge pages, and moves data together (`defrag.rs`) when
//! nothing waits to be freed.
use crate::core::server::Server;
use crate::service::defrag::{self, Defrag, Next, Surroundings};
use crate::state::background::{Job, Jobs};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

/// How many free blocks of each stripe of the arena have their pages given back at a time.
const PURGED_BLOCKS: usize = 64;

/// Starts the thread. It ends when it is told to, after it has freed what it was given before. The server
/// owns it, so it does not keep the server alive.
pub(crate) fn start(jobs: Jobs, server: &Arc<Server>) -> std::io::Result<JoinHandle<()>> {
    let server = Arc::downgrade(server);
    std::thread::Builder::new().name("sardine-free".into()).spawn(move || work(&jobs, &server))
}

/// Does one job after the other.
fn work(jobs: &Jobs, server: &Weak<Server>) {
    let (mut defrag, mut next, meter) = (Defrag::new(), Next::Asked, net::Meter::new());
    while let Some(job) = await_job(jobs, next) {
        match job {
            Job::Free(piece, bytes) => {
                pack::counted::drop_of(bytes.max(0) as u64, piece);
                jobs.note_freed(bytes);
            }
            Job::Purge => {
                pack::arena::purge(PURGED_BLOCKS);
                jobs.note_purged();
            }
            Job::Trim => {
                // Before the work: what is freed from here on may be asked for again.
                jobs.note_trimmed();
                pack::arena::trim();
            }
            Job::Unite(pages) => {
                let began = meter.read();
                let made = pack::arena::unite(pages);
                jobs.note_united(made, meter.ns(meter.read().since(began)) / 1000);
            }
            Job::Defrag => {
                next = server.upgrade().map_or(Next::Asked, |server| turn(&mut defrag, &server));
                jobs.note_defrag(next != Next::Asked);
            }
            Job::EndChange => {
                if let Some(server) = server.upgrade() {
                    server.keyspace.end_change_of_uses();
                }
                jobs.note_change_ended();
            }
            Job::End => break,
        }
    }
}

/// Takes a turn of defragmentation, with the settings in force. Returns when the next one is due.
fn turn(defrag: &mut Defrag, server: &Server) -> Next {
    let Server { keyspace, log, defrag: stats, .. } = server;
    defrag.turn(&Surroundings { keyspace, log, stats, settings: server.config().defrag })
}

/// The next job, waited for; freeing comes before moving unless it is time for that. None when nobody can ask
/// for anything any more.
fn await_job(jobs: &Jobs, next: Next) -> Option<Job> {
    match next {
        Next::Asked => jobs.next(),
        Next::At(time) => jobs.next_or_defrag_in(defrag::until(time)),
    }
}
