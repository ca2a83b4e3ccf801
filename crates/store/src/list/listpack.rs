//! What Redis would call a list: "listpack" while it is one block, "quicklist" when it is a chain of them.
//! The name depends on the size that the list would have as a listpack in Redis, so every list outside its
//! entry keeps that sum up to date. Our own bytes are laid out otherwise (`pack::seq`); `pack::listpack` says
//! how long a listpack would be.
//!
//! When the name changes (Redis 8.0, asked): *before* elements are added, if the listpack and the plain text
//! of all that the command adds exceed `list-max-listpack-size`; back again after a removal, if half of that
//! limit suffices. Where the limit is a count, it is the count that is halved. Redis asks for one thing more
//! on the way back, that its chain has become one node; we keep no such chain, so a list that was cut to two
//! small pieces of two nodes is a "listpack" here and a "quicklist" there.
use crate::Fill;
pub(crate) use pack::listpack::{EMPTY_BYTES, entry_bytes};

/// The smallest entry of a listpack.
const ENTRY_BYTES_MIN: u64 = 2;
/// If the limit is a count, a listpack may still not be larger than this.
const COUNTED_BYTES_MAX: u64 = 8192;

/// The name of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Listpack,
    Quicklist,
}

impl Encoding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Encoding::Listpack => "listpack",
            Encoding::Quicklist => "quicklist",
        }
    }
}

/// Whether a listpack of these sizes exceeds the limit.
pub(crate) fn exceeds(fill: Fill, bytes: u64, len: u64) -> bool {
    match fill {
        Fill::Bytes(limit) => bytes > u64::from(limit),
        Fill::Entries(limit) => bytes > COUNTED_BYTES_MAX || len > u64::from(limit),
    }
}

/// Whether a list of these sizes goes back to being a listpack after a removal.
pub(crate) fn fits_half(fill: Fill, bytes: u64, len: u64) -> bool {
    match fill {
        Fill::Bytes(limit) => bytes <= u64::from(limit / 2),
        Fill::Entries(limit) => len <= u64::from(limit / 2),
    }
}

/// Whether `len` elements cannot fit into half the limit, however small they are.
pub(crate) fn is_surely_long(fill: Fill, len: u64) -> bool {
    !fits_half(fill, EMPTY_BYTES + ENTRY_BYTES_MIN * len, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_are_those_that_redis_showed() {
        let fill = Fill::Bytes(8192);
        // The 80th of 100 bytes turns the list into a quicklist; popped down to 39 it is a listpack again.
        assert!(!exceeds(fill, EMPTY_BYTES + 78 * 103 + 100, 79));
        assert!(exceeds(fill, EMPTY_BYTES + 79 * 103 + 100, 80));
        assert!(!fits_half(fill, EMPTY_BYTES + 40 * 103, 40));
        assert!(fits_half(fill, EMPTY_BYTES + 39 * 103, 39));
        let fill = Fill::Entries(5);
        assert!(!exceeds(fill, 100, 5) && exceeds(fill, 100, 6) && exceeds(fill, 8193, 1));
        assert!(!fits_half(fill, 100, 3) && fits_half(fill, 100, 2));
        assert!(!fits_half(Fill::Entries(1), 10, 1));
    }
}
