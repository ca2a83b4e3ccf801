//! An integer in the fewest bytes: 1 to 8, little endian, two's complement. 1000 is `E8 03`, -2 is `FE`.
//! Leaves, images and entries keep integers so, each with its own way to say how many bytes they are.

/// An integer in its bytes, on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortInt {
    bytes: [u8; 8],
    len: u8,
}

impl ShortInt {
    /// No bytes at all.
    pub(crate) const NONE: ShortInt = ShortInt { bytes: [0; 8], len: 0 };

    /// The bytes of `n`.
    #[inline]
    pub fn new(n: i64) -> ShortInt {
        ShortInt { bytes: n.to_le_bytes(), len: int_len(n) as u8 }
    }

    /// The bytes, 1 to 8 of them; none for [`ShortInt::NONE`].
    #[inline(always)]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// How many bytes hold `n` in two's complement: 1 to 8.
#[inline]
pub fn int_len(n: i64) -> usize {
    let bits = 65 - (n ^ (n >> 63)).leading_zeros() as usize;
    bits.div_ceil(8)
}

/// The integer that is in all of `bytes`, 1 to 8 of them.
#[inline]
pub fn read_int(bytes: &[u8]) -> i64 {
    debug_assert!((1..=8).contains(&bytes.len()));
    let spare = 64 - 8 * bytes.len() as u32;
    (low_bytes(bytes) as i64) << spare >> spare
}

/// The same without a sign: put together from the first and the last bytes, which may overlap, because a copy
/// of a length that is not known while compiling costs more.
#[inline]
fn low_bytes(bytes: &[u8]) -> u64 {
    let shift = |width: usize| 8 * (bytes.len() - width) as u32;
    if let (Some(front), Some(back)) = (bytes.first_chunk(), bytes.last_chunk()) {
        u64::from(u32::from_le_bytes(*front)) | u64::from(u32::from_le_bytes(*back)) << shift(4)
    } else if let (Some(front), Some(back)) = (bytes.first_chunk(), bytes.last_chunk()) {
        u64::from(u16::from_le_bytes(*front)) | u64::from(u16::from_le_bytes(*back)) << shift(2)
    } else {
        u64::from(bytes[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_take_the_fewest_bytes_and_come_back() {
        for bit in 0..63 {
            for n in [(1_i64 << bit) - 1, 1 << bit, (1 << bit) + 1] {
                for n in [n, -n, !n] {
                    let short = ShortInt::new(n);
                    let fewest = (1..=8).find(|len| n >> (8 * len - 1) == n >> 63).expect("eight are enough");
                    assert_eq!((read_int(short.as_bytes()), int_len(n)), (n, fewest), "{n}");
                }
            }
        }
        assert_eq!(ShortInt::new(1000).as_bytes(), [0xE8, 3]);
        assert_eq!(ShortInt::new(-2).as_bytes(), [0xFE]);
        assert_eq!(ShortInt::new(i64::MIN).as_bytes().len(), 8);
    }
}
