//! From registers to a number of elements: the improved raw estimator of Otmar Ertl, "New cardinality
//! estimation algorithms for HyperLogLog sketches" (2017), algorithm 6. It needs no table of corrections and
//! is unbiased from the first element on.
//!
//! Only how many registers hold each value matters, so both encodings are counted into a [`Histogram`] first.
//! The order of the floating point operations is that of Redis: the results are rounded, and must be the same
//! numbers.
use store::sixes::{self, VALUES};

/// 2^14; the relative error is 1.04 / sqrt(2^14), 0.81%.
pub(super) const REGISTERS: usize = 1 << INDEX_BITS;
/// Bits of the hash that choose a register.
pub(super) const INDEX_BITS: u32 = 14;
/// Bits of the hash that propose a value: values are 1 to 51.
pub(super) const VALUE_BITS: usize = 64 - INDEX_BITS as usize;

/// 1 / (2 ln 2), the limit of HyperLogLog's constant for many registers.
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// How many registers hold each value.
pub(super) struct Histogram([u32; VALUES]);

impl Histogram {
    pub(super) fn new() -> Histogram {
        Histogram([0; VALUES])
    }

    /// The histogram of a packed array of registers.
    pub(super) fn of(array: &[u8]) -> Histogram {
        let mut histogram = Histogram::new();
        sixes::count(array, &mut histogram.0);
        histogram
    }

    /// The same of registers that lie in bytes of their own.
    #[cfg(test)]
    pub(super) fn of_bytes(registers: &[u8; REGISTERS]) -> Histogram {
        let mut histogram = Histogram::new();
        registers.iter().for_each(|value| histogram.count(*value, 1));
        histogram
    }

    /// Counts `registers` more that hold `value`, of which only 6 bits exist.
    pub(super) fn count(&mut self, value: u8, registers: u32) {
        self.0[usize::from(value) % VALUES] += registers;
    }

    /// A register that held `from` holds `to` now.
    pub(super) fn move_one(&mut self, from: u8, to: u8) {
        self.0[usize::from(from) % VALUES] -= 1;
        self.0[usize::from(to) % VALUES] += 1;
    }

    /// The estimate, rounded to the nearest.
    pub(super) fn cardinality(&self) -> u64 {
        let m = REGISTERS as f64;
        let at = |value: usize| f64::from(self.0[value]);
        let mut z = m * tau((m - at(VALUE_BITS + 1)) / m);
        for value in (1..=VALUE_BITS).rev() {
            z = (z + at(value)) * 0.5;
        }
        z += m * sigma(at(0) / m);
        (ALPHA * m * m / z).round() as u64
    }
}

/// The share of registers at zero, corrected: the sum of `x^(2^k) * 2^(k-1)` added to `x`. Infinite where all
/// of them are zero.
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut sum) = (1.0, x);
    loop {
        x *= x;
        let before = sum;
        sum += x * power;
        power += power;
        if sum == before {
            return sum;
        }
    }
}

/// The share of registers at the largest value, corrected likewise.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut power, mut sum) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = sum;
        power *= 0.5;
        sum -= (1.0 - x).powi(2) * power;
        if sum == before {
            return sum / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_register_set_is_no_element() {
        assert_eq!(Histogram::of_bytes(&[0; REGISTERS]).cardinality(), 0);
    }

    #[test]
    fn one_register_set_is_one_element() {
        let mut registers = [0; REGISTERS];
        registers[7] = 3;
        assert_eq!(Histogram::of_bytes(&registers).cardinality(), 1);
    }

    #[test]
    fn registers_that_no_element_can_set_are_counted_without_panic() {
        for value in [51, 52, 63, 64, 255] {
            let _ = Histogram::of_bytes(&[value; REGISTERS]).cardinality();
        }
    }

    #[test]
    fn more_registers_or_larger_values_are_more_elements() {
        let with = |count: usize, value: u8| {
            let mut registers = [0; REGISTERS];
            registers[..count].fill(value);
            Histogram::of_bytes(&registers).cardinality()
        };
        assert!(with(10, 1) < with(100, 1) && with(REGISTERS, 1) < with(REGISTERS, 2));
    }
}
