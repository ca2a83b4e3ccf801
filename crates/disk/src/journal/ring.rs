//! The last bytes of a stream of commands, by their offsets: what a replica that was away for a while reads
//! on from, and by which any reader of the stream is ahead or behind.
//!
//! ```text
//! offsets   0 ........ start ............ end
//!           forgotten  |  held            | not there yet
//! ```
//!
//! A reader is an offset, not a buffer. One that falls behind the start has to begin again.
use std::collections::VecDeque;

/// See the file's opener.
#[derive(Debug)]
pub struct Ring {
    bytes: VecDeque<u8>,
    /// The most bytes that are held.
    bytes_max: usize,
    /// The offset behind the last byte.
    end: u64,
}

/// Why bytes cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotHeld {
    /// They are held no longer.
    Forgotten,
    /// They are not there yet.
    Ahead,
}

impl Ring {
    /// An empty one, whose first byte will have this offset. It takes memory as bytes come.
    pub fn new(bytes_max: usize, offset: u64) -> Ring {
        Ring { bytes: VecDeque::new(), bytes_max, end: offset }
    }

    /// The offset of the first byte that is held.
    pub fn start(&self) -> u64 {
        self.end - self.bytes.len() as u64
    }

    /// The offset behind the last byte.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Appends bytes, and forgets the oldest where there is no room for all.
    pub fn append(&mut self, bytes: &[u8]) {
        // Of more than there is room for only the end is kept.
        let kept = &bytes[bytes.len().saturating_sub(self.bytes_max)..];
        let excess = (self.bytes.len() + kept.len()).saturating_sub(self.bytes_max);
        self.bytes.drain(..excess);
        self.bytes.extend(kept);
        self.end += bytes.len() as u64;
    }

    /// Appends to `out` what is held from `offset` on, at most `len_max` bytes. Returns the offset to go on
    /// from.
    pub fn read(&self, offset: u64, len_max: usize, out: &mut Vec<u8>) -> Result<u64, NotHeld> {
        if offset < self.start() {
            return Err(NotHeld::Forgotten);
        }
        if offset > self.end {
            return Err(NotHeld::Ahead);
        }
        let first = (offset - self.start()) as usize;
        let len = (self.bytes.len() - first).min(len_max);
        let (front, back) = self.bytes.as_slices();
        let of_front = &front[first.min(front.len())..(first + len).min(front.len())];
        let before_back = front.len();
        let of_back = first.saturating_sub(before_back)..(first + len).saturating_sub(before_back);
        out.extend_from_slice(of_front);
        out.extend_from_slice(&back[of_back]);
        Ok(offset + len as u64)
    }

    /// Bytes of memory that it takes.
    pub fn allocated_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn the_last_bytes_are_held_under_their_offsets() {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let (bytes_max, first) = (1 + random.below(60) as usize, random.below(1000));
            let (mut ring, mut all) = (Ring::new(bytes_max, first), Vec::new());
            for _ in 0..100 {
                let more: Vec<u8> = (0..random.below(80)).map(|_| random.next_u64() as u8).collect();
                ring.append(&more);
                all.extend_from_slice(&more);
                assert_eq!(ring.end(), first + all.len() as u64, "seed {seed}");
                assert_eq!(ring.start(), ring.end() - all.len().min(bytes_max) as u64, "seed {seed}");
                let from = first + random.below(all.len() as u64 + 2);
                let (len_max, mut out) = (random.below(100) as usize, Vec::new());
                match ring.read(from, len_max, &mut out) {
                    Ok(next) => {
                        let at = (from - first) as usize;
                        assert_eq!(out, all[at..(at + len_max).min(all.len())], "seed {seed}");
                        assert_eq!(next, from + out.len() as u64, "seed {seed}");
                    }
                    Err(NotHeld::Forgotten) => assert!(from < ring.start(), "seed {seed}"),
                    Err(NotHeld::Ahead) => assert!(from > ring.end(), "seed {seed}"),
                }
            }
            assert!(ring.allocated_bytes() <= 2 * bytes_max.max(8), "seed {seed}");
        }
    }
}
