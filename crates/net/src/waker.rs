//! Waking a worker that waits in `poll`, from any thread.
//!
//! An eventfd carries the wake-up; a flag keeps it to one system call however often `wake` is called before
//! the engine looks. States of the flag: *quiet* (a `wake` must write) and *rung* (a write has been made that
//! the engine has not yet reported). `wake` moves quiet to rung and writes; the engine moves rung to quiet,
//! then reports `Woken`. In that order: a `wake` after the move writes again, one before it is covered by the
//! report that follows.
//!
//! The engines watch the eventfd by edge, so its counter is never read back: every write is an edge of its
//! own.
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Wakes one engine's `poll` from any thread.
#[derive(Clone)]
pub struct Waker(Arc<Bell>);

struct Bell {
    fd: OwnedFd,
    is_rung: AtomicBool,
}

impl Waker {
    /// A waker of a new engine, quiet.
    pub(crate) fn new() -> io::Result<Waker> {
        // SAFETY: eventfd takes no pointers; the result is checked before it is used.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Waker(Arc::new(Bell { fd, is_rung: AtomicBool::new(false) })))
    }

    /// Has the engine's `poll` report `Woken`, now or at its next call. Costs a system call at most, and none
    /// while one is yet to be reported.
    pub fn wake(&self) {
        if !self.0.is_rung.swap(true, Ordering::SeqCst) {
            let one = 1u64;
            // SAFETY: eight readable bytes are passed, as eventfd wants. It can only fail when the counter
            // would pass 2^64 - 2, which takes centuries.
            unsafe { libc::write(self.fd(), (&raw const one).cast(), 8) };
        }
    }

    /// The engine is about to report `Woken`.
    pub(crate) fn silence(&self) {
        self.0.is_rung.store(false, Ordering::SeqCst);
    }

    /// What the engine watches.
    pub(crate) fn fd(&self) -> RawFd {
        self.0.fd.as_raw_fd()
    }
}
