//! Large strings that are left to be written as the client reads: MGET of many, GET and GETRANGE of a long
//! one.
//!
//! A string lies in one block, so writing to one that is held copies all of it, where it is not replaced as a
//! whole. To write it into the reply at once would copy all of it each time. Small strings are written at
//! once, because holding one costs as much as writing it.
use crate::Call;
use base::Item;
use resp::{Enough, Remainder, Reply};
use std::ops::{ControlFlow, Range};
use store::{Key, Snapshot};

/// A reply is written at once up to so many bytes.
const FIRST_BYTES: usize = if cfg!(debug_assertions) { 600 } else { 256 << 10 };
/// Strings are large if they have so many bytes on average.
const LARGE_BYTES: usize = if cfg!(debug_assertions) { 10 } else { 1024 };
/// A string of more bytes is long: it is written piece by piece.
pub(super) const LONG_BYTES: usize = if cfg!(debug_assertions) { 600 } else { 256 << 10 };
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

/// Replies the strings of these keys later. So many of them were looked up already.
pub(super) fn leave(call: &mut Call<'_, '_>, keys: &[Key<'_>], looked_up: usize) {
    let mut strings = Vec::with_capacity(keys.len());
    for (place, key) in keys.iter().enumerate() {
        let is_there = place < looked_up || matches!(call.view.string(key), Ok(Some(_)));
        strings.push(if is_there { call.view.snapshot(key) } else { None });
    }
    if !strings.is_empty() {
        call.reply.leave(Box::new(Strings::new(strings)));
    }
}

/// Replies this part of the string of a key, which is long, and leaves its bytes for later.
#[cold]
#[inline(never)]
pub(super) fn leave_part(call: &mut Call<'_, '_>, key: &Key<'_>, part: Range<usize>) {
    let value = call.view.snapshot(key).expect("its string was looked at just now");
    call.reply.bulk_header(part.len());
    call.reply.leave(Box::new(Part { value, rest: part }));
}

/// Appends a piece of these bytes, and the end of the line behind the last one. Returns how many it were.
fn append_piece(reply: &mut Reply, rest: &[u8], enough: Enough) -> usize {
    let piece = rest.len().min(enough.bytes.saturating_sub(reply.out.len()).max(1));
    reply.append(&rest[..piece]);
    if piece == rest.len() {
        reply.append(b"\r\n");
    }
    piece
}

/// What is left to be written of a part of a long string.
struct Part {
    value: Snapshot,
    rest: Range<usize>,
}

impl Remainder for Part {
    fn write(&mut self, reply: &mut Reply, enough: Enough) -> ControlFlow<()> {
        let Some(Item::Bytes(text)) = self.value.value().string() else {
            unreachable!("a long string is not kept as an integer")
        };
        self.rest.start += append_piece(reply, &text[self.rest.clone()], enough);
        if self.rest.is_empty() || reply.is_full() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Part>() + self.value.inline_bytes()
    }

    fn burden_bytes(&self) -> u64 {
        self.value.burden_bytes()
    }
}

struct Strings {
    /// The strings that are left; None is replied as a null.
    strings: Vec<Option<Snapshot>>,
    next: usize,
    /// How many bytes of the next one are written, which is long.
    written: usize,
    /// How many bytes all of this takes. It is added up once, because there may be a million strings.
    bytes: usize,
}

impl Strings {
    fn new(strings: Vec<Option<Snapshot>>) -> Strings {
        let snapshots = strings.iter().flatten().map(Snapshot::inline_bytes).sum::<usize>();
        let bytes = size_of::<Strings>() + strings.capacity() * size_of::<Option<Snapshot>>() + snapshots;
        Strings { strings, next: 0, written: 0, bytes }
    }
}

impl Remainder for Strings {
    fn write(&mut self, reply: &mut Reply, enough: Enough) -> ControlFlow<()> {
        let end = self.strings.len().min(self.next.saturating_add(enough.elements.max(1) as usize));
        for string in &self.strings[self.next..end] {
            match string.as_ref().and_then(|string| string.value().string()) {
                Some(Item::Bytes(text)) if text.len() > LONG_BYTES => {
                    if self.written == 0 {
                        reply.bulk_header(text.len());
                    }
                    self.written += append_piece(reply, &text[self.written..], enough);
                    if self.written < text.len() {
                        break;
                    }
                    self.written = 0;
                }
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
