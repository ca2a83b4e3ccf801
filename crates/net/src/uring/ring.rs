//! The two rings: entries in, completions out, and the one system call between them.
//!
//! Set up with SINGLE_ISSUER and DEFER_TASKRUN: completions are made only while the owner waits for them, in
//! its own context, so nothing interrupts it and nothing is shared. The kernel then accepts calls from one
//! thread only. An engine is opened on one thread and driven by another, so the rings start disabled, and the
//! first `enter` enables them for its caller. Both flags came with Linux 6.1, as the last of all that the
//! engine needs.
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, Submitter, cqueue, squeue};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// Entries that one call can take; more wait in `backlog` for a further call.
const SUBMISSIONS: u32 = 512;
/// The kernel keeps what does not fit and hands it over later, at a cost.
const COMPLETIONS: u32 = 4096;

/// Of all that has happened, Linux makes completions of so many things in a call, or of as many as the call
/// waits for, and leaves the others to the next call.
const MADE_BY_A_CALL: usize = 20;
/// Each of these brings another batch of them.
const FURTHER_CALLS_MAX: usize = 64;

// Of the kernel's io_uring.h; the crate keeps its copies to itself.
const ENTER_GETEVENTS: u32 = 1;
const ENTER_EXT_ARG: u32 = 8;

pub(super) struct Ring {
    ring: IoUring,
    is_enabled: bool,
    /// What found no room, in order.
    backlog: VecDeque<squeue::Entry>,
}

impl Ring {
    /// Both rings, disabled until the first `enter`. An error where the kernel lacks something that is
    /// needed.
    pub(super) fn new() -> io::Result<Ring> {
        let ring = IoUring::builder()
            .setup_r_disabled()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .dontfork()
            .build(SUBMISSIONS)?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "io_uring lacks EXT_ARG or NODROP"));
        }
        Ok(Ring { ring, is_enabled: false, backlog: VecDeque::new() })
    }

    /// For registering buffers.
    pub(super) fn submitter(&self) -> Submitter<'_> {
        self.ring.submitter()
    }

    /// Queues an entry for the next `enter`.
    ///
    /// # Safety
    ///
    /// What the entry points to stays where it is, readable or writable as the operation wants, until its
    /// last completion has been taken.
    pub(super) unsafe fn push(&mut self, entry: squeue::Entry) {
        // SAFETY: as demanded of the caller.
        if !self.backlog.is_empty() || unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.backlog.push_back(entry);
        }
    }

    /// Submits all that is queued and waits until `want` completions are there or `timeout` has passed. With
    /// `want` of 0 it only collects what is ready. That is all of it: where a call has brought as much as the
    /// kernel makes at a time there may be more.
    pub(super) fn enter(&mut self, want: usize, timeout: Option<Duration>) -> io::Result<()> {
        if !self.is_enabled {
            self.ring.submitter().register_enable_rings()?;
            self.is_enabled = true;
        }
        while !self.backlog.is_empty() {
            self.call(0, None)?;
            let before = self.backlog.len();
            self.refill();
            if self.backlog.len() == before {
                // The kernel takes nothing until completions are consumed.
                return Ok(());
            }
        }
        let want = want.min(COMPLETIONS as usize / 2);
        self.call(want, timeout)?;
        let (mut before, mut made) = (0, want.max(MADE_BY_A_CALL));
        for _ in 0..FURTHER_CALLS_MAX {
            let there = self.ring.completion().len();
            if there < before + made {
                break;
            }
            (before, made) = (there, MADE_BY_A_CALL);
            self.call(0, None)?;
        }
        Ok(())
    }

    /// Moves entries from the backlog to the ring, as many as find room.
    fn refill(&mut self) {
        let mut queue = self.ring.submission();
        while let Some(entry) = self.backlog.front() {
            // SAFETY: the caller of `push` has promised it for every entry of the backlog.
            if unsafe { queue.push(entry) }.is_err() {
                return;
            }
            self.backlog.pop_front();
        }
    }

    /// The system call.
    fn call(&mut self, want: usize, timeout: Option<Duration>) -> io::Result<()> {
        let to_submit = self.ring.submission().len() as u32;
        let time = timeout.map(Timespec::from);
        let mut args = SubmitArgs::new();
        if let Some(time) = &time {
            args = args.timespec(time);
        }
        let flags = ENTER_GETEVENTS | ENTER_EXT_ARG;
        // SAFETY: `args` and the time it names live through the call; EXT_ARG says that it is of this type.
        match unsafe { self.ring.submitter().enter(to_submit, want as u32, flags, Some(&args)) } {
            Ok(_) => Ok(()),
            Err(e) if is_no_failure(&e) => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// Moves the completions that are there into `into`.
    pub(super) fn take_completions(&mut self, into: &mut Vec<cqueue::Entry>) {
        into.extend(self.ring.completion());
    }
}

/// The time has passed, a signal came, or the kernel is short of something and takes the rest at the next
/// call.
fn is_no_failure(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN))
}
