//! What has arrived on a connection and has not run yet: the beginning of a request, or whole ones that wait
//! for their turn.
//!
//! ```text
//! bytes  |  done: has run  |  rest: whole requests, then the beginning of one  |  room  |
//! ```
//!
//! Requests that run move the mark between done and rest, and no byte. Room is made in proportion to what has
//! arrived, whatever a header announces: anybody can announce 512 MB. So the cost of a byte does not depend
//! on how it arrives or how much waits behind it, and the memory of a connection does not depend on what it
//! has only promised.
//!
//! While whole requests wait, nothing more is received, except from clients whose next request has to wait
//! (`receive_while_waiting`). The rest is moved only where at least as many bytes have run, where the
//! buffer has to grow, or, if it is the beginning of a small request, into the buffer of all connections.

use std::ops::Range;
use store::{Arrival, Keyspace};

/// The beginning of a request of no more than this is moved into the buffer into which all connections
/// receive: a connection that waits for the rest of a small request then needs no buffer of its own.
const SMALL_BYTES: usize = 1 << 10;
/// Room is made for at least this many bytes.
const ROOM_BYTES_MIN: usize = 16 << 10;
/// Room is made for at least this many bytes after a receive that brought all that it asked for.
const STREAM_BYTES: usize = 64 << 10;
/// A request gets room for all of it at once where it is no more than so many times as long as what has
/// arrived of it, and else for twice as much as has.
const LAST_GROWTH: usize = 8;
/// A request of which so much has arrived, and nobody knows what is missing, gets room for four times that:
/// it has several long arguments, and to move it as often takes longer than to receive it. Beyond that no
/// buffer that was freed is kept to serve it.
const LONG_BYTES: Range<usize> = 512 << 10..3 << 20;
const UNKNOWN: usize = usize::MAX;
/// One receive asks for this many bytes at most, so that no client keeps its worker for long.
const RECEIVE_BYTES_MAX: usize = 256 << 10;

/// The bytes of one connection, and how far they have run.
#[derive(Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    done: usize,
    /// Bytes known to be missing of the request that the rest is the beginning of; 0 where that is not known.
    wanted_bytes: usize,
    /// The last receive brought all that it asked for.
    is_streaming: bool,
    /// Has the bytes while they are offered to those who would store what they hold.
    offer: Option<Arrival>,
    #[cfg(test)]
    moved_bytes: usize,
}

impl Input {
    /// Whether nothing is kept, and no memory held.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// How many bytes have not run.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.done
    }

    /// Bytes of memory that it takes, used or not.
    pub(super) fn room_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The bytes that have not run.
    pub(super) fn rest(&self) -> &[u8] {
        let bytes = self.offer.as_ref().map_or(&self.bytes[..], Arrival::buffer);
        &bytes[self.done..]
    }

    /// Offers the rest, a whole request that is about to run: if it has this part of it stored, that stays
    /// where it is. Until [`Input::end_offer`] it can only be read.
    pub(super) fn offer(&mut self, text: Range<usize>, keyspace: &Keyspace) {
        let bytes = std::mem::take(&mut self.bytes);
        match keyspace.offer(bytes, self.done + text.start..self.done + text.end) {
            Ok(offer) => self.offer = Some(offer),
            Err(bytes) => self.bytes = bytes,
        }
    }

    /// The request has run, or has to wait. Nothing is left where it was stored.
    pub(super) fn end_offer(&mut self) {
        let Some(offer) = self.offer.take() else { return };
        match offer.end() {
            Some(bytes) => self.bytes = bytes,
            None => self.clear(),
        }
    }

    /// The bytes that have not run, for a parser that decodes them in place.
    pub(super) fn rest_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.done..]
    }

    /// This many bytes of the rest have run.
    pub(super) fn advance(&mut self, bytes: usize) {
        if self.is_empty() {
            // What has run has been stored.
            return;
        }
        self.done += bytes;
        self.wanted_bytes = 0;
        debug_assert!(self.done <= self.bytes.len(), "what has run has arrived");
        if self.done == self.bytes.len() {
            self.clear();
        }
    }

    /// Gives all bytes away, and says where the rest begins in them.
    pub(super) fn take(&mut self) -> (Vec<u8>, usize) {
        let taken = (std::mem::take(&mut self.bytes), self.done);
        self.clear();
        taken
    }

    /// Drops all bytes and frees their memory.
    pub(super) fn clear(&mut self) {
        self.offer = None;
        (self.bytes, self.done, self.wanted_bytes) = (Vec::new(), 0, 0);
    }

    /// Keeps so many bytes of the rest, or fewer. The memory of all is returned.
    pub(super) fn truncate(&mut self, len: usize) -> Vec<u8> {
        let rest = self.rest();
        let kept = rest[..rest.len().min(len)].to_vec();
        let (all, _) = self.take();
        self.replace(kept);
        all
    }

    /// Appends a copy of these bytes, with room for as many more as are wanted of the request that they end
    /// with.
    pub(super) fn keep(&mut self, bytes: &[u8], wanted_bytes: usize) {
        self.note_moved(bytes.len());
        self.bytes.reserve_exact(bytes.len() + growth_bytes(bytes.len(), wanted_bytes));
        self.bytes.extend_from_slice(bytes);
        self.wanted_bytes = 0;
    }

    /// Replaces all bytes by these.
    pub(super) fn replace(&mut self, bytes: Vec<u8>) {
        self.clear();
        self.bytes = bytes;
    }

    /// The rest is the beginning of a request, of which so much is known to be missing. Room is given back
    /// where that moves no more than has run.
    pub(super) fn await_more(&mut self, wanted_bytes: usize) {
        self.wanted_bytes = wanted_bytes;
        if self.done > 0 && self.len() <= self.done {
            self.note_moved(self.len());
            self.bytes = self.rest().to_vec();
            self.done = 0;
        }
    }

    /// Whether more is to be received behind it in place, because it is too long to be moved.
    pub(super) fn stays(&self) -> bool {
        self.len() > SMALL_BYTES
    }

    /// Moves the rest to the end of the buffer into which all connections receive.
    pub(super) fn move_to(&mut self, scratch: &mut Vec<u8>) {
        self.note_moved(self.len());
        scratch.extend_from_slice(self.rest());
        self.clear();
    }

    /// Where to receive, and how much at most: there is room for it. What has run is given up where that
    /// moves no more than has run, or where the rest has to move anyway.
    pub(super) fn make_room(&mut self) -> (&mut Vec<u8>, usize) {
        if self.len() <= self.done {
            self.close_up();
        }
        let least = if self.is_streaming { STREAM_BYTES } else { ROOM_BYTES_MIN };
        let wanted = if self.wanted_bytes == 0 { UNKNOWN } else { self.wanted_bytes };
        if self.bytes.capacity() - self.bytes.len() < wanted.min(least) {
            self.close_up();
            self.bytes.reserve_exact(growth_bytes(self.bytes.len(), wanted).max(least));
        }
        let limit = (self.bytes.capacity() - self.bytes.len()).min(RECEIVE_BYTES_MAX);
        (&mut self.bytes, limit)
    }

    /// Moves the rest to where the bytes begin.
    fn close_up(&mut self) {
        if self.done > 0 {
            self.note_moved(self.len());
            self.bytes.drain(..self.done);
            self.done = 0;
        }
    }

    /// A receive asked for `limit` bytes and brought `count`.
    pub(super) fn note_received(&mut self, limit: usize, count: usize) {
        self.is_streaming = count >= limit;
    }

    #[cfg(test)]
    fn note_moved(&mut self, bytes: usize) {
        self.moved_bytes += bytes;
    }

    #[cfg(not(test))]
    #[inline(always)]
    fn note_moved(&mut self, _: usize) {}
}

/// How many bytes more there is to be room for where so many have arrived, and so many are wanted.
fn growth_bytes(arrived: usize, wanted: usize) -> usize {
    match wanted <= arrived.saturating_mul(LAST_GROWTH - 1) {
        true => wanted,
        false if wanted == UNKNOWN && LONG_BYTES.contains(&arrived) => 3 * arrived,
        false => arrived,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_run_one_by_one_move_nothing() {
        let mut input = Input::default();
        input.keep(&vec![b'x'; 1 << 20], 0);
        while input.len() > 100 {
            input.advance(14);
        }
        assert_eq!(input.moved_bytes, 1 << 20, "only their arrival");
        input.await_more(0);
        assert!(input.room_bytes() <= 100, "the room of what has run is given back");
    }

    #[test]
    fn an_argument_that_comes_byte_by_byte_is_not_moved_with_each() {
        let mut input = Input::default();
        let len = 300_000;
        for sent in 1..len {
            if input.stays() {
                let (bytes, limit) = input.make_room();
                assert!(limit > 0);
                bytes.push(b'x');
                input.note_received(limit, 1);
            } else {
                let mut scratch = Vec::new();
                input.move_to(&mut scratch);
                scratch.push(b'x');
                input.keep(&scratch, 0);
            }
            input.await_more(len - sent);
        }
        assert!(input.moved_bytes <= 2 * SMALL_BYTES * SMALL_BYTES, "{}", input.moved_bytes);
    }

    /// A client whose requests have to wait again and again, and that sends more meanwhile.
    #[test]
    fn what_arrives_behind_requests_that_run_one_by_one_moves_each_byte_a_few_times() {
        const LEN: usize = 1 << 20;
        let mut input = Input::default();
        input.keep(&vec![b'x'; LEN], 0);
        let mut received = LEN;
        while input.len() > 100 {
            input.advance(14);
            let (bytes, limit) = input.make_room();
            let count = limit.min(7);
            bytes.resize(bytes.len() + count, b'x');
            received += count;
        }
        assert!(input.moved_bytes <= 8 * received, "{} for {received}", input.moved_bytes);
    }

    #[test]
    fn room_follows_what_has_arrived_and_not_what_was_announced() {
        const ANNOUNCED: usize = 500 << 20;
        let mut input = Input::default();
        input.keep(&[b'x'; SMALL_BYTES + 1], 0);
        input.await_more(ANNOUNCED);
        assert!(input.stays());
        while input.len() < 100 << 20 {
            let arrived = input.len();
            let (bytes, limit) = input.make_room();
            let len = bytes.len() + limit;
            assert!(bytes.capacity() >= len, "so that receiving makes none of its own");
            bytes.resize(len, b'x');
            input.note_received(limit, limit);
            input.await_more(ANNOUNCED - len);
            let is_last = arrived * LAST_GROWTH >= ANNOUNCED;
            let room_max = if is_last { ANNOUNCED } else { 2 * len + STREAM_BYTES };
            assert!(input.room_bytes() <= room_max, "{} for {len}", input.room_bytes());
        }
    }

    #[test]
    fn long_arguments_one_after_the_other_are_moved_seldom() {
        const LEN: usize = 1 << 20;
        let mut input = Input::default();
        input.keep(&vec![b'x'; LEN], 0);
        let mut moves = 0;
        for argument in 1..12 {
            // The length of the next is not known yet.
            input.await_more(0);
            let room = input.room_bytes();
            input.make_room();
            moves += u32::from(input.room_bytes() > room);
            assert!(input.room_bytes() <= 4 * input.len() + STREAM_BYTES);
            input.bytes.resize((argument + 1) * LEN, b'x');
        }
        assert_eq!(moves, 3, "from 1 to 4, and to twice that from there on");
    }

    #[test]
    fn an_argument_takes_no_more_than_its_length_in_the_end() {
        let mut input = Input::default();
        input.keep(&vec![b'x'; STREAM_BYTES], 0);
        let len = 10_000_000;
        while input.len() < len {
            input.await_more(len - input.len());
            let (bytes, limit) = input.make_room();
            let taken = limit.min(len - bytes.len());
            bytes.resize(bytes.len() + taken, b'x');
            input.note_received(limit, taken);
        }
        assert!(input.room_bytes() <= len + STREAM_BYTES, "{}", input.room_bytes());
    }

    #[test]
    fn what_follows_a_large_request_does_not_hold_its_room() {
        let mut input = Input::default();
        input.keep(&vec![b'x'; 1 << 20], 0);
        input.advance((1 << 20) - 3);
        input.await_more(0);
        assert_eq!((input.rest(), input.room_bytes()), (&b"xxx"[..], 3));
    }
}
