//! What is known where `maxmemory-clients` is passed and there is no client to close: all have asked for
//! CLIENT NO-EVICT, or those that take too much are being closed already. To find that out takes as long as
//! there are clients, so it is not done again at once.
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// After so long, or so many more bytes, clients are gone through again though there was none to close.
const FRUITLESS_MS: i64 = 100;
const FRUITLESS_BYTES: u64 = 256 << 10;

/// See the file's opener.
#[derive(Default)]
pub(crate) struct Fruitless {
    bytes: AtomicU64,
    until_ms: AtomicI64,
}

impl Fruitless {
    /// There was none to close while clients took so much.
    pub(crate) fn note(&self, bytes: u64, now_ms: i64) {
        self.bytes.store(bytes, Relaxed);
        self.until_ms.store(now_ms + FRUITLESS_MS, Relaxed);
    }

    /// There will be none now either.
    pub(crate) fn still_holds(&self, bytes: u64, now_ms: i64) -> bool {
        now_ms < self.until_ms.load(Relaxed) && bytes < self.bytes.load(Relaxed) + FRUITLESS_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_gone_through_again_after_a_while_and_when_they_take_more() {
        let fruitless = Fruitless::default();
        assert!(!fruitless.still_holds(0, 0));
        fruitless.note(1_000_000, 50);
        assert!(fruitless.still_holds(1_000_000, 50) && fruitless.still_holds(1_200_000, 149));
        assert!(!fruitless.still_holds(1_000_000, 150) && !fruitless.still_holds(1_300_000, 50));
    }
}
