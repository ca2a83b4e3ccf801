//! The digits of a double by Grisu2 (Florian Loitsch, "Printing floating-point numbers quickly and accurately
//! with integers", 2010): few digits that read back as the same double, with arithmetic of 64 bits alone.
//!
//! They are the fewest in all but about one case in a thousand, where there is one more. Redis 8 finds digits
//! in this way and clients see them, so the same way is taken here: with the fewest digits, about one
//! position of GEOPOS in a thousand would differ from Redis.
//!
//! ```text
//! double = w * 2^e        lower and upper: half-way to its neighbours; what lies between reads back as the
//!                         double
//! times a power of ten    so that the integer part of `upper` has at most 32 bits; each product is off by
//!                         less than one
//! digits of `upper`       until what is left of it is less than the interval is wide; then the last digit is
//!                         lowered towards `w`
//! ```
//!
//! Example: the neighbours of 0.1 are so near that its digits end after `1`; 38.39601568761368 could end
//! there too, but the interval is taken one narrower at each end, and `38.396015687613676` is what comes out.

/// Decimal digits, and the power of ten of the first.
pub(crate) struct Digits {
    pub(crate) bytes: [u8; DIGITS_MAX],
    pub(crate) count: usize,
    /// The power of ten of the first digit.
    pub(crate) exponent: i32,
}

const DIGITS_MAX: usize = 18;
const FRACTION_BITS: u32 = 52;
const HIDDEN_BIT: u64 = 1 << FRACTION_BITS;
/// The bias of a double's exponent, if its fraction is taken as an integer of 53 bits.
const EXPONENT_BIAS: i32 = 1_075;

/// `fraction * 2^exponent`
#[derive(Clone, Copy)]
struct Scaled {
    fraction: u64,
    exponent: i32,
}

impl Scaled {
    /// A positive double, exactly.
    fn of(n: f64) -> Scaled {
        let bits = n.to_bits();
        let (exponent, fraction) = ((bits >> FRACTION_BITS & 0x7FF) as i32, bits & (HIDDEN_BIT - 1));
        match exponent {
            0 => Scaled { fraction, exponent: 1 - EXPONENT_BIAS },
            _ => Scaled { fraction: fraction | HIDDEN_BIT, exponent: exponent - EXPONENT_BIAS },
        }
    }

    /// The same number with the topmost bit of its fraction set.
    fn normalized(self) -> Scaled {
        let shift = self.fraction.leading_zeros();
        Scaled { fraction: self.fraction << shift, exponent: self.exponent - shift as i32 }
    }

    /// The product, rounded to 64 bits.
    fn times(self, other: Scaled) -> Scaled {
        let product = u128::from(self.fraction) * u128::from(other.fraction) + (1 << 63);
        Scaled { fraction: (product >> 64) as u64, exponent: self.exponent + other.exponent + 64 }
    }

    /// The points half-way to the neighbours below and above, both with the same exponent.
    fn boundaries(self) -> (Scaled, Scaled) {
        let upper = Scaled { fraction: (self.fraction << 1) + 1, exponent: self.exponent - 1 }.normalized();
        // Below a power of two the neighbours are nearer.
        let shift = if self.fraction == HIDDEN_BIT { 2 } else { 1 };
        let exponent = self.exponent - shift;
        let lower = ((self.fraction << shift) - 1) << (exponent - upper.exponent);
        (Scaled { fraction: lower, exponent: upper.exponent }, upper)
    }
}

impl Digits {
    /// The digits of a positive finite double.
    pub(crate) fn of(n: f64) -> Digits {
        let exact = Scaled::of(n);
        let (lower, upper) = exact.boundaries();
        let (power, ten) = power_for(upper.exponent);
        let [exact, lower, upper] = [exact.normalized(), lower, upper].map(|scaled| scaled.times(power));
        // Each product may be off by one, so the interval is made narrower by one at each end.
        let (lower, upper) = (lower.fraction + 1, Scaled { fraction: upper.fraction - 1, ..upper });
        let mut digits = Digits { bytes: [0; DIGITS_MAX], count: 0, exponent: -ten };
        digits.generate(upper, upper.fraction - lower, upper.fraction - exact.fraction);
        digits.exponent += digits.count as i32 - 1;
        digits
    }

    /// The digits of `upper`, as many as its distance `width` from the lower end needs; `distance` is that
    /// from the double itself.
    fn generate(&mut self, upper: Scaled, mut width: u64, mut distance: u64) {
        let shift = -upper.exponent as u32;
        let one = 1_u64 << shift;
        let (mut whole, mut rest) = ((upper.fraction >> shift) as u32, upper.fraction & (one - 1));
        for power in (0..10).rev() {
            let unit = 10_u32.pow(power);
            self.push((whole / unit) as u8);
            whole %= unit;
            let left = (u64::from(whole) << shift) + rest;
            if left <= width {
                self.exponent += power as i32;
                return self.step_down(width, left, u64::from(unit) << shift, distance);
            }
        }
        let mut power = 0;
        loop {
            (rest, width, distance) = (rest * 10, width.wrapping_mul(10), distance.wrapping_mul(10));
            power -= 1;
            self.push((rest >> shift) as u8);
            rest &= one - 1;
            if rest < width {
                self.exponent += power;
                return self.step_down(width, rest, one, distance);
            }
        }
    }

    /// Appends a digit, unless it is a zero in front of the first.
    fn push(&mut self, digit: u8) {
        if digit > 0 || self.count > 0 {
            self.bytes[self.count] = b'0' + digit;
            self.count += 1;
        }
    }

    /// Lowers the last digit, which is worth `unit`, while that brings it nearer to the double and not out of
    /// the interval. The digits are `left` below the upper end.
    fn step_down(&mut self, width: u64, mut left: u64, unit: u64, distance: u64) {
        let is_nearer = |left: u64| left + unit < distance || distance - left > left + unit - distance;
        while left < distance && width - left >= unit && is_nearer(left) {
            self.bytes[self.count - 1] -= 1;
            left += unit;
        }
    }
}

/// The exponent of the first of [`POWERS`], whose exponents are eight apart.
const POWER_MIN: i32 = -348;
const POWER_STEP: i32 = 8;
/// The range in which the exponent of a product must lie.
const EXPONENTS: std::ops::RangeInclusive<i32> = -60..=-32;
const LOG10_OF_2: f64 = 0.301_029_995_663_981_14;

/// The power of ten that brings a number with this exponent to where its digits are generated, and which one
/// it is. Several may do; which is taken shows in the digits, so the search begins where that of Redis does.
fn power_for(exponent: i32) -> (Scaled, i32) {
    let guess = (f64::from(-(exponent + POWERS.len() as i32)) * LOG10_OF_2) as i32;
    let mut index = (guess - POWER_MIN) / POWER_STEP;
    loop {
        let power = power(index);
        match exponent + power.exponent + 64 {
            sum if sum < *EXPONENTS.start() => index += 1,
            sum if sum > *EXPONENTS.end() => index -= 1,
            _ => return (power, POWER_MIN + index * POWER_STEP),
        }
    }
}

/// The power of ten at an index of [`POWERS`].
fn power(index: i32) -> Scaled {
    let ten = POWER_MIN + index * POWER_STEP;
    // The logarithm of 10 to the base 2, in 65,536ths.
    Scaled { fraction: POWERS[index as usize], exponent: ((ten * 217_706) >> 16) - 63 }
}

/// The powers of ten, each rounded to the 64 bits from its topmost on.
#[rustfmt::skip]
const POWERS: [u64; 87] = [
    0xFA8F_D5A0_081C_0288, 0xBAAE_E17F_A23E_BF76, 0x8B16_FB20_3055_AC76, 0xCF42_894A_5DCE_35EA,
    0x9A6B_B0AA_5565_3B2D, 0xE61A_CF03_3D1A_45DF, 0xAB70_FE17_C79A_C6CA, 0xFF77_B1FC_BEBC_DC4F,
    0xBE56_91EF_416B_D60C, 0x8DD0_1FAD_907F_FC3C, 0xD351_5C28_3155_9A83, 0x9D71_AC8F_ADA6_C9B5,
    0xEA9C_2277_23EE_8BCB, 0xAECC_4991_4078_536D, 0x823C_1279_5DB6_CE57, 0xC210_9436_4DFB_5637,
    0x9096_EA6F_3848_984F, 0xD774_85CB_2582_3AC7, 0xA086_CFCD_97BF_97F4, 0xEF34_0A98_172A_ACE5,
    0xB238_67FB_2A35_B28E, 0x84C8_D4DF_D2C6_3F3B, 0xC5DD_4427_1AD3_CDBA, 0x936B_9FCE_BB25_C996,
    0xDBAC_6C24_7D62_A584, 0xA3AB_6658_0D5F_DAF6, 0xF3E2_F893_DEC3_F126, 0xB5B5_ADA8_AAFF_80B8,
    0x8762_5F05_6C7C_4A8B, 0xC9BC_FF60_34C1_3053, 0x964E_858C_91BA_2655, 0xDFF9_7724_7029_7EBD,
    0xA6DF_BD9F_B8E5_B88F, 0xF8A9_5FCF_8874_7D94, 0xB944_7093_8FA8_9BCF, 0x8A08_F0F8_BF0F_156B,
    0xCDB0_2555_6531_31B6, 0x993F_E2C6_D07B_7FAC, 0xE45C_10C4_2A2B_3B06, 0xAA24_2499_6973_92D3,
    0xFD87_B5F2_8300_CA0E, 0xBCE5_0864_9211_1AEB, 0x8CBC_CC09_6F50_88CC, 0xD1B7_1758_E219_652C,
    0x9C40_0000_0000_0000, 0xE8D4_A510_0000_0000, 0xAD78_EBC5_AC62_0000, 0x813F_3978_F894_0984,
    0xC097_CE7B_C907_15B3, 0x8F7E_32CE_7BEA_5C70, 0xD5D2_38A4_ABE9_8068, 0x9F4F_2726_179A_2245,
    0xED63_A231_D4C4_FB27, 0xB0DE_6538_8CC8_ADA8, 0x83C7_088E_1AAB_65DB, 0xC45D_1DF9_4271_1D9A,
    0x924D_692C_A61B_E758, 0xDA01_EE64_1A70_8DEA, 0xA26D_A399_9AEF_774A, 0xF209_787B_B47D_6B85,
    0xB454_E4A1_79DD_1877, 0x865B_8692_5B9B_C5C2, 0xC835_53C5_C896_5D3D, 0x952A_B45C_FA97_A0B3,
    0xDE46_9FBD_99A0_5FE3, 0xA59B_C234_DB39_8C25, 0xF6C6_9A72_A398_9F5C, 0xB7DC_BF53_54E9_BECE,
    0x88FC_F317_F222_41E2, 0xCC20_CE9B_D35C_78A5, 0x9816_5AF3_7B21_53DF, 0xE2A0_B5DC_971F_303A,
    0xA8D9_D153_5CE3_B396, 0xFB9B_7CD9_A4A7_443C, 0xBB76_4C4C_A7A4_4410, 0x8BAB_8EEF_B640_9C1A,
    0xD01F_EF10_A657_842C, 0x9B10_A4E5_E991_3129, 0xE710_9BFB_A19C_0C9D, 0xAC28_20D9_623B_F429,
    0x8044_4B5E_7AA7_CF85, 0xBF21_E440_03AC_DD2D, 0x8E67_9C2F_5E44_FF8F, 0xD433_179D_9C8C_B841,
    0x9E19_DB92_B4E3_1BA9, 0xEB96_BF6E_BADF_77D9, 0xAF87_023B_9BF0_EE6B,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(n: f64) -> (String, i32) {
        let Digits { bytes, count, exponent } = Digits::of(n);
        (String::from_utf8(bytes[..count].to_vec()).unwrap(), exponent)
    }

    #[test]
    fn the_example_in_the_opener_is_true() {
        assert_eq!(digits(0.1), ("1".into(), -1));
        assert_eq!(digits(38.396_015_687_613_68), ("38396015687613676".into(), 1));
    }

    #[test]
    fn the_ends_of_the_range_have_digits() {
        assert_eq!(digits(5e-324), ("5".into(), -324));
        assert_eq!(digits(f64::MAX), ("17976931348623157".into(), 308));
        assert_eq!(digits(f64::MIN_POSITIVE), ("22250738585072014".into(), -308));
    }

    #[test]
    fn digits_read_back_as_the_double_and_are_seldom_more_than_the_fewest() {
        let mut random = crate::random::Random::new(1);
        let mut longer = 0;
        for _ in 0..20_000 {
            let n = f64::from_bits(random.next_u64() >> 1);
            if n.is_finite() && n > 0.0 {
                let (text, exponent) = digits(n);
                let text = format!("{}.{}e{exponent}", &text[..1], &text[1..]);
                assert_eq!(text.parse(), Ok(n), "{text}");
                let fewest =
                    format!("{n:e}").bytes().take_while(|b| *b != b'e').filter(u8::is_ascii_digit).count();
                longer += usize::from(
                    text.bytes().take_while(|b| *b != b'e').filter(u8::is_ascii_digit).count() > fewest,
                );
            }
        }
        assert!((1..100).contains(&longer), "{longer} of 20,000 are longer");
    }
}
