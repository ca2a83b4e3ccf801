//! MurmurHash64A of Austin Appleby (public domain): the hash that HyperLogLog strings of Redis are made with.
//!
//! It is here for compatibility alone. Whoever knows it can choose texts that collide, so nothing that must
//! stay balanced uses it; keys, fields and members are hashed by [`crate::hash`].

const FACTOR: u64 = 0xC6A4_A793_5BD1_E995;
const SHIFT: u32 = 47;

/// The 64-bit hash of `bytes`, words read as little endian on every machine.
pub fn murmur_hash_64a(bytes: &[u8], seed: u64) -> u64 {
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        hash = (hash ^ scrambled(u64::from_le_bytes(*word))).wrapping_mul(FACTOR);
    }
    if !tail.is_empty() {
        let mut word = [0; 8];
        word[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
    }
    hash = (hash ^ hash >> SHIFT).wrapping_mul(FACTOR);
    hash ^ hash >> SHIFT
}

/// A word, mixed before it is added to the hash.
fn scrambled(word: u64) -> u64 {
    let word = word.wrapping_mul(FACTOR);
    (word ^ word >> SHIFT).wrapping_mul(FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by the registers that PFADD of Redis 8.0.2 sets; the transcripts of the family hold whole
    /// strings.
    #[test]
    fn every_length_of_the_tail_counts() {
        let hashes: Vec<u64> = (0..17).map(|len| murmur_hash_64a(&vec![b'a'; len], 1)).collect();
        for (len, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..len].contains(hash), "{len} letters hash like fewer");
        }
        assert_ne!(murmur_hash_64a(b"a", 1), murmur_hash_64a(b"a", 2));
        assert_ne!(murmur_hash_64a(b"a", 1), murmur_hash_64a(b"a\0", 1));
    }

    #[test]
    fn nothing_under_seed_zero_hashes_to_zero() {
        assert_eq!(murmur_hash_64a(b"", 0), 0);
    }
}
