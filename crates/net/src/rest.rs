//! The pause in accepting after descriptors or memory have run out: trying again at once would spin.
//!
//! It is timed by the system's clock, as all waits of the engines are. A clock that is put
//! back meanwhile ends it.
use crate::now;
use base::Millis;
use std::io;

const REST_MS: i64 = 100;

#[derive(Default)]
pub(crate) struct Rest(Option<Millis>);

impl Rest {
    /// Whether accepting failed so that it has to rest.
    pub(crate) fn is_needed(error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
    }

    pub(crate) fn begin(&mut self) {
        self.0 = now().checked_add(REST_MS);
    }

    /// Until when it lasts; None when it is over, or was none.
    pub(crate) fn until(&self) -> Option<Millis> {
        self.0.filter(|until| (1..=REST_MS).contains(&until.since(now())))
    }

    /// Whether it was there and is over: told once.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.until().is_none() && self.0.take().is_some()
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }
}
