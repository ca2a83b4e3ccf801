//! Passwords: their digests are kept, never the words; and new ones are made from the system's randomness.
use super::rule::RuleError;
use sha2::{Digest as _, Sha256};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// SHA-256 of a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest([u8; DIGEST_BYTES]);

const DIGEST_BYTES: usize = 32;

impl Digest {
    pub(super) fn of(password: &[u8]) -> Digest {
        Digest(Sha256::digest(password).into())
    }

    /// From 64 hexadecimal digits in lower case, as rules have it.
    pub(super) fn from_hex(text: &[u8]) -> Result<Digest, RuleError> {
        let digit = |b: u8| match b {
            b'0'..=b'9' => Some(b - b'0'),
            b'a'..=b'f' => Some(b - b'a' + 10),
            _ => None,
        };
        let mut digest = [0; DIGEST_BYTES];
        if text.len() != 2 * DIGEST_BYTES {
            return Err(RuleError::BadHash);
        }
        for (byte, pair) in digest.iter_mut().zip(text.chunks_exact(2)) {
            let (high, low) = digit(pair[0]).zip(digit(pair[1])).ok_or(RuleError::BadHash)?;
            *byte = high << 4 | low;
        }
        Ok(Digest(digest))
    }

    pub(super) fn hex(self) -> String {
        base::text::hex(&self.0)
    }

    /// Whether both are the same. It takes the same time wherever they differ, so that the time tells nothing
    /// of the digest.
    pub(super) fn is_same(self, other: Digest) -> bool {
        self.0.iter().zip(other.0).fold(0, |all, (a, b)| all | (a ^ b)) == 0
    }
}

/// The source of passwords for ACL GENPASS: SHA-256 of a secret and a number that is used once. It needs no
/// file and cannot fail while the server runs.
pub(crate) struct Passwords {
    secret: [u8; 32],
    used: AtomicU64,
}

impl Passwords {
    /// `secret` comes from the system's randomness and is used for nothing else.
    pub(crate) fn new(secret: [u8; 32]) -> Passwords {
        Passwords { secret, used: AtomicU64::new(0) }
    }

    /// A new password of so many hexadecimal digits.
    pub(crate) fn next(&self, digits: usize) -> String {
        let mut text = String::new();
        while text.len() < digits {
            let number = self.used.fetch_add(1, Relaxed);
            let block = Sha256::new().chain_update(self.secret).chain_update(number.to_le_bytes()).finalize();
            text.push_str(&base::text::hex(&block));
        }
        text.truncate(digits);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_sha_256_and_come_back_from_their_digits() {
        let digest = Digest::of(b"abc");
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.hex(), hex);
        assert_eq!(Digest::from_hex(hex.as_bytes()), Ok(digest));
        let shouted = hex.to_ascii_uppercase();
        let long = format!("{hex}0");
        for wrong in [&hex[1..], long.as_str(), shouted.as_str(), ""] {
            assert_eq!(Digest::from_hex(wrong.as_bytes()), Err(RuleError::BadHash), "{wrong}");
        }
    }

    #[test]
    fn digests_are_the_same_only_bit_by_bit() {
        let digest = Digest::of(b"x");
        assert!(digest.is_same(digest));
        for bit in 0..256 {
            let mut other = digest;
            other.0[bit / 8] ^= 1 << (bit % 8);
            assert!(!digest.is_same(other), "bit {bit}");
        }
    }

    #[test]
    fn passwords_have_the_length_asked_for_and_do_not_repeat() {
        let passwords = Passwords::new([7; 32]);
        let (one, other) = (passwords.next(64), passwords.next(64));
        assert_ne!(one, other);
        assert_eq!(passwords.next(1).len(), 1);
        let long = passwords.next(1024);
        assert_eq!(long.len(), 1024);
        assert_ne!(long[..64], long[64..128]);
        assert_ne!(Passwords::new([8; 32]).next(64), one);
    }
}
