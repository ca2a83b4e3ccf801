//! Where bytes come from.
use crate::checksum::Sum;
use std::io::{self, Read};

/// Bytes that are no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What is wrong.
    pub what: &'static str,
    /// At which byte.
    pub at: u64,
}

/// Bytes one after another.
pub(crate) trait Source {
    /// The next `len` bytes; they are lent until the next call.
    fn take(&mut self, len: u64) -> Result<&[u8], Broken>;
    /// The offset of the byte that comes next.
    fn at(&self) -> u64;
}

/// A source whose bytes are all in memory.
pub(crate) struct Slice<'b> {
    bytes: &'b [u8],
    at: usize,
    /// The offset of the first of them.
    first: u64,
}

impl<'b> Slice<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Slice<'b> {
        Slice::part(bytes, 0)
    }

    /// Bytes that stand at offset `first` of what they are a part of.
    pub(crate) fn part(bytes: &'b [u8], first: u64) -> Slice<'b> {
        Slice { bytes, at: 0, first }
    }
}

impl Source for Slice<'_> {
    #[inline]
    fn take(&mut self, len: u64) -> Result<&[u8], Broken> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = usize::try_from(len).ok().and_then(|len| rest.get(..len));
        let taken = taken.ok_or(Broken { what: "the value ends too early", at: self.at() })?;
        self.at += taken.len();
        Ok(taken)
    }

    fn at(&self) -> u64 {
        self.first + self.at as u64
    }
}

/// How many bytes are read at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// A source whose bytes come from a file, or anything else that can be read. It holds what was read and not
/// taken, and sums up what was taken.
pub(crate) struct Stream<R> {
    input: R,
    buffer: Vec<u8>,
    /// What is before this place in the buffer was taken.
    at: usize,
    /// What is before this place is in the sum.
    summed: usize,
    /// The offset of the first byte of the buffer.
    first: u64,
    /// The sum of all that was taken; None where nobody wants it.
    sum: Option<Sum>,
    has_ended: bool,
    /// No more than so many bytes are in the input.
    end: u64,
    /// Why nothing more could be read.
    pub(crate) error: Option<io::Error>,
}

impl<R: Read> Stream<R> {
    pub(crate) fn new(input: R) -> Stream<R> {
        let (buffer, sum) = (Vec::new(), Some(Sum::new()));
        Stream {
            input,
            buffer,
            at: 0,
            summed: 0,
            first: 0,
            sum,
            has_ended: false,
            end: u64::MAX,
            error: None,
        }
    }

    /// The input is so long: a length that goes beyond its end is refused before anything is read for it.
    pub(crate) fn ends_at(&mut self, end: u64) {
        self.end = end;
    }

    /// The checksum of all that was taken; None where it was not wanted.
    pub(crate) fn sum(&mut self) -> Option<u64> {
        self.add_up();
        self.sum.as_ref().map(Sum::value)
    }

    /// Nobody will ask for the sum.
    pub(crate) fn stop_summing(&mut self) {
        self.sum = None;
    }

    fn add_up(&mut self) {
        if let Some(sum) = &mut self.sum {
            sum.add(&self.buffer[self.summed..self.at]);
        }
        self.summed = self.at;
    }

    /// Reads until so many bytes wait to be taken, or there are no more.
    pub(crate) fn fill(&mut self, waiting: usize) {
        while self.waiting().len() < waiting && self.read_more() {}
    }

    /// What was read and not taken.
    pub(crate) fn waiting(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    /// Reads a chunk; false if nothing came.
    fn read_more(&mut self) -> bool {
        if self.has_ended {
            return false;
        }
        if self.at > 0 {
            self.add_up();
            self.first += self.at as u64;
            self.buffer.drain(..self.at);
            (self.at, self.summed) = (0, 0);
        }
        // What a length announces takes no memory before it has arrived.
        let chunk = self.input.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut self.buffer);
        match chunk {
            Ok(0) => self.has_ended = true,
            Ok(_) => {}
            Err(error) => {
                self.has_ended = true;
                self.error = Some(error);
            }
        }
        !self.has_ended
    }
}

impl<R: Read> Stream<R> {
    /// The next byte, which is not taken; None at the end.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.fill(1);
        self.waiting().first().copied()
    }

    /// The next line with its end, or so many bytes where it is longer. None if the end comes before.
    pub(crate) fn take_line(&mut self, len_max: usize) -> Option<&[u8]> {
        let mut len = 0;
        loop {
            let found = self.waiting().iter().skip(len).position(|byte| *byte == b'\n');
            if let Some(more) =
                found.map(|at| len + at + 1).or((self.waiting().len() >= len_max).then_some(len_max))
            {
                return self.take(more.min(len_max) as u64).ok();
            }
            len = self.waiting().len();
            self.fill(len + 1);
            if self.waiting().len() == len {
                return None;
            }
        }
    }
}

impl<R: Read> Source for Stream<R> {
    fn take(&mut self, len: u64) -> Result<&[u8], Broken> {
        const TOO_EARLY: &str = "the file ends too early";
        if len > self.end.saturating_sub(self.at()) {
            return Err(Broken { what: TOO_EARLY, at: self.end });
        }
        let wanted = usize::try_from(len).unwrap_or(usize::MAX);
        if self.waiting().len() < wanted {
            self.fill(wanted);
        }
        if self.waiting().len() < wanted {
            return Err(Broken { what: TOO_EARLY, at: self.first + self.buffer.len() as u64 });
        }
        self.at += wanted;
        Ok(&self.buffer[self.at - wanted..self.at])
    }

    fn at(&self) -> u64 {
        self.first + self.at as u64
    }
}
