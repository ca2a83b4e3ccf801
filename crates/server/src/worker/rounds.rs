//! Who waits for whom in one round of the event loop. A round goes on with some connections of which
//! something is left, then receives from those that have sent something, and has all of their requests run; a
//! reply leaves at its end at the latest. So a client that sends one request waits for about two rounds, and
//! with a thousand pipelines, each of which may run for a millisecond, these would be seconds.
//!
//! ```text
//! left over:   p1 p2 p3 p4 | p5 p6 ...           four have a turn, the others wait for the next rounds
//! has arrived: r1 P7 r2 r3 P8 | r4 P9 r5         the round has taken long: P9 waits with those left over,
//!                                                r4 and r5 are short and run
//! ```
//!
//! Nobody starves: those left over have their turns in the order in which they came.
use super::batch::{RECEIVE_BYTES, Turn};
use super::{Worker, note};
use net::{Meter, Tick};
use std::hint::cold_path;

/// How many connections of which requests, or the rest of a reply, are left have a turn before others are
/// served.
pub(super) const LEFT_IN_A_ROW: usize = 4;
/// A round that has taken so long puts off what has sent much.
const LONG_ROUND_NS: u64 = if cfg!(debug_assertions) { 0 } else { 10_000_000 };
/// What has sent as much as this at a time has much to do.
const MUCH_BYTES: usize = if cfg!(debug_assertions) { 1 << 10 } else { 16 << 10 };

/// As much is received of a client in a round that is late. Of what is encrypted less comes out, by up to a
/// record of 16 KB that is not whole.
const LATE_BYTES: usize = 2 * MUCH_BYTES;

/// The present round.
pub(super) struct Round {
    pub(super) start: Tick,
    long_ticks: u64,
    /// Somebody was put off in it: what others have sent will have to wait too.
    is_late: bool,
}

impl Round {
    pub(super) fn new(meter: Meter) -> Round {
        Round { start: meter.read(), long_ticks: meter.ticks(LONG_ROUND_NS), is_late: false }
    }

    /// The next one.
    pub(super) fn begin(&mut self, start: Tick) {
        (self.start, self.is_late) = (start, false);
    }

    /// How much to receive from a client at a time. What will wait is left to the system, but for so much
    /// that it is seen to be much, and that it runs though its client goes meanwhile (`disconnected`).
    pub(super) fn receive_bytes(&self) -> usize {
        if self.is_late { LATE_BYTES } else { RECEIVE_BYTES }
    }

    /// Whether these requests, which have just arrived, are to wait for the next rounds. Not where none is
    /// whole, which takes no time; and bytes that are no request may have been decoded in place, and would be
    /// read as something else then.
    #[inline]
    pub(super) fn puts_off(&mut self, turn: &Turn, request_bytes: usize, meter: Meter) -> bool {
        if request_bytes < MUCH_BYTES {
            return false;
        }
        cold_path();
        let may_wait = turn.is_new() && !turn.requests.is_empty() && !turn.is_unauthenticated;
        let puts_off = may_wait && meter.read().since(self.start) >= self.long_ticks;
        self.is_late |= puts_off;
        puts_off
    }
}

impl Worker<'_> {
    /// Leaves the requests of this turn to the next rounds.
    #[cold]
    pub(super) fn put_off(&mut self, turn: &Turn) {
        let Some(connection) = self.table.at(turn.id) else { return };
        self.batch.keep_requests(turn, connection);
        note(connection, 0, self.executor.steady(), self.executor.counters());
        self.settle(turn, true);
    }
}
