//! What is known of a request that writes on another thread, until it has taken effect. What happens with it
//! is in `dispatch::writing`; `lent` carries it to the thread and back.
use crate::core::server::Server;
use command::{Effects, Long, Words};
use std::sync::Arc;
use store::{Before, Made};

/// A request that writes elsewhere.
pub(crate) struct Writing {
    pub(in crate::core) long: Long,
    /// Where its keys are among its arguments.
    pub(in crate::core) positions: Vec<u32>,
    pub(in crate::core) before: Before,
    pub(in crate::core) made: Made,
    /// What it tells the journal, and in which words; None where nobody read it when the request began.
    pub(in crate::core) effects: Option<(Effects, Words)>,
    /// It has found nothing there, and would wait for its keys.
    pub(in crate::core) waits: bool,
    pub(in crate::core) tries: u32,
    #[expect(dead_code, reason = "its end lets the keys go")]
    pub(in crate::core) hold: Hold,
}

/// Keys that are held back from others that may change them, until it is dropped.
pub(in crate::core) struct Hold {
    server: Arc<Server>,
    db: u16,
    names: Vec<Vec<u8>>,
}

impl Hold {
    /// From here on.
    pub(in crate::core) fn new(server: Arc<Server>, db: u16, names: Vec<Vec<u8>>) -> Hold {
        server.moving.hold(db, &names);
        Hold { server, db, names }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.server.moving.let_go(self.db, &self.names);
    }
}

/// What has become of a request that has run elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Committed {
    Done,
    /// It cannot be now.
    Later,
    /// A part of it is, and the next can be when others have had their turn.
    Partly,
    /// It runs again.
    Anew,
}
