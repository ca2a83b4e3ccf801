//! Waking an engine at a time.
//!
//! The timeout of `epoll_wait` is a timer that the kernel sets before every sleep and takes back after it,
//! which on a virtual machine costs two calls to the host. The alarm is a timer that stays set from one sleep
//! to the next, because the time that a worker waits for is mostly the same
//! (docs/decisions/a-timer-that-stays-set.md has the figures):
//!
//! ```text
//! quiet          `ring_by` sets it                                     -> set for T
//! set for T      `ring_by` a time from T on leaves it, earlier resets  -> set for T or earlier
//! set for T      T has come: the engine is woken, has seen it          -> quiet
//! ```
//!
//! So it may ring early, for a time that nobody waits for any more: once at most for each time that it was
//! set for.
//!
//! Times are those of the system's clock, by which deadlines of keys go. Setting that clock, forward or back,
//! rings the alarm at once, so that whoever waits looks at the new time. The engine watches it by edge and
//! never reads it.
use base::Millis;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

pub(crate) struct Alarm {
    fd: OwnedFd,
    set_for: Option<Millis>,
}

impl Alarm {
    /// A timer of the kernel that is not set.
    pub(crate) fn new() -> io::Result<Alarm> {
        // SAFETY: no pointers; the result is checked before it is used.
        let fd =
            unsafe { libc::timerfd_create(libc::CLOCK_REALTIME, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Alarm { fd, set_for: None })
    }

    /// Sets the alarm to ring at `due`, or earlier.
    pub(crate) fn ring_by(&mut self, due: Millis) -> io::Result<()> {
        match self.set_for {
            Some(set_for) if set_for <= due => Ok(()),
            _ => self.set(due),
        }
    }

    /// Sets the timer to an absolute time.
    #[cold]
    fn set(&mut self, due: Millis) -> io::Result<()> {
        let timer =
            libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: point(due) };
        let flags = libc::TFD_TIMER_ABSTIME | libc::TFD_TIMER_CANCEL_ON_SET;
        // SAFETY: `timer` lives through the call, which only reads it; what was set before is not asked for.
        if unsafe { libc::timerfd_settime(self.fd(), flags, &raw const timer, std::ptr::null_mut()) } != 0 {
            let error = io::Error::last_os_error();
            // Says that somebody has set the clock since the last call; the timer is set nevertheless.
            if error.raw_os_error() != Some(libc::ECANCELED) {
                return Err(error);
            }
        }
        self.set_for = Some(due);
        Ok(())
    }

    /// The engine has been woken by it.
    pub(crate) fn silence(&mut self) {
        self.set_for = None;
    }

    /// What the engine watches.
    pub(crate) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// A time as the kernel takes it. A time of 0 would mean "never", so it becomes a millisecond.
fn point(due: Millis) -> libc::timespec {
    let ms = due.0.max(1);
    libc::timespec { tv_sec: ms / 1000, tv_nsec: ms % 1000 * 1_000_000 }
}
