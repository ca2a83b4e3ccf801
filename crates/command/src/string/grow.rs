//! How long a string may become: `proto-max-bulk-len`, and what the system has room for. It is checked before
//! an edit, so that no value grows beyond what a client could send, and a length that a client makes up
//! allocates nothing.
use crate::{Call, Done, Error};
use store::{HUGE_STRING_BYTES_MIN, has_room_for_string};

/// The length of the first key's string, 0 where it is missing.
pub(super) fn string_len(call: &mut Call<'_, '_>) -> Result<u64, Error> {
    let key = call.key(0);
    Ok(call.view.string(key)?.map_or(0, |item| item.len() as u64))
}

/// Whether `added` more bytes fit behind `len`, without an overflow where a client names an offset near 2^63.
pub(super) fn check_end(call: &Call<'_, '_>, len: u64, added: u64) -> Done {
    let fits = len.saturating_add(added) <= call.view.string_bytes_max();
    if fits { Ok(()) } else { Err(Error::string_too_long()) }
}

/// Whether the first key's string can become so long, where that is longer than it is.
#[inline]
pub(crate) fn check_growth(call: &mut Call<'_, '_>, len: u64) -> Done {
    let is_small = len < HUGE_STRING_BYTES_MIN;
    if is_small || len <= string_len(call)? || has_room_for_string(len) {
        return Ok(());
    }
    Err(Error::string_too_long())
}
