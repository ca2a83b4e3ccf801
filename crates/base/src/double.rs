//! Doubles as text and back, as Redis 8 reads and writes scores and RESP3 doubles.
//!
//! Writing: a whole number within half of `i64`'s range prints as an integer; everything else as the shortest
//! decimal digits that read back as the same double ([`crate::grisu`]), laid out by these rules (for `n`
//! digits, the last one worth ten to the `k`, the first one ten to the `e`):
//!
//! | when | form | example |
//! |---|---|---|
//! | k >= 0 and abs(e) < n + 7 | digits, then zeros | `12345678901234567000` |
//! | k < 0 and (k > -7 or abs(e) < 4) | plain decimal | `0.000015`, `1234.5` |
//! | else | scientific, sign always, no padding | `1e+19`, `1.23e-7` |
//!
//! Redis 7.0 printed `%.17g` instead (`0.10000000000000001`); this follows version 8. For about one double in
//! a thousand [`crate::grisu`] finds one digit more than the fewest, as Redis 8 does.
//!
//! Reading: what C's `strtod` accepts, hexadecimal and `inf` included, without leading spaces, trailing
//! bytes, NaN, overflow to infinity or underflow to zero.

use crate::grisu::Digits;
use std::fmt::{self, Write};

/// A buffer that holds the text of any double.
#[derive(Clone, Debug)]
pub struct F64Text {
    bytes: [u8; 40],
    len: usize,
}

impl Default for F64Text {
    fn default() -> F64Text {
        F64Text::new()
    }
}

impl F64Text {
    /// A buffer without a text yet. Allocates nothing.
    pub const fn new() -> F64Text {
        F64Text { bytes: [0; 40], len: 0 }
    }

    /// The text of `n`: "inf", "-inf", "nan", or a number that reads back as `n`.
    pub fn format(&mut self, n: f64) -> &[u8] {
        match whole_number(n) {
            Some(n) => {
                self.len = 0;
                self.put(crate::text::I64Text::new().format(n));
                &self.bytes[..self.len]
            }
            None => self.format_digits(n),
        }
    }

    /// The text of `n` without the rule for whole numbers, so that 10 to the 15 is `1e+15`: DEBUG DIGEST
    /// hashes such texts.
    pub fn format_digits(&mut self, n: f64) -> &[u8] {
        self.len = 0;
        if n.is_nan() {
            self.put(b"nan");
        } else if n.is_infinite() {
            self.put(if n > 0.0 { b"inf" } else { b"-inf" });
        } else if n == 0.0 {
            self.put(if n.is_sign_negative() { b"-0" } else { b"0" });
        } else {
            self.put_digits(n);
        }
        &self.bytes[..self.len]
    }

    /// The text that C's `%.17g` makes of `n`: enough digits to read back the same number, seldom the fewest.
    /// Redis shows scores in this form in ZSCAN.
    pub fn format_17_digits(&mut self, n: f64) -> &[u8] {
        self.format_general(n, 17)
    }

    /// The text that C's `%.{precision}g` makes of `n`, for up to 17 digits.
    pub fn format_general(&mut self, n: f64, precision: usize) -> &[u8] {
        let precision = precision.clamp(1, 17);
        if n == 0.0 || !n.is_finite() {
            return self.format_digits(n);
        }
        if let Some(whole) = whole_number(n).filter(|n| n.unsigned_abs() < 10_u64.pow(precision as u32)) {
            self.len = 0;
            self.put(crate::text::I64Text::new().format(whole));
            return &self.bytes[..self.len];
        }
        self.len = 0;
        if n < 0.0 {
            self.put(b"-");
        }
        let few = without_zeros(Digits::of(n.abs()));
        // What reads back as the same double is nearer to it than any other decimal of so few digits.
        let digits = match few.count <= precision && precision <= DECIMAL_DIGITS && n.is_normal() {
            true => few,
            false => exact_digits(n.abs(), precision),
        };
        self.put_general(&digits, precision as i32);
        &self.bytes[..self.len]
    }

    /// Digits that end with no zero, as `%g` lays them out.
    fn put_general(&mut self, Digits { bytes, count, exponent }: &Digits, precision: i32) {
        let digits = &bytes[..*count];
        if !(-4..precision).contains(exponent) {
            self.put_scientific(digits, *exponent, 2);
        } else if *exponent >= *count as i32 - 1 {
            self.put(digits);
            self.put_zeros((*exponent + 1) as usize - *count);
        } else {
            self.put_plain(digits, *exponent);
        }
    }

    fn put(&mut self, text: &[u8]) {
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text);
        self.len += text.len();
    }

    fn put_zeros(&mut self, count: usize) {
        self.bytes[self.len..self.len + count].fill(b'0');
        self.len += count;
    }

    /// The digits of a number that is neither zero nor infinite, in the form that the table says.
    fn put_digits(&mut self, n: f64) {
        if n < 0.0 {
            self.put(b"-");
        }
        let Digits { bytes, count, exponent } = Digits::of(n.abs());
        let digits = &bytes[..count];
        let last = exponent - (count as i32 - 1);
        if last >= 0 && exponent < count as i32 + 7 {
            self.put(digits);
            self.put_zeros(last as usize);
        } else if last < 0 && (last > -7 || exponent.abs() < 4) {
            self.put_plain(digits, exponent);
        } else {
            self.put_scientific(digits, exponent, 1);
        }
    }

    /// Digits with a point: `0.00123`, `12.5`.
    fn put_plain(&mut self, digits: &[u8], exponent: i32) {
        if exponent < 0 {
            self.put(b"0.");
            self.put_zeros((-exponent - 1) as usize);
            self.put(digits);
        } else {
            let (whole, fraction) = digits.split_at(exponent as usize + 1);
            self.put(whole);
            self.put(b".");
            self.put(fraction);
        }
    }

    /// Digits with a power of ten, of so many digits at least: `1.23e-7`, or with two `1.23e-07`.
    fn put_scientific(&mut self, digits: &[u8], exponent: i32, exponent_digits_min: usize) {
        self.put(&digits[..1]);
        if digits.len() > 1 {
            self.put(b".");
            self.put(&digits[1..]);
        }
        self.put(if exponent < 0 { b"e-" } else { b"e+" });
        let mut power = crate::text::I64Text::new();
        let power = power.format(i64::from(exponent.abs()));
        self.put_zeros(exponent_digits_min.saturating_sub(power.len()));
        self.put(power);
    }
}

/// Decimals of so many digits are further apart than a double of full precision and what reads back as it.
const DECIMAL_DIGITS: usize = 15;

/// A positive number to so many digits, without the zeros at the end.
fn exact_digits(n: f64, precision: usize) -> Digits {
    let mut text = Scientific { bytes: [0; 32], len: 0 };
    let written = write!(text, "{:.*e}", precision - 1, n);
    debug_assert!(written.is_ok(), "there is room for 17 digits and an exponent");
    let text = &text.bytes[..text.len];
    let mark = text.iter().position(|byte| *byte == b'e').unwrap_or(text.len());
    let exponent = crate::text::parse_i64(text.get(mark + 1..).unwrap_or_default()).unwrap_or(0) as i32;
    let mut digits = Digits { bytes: [b'0'; 18], count: 0, exponent };
    for byte in text[..mark].iter().filter(|byte| byte.is_ascii_digit()) {
        digits.bytes[digits.count] = *byte;
        digits.count += 1;
    }
    without_zeros(digits)
}

/// Cuts off the zeros at the end.
fn without_zeros(mut digits: Digits) -> Digits {
    while digits.count > 1 && digits.bytes[digits.count - 1] == b'0' {
        digits.count -= 1;
    }
    digits
}

/// What `{:e}` writes, without an allocation.
struct Scientific {
    bytes: [u8; 32],
    len: usize,
}

impl fmt::Write for Scientific {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let place = self.bytes.get_mut(self.len..self.len + text.len()).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

/// Whole numbers up to here print as integers: half of `i64`'s range, as a double.
const INTEGER_MAX: f64 = (1_u64 << 62) as f64;

/// `n` as an integer, if [`F64Text::format`] prints it as one. None for zero, whose sign an integer does not
/// have.
#[inline]
pub fn whole_number(n: f64) -> Option<i64> {
    // The conversion turns a double beyond the range into the nearest end of the range, and NaN into 0. The
    // comparisons below refuse both.
    let whole = n as i64;
    (whole as f64 == n && whole != 0 && n.abs() <= INTEGER_MAX).then_some(whole)
}

/// `text` as a double; `None` where Redis answers "value is not a valid float".
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    let (negative, unsigned) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let magnitude = match unsigned {
        [b'0', b'x' | b'X', hex @ ..] => parse_hex(hex)?,
        [b'i' | b'I', ..] => parse_infinity(unsigned)?,
        [b'0'..=b'9' | b'.', ..] => parse_decimal(unsigned)?,
        _ => return None,
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// `inf` or `infinity`, in any case.
fn parse_infinity(text: &[u8]) -> Option<f64> {
    let is_named = text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity");
    is_named.then_some(f64::INFINITY)
}

/// The powers of ten up to 10^15, each of which is exactly a double.
const POWERS: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Reads a number of few digits with or without a point, as nearly all numbers are written. The digits, taken
/// as an integer, and the power of ten are both exactly doubles, so the division rounds once and rightly.
fn parse_short_decimal(text: &[u8]) -> Option<f64> {
    if text.len() >= POWERS.len() {
        return None;
    }
    let (mut digits, mut point) = (0_u64, None);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => digits = digits * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(at),
            _ => return None,
        }
    }
    let decimals = point.map_or(0, |point| text.len() - point - 1);
    // A point alone is no number.
    (text.len() > usize::from(point.is_some())).then(|| digits as f64 / POWERS[decimals])
}

/// Rust's own reader is exact and takes the same grammar once signs, names and hexadecimal are dealt with. A
/// number beyond the range of doubles is refused, because `strtod` reports it as an error.
fn parse_decimal(text: &[u8]) -> Option<f64> {
    if let Some(n) = parse_short_decimal(text) {
        return Some(n);
    }
    let n: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let is_written_zero =
        text.iter().take_while(|b| !matches!(b, b'e' | b'E')).all(|b| !matches!(b, b'1'..=b'9'));
    (n.is_finite() && (n != 0.0 || is_written_zero)).then_some(n)
}

/// C99's hexadecimal doubles behind the `0x`: digits with a point, then `p` and a decimal power of two.
fn parse_hex(text: &[u8]) -> Option<f64> {
    let mark = text.iter().position(|b| matches!(b, b'p' | b'P'));
    let (digits, power) = match mark {
        Some(at) => (&text[..at], parse_power(&text[at + 1..])?),
        None => (text, 0),
    };
    let mut hex = Hex::default();
    let mut parts = digits.splitn(2, |b| *b == b'.');
    for byte in parts.next().unwrap_or_default() {
        hex.push(*byte)?;
    }
    for byte in parts.next().unwrap_or_default() {
        hex.push(*byte)?;
        hex.power -= 4;
    }
    (hex.count > 0).then(|| hex.value(power))?
}

/// The power of two behind the `p` of a hexadecimal double. Digits beyond 64 bits give the greatest or the
/// least.
fn parse_power(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let power = digits.iter().fold(0_i64, |n, b| n.saturating_mul(10).saturating_add(i64::from(b - b'0')));
    Some(if negative { -power } else { power })
}

/// A hexadecimal mantissa as it is read: the top 60 bits exactly, whether any bit below them is set, and the
/// power of two that the lowest kept bit is worth.
#[derive(Default)]
struct Hex {
    mantissa: u64,
    rest: bool,
    power: i64,
    count: usize,
}

impl Hex {
    /// Takes one more digit; None if the byte is no hexadecimal digit.
    fn push(&mut self, byte: u8) -> Option<()> {
        let digit = u64::from((byte as char).to_digit(16)?);
        self.count += 1;
        if self.mantissa >> 56 == 0 {
            self.mantissa = self.mantissa << 4 | digit;
        } else {
            self.rest |= digit != 0;
            self.power += 4;
        }
        Some(())
    }

    /// The nearest double, ties to even; `None` beyond the range.
    fn value(&self, power: i64) -> Option<f64> {
        if self.mantissa == 0 {
            return Some(0.0);
        }
        // A set bit below the kept ones stands for all of them: it decides ties and nothing else.
        let mantissa = self.mantissa << 1 | u64::from(self.rest);
        let power = self.power.saturating_add(power).saturating_sub(1);
        let bits = 64 - i64::from(mantissa.leading_zeros());
        let top = power.saturating_add(bits - 1);
        if !(-1080..=1023).contains(&top) {
            return None;
        }
        // Round once, here, to the bits that the result can hold, so that the scaling is exact.
        let kept = if top < -1022 { 53 - (-1022 - top) } else { 53 };
        let (rounded, shift) = round(mantissa, bits - kept);
        let n = scale(rounded as f64, power + shift);
        (n.is_finite() && n != 0.0).then_some(n)
    }
}

/// `mantissa` without its `drop` lowest bits, rounded to nearest, ties to even; and how many bits were
/// dropped.
fn round(mantissa: u64, drop: i64) -> (u64, i64) {
    match drop {
        ..=0 => (mantissa, 0),
        1..=63 => {
            let kept = mantissa >> drop;
            let rest = mantissa & ((1 << drop) - 1);
            let half = 1 << (drop - 1);
            (kept + u64::from(rest > half || (rest == half && kept & 1 == 1)), drop)
        }
        _ => (0, drop),
    }
}

/// `n` times two to the `power`, in steps whose factors are doubles themselves.
fn scale(mut n: f64, mut power: i64) -> f64 {
    while power != 0 {
        let step = power.clamp(-1000, 1000);
        n *= f64::from_bits(((step + 1023) as u64) << 52);
        power -= step;
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_whole_numbers_within_half_the_range_of_integers_print_as_such() {
        let max = (1_u64 << 62) as f64;
        for (n, expect) in [(1.0, 1), (-7.0, -7), (max, 1 << 62), (-max, -(1 << 62))] {
            assert_eq!(whole_number(n), Some(expect), "{n}");
        }
        let others =
            [0.0, -0.0, 0.5, -1.5, 2.0 * max, -2.0 * max, max * 1.001, 1e300, f64::NAN, f64::INFINITY];
        assert_eq!(others.map(whole_number), [None; 10]);
    }

    /// `%g` by way of Rust's exact formats.
    fn naive_general(n: f64, precision: usize) -> String {
        let cut = |text: &str| match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text.to_owned(),
        };
        let text = format!("{:.*e}", precision - 1, n);
        let (mantissa, exponent) = text.split_once('e').unwrap();
        let exponent: i32 = exponent.parse().unwrap();
        if (-4..precision as i32).contains(&exponent) {
            let decimals = (precision as i32 - 1 - exponent) as usize;
            return cut(&format!("{n:.decimals$}"));
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", cut(mantissa), exponent.abs())
    }

    fn check_general(n: f64) {
        for precision in 1..=17 {
            let mut text = F64Text::new();
            let text = std::str::from_utf8(text.format_general(n, precision)).unwrap().to_owned();
            assert_eq!(text, naive_general(n, precision), "{n:e} with {precision} digits");
        }
    }

    #[test]
    fn general_numbers_are_laid_out_as_by_c() {
        for (n, precision, text) in [
            (0.1, 14, "0.1"),
            (1.0 / 3.0, 14, "0.33333333333333"),
            (2.0 / 3.0, 3, "0.667"),
            (1e15, 14, "1e+15"),
            (123_456_789_012_345.0, 14, "1.2345678901234e+14"),
            (-1.5e-7, 14, "-1.5e-07"),
            (0.0001, 14, "0.0001"),
            (0.00001, 14, "1e-05"),
            (1e100, 14, "1e+100"),
            (1.25e22, 16, "1.25e+22"),
            (0.5, 1, "0.5"),
            (2.5, 1, "2"),
            (99.5, 2, "1e+02"),
            (-0.0, 14, "-0"),
            (5e-324, 14, "4.9406564584125e-324"),
            (f64::MAX, 17, "1.7976931348623157e+308"),
        ] {
            assert_eq!(F64Text::new().format_general(n, precision), text.as_bytes(), "{n:e}");
            check_general(n);
        }
    }

    #[track_caller]
    fn check(n: f64, expect: &str) {
        assert_eq!(std::str::from_utf8(F64Text::new().format(n)), Ok(expect), "{n:e}");
    }

    /// Each line was printed by ZSCORE of Redis 8.0.2.
    #[test]
    fn doubles_print_as_redis_prints_scores() {
        check(3.0, "3");
        check(1e18, "1000000000000000000");
        check(4e18, "4000000000000000000");
        check(4_611_686_018_427_387_904.0, "4611686018427387904");
        check(-4_611_686_018_427_387_904.0, "-4611686018427387904");
        check(5e18, "5e+18");
        check(1e19, "1e+19");
        check(1.23e20, "1.23e+20");
        check(1e100, "1e+100");
        check(12_345_678_901_234_567_890.0, "12345678901234567000");
        check(123_456_789_012_345_678.0, "123456789012345680");
        check(0.1, "0.1");
        check(1e-5, "0.00001");
        check(1.5e-5, "0.000015");
        check(1e-6, "0.000001");
        check(1.234567e-6, "1.234567e-6");
        check(0.00000123, "1.23e-6");
        check(1e-7, "1e-7");
        check(0.00123456789, "0.00123456789");
        check(0.000123456789, "1.23456789e-4");
        check(123.456789012, "123.456789012");
        check(12345.6789012, "1.23456789012e+4");
        check(1234567.125, "1234567.125");
        check(1234567.1234567, "1.2345671234567e+6");
        check(99999999.99999999, "9.999999999999999e+7");
        check(0.1234567890123, "0.1234567890123");
        check(-1.5e300, "-1.5e+300");
        check(5e-324, "5e-324");
        check(f64::MAX, "1.7976931348623157e+308");
        check(f64::MIN_POSITIVE, "2.2250738585072014e-308");
        check(f64::INFINITY, "inf");
        check(f64::NEG_INFINITY, "-inf");
        check(f64::NAN, "nan");
        check(0.0, "0");
        check(-0.0, "-0");
    }

    /// As Redis 8.0.2 has them in DEBUG DIGEST-VALUE.
    #[test]
    fn digits_alone_are_scientific_where_a_whole_number_ends_in_many_zeros() {
        for (n, text) in [
            (3.0, "3"),
            (100_000.0, "100000"),
            (1e7, "10000000"),
            (1e8, "1e+8"),
            (1e15, "1e+15"),
            (1e16, "1e+16"),
            (123_456_789_012_345_678.0, "123456789012345680"),
            (0.1, "0.1"),
            (-1e300, "-1e+300"),
            (-0.0, "-0"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(String::from_utf8_lossy(F64Text::new().format_digits(n)), text);
        }
    }

    /// As Redis 8.0.2 shows them in ZSCAN of a skiplist.
    #[test]
    fn seventeen_digits_are_those_of_c() {
        let cases = [
            (0.1, "0.10000000000000001"),
            (1.5e300, "1.5000000000000001e+300"),
            (1e20, "1e+20"),
            (5.0, "5"),
            (-0.0, "-0"),
            (f64::INFINITY, "inf"),
            (123_456_789.123_456_79, "123456789.12345679"),
            (1e-10, "1e-10"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (-99_999_999_999_999_984.0, "-99999999999999984"),
            (-0.00015, "-0.00014999999999999999"),
            (5e-324, "4.9406564584124654e-324"),
        ];
        for (n, text) in cases {
            assert_eq!(F64Text::new().format_17_digits(n), text.as_bytes());
        }
    }

    #[test]
    fn what_strtod_reads_is_a_double() {
        let cases = [
            ("3.0", 3.0),
            ("+1", 1.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("1E5", 1e5),
            ("1e05", 1e5),
            ("1e-05", 1e-5),
            ("-.5", -0.5),
            ("0x10", 16.0),
            ("-0X1p3", -8.0),
            ("0x.8", 0.5),
            ("0x1.8p1", 3.0),
            ("0X1P-2", 0.25),
            ("0x1p-1074", 5e-324),
            ("0x1.fffffffffffff8p0", 2.0),
            ("0x1.fffffffffffffp1023", f64::MAX),
            ("0x20000000000001", 9007199254740992.0),
            ("0x20000000000001.00000000000001", 9007199254740994.0),
            ("inf", f64::INFINITY),
            ("-INFINITY", f64::NEG_INFINITY),
            ("5e-324", 5e-324),
            ("0e99999", 0.0),
            ("0x0p99999", 0.0),
        ];
        for (text, expect) in cases {
            assert_eq!(parse_f64(text.as_bytes()), Some(expect), "{text}");
        }
        assert!(parse_f64(b"-0").is_some_and(|n| n == 0.0 && n.is_sign_negative()));
    }

    #[test]
    fn what_strtod_refuses_or_redis_does_is_not_a_double() {
        let texts = [
            "",
            " 1",
            "1 ",
            "nan",
            "NaN",
            "nan(0)",
            "infinit",
            "infinityx",
            "1e",
            "1e+",
            ".",
            "-",
            "+-1",
            "0x",
            "0xg",
            "0x1p",
            "0x.p1",
            "1e400",
            "-1e400",
            "1e-400",
            "0x1p1024",
            "0x1p-1080",
            "0x1.1.1",
            "1_000",
            "1,5",
            "\u{ff}",
        ];
        for text in texts {
            assert_eq!(parse_f64(text.as_bytes()), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn general_numbers_are_those_of_exact_formats(bits in any::<u64>(), n in -1e9..1e9_f64, cents in any::<i32>()) {
            let any = f64::from_bits(bits);
            for n in [any, n, f64::from(cents) / 100.0, f64::from(cents) * 1e12] {
                if n.is_finite() {
                    check_general(n);
                }
            }
        }

        #[test]
        fn doubles_survive_a_round_trip(bits: u64) {
            let n = f64::from_bits(bits);
            prop_assume!(n.is_finite());
            let mut text = F64Text::new();
            prop_assert_eq!(parse_f64(text.format(n)).map(f64::to_bits), Some(bits));
        }

        #[test]
        fn hexadecimal_doubles_read_exactly(bits: u64) {
            let n = f64::from_bits(bits & !(1 << 63));
            prop_assume!(n.is_finite() && n != 0.0);
            let fraction = bits & ((1 << 52) - 1);
            let exponent = (bits >> 52 & 0x7ff) as i64;
            let (lead, power) = if exponent == 0 { (0, -1022) } else { (1, exponent - 1023) };
            let text = format!("0x{lead}.{fraction:013x}p{power}");
            prop_assert_eq!(parse_f64(text.as_bytes()), Some(n));
        }

        #[test]
        fn short_decimals_read_as_long_ones(text in "[0-9]{0,9}[.]?[0-9]{0,9}") {
            let plain = text.parse::<f64>().ok();
            prop_assert_eq!(parse_short_decimal(text.as_bytes()).map(f64::to_bits), match text.len() {
                0..16 => plain.map(f64::to_bits),
                _ => None,
            });
            prop_assert_eq!(parse_decimal(text.as_bytes()).map(f64::to_bits), plain.map(f64::to_bits));
        }

        #[test]
        fn any_bytes_are_read_without_panic(text in "[-+0-9a-fxpA-FXP.]{0,24}") {
            let _ = parse_f64(text.as_bytes());
        }
    }
}
