//! Unbounded natural numbers, as much of them as exact floating point text needs: built up digit by digit,
//! scaled, compared, written. 32-bit limbs, least first, the last one not zero.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Big(Vec<u32>);

impl Big {
    pub(crate) fn from_u64(n: u64) -> Big {
        let mut big = Big(vec![n as u32, (n >> 32) as u32]);
        big.trim();
        big
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// How many binary digits the number has.
    pub(crate) fn bits(&self) -> u32 {
        self.0.last().map_or(0, |last| self.0.len() as u32 * 32 - last.leading_zeros())
    }

    /// Makes this number `self * factor + addend`.
    pub(crate) fn multiply_add(&mut self, factor: u32, addend: u32) {
        let mut carry = u64::from(addend);
        for limb in &mut self.0 {
            let n = u64::from(*limb) * u64::from(factor) + carry;
            *limb = n as u32;
            carry = n >> 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    /// Multiplies by ten to the `power`, by nine powers at a time: 10^9 is the greatest that a limb holds.
    pub(crate) fn multiply_by_power_of_ten(&mut self, power: u32) {
        for _ in 0..power / 9 {
            self.multiply_add(1_000_000_000, 0);
        }
        self.multiply_add(10_u32.pow(power % 9), 0);
    }

    /// Makes this number `self * 2^bits`: whole limbs are put in front, the rest is a multiplication.
    pub(crate) fn shift_left(&mut self, bits: u32) {
        if self.is_zero() || bits == 0 {
            return;
        }
        let rest = bits % 32;
        if rest > 0 {
            self.multiply_add(1 << rest, 0);
        }
        let limbs = (bits / 32) as usize;
        self.0.splice(0..0, std::iter::repeat_n(0, limbs));
    }

    /// Subtracts `other` if it is not larger, and returns whether it did.
    pub(crate) fn try_subtract(&mut self, other: &Big) -> bool {
        if self.is_less(other) {
            return false;
        }
        let mut borrow = 0;
        for (i, limb) in self.0.iter_mut().enumerate() {
            let taken = u64::from(other.0.get(i).copied().unwrap_or(0)) + borrow;
            borrow = u64::from(u64::from(*limb) < taken);
            *limb = (u64::from(*limb) + (borrow << 32) - taken) as u32;
        }
        assert!(borrow == 0, "the larger number is subtracted from");
        self.trim();
        true
    }

    fn is_less(&self, other: &Big) -> bool {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev())).is_lt()
    }

    /// The topmost bits (128 at most) as `top * 2^shift`, and whether any below them are set.
    pub(crate) fn top_bits(&self) -> (u128, u32, bool) {
        let below = self.0.len().saturating_sub(4);
        let (rest, top) = self.0.split_at(below);
        let mut n = 0;
        for limb in top.iter().rev() {
            n = n << 32 | u128::from(*limb);
        }
        (n, below as u32 * 32, rest.iter().any(|limb| *limb != 0))
    }

    pub(crate) fn to_decimal(&self) -> String {
        let mut rest = self.clone();
        let mut groups = vec![rest.divide_by_billion()];
        while !rest.is_zero() {
            groups.push(rest.divide_by_billion());
        }
        let mut text = groups.pop().map_or(String::new(), |first| first.to_string());
        for group in groups.iter().rev() {
            text.push_str(&format!("{group:09}"));
        }
        text
    }

    /// Divides by 10^9, and returns the remainder.
    fn divide_by_billion(&mut self) -> u32 {
        let mut rest = 0;
        for limb in self.0.iter_mut().rev() {
            let n = rest << 32 | u64::from(*limb);
            *limb = (n / 1_000_000_000) as u32;
            rest = n % 1_000_000_000;
        }
        self.trim();
        rest as u32
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_built_scaled_and_written() {
        let mut n = Big::from_u64(0);
        for digit in [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1] {
            n.multiply_add(10, digit);
        }
        assert_eq!(n.to_decimal(), "123456789012345678901");
        n.multiply_by_power_of_ten(20);
        assert_eq!(n.to_decimal(), format!("123456789012345678901{}", "0".repeat(20)));
        assert_eq!(Big::from_u64(0).to_decimal(), "0");
    }

    #[test]
    fn subtraction_borrows_across_limbs_and_refuses_the_larger() {
        let mut n = Big::from_u64(1);
        n.shift_left(100);
        assert!(n.try_subtract(&Big::from_u64(1)));
        assert_eq!(n.bits(), 100);
        assert_eq!(n.to_decimal(), ((1_u128 << 100) - 1).to_string());
        assert!(!Big::from_u64(1).try_subtract(&n));
    }

    #[test]
    fn top_bits_tell_what_lies_below_them() {
        let mut n = Big::from_u64(3);
        n.shift_left(160);
        assert_eq!(n.top_bits(), (3 << 96, 64, false));
        n.multiply_add(1, 1);
        assert_eq!(n.top_bits(), (3 << 96, 64, true));
    }
}
