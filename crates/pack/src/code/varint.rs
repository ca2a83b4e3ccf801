//! Lengths in as few bytes as they need (LEB128): 7 bits a byte, the lowest first; the top bit says that more follow. 300 is `AC 02`.

pub(crate) fn varint_len(n: usize) -> usize {
    if n < 0x80 { 1 } else { (usize::BITS - n.leading_zeros()).div_ceil(7) as usize }
}

/// LEB128: 7 bits a byte, the lowest first, the top bit says that more follow. Returns the bytes written.
pub(crate) fn write_varint(to: &mut [u8], mut n: usize) -> usize {
    let mut at = 0;
    while n >= 0x80 {
        to[at] = n as u8 | 0x80;
        n >>= 7;
        at += 1;
    }
    to[at] = n as u8;
    at + 1
}

/// The number, and the bytes it takes.
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
        n |= (*byte as usize & 0x7F) << (7 * at);
        if *byte < 0x80 {
            return (n, at + 1);
        }
    }
    unreachable!("a length ends within its entry")
}
