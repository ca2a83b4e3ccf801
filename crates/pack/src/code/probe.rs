//! Comparing one text with many stored ones. Most stored texts are a few bytes long, so that calling `memcmp`
//! costs more than comparing them; and neighbours in a leaf (`user:1041`, `user:1042`) differ in their last
//! bytes, so these are looked at first.
//!
//! A text without bytes is never compared by `memcmp` here: the address of an empty slice need not be memory,
//! and where the C library loads vectors under a mask, a load of nothing from no memory costs a hundred
//! nanoseconds.

use crate::code::short_int::int_len;
use crate::code::words::{u32_at, u64_at};
use base::Item;

/// What a search looks for: a text, or an integer as it is stored.
pub(crate) struct Probe<'a> {
    /// All of it where there are more than 8 bytes.
    text: &'a [u8],
    len: usize,
    /// The last 8 bytes, or all where there are fewer.
    tail: u64,
}

impl<'a> Probe<'a> {
    /// Reads the end of the text once, for all comparisons to come.
    #[inline]
    pub(crate) fn new(text: &'a [u8]) -> Probe<'a> {
        Probe { text, len: text.len(), tail: last_word(text) }
    }

    /// An item in the bytes of its [`Extent`](super::lengths::Extent).
    #[inline]
    pub(crate) fn of(item: &Item<'a>) -> Probe<'a> {
        match *item {
            Item::Bytes(text) => Probe::new(text),
            Item::Int(n) => {
                let len = int_len(n);
                Probe { text: &[], len, tail: n as u64 & low_bytes(len) }
            }
        }
    }

    /// Whether the text stands at `bytes[at..]`, where there are as many bytes. For most this is one load and
    /// one comparison.
    #[inline(always)]
    pub(crate) fn is_at(&self, bytes: &[u8], at: usize) -> bool {
        let len = self.len;
        if len <= WORD {
            return match bytes.get(at..at + WORD) {
                Some(word) => u64_at(word, 0) & low_bytes(len) == self.tail,
                None => first_word(&bytes[at..at + len]) == self.tail,
            };
        }
        let tail = at + len - WORD;
        u64_at(bytes, tail) == self.tail && equal(&bytes[at..tail], &self.text[..len - WORD])
    }
}

const WORD: usize = size_of::<u64>();

/// A mask of that many bytes, at most 8.
fn low_bytes(count: usize) -> u64 {
    debug_assert!(count <= WORD, "{count} bytes");
    if count == WORD { u64::MAX } else { (1 << (8 * count)) - 1 }
}

/// Up to 8 bytes, the first ones where there are more, as a number.
#[inline]
pub(crate) fn first_word(bytes: &[u8]) -> u64 {
    match bytes.len() {
        8.. => u64_at(bytes, 0),
        // Where the halves overlap they have the same bits.
        len @ 4.. => u64::from(u32_at(bytes, 0)) | u64::from(u32_at(bytes, len - 4)) << (8 * (len - 4)),
        _ => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Up to 8 bytes, the last ones where there are more, as a number.
#[inline]
pub(crate) fn last_word(bytes: &[u8]) -> u64 {
    first_word(&bytes[bytes.len().saturating_sub(WORD)..])
}

/// Whether two texts of the same length are equal.
#[inline]
pub(crate) fn equal(a: &[u8], b: &[u8]) -> bool {
    debug_assert_eq!(a.len(), b.len());
    match a.len() {
        0 => true,
        len @ 1..=WORD => first_word(a) == first_word(&b[..len]),
        len @ ..=16 => u64_at(a, 0) == u64_at(b, 0) && u64_at(a, len - WORD) == u64_at(b, len - WORD),
        _ => a == b,
    }
}

/// What follows `prefix` in `text`, if it begins so.
#[inline]
pub(crate) fn strip_prefix<'t>(text: &'t [u8], prefix: &[u8]) -> Option<&'t [u8]> {
    let (front, rest) = text.split_at_checked(prefix.len())?;
    equal(front, prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn texts_of_every_length_are_equal_to_themselves_and_to_nothing_that_differs_in_a_byte() {
        let mut random = Random::new(4);
        for len in 0..40_usize {
            let text: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
            for behind in [0, 1, 7, 20] {
                let mut bytes = [&[1, 2, 3][..], &text, &vec![9; behind]].concat();
                assert!(Probe::new(&text).is_at(&bytes, 3) && equal(&bytes[3..3 + len], &text), "{len}");
                assert_eq!(strip_prefix(&bytes[3..], &text), Some(&vec![9; behind][..]));
                for at in 0..len {
                    bytes[3 + at] ^= 0x40;
                    assert!(!Probe::new(&text).is_at(&bytes, 3), "{len}, {at}");
                    assert!(!equal(&bytes[3..3 + len], &text), "{len}, {at}");
                    assert_eq!(strip_prefix(&bytes[3..], &text), None);
                    bytes[3 + at] ^= 0x40;
                }
            }
            if len > 0 {
                assert_eq!(strip_prefix(&text[..len - 1], &text), None);
            }
        }
    }
}
