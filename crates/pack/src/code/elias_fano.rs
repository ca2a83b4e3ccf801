//! The Elias-Fano code: integers in ascending order, each once, in two bits an element more than the
//! logarithm of the mean gap between elements. It can be searched and edited as it is. Leaves of sets of
//! integers are made of it ([`crate::integers::int_leaf`]).
//!
//! Every element is its distance from the code's base, cut in two. The low `width` bits of all elements lie
//! in an array. The high bits are written in unary into one run of bits: a one for each element, and before
//! it a zero for every step that its high part is above the one before. So element `i` with the high part `h`
//! has its one at bit `h + i`, and to find a value is to skip `h` zeros, which are counted a word at a time,
//! and to look at the ones that follow, about one on the average.
//!
//! ```text
//!  0..8   base     the distance of every element counts from here     all numbers little endian
//!  8..12  sizes    bits 0..10 count, 10..20 words of high bits, 20..27 width (0..=63)
//! 12..    high     so many words of 64 bits, the lowest bit first; behind the last one only zeros
//!   ..    low      element i in bits i * width .. (i + 1) * width, to the end of the bytes
//! ```
//!
//! 100, 103, 105, 118: the base is 100, the range 18, so width 2 (18 / 4 = 4.5, of which the logarithm is 2).
//! Distances 0, 3, 5, 18 are the high parts 0, 0, 1, 4 and the low parts 0, 3, 1, 2. High bits, the lowest
//! first: `1 1 0 1 0 0 0 1`; low bits: 0b10_01_11_00:
//!
//! ```text
//! 64 00 00 00 00 00 00 00   04 04 20 00   8b 00 00 00 00 00 00 00   9c 00 00 00 00 00 00 00
//! ```
//!
//! An insert shifts the high bits behind it by one and the low parts behind it by the width, whole words at a
//! time; nothing is decoded. For a value below the base, or one that has no room, the owner of the bytes has
//! to write the whole code anew.
//!
//! Cost: 2 to 3 bits and the width an element (consecutive integers: 2 bits; a million random ones below
//! 2^40: 22.5 bits), and 12 bytes. The frame of reference (a base and offsets of one width, packed) would
//! take 28 bits for those, since its offsets span the whole leaf, and 8 for consecutive ones. Limits: 1,023
//! elements, and as many words of high bits.
use crate::code::bits::{self, WORD, Word, next_one, nth_one, run_of_ones, set_bit, skip_zeros, word};
use crate::code::quarters::first_not_before;
use crate::code::words::u32_at;

/// Bytes before the high bits.
pub(crate) const HEADER: usize = 12;
/// The most elements that a code can have, and the most words of high bits.
pub(crate) const COUNT_MAX: usize = FIELD as usize;
/// Bytes of a word.
pub(crate) const WORD_BYTES: usize = size_of::<Word>();

const FIELD: u32 = (1 << 10) - 1;
const WORDS_SHIFT: u32 = 10;
const WIDTH_SHIFT: u32 = 20;

/// How integers are cut in two: the base, and the width of the low part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) base: i64,
    /// Bits of a low part, 0 to 63.
    pub(crate) width: u32,
}

impl Frame {
    /// The frame in which `count` elements from `base` up to `last` take the fewest bits.
    pub(crate) fn fit(base: i64, last: i64, count: usize) -> Frame {
        assert!(base <= last && count > 0, "{count} elements from {base} to {last}");
        let mean_gap = last.abs_diff(base) / count as u64;
        Frame { base, width: mean_gap.checked_ilog2().unwrap_or(0) }
    }

    #[inline]
    fn distance(&self, value: i64) -> u64 {
        (value as u64).wrapping_sub(self.base as u64)
    }

    /// The high part of a value at or above the base.
    #[inline]
    fn high(&self, value: i64) -> u64 {
        self.distance(value) >> self.width
    }

    #[inline]
    fn low(&self, value: i64) -> u64 {
        self.distance(value) & self.mask()
    }

    #[inline]
    fn mask(&self) -> u64 {
        (1 << self.width) - 1
    }

    #[inline]
    fn join(&self, high: usize, low: u64) -> i64 {
        (self.base as u64).wrapping_add((high as u64) << self.width | low) as i64
    }

    /// Words of high bits and of low parts that `count` elements up to `last` need.
    pub(crate) fn words(&self, last: i64, count: usize) -> (usize, usize) {
        let high_bits = self.high(last) as usize + count;
        (high_bits.div_ceil(WORD), (count * self.width as usize).div_ceil(WORD))
    }
}

/// Where a value is, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// How many elements are less than the value.
    pub(crate) index: usize,
    /// The number of the high bit that is the value's one, or would become it. It has no meaning for a value
    /// below the base.
    bit: usize,
    pub(crate) is_found: bool,
}

impl Spot {
    /// Behind an element: its place is taken by the next one, if there is another.
    #[inline]
    fn behind(self) -> Spot {
        Spot { index: self.index + 1, bit: self.bit + 1, is_found: false }
    }
}

/// A code, to read.
#[derive(Clone, Copy)]
pub(crate) struct EliasFano<'a> {
    frame: Frame,
    count: usize,
    high: &'a [Word],
    low: &'a [Word],
}

impl<'a> EliasFano<'a> {
    /// Reads the header alone.
    #[inline]
    pub(crate) fn open(bytes: &'a [u8]) -> EliasFano<'a> {
        let (head, rest) = bytes.split_first_chunk::<HEADER>().expect("a leaf is longer than its header");
        let (base, sizes) = head.split_first_chunk::<8>().expect("the base is a part of the header");
        let sizes = u32::from_le_bytes(*sizes.first_chunk().expect("four bytes of sizes"));
        let frame = Frame { base: i64::from_le_bytes(*base), width: sizes >> WIDTH_SHIFT };
        let (high, low) = rest.as_chunks::<8>().0.split_at((sizes >> WORDS_SHIFT & FIELD) as usize);
        let count = (sizes & FIELD) as usize;
        debug_assert!((frame.width as usize) < WORD, "{frame:?}");
        debug_assert!(count <= high.len() * WORD && count * frame.width as usize <= low.len() * WORD);
        EliasFano { frame, count, high, low }
    }

    /// How many elements there are.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn frame(&self) -> Frame {
        self.frame
    }

    /// Where `value` is, or where it would be: at the first element that is greater. Counts the zeros of the
    /// high bits before it, a word at a time, and then searches the few elements with its high part by
    /// halves.
    #[inline]
    pub(crate) fn seek(&self, value: i64) -> Spot {
        if value < self.frame.base {
            return Spot { index: 0, bit: 0, is_found: false };
        }
        let high = self.frame.high(value);
        let bit = usize::try_from(high).ok().and_then(|zeros| skip_zeros(self.high, zeros));
        let Some(bit) = bit else {
            let bit = usize::try_from(high).unwrap_or(usize::MAX).saturating_add(self.count);
            return Spot { index: self.count, bit, is_found: false };
        };
        let (index, low) = (bit - high as usize, self.frame.low(value));
        let run = run_of_ones(self.high, bit);
        let at = self.seek_low(index, run, low);
        let is_found = at < run && self.low(index + at) == low;
        Spot { index: index + at, bit: bit + at, is_found }
    }

    /// How many of the `run` elements from `index` on, which share one high part, have a lower low part.
    #[inline]
    fn seek_low(&self, index: usize, run: usize, low: u64) -> usize {
        first_not_before(index..index + run, |index| self.low(index) < low) - index
    }

    /// The low part of element `index`.
    #[inline]
    fn low(&self, index: usize) -> u64 {
        debug_assert!(index < self.count, "element {index} of {}", self.count);
        bits::get(self.low, index, self.frame.width)
    }

    /// Element `index`, which exists. Counts the ones of the high bits before it, a word at a time.
    pub(crate) fn get(&self, index: usize) -> i64 {
        assert!(index < self.count, "element {index} of {}", self.count);
        let mut rest = index as u32;
        for (at, bytes) in self.high.iter().enumerate() {
            let ones = u64::from_le_bytes(*bytes);
            if rest < ones.count_ones() {
                let bit = at * WORD + nth_one(ones, rest) as usize;
                return self.frame.join(bit - index, self.low(index));
            }
            rest -= ones.count_ones();
        }
        unreachable!("a leaf has a one for each element")
    }

    /// The least element.
    pub(crate) fn first(&self) -> i64 {
        self.get(0)
    }

    /// The greatest element: found from the end, where the last one is.
    pub(crate) fn last(&self) -> i64 {
        let at = self.high.iter().rposition(|word| *word != [0; 8]).expect("no leaf is empty");
        let bit = at * WORD + word(self.high, at).ilog2() as usize;
        self.frame.join(bit + 1 - self.count, self.low(self.count - 1))
    }

    /// The spot of the first element that is not less than `value`, and the element; None behind the last.
    #[inline]
    pub(crate) fn find_from(&self, value: i64) -> Option<(Spot, i64)> {
        let spot = self.seek(value);
        self.settle(spot.index, spot.bit)
    }

    /// Decodes the elements from `spot` on into `values`, as many as there are and fit; `spot` is that of an
    /// element, or [behind](Spot::behind) one. Returns how many, and the spot behind the last of them.
    #[inline]
    pub(crate) fn decode(&self, spot: Spot, values: &mut [i64]) -> (usize, Spot) {
        let len = values.len().min(self.count - spot.index.min(self.count));
        let (mut at, mut behind) = (spot.bit / WORD, spot);
        let mut ones = self.high.get(at).map_or(0, |bytes| u64::from_le_bytes(*bytes));
        ones = ones >> (spot.bit % WORD) << (spot.bit % WORD);
        for (index, value) in (spot.index..).zip(&mut values[..len]) {
            while ones == 0 {
                at += 1;
                ones = word(self.high, at);
            }
            let bit = at * WORD + ones.trailing_zeros() as usize;
            *value = self.frame.join(bit - index, self.low(index));
            behind = Spot { index, bit, is_found: true }.behind();
            ones &= ones - 1;
        }
        (len, behind)
    }

    /// Element `index`, whose one is the first at `bit` or behind it.
    #[inline]
    fn settle(&self, index: usize, bit: usize) -> Option<(Spot, i64)> {
        if index >= self.count {
            return None;
        }
        let bit = next_one(self.high, bit);
        let value = self.frame.join(bit - index, self.low(index));
        Some((Spot { index, bit, is_found: true }, value))
    }

    /// Every element, in order.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(i64)) {
        let mut index = 0;
        for (number, bytes) in self.high.iter().enumerate() {
            let mut ones = u64::from_le_bytes(*bytes);
            while ones != 0 {
                let bit = number * WORD + ones.trailing_zeros() as usize;
                visit(self.frame.join(bit - index, self.low(index)));
                index += 1;
                ones &= ones - 1;
            }
        }
    }

    /// All elements, with room for one more.
    pub(crate) fn values(&self) -> Vec<i64> {
        let mut values = Vec::with_capacity(self.count + 1);
        self.for_each(|value| values.push(value));
        values
    }

    /// Bytes of the least code that holds these elements in this frame.
    pub(crate) fn used_bytes(&self) -> usize {
        let (high, low) = self.frame.words(self.last(), self.count);
        HEADER + (high + low) * WORD_BYTES
    }

    /// Whether [`insert`] has room for `value` at the spot where it was looked for.
    #[inline]
    pub(crate) fn has_room_for(&self, spot: Spot, value: i64) -> bool {
        let low_bits = (self.count + 1) * self.frame.width as usize;
        // Behind the last one there are only zeros, so the last bit is set only if the words are full.
        let is_shiftable = word(self.high, self.high.len() - 1) >> (WORD - 1) == 0;
        value >= self.frame.base
            && low_bits <= self.low.len() * WORD
            && spot.bit < self.high.len() * WORD
            && is_shiftable
    }
}

/// Makes zeroed `bytes` a code without elements that has `highs` words of high bits; the rest is for low
/// parts.
pub(crate) fn begin(bytes: &mut [u8], frame: Frame, highs: usize) {
    assert!(
        (frame.width as usize) < WORD && highs <= FIELD as usize,
        "{frame:?}, {highs} words of high bits"
    );
    debug_assert!(HEADER + highs * WORD_BYTES <= bytes.len());
    let sizes = (highs as u32) << WORDS_SHIFT | frame.width << WIDTH_SHIFT;
    bytes[..8].copy_from_slice(&frame.base.to_le_bytes());
    bytes[8..HEADER].copy_from_slice(&sizes.to_le_bytes());
}

/// Puts `values`, ascending and each once, into a code that [`begin`] made for them.
pub(crate) fn fill(bytes: &mut [u8], values: &[i64]) {
    let frame = EliasFano::open(bytes).frame;
    debug_assert!(values[0] >= frame.base && values.is_sorted_by(|a, b| a < b));
    let (high, low) = parts_mut(bytes);
    for (index, value) in values.iter().enumerate() {
        set_bit(high, frame.high(*value) as usize + index);
        bits::put(low, index, frame.width, frame.low(*value));
    }
    set_count(bytes, values.len());
}

/// Puts the bits of `old` into a code that [`begin`] made with the same frame and room for all of them.
pub(crate) fn fill_from(bytes: &mut [u8], old: EliasFano<'_>) {
    debug_assert_eq!(EliasFano::open(bytes).frame, old.frame);
    let (high, low) = parts_mut(bytes);
    let highs = high.len().min(old.high.len());
    high[..highs].copy_from_slice(&old.high[..highs]);
    let lows = low.len().min(old.low.len());
    low[..lows].copy_from_slice(&old.low[..lows]);
    set_count(bytes, old.count);
}

/// Inserts a value that is not there, at the spot where it was looked for, which [has
/// room](EliasFano::has_room_for). Costs a shift of the bits behind it, a word at a time.
#[inline]
pub(crate) fn insert(bytes: &mut [u8], spot: Spot, value: i64) {
    let EliasFano { frame, count, .. } = EliasFano::open(bytes);
    debug_assert!(!spot.is_found && EliasFano::open(bytes).has_room_for(spot, value));
    let (high, low) = parts_mut(bytes);
    let high_end = high.len() * WORD - 1;
    bits::shift_up(high, spot.bit, high_end, 1);
    set_bit(high, spot.bit);
    let width = frame.width as usize;
    bits::shift_up(low, spot.index * width, count * width, frame.width);
    bits::put(low, spot.index, frame.width, frame.low(value));
    set_count(bytes, count + 1);
}

/// Removes the element that was found at `spot`. Its room is kept. Costs a shift of the bits behind it.
#[inline]
pub(crate) fn remove(bytes: &mut [u8], spot: Spot) {
    assert!(spot.is_found, "what is removed was found");
    let EliasFano { frame, count, .. } = EliasFano::open(bytes);
    let (high, low) = parts_mut(bytes);
    let high_end = high.len() * WORD;
    bits::shift_down(high, spot.bit, high_end, 1);
    let width = frame.width as usize;
    bits::shift_down(low, spot.index * width, count * width, frame.width);
    set_count(bytes, count - 1);
}

/// The words of high bits and those of low parts.
#[inline]
fn parts_mut(bytes: &mut [u8]) -> (&mut [Word], &mut [Word]) {
    let highs = EliasFano::open(bytes).high.len();
    bytes[HEADER..].as_chunks_mut::<WORD_BYTES>().0.split_at_mut(highs)
}

#[inline]
fn set_count(bytes: &mut [u8], count: usize) {
    debug_assert!(count <= COUNT_MAX, "{count} elements");
    let sizes = u32_at(bytes, 8) & !FIELD | count as u32;
    bytes[8..HEADER].copy_from_slice(&sizes.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_in_the_opener_is_true() {
        let values = [100, 103, 105, 118];
        let frame = Frame::fit(100, 118, values.len());
        assert_eq!((frame.width, frame.words(118, values.len())), (2, (1, 1)));
        let mut bytes = vec![0; HEADER + 2 * WORD_BYTES];
        begin(&mut bytes, frame, 1);
        fill(&mut bytes, &values);
        let mut expected = 100_i64.to_le_bytes().to_vec();
        expected.extend_from_slice(&[4, 4, 0x20, 0, 0x8b, 0, 0, 0, 0, 0, 0, 0, 0x9c, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes, expected);
        let code = EliasFano::open(&bytes);
        assert_eq!((code.values(), code.used_bytes()), (values.to_vec(), bytes.len()));
    }
}
