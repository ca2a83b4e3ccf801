//! What a connection has still to send, and the buffers that come back once it is sent.
//!
//! `SendQueue` owns whole buffers in order and the number of bytes of the first that have left. A buffer is
//! taken over, never copied, unless it is small and others wait before it: many small replies to a client
//! that does not read are gathered in few buffers. The first lies in the queue itself: nearly always it is
//! the only one, and then no memory but the connection's own is touched. `Pool` keeps emptied buffers for the
//! next sender, as long as they are needed.
use crate::socket;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Data up to this size is copied behind what waits already.
const COPY_BYTES_MAX: usize = 4 << 10;
/// Room of a buffer that such data is gathered in.
const GATHER_BYTES: usize = 16 << 10;
/// A piece that others are copied to the end of gets no longer than this.
const LENGTHENED_BYTES: usize = 64 << 10;
/// Buffers with more room than this are freed, not kept.
const KEPT_CAPACITY_MAX: usize = 256 << 10;
/// The most room that all kept buffers may have together.
const POOL_BYTES_MAX: usize = 1 << 20;

/// The bytes of one connection that have yet to leave.
#[derive(Default)]
pub(crate) struct SendQueue {
    /// Empty only where all are.
    first: Vec<u8>,
    more: VecDeque<Vec<u8>>,
    /// Bytes of the first buffer that have left.
    head_sent: usize,
    bytes: usize,
}

impl SendQueue {
    /// Bytes that have not left.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether all bytes have left.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Takes what `data` holds and leaves it empty, with room from the pool.
    pub(crate) fn push(&mut self, data: &mut Vec<u8>, pool: &mut Pool) {
        let len = data.len();
        if len == 0 {
            return;
        }
        self.bytes += len;
        if self.first.is_empty() {
            self.first = std::mem::replace(data, pool.take());
        } else {
            self.push_behind(data, pool);
        }
    }

    /// Takes what `data` holds and leaves it empty. While the kernel has none of what waits before it, little
    /// is copied behind that, so that many messages to one client leave as one piece.
    pub(crate) fn gather(&mut self, data: &mut Vec<u8>, pool: &mut Pool) {
        let is_little = !self.is_empty() && self.first.len() + data.len() <= GATHER_BYTES;
        if is_little && self.more.is_empty() {
            self.bytes += data.len();
            self.first.append(data);
        } else {
            self.push(data, pool);
        }
    }

    /// Takes data that has to wait behind other data: the second part of a reply and those that follow it.
    #[inline(never)]
    fn push_behind(&mut self, data: &mut Vec<u8>, pool: &mut Pool) {
        let len = data.len();
        if len > COPY_BYTES_MAX {
            self.more.push_back(std::mem::replace(data, pool.take()));
        } else {
            match self.more.back_mut().unwrap_or(&mut self.first) {
                last if last.capacity() - last.len() >= len => last.append(data),
                _ => self.more.push_back(gathering(data)),
            }
        }
    }

    /// Copies short pieces that wait behind the first one to its end, for a sender that sends one at a time.
    pub(crate) fn lengthen_first(&mut self, pool: &mut Pool) {
        let room = |first: usize| GATHER_BYTES.min(LENGTHENED_BYTES.saturating_sub(first));
        while self.more.front().is_some_and(|next| next.len() <= room(self.first.len()))
            && let Some(next) = self.more.pop_front()
        {
            self.first.extend_from_slice(&next);
            pool.put(next);
        }
    }

    /// The unsent bytes of the first buffer.
    pub(crate) fn first_piece(&self) -> Option<&[u8]> {
        (!self.is_empty()).then(|| &self.first[self.head_sent..])
    }

    /// The unsent bytes, where they are one piece.
    #[inline]
    pub(crate) fn only(&self) -> Option<&[u8]> {
        self.more.is_empty().then(|| &self.first[self.head_sent..])
    }

    /// Puts the first unsent bytes into `into`, as many pieces as it has room for. Returns how many these
    /// are.
    pub(crate) fn slices<'q>(&'q self, into: &mut [IoSlice<'q>]) -> usize {
        let pieces = self.first_piece().into_iter().chain(self.more.iter().map(Vec::as_slice));
        into.iter_mut().zip(pieces).map(|(slot, piece)| *slot = IoSlice::new(piece)).count()
    }

    /// Takes note that `sent` more bytes have left. Buffers that are empty by then go to the pool.
    pub(crate) fn advance(&mut self, sent: usize, pool: &mut Pool) {
        assert!(sent <= self.bytes, "more bytes left than were queued");
        if sent == self.bytes && self.more.is_empty() {
            (self.bytes, self.head_sent) = (0, 0);
            return pool.put(std::mem::take(&mut self.first));
        }
        self.advance_in_part(sent, pool);
    }

    /// [`SendQueue::advance`] where bytes remain, or several buffers have left.
    #[inline(never)]
    fn advance_in_part(&mut self, sent: usize, pool: &mut Pool) {
        self.bytes -= sent;
        self.head_sent += sent;
        while self.head_sent >= self.first.len() && !self.first.is_empty() {
            self.head_sent -= self.first.len();
            let next = self.more.pop_front().unwrap_or_default();
            pool.put(std::mem::replace(&mut self.first, next));
        }
    }
}

/// Hands what is queued to the kernel as far as it takes that at once. What it refuses, for whatever reason,
/// stays.
pub(crate) fn try_send(fd: RawFd, queue: &mut SendQueue, pool: &mut Pool) {
    while let Some(piece) = queue.first_piece() {
        match socket::send(fd, piece) {
            Ok(sent) if sent > 0 => queue.advance(sent, pool),
            _ => return,
        }
    }
}

/// A buffer that starts with `data` and has room for more pieces like it.
fn gathering(data: &mut Vec<u8>) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(GATHER_BYTES);
    buffer.append(data);
    buffer
}

/// Emptied buffers, the last one used first: it is the likeliest to be in the cache.
#[derive(Default)]
pub(crate) struct Pool {
    kept: Vec<Vec<u8>>,
    /// The room of all of them. Only the pool's owner writes it, by a load and a store.
    kept_bytes: Arc<AtomicUsize>,
    /// The least that there were since [`Pool::shrink`]: so many at the bottom were not needed.
    least: usize,
}

impl Pool {
    /// An empty buffer, with the room of one that was used before if there is one.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let Some(buffer) = self.kept.pop() else { return Vec::new() };
        self.least = self.least.min(self.kept.len());
        self.kept_bytes.store(self.kept_bytes.load(Relaxed) - buffer.capacity(), Relaxed);
        buffer
    }

    /// Keeps a buffer for the next sender, or frees it where it or the pool is too large.
    pub(crate) fn put(&mut self, mut buffer: Vec<u8>) {
        let (room, kept_bytes) = (buffer.capacity(), self.kept_bytes.load(Relaxed));
        if room != 0 && room <= KEPT_CAPACITY_MAX && kept_bytes + room <= POOL_BYTES_MAX {
            buffer.clear();
            self.kept_bytes.store(kept_bytes + room, Relaxed);
            self.kept.push(buffer);
        }
    }

    /// Frees the buffers that nobody has needed since this was called last.
    pub(crate) fn shrink(&mut self) {
        let freed_bytes: usize = self.kept.drain(..self.least).map(|buffer| buffer.capacity()).sum();
        self.kept_bytes.store(self.kept_bytes.load(Relaxed) - freed_bytes, Relaxed);
        self.least = self.kept.len();
        if self.kept.is_empty() {
            self.kept = Vec::new();
        }
    }

    /// How many bytes of memory its buffers have, for any thread to read.
    pub(crate) fn bytes(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.kept_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    fn gathered(queue: &SendQueue, pieces: usize) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); 8];
        let count = queue.slices(&mut slices[..pieces]);
        slices[..count].iter().flat_map(|s| s.iter().copied()).collect()
    }

    #[test]
    fn whatever_the_sizes_bytes_leave_in_the_order_they_came() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let (mut queue, mut pool) = (SendQueue::default(), Pool::default());
            let (mut pushed, mut left) = (Vec::new(), Vec::new());
            let mut data = Vec::new();
            for step in 0..200u32 {
                data.resize(random.below(9000) as usize, step as u8);
                pushed.extend_from_slice(&data);
                queue.push(&mut data, &mut pool);
                assert!(data.is_empty());
                if seed % 2 == 0 && random.below(4) == 0 {
                    queue.lengthen_first(&mut pool);
                }
                let ready = gathered(&queue, 3);
                let taken = random.below(ready.len() as u64 + 1) as usize;
                left.extend_from_slice(&ready[..taken]);
                queue.advance(taken, &mut pool);
                assert_eq!(queue.bytes(), pushed.len() - left.len(), "seed {seed}");
            }
            left.extend(gathered(&queue, 0));
            while !queue.is_empty() {
                let ready = gathered(&queue, 2);
                queue.advance(ready.len(), &mut pool);
                left.extend(ready);
            }
            assert!(left == pushed, "seed {seed}");
        }
    }

    #[test]
    fn many_small_replies_share_a_buffer() {
        let (mut queue, mut pool) = (SendQueue::default(), Pool::default());
        for _ in 0..1000 {
            queue.push(&mut Vec::from(*b"+OK\r\n"), &mut pool);
        }
        assert_eq!((queue.bytes(), 1 + queue.more.len()), (5000, 2));
    }

    #[test]
    fn short_pieces_become_a_long_one() {
        let (mut queue, mut pool) = (SendQueue::default(), Pool::default());
        (0..100).for_each(|n| queue.push(&mut vec![n; 5000], &mut pool));
        queue.lengthen_first(&mut pool);
        let len = queue.first_piece().unwrap().len();
        assert!((LENGTHENED_BYTES - 5000..=LENGTHENED_BYTES).contains(&len), "{len}");
        let before = queue.more.len();
        queue.push(&mut vec![b'x'; GATHER_BYTES + 1], &mut pool);
        queue.advance(len, &mut pool);
        queue.lengthen_first(&mut pool);
        assert!(queue.more.len() < before && queue.more.back().unwrap().len() == GATHER_BYTES + 1);
    }

    #[test]
    fn the_pool_keeps_neither_huge_buffers_nor_too_many() {
        let mut pool = Pool::default();
        pool.put(Vec::with_capacity(KEPT_CAPACITY_MAX + 1));
        assert!(pool.kept.is_empty());
        for _ in 0..100 {
            pool.put(Vec::with_capacity(KEPT_CAPACITY_MAX));
        }
        assert!(pool.bytes().load(Relaxed) <= POOL_BYTES_MAX);
    }

    #[test]
    fn the_pool_frees_what_was_not_needed_for_a_while_and_keeps_what_was() {
        let mut pool = Pool::default();
        let bytes = pool.bytes();
        let refill = |pool: &mut Pool, count: usize| {
            let taken: Vec<_> = (0..count).map(|_| pool.take()).collect();
            taken.into_iter().for_each(|buffer| pool.put(buffer));
        };
        (0..10).for_each(|_| pool.put(Vec::with_capacity(1000)));
        pool.shrink();
        assert_eq!(bytes.load(Relaxed), 10_000, "they have just come");
        refill(&mut pool, 4);
        refill(&mut pool, 3);
        pool.shrink();
        assert_eq!((pool.kept.len(), bytes.load(Relaxed)), (4, 4000), "four were needed at once");
        pool.shrink();
        assert_eq!(bytes.load(Relaxed), 0, "none was");
        assert_eq!((pool.take().capacity(), pool.kept.capacity()), (0, 0));
    }
}
