//! A sync that another thread waits for, while the writer goes on: what is answered meanwhile is in the file,
//! though not on the disk yet, and outlives the process.
//!
//! The thread has a descriptor of its own, opened anew. That a disk has failed is told to each such
//! descriptor once, so the writer hears of it from its own as well.
use super::appended::Appended;
use crate::state::clock::Stopwatch;
use crate::state::journal::Journal;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

/// See the file's opener.
pub(super) struct Aside {
    /// The records below this number are what it puts on the disk.
    pub(super) end: u64,
    began: Stopwatch,
    ended: Receiver<io::Result<()>>,
}

impl Aside {
    /// Begins: the file has the records below `end`. When it has ended the thread of the journal looks.
    pub(super) fn begin(file: &Appended, end: u64, journal: &Arc<Journal>) -> io::Result<Aside> {
        let (file, journal) = (file.again()?, Arc::clone(journal));
        let (tell, ended) = sync_channel(1);
        let work = move || {
            let done = file.sync();
            let is_done = done.is_ok();
            // Nobody listens where the file was turned off.
            let _ = tell.send(done);
            journal.look_again();
            if is_done {
                file.0.leave_memory();
            }
        };
        std::thread::Builder::new().name("sardine-sync".into()).spawn(work)?;
        Ok(Aside { end, began: Stopwatch::start(), ended })
    }

    /// How long it has taken so far.
    pub(super) fn age(&self) -> Duration {
        Duration::from_nanos(self.began.elapsed_ns())
    }

    /// What it has come to, if it has ended.
    pub(super) fn outcome(&self) -> Option<io::Result<()>> {
        match self.ended.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(died())),
        }
    }

    /// Waits until it has ended.
    pub(super) fn wait(&self) -> io::Result<()> {
        self.ended.recv().unwrap_or_else(|_| Err(died()))
    }
}

fn died() -> io::Error {
    io::Error::other("the thread that waited for the disk has died")
}
