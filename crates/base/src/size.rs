//! Sizes of memory as settings write them: `100`, `1k` (1,000), `1kb` (1,024), and so for `m` and `g`; any
//! case.

/// The number of bytes that `text` says; `None` where Redis answers "argument must be a memory value". A
/// number beyond 64 bits counts as the largest one, and a text without digits as 0, as in Redis.
pub fn parse_bytes(text: &[u8]) -> Option<u64> {
    let end = text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let factor = unit_bytes(unit)?;
    let number = digits.iter().fold(0_u64, |n, b| n.saturating_mul(10).saturating_add(u64::from(b - b'0')));
    Some(number.saturating_mul(factor))
}

/// How many bytes a unit has; None where it is no unit.
fn unit_bytes(unit: &[u8]) -> Option<u64> {
    let units: [(&[u8], u64); 8] = [
        (b"", 1),
        (b"b", 1),
        (b"k", 1_000),
        (b"kb", 1 << 10),
        (b"m", 1_000_000),
        (b"mb", 1 << 20),
        (b"g", 1_000_000_000),
        (b"gb", 1 << 30),
    ];
    units.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name)).map(|(_, factor)| *factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_without_b_count_thousands() {
        let cases = [
            ("100", 100),
            ("1b", 1),
            ("1k", 1_000),
            ("1kb", 1_024),
            ("1KB", 1_024),
            ("3m", 3_000_000),
            ("100mb", 104_857_600),
            ("2g", 2_000_000_000),
            ("1Gb", 1 << 30),
            ("", 0),
            ("kb", 0),
        ];
        for (text, expect) in cases {
            assert_eq!(parse_bytes(text.as_bytes()), Some(expect), "{text:?}");
        }
    }

    #[test]
    fn other_texts_are_no_sizes() {
        for text in ["-1", "+5", " 1k", "1 k", "1.5k", "1t", "1kbb", "0x10"] {
            assert_eq!(parse_bytes(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn sizes_saturate() {
        assert_eq!(parse_bytes(b"18446744073709551616"), Some(u64::MAX));
        assert_eq!(parse_bytes(b"99999999999999gb"), Some(u64::MAX));
    }
}
