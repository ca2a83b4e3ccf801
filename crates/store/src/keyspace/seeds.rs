//! The seeds by which names are hashed, and the permutations that hide hashes in the cursors which clients
//! see.
use base::hash::Seed;
use base::permutation::Permutation;

/// What names are hashed with, by what they name. The cursors of SCAN show places in hash order, so whoever
/// scans a set of their own learns how its members hash; that tells nothing of keys, or of other types.
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

/// What turns the position of a walk into a cursor for a client. A position is a part of a hash, which a
/// client must not learn.
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
