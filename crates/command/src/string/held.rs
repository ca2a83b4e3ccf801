//! Large strings that are left to be written as the client reads (MGET).
//!
//! A string lies in one block, so writing to one that is held copies all of it. Strings beyond
//! [`HELD_BYTES_MAX`] are therefore written at once. So are small ones, because holding one costs as much as
//! writing it.
use crate::Call;
use resp::{Enough, Remainder, Reply};
use std::ops::ControlFlow;
use store::{Key, Snapshot};

/// A reply is written at once up to so many bytes.
const FIRST_BYTES: usize = if cfg!(debug_assertions) { 600 } else { 256 << 10 };
/// Strings are large if they have so many bytes on average.
const LARGE_BYTES: usize = if cfg!(debug_assertions) { 10 } else { 1024 };
/// A larger string is never held.
const HELD_BYTES_MAX: usize = 4 << 20;
/// Of so many strings it is looked up whether anybody else holds their memory too; the others are taken to be
/// like them.
const LOOKED_AT_MAX: usize = 256;

/// Where the reply of a command on many strings may pause.
pub(super) struct Mark {
    start: usize,
    first_bytes: usize,
}

impl Mark {
    pub(super) fn new(reply: &Reply) -> Mark {
        Mark { start: reply.out.len(), first_bytes: FIRST_BYTES.min(reply.spare_bytes() / 2) }
    }

    /// Whether the reply may pause here, `count` strings behind its beginning.
    #[inline]
    pub(super) fn is_reached(&mut self, reply: &Reply, count: usize) -> bool {
        let written_bytes = reply.out.len() - self.start;
        written_bytes >= self.first_bytes && written_bytes / count >= LARGE_BYTES && !reply.is_full()
    }
}

/// Replies the strings of these keys later, or at once where one is too large to be held.
pub(super) fn leave(call: &mut Call<'_, '_>, keys: &[Key<'_>]) {
    let (mut strings, mut is_held) = (Vec::with_capacity(keys.len()), true);
    for key in keys {
        let len = call.view.string(key).map_or(None, |item| item.map(|item| item.len()));
        is_held &= len.is_none_or(|len| len <= HELD_BYTES_MAX);
        strings.push(len.and_then(|_| call.view.snapshot(key)));
    }
    let mut rest = Strings::new(strings);
    if is_held && !rest.strings.is_empty() {
        call.reply.leave(Box::new(rest));
    } else {
        let _ = rest.write(call.reply, Enough::MOST);
    }
}

struct Strings {
    /// The strings that are left; None is replied as a null.
    strings: Vec<Option<Snapshot>>,
    next: usize,
    /// How many bytes all of this takes. It is added up once, because there may be a million strings.
    bytes: usize,
}

impl Strings {
    fn new(strings: Vec<Option<Snapshot>>) -> Strings {
        let snapshots = strings.iter().flatten().map(Snapshot::inline_bytes).sum::<usize>();
        let bytes = size_of::<Strings>() + strings.capacity() * size_of::<Option<Snapshot>>() + snapshots;
        Strings { strings, next: 0, bytes }
    }
}

impl Remainder for Strings {
    fn write(&mut self, reply: &mut Reply, enough: Enough) -> ControlFlow<()> {
        let end = self.strings.len().min(self.next.saturating_add(enough.elements.max(1) as usize));
        for string in &self.strings[self.next..end] {
            match string.as_ref().and_then(|string| string.value().string()) {
                Some(item) => reply.item(item),
                None => reply.null(),
            }
            self.next += 1;
            if reply.out.len() >= enough.bytes || reply.is_full() {
                break;
            }
        }
        let is_over = self.next == self.strings.len() || reply.is_full();
        if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    /// An estimate from [`LOOKED_AT_MAX`] of the strings: looking at each of a million would stall other
    /// clients.
    fn burden_bytes(&self) -> u64 {
        let step = self.strings.len().div_ceil(LOOKED_AT_MAX).max(1);
        let sampled = self.strings.iter().step_by(step).flatten().map(Snapshot::burden_bytes).sum::<u64>();
        sampled * step as u64
    }
}
