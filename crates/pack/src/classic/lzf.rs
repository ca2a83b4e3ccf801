//! LZF, the format in which Redis compresses list nodes and the strings of dump files.
//!
//! ```text
//! 000lllll                     l + 1 literal bytes follow (1..=32)
//! lllooooo oooooooo            copy l + 2 bytes (l 1..=6) from o + 1 bytes back
//! 111ooooo llllllll oooooooo   copy l + 9 bytes from o + 1 bytes back
//! ```
//!
//! `aaaaaaaaaa` (ten) is `00 61 e0 00 00`: one literal, then copy 9 bytes from 1 byte back. There is no
//! header: whoever keeps the bytes keeps both lengths. Copies reach 8,192 bytes back and are at most 264
//! bytes long.
//!
//! Sardine needs the format because the memory that lists take compares with Redis's only when both use it,
//! and because dump files have to be read. There is no crate with a bounded decoder that fills a given
//! buffer, and the format is small, so it is written here.

/// The input is not LZF, or not of the length it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

const LITERALS_MAX: usize = 32;
/// A control byte below that begins literals.
const LITERALS: u8 = LITERALS_MAX as u8;
/// Copies of up to so many bytes are made with as many, where there is room.
const STRIDE: usize = 16;
const COPY_MIN: usize = 3;
const COPY_MAX: usize = 264;
const REACH: usize = 1 << 13;
/// The table has two to the power of the text's own number of bits and so many more slots.
const TABLE_BITS_MORE: u32 = 4;
const TABLE_BITS_MIN: u32 = 10;
const TABLE_BITS_MAX: u32 = 16;

/// Fills `target` from `input`; all of both must be used. Never panics, whatever the bytes; what `target`
/// holds after an error means nothing.
pub fn decompress(mut input: &[u8], target: &mut [u8]) -> Result<(), Corrupt> {
    let mut filled = 0;
    while let Some((&control, rest)) = input.split_first() {
        input = rest;
        if control < LITERALS {
            let (literals, rest) = input.split_at_checked(usize::from(control) + 1).ok_or(Corrupt)?;
            let end = filled + literals.len();
            let whole = (target.get_mut(filled..filled + LITERALS_MAX), input.first_chunk::<LITERALS_MAX>());
            match whole {
                // Some bytes too many, which are written over or beyond nothing: a few instructions, where a
                // copy of just these is a call.
                (Some(target), Some(some)) => target.copy_from_slice(some),
                _ => target.get_mut(filled..end).ok_or(Corrupt)?.copy_from_slice(literals),
            }
            (filled, input) = (end, rest);
        } else {
            let (back, len, rest) = copy_of(control, input)?;
            copy_back(target, filled, back, len)?;
            (filled, input) = (filled + len, rest);
        }
    }
    if filled == target.len() { Ok(()) } else { Err(Corrupt) }
}

/// How many bytes these compressed ones stand for, if they are what they seem: a walk that writes nothing.
pub fn decompressed_len(mut input: &[u8]) -> Result<usize, Corrupt> {
    let mut len = 0_usize;
    while let Some((&control, rest)) = input.split_first() {
        let more;
        (more, input) = match control {
            ..LITERALS => {
                let (literals, rest) = rest.split_at_checked(usize::from(control) + 1).ok_or(Corrupt)?;
                (literals.len(), rest)
            }
            _ => copy_of(control, rest).map(|(_, len, rest)| (len, rest))?,
        };
        len = len.checked_add(more).ok_or(Corrupt)?;
    }
    Ok(len)
}

/// Reads a copy: how far back it begins, its length, and the input behind it.
fn copy_of(control: u8, input: &[u8]) -> Result<(usize, usize, &[u8]), Corrupt> {
    let high = usize::from(control & 31) << 8;
    match (control >> 5, input) {
        (7, [more, low, rest @ ..]) => Ok((high + usize::from(*low) + 1, usize::from(*more) + 9, rest)),
        (len @ 1..=6, [low, rest @ ..]) => Ok((high + usize::from(*low) + 1, usize::from(len) + 2, rest)),
        _ => Err(Corrupt),
    }
}

/// Copies within `target`, byte by byte where source and copy overlap: then the source repeats.
fn copy_back(target: &mut [u8], filled: usize, back: usize, len: usize) -> Result<(), Corrupt> {
    let from = filled.checked_sub(back).ok_or(Corrupt)?;
    if filled + len > target.len() {
        return Err(Corrupt);
    }
    if len <= STRIDE && back >= STRIDE && filled + STRIDE <= target.len() {
        let some: [u8; STRIDE] = target[from..from + STRIDE].try_into().expect("so many bytes");
        target[filled..filled + STRIDE].copy_from_slice(&some);
    } else if len <= back {
        target.copy_within(from..from + len, filled);
    } else {
        (0..len).for_each(|i| target[filled + i] = target[from + i]);
    }
    Ok(())
}

/// Appends the compressed form of `input` to `target`. It may be longer than `input` by a 32nd. This takes
/// one pass, and up to 128 KB for a [`Compressor`] of its own.
pub fn compress(input: &[u8], target: &mut Vec<u8>) {
    Compressor::default().compress(input, target);
}

/// How many bytes this many compressed ones may stand for, at most.
pub fn len_max(compressed: usize) -> usize {
    compressed.div_ceil(COPY_MIN).saturating_mul(COPY_MAX)
}

/// Compresses one text after another, with one table.
///
/// The table has eight slots and more for each byte of a text, up to as many as liblzf has: fewer would lose
/// copies, and make the files longer than Redis's. A short text uses the beginning of it, which stays in a
/// core's cache.
#[derive(Default)]
pub struct Compressor {
    /// For each hash, where three bytes that have it stood last: the lowest bits of an offset into all texts
    /// one after another, so that the table need not be emptied between two texts. What is found is compared
    /// with what it should be, so an offset that means nothing does no harm. It grows as texts want it.
    seen: Vec<u16>,
    /// The lowest bits of the offset at which the next text begins.
    base: u16,
}

impl Compressor {
    /// Appends the compressed form of `input` to `target`. It may be longer than `input` by a 32nd.
    pub fn compress(&mut self, input: &[u8], target: &mut Vec<u8>) {
        let bits = (input.len().max(1).ilog2() + TABLE_BITS_MORE).clamp(TABLE_BITS_MIN, TABLE_BITS_MAX);
        if self.seen.len() < 1 << bits {
            self.seen.resize(1 << bits, 0);
        }
        let mut table = Table { seen: &mut self.seen[..1 << bits], base: self.base };
        let mut literals_from = 0;
        while let Some((at, from)) = table.search(input, literals_from) {
            let before = common_before(input, (literals_from, at), from);
            let (at, from) = (at - before, from - before);
            put_literals(&input[literals_from..at], target);
            let len = match_len(input, from, at);
            put_copy(at - from, len, target);
            literals_from = at + len;
            // Later copies begin most often where this one does, a byte later, or where it ends. To enter all
            // of its bytes takes twice the time and makes nothing shorter.
            for at in [at + 1, at + len - 2, at + len - 1] {
                if let Some(three) = three_at(input, at) {
                    table.replace(three, at);
                }
            }
        }
        put_literals(&input[literals_from..], target);
        self.base = self.base.wrapping_add(input.len() as u16);
    }
}

/// The part of the table that one text uses.
struct Table<'t> {
    seen: &'t mut [u16],
    /// What stands for the first byte of the text.
    base: u16,
}

impl Table<'_> {
    /// Where from `start` on three bytes stand that stood before, and where that was. The longer nothing is
    /// found the fewer bytes are looked at: in what cannot be compressed one in [`LITERALS_MAX`] and more.
    #[inline(always)]
    fn search(&mut self, input: &[u8], start: usize) -> Option<(usize, usize)> {
        const AT_ONCE: usize = 4;
        let mut at = start;
        while let Some(eight) = input.get(at..).and_then(|rest| rest.first_chunk()) {
            let eight = u64::from_le_bytes(*eight);
            for more in 0..AT_ONCE {
                let three = (eight >> (8 * more)) as u32 & 0xFF_FFFF;
                if let Some(from) = self.look(input, at + more, three) {
                    return Some((at + more, from));
                }
            }
            at += AT_ONCE + (at - start) / LITERALS_MAX;
        }
        (at..input.len()).find_map(|at| Some((at, self.look(input, at, three_at(input, at)?)?)))
    }

    /// Enters the three bytes at `at`. Returns where the same stood before, not too far back for a copy.
    #[inline(always)]
    fn look(&mut self, input: &[u8], at: usize, three: u32) -> Option<usize> {
        let back = self.replace(three, at);
        let is_here = (1..=REACH.min(at)).contains(&back);
        (is_here && three_at(input, at - back) == Some(three)).then(|| at - back)
    }

    /// Enters the three bytes at `at`. Returns how far back others with their hash stood, if these are of the
    /// same text and not too far.
    #[inline(always)]
    fn replace(&mut self, three: u32, at: usize) -> usize {
        let mask = self.seen.len() - 1;
        let slot = &mut self.seen[(three.wrapping_mul(0x9E37_79B1) >> 16) as usize & mask];
        let place = self.base.wrapping_add(at as u16);
        usize::from(place.wrapping_sub(std::mem::replace(slot, place)))
    }
}

/// How many bytes before `at` are those before `from`, at most back to `start`.
fn common_before(input: &[u8], (start, at): (usize, usize), from: usize) -> usize {
    let pairs = input[start..at].iter().rev().zip(input[..from].iter().rev());
    pairs.take_while(|(new, old)| new == old).count()
}

/// The three bytes at `at`, as a number; None where there are fewer.
#[inline(always)]
fn three_at(input: &[u8], at: usize) -> Option<u32> {
    let rest = &input[at..];
    match rest.first_chunk::<4>() {
        Some(four) => Some(u32::from_le_bytes(*four) & 0xFF_FFFF),
        None => rest.first_chunk().map(|[a, b, c]| u32::from_le_bytes([*a, *b, *c, 0])),
    }
}

/// How many bytes at `at` are those at `from`, as far as a copy may go.
#[inline]
fn match_len(input: &[u8], from: usize, at: usize) -> usize {
    let len_max = COPY_MAX.min(input.len() - at);
    let (old, new) = (&input[from..from + len_max], &input[at..at + len_max]);
    let mut len = COPY_MIN;
    while let (Some(old), Some(new)) = (old[len..].first_chunk(), new[len..].first_chunk()) {
        let differ = u64::from_le_bytes(*old) ^ u64::from_le_bytes(*new);
        if differ != 0 {
            return len + (differ.trailing_zeros() / 8) as usize;
        }
        len += 8;
    }
    (len..len_max).find(|at| old[*at] != new[*at]).unwrap_or(len_max)
}

/// Appends literals, 32 at a time.
fn put_literals(literals: &[u8], target: &mut Vec<u8>) {
    for run in literals.chunks(LITERALS_MAX) {
        target.push(run.len() as u8 - 1);
        target.extend_from_slice(run);
    }
}

/// Appends a copy of `len` bytes from `back` bytes back.
fn put_copy(back: usize, len: usize, target: &mut Vec<u8>) {
    debug_assert!((1..=REACH).contains(&back) && (COPY_MIN..=COPY_MAX).contains(&len), "{len} from {back}");
    let [low, high, ..] = (back - 1).to_le_bytes();
    match len - 2 {
        short @ 1..=6 => target.extend_from_slice(&[(short as u8) << 5 | high, low]),
        long => target.extend_from_slice(&[7 << 5 | high, (long - 7) as u8, low]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    fn check(input: &[u8], compressor: &mut Compressor) {
        let mut packed = Vec::new();
        compressor.compress(input, &mut packed);
        assert!(input.len() <= len_max(packed.len()));
        let mut opened = vec![0; input.len()];
        assert_eq!(decompressed_len(&packed), Ok(input.len()));
        assert_eq!(decompress(&packed, &mut opened), Ok(()));
        assert!(opened == input && packed.len() <= input.len() + input.len() / 32 + 1);
    }

    #[test]
    fn the_worked_example_reads_and_writes_as_shown() {
        let packed = [0x00, 0x61, 0xE0, 0x00, 0x00];
        let mut opened = [0; 10];
        assert_eq!(decompress(&packed, &mut opened), Ok(()));
        assert_eq!(&opened, b"aaaaaaaaaa");
        let mut again = Vec::new();
        compress(b"aaaaaaaaaa", &mut again);
        assert_eq!(again, packed);
    }

    #[test]
    fn everything_comes_back_from_runs_to_noise() {
        let mut random = Random::new(3);
        // Its offsets run over on the way, many times.
        let mut compressor = Compressor::default();
        for round in 0..300u64 {
            let alphabet = 1 + random.below(1 + round % 60 * 4);
            let len = random.below(20_000);
            let input: Vec<u8> = (0..len).map(|_| random.below(alphabet) as u8).collect();
            check(&input, &mut compressor);
        }
        check(b"", &mut compressor);
        // What repeats is found behind noise, and back to where noise was passed over.
        let noise: Vec<u8> = (0..3_000).map(|_| random.next_u64() as u8).collect();
        let mut packed = Vec::new();
        compressor.compress(&noise.repeat(2), &mut packed);
        assert!(packed.len() < noise.len() * 21 / 20, "{} bytes", packed.len());
        check(&noise.repeat(2), &mut compressor);
        check(&[7; 100_000], &mut compressor);
    }

    #[test]
    fn corrupt_input_is_an_error_and_never_a_panic() {
        let mut random = Random::new(4);
        let mut packed = Vec::new();
        compress(&b"the quick brown fox jumps over the lazy dog, the quick brown fox".repeat(9), &mut packed);
        for _ in 0..20_000 {
            let mut bad = packed.clone();
            for _ in 0..1 + random.below(3) {
                let at = random.below(bad.len() as u64) as usize;
                bad[at] = random.next_u64() as u8;
            }
            bad.truncate(random.below(bad.len() as u64 + 1) as usize);
            let is_right = decompress(&bad, &mut [0; 576]).is_ok();
            assert!(!is_right || decompressed_len(&bad) == Ok(576));
        }
        assert_eq!(decompress(&[0x20, 0x00], &mut [0; 3]), Err(Corrupt));
        assert_eq!(decompress(&[0x00, 0x61], &mut [0; 3]), Err(Corrupt));
    }
}
