//! Copies of a few bytes by overlapping copies of fixed sizes: `memcpy` takes longer to find out how many
//! there are than to copy them. On the path of every command of a script, and of every reply with a string.

/// As many bytes as [`copy`] copies.
pub const SHORT_MAX: usize = 24;

/// Copies 1 to [`SHORT_MAX`] bytes to the front of `to`.
#[inline(always)]
pub fn copy(to: &mut [u8], bytes: &[u8]) {
    let len = bytes.len();
    debug_assert!((1..=SHORT_MAX).contains(&len) && len <= to.len());
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        to[..8].copy_from_slice(first);
        if let Some(second) = bytes[8..].first_chunk::<8>() {
            to[8..16].copy_from_slice(second);
        }
        to[len - 8..len].copy_from_slice(last);
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        to[..4].copy_from_slice(first);
        to[len - 4..len].copy_from_slice(last);
    } else {
        (to[0], to[len / 2], to[len - 1]) = (bytes[0], bytes[len / 2], bytes[len - 1]);
    }
}

/// Bytes that lie in a word.
pub const WORD_BYTES: usize = size_of::<u64>();

/// 1 to [`WORD_BYTES`] bytes in a word, the first in its lowest byte; above the last come zeros.
#[inline(always)]
pub fn word(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    debug_assert!((1..=WORD_BYTES).contains(&len));
    // The parts overlap where there are fewer bytes than both have room for.
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
            u64::from(first) | u64::from(last) << (8 * (len - 4))
        }
        _ => {
            let byte = |at: usize| u64::from(bytes[at]) << (8 * at);
            byte(0) | byte(len / 2) | byte(len - 1)
        }
    }
}

/// Appends the first bytes of a word.
#[inline(always)]
pub fn append_word(out: &mut Vec<u8>, word: u64, len: usize) {
    let end = out.len() + len;
    out.extend_from_slice(&word.to_le_bytes());
    out.truncate(end);
}

/// Appends bytes of which there are few as a rule.
#[inline(always)]
pub fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    match bytes.len() {
        1..=WORD_BYTES => append_word(out, word(bytes), bytes.len()),
        _ => append_more(out, bytes),
    }
}

#[inline(never)]
fn append_more(out: &mut Vec<u8>, bytes: &[u8]) {
    if !(1..=SHORT_MAX).contains(&bytes.len()) {
        return out.extend_from_slice(bytes);
    }
    let at = out.len();
    out.extend_from_slice(&[0; SHORT_MAX]);
    if let Some(cell) = out[at..].first_chunk_mut::<SHORT_MAX>() {
        copy(cell, bytes);
    }
    out.truncate(at + bytes.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_bytes_is_appended_whatever_room_there_is() {
        let bytes: Vec<u8> = (1..=2 * SHORT_MAX as u8).collect();
        for len in 0..=bytes.len() {
            for room in 0..3 * SHORT_MAX {
                let mut out = Vec::with_capacity(room);
                append(&mut out, b"before");
                append(&mut out, &bytes[..len]);
                append(&mut out, b"|");
                assert_eq!(out, [b"before", &bytes[..len], b"|"].concat(), "{len} {room}");
            }
        }
    }
}
