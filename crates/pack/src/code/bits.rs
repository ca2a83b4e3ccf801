//! A run of bits in words of 64, the lowest bit first: searched, read, and edited in the middle, a word at a
//! time.
//!
//! Words are kept as bytes, little endian, because they lie in leaves that are aligned to nothing. Bit 70 is
//! bit 6 of word 1; with a width of 5, number 13 of a run lies in bits 65 to 69. On the path of every lookup
//! in a set of integers.

/// Bits of a word.
pub(crate) const WORD: usize = u64::BITS as usize;
/// A word as it lies in a leaf.
pub(crate) type Word = [u8; 8];

/// Word `at`.
#[inline]
pub(crate) fn word(words: &[Word], at: usize) -> u64 {
    u64::from_le_bytes(words[at])
}

/// The number of the bit behind the first `zeros` zeros; None where there are fewer.
#[inline]
pub(crate) fn skip_zeros(words: &[Word], zeros: usize) -> Option<usize> {
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
pub(crate) fn run_of_ones(words: &[Word], bit: usize) -> usize {
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
pub(crate) fn next_one(words: &[Word], bit: usize) -> usize {
    debug_assert!(bit < words.len() * WORD, "bit {bit} of {} words", words.len());
    let mut at = bit / WORD;
    let mut ones = word(words, at) >> (bit % WORD) << (bit % WORD);
    while ones == 0 {
        at += 1;
        ones = word(words, at);
    }
    at * WORD + ones.trailing_zeros() as usize
}

/// The number of the bit that is a one and has `n` ones below it; there must be such a bit. The ones of each
/// byte are added up in the bytes of a word, which tells the byte; within it the lower ones are taken off one
/// by one.
#[inline]
pub(crate) fn nth_one(ones: u64, n: u32) -> u32 {
    debug_assert!(n < ones.count_ones(), "one {n} of {ones:#x}");
    const BYTES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = BYTES << 7;
    let twos = ones - (ones >> 1 & 0x5555_5555_5555_5555);
    let fours = (twos & 0x3333_3333_3333_3333) + (twos >> 2 & 0x3333_3333_3333_3333);
    // Byte k is the number of ones in the bytes 0 to k.
    let sums = ((fours + (fours >> 4)) & 0x0F0F_0F0F_0F0F_0F0F).wrapping_mul(BYTES);
    // The top bit of a byte says that its sum is at most n.
    let passed = ((u64::from(n) * BYTES) | TOPS).wrapping_sub(sums) & TOPS;
    let shift = 8 * passed.count_ones();
    let before = (sums << 8 >> shift & 0xFF) as u32;
    let mut rest = ones >> shift;
    for _ in before..n {
        rest &= rest - 1;
    }
    shift + rest.trailing_zeros()
}

/// Makes a bit a one.
#[inline]
pub(crate) fn set_bit(words: &mut [Word], bit: usize) {
    words[bit / WORD] = (word(words, bit / WORD) | 1 << (bit % WORD)).to_le_bytes();
}

/// Number `index` of those of `width` bits each (0 to 63), which lie back to back.
#[inline]
pub(crate) fn get(words: &[Word], index: usize, width: u32) -> u64 {
    let bit = index * width as usize;
    let (at, shift) = (bit / WORD, bit % WORD);
    if width == 0 {
        return 0;
    }
    let mut number = word(words, at) >> shift;
    if shift + width as usize > WORD {
        number |= word(words, at + 1) << (WORD - shift);
    }
    number & ((1 << width) - 1)
}

/// Writes number `index` of those of `width` bits each (0 to 63), which lie back to back.
#[inline]
pub(crate) fn put(words: &mut [Word], index: usize, width: u32, number: u64) {
    debug_assert!(number >> width == 0, "{number} in {width} bits");
    if width == 0 {
        return;
    }
    let bit = index * width as usize;
    let (at, shift) = (bit / WORD, bit % WORD);
    let mask = (1_u64 << width) - 1;
    words[at] = (word(words, at) & !(mask << shift) | number << shift).to_le_bytes();
    if shift + width as usize > WORD {
        let rest = WORD - shift;
        words[at + 1] = (word(words, at + 1) & !(mask >> rest) | number >> rest).to_le_bytes();
    }
}

/// Moves the bits `from..to` up by `by`, less than a word. What they leave behind has no meaning afterwards,
/// nor has what lies behind `to + by`.
#[inline]
pub(crate) fn shift_up(words: &mut [Word], from: usize, to: usize, by: u32) {
    debug_assert!(from <= to && (by as usize) < WORD, "{from}..{to} by {by}");
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

/// Takes the `by` bits at `from` out of those up to `to`, behind which either the words end or nothing has a
/// meaning.
#[inline]
pub(crate) fn shift_down(words: &mut [Word], from: usize, to: usize, by: u32) {
    debug_assert!(from + by as usize <= to && (by as usize) < WORD, "{by} bits at {from} of {to}");
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
mod tests {
    use super::*;
    use base::random::Random;

    /// The bits one by one, as booleans.
    fn spell(words: &[Word]) -> Vec<bool> {
        (0..words.len() * WORD).map(|bit| word(words, bit / WORD) >> (bit % WORD) & 1 == 1).collect()
    }

    fn any_words(random: &mut Random) -> Vec<Word> {
        (0..1 + random.below(4)).map(|_| (random.next_u64() & random.next_u64()).to_le_bytes()).collect()
    }

    #[test]
    fn searches_agree_with_looking_at_each_bit() {
        let mut random = Random::new(3);
        for _ in 0..400 {
            let mut words = any_words(&mut random);
            if random.below(4) == 0 {
                words[0] = [0xFF; 8];
            }
            let bits = spell(&words);
            let behind_zeros = |zeros: usize| {
                let nth = (0..bits.len()).filter(|bit| !bits[*bit]).nth(zeros.wrapping_sub(1));
                if zeros == 0 { Some(0) } else { nth.map(|bit| bit + 1) }
            };
            (0..bits.len() + 2).for_each(|zeros| assert_eq!(skip_zeros(&words, zeros), behind_zeros(zeros)));
            for bit in 0..bits.len() {
                let run = bits[bit..].iter().take_while(|is_one| **is_one).count();
                assert_eq!(run_of_ones(&words, bit), run, "{words:x?} {bit}");
                if let Some(ahead) = bits[bit..].iter().position(|is_one| *is_one) {
                    assert_eq!(next_one(&words, bit), bit + ahead, "{words:x?} {bit}");
                }
            }
        }
    }

    #[test]
    fn numbers_are_read_as_they_were_written_whatever_lay_there() {
        let mut random = Random::new(4);
        for width in 0..WORD as u32 {
            let mut words = vec![[0xAA; 8]; 30];
            let count = (words.len() * WORD / width.max(1) as usize).min(500);
            let numbers: Vec<u64> = (0..count).map(|_| random.next_u64() & ((1 << width) - 1)).collect();
            numbers.iter().enumerate().for_each(|(index, number)| put(&mut words, index, width, *number));
            assert!((0..count).all(|index| get(&words, index, width) == numbers[index]), "width {width}");
        }
    }

    #[test]
    fn bits_that_are_shifted_are_those_of_a_vector() {
        let mut random = Random::new(5);
        for _ in 0..4000 {
            let words = any_words(&mut random);
            let (bits, by) = (spell(&words), random.below(64) as usize);
            let from = random.below((bits.len() - by) as u64 + 1) as usize;
            let to = from + random.below((bits.len() - by - from) as u64 + 1) as usize;
            let mut up = words.clone();
            if to > from || by > 0 {
                shift_up(&mut up, from, to, by as u32);
            }
            assert_eq!(spell(&up)[..from], bits[..from]);
            assert_eq!(spell(&up)[from + by..to + by], bits[from..to], "up from {from} to {to} by {by}");
            let (mut down, end) = (words, bits.len());
            shift_down(&mut down, from, end, by as u32);
            let mut twin = bits;
            twin.drain(from..from + by);
            assert_eq!(spell(&down)[..end - by], twin, "down at {from} by {by}");
        }
    }

    #[test]
    fn the_nth_one_of_a_word_is_found() {
        let mut random = Random::new(2);
        for _ in 0..2000 {
            let ones = random.next_u64() & random.next_u64() | 1 << random.below(64);
            let mut rest = ones;
            for n in 0..ones.count_ones() {
                assert_eq!(nth_one(ones, n), rest.trailing_zeros(), "{ones:x} {n}");
                rest &= rest - 1;
            }
        }
        assert_eq!(nth_one(u64::MAX, 63), 63);
    }
}
