//! Client-side caching: clients keep copies of values and are told when these are no longer valid (CLIENT
//! TRACKING).
//!
//! ```text
//! GET k by a client that tracks --- remember, under the lock of k's shard ---> table: hash of k, client
//! k changes, whoever changes it --- hear, under the same lock ---> taken out of the table
//!   ---> a message to the worker of each client that has read it ---> worker/invalidate.rs: `invalidate [k]`
//!        (with REDIRECT to the worker of the client that is told instead: it hears of k before the reply to
//!        a command that has waited for k)
//! with BCAST: k changes ---> gathered under each prefix of k ---> after the batch: `invalidate [k ...]`
//! ```
//!
//! A key is remembered and found changed under the lock of its shard, so no change between a read and its
//! entry is missed. As in Redis a key is the same in all databases here: a change of `k` in one database is
//! told to those who have read `k` in another.
//!
//! The table (`table.rs`) keeps hashes of keys, not names; whoever changes a key has its name. When the table
//! holds more keys than `tracking-table-max-keys`, some are dropped. The name of a dropped key is looked up
//! in the keyspace by its hash. If no such key is there, the clients that have read it are told to forget
//! everything, which is always safe.
//!
//! The keyspace reports every change of every key (`Keyspace::hear_every_change`) as long as a client is
//! connected that has ever switched tracking on. When the last of them has gone the table is emptied, and
//! changes cost nothing again.
mod table;
pub(crate) mod tracker;

use base::hash::{Hash, Seed};
use base::random::Random;
use resp::{Protocol, Reply};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use store::{Event, Keyspace, Told};
use table::{SLOT_BITS, Slot, Table};
pub(crate) use tracker::{Overlap, Tracker, TrackingFlags, find_overlap};

/// Slots of clients that have gone are freed when there are so many of them, and at least half of all.
const SLOTS_BEFORE_SWEEP: usize = 1 << 16;
/// How many keys are forgotten after a batch at most, where the table is over its bound.
const FORGOTTEN_AT_ONCE: usize = 1 << 12;

/// A message to clients of one worker: these keys are no longer valid.
pub(crate) struct Invalidation {
    /// The array of keys as it is sent; None: no key is valid any more.
    pub(crate) keys: Option<Arc<[u8]>>,
    /// The ids of the clients that track them.
    pub(crate) clients: Vec<u64>,
    /// The id of the client that is told in place of each of them; 0: they are told themselves, or their
    /// worker finds out whom to tell.
    pub(crate) target: u64,
}

impl Invalidation {
    /// About how many bytes it holds.
    pub(crate) fn bytes(&self) -> usize {
        const OWN_BYTES: usize = 128;
        let keys = self.keys.as_ref().map_or(0, |keys| keys.len());
        OWN_BYTES + keys + self.clients.len() * size_of::<u64>()
    }

    /// What is sent: null in the protocol that the client speaks which tracks, even where another is told in
    /// its place. Redis does so too.
    pub(crate) fn keys_or_null(&self, protocol: impl FnOnce() -> Protocol) -> Arc<[u8]> {
        self.keys.as_ref().map(Arc::clone).unwrap_or_else(|| {
            let mut reply = Reply::new(protocol());
            reply.null();
            reply.out.into()
        })
    }

    /// About how many bytes its clients get together.
    pub(crate) fn owed_bytes(&self) -> usize {
        const HEADERS_BYTES: usize = 32;
        let keys = self.keys.as_ref().map_or(0, |keys| keys.len());
        self.clients.len() * (HEADERS_BYTES + keys)
    }
}

/// Who has changed keys.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'o> {
    /// The worker that ran the command. It tells clients with BCAST when its batch has ended, and no other
    /// worker before: so they hear of all keys of a command, or of a transaction, at once.
    pub(crate) worker: usize,
    /// The client, if it tracks keys.
    pub(crate) tracker: Option<&'o Tracker>,
}

impl Origin<'_> {
    /// Expiry, eviction: whichever worker ends a batch next tells of it.
    pub(crate) const NOBODY: Origin<'static> = Origin { worker: usize::MAX, tracker: None };

    fn is(self, tracker: &Tracker) -> bool {
        self.tracker.is_some_and(|origin| origin.client == tracker.client)
    }
}

/// The numbers by which the table names clients.
#[derive(Default)]
struct Slots {
    /// By slot. None: its client has gone, and the table may still name it.
    clients: Vec<Option<Arc<Tracker>>>,
    /// Slots that the table does not name.
    free: Vec<Slot>,
    /// How many slots were left since `free` was last filled.
    gone: usize,
}

/// One prefix that clients track (BCAST).
#[derive(Default)]
struct Prefix {
    /// By their ids.
    clients: BTreeMap<u64, Arc<Tracker>>,
    /// Keys that have changed since they were last told, and the id of who changed them last, 0 for nobody:
    /// by the worker that is to tell of them.
    changed: BTreeMap<usize, BTreeMap<Box<[u8]>, u64>>,
}

#[derive(Default)]
struct Prefixes {
    all: BTreeMap<Box<[u8]>, Prefix>,
    /// How many prefixes there are of each length in bytes.
    lens: BTreeMap<usize, usize>,
    /// The prefixes under which keys have changed since clients were last told, and the worker that is to
    /// tell.
    due: Vec<(usize, Box<[u8]>)>,
}

/// See the file's opener.
pub(crate) struct Tracking {
    /// Sends an invalidation to the worker with this index. Called while shards are locked.
    post: Box<dyn Fn(usize, Invalidation) + Send + Sync>,
    /// The seed with which the keyspace hashes names.
    seed: Seed,
    table: Table,
    slots: RwLock<Slots>,
    prefixes: Mutex<Prefixes>,
    prefix_count: AtomicU64,
    /// Some prefix has changed keys.
    is_due: AtomicBool,
    /// INFO's tracking_clients.
    clients: AtomicU64,
    /// How many connections have a slot. A thread that changes it from 0 or to 0 keeps it locked until it has
    /// told the keyspace.
    connected: Mutex<u64>,
    /// The table holds too many keys.
    is_over: AtomicBool,
}

impl Tracking {
    /// Nobody tracks.
    pub(crate) fn new(post: Box<dyn Fn(usize, Invalidation) + Send + Sync>, seed: Seed) -> Tracking {
        Tracking {
            post,
            seed,
            table: Table::new(),
            slots: RwLock::default(),
            prefixes: Mutex::default(),
            prefix_count: AtomicU64::new(0),
            is_due: AtomicBool::new(false),
            clients: AtomicU64::new(0),
            connected: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// How many clients track keys: INFO's tracking_clients. A load.
    pub(crate) fn clients(&self) -> u64 {
        self.clients.load(Relaxed)
    }

    /// The keys in the table, and for how many clients together.
    pub(crate) fn keys_and_items(&self) -> (u64, u64) {
        (self.table.keys(), self.table.items())
    }

    /// How many prefixes are tracked, by any number of clients each: INFO's tracking_total_prefixes.
    pub(crate) fn prefix_count(&self) -> u64 {
        self.prefix_count.load(Relaxed)
    }

    /// What the table takes of memory. Takes each of its 64 locks once.
    pub(crate) fn table_bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Gives a client a slot, which it needs to track keys. `client` is its id, `worker` serves it. None if
    /// all 2^20 slots are taken. The caller holds no shard.
    pub(crate) fn connect(&self, keyspace: &Keyspace, client: u64, worker: usize) -> Option<Arc<Tracker>> {
        let mut connected = self.connected.lock().unwrap_or_else(PoisonError::into_inner);
        let tracker = self.take_slot(client, worker)?;
        *connected += 1;
        if *connected == 1 {
            keyspace.hear_every_change(true);
        }
        Some(tracker)
    }

    fn take_slot(&self, client: u64, worker: usize) -> Option<Arc<Tracker>> {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        if slots.free.is_empty() && slots.gone >= SLOTS_BEFORE_SWEEP.max(slots.clients.len() / 2) {
            self.table.forget(|slot| slots.clients[slot.0 as usize].is_none());
            slots.gone = 0;
            let is_free = |(at, client): (usize, &Option<_>)| client.is_none().then_some(Slot(at as u32));
            slots.free = slots.clients.iter().enumerate().filter_map(is_free).collect();
        }
        let slot = slots.free.pop().unwrap_or(Slot(slots.clients.len() as u32));
        if slot.0 >= 1 << SLOT_BITS {
            return None;
        }
        let tracker = Arc::new(Tracker::new(client, worker, slot));
        if slot.0 as usize == slots.clients.len() {
            slots.clients.push(None);
        }
        slots.clients[slot.0 as usize] = Some(Arc::clone(&tracker));
        Some(tracker)
    }

    /// CLIENT TRACKING ON. `redirect` is the id of the client that is told instead, 0 for none, and its
    /// worker. `prefixes` are those of BCAST, where none stands for all keys.
    pub(crate) fn begin(
        &self,
        tracker: &Arc<Tracker>,
        flags: TrackingFlags,
        (redirect, worker): (u64, usize),
        prefixes: &[&[u8]],
    ) {
        self.clients.fetch_add(u64::from(!tracker.flags().has(TrackingFlags::ON)), Relaxed);
        tracker.set_redirect(redirect, worker);
        tracker.set_flags(
            flags.with(TrackingFlags::ON).with(TrackingFlags(tracker.flags().0 & TrackingFlags::CACHING.0)),
        );
        if flags.has(TrackingFlags::BCAST) {
            let prefixes = if prefixes.is_empty() { &[&b""[..]] } else { prefixes };
            self.add_prefixes(tracker, prefixes);
        }
    }

    fn add_prefixes(&self, tracker: &Arc<Tracker>, prefixes: &[&[u8]]) {
        let mut all = self.prefixes();
        let mut own = tracker.prefixes();
        for prefix in prefixes.iter().copied() {
            if !own.insert(prefix.into()) {
                continue;
            }
            if !all.all.contains_key(prefix) {
                *all.lens.entry(prefix.len()).or_default() += 1;
            }
            let clients = &mut all.all.entry(prefix.into()).or_default().clients;
            clients.insert(tracker.client, Arc::clone(tracker));
            tracker.note_prefix(prefix);
        }
        self.prefix_count.store(all.all.len() as u64, Relaxed);
    }

    /// CLIENT TRACKING OFF. What the client has read stays in the table, as in Redis.
    pub(crate) fn end(&self, tracker: &Tracker) {
        if !tracker.flags().has(TrackingFlags::ON) {
            return;
        }
        self.clients.fetch_sub(1, Relaxed);
        tracker.set_flags(TrackingFlags::default());
        tracker.set_redirect(0, 0);
        let own = tracker.take_prefixes();
        if own.is_empty() {
            return;
        }
        let mut guard = self.prefixes();
        let all = &mut *guard;
        for name in &own {
            let Some(prefix) = all.all.get_mut(name) else { continue };
            prefix.clients.remove(&tracker.client);
            if prefix.clients.is_empty() {
                all.all.remove(name);
                let Some(count) = all.lens.get_mut(&name.len()) else { continue };
                *count -= 1;
                if *count == 0 {
                    all.lens.remove(&name.len());
                }
            }
        }
        self.prefix_count.store(all.all.len() as u64, Relaxed);
    }

    /// The client's connection has ended. The caller holds no shard.
    pub(crate) fn disconnect(&self, keyspace: &Keyspace, tracker: &Tracker) {
        self.end(tracker);
        let mut connected = self.connected.lock().unwrap_or_else(PoisonError::into_inner);
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let is_it = |client: &Arc<Tracker>| client.client == tracker.client;
        let Some(client) = slots.clients.get_mut(tracker.slot.0 as usize) else { return };
        if client.take_if(|client| is_it(client)).is_none() {
            return;
        }
        slots.gone += 1;
        drop(slots);
        *connected -= 1;
        if *connected == 0 {
            keyspace.hear_every_change(false);
            self.table.clear();
            *self.slots.write().unwrap_or_else(PoisonError::into_inner) = Slots::default();
        }
    }

    /// Notes that the client reads these keys, whose shards are locked, if it wants to be told of them.
    /// `keys_max` is `tracking-table-max-keys`.
    pub(crate) fn remember(&self, tracker: &Tracker, keys: &[Hash], keys_max: u64) {
        if !tracker.flags().remembers() {
            return;
        }
        for key in keys {
            self.table.insert(*key, tracker.slot);
        }
        self.look_at_bound(keys_max);
    }

    /// Has the next [`Tracking::settle`] drop keys if the table holds more than `keys_max`; 0 is no bound.
    fn look_at_bound(&self, keys_max: u64) {
        if keys_max != 0 && self.table.keys() > keys_max {
            self.is_over.store(true, Relaxed);
        }
    }

    /// Tells the clients that have read any of these keys of the change, and gathers each key under its
    /// prefixes. Their shards are locked.
    pub(crate) fn hear(&self, told: &[Told], origin: Origin<'_>) {
        // A hash whose last fields have expired goes at once.
        let mut shrunk = None;
        for Told { key, event, db, .. } in told.iter().filter(|told| told.event.changes_value()) {
            let is_end = *event == Event::DEL && shrunk == Some((db, key));
            shrunk = (*event == Event::FIELDS_EXPIRED).then_some((db, key));
            if self.prefix_count.load(Relaxed) > 0 {
                let is_by_itself = [Event::EXPIRED, Event::FIELDS_EXPIRED, Event::EVICTED].contains(event);
                let is_own = !is_by_itself && !is_end;
                let tracker = origin.tracker.filter(|_| is_own);
                self.gather(key, Origin { tracker, ..origin });
            }
            if self.table.keys() > 0 {
                let slots = self.table.take(self.seed.hash(key));
                if !slots.is_empty() {
                    self.tell(&slots, Some(array_of(std::iter::once(&**key)).into()), origin);
                }
            }
        }
    }

    /// Tells the clients with these slots that these keys are no longer valid, or that none is; but not a
    /// client with NOLOOP that made the change itself.
    fn tell(&self, slots: &[Slot], keys: Option<Arc<[u8]>>, origin: Origin<'_>) {
        let all = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let trackers = slots.iter().filter_map(|slot| all.clients.get(slot.0 as usize)?.as_ref());
        let is_told = |tracker: &&Arc<Tracker>| {
            let flags = tracker.flags();
            let is_own = flags.has(TrackingFlags::NOLOOP) && origin.is(tracker);
            flags.has(TrackingFlags::ON) && !flags.has(TrackingFlags::BCAST) && !is_own
        };
        let addresses = Addresses::of(trackers.filter(is_told), keys);
        drop(all);
        addresses.post(&self.post);
    }

    fn post(&self, worker: usize, keys: Arc<[u8]>, clients: Vec<u64>) {
        (self.post)(worker, Invalidation { keys: Some(keys), clients, target: 0 });
    }

    /// Notes that a key has changed under each of its prefixes that somebody tracks. `origin` is who changed
    /// it.
    fn gather(&self, key: &[u8], origin: Origin<'_>) {
        let client = origin.tracker.map_or(0, |tracker| tracker.client);
        let mut guard = self.prefixes();
        let Prefixes { all, lens, due } = &mut *guard;
        for len in lens.range(..=key.len()).map(|(len, _)| *len) {
            if let Some(prefix) = all.get_mut(&key[..len]) {
                let changed = prefix.changed.entry(origin.worker).or_default();
                if changed.is_empty() {
                    due.push((origin.worker, key[..len].into()));
                }
                changed.insert(key.into(), client);
            }
        }
        self.is_due.store(!due.is_empty(), Relaxed);
    }

    /// Whether [`Tracking::settle`] has anything to do: two loads.
    #[inline]
    pub(crate) fn is_unsettled(&self) -> bool {
        self.is_due.load(Relaxed) || self.is_over.load(Relaxed)
    }

    /// After a batch of this worker: tells what was gathered, and brings the table back to its bound. The
    /// caller holds no shard.
    #[cold]
    pub(crate) fn settle(&self, worker: usize, keyspace: &Keyspace, keys_max: u64, random: &mut Random) {
        if self.is_due.load(Relaxed) {
            self.broadcast(worker);
        }
        if self.is_over.swap(false, Relaxed) {
            self.shrink(keyspace, keys_max, random);
        }
    }

    /// Tells the clients of each prefix which of its keys this worker, or nobody, has changed.
    fn broadcast(&self, worker: usize) {
        let mut guard = self.prefixes();
        let Prefixes { all, due, .. } = &mut *guard;
        due.sort_unstable();
        let is_ours = |(of, _): &mut (usize, _)| *of == worker || *of == Origin::NOBODY.worker;
        for (of, name) in due.extract_if(.., is_ours) {
            let Some(prefix) = all.get_mut(&name) else { continue };
            let Some(changed) = prefix.changed.remove(&of) else { continue };
            let keys: Arc<[u8]> = array_of(changed.keys().map(|key| &**key)).into();
            let mut of_workers: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
            for tracker in prefix.clients.values() {
                if tracker.flags().has(TrackingFlags::NOLOOP)
                    && changed.values().any(|origin| *origin == tracker.client)
                {
                    let others = changed.iter().filter(|(_, origin)| **origin != tracker.client);
                    let others: Vec<&[u8]> = others.map(|(key, _)| &**key).collect();
                    if !others.is_empty() {
                        let keys = array_of(others.into_iter()).into();
                        self.post(tracker.worker, keys, vec![tracker.client]);
                    }
                } else {
                    of_workers.entry(tracker.worker).or_default().push(tracker.client);
                }
            }
            of_workers.into_iter().for_each(|(to, clients)| self.post(to, Arc::clone(&keys), clients));
        }
        self.is_due.store(!due.is_empty(), Relaxed);
    }

    /// Forgets keys at random until there are no more than `keys_max`, and tells those who have read them.
    fn shrink(&self, keyspace: &Keyspace, keys_max: u64, random: &mut Random) {
        for _ in 0..FORGOTTEN_AT_ONCE {
            if keys_max == 0 || self.table.keys() <= keys_max {
                return;
            }
            let Some(hash) = self.table.any(random) else { return };
            let name = keyspace.name_of(hash);
            let slots = self.table.take(hash);
            let keys = name.map(|name| array_of(std::iter::once(&*name)).into());
            self.tell(&slots, keys, Origin::NOBODY);
        }
        self.look_at_bound(keys_max);
    }

    /// Tells every client that tracks keys that none is valid any more: a database is about to lose all.
    pub(crate) fn flush(&self) {
        if self.clients() > 0 {
            let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
            let trackers = slots.clients.iter().flatten();
            let is_on = |tracker: &&Arc<Tracker>| tracker.flags().has(TrackingFlags::ON);
            let addresses = Addresses::of(trackers.filter(is_on), None);
            drop(slots);
            addresses.post(&self.post);
        }
        self.table.clear();
    }

    fn prefixes(&self) -> MutexGuard<'_, Prefixes> {
        self.prefixes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who is told of these keys, or of null: by the worker, and by the client that is told instead or 0.
struct Addresses {
    keys: Option<Arc<[u8]>>,
    clients: BTreeMap<(usize, u64), Vec<u64>>,
}

impl Addresses {
    fn of<'t>(trackers: impl Iterator<Item = &'t Arc<Tracker>>, keys: Option<Arc<[u8]>>) -> Addresses {
        let mut clients: BTreeMap<_, Vec<u64>> = BTreeMap::new();
        for tracker in trackers {
            let target = tracker.target().unwrap_or((tracker.worker, 0));
            clients.entry(target).or_default().push(tracker.client);
        }
        Addresses { keys, clients }
    }

    fn post(self, post: &(dyn Fn(usize, Invalidation) + Send + Sync)) {
        for ((worker, target), clients) in self.clients {
            post(worker, Invalidation { keys: self.keys.clone(), clients, target });
        }
    }
}

/// An array of keys, as it is sent in both protocols.
fn array_of<'k>(keys: impl ExactSizeIterator<Item = &'k [u8]>) -> Vec<u8> {
    let mut reply = Reply::new(Protocol::Resp3);
    reply.array(keys.len());
    keys.for_each(|key| reply.bulk(key));
    reply.out
}
