//! SIGTERM and SIGINT end the server as SHUTDOWN would, with the words that `shutdown-on-sigterm` and
//! `shutdown-on-sigint` have.
//!
//! Signals are blocked in every thread and waited for by one, so that no code ever runs inside a signal
//! handler. What a signal asks for is done by another thread, because it may take long: all gates have to be
//! free, and the data has to be saved. A SIGINT meanwhile ends the process at once.
//!
//! ```text
//! nobody asks -- SIGTERM, SIGINT --> asked -- alone, and saved --> the server ends
//!     ^                               |  |
//!     |-- cannot be saved ------------|  \-- SIGINT --> the process ends, with status 1
//!     \-- SHUTDOWN ABORT -------------/
//! ```
use crate::core::persistence::save_to_end;
use crate::core::server::Server;
use crate::start::Stopper;
use nix::sys::signal::{SigSet, Signal};
use std::sync::Arc;

/// They end the server.
const ENDING: [Signal; 2] = [Signal::SIGTERM, Signal::SIGINT];

/// They are blocked and never acted on: a terminal that goes away does not take the server along, a limit on
/// the size of files (`ulimit -f`) is an error of the write that passes it, and a timer or an operator's
/// SIGUSR2 that was meant for another process does no harm.
const IGNORED: [Signal; 4] = [Signal::SIGHUP, Signal::SIGXFSZ, Signal::SIGALRM, Signal::SIGUSR2];

/// The signals that end the server, blocked: from here on they wait for [`Signals::end`].
pub struct Signals(SigSet);

impl Signals {
    /// Blocks them in this thread. To be called before any thread is started, because threads inherit what is
    /// blocked.
    pub fn block() -> std::io::Result<Signals> {
        let set = SigSet::from_iter(ENDING.into_iter().chain(IGNORED));
        set.thread_block()?;
        Ok(Signals(set))
    }

    /// Starts a thread that ends this server when a signal comes.
    pub fn end(self, server: Stopper) -> std::io::Result<()> {
        let wait = move || self.wait(server.server());
        std::thread::Builder::new().name("sardine-signal".into()).spawn(wait)?;
        Ok(())
    }

    fn wait(self, server: &Arc<Server>) {
        while let Ok(signal) = self.0.wait() {
            if ENDING.contains(&signal) {
                heed(server, signal);
            }
        }
    }
}

/// A signal asks for the end of the server.
fn heed(server: &Arc<Server>, signal: Signal) {
    let was_asked = server.ending.ask(signal);
    if was_asked && signal == Signal::SIGINT {
        server.log.warning("You insist... exiting now.");
        server.persistence.disk.remove_unfinished();
        std::process::exit(1);
    }
    server.log.warning(&format!("Received {signal} scheduling shutdown..."));
    if was_asked {
        return;
    }
    let shared = Arc::clone(server);
    if std::thread::Builder::new().name("sardine-ending".into()).spawn(move || end(&shared)).is_err() {
        // Without a thread for it, signals wait until it is done.
        end(server);
    }
}

/// Ends the server as the settings want it for the signal that has asked for it. The server goes on if it was
/// to save and cannot, and if SHUTDOWN ABORT was there before all gates were free.
fn end(server: &Server) {
    let all = server.enter_alone();
    // SHUTDOWN, under which a script is given up, may have ended it meanwhile.
    let asked = server.ending.asked_by().filter(|_| !server.is_stopping());
    if let Some(signal) = asked {
        let config = server.config();
        let how = match signal {
            Signal::SIGINT => config.snapshots.on_interrupt,
            _ => config.snapshots.on_terminate,
        };
        if save_to_end(server, server.clock.now(), (how.saves, how.is_forced)) {
            server.stop(0);
        }
    }
    drop(all);
}
