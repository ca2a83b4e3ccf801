//! What names are hashed with, and what hides the places of walks.
use base::hash::Seed;
use base::permutation::Permutation;

/// What names are hashed with, by what they name. The cursors of SCAN show places in hash order, so whoever scans a set of their own
/// learns how its members hash; that tells nothing of keys, or of other types.
pub(crate) struct Seeds {
    pub(crate) keys: Seed,
    /// Of hashes.
    pub(crate) fields: Seed,
    /// Of sets.
    pub(crate) members: Seed,
    /// Members of sorted sets.
    pub(crate) scores: Seed,
    pub(crate) cursors: Cursors,
}

/// What hides the places that walks stand at: they are parts of hashes.
pub(crate) struct Cursors {
    /// Of SCAN: 48 bits.
    pub(crate) keys: Permutation,
    /// Of HSCAN, SSCAN and ZSCAN: 32 bits. Integers lie beyond.
    pub(crate) elements: Permutation,
}

impl Seeds {
    pub(super) fn of(seed: &Seed) -> Seeds {
        Seeds {
            keys: seed.derive("keys"),
            fields: seed.derive("fields"),
            members: seed.derive("members"),
            scores: seed.derive("scores"),
            cursors: Cursors {
                keys: Permutation::new(seed.derive("cursors of keys"), 24),
                elements: Permutation::new(seed.derive("cursors of elements"), 16),
            },
        }
    }
}
