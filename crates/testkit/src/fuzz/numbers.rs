//! Numbers as text. An integer is read as the standard library reads it, where the text is spelled as the
//! integer would be written; a double as the standard library reads it. What is written reads back the same.
use base::double::{F64Text, parse_f64};
use base::size::parse_bytes;
use base::text::{I64Text, i64_len, parse_i64, parse_u64};

pub(super) fn run(data: &[u8]) {
    reads(data);
    if let Ok(bytes) = <[u8; 8]>::try_from(&data[..data.len().min(8)]) {
        writes(i64::from_le_bytes(bytes), f64::from_le_bytes(bytes));
    }
    parse_bytes(data);
}

fn reads(text: &[u8]) {
    let utf8 = std::str::from_utf8(text).ok();
    let signed = utf8.and_then(|text| text.parse::<i64>().ok()).filter(|n| n.to_string().as_bytes() == text);
    assert_eq!(parse_i64(text), signed);
    let unsigned =
        utf8.and_then(|text| text.parse::<u64>().ok()).filter(|n| n.to_string().as_bytes() == text);
    assert_eq!(parse_u64(text), unsigned);
    if let Some(n) = parse_f64(text) {
        assert!(!n.is_nan(), "no text is a double that is none");
        if let Some(same) = utf8.and_then(|text| text.parse::<f64>().ok()) {
            assert_eq!(n.to_bits(), same.to_bits());
        }
    }
}

fn writes(int: i64, double: f64) {
    let text = I64Text::new().format(int).to_vec();
    assert_eq!(text, int.to_string().as_bytes());
    assert_eq!(text.len(), i64_len(int));
    assert_eq!(parse_i64(&text), Some(int));
    if !double.is_nan() {
        let text = F64Text::new().format(double).to_vec();
        assert_eq!(parse_f64(&text).map(f64::to_bits), Some(double.to_bits()), "{text:?}");
    }
}
