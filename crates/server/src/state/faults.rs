//! A disk that fails when tests want it to (`DEBUG DISK`). What the server writes to its files asks here
//! first, which costs a load for each call of the system.
use std::io;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::Duration;

/// How the disk behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// It takes a part of what is written, and then no more.
    Full,
    /// It takes nothing.
    Broken,
    /// It takes what is written, and cannot put it where it lasts.
    Forgetful,
    /// Whoever appends to a file waits until this changes. Snapshots are written.
    Stuck,
}

/// All of them, by the word for each.
pub(crate) const FAULTS: [(&str, Fault); 5] = [
    ("OK", Fault::None),
    ("FULL", Fault::Full),
    ("BROKEN", Fault::Broken),
    ("FORGETFUL", Fault::Forgetful),
    ("STUCK", Fault::Stuck),
];

/// What the system says of them.
const ENOSPC: i32 = 28;
const EIO: i32 = 5;
/// How often whoever is stuck looks.
const STUCK_LOOK: Duration = Duration::from_millis(1);

/// How the disk behaves now.
#[derive(Default)]
pub(crate) struct Faults(AtomicU8);

impl Faults {
    pub(crate) fn set(&self, fault: Fault) {
        self.0.store(fault as u8, Relaxed);
    }

    fn get(&self) -> Fault {
        let now = self.0.load(Relaxed);
        FAULTS.into_iter().find(|(_, fault)| *fault as u8 == now).map_or(Fault::None, |(_, fault)| fault)
    }

    /// Before so many bytes are written: how many of them may be.
    #[inline]
    pub(crate) fn before_write(&self, len: usize) -> io::Result<usize> {
        match self.0.load(Relaxed) {
            0 => Ok(len),
            _ => self.fail_write(len),
        }
    }

    #[cold]
    fn fail_write(&self, len: usize) -> io::Result<usize> {
        match self.get() {
            Fault::Full if len > 1 => Ok(len / 2),
            Fault::Full => Err(io::Error::from_raw_os_error(ENOSPC)),
            Fault::Broken => Err(io::Error::from_raw_os_error(EIO)),
            Fault::None | Fault::Forgetful | Fault::Stuck => Ok(len),
        }
    }

    /// Before what was written is put on the disk.
    #[inline]
    pub(crate) fn before_sync(&self) -> io::Result<()> {
        if self.0.load(Relaxed) == 0 {
            return Ok(());
        }
        match self.get() {
            Fault::Forgetful | Fault::Broken => Err(io::Error::from_raw_os_error(EIO)),
            Fault::None | Fault::Full | Fault::Stuck => Ok(()),
        }
    }

    /// Before something is appended.
    pub(crate) fn wait_while_stuck(&self) {
        while self.get() == Fault::Stuck {
            std::thread::park_timeout(STUCK_LOOK);
        }
    }
}
