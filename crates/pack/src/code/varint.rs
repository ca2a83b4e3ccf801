//! Lengths in as few bytes as they need (LEB128): 7 bits a byte, the lowest first; the top bit says that more
//! follow. 300 is `AC 02`.

/// How many bytes hold `n`, at most 10.
#[inline]
pub(crate) fn varint_len(n: usize) -> usize {
    if n < 0x80 { 1 } else { (usize::BITS - n.leading_zeros()).div_ceil(7) as usize }
}

/// Writes `n` at the start of `to`, which has room for it. Returns how many bytes that took.
pub(crate) fn write_varint(to: &mut [u8], mut n: usize) -> usize {
    let mut at = 0;
    while n >= 0x80 {
        to[at] = n as u8 | 0x80;
        n >>= 7;
        at += 1;
    }
    to[at] = n as u8;
    debug_assert!(at < 10, "{} bytes", at + 1);
    at + 1
}

/// The number at the start of `from`, and how many bytes it takes. Lengths below 128, nearly all, cost one
/// comparison.
#[inline(always)]
pub(crate) fn read_varint(from: &[u8]) -> (usize, usize) {
    if from[0] < 0x80 {
        return (from[0] as usize, 1);
    }
    read_long_varint(from)
}

#[cold]
fn read_long_varint(from: &[u8]) -> (usize, usize) {
    let mut n = 0;
    for (at, byte) in from.iter().enumerate() {
        debug_assert!(at < 10, "a length of {} bytes", at + 1);
        n |= (*byte as usize & 0x7F) << (7 * at);
        if *byte < 0x80 {
            return (n, at + 1);
        }
    }
    unreachable!("a length ends within its entry")
}
