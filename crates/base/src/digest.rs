//! SHA-1: scripts are named by it, DEBUG DIGEST is made of it, and seeds for one purpose are derived by it.
//! None of these asks for more than it still gives.
//!
//! It stands here, rather than at each of its users, so that debug builds have it optimised: code of generic
//! types is built where they are used, and there it was most of the time of tests that compare data.
use sha1::{Digest, Sha1};

/// The 160 bits of a text.
pub fn sha1(text: &[u8]) -> [u8; 20] {
    Sha1::digest(text).into()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_digest_is_that_of_the_standard() {
        let hex = |text: &str| crate::text::hex(&super::sha1(text.as_bytes()));
        assert_eq!(hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    }
}
