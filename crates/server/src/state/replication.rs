//! The name of this server's history of writes, which replicas will ask for: 40 hex digits, new with every
//! start.
use base::random::Random;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

/// The generator in the state from which the present id is drawn.
pub(crate) struct ReplicationId(Mutex<Random>);

impl ReplicationId {
    /// `seed` comes from the system's randomness.
    pub(crate) fn new(seed: u64) -> ReplicationId {
        ReplicationId(Mutex::new(Random::new(seed)))
    }

    /// DEBUG CHANGE-REPL-ID: a new history begins, with another id.
    pub(crate) fn change(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next_u64();
    }

    /// The id: 40 hex digits.
    pub(crate) fn text(&self) -> String {
        let mut random = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut text = String::new();
        while text.len() < 40 {
            let _ = write!(text, "{:08x}", random.next_u64() >> 32);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_stays_until_it_is_changed() {
        let id = ReplicationId::new(7);
        let first = id.text();
        assert_eq!(first.len(), 40);
        assert_eq!(id.text(), first);
        id.change();
        assert_ne!(id.text(), first);
    }
}
