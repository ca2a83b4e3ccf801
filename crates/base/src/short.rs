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

/// Appends bytes of which there are few as a rule.
#[inline]
pub fn append(out: &mut Vec<u8>, bytes: &[u8]) {
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
