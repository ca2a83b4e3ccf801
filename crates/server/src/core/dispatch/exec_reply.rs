//! The reply of EXEC where its requests have left something to be written piece by piece.
//!
//! What a request leaves owns what it writes from (`resp::Remainder`), so what comes behind it in the queue
//! changes nothing of it. It is kept, with the place in the reply where it belongs, and EXEC leaves all of
//! them, and the texts between, as one remainder:
//!
//! ```text
//! *3 CR LF *2000 CR LF | rest of HGETALL | +OK CR LF *5000 CR LF | rest of LRANGE | (nothing)
//! written at once        part 0: rest      part 0: text            part 1: rest     part 1: text
//! ```
//!
//! A part that is written stays until all are: what it was read from may be nobody else's any more, and is
//! freed with the whole, on another thread where it is large.
use resp::{Enough, Remainder, Reply};
use std::ops::ControlFlow;
use store::Garbage;

/// What is so short is written at once.
const AT_ONCE: Enough = Enough { bytes: 0, elements: if cfg!(debug_assertions) { 8 } else { 1024 } };
const AT_ONCE_BYTES: usize = 64 << 10;

/// What requests have left so far, and where the reply ended then.
#[derive(Default)]
pub(super) struct Rests(Vec<(usize, Box<dyn Remainder>)>);

impl Rests {
    /// A request has run.
    #[inline]
    pub(super) fn note(&mut self, reply: &mut Reply) {
        if let Some(rest) = reply.take_remainder() {
            self.keep(reply, rest);
        }
    }

    #[cold]
    fn keep(&mut self, reply: &mut Reply, mut rest: Box<dyn Remainder>) {
        let enough = Enough { bytes: reply.out.len() + AT_ONCE_BYTES, ..AT_ONCE };
        if rest.ready()[0].len() > AT_ONCE_BYTES || rest.write(reply, enough).is_continue() {
            self.0.push((reply.out.len(), rest));
        }
    }

    /// All requests have run: leaves the rest of the reply. What nobody will write is returned.
    #[inline]
    pub(super) fn leave(&mut self, reply: &mut Reply) -> Option<Garbage> {
        if self.0.is_empty() { None } else { std::mem::take(self).chain(reply) }
    }

    #[cold]
    fn chain(self, reply: &mut Reply) -> Option<Garbage> {
        if reply.is_full() {
            let bytes = self.0.iter().map(|(_, rest)| rest.burden_bytes() + rest.bytes() as u64).sum();
            return Some(Garbage::of_bytes(bytes, self.0));
        }
        let part = |(at, rest): (usize, Box<dyn Remainder>)| {
            let text = reply.out.split_off(at);
            Part { rest, text }
        };
        let mut parts: Vec<Part> = self.0.into_iter().rev().map(part).collect();
        parts.reverse();
        reply.leave(Box::new(Chain { parts, place: Place { part: 0, text: None } }));
        None
    }
}

/// A rest, and the text behind it.
struct Part {
    rest: Box<dyn Remainder>,
    text: Vec<u8>,
}

/// What comes next: the rest of a part, or what stands from a byte of its text on.
#[derive(Clone, Copy)]
struct Place {
    part: usize,
    text: Option<usize>,
}

/// All of them. There is always something to come.
struct Chain {
    parts: Vec<Part>,
    place: Place,
}

impl Chain {
    /// A rest, or a text up to `end`, is written: what comes next; `Break` if that was the last.
    fn go_on(&mut self, end: Option<usize>) -> ControlFlow<()> {
        let text_bytes = self.parts[self.place.part].text.len();
        self.place = match end.unwrap_or(0) {
            end if end < text_bytes => Place { text: Some(end), ..self.place },
            _ => Place { part: self.place.part + 1, text: None },
        };
        if self.place.part < self.parts.len() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

impl Remainder for Chain {
    fn write(&mut self, reply: &mut Reply, enough: Enough) -> ControlFlow<()> {
        let part = &mut self.parts[self.place.part];
        let Some(from) = self.place.text else {
            return match part.rest.write(reply, enough) {
                ControlFlow::Continue(()) => ControlFlow::Continue(()),
                ControlFlow::Break(()) => self.go_on(None),
            };
        };
        let left = &part.text[from..];
        let piece = left.len().min(enough.bytes.saturating_sub(reply.out.len()).max(1));
        reply.append(&left[..piece]);
        self.go_on(Some(from + piece))
    }

    fn ready(&self) -> [&[u8]; 2] {
        match self.place.text {
            None => self.parts[self.place.part].rest.ready(),
            Some(_) => [&[], &[]],
        }
    }

    fn skip(&mut self, bytes: usize) -> ControlFlow<()> {
        if self.place.text.is_some() {
            return ControlFlow::Continue(());
        }
        match self.parts[self.place.part].rest.skip(bytes) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(()) => self.go_on(None),
        }
    }

    fn bytes(&self) -> usize {
        let parts = self.parts.iter().map(|part| part.text.capacity() + part.rest.bytes());
        size_of::<Chain>() + self.parts.capacity() * size_of::<Part>() + parts.sum::<usize>()
    }

    fn burden_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.rest.burden_bytes()).sum()
    }
}
