//! Keyspaces that no server serves: the tools load data into them to look at it.
use crate::tally::Tally;
use base::Millis;
use base::hash::Seed;
use std::hash::{BuildHasher, RandomState};
use store::{Deadline, KeyInfo, Keyspace, KeyspaceOptions, Kind, Settings};

/// So many names are looked up after each step of a walk.
const STEP_KEYS: u64 = 1000;

/// An empty keyspace. Its hashes are secret, as a server's: a file may have been made to slow its reader.
pub(crate) fn keyspace(shard_bits: u32, databases: u16) -> Keyspace {
    let word = || RandomState::new().hash_one(0);
    Keyspace::new(KeyspaceOptions { shard_bits, databases, seed: Seed::new(word(), word()) })
}

/// A key of a scratch keyspace.
pub(crate) struct Found<'f> {
    pub(crate) db: u16,
    pub(crate) name: &'f [u8],
    pub(crate) info: KeyInfo,
    pub(crate) deadline: Deadline,
}

impl Found<'_> {
    /// What the key adds to a sum.
    pub(crate) fn tally(&self) -> Tally {
        let elements = if self.info.kind == Kind::String { 0 } else { self.info.len };
        Tally { keys: 1, elements, bytes: self.info.memory_bytes }
    }
}

/// Shows every key whose deadline has not passed by `now`.
pub(crate) fn walk(keyspace: &Keyspace, settings: &Settings, now: Millis, visit: &mut dyn FnMut(&Found<'_>)) {
    for db in (0..keyspace.databases()).filter(|db| !keyspace.is_empty(*db)) {
        let mut cursor = 0;
        loop {
            let mut names = Vec::new();
            let step = keyspace.scan(db, now, cursor, STEP_KEYS, &mut |name, _| names.push(name.to_vec()));
            for name in &names {
                if let Some(found) = find(keyspace, settings, now, (db, name)) {
                    visit(&found);
                }
            }
            cursor = step.next_cursor;
            if cursor == 0 {
                break;
            }
        }
    }
}

/// What is known of one key.
pub(crate) fn find<'f>(
    keyspace: &Keyspace,
    settings: &Settings,
    now: Millis,
    (db, name): (u16, &'f [u8]),
) -> Option<Found<'f>> {
    let (mut view, key) = keyspace.lock_one(db, now, settings, name);
    view.ignore_lookups();
    let deadline = view.deadline(&key)?;
    let info = view.info(&key)?;
    Some(Found { db, name, info, deadline })
}
