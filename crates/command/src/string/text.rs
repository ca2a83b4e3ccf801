//! Replies that are one long string: it is left where it lies, and sent from there.
//!
//! The reply holds on to the string until the client has got it. Whoever writes to it meanwhile (APPEND,
//! SETRANGE) copies it first, which is what the reply would have taken otherwise; whoever replaces it does
//! not.
use crate::Call;
use base::Item;
use resp::{Args, Enough, Remainder, Reply};
use std::ops::{ControlFlow, Range};
use store::Snapshot;

/// A string is left where it lies from so many bytes on: to hold on to it costs as much as to copy 100 KB.
const LEFT_BYTES_MIN: usize = if cfg!(debug_assertions) { 600 } else { 128 << 10 };

const END: &[u8] = b"\r\n";

/// A request of more bytes is not kept beside its reply: what it stores may be as long.
const REQUEST_BYTES_MAX: usize = 4 << 10;

/// Whether a string of so many bytes is to be left, as the reply to this request.
#[inline]
pub(super) fn may_leave(len: usize, reply: &Reply, args: &Args<'_>) -> bool {
    len >= LEFT_BYTES_MIN && reply.may_leave_texts && args.framed_bytes_from(0) <= REQUEST_BYTES_MAX
}

/// Replies this part of the first key's string, which is there and that long.
#[cold]
pub(super) fn leave(call: &mut Call<'_, '_>, part: Range<usize>) {
    call.reply.bulk_header(part.len());
    // What does not fit below the bound of the client's output is not held for it either.
    let fits = part.len() + END.len() <= call.reply.spare_bytes();
    match call.view.snapshot(call.key(0)).map(|value| Text { value, part, end: 0 }) {
        Some(text) if fits => call.reply.leave(Box::new(text)),
        Some(mut text) => drop(text.write(call.reply, Enough::MOST)),
        None => debug_assert!(false, "the string is there"),
    }
}

/// A bulk string behind its header.
struct Text {
    value: Snapshot,
    /// What is left of the text.
    part: Range<usize>,
    /// How many bytes of the line's end have been sent.
    end: usize,
}

impl Text {
    fn text(&self) -> &[u8] {
        match self.value.value().string() {
            Some(Item::Bytes(bytes)) => &bytes[self.part.clone()],
            _ => &[],
        }
    }
}

impl Remainder for Text {
    fn write(&mut self, reply: &mut Reply, enough: Enough) -> ControlFlow<()> {
        let room = enough.bytes.saturating_sub(reply.out.len()).max(1);
        let text = self.text();
        let text = &text[..text.len().min(room)];
        reply.append(text);
        if self.skip(text.len()).is_break() || reply.is_full() {
            return ControlFlow::Break(());
        }
        if self.part.is_empty() {
            reply.append(&END[self.end..]);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn ready(&self) -> [&[u8]; 2] {
        [self.text(), &END[self.end..]]
    }

    fn skip(&mut self, bytes: usize) -> ControlFlow<()> {
        let of_text = bytes.min(self.part.len());
        self.part.start += of_text;
        self.end += bytes - of_text;
        if self.end == END.len() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn bytes(&self) -> usize {
        size_of::<Text>()
    }

    fn burden_bytes(&self) -> u64 {
        self.value.burden_bytes()
    }
}
