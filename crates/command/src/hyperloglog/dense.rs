//! The registers as an array of 6 bits each, 12,288 bytes.
//!
//! ```text
//! byte    0         1         2        3
//!         11000000  22221111  33333322  55444444   ...     the number of the register that a bit belongs to
//! ```
//!
//! The lowest bits come first: register 0 is the low 6 bits of byte 0, register 1 the high 2 of byte 0 (its
//! lowest) and the low 4 of byte 1. Example: registers 1, 2, 3, 4 at the beginning are `81 30 10`. Whole
//! arrays are merged and counted without being unpacked (`store::sixes`).
use super::estimate::REGISTERS;

pub(super) const BYTES: usize = REGISTERS * 6 / 8;
const _: () = assert!(BYTES == 12_288 && REGISTERS.is_multiple_of(4));

/// The value of register `index`.
#[cfg(test)]
pub(super) fn register(array: &[u8], index: usize) -> u8 {
    let group = &array[index / 4 * 3..];
    unpacked([group[0], group[1], group[2]])[index % 4]
}

/// Makes register `index` at least `value`; whether that changed it.
pub(super) fn raise(array: &mut [u8], index: usize, value: u8) -> bool {
    debug_assert!(index < REGISTERS && value < 64, "the hash has no more bits");
    let group = &mut array[index / 4 * 3..][..3];
    let mut values = unpacked([group[0], group[1], group[2]]);
    let register = &mut values[index % 4];
    if *register >= value {
        return false;
    }
    *register = value;
    group.copy_from_slice(&packed(values));
    true
}

/// An array that is filled register by register, each but once.
pub(super) struct Filled([u8; BYTES + 1]);

impl Default for Filled {
    /// All registers at zero.
    fn default() -> Filled {
        Filled([0; BYTES + 1])
    }
}

impl Filled {
    /// Sets register `index`, which is zero. It may lie across a border of two bytes; the last of them is why
    /// there is one byte more.
    #[inline(always)]
    pub(super) fn put(&mut self, index: usize, value: u8) {
        debug_assert!(index < REGISTERS && value < 64, "{value} in register {index}");
        let (at, shift) = (index * 6 / 8, index * 6 % 8);
        let [low, high] = (u16::from(value) << shift).to_le_bytes();
        self.0[at] |= low;
        self.0[at + 1] |= high;
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0[..BYTES]
    }
}

fn unpacked(group: [u8; 3]) -> [u8; 4] {
    let bits = u32::from_le_bytes([group[0], group[1], group[2], 0]);
    [0, 6, 12, 18].map(|shift| (bits >> shift & 63) as u8)
}

fn packed(values: [u8; 4]) -> [u8; 3] {
    let [a, b, c, d] = values.map(u32::from);
    let [low, middle, high, _] = (a | b << 6 | c << 12 | d << 18).to_le_bytes();
    [low, middle, high]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_in_the_opener_is_true() {
        let mut array = vec![0; BYTES];
        for (index, value) in [1, 2, 3, 4].into_iter().enumerate() {
            assert!(raise(&mut array, index, value));
        }
        assert_eq!(array[..4], [0x81, 0x30, 0x10, 0]);
    }

    #[test]
    fn an_array_that_is_filled_is_the_one_that_is_raised() {
        let (mut filled, mut raised) = (Filled::default(), vec![0; BYTES]);
        for index in (0..REGISTERS).filter(|index| index % 7 != 2) {
            let value = (index * 31 % 64) as u8;
            filled.put(index, value);
            raise(&mut raised, index, value);
        }
        assert!(filled.as_bytes() == raised);
    }

    #[test]
    fn a_register_keeps_the_largest_value_and_its_neighbours_theirs() {
        let mut array = vec![0; BYTES];
        for index in [0, 1, 2, 3, 4, 5, REGISTERS - 2, REGISTERS - 1] {
            assert!(raise(&mut array, index, 63));
            assert!(!raise(&mut array, index, 62) && !raise(&mut array, index, 63));
        }
        let set = (0..REGISTERS).filter(|index| register(&array, *index) == 63).count();
        assert_eq!(set, 8);
        assert_eq!((0..REGISTERS).filter(|index| register(&array, *index) != 0).count(), 8);
    }
}
