//! Numbers shown as other numbers, which cannot be turned back without the seed. SCAN's cursors are hidden in
//! this way: a cursor says where a walk goes on, but a client learns nothing of the hashes that order the
//! walk.
//!
//! ```text
//! number = left | right       six times: (left, right) = (right, left XOR hash(round, right))
//! ```
//!
//! A Feistel network over the lower bits of a number, with the keyed hash as its function. What it makes of 0
//! is then taken off by XOR, because 0 is where every walk begins and ends.
use crate::hash::Seed;

const ROUNDS: u64 = 6;

/// A permutation of the numbers below `1 << 2 * half_bits`. Greater numbers are mapped to themselves.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    seed: Seed,
    half_bits: u32,
    of_zero: u64,
}

impl Permutation {
    /// A permutation of numbers with twice `half_bits` bits, at most 62.
    pub fn new(seed: Seed, half_bits: u32) -> Permutation {
        assert!(half_bits < u64::BITS / 2, "halves of a number");
        let plain = Permutation { seed, half_bits, of_zero: 0 };
        Permutation { of_zero: plain.mixed(0, 0..ROUNDS), ..plain }
    }

    /// The number that clients see instead of this one. 0 stays 0. Costs six hashes.
    pub fn hide(&self, number: u64) -> u64 {
        if number == 0 || self.is_beyond(number) {
            return number;
        }
        self.mixed(number, 0..ROUNDS) ^ self.of_zero
    }

    /// The number for which [`Permutation::hide`] showed this one.
    pub fn show(&self, hidden: u64) -> u64 {
        if hidden == 0 || self.is_beyond(hidden) {
            return hidden;
        }
        // The rounds backwards, on exchanged halves, undo them.
        self.exchanged(self.mixed(self.exchanged(hidden ^ self.of_zero), (0..ROUNDS).rev()))
    }

    /// Whether a number has more bits than are permuted.
    fn is_beyond(&self, number: u64) -> bool {
        number >> (2 * self.half_bits) != 0
    }

    /// The rounds of the network, in the given order.
    fn mixed(&self, number: u64, rounds: impl Iterator<Item = u64>) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for round in rounds {
            let word = round << self.half_bits | right;
            (left, right) = (right, left ^ (self.seed.hash(&word.to_le_bytes()).0 & mask));
        }
        left << self.half_bits | right
    }

    /// The number with its two halves exchanged.
    fn exchanged(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        (number & mask) << self.half_bits | number >> self.half_bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const SEED: Seed = Seed::new(1, 2);

    #[test]
    fn all_numbers_come_once_and_come_back() {
        let permutation = Permutation::new(SEED, 8);
        let mut shown = vec![false; 1 << 16];
        for number in 0..1 << 16 {
            let hidden = permutation.hide(number);
            assert_eq!(permutation.show(hidden), number);
            assert!(!std::mem::replace(&mut shown[hidden as usize], true), "{number} twice");
        }
    }

    #[test]
    fn the_beginning_and_what_is_beyond_stay() {
        let permutation = Permutation::new(SEED, 24);
        for number in [0, 1 << 48, 1 << 52, u64::MAX] {
            assert_eq!((permutation.hide(number), permutation.show(number)), (number, number));
        }
    }

    #[test]
    fn neighbours_have_nothing_in_common_and_every_seed_has_an_order_of_its_own() {
        let (permutation, other) = (Permutation::new(SEED, 16), Permutation::new(SEED.derive("other"), 16));
        let mut random = Random::new(3);
        let (mut of_neighbours, mut of_seeds) = (0, 0);
        for _ in 0..1000 {
            let number = 1 + random.below(u64::from(u32::MAX) - 1);
            of_neighbours += (permutation.hide(number) ^ permutation.hide(number ^ 1)).count_ones();
            of_seeds += (permutation.hide(number) ^ other.hide(number)).count_ones();
        }
        assert!((15_000..17_000).contains(&of_neighbours), "{of_neighbours} of 32,000 bits differ");
        assert!((15_000..17_000).contains(&of_seeds), "{of_seeds} of 32,000 bits differ");
    }
}
