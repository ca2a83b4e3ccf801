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
//! until the client unwatches, which EXEC and DISCARD do too. Who is marked need not hear of the key again,
//! and is forgotten there: else each write to a key would go through all whom the first one has marked.
//!
//! Whoever takes the lock of a part holds the shard of the same number, or no shard.
use base::Millis;
use base::hash::Map;
use base::name::Name;
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

/// By the key's name, whatever the database. It keeps its room for the next, unless that is much.
type Part = Map<Name, Watchers>;

/// Who watches a key of this name. Mostly that is one client.
#[derive(Default)]
struct Watchers {
    first: Option<Watcher>,
    /// By database and client.
    others: BTreeMap<(u16, u64), Watcher>,
}

struct Watcher {
    client: u64,
    mark: Mark,
    db: u16,
    /// The key was past its deadline, and still there, when this client began to watch it: that it goes is
    /// no change.
    was_overdue: bool,
}

/// A part that is empty keeps room for so many names.
const ROOM_MAX: usize = 16;

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
        let watchers = part.entry(spot.key.into()).or_default();
        let is_new = watchers.find(spot.db, client).is_none();
        if is_new {
            watchers.add(Watcher { client, mark: Arc::clone(mark), db: spot.db, was_overdue });
            self.count.fetch_add(1, Relaxed);
        }
        is_new
    }

    /// A client watches a key no more.
    pub(crate) fn remove(&self, spot: Spot<'_>, client: u64) {
        let mut part = self.part(spot.shard);
        let Some(watchers) = part.get_mut(spot.key) else { return };
        if watchers.remove(spot.db, client) {
            self.count.fetch_sub(1, Relaxed);
        }
        if watchers.is_empty() {
            forget(&mut part, spot.key);
        }
    }

    /// Whether the key was past its deadline already when this client began to watch it.
    pub(crate) fn was_overdue(&self, spot: Spot<'_>, client: u64) -> bool {
        let part = self.part(spot.shard);
        let watcher = part.get(spot.key).and_then(|watchers| watchers.find(spot.db, client));
        watcher.is_some_and(|watcher| watcher.was_overdue)
    }

    /// These events have happened; their shards are still held.
    pub(crate) fn hear(&self, told: &[Told]) {
        if !self.is_any() {
            return;
        }
        for Told { db, shard, key, event, .. } in told.iter().filter(|told| told.event.changes_value()) {
            let mut part = self.part(*shard as usize);
            let Some(watchers) = part.get_mut(&**key) else { continue };
            for watcher in watchers.iter_mut().filter(|watcher| watcher.db == *db) {
                if watcher.was_overdue && *event == Event::EXPIRED {
                    watcher.was_overdue = false;
                } else {
                    watcher.mark();
                }
            }
            self.count.fetch_sub(watchers.forget_marked(), Relaxed);
            if watchers.is_empty() {
                forget(&mut part, key);
            }
        }
    }

    /// A database, or where `db` is None all of them, is about to lose all keys. A watched key that does not
    /// exist does not change.
    pub(crate) fn flush(&self, keyspace: &Keyspace, db: Option<u16>) {
        self.for_each(|key, watcher| {
            let is_there = || keyspace.deadline_of(watcher.db, key).is_some();
            let is_lost = db.is_none_or(|db| db == watcher.db) && is_there();
            if is_lost && !std::mem::take(&mut watcher.was_overdue) {
                watcher.mark();
            }
        });
    }

    /// Two databases are about to change places.
    pub(crate) fn swap(&self, keyspace: &Keyspace, a: u16, b: u16, now: Millis) {
        if a == b {
            return;
        }
        self.for_each(|key, watcher| {
            let of = watcher.db;
            let other = match of {
                of if of == a => b,
                of if of == b => a,
                _ => return,
            };
            let was_there = keyspace.deadline_of(of, key).is_some();
            let coming = keyspace.deadline_of(other, key);
            let comes_overdue = coming.is_some_and(|deadline| deadline.is_past(now));
            let was_gone = !was_there || watcher.was_overdue;
            if was_gone && (coming.is_none() || comes_overdue) {
                watcher.was_overdue = comes_overdue;
            } else {
                watcher.mark();
            }
        });
    }

    /// How many keys are watched by a client whose mark is not set yet. It goes through all of them.
    pub(crate) fn keys(&self) -> u64 {
        let mut count = 0;
        let mut dbs = Vec::new();
        self.for_each_name(|_, watchers| {
            let hopeful = watchers.iter_mut().filter(|watcher| !watcher.mark.load(Acquire));
            dbs.clear();
            dbs.extend(hopeful.map(|watcher| watcher.db));
            dbs.sort_unstable();
            dbs.dedup();
            count += dbs.len() as u64;
        });
        count
    }

    #[inline]
    fn is_any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    fn for_each(&self, mut see: impl FnMut(&[u8], &mut Watcher)) {
        self.for_each_name(|key, watchers| watchers.iter_mut().for_each(|watcher| see(key, watcher)));
    }

    fn for_each_name(&self, mut see: impl FnMut(&[u8], &mut Watchers)) {
        if !self.is_any() {
            return;
        }
        for part in &self.parts {
            let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
            part.iter_mut().for_each(|(key, watchers)| see(key, watchers));
        }
    }

    fn part(&self, shard: usize) -> MutexGuard<'_, Part> {
        self.parts[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nobody watches a key of this name any more.
fn forget(part: &mut Part, name: &[u8]) {
    part.remove(name);
    if part.is_empty() && part.capacity() > ROOM_MAX {
        *part = Part::default();
    }
}

impl Watchers {
    fn find(&self, db: u16, client: u64) -> Option<&Watcher> {
        let first = self.first.as_ref().filter(|first| first.is_of(db, client));
        first.or_else(|| self.others.get(&(db, client)))
    }

    fn add(&mut self, watcher: Watcher) {
        match self.first {
            None => self.first = Some(watcher),
            Some(_) => drop(self.others.insert((watcher.db, watcher.client), watcher)),
        }
    }

    fn remove(&mut self, db: u16, client: u64) -> bool {
        let first = self.first.take_if(|first| first.is_of(db, client));
        first.or_else(|| self.others.remove(&(db, client))).is_some()
    }

    /// Those who are marked go. Returns how many.
    fn forget_marked(&mut self) -> u64 {
        let is_marked = |watcher: &Watcher| watcher.mark.load(Relaxed);
        let first = self.first.take_if(|first| is_marked(first)).map_or(0, |_| 1);
        let before = self.others.len();
        self.others.retain(|_, watcher| !is_marked(watcher));
        first + (before - self.others.len()) as u64
    }

    fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_empty()
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Watcher> {
        self.first.iter_mut().chain(self.others.values_mut())
    }
}

impl Watcher {
    fn is_of(&self, db: u16, client: u64) -> bool {
        (self.db, self.client) == (db, client)
    }

    fn mark(&self) {
        self.mark.store(true, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients that watch one name in two databases, the first of them leaving before the others.
    #[test]
    fn each_of_many_clients_of_a_name_is_marked_for_its_database_until_it_leaves() {
        let watched = Watched::new(1);
        let long = [b'x'; 100];
        for key in [&b"k"[..], &long] {
            let spot = |db| Spot { shard: 0, db, key };
            let marks: Vec<Mark> = (0..6).map(|_| Mark::default()).collect();
            for (client, mark) in marks.iter().enumerate() {
                assert!(watched.add(spot(client as u16 % 2), (client as u64, mark), client == 4));
                assert!(!watched.add(spot(client as u16 % 2), (client as u64, mark), false));
            }
            assert_eq!(watched.keys(), 2);
            watched.remove(spot(0), 0);
            watched.remove(spot(0), 1);
            assert!(watched.was_overdue(spot(0), 4) && !watched.was_overdue(spot(0), 2));
            let told = |event| [Told { db: 0, shard: 0, key: key.into(), event, fields: Vec::new() }];
            watched.hear(&told(Event::EXPIRED));
            let marked = || marks.iter().map(|mark| mark.load(Relaxed)).collect::<Vec<bool>>();
            assert_eq!(marked(), [false, false, true, false, false, false]);
            watched.hear(&told(Event::EXPIRED));
            assert_eq!(marked(), [false, false, true, false, true, false]);
            assert_eq!(watched.keys(), 1, "those of the other database");
            assert_eq!(watched.count.load(Relaxed), 3, "who is marked is forgotten");
            (0..6).for_each(|client| watched.remove(spot(client as u16 % 2), client));
            assert!(!watched.is_any() && watched.part(0).is_empty());
        }
    }
}
