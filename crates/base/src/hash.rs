//! Keyed hashing: one seed a process, so that nobody who does not know it can choose keys that collide.
//!
//! ```text
//! bit 63            48 47                       16 15      8 7        0
//!     [ shard: top n ] [ order: place in the tree ] [ spare ] [ tag    ]
//! ```
//!
//! The top bits of a [`Hash`] choose the shard. The next 32 are the *place* of the name in hash order, by
//! which trees are ordered. The low 8 are the tag that a leaf keeps. So all bits have to be good. The
//! function is rapidhash (a wyhash descendant; SMHasher-clean, about 2 ns for a short key) with every one of
//! its secrets drawn from the seed: with the published secrets collisions for any seed are known. Its
//! `PROTECTED` form costs two XORs a step and keeps a zero operand from erasing the state.
//!
//! On the path of every request.
use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline};

/// The process's hash key, and what is derived from it.
#[derive(Clone, Copy)]
pub struct Seed {
    secrets: RapidSecrets,
}

impl Seed {
    /// Two independent random words, which the server reads from the system once.
    pub const fn new(first: u64, second: u64) -> Seed {
        let secrets = RapidSecrets::seed(first).secrets;
        Seed { secrets: RapidSecrets { seed: RapidSecrets::seed(second).seed, secrets } }
    }

    /// A seed for one purpose, made of this one by SHA-1. Who finds it out knows neither this seed nor those
    /// for other purposes, because that would take a preimage.
    pub fn derive(&self, purpose: &str) -> Seed {
        let words = self.secrets.secrets.iter().chain([&self.secrets.seed]);
        let mut text: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        text.extend_from_slice(purpose.as_bytes());
        let digest = crate::digest::sha1(&text);
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| digest[at + i]));
        Seed::new(word(0), word(8))
    }

    /// The hash of a key, field or member. Costs about 2 ns for a short one.
    pub fn hash(&self, bytes: &[u8]) -> Hash {
        Hash(rapidhash_v3_inline::<true, false, true>(bytes, &self.secrets))
    }
}

/// Shows no part of the secret, so that no log can.
impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed(..)")
    }
}

/// The 64-bit hash of a key, field or member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub u64);

/// How many of the hash's top bits choose the shard at most (65,536 shards).
pub const SHARD_BITS_MAX: u32 = 16;

impl Hash {
    /// Which of `1 << bits` shards the name belongs to.
    pub fn shard(self, bits: u32) -> usize {
        debug_assert!(bits <= SHARD_BITS_MAX);
        if bits == 0 { 0 } else { (self.0 >> (64 - bits)) as usize }
    }

    /// The place in hash order, by which trees of names are ordered: 32 bits below the shard's.
    pub fn order(self) -> u32 {
        (self.0 >> (64 - SHARD_BITS_MAX - 32)) as u32
    }

    /// A number by which hashes come in the order of their places, and equal ones side by side.
    pub fn by_place(self) -> u64 {
        self.0.rotate_left(SHARD_BITS_MAX)
    }

    /// The byte that a leaf keeps of the hash.
    pub fn tag(self) -> u8 {
        self.0 as u8
    }
}

/// What hashes the keys of [`Map`] and [`Set`]: fast, and with a new random key for every table.
pub type Keyed = rapidhash::quality::RandomState;

/// The standard table with a fast keyed hasher, for what is not user data (connections, settings,
/// registries). Make one with `Map::default()`.
pub type Map<K, V> = std::collections::HashMap<K, V, Keyed>;

/// The standard set with the same hasher. Make one with `Set::default()`.
pub type Set<K> = std::collections::HashSet<K, Keyed>;

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: Seed = Seed::new(1, 2);
    const KEYS: u64 = 1 << 18;

    /// Counts the keys `user:N` by `bucket`; a fair hash keeps chi-squared near the number of buckets.
    fn check_uniform(buckets: usize, bucket: impl Fn(Hash) -> usize) {
        let mut counts = vec![0_f64; buckets];
        for n in 0..KEYS {
            counts[bucket(SEED.hash(format!("user:{n}").as_bytes()))] += 1.0;
        }
        let expect = KEYS as f64 / buckets as f64;
        let chi: f64 = counts.iter().map(|c| (c - expect).powi(2) / expect).sum();
        let free = buckets as f64 - 1.0;
        assert!((chi - free).abs() < 6.0 * (2.0 * free).sqrt(), "chi-squared {chi} for {buckets} buckets");
    }

    #[test]
    fn keys_spread_evenly_over_shards_places_and_tags() {
        check_uniform(256, |h| h.shard(8));
        check_uniform(4096, |h| h.shard(12));
        check_uniform(256, |h| usize::from(h.tag()));
        check_uniform(4096, |h| (h.order() >> 20) as usize);
        check_uniform(4096, |h| (h.order() & 0xfff) as usize);
    }

    #[test]
    fn shard_place_and_tag_are_independent() {
        check_uniform(1 << 12, |h| h.shard(4) << 8 | usize::from(h.tag()));
        check_uniform(1 << 12, |h| (h.order() >> 28) as usize * 256 + usize::from(h.tag()));
        check_uniform(1 << 12, |h| h.shard(6) << 6 | (h.order() >> 26) as usize);
    }

    /// How often each bit of the hash changes when a bit of a key of `len` bytes does, over 128 keys.
    fn count_flips(len: usize) -> [u32; 64] {
        let mut flips = [0_u32; 64];
        for fill in 0..128_u8 {
            let mut key = vec![fill; len];
            let before = SEED.hash(&key).0;
            for bit in 0..len * 8 {
                key[bit / 8] ^= 1 << (bit % 8);
                let changed = SEED.hash(&key).0 ^ before;
                key[bit / 8] ^= 1 << (bit % 8);
                flips.iter_mut().enumerate().for_each(|(at, n)| *n += (changed >> at & 1) as u32);
            }
        }
        flips
    }

    #[test]
    fn flipping_any_bit_of_a_key_flips_each_bit_of_the_hash_half_of_the_time() {
        for len in [1, 3, 4, 7, 8, 16, 17, 40, 113, 300] {
            let trials = 128 * len as u32 * 8;
            for (bit, count) in count_flips(len).into_iter().enumerate() {
                let share = f64::from(count) / f64::from(trials);
                assert!((0.4..0.6).contains(&share), "length {len}, bit {bit} of the hash: {share}");
            }
        }
    }

    #[test]
    fn both_words_of_the_seed_change_the_hash() {
        let hash = Seed::new(1, 2).hash(b"key");
        assert_eq!(hash, Seed::new(1, 2).hash(b"key"));
        assert_ne!(hash, Seed::new(3, 2).hash(b"key"));
        assert_ne!(hash, Seed::new(1, 3).hash(b"key"));
        assert_eq!(format!("{:?}", Seed::new(1, 2)), "Seed(..)");
    }

    #[test]
    fn seeds_for_different_purposes_have_nothing_in_common() {
        let seeds = [SEED, SEED.derive("keys"), SEED.derive("members"), Seed::new(1, 3).derive("keys")];
        for (at, seed) in seeds.iter().enumerate() {
            for other in &seeds[at + 1..] {
                let differing = |n: u64| {
                    let text = n.to_le_bytes();
                    (seed.hash(&text).0 ^ other.hash(&text).0).count_ones()
                };
                let bits: u32 = (0..1000).map(differing).sum();
                assert!((31_000..33_000).contains(&bits), "{bits} of 64,000 bits differ");
            }
        }
        assert_eq!(SEED.derive("keys").hash(b"key"), Seed::new(1, 2).derive("keys").hash(b"key"));
    }

    #[test]
    fn one_shard_takes_everything() {
        assert_eq!(Hash(u64::MAX).shard(0), 0);
        assert_eq!(Hash(u64::MAX).shard(16), 65_535);
    }

    #[test]
    fn maps_are_made_by_default() {
        let mut map: Map<&str, u32> = Map::default();
        map.insert("a", 1);
        assert_eq!(map.get("a"), Some(&1));
        let set: Set<u32> = [1, 2, 2].into_iter().collect();
        assert_eq!(set.len(), 2);
    }
}
