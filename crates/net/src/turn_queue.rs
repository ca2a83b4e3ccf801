//! Connections with something to send that nobody waits for (`Engine::send_in_turn`): which of them have a
//! turn in the next poll.
//!
//! A message to ten thousand clients is ten thousand calls to the kernel, some 40 ms. So it leaves in slices:
//! each poll sends to the connections that have waited longest, then looks for what has arrived. More that is
//! sent to a connection which waits joins what waits for it, and leaves with it in one call.
//!
//! ```text
//! poll: [replies] [slice of the queue] [events] -> the caller's work -> poll: [replies] [slice] ...
//! ```
//!
//! **Nobody waits for long.** The queue is in order of arrival, and what joins does not change a connection's
//! place. A slice is at least [`SLICE_MIN`] connections, and as many more as take the time that the caller's
//! work took before it: so sending has half of the thread's time, however much arrives, and the last of the
//! queue waits at most twice as long as if everything were sent at once, and one turn.
//!
//! **It does not grow without end.** The more bytes wait, the longer a slice is ([`SLICE_BYTES`]). Callers
//! who can hold back whoever sends so much do so by `Engine::in_turn_bytes`.
use crate::ConnId;
use crate::meter::{Meter, Tick};
use std::collections::VecDeque;

/// How many connections have a turn in every poll: about 0.3 ms. Fewer in tests, so that what happens between
/// two slices happens often.
const SLICE_MIN: usize = if cfg!(debug_assertions) { 3 } else { 64 };
const SLICE_MAX: usize = 1 << 16;
/// For each of so many bytes that wait, another [`SLICE_MIN`] have one.
const SLICE_BYTES: usize = 8 << 20;

/// Who has waited with more than this is told of when it has left.
pub(crate) const MUCH_BYTES: usize = 16 << 10;

/// Room for so many connections is kept.
const IDS_KEPT: usize = 1 << 10;

/// The connections in the order of their turns.
pub(crate) struct TurnQueue {
    ids: VecDeque<ConnId>,
    /// Bytes that wait.
    bytes: usize,
    /// How many connections have a turn in this poll.
    slice: usize,
    meter: Meter,
    /// When the last poll had sent, if it left somebody waiting.
    left: Option<Tick>,
    /// When this poll began to send, or the last one did.
    began: Tick,
    /// How many have had their turn in it, and how long that took.
    sent: usize,
    sent_ticks: u64,
}

impl TurnQueue {
    pub(crate) fn new() -> TurnQueue {
        let meter = Meter::new();
        TurnQueue {
            ids: VecDeque::new(),
            bytes: 0,
            slice: SLICE_MIN,
            meter,
            left: None,
            began: meter.read(),
            sent: 0,
            sent_ticks: 0,
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Bytes that wait for their turn.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// So many bytes more wait for a connection for which `waiting` bytes wait already: with none it takes
    /// the last place.
    pub(crate) fn add(&mut self, id: ConnId, waiting: &mut usize, bytes: usize) {
        if *waiting == 0 {
            self.ids.push_back(id);
        }
        *waiting += bytes;
        self.bytes += bytes;
    }

    /// What waited for a connection waits no longer: it has its turn, or has gone.
    pub(crate) fn release(&mut self, waiting: &mut usize) {
        self.bytes -= std::mem::take(waiting);
    }

    /// A poll begins to send.
    pub(crate) fn begin(&mut self) {
        self.began = self.meter.read();
        let work_ticks = self.left.take().map_or(0, |left| self.began.since(left));
        let slice = slice_of(self.sent, self.sent_ticks, work_ticks).min(SLICE_MAX);
        self.slice = slice.max(SLICE_MIN * (1 + self.bytes / SLICE_BYTES));
        self.sent = 0;
    }

    /// The next connection that has its turn in this poll. It may be gone, or have nothing left to send.
    pub(crate) fn next(&mut self) -> Option<ConnId> {
        if self.sent >= self.slice {
            return None;
        }
        self.sent += 1;
        self.ids.pop_front()
    }

    /// This poll has sent.
    pub(crate) fn end(&mut self) {
        let now = self.meter.read();
        self.sent_ticks = now.since(self.began);
        if self.ids.is_empty() {
            self.ids.shrink_to(IDS_KEPT);
        } else {
            self.left = Some(now);
        }
    }
}

/// How many take as long to send to as the caller's work took, if the last `sent` have taken `sent_ticks`.
fn slice_of(sent: usize, sent_ticks: u64, work_ticks: u64) -> usize {
    let slice = u128::from(work_ticks) * sent as u128 / u128::from(sent_ticks.max(1));
    usize::try_from(slice).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(index: u32) -> ConnId {
        ConnId { index, generation: 1 }
    }

    /// Those who have a turn in one poll.
    fn slice(queue: &mut TurnQueue, waiting: &mut [usize]) -> Vec<u32> {
        queue.begin();
        let mut turns = Vec::new();
        while let Some(id) = queue.next() {
            queue.release(&mut waiting[id.index as usize]);
            turns.push(id.index);
        }
        queue.end();
        turns
    }

    #[test]
    fn whoever_waits_keeps_a_place_and_everybody_has_a_turn_in_order() {
        let (mut queue, mut waiting) = (TurnQueue::new(), vec![0; 1000]);
        (0..1000).for_each(|n| queue.add(id(n), &mut waiting[n as usize], 10));
        assert_eq!(queue.bytes(), 10_000);
        let mut turns = Vec::new();
        while !queue.is_empty() {
            let some = slice(&mut queue, &mut waiting);
            assert!(some.len() >= SLICE_MIN.min(1000 - turns.len()));
            // More for the last joins what waits for it.
            if waiting[999] > 0 {
                queue.add(id(999), &mut waiting[999], 1);
            }
            turns.extend(some);
            assert_eq!(waiting.iter().sum::<usize>(), queue.bytes());
        }
        assert_eq!(turns, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn a_slice_takes_as_long_as_the_work_between_two_polls() {
        assert_eq!(slice_of(64, 300_000, 0), 0);
        assert_eq!(slice_of(64, 300_000, 30_000), 6);
        assert_eq!(slice_of(64, 300_000, 3_000_000), 640);
        assert_eq!(slice_of(0, 300_000, 3_000_000), 0);
        assert_eq!(slice_of(64, 0, u64::MAX), usize::MAX);
    }

    #[test]
    fn the_more_waits_the_longer_is_a_slice() {
        let (mut queue, mut waiting) = (TurnQueue::new(), vec![0; 1000]);
        (0..1000).for_each(|n| queue.add(id(n), &mut waiting[n as usize], SLICE_BYTES / 100));
        assert!(slice(&mut queue, &mut waiting).len() >= 10 * SLICE_MIN);
        while !queue.is_empty() {
            slice(&mut queue, &mut waiting);
        }
        assert_eq!(queue.bytes(), 0);
    }
}
