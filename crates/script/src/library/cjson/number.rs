//! Numbers as C writes and reads them: `%.14g` and `strtod`.
use base::double::{F64Text, whole_number};

/// Appends `n` with that many digits, as `%.{precision}g`.
pub(super) fn append_general(out: &mut Vec<u8>, n: f64, precision: usize) {
    if n.is_nan() {
        return out.extend_from_slice(if n.is_sign_negative() { b"-nan" } else { b"nan" });
    }
    if n.is_infinite() {
        return out.extend_from_slice(if n > 0.0 { b"inf" } else { b"-inf" });
    }
    // Whole numbers of few digits are most of what there is.
    match whole_number(n).filter(|whole| whole.unsigned_abs() < 10_u64.pow(precision as u32)) {
        Some(whole) => base::text::append_i64(out, whole),
        None => out.extend_from_slice(F64Text::new().format_general(n, precision)),
    }
}

/// The number at the front of `text` and how long it is; None where there is none.
pub(super) fn parse_front(text: &[u8]) -> Option<(f64, usize)> {
    let signed = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let is_negative = text.first() == Some(&b'-');
    let rest = &text[signed..];
    let (n, len) = hexadecimal(rest).or_else(|| named(rest)).or_else(|| decimal(rest))?;
    Some((if is_negative { -n } else { n }, signed + len))
}

fn digits(text: &[u8], is_digit: fn(&u8) -> bool) -> usize {
    text.iter().take_while(|b| is_digit(b)).count()
}

fn decimal(text: &[u8]) -> Option<(f64, usize)> {
    let whole = digits(text, u8::is_ascii_digit);
    let mut len = whole;
    if text.get(len) == Some(&b'.') {
        let fraction = digits(&text[len + 1..], u8::is_ascii_digit);
        if whole + fraction == 0 {
            return None;
        }
        len += 1 + fraction;
    }
    if len == 0 {
        return None;
    }
    len += exponent(&text[len..], b'e').map_or(0, |(_, len)| len);
    let text = std::str::from_utf8(&text[..len]).ok()?;
    Some((text.parse().ok()?, len))
}

/// An exponent behind a mark: its value, and its length with the mark; None where no digit follows.
fn exponent(text: &[u8], mark: u8) -> Option<(i32, usize)> {
    if text.first()?.to_ascii_lowercase() != mark {
        return None;
    }
    let signed = usize::from(matches!(text.get(1), Some(b'+' | b'-')));
    let count = digits(text.get(1 + signed..)?, u8::is_ascii_digit);
    if count == 0 {
        return None;
    }
    let value = text[1 + signed..][..count]
        .iter()
        .fold(0_i32, |n, digit| n.saturating_mul(10).saturating_add(i32::from(digit - b'0')));
    let value = if text[1] == b'-' { -value } else { value };
    Some((value, 1 + signed + count))
}

/// `0x1.8p3`. Digits beyond what a double holds only move the point.
fn hexadecimal(text: &[u8]) -> Option<(f64, usize)> {
    if !(text.first()? == &b'0' && matches!(text.get(1)?, b'x' | b'X')) {
        return None;
    }
    let (mut value, mut len, mut scale, mut count) = (0.0_f64, 2, 0_i32, 0);
    let mut is_fraction = false;
    while let Some(&b) = text.get(len) {
        match char::from(b).to_digit(16) {
            Some(digit) => {
                value = value * 16.0 + f64::from(digit);
                count += 1;
                scale -= 4 * i32::from(is_fraction);
            }
            None if b == b'.' && !is_fraction => is_fraction = true,
            None => break,
        }
        len += 1;
    }
    if count == 0 {
        // What is left is the zero before the x.
        return Some((0.0, 1));
    }
    let (power, power_len) = exponent(&text[len..], b'p').unwrap_or((0, 0));
    Some((value * 2.0_f64.powi(power.saturating_add(scale)), len + power_len))
}

fn named(text: &[u8]) -> Option<(f64, usize)> {
    let starts = |name: &[u8]| text.get(..name.len()).is_some_and(|front| front.eq_ignore_ascii_case(name));
    if starts(b"infinity") {
        Some((f64::INFINITY, 8))
    } else if starts(b"inf") {
        Some((f64::INFINITY, 3))
    } else if starts(b"nan") {
        Some((f64::NAN, 3))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_strtod_reads_them() {
        let cases: [(&str, Option<(f64, usize)>); 12] = [
            ("1", Some((1.0, 1))),
            ("-1.5e3x", Some((-1500.0, 6))),
            ("1e", Some((1.0, 1))),
            ("1.", Some((1.0, 2))),
            (".5", Some((0.5, 2))),
            (".", None),
            ("-", None),
            ("0x1F", Some((31.0, 4))),
            ("0x.8p1", Some((1.0, 6))),
            ("0xg", Some((0.0, 1))),
            ("-Infinity", Some((f64::NEG_INFINITY, 9))),
            ("+1", Some((1.0, 2))),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_front(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn numbers_are_written_as_printf_writes_them() {
        let cases = [
            (0.1, "0.1"),
            (1e15, "1e+15"),
            (1e14, "1e+14"),
            (-0.0, "-0"),
            (1e-10, "1e-10"),
            (123456.5, "123456.5"),
        ];
        for (n, expected) in cases {
            let mut out = Vec::new();
            append_general(&mut out, n, 14);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
