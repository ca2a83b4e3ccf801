//! The script that runs for longer than `busy-reply-threshold`, if one does. Until then nobody asks: whoever
//! would is waiting for it.
//!
//! ```text
//! nothing --- it is slow: begin ---> running --- the first write ---> has written (UNKILLABLE)
//!                                       \--- SCRIPT KILL, FUNCTION KILL ---> killed: it ends when it is
//!                                                                            asked next
//! ```
//!
//! Both arrows away from "running" go through one lock, so a script that was told to end has written nothing.
use crate::state::gate::Gates;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a running script was called by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Script,
    Function,
}

/// A script that runs for long.
#[derive(Clone, Debug)]
pub(crate) struct Slow {
    pub(crate) kind: Kind,
    /// Of the function; empty for a script.
    pub(crate) name: Vec<u8>,
    /// The request that has called it.
    pub(crate) command: Vec<Vec<u8>>,
    /// By the steady time.
    pub(crate) began_us: i64,
    pub(crate) has_written: bool,
    pub(crate) is_killed: bool,
}

/// What became of the wish to end a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kill {
    Done,
    NothingRuns,
    /// It has written already.
    TooLate,
    /// The other kind runs.
    OtherKind,
}

/// See the file's opener.
#[derive(Default)]
pub(crate) struct Running {
    slow: Mutex<Option<Slow>>,
    /// The last one that was slow was a function. Its kind is asked for until the gates are open.
    was_function: AtomicBool,
}

impl Running {
    /// A script is slow from here on.
    pub(crate) fn begin(&self, slow: Slow) {
        self.was_function.store(slow.kind == Kind::Function, Relaxed);
        *self.slow() = Some(slow);
    }

    /// It has ended.
    pub(crate) fn end(&self) {
        *self.slow() = None;
    }

    /// The script is about to write. False if it was killed before.
    pub(crate) fn may_write(&self) -> bool {
        match self.slow().as_mut() {
            Some(slow) if slow.is_killed => false,
            Some(slow) => {
                slow.has_written = true;
                true
            }
            None => true,
        }
    }

    /// Whether it was told to end.
    pub(crate) fn is_killed(&self) -> bool {
        self.slow().as_ref().is_some_and(|slow| slow.is_killed)
    }

    /// SCRIPT KILL, FUNCTION KILL. Whoever comes now waits for the moment that the script still takes, and is
    /// not told to try again later. The lock is held meanwhile, so it is never the end of the next slow
    /// script that is expected.
    pub(crate) fn kill(&self, kind: Kind, gates: &Gates) -> Kill {
        match self.slow().as_mut() {
            None => Kill::NothingRuns,
            Some(slow) if slow.has_written => Kill::TooLate,
            Some(slow) if slow.kind != kind => Kill::OtherKind,
            Some(slow) => {
                // Only the first has others wait: who kills again and again does not hold them up.
                if !std::mem::replace(&mut slow.is_killed, true) {
                    gates.expect_end();
                }
                Kill::Done
            }
        }
    }

    /// The script that runs for long.
    pub(crate) fn slow(&self) -> MutexGuard<'_, Option<Slow>> {
        self.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What kind of script runs for long, or has just ended.
    pub(crate) fn kind(&self) -> Kind {
        if self.was_function.load(Relaxed) { Kind::Function } else { Kind::Script }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow() -> Slow {
        let (name, command) = (Vec::new(), Vec::new());
        Slow { kind: Kind::Script, name, command, began_us: 0, has_written: false, is_killed: false }
    }

    #[test]
    fn a_script_is_killed_or_writes_and_never_both() {
        let (running, gates) = (Running::default(), Gates::new(1));
        assert_eq!(running.kill(Kind::Script, &gates), Kill::NothingRuns);
        running.begin(slow());
        gates.leave_ajar();
        assert_eq!(running.kill(Kind::Function, &gates), Kill::OtherKind);
        assert!(!running.is_killed() && gates.is_ajar());
        assert_eq!(running.kill(Kind::Script, &gates), Kill::Done);
        assert!(running.is_killed() && !running.may_write());
        running.begin(slow());
        assert!(running.may_write());
        assert_eq!(running.kill(Kind::Script, &gates), Kill::TooLate);
        assert_eq!(running.kill(Kind::Function, &gates), Kill::TooLate);
        running.end();
        assert_eq!(running.kill(Kind::Script, &gates), Kill::NothingRuns);
        running.begin(Slow { kind: Kind::Function, ..slow() });
        running.end();
        assert_eq!(running.kind(), Kind::Function);
    }
}
