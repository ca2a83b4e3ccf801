//! The time that commands see. It is read once a turn of the event loop, so that no command pays for it; and
//! again in the middle of one where that has become long ago: a deadline that is set then counts from when
//! the command runs, not from before a script that it has waited for.
use super::Executor;
use crate::state::clock::Moment;
use base::Millis;
use std::hint::cold_path;
use store::BEFORE_ALL;

impl Executor<'_> {
    /// The wall clock of the commands that run now.
    pub(crate) fn now(&self) -> Millis {
        self.now.wall
    }

    /// Both clocks of the commands that run now.
    pub(crate) fn moment(&self) -> Moment {
        self.now
    }

    /// Their steady clock: it measures how long something takes.
    pub(crate) fn steady(&self) -> Millis {
        self.now.steady
    }

    /// Sets the time that commands see from here on, and takes up the configuration in force.
    pub(crate) fn set_now(&mut self, now: Moment) {
        (self.now, self.now_mark) = (now, self.meter.read());
        self.refresh_config();
        self.heed_policy();
    }

    /// Before a connection's turn, which begins at `mark`: connections that were served before it, in the
    /// same turn of the event loop, may have taken long.
    #[inline]
    pub(super) fn keep_time(&mut self) {
        if self.mark.since(self.now_mark) >= self.turn_ticks {
            cold_path();
            self.look_at_clock();
        }
    }

    /// Reads the clock anew, in the middle of a turn of the event loop: this worker has waited for others, or
    /// has served those before for long. Where time stands it stays so.
    #[cold]
    pub(super) fn look_at_clock(&mut self) {
        if self.now.wall != BEFORE_ALL {
            self.now = self.server.clock.moment(self.now);
        }
        self.now_mark = self.meter.read();
    }
}
