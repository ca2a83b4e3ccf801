//! The seeds by which names are hashed, and the permutations that hide hashes in the cursors which clients
//! see.
use base::hash::Seed;
use base::permutation::Permutation;

/// The seeds that names are hashed with, one for each kind of name, so that whoever learns something of the
/// hashes of one kind knows nothing of the others.
#[derive(Clone, Copy)]
pub(crate) struct Seeds {
    pub(crate) keys: Seed,
    /// Of the fields of hashes.
    pub(crate) fields: Seed,
    /// Of the members of sets.
    pub(crate) members: Seed,
    /// Of the members of sorted sets.
    pub(crate) scores: Seed,
    pub(crate) cursors: Cursors,
}

/// The permutations that turn the position of a walk into a cursor for a client. A position is a part of a
/// hash, which a client must not learn.
#[derive(Clone, Copy)]
pub(crate) struct Cursors {
    /// Of SCAN: 48 bits.
    pub(crate) keys: Permutation,
    /// Of HSCAN, SSCAN and ZSCAN: 32 bits. Positions of integer members are greater, and shown as they are.
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
