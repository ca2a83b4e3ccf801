//! Keyed hashing: one seed a process, so that nobody who does not know it can choose keys that collide.
//! The top bits of a [`Hash`] choose the shard, the next 32 the place in the tree, the low 8 are the tag.

/// The process's hash key. Values come from the server, which reads the system's randomness once.
#[derive(Clone, Copy, Debug)]
pub struct Seed(pub u64, pub u64);

/// The 64-bit hash of a key, field or member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub u64);

impl Seed {
    pub fn hash(&self, bytes: &[u8]) -> Hash {
        let mut h = self.0;
        for b in bytes {
            h = (h ^ u64::from(*b)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29) ^ self.1;
        }
        Hash(h)
    }
}

/// How many of the hash's top bits choose the shard at most (65,536 shards).
pub const SHARD_BITS_MAX: u32 = 16;

impl Hash {
    /// The shard out of `1 << bits`.
    pub fn shard(self, bits: u32) -> usize {
        if bits == 0 { 0 } else { (self.0 >> (64 - bits)) as usize }
    }

    /// The place in the order of a tree: 32 bits below the shard's.
    pub fn order(self) -> u32 {
        (self.0 >> (64 - SHARD_BITS_MAX - 32)) as u32
    }

    /// The byte that a leaf keeps of the hash.
    pub fn tag(self) -> u8 {
        self.0 as u8
    }
}
