//! The buffers that the kernel receives into: a provided buffer ring, and the chains of filled buffers that
//! wait for `receive`.
//!
//! ```text
//! map:  [ ring: 16 bytes a buffer: address, length, number; tail at byte 14 ][ buffer 0 ][ buffer 1 ] ...
//! ```
//!
//! A buffer is in one of two hands. *The kernel's*: its number stands in the ring between the kernel's head
//! and our tail. *Ours*: a completion named it; it is a link of one connection's chain, or about to be.
//! `Buffers::release` gives it back; the kernel sees it after `publish`. One buffer belongs to at most one
//! chain, so the links need no allocation: `next` and `len` are arrays by buffer number.
use io_uring::Submitter;
use io_uring::types::BufRingEntry;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU16, Ordering};

/// A power of two, as the kernel wants.
const COUNT: u16 = 256;
/// How many the kernel is offered at first. It goes through all that it has in turn, so each becomes resident
/// (docs/decisions/buffers-of-io-uring.md). When it runs out it is given as many again.
const OFFERED_FIRST: u16 = 16;
pub(super) const BUFFER_BYTES: usize = 8 << 10;
/// The number of the group of buffers: there is one.
pub(super) const GROUP: u16 = 0;

const RING_BYTES: usize = COUNT as usize * size_of::<BufRingEntry>();
const MAP_BYTES: usize = RING_BYTES + COUNT as usize * BUFFER_BYTES;
const NONE: u16 = u16::MAX;
const _: () = assert!(size_of::<BufRingEntry>() == 16 && RING_BYTES.is_multiple_of(4096));

pub(super) struct Buffers {
    map: NonNull<u8>,
    tail: u16,
    /// Buffers from here on were never offered, and are not resident.
    offered: u16,
    is_short: bool,
    /// The kernel may still write: the map must stay.
    is_given_up: bool,
    next: [u16; COUNT as usize],
    len: [u32; COUNT as usize],
}

// SAFETY: the map belongs to this value alone (and the kernel, which does not care who calls).
unsafe impl Send for Buffers {}

/// The filled buffers of one connection, oldest first.
pub(super) struct Chain {
    first: u16,
    last: u16,
    /// Bytes of the first that have been read.
    read: u32,
}

impl Default for Chain {
    fn default() -> Chain {
        Chain { first: NONE, last: NONE, read: 0 }
    }
}

impl Chain {
    /// Whether it holds no buffers.
    pub(super) fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

impl Buffers {
    /// Registers the buffers, all the kernel's. They must outlive the ring: see `Uring`'s order of fields.
    pub(super) fn register(submitter: &Submitter<'_>) -> io::Result<Buffers> {
        let (next, len) = ([NONE; COUNT as usize], [0; COUNT as usize]);
        let mut buffers =
            Buffers { map: map()?, tail: 0, offered: 0, is_short: true, is_given_up: false, next, len };
        buffers.publish();
        let address = buffers.map.as_ptr() as u64;
        // SAFETY: the map holds COUNT entries, page aligned, and lives until `self` is dropped, after the
        // ring.
        unsafe { submitter.register_buf_ring_with_flags(address, COUNT, GROUP, 0)? };
        Ok(buffers)
    }

    /// The kernel ran out: the next `publish` doubles what it has, however many connections felt it.
    pub(super) fn note_shortage(&mut self) {
        self.is_short = true;
    }

    /// Gives the kernel as many buffers again as it has.
    fn offer_more(&mut self) {
        let first = self.offered;
        self.offered = (first * 2).clamp(OFFERED_FIRST, COUNT);
        (first..self.offered).for_each(|number| self.release(number));
    }

    /// A place of the ring.
    fn entry(&mut self, at: u16) -> *mut BufRingEntry {
        // SAFETY: `at` is masked to COUNT, and COUNT entries stand at the map's start.
        unsafe { self.map.as_ptr().cast::<BufRingEntry>().add(usize::from(at & (COUNT - 1))) }
    }

    /// Where a buffer begins.
    fn buffer(&self, number: u16) -> *mut u8 {
        assert!(number < COUNT, "no such buffer");
        // SAFETY: buffer `number` lies inside the map.
        unsafe { self.map.as_ptr().add(RING_BYTES + usize::from(number) * BUFFER_BYTES) }
    }

    /// Gives a buffer back; the kernel sees it after `publish`.
    pub(super) fn release(&mut self, number: u16) {
        let address = self.buffer(number) as u64;
        let entry = self.entry(self.tail);
        // SAFETY: `entry` points into the map, is aligned, and is not among those that the kernel may read
        // now: it is at the tail, and no more than COUNT are ever out. The fields are written one by one
        // because the last two bytes of the first entry are the ring's tail.
        unsafe {
            (*entry).set_addr(address);
            (*entry).set_len(BUFFER_BYTES as u32);
            (*entry).set_bid(number);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    /// Shows the kernel what was given back, and more where it ran out.
    pub(super) fn publish(&mut self) {
        if std::mem::take(&mut self.is_short) {
            self.offer_more();
        }
        // SAFETY: the map starts with the first entry, in which the tail lies, aligned to two bytes; the
        // kernel reads it atomically, and nobody else writes it.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.entry(0)).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    /// Buffer `number`, now ours with `len` bytes, becomes the last of a chain.
    pub(super) fn append(&mut self, chain: &mut Chain, number: u16, len: u32) {
        assert!(len as usize <= BUFFER_BYTES, "more bytes than the buffer holds");
        self.next[usize::from(number)] = NONE;
        self.len[usize::from(number)] = len;
        match chain.last {
            NONE => chain.first = number,
            last => self.next[usize::from(last)] = number,
        }
        chain.last = number;
    }

    /// Appends at most `limit` bytes of a chain to `into` and gives back the buffers it empties. The number
    /// of bytes.
    pub(super) fn read(&mut self, chain: &mut Chain, into: &mut Vec<u8>, limit: usize) -> usize {
        let mut total = 0;
        while chain.first != NONE && total < limit {
            let number = chain.first;
            let left = self.len[usize::from(number)] - chain.read;
            let n = (left as usize).min(limit - total);
            into.extend_from_slice(self.bytes(number, chain.read, n));
            total += n;
            chain.read += n as u32;
            if n == left as usize {
                self.drop_first(chain);
            }
        }
        total
    }

    /// Gives back all buffers of a chain, unread.
    pub(super) fn clear(&mut self, chain: &mut Chain) {
        while chain.first != NONE {
            self.drop_first(chain);
        }
    }

    /// Never unmaps: operations that use the buffers could not be ended.
    pub(super) fn give_up(&mut self) {
        self.is_given_up = true;
    }

    /// Some bytes of a buffer that is ours.
    fn bytes(&self, number: u16, from: u32, len: usize) -> &[u8] {
        let (from, end) = (from as usize, self.len[usize::from(number)] as usize);
        assert!(from + len <= end, "beyond what the kernel has written");
        // SAFETY: the buffer is ours, so the kernel does not write to it, and its first `end` bytes are
        // written.
        unsafe { std::slice::from_raw_parts(self.buffer(number).add(from), len) }
    }

    /// Gives back the first buffer of a chain.
    fn drop_first(&mut self, chain: &mut Chain) {
        let number = chain.first;
        *chain = match self.next[usize::from(number)] {
            NONE => Chain::default(),
            first => Chain { first, last: chain.last, read: 0 },
        };
        self.release(number);
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        if self.is_given_up {
            return;
        }
        // SAFETY: mapped by `map` with this length, and nobody has a slice of it: they borrow from `self`.
        unsafe { libc::munmap(self.map.as_ptr().cast(), MAP_BYTES) };
    }
}

/// Maps the ring and the buffers behind it. Pages are resident once they are touched.
fn map() -> io::Result<NonNull<u8>> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh anonymous map touches no memory of ours.
    let map = unsafe { libc::mmap(ptr::null_mut(), MAP_BYTES, access, flags, -1, 0) };
    match NonNull::new(map.cast::<u8>()) {
        Some(map) if map.as_ptr().cast() != libc::MAP_FAILED => Ok(map),
        _ => Err(io::Error::last_os_error()),
    }
}
