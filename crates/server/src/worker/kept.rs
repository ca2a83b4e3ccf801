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
//! While whole requests wait nothing is received but of clients that wait themselves (`behind`). So bytes are
//! moved together only in front of an unfinished request, once, or where as much has run or room is doubled.

/// The beginning of a request of no more than this is moved into the buffer into which all connections
/// receive: a connection that waits for the rest of a small request then needs no buffer of its own.
const SMALL_BYTES: usize = 1 << 10;
/// Room is made for at least so many bytes.
const ROOM_BYTES_MIN: usize = 16 << 10;
/// So much is asked of the engine at a time where much arrives.
const STREAM_BYTES: usize = 64 << 10;
/// So much at most, of a large argument, so that no client keeps its worker for long.
const RECEIVE_BYTES_MAX: usize = 1 << 20;

/// The bytes of one connection, and how far they have run.
#[derive(Debug, Default)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    done: usize,
    /// Bytes known to be missing of the request that the rest is the beginning of; 0 where that is not known.
    wanted_bytes: usize,
    /// The last receive brought all that it asked for.
    is_streaming: bool,
    #[cfg(test)]
    moved_bytes: usize,
}

impl Kept {
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
        &self.bytes[self.done..]
    }

    /// The same, for a parser that decodes in place.
    pub(super) fn rest_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.done..]
    }

    /// So much of the rest has run.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.done += bytes;
        self.wanted_bytes = 0;
        debug_assert!(self.done <= self.bytes.len(), "what has run has arrived");
        if self.done == self.bytes.len() {
            self.clear();
        }
    }

    /// Gives all of it up, and its room.
    pub(super) fn clear(&mut self) {
        (self.bytes, self.done, self.wanted_bytes) = (Vec::new(), 0, 0);
    }

    /// Gives up what is beyond this, and its room.
    pub(super) fn truncate(&mut self, len: usize) {
        let rest = self.rest();
        self.replace(rest[..rest.len().min(len)].to_vec());
    }

    /// Takes a copy of what it did not have yet.
    pub(super) fn keep(&mut self, bytes: &[u8]) {
        self.note_moved(bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.wanted_bytes = 0;
    }

    /// Puts this in the place of all that it has.
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

    /// Moves it to where many connections receive.
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
        let wanted = if self.wanted_bytes == 0 { usize::MAX } else { self.wanted_bytes };
        if self.bytes.capacity() - self.bytes.len() < wanted.min(least) {
            self.close_up();
            self.bytes.reserve_exact(wanted.clamp(least, self.bytes.len().max(least)));
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

    /// A receive asked for so much and brought that.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_run_one_by_one_move_nothing() {
        let mut kept = Kept::default();
        kept.keep(&vec![b'x'; 1 << 20]);
        while kept.len() > 100 {
            kept.advance(14);
        }
        assert_eq!(kept.moved_bytes, 1 << 20, "only their arrival");
        kept.await_more(0);
        assert!(kept.room_bytes() <= 100, "the room of what has run is given back");
    }

    #[test]
    fn an_argument_that_comes_byte_by_byte_is_not_moved_with_each() {
        let mut kept = Kept::default();
        let len = 300_000;
        for sent in 1..len {
            if kept.stays() {
                let (bytes, limit) = kept.make_room();
                assert!(limit > 0);
                bytes.push(b'x');
                kept.note_received(limit, 1);
            } else {
                let mut scratch = Vec::new();
                kept.move_to(&mut scratch);
                scratch.push(b'x');
                kept.keep(&scratch);
            }
            kept.await_more(len - sent);
        }
        assert!(kept.moved_bytes <= 2 * SMALL_BYTES * SMALL_BYTES, "{}", kept.moved_bytes);
    }

    /// As of a client that waits again and again, and sends more meanwhile.
    #[test]
    fn what_arrives_behind_requests_that_run_one_by_one_moves_each_byte_a_few_times() {
        const LEN: usize = 1 << 20;
        let mut kept = Kept::default();
        kept.keep(&vec![b'x'; LEN]);
        let mut received = LEN;
        while kept.len() > 100 {
            kept.advance(14);
            let (bytes, limit) = kept.make_room();
            let count = limit.min(7);
            bytes.resize(bytes.len() + count, b'x');
            received += count;
        }
        assert!(kept.moved_bytes <= 8 * received, "{} for {received}", kept.moved_bytes);
    }

    #[test]
    fn room_follows_what_has_arrived_and_not_what_was_announced() {
        let mut kept = Kept::default();
        kept.keep(&[b'x'; SMALL_BYTES + 1]);
        kept.await_more(500 << 20);
        assert!(kept.stays());
        while kept.len() < 100 << 20 {
            let (bytes, limit) = kept.make_room();
            let len = bytes.len() + limit;
            assert!(bytes.capacity() >= len, "so that receiving makes none of its own");
            bytes.resize(len, b'x');
            kept.note_received(limit, limit);
            kept.await_more((500 << 20) - kept.len());
            assert!(
                kept.room_bytes() <= 2 * kept.len() + STREAM_BYTES,
                "{} for {}",
                kept.room_bytes(),
                kept.len()
            );
        }
    }

    #[test]
    fn an_argument_takes_no_more_than_its_length_in_the_end() {
        let mut kept = Kept::default();
        kept.keep(&vec![b'x'; STREAM_BYTES]);
        let len = 10_000_000;
        while kept.len() < len {
            kept.await_more(len - kept.len());
            let (bytes, limit) = kept.make_room();
            let taken = limit.min(len - bytes.len());
            bytes.resize(bytes.len() + taken, b'x');
            kept.note_received(limit, taken);
        }
        assert!(kept.room_bytes() <= len + STREAM_BYTES, "{}", kept.room_bytes());
    }

    #[test]
    fn what_follows_a_large_request_does_not_hold_its_room() {
        let mut kept = Kept::default();
        kept.keep(&vec![b'x'; 1 << 20]);
        kept.advance((1 << 20) - 3);
        kept.await_more(0);
        assert_eq!((kept.rest(), kept.room_bytes()), (&b"xxx"[..], 3));
    }
}
