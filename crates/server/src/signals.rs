//! SIGTERM and SIGINT end the server as SHUTDOWN would, with the words that `shutdown-on-sigterm` and
//! `shutdown-on-sigint` have.
//!
//! Signals are blocked in every thread and waited for by one, so that no code ever runs inside a signal
//! handler. A second SIGINT ends the process at once.
use crate::start::Stopper;
use nix::sys::signal::{SigSet, Signal};

/// The signals that end the server, blocked: from here on they wait for [`Signals::end`].
pub struct Signals(SigSet);

impl Signals {
    /// Blocks them in this thread. To be called before any thread is started, because threads inherit what is
    /// blocked.
    pub fn block() -> std::io::Result<Signals> {
        // These two are blocked and never acted on: a terminal that goes away does not take the server along,
        // and a limit on the size of files (`ulimit -f`) is an error of the write that passes it.
        let ignored = [Signal::SIGHUP, Signal::SIGXFSZ];
        let set = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT].into_iter().chain(ignored));
        set.thread_block()?;
        Ok(Signals(set))
    }

    /// Starts a thread that ends this server when a signal comes.
    pub fn end(self, server: Stopper) -> std::io::Result<()> {
        std::thread::Builder::new().name("sardine-signal".into()).spawn(move || self.wait(&server))?;
        Ok(())
    }

    fn wait(self, server: &Stopper) {
        let mut interrupts = 0;
        while let Ok(signal) = self.0.wait() {
            match signal {
                Signal::SIGINT if interrupts > 0 => {
                    server.log().warning("You insist... exiting now.");
                    std::process::exit(1);
                }
                Signal::SIGINT | Signal::SIGTERM => {
                    interrupts += usize::from(signal == Signal::SIGINT);
                    server.log().warning(&format!("Received {signal} scheduling shutdown..."));
                    server.stop_by(signal);
                }
                _ => {}
            }
        }
    }
}
