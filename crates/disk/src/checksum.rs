//! The checksum of dump files and payloads: a CRC of 64 bits, Jones' polynomial with its bits reversed, from
//! 0.
use crc_fast::{CrcAlgorithm, Digest};

/// The checksum of `bytes`.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Redis, bytes)
}

/// The checksum of bytes that come one after another.
pub(crate) struct Sum(Digest);

impl Sum {
    pub(crate) fn new() -> Sum {
        Sum(Digest::new(CrcAlgorithm::Crc64Redis))
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit, as the polynomial has it.
    fn slowly(bytes: &[u8]) -> u64 {
        const POLYNOMIAL: u64 = 0xAD93_D235_94C9_35A9;
        bytes.iter().fold(0, |sum, byte| {
            (0..8).fold(sum ^ u64::from(*byte), |sum, _| (sum >> 1) ^ ((sum & 1) * POLYNOMIAL.reverse_bits()))
        })
    }

    #[test]
    fn bytes_of_any_length_have_their_checksum_in_one_piece_and_in_two() {
        assert_eq!(checksum(b"123456789"), 0xE9C6_D914_C4B8_D9CA);
        let bytes: Vec<u8> = (0..1500_u32).map(|n| (n * n / 8) as u8).collect();
        for len in (0..300).chain([511, 512, 513, 1024, 1499, 1500]) {
            let expect = slowly(&bytes[..len]);
            assert_eq!(checksum(&bytes[..len]), expect, "{len}");
            let mut sum = Sum::new();
            sum.add(&bytes[..len / 3]);
            assert_eq!(sum.value(), slowly(&bytes[..len / 3]), "{len}");
            sum.add(&bytes[len / 3..len]);
            assert_eq!(sum.value(), expect, "{len}");
        }
    }
}
