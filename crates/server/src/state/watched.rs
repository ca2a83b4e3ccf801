//! Keys that clients watch (WATCH): EXEC runs nothing if one of the keys that its client watches has changed.
//!
//! ```text
//! WATCH -- under the shard's lock --> an entry here, an ear on the key (`store`)
//! a change of the key, under the same lock --> `hear` marks those who watch it
//! EXEC -- under the locks of its keys and of those that are watched --> looks at the mark
//! ```
//!
//! So a change happens before the EXEC, which then sees it, or after all of it. A write to a key that nobody
//! watches costs only a test of the shard's ears. A mark stays set, and the client's other keys stay here,
//! until the client unwatches, which EXEC and DISCARD do too.
//!
//! Whoever takes the lock of a part holds the shard of the same number, or no shard.
use base::Millis;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{Event, Keyspace, Told};

/// Whether any key that one client watches has changed.
pub(crate) type Mark = Arc<AtomicBool>;

/// See the file's opener.
pub(crate) struct Watched {
    /// One for each shard.
    parts: Box<[Mutex<Part>]>,
    /// How many pairs there are of a client and a key that it watches.
    count: AtomicU64,
}

/// By database and key.
type Part = BTreeMap<u16, BTreeMap<Box<[u8]>, Watchers>>;

/// By client id.
type Watchers = BTreeMap<u64, Watcher>;

struct Watcher {
    mark: Mark,
    /// The key was past its deadline, and still there, when this client began to watch it: that it goes is
    /// no change.
    was_overdue: bool,
}

/// A key that somebody watches, and where it is.
#[derive(Clone, Copy)]
pub(crate) struct Spot<'a> {
    pub(crate) shard: usize,
    pub(crate) db: u16,
    pub(crate) key: &'a [u8],
}

impl Watched {
    /// Nobody watches yet.
    pub(crate) fn new(shards: usize) -> Watched {
        Watched { parts: (0..shards).map(|_| Mutex::default()).collect(), count: AtomicU64::new(0) }
    }

    /// A client watches a key from here on, whose shard the caller holds. False if it does already.
    pub(crate) fn add(&self, spot: Spot<'_>, (client, mark): (u64, &Mark), was_overdue: bool) -> bool {
        let mut part = self.part(spot.shard);
        let keys = part.entry(spot.db).or_default();
        if !keys.contains_key(spot.key) {
            keys.insert(spot.key.into(), Watchers::new());
        }
        let Some(watchers) = keys.get_mut(spot.key) else { return false };
        let is_new = !watchers.contains_key(&client);
        if is_new {
            watchers.insert(client, Watcher { mark: Arc::clone(mark), was_overdue });
            self.count.fetch_add(1, Relaxed);
        }
        is_new
    }

    /// A client watches a key no more.
    pub(crate) fn remove(&self, spot: Spot<'_>, client: u64) {
        let mut part = self.part(spot.shard);
        let Some(keys) = part.get_mut(&spot.db) else { return };
        let Some(watchers) = keys.get_mut(spot.key) else { return };
        if watchers.remove(&client).is_some() {
            self.count.fetch_sub(1, Relaxed);
        }
        if watchers.is_empty() {
            keys.remove(spot.key);
        }
        if keys.is_empty() {
            part.remove(&spot.db);
        }
    }

    /// Whether the key was past its deadline already when this client began to watch it.
    pub(crate) fn was_overdue(&self, spot: Spot<'_>, client: u64) -> bool {
        let part = self.part(spot.shard);
        let watcher = part.get(&spot.db).and_then(|keys| keys.get(spot.key)?.get(&client));
        watcher.is_some_and(|watcher| watcher.was_overdue)
    }

    /// These events have happened; their shards are still held.
    pub(crate) fn hear(&self, told: &[Told]) {
        if !self.is_any() {
            return;
        }
        for Told { db, shard, key, event, .. } in told.iter().filter(|told| told.event.changes_value()) {
            let mut part = self.part(*shard as usize);
            let watchers = part.get_mut(db).and_then(|keys| keys.get_mut(key));
            for watcher in watchers.into_iter().flat_map(BTreeMap::values_mut) {
                if watcher.was_overdue && *event == Event::EXPIRED {
                    watcher.was_overdue = false;
                } else {
                    watcher.mark();
                }
            }
        }
    }

    /// A database, or where `db` is None all of them, is about to lose all keys. A watched key that does not
    /// exist does not change.
    pub(crate) fn flush(&self, keyspace: &Keyspace, db: Option<u16>) {
        self.for_each(|of, key, watchers| {
            if db.is_some_and(|db| db != of) || keyspace.deadline_of(of, key).is_none() {
                return;
            }
            for watcher in watchers.values_mut() {
                if !std::mem::take(&mut watcher.was_overdue) {
                    watcher.mark();
                }
            }
        });
    }

    /// Two databases are about to change places.
    pub(crate) fn swap(&self, keyspace: &Keyspace, a: u16, b: u16, now: Millis) {
        if a == b {
            return;
        }
        self.for_each(|of, key, watchers| {
            let other = match of {
                of if of == a => b,
                of if of == b => a,
                _ => return,
            };
            let was_there = keyspace.deadline_of(of, key).is_some();
            let coming = keyspace.deadline_of(other, key);
            let comes_overdue = coming.is_some_and(|deadline| deadline.is_past(now));
            for watcher in watchers.values_mut() {
                let was_gone = !was_there || watcher.was_overdue;
                if was_gone && (coming.is_none() || comes_overdue) {
                    watcher.was_overdue = comes_overdue;
                } else {
                    watcher.mark();
                }
            }
        });
    }

    /// How many keys are watched by a client whose mark is not set yet. It goes through all of them.
    pub(crate) fn keys(&self) -> u64 {
        let mut count = 0;
        self.for_each(|_, _, watchers| {
            count += u64::from(watchers.values().any(|watcher| !watcher.mark.load(Acquire)));
        });
        count
    }

    #[inline]
    fn is_any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    fn for_each(&self, mut see: impl FnMut(u16, &[u8], &mut Watchers)) {
        if !self.is_any() {
            return;
        }
        for part in &self.parts {
            let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
            for (db, keys) in part.iter_mut() {
                keys.iter_mut().for_each(|(key, watchers)| see(*db, key, watchers));
            }
        }
    }

    fn part(&self, shard: usize) -> MutexGuard<'_, Part> {
        self.parts[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher {
    fn mark(&self) {
        self.mark.store(true, Release);
    }
}
