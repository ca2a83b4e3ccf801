//! The pause in accepting after descriptors or memory have run out. Without it the engine would try again at
//! once, and go on trying for as long as the shortage lasts.
//!
//! The pause is timed by the system's clock, as all waits of the engines are. Putting the clock back ends it.
use crate::now;
use base::Millis;
use std::io;

const PAUSE_MS: i64 = 100;

#[derive(Default)]
pub(crate) struct AcceptPause(Option<Millis>);

impl AcceptPause {
    /// Whether accepting has failed for want of descriptors or memory.
    pub(crate) fn is_needed(error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
    }

    /// Begins a pause now.
    pub(crate) fn begin(&mut self) {
        self.0 = now().checked_add(PAUSE_MS);
    }

    /// Until when the pause lasts; None when it is over, or there was none.
    pub(crate) fn until(&self) -> Option<Millis> {
        self.0.filter(|until| (1..=PAUSE_MS).contains(&until.since(now())))
    }

    /// Whether there was a pause that is over. True once for each pause.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.until().is_none() && self.0.take().is_some()
    }

    /// Whether there is a pause, or one has ended that nobody has asked for yet.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }
}
