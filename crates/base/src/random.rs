//! A small seeded generator (not for secrets), so that every random choice can be replayed from its seed:
//! xoshiro256++ of Blackman and Vigna (https://prng.di.unimi.it), its state filled by splitmix64 as they
//! advise.

/// The generator. A clone goes on with the same sequence.
#[derive(Clone, Debug)]
pub struct Random([u64; 4]);

impl Random {
    /// The sequence of this seed: the same for every run.
    pub fn new(seed: u64) -> Random {
        let mut state = seed;
        Random(std::array::from_fn(|_| splitmix(&mut state)))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..n`; `n` is not zero. The multiplication's bias is below 2^-32 for any `n` that counts
    /// things in memory, which is what this is for.
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0, "there is no number below zero");
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in `0.0..1.0`.
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }
}

/// The next word of splitmix64.
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // The reference implementation's first outputs from the state 1, 2, 3, 4.
        let mut random = Random([1, 2, 3, 4]);
        let first: [u64; 4] = std::array::from_fn(|_| random.next_u64());
        assert_eq!(first, [41943041, 58720359, 3588806011781223, 3591011842654386]);
    }

    #[test]
    fn a_seed_names_its_sequence_and_a_clone_continues_it() {
        let mut one = Random::new(7);
        let mut same = Random::new(7);
        let mut other = Random::new(8);
        assert_eq!(one.next_u64(), same.next_u64());
        assert_ne!(one.next_u64(), other.next_u64());
        assert_eq!(one.clone().next_u64(), one.next_u64());
    }

    #[test]
    fn below_reaches_every_number_and_no_other() {
        let mut random = Random::new(1);
        let mut counts = [0; 10];
        for _ in 0..10_000 {
            counts[random.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|n| (800..1200).contains(n)), "{counts:?}");
    }

    #[test]
    fn fill_writes_every_byte() {
        let mut bytes = [0_u8; 1003];
        Random::new(3).fill(&mut bytes);
        assert!(bytes.iter().filter(|b| **b == 0).count() < 20);
        assert!((0..1.0_f64 as u64 + 1).contains(&(Random::new(1).unit_f64() as u64)));
    }
}
