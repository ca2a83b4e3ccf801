//! The column of lengths of a leaf whose entries are texts and integers: one code an entry, all codes of a
//! leaf equally wide; and what an entry stores ([`Stored`]). Leaves of lists and of sorted sets have it.
//!
//! ```text
//! width 1:  0..=247   a string of so many bytes      248..=255   an integer of 1..=8 bytes
//! width 2:  0..=65527 a string of so many bytes      65528..     an integer of 1..=8 bytes
//! width 4:  the same with 2^32
//! ```
//!
//! A code is all that says where the next entry begins, so the offset of entry `i` is the sum of the lengths
//! before it. For one-byte codes that sum takes sixteen codes an instruction (`psadbw`), a few nanoseconds
//! for a leaf of 4 KB. The sum has a portable twin, which the tests hold against it and other processors use.

#[cfg(target_arch = "x86_64")]
use crate::code::probe::first_word;
use crate::code::short_int::{int_len, read_int};
use crate::code::words::{u16_at, u32_at};
use base::Item;

/// How many values at the top of a code's range mean integers: widths of 1 to 8 bytes.
const INT_CODES: u32 = 8;

/// Bytes a code, the same for a whole leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Width {
    One = 1,
    Two = 2,
    Four = 4,
}

/// How much one entry stores: the number of bytes, and whether they are a native integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) len: usize,
    pub(crate) is_int: bool,
}

impl Extent {
    /// What storing this item takes.
    #[inline]
    pub(crate) fn of(item: &Item<'_>) -> Extent {
        match item {
            Item::Bytes(text) => Extent { len: text.len(), is_int: false },
            Item::Int(n) => Extent { len: int_len(*n), is_int: true },
        }
    }

    /// The entry that stores `bytes`, which are as many as the extent says.
    #[inline(always)]
    pub(crate) fn item(self, bytes: &[u8]) -> Item<'_> {
        debug_assert_eq!(bytes.len(), self.len);
        if self.is_int { Item::Int(read_int(bytes)) } else { Item::Bytes(bytes) }
    }
}

/// The bytes that an entry stores: a text as it is, an integer in the fewest bytes.
pub(crate) struct Stored<'a> {
    text: &'a [u8],
    int: [u8; 8],
    pub(crate) extent: Extent,
}

impl<'a> Stored<'a> {
    /// What `item` stores. Costs no copy of a text.
    #[inline]
    pub(crate) fn new(item: Item<'a>) -> Stored<'a> {
        let extent = Extent::of(&item);
        match item {
            Item::Bytes(text) => Stored { text, int: [0; 8], extent },
            Item::Int(n) => Stored { text: &[], int: n.to_le_bytes(), extent },
        }
    }

    /// The stored bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.extent.is_int { &self.int[..self.extent.len] } else { self.text }
    }

    /// How many these are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.extent.len
    }
}

impl Width {
    /// How many bytes a code takes.
    #[inline]
    pub(crate) const fn bytes(self) -> usize {
        self as usize
    }

    /// The width that the two bits of a header say.
    pub(crate) fn from_bits(bits: u8) -> Width {
        match bits & 3 {
            0 => Width::One,
            1 => Width::Two,
            _ => Width::Four,
        }
    }

    /// The two bits of a header that [`Width::from_bits`] reads.
    pub(crate) fn to_bits(self) -> u8 {
        match self {
            Width::One => 0,
            Width::Two => 1,
            Width::Four => 2,
        }
    }

    /// The narrowest width whose codes can say `extent`.
    pub(crate) fn for_extent(extent: Extent) -> Width {
        match extent {
            Extent { is_int: true, .. } => Width::One,
            Extent { len, .. } if len <= Width::One.string_len_max() => Width::One,
            Extent { len, .. } if len <= Width::Two.string_len_max() => Width::Two,
            Extent { len, .. } => {
                assert!(len <= Width::Four.string_len_max(), "an element of 4 GB or more");
                Width::Four
            }
        }
    }

    fn string_len_max(self) -> usize {
        (self.code_max() - INT_CODES) as usize
    }

    fn code_max(self) -> u32 {
        u32::MAX >> (32 - 8 * self.bytes() as u32)
    }

    #[inline]
    fn encode(self, extent: Extent) -> u32 {
        debug_assert!(!extent.is_int || (1..=INT_CODES as usize).contains(&extent.len), "{extent:?}");
        if extent.is_int { self.code_max() - INT_CODES + extent.len as u32 } else { extent.len as u32 }
    }

    #[inline(always)]
    fn decode(self, code: u32) -> Extent {
        let string_len_max = self.code_max() - INT_CODES;
        if code > string_len_max {
            Extent { len: (code - string_len_max) as usize, is_int: true }
        } else {
            Extent { len: code as usize, is_int: false }
        }
    }

    /// The extent whose code begins at `bytes[at]`.
    #[inline(always)]
    pub(crate) fn read(self, bytes: &[u8], at: usize) -> Extent {
        match self {
            Width::One => Width::One.decode(u32::from(bytes[at])),
            _ => self.read_wide(bytes, at),
        }
    }

    #[inline(never)]
    fn read_wide(self, bytes: &[u8], at: usize) -> Extent {
        let code = match self {
            Width::One => u32::from(bytes[at]),
            Width::Two => u32::from(u16_at(bytes, at)),
            Width::Four => u32_at(bytes, at),
        };
        self.decode(code)
    }

    /// Writes the code of `extent`, which the width can say, at `bytes[at]`.
    #[inline]
    pub(crate) fn write(self, bytes: &mut [u8], at: usize, extent: Extent) {
        debug_assert!(Width::for_extent(extent) <= self, "{extent:?} in a column of {self:?}");
        let code = self.encode(extent);
        match self {
            Width::One => bytes[at] = code as u8,
            _ => bytes[at..at + self.bytes()].copy_from_slice(&code.to_le_bytes()[..self.bytes()]),
        }
    }

    /// The one-byte code of `extent`, if one byte can say it. Codes are equal where extents are.
    #[inline(always)]
    pub(crate) fn byte_of(extent: Extent) -> Option<u8> {
        (Width::for_extent(extent) == Width::One).then(|| Width::One.encode(extent) as u8)
    }

    /// What a one-byte code says.
    #[inline(always)]
    pub(crate) fn extent_of_byte(code: u8) -> Extent {
        Width::One.decode(u32::from(code))
    }

    /// The length that a one-byte code says.
    #[inline(always)]
    pub(crate) fn len_of_byte(code: u8) -> usize {
        Width::extent_of_byte(code).len
    }

    /// The sum of the lengths that `codes` says: how many bytes so many entries store.
    #[inline]
    pub(crate) fn sum(self, codes: &[u8]) -> usize {
        debug_assert!(codes.len().is_multiple_of(self.bytes()), "{} bytes of {self:?}", codes.len());
        match self {
            Width::One => sum_of_bytes(codes),
            _ => self.sum_one_by_one(codes),
        }
    }

    fn sum_one_by_one(self, codes: &[u8]) -> usize {
        codes.chunks_exact(self.bytes()).map(|code| self.read(code, 0).len).sum()
    }
}

/// One-byte codes, sixteen at a time where the processor can.
#[cfg(target_arch = "x86_64")]
#[inline]
fn sum_of_bytes(codes: &[u8]) -> usize {
    let (blocks, rest) = codes.as_chunks::<16>();
    let whole = if blocks.is_empty() { 0 } else { sum_of_blocks(blocks) };
    if rest.is_empty() { whole } else { whole + sum_of_blocks(&[last_block(codes, rest.len())]) }
}

/// The last `count` codes, fewer than 16 of them, and zeros, which say a length of nothing. Reading them one
/// by one would take longer than all whole blocks.
#[cfg(target_arch = "x86_64")]
#[inline]
fn last_block(codes: &[u8], count: usize) -> [u8; 16] {
    let word = |bytes: &[u8]| u128::from(first_word(bytes));
    let lanes = match codes.last_chunk::<16>() {
        Some(last) => u128::from_le_bytes(*last) >> (8 * (16 - count)),
        None if count > 8 => word(codes) | word(&codes[count - 8..]) << (8 * (count - 8)),
        None => word(codes),
    };
    lanes.to_le_bytes()
}

#[cfg(not(target_arch = "x86_64"))]
fn sum_of_bytes(codes: &[u8]) -> usize {
    Width::One.sum_one_by_one(codes)
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn sum_of_blocks(blocks: &[[u8; 16]]) -> usize {
    use std::arch::x86_64::*;
    // SAFETY: SSE2 is part of every x86-64, and each load reads the 16 bytes of one block, with no alignment
    // asked.
    unsafe {
        let first_int = _mm_set1_epi8(248u8 as i8);
        let marks = _mm_set1_epi8(247u8 as i8);
        let mut sums = _mm_setzero_si128();
        for block in blocks {
            let codes = _mm_loadu_si128(block.as_ptr().cast());
            let is_int = _mm_cmpeq_epi8(_mm_max_epu8(codes, first_int), codes);
            let lens = _mm_sub_epi8(codes, _mm_and_si128(is_int, marks));
            sums = _mm_add_epi64(sums, _mm_sad_epu8(lens, _mm_setzero_si128()));
        }
        let high = _mm_unpackhi_epi64(sums, sums);
        _mm_cvtsi128_si64(_mm_add_epi64(sums, high)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn every_extent_survives_the_narrowest_width_that_takes_it() {
        let lens = [0, 1, 246, 247, 248, 255, 256, 65_527, 65_528, 70_000, 4_294_967_287];
        let strings = lens.map(|len| Extent { len, is_int: false });
        let ints = (1..=8).map(|len| Extent { len, is_int: true });
        for extent in strings.into_iter().chain(ints) {
            let mut bytes = [0xAA; 8];
            let narrowest = Width::for_extent(extent);
            for width in [Width::One, Width::Two, Width::Four].into_iter().filter(|w| *w >= narrowest) {
                width.write(&mut bytes, 2, extent);
                assert_eq!(width.read(&bytes, 2), extent, "{width:?}");
                assert_eq!((bytes[1], bytes[2 + width.bytes()]), (0xAA, 0xAA));
            }
        }
    }

    #[test]
    fn the_wide_sum_equals_its_portable_twin() {
        let mut random = Random::new(7);
        for len in 0..300 {
            let codes: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
            assert_eq!(sum_of_bytes(&codes), Width::One.sum_one_by_one(&codes), "{codes:?}");
        }
    }
}
