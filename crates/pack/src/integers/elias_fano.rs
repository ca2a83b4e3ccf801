//! A leaf of integers in ascending order, each once: the Elias-Fano code, which spends on an element two bits more than the
//! logarithm of the mean gap between elements, and which can be searched and edited as it is.
//!
//! Every element is its distance from the leaf's base, cut in two. The low `width` bits of all elements lie in an array. The
//! high bits are written in unary into one run of bits: a one for each element, and before it a zero for every step that its
//! high part is above the one before. So element `i` with the high part `h` has its one at bit `h + i`, and to find a
//! value is to skip `h` zeros, which are counted a word at a time, and to look at the ones that follow, about one on the average.
//!
//! ```text
//!  0..8   base     the distance of every element counts from here     all numbers little endian
//!  8..12  shape    bits 0..10 count, 10..20 words of high bits, 20..27 width (0..=64)
//! 12..    high     so many words of 64 bits, the lowest bit first; behind the last one only zeros
//!   ..    low      element i in bits i * width .. (i + 1) * width, to the end of the leaf; room behind the last
//! ```
//!
//! 100, 103, 105, 118: the base is 100, the range 18, so width 2 (18 / 4 = 4.5, of which the logarithm is 2). Distances 0,
//! 3, 5, 18 are the high parts 0, 0, 1, 4 and the low parts 0, 3, 1, 2. High bits, the lowest first: `1 1 0 1 0 0 0 1`; low
//! bits: 0b10_01_11_00:
//!
//! ```text
//! 64 00 00 00 00 00 00 00   04 04 20 00   8b 00 00 00 00 00 00 00   9c 00 00 00 00 00 00 00
//! ```
//!
//! An insert shifts the high bits behind it by one and the low parts behind it by the width, whole words at a time; nothing
//! is decoded. Only a value below the base, or one for which another width has become right, has the leaf written anew.
//!
//! Cost: 2 to 3 bits and the width an element (consecutive integers: 2 bits; a million random ones below 2^40: 22.5 bits), 24 bytes
//! a leaf with its block's header. Beside that the frame of reference (a base and offsets of one width, packed) would
//! take 28 bits for those, since its offsets span the whole leaf, and 8 for consecutive ones.
//! Limits: 1,023 elements, and as many words of high bits; [`COUNT_MAX`] is the limit that the tree keeps.
use crate::code::quarters::first_not_before;
use crate::code::words::u32_at;
use crate::memory::arena::Moves;
use crate::memory::block::{self, Block};
use crate::tree::node::Leaf;

/// A leaf with more elements than this is split.
pub(crate) const COUNT_MAX: usize = 512;

const HEADER: usize = 12;
const WORD: usize = 64;
type Word = [u8; 8];

const FIELD: u32 = (1 << 10) - 1;
const WORDS_SHIFT: u32 = 10;
const WIDTH_SHIFT: u32 = 20;
const _: () = assert!(COUNT_MAX <= FIELD as usize);

/// How integers are cut in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    base: i64,
    width: u32,
}

impl Frame {
    /// The best for `count` elements from `base` up to `last`.
    fn fit(base: i64, last: i64, count: usize) -> Frame {
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
    fn words(&self, last: i64, count: usize) -> (usize, usize) {
        let high_bits = self.high(last) as usize + count;
        (high_bits.div_ceil(WORD), (count * self.width as usize).div_ceil(WORD))
    }
}

/// Where a value is, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// How many elements are less.
    pub(crate) index: usize,
    /// The bit of the high bits that is its one, or would become it; of no meaning for a value below the base.
    bit: usize,
    pub(crate) is_found: bool,
}

/// The leaf's content, to read.
#[derive(Clone, Copy)]
pub(crate) struct Sorted<'a> {
    frame: Frame,
    count: usize,
    high: &'a [Word],
    low: &'a [Word],
}

impl<'a> Sorted<'a> {
    #[inline]
    fn open(bytes: &'a [u8]) -> Sorted<'a> {
        let (head, rest) = bytes.split_first_chunk::<HEADER>().expect("a leaf is longer than its header");
        let (base, shape) = head.split_first_chunk::<8>().expect("the base is a part of the header");
        let shape = u32::from_le_bytes(*shape.first_chunk().expect("four bytes of shape"));
        let frame = Frame { base: i64::from_le_bytes(*base), width: shape >> WIDTH_SHIFT };
        let (high, low) = rest.as_chunks::<8>().0.split_at((shape >> WORDS_SHIFT & FIELD) as usize);
        Sorted { frame, count: (shape & FIELD) as usize, high, low }
    }

    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The first element that is not less than `value`.
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
        let bit = index * self.frame.width as usize;
        let (at, shift) = (bit / WORD, bit % WORD);
        if self.frame.width == 0 {
            return 0;
        }
        let mut low = word(self.low, at) >> shift;
        if shift + self.frame.width as usize > WORD {
            low |= word(self.low, at + 1) << (WORD - shift);
        }
        low & self.frame.mask()
    }

    /// Element `index`.
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

    /// The next element.
    #[inline]
    pub(crate) fn next(&self, spot: Spot) -> Option<(Spot, i64)> {
        self.settle(spot.index + 1, spot.bit + 1)
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

    pub(crate) fn values(&self) -> Vec<i64> {
        let mut values = Vec::with_capacity(self.count + 1);
        self.for_each(|value| values.push(value));
        values
    }

    /// The least content that holds this.
    fn used_content_bytes(&self) -> usize {
        let (high, low) = self.frame.words(self.last(), self.count);
        HEADER + (high + low) * size_of::<Word>()
    }

    /// Whether one more element at `spot`, not below the base, has room.
    fn has_room_at(&self, spot: Spot) -> bool {
        let low_bits = (self.count + 1) * self.frame.width as usize;
        // Behind the last one there are zeros: the last bit is one only if no other bit fits.
        let is_shiftable = word(self.high, self.high.len() - 1) >> (WORD - 1) == 0;
        low_bits <= self.low.len() * WORD && spot.bit < self.high.len() * WORD && is_shiftable
    }
}

pub(crate) struct IntLeaf(Block);

impl IntLeaf {
    /// A leaf of `values`, ascending and each once, at least one of them.
    pub(crate) fn of(values: &[i64]) -> IntLeaf {
        IntLeaf::from_base(values[0], values)
    }

    fn from_base(base: i64, values: &[i64]) -> IntLeaf {
        let last = values[values.len() - 1];
        let frame = Frame::fit(base, last, values.len());
        let mut leaf = IntLeaf::with_room(frame, last, values.len());
        let (high, low) = leaf.parts_mut();
        for (index, value) in values.iter().enumerate() {
            set_bit(high, frame.high(*value) as usize + index);
            put_low(low, index, frame.width, frame.low(*value));
        }
        leaf.set_count(values.len());
        leaf
    }

    /// No elements, and room for `count` up to `last` at least. What the allocation holds beyond that goes where the next
    /// elements will want it: three bits of the high ones, and a low part, each.
    fn with_room(frame: Frame, last: i64, count: usize) -> IntLeaf {
        let (high, low) = frame.words(last, count);
        let mut block = Block::spread(&[0; HEADER], (high + low) * size_of::<Word>(), &[]);
        let spare = (block.len() - HEADER) / size_of::<Word>() - high - low;
        let high = (high + spare * 3 / (frame.width as usize + 3)).min(FIELD as usize);
        let shape = (high as u32) << WORDS_SHIFT | frame.width << WIDTH_SHIFT;
        let bytes = block.make_mut();
        bytes[..8].copy_from_slice(&frame.base.to_le_bytes());
        bytes[8..HEADER].copy_from_slice(&shape.to_le_bytes());
        IntLeaf(block)
    }

    #[inline]
    pub(crate) fn read(&self) -> Sorted<'_> {
        Sorted::open(&self.0)
    }

    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.read().count
    }

    pub(crate) fn is_under(&self) -> bool {
        self.count() < COUNT_MAX / 4
    }

    /// Whether both would make one leaf that does not split again soon.
    pub(crate) fn can_join(&self, other: &IntLeaf) -> bool {
        self.count() + other.count() <= COUNT_MAX * 3 / 4
    }

    /// Bytes in use, the block's header included.
    pub(crate) fn used_bytes(&self) -> usize {
        block::HEADER_BYTES + self.read().used_content_bytes()
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        self.0.allocated_bytes()
    }

    pub(crate) fn relocate(&mut self, moves: &mut Moves) {
        self.0.relocate(moves);
    }

    /// Inserts a value that is not there, at the spot where it was looked for. The leaf is not full.
    #[inline]
    pub(crate) fn insert(&mut self, spot: Spot, value: i64) {
        debug_assert!(!spot.is_found && self.count() < COUNT_MAX);
        let leaf = self.read();
        if value >= leaf.frame.base && leaf.has_room_at(spot) {
            self.insert_in_room(spot, value);
        } else {
            self.insert_anew(spot, value);
        }
    }

    #[inline]
    fn insert_in_room(&mut self, spot: Spot, value: i64) {
        let Sorted { frame, count, .. } = self.read();
        let (high, low) = self.parts_mut();
        let high_end = high.len() * WORD - 1;
        shift_up(high, spot.bit, high_end, 1);
        set_bit(high, spot.bit);
        let width = frame.width as usize;
        shift_up(low, spot.index * width, count * width, frame.width);
        put_low(low, spot.index, frame.width, frame.low(value));
        self.set_count(count + 1);
    }

    pub(crate) fn remove(&mut self, spot: Spot) {
        assert!(spot.is_found, "what is removed was found");
        let Sorted { frame, count, .. } = self.read();
        let (high, low) = self.parts_mut();
        let high_end = high.len() * WORD;
        shift_down(high, spot.bit, high_end, 1);
        let width = frame.width as usize;
        shift_down(low, spot.index * width, count * width, frame.width);
        self.set_count(count - 1);
        self.shrink();
    }

    /// Moves to a leaf that has room. Where the cut stays as it is, the bits do too.
    #[cold]
    fn insert_anew(&mut self, spot: Spot, value: i64) {
        let leaf = self.read();
        let (count, last) = (leaf.count + 1, leaf.last().max(value));
        let is_above = value >= leaf.frame.base;
        if is_above && Frame::fit(leaf.frame.base, last, count) == leaf.frame {
            self.regrow(last, count);
            return self.insert_in_room(spot, value);
        }
        let base = if is_above { leaf.first().min(value) } else { some_below(value, last) };
        let mut values = leaf.values();
        values.insert(spot.index, value);
        *self = IntLeaf::from_base(base, &values);
    }

    /// The same bits in a leaf that has room for `count` elements up to `last`.
    fn regrow(&mut self, last: i64, count: usize) {
        let old = self.read();
        let mut fresh = IntLeaf::with_room(old.frame, last, count);
        let (high, low) = fresh.parts_mut();
        let highs = high.len().min(old.high.len());
        high[..highs].copy_from_slice(&old.high[..highs]);
        let lows = low.len().min(old.low.len());
        low[..lows].copy_from_slice(&old.low[..lows]);
        fresh.set_count(old.count);
        *self = fresh;
    }

    /// Gives back what removals left empty, once it is an eighth.
    fn shrink(&mut self) {
        let leaf = self.read();
        if leaf.count == 0 {
            return;
        }
        let wanted = leaf.used_content_bytes();
        if (self.0.len() - wanted) * 8 >= self.0.len() && self.0.is_larger_than_for_entries(wanted) {
            *self = IntLeaf::of(&leaf.values());
        }
    }

    /// High and low words, and nothing of the header.
    fn parts_mut(&mut self) -> (&mut [Word], &mut [Word]) {
        let highs = self.read().high.len();
        self.0.make_mut()[HEADER..].as_chunks_mut::<8>().0.split_at_mut(highs)
    }

    fn set_count(&mut self, count: usize) {
        let bytes = &mut self.0.make_mut()[8..HEADER];
        let shape = u32_at(bytes, 0);
        bytes.copy_from_slice(&(shape & !FIELD | count as u32).to_le_bytes());
    }
}

impl Clone for IntLeaf {
    fn clone(&self) -> IntLeaf {
        IntLeaf(self.0.clone())
    }
}

impl Leaf for IntLeaf {
    fn is_sole(&self) -> bool {
        self.0.is_sole()
    }
}

/// A base for a leaf whose first element has become `first`: one that came in below may be the first of many, so the
/// next ones find their high bits there. A sixteenth of the range is a sixteenth of a bit an element.
fn some_below(first: i64, last: i64) -> i64 {
    first.saturating_sub_unsigned(last.abs_diff(first) / 16)
}

#[inline]
fn word(words: &[Word], at: usize) -> u64 {
    u64::from_le_bytes(words[at])
}

/// The bit behind the first `zeros` zeros.
#[inline]
fn skip_zeros(words: &[Word], zeros: usize) -> Option<usize> {
    if zeros == 0 {
        return Some(0);
    }
    let mut left = zeros;
    for (at, bytes) in words.iter().enumerate() {
        let zeros = !u64::from_le_bytes(*bytes);
        let here = zeros.count_ones() as usize;
        if left <= here {
            return Some(at * WORD + nth_one(zeros, left as u32 - 1) as usize + 1);
        }
        left -= here;
    }
    None
}

/// How many ones there are from `bit` on before the first zero.
#[inline]
fn run_of_ones(words: &[Word], bit: usize) -> usize {
    let (mut at, shift) = (bit / WORD, bit % WORD);
    let Some(bytes) = words.get(at) else { return 0 };
    let mut run = (u64::from_le_bytes(*bytes) >> shift).trailing_ones() as usize;
    while run > 0 && (shift + run).is_multiple_of(WORD) {
        at += 1;
        let ones = words.get(at).map_or(0, |bytes| u64::from_le_bytes(*bytes).trailing_ones() as usize);
        if ones == 0 {
            break;
        }
        run += ones;
    }
    run
}

/// The first one at `bit` or behind it; there is one.
#[inline]
fn next_one(words: &[Word], bit: usize) -> usize {
    let mut at = bit / WORD;
    let mut ones = word(words, at) >> (bit % WORD) << (bit % WORD);
    while ones == 0 {
        at += 1;
        ones = word(words, at);
    }
    at * WORD + ones.trailing_zeros() as usize
}

/// The place of the one that has `n` ones below it; there is one. The ones of each byte are added up in the bytes of a
/// word, which tells the byte; within it the lower ones are taken off one by one.
#[inline]
fn nth_one(ones: u64, n: u32) -> u32 {
    const BYTES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = BYTES << 7;
    let pairs = ones - (ones >> 1 & 0x5555_5555_5555_5555);
    let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    // Byte k: the ones in bytes 0 to k.
    let sums = ((fours + (fours >> 4)) & 0x0F0F_0F0F_0F0F_0F0F).wrapping_mul(BYTES);
    // The top bit of a byte: its sum is at most n.
    let passed = ((u64::from(n) * BYTES) | TOPS).wrapping_sub(sums) & TOPS;
    let shift = 8 * passed.count_ones();
    let before = (sums << 8 >> shift & 0xFF) as u32;
    let mut rest = ones >> shift;
    for _ in before..n {
        rest &= rest - 1;
    }
    shift + rest.trailing_zeros()
}

#[inline]
fn set_bit(words: &mut [Word], bit: usize) {
    words[bit / WORD] = (word(words, bit / WORD) | 1 << (bit % WORD)).to_le_bytes();
}

/// Writes the low part of element `index`.
#[inline]
fn put_low(words: &mut [Word], index: usize, width: u32, low: u64) {
    if width == 0 {
        return;
    }
    let bit = index * width as usize;
    let (at, shift) = (bit / WORD, bit % WORD);
    let mask = (1_u64 << width) - 1;
    words[at] = (word(words, at) & !(mask << shift) | low << shift).to_le_bytes();
    if shift + width as usize > WORD {
        let rest = WORD - shift;
        words[at + 1] = (word(words, at + 1) & !(mask >> rest) | low >> rest).to_le_bytes();
    }
}

/// Moves the bits `from..to` up by `by`, less than a word; what they leave behind is of no meaning, and so is what lies behind `to + by`.
#[inline]
fn shift_up(words: &mut [Word], from: usize, to: usize, by: u32) {
    if by == 0 {
        return;
    }
    let (first, last) = (from / WORD, (to + by as usize - 1) / WORD);
    for at in (first + 1..=last).rev() {
        words[at] = (word(words, at) << by | word(words, at - 1) >> (WORD as u32 - by)).to_le_bytes();
    }
    let kept = (1 << (from % WORD)) - 1;
    let old = word(words, first);
    words[first] = (old & kept | (old & !kept) << by).to_le_bytes();
}

/// Takes the `by` bits at `from` out of those up to `to`, which is the end or has bits of no meaning behind it.
#[inline]
fn shift_down(words: &mut [Word], from: usize, to: usize, by: u32) {
    if by == 0 {
        return;
    }
    let (first, last) = (from / WORD, (to - 1) / WORD);
    let kept = (1 << (from % WORD)) - 1;
    let old = word(words, first) & kept;
    for at in first..=last {
        let next = if at < last { word(words, at + 1) } else { 0 };
        words[at] = (word(words, at) >> by | next << (WORD as u32 - by)).to_le_bytes();
    }
    // The first word's bits below `from` stay; those at it came from up to two words.
    let moved = word(words, first) & !kept;
    words[first] = (moved | old).to_le_bytes();
}

#[cfg(test)]
#[path = "elias_fano_tests.rs"]
mod tests;
