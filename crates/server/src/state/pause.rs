//! CLIENT PAUSE: until when which requests are held back, in one word that every worker reads once a batch.
//!
//! ```text
//!  63                   1      0
//! +----------------------+-------+
//! | end, steady ms       |  all  |   0: nothing is held back
//! +----------------------+-------+
//! ```
//!
//! A worker that meets a request which has to wait parks its connection (`worker/park.rs`): what the client
//! has sent is kept, and the worker does not block. CLIENT PAUSE runs while no other worker executes, so when
//! its client reads OK no request that it holds back is still running. During a pause keys past their
//! deadlines are not removed, though nobody sees them: somebody who pauses clients, to fail over or to
//! compare data, wants data that does not change.
use base::Millis;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// See the file's opener.
#[derive(Default)]
pub(crate) struct Pause(AtomicU64);

/// Which requests wait, the fewest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Held {
    Nothing,
    /// Commands that may change data.
    Writes,
    Everything,
}

/// The latest end that a word can hold, in millions of years; later ones are taken for it.
const END_MS_MAX: u64 = u64::MAX >> 1;

impl Pause {
    /// Which requests wait at this steady time.
    pub(crate) fn held(&self, now: Millis) -> Held {
        match self.0.load(Relaxed) {
            0 => Held::Nothing,
            word if now.0 >= end(word).0 => Held::Nothing,
            word if word & 1 == 1 => Held::Everything,
            _ => Held::Writes,
        }
    }

    /// When the pause ends by itself; None where there is none. That time may have passed already.
    pub(crate) fn end(&self) -> Option<Millis> {
        let word = self.0.load(Relaxed);
        (word != 0).then(|| end(word))
    }

    /// A number that differs after every change of the pause: a worker compares it to see whether it has to
    /// look at its parked connections again.
    pub(crate) fn word(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Holds requests back until `until`; returns until when in fact, because a pause that is on is neither
    /// cut short nor made milder. Called while no other worker executes.
    pub(crate) fn start(&self, held: Held, until: Millis, now: Millis) -> Millis {
        let before = self.held(now);
        let until = match self.end() {
            Some(end) if before != Held::Nothing => end.max(until),
            _ => until,
        };
        let is_all = held.max(before) == Held::Everything;
        let end_ms = u64::try_from(until.0).unwrap_or(0).min(END_MS_MAX);
        self.0.store(end_ms << 1 | u64::from(is_all), Relaxed);
        until
    }

    /// Ends the pause.
    pub(crate) fn stop(&self) {
        self.0.store(0, Relaxed);
    }
}

fn end(word: u64) -> Millis {
    Millis((word >> 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_back_goes_on_when_its_time_has_come() {
        let pause = Pause::default();
        assert_eq!((pause.held(Millis(0)), pause.end()), (Held::Nothing, None));
        pause.start(Held::Writes, Millis(100), Millis(50));
        assert_eq!(pause.held(Millis(99)), Held::Writes);
        assert_eq!(pause.held(Millis(100)), Held::Nothing);
        pause.start(Held::Everything, Millis(200), Millis(100));
        assert_eq!(pause.held(Millis(199)), Held::Everything);
        pause.stop();
        assert_eq!(pause.held(Millis(150)), Held::Nothing);
    }

    #[test]
    fn a_pause_within_a_pause_makes_it_longer_or_stricter_only() {
        let pause = Pause::default();
        pause.start(Held::Everything, Millis(100), Millis(0));
        assert_eq!(pause.start(Held::Writes, Millis(50), Millis(1)), Millis(100));
        assert_eq!(pause.held(Millis(99)), Held::Everything);
        assert_eq!(pause.start(Held::Writes, Millis(500), Millis(1)), Millis(500));
        assert_eq!(pause.held(Millis(499)), Held::Everything);
        assert_eq!(pause.start(Held::Writes, Millis(600), Millis(550)), Millis(600));
        assert_eq!(pause.held(Millis(599)), Held::Writes, "the stricter one was over");
    }

    #[test]
    fn no_time_is_too_late() {
        let pause = Pause::default();
        assert_eq!(pause.start(Held::Writes, Millis(i64::MAX), Millis(0)), Millis(i64::MAX));
        assert_eq!(pause.held(Millis(i64::MAX - 1)), Held::Writes);
        assert_eq!(pause.start(Held::Writes, Millis(-5), Millis(0)), Millis(i64::MAX));
    }
}
