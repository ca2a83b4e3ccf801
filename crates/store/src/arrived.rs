//! A long string in the buffer that its request has arrived in, with what stood around it there
//! (`keyspace/arrivals.rs`).
use std::ops::Range;

/// A text in a buffer with something around it.
pub(crate) struct Arrived {
    buffer: Vec<u8>,
    text: Range<usize>,
}

impl Arrived {
    /// A text that lies there in its buffer.
    pub(crate) fn new(buffer: Vec<u8>, text: Range<usize>) -> Arrived {
        Arrived { buffer, text }
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.buffer[self.text.clone()]
    }

    /// Bytes of memory that it takes.
    pub(crate) fn room_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// The text and what stands around it.
    pub(crate) fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// The same, to be moved or taken.
    pub(crate) fn buffer_mut(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Edits the text where it lies: behind a position that is told, up to the end of the buffer.
    pub(crate) fn edit<R>(&mut self, edit: impl FnOnce(&mut Vec<u8>, usize) -> R) -> R {
        self.buffer.truncate(self.text.end);
        let result = edit(&mut self.buffer, self.text.start);
        self.text.end = self.buffer.len();
        result
    }

    /// The text alone, in the same allocation.
    pub(crate) fn take_text(&mut self) -> Vec<u8> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.truncate(self.text.end);
        buffer.drain(..self.text.start);
        self.text = 0..0;
        buffer
    }
}

impl Clone for Arrived {
    fn clone(&self) -> Arrived {
        let buffer = self.text().to_vec();
        Arrived { text: 0..buffer.len(), buffer }
    }
}
