//! Clients that wait for a key: they have sent BLPOP or another blocking command, which has found nothing.
//!
//! ```text
//! tries, finds nothing --- Executor::wait_for_keys ---> queued under each key that it waits for
//!   a key changes, whoever changed it --- Executor::serve tries the request again, under the key's lock --->
//!   answered: a message brings the reply to the client's worker, which takes it out of the other queues
//! ```
//!
//! The order under a key is the order of arrival over all workers: tickets are drawn from one counter. The
//! queues are cut into parts, one for each shard, and a queue is entered and served while its key's shard is
//! locked, so no change between the try and the entry is missed. Each key that somebody waits for has an open
//! ear in its shard (`store::View::open_ear`); writes to other keys pay nothing.
//!
//! A wait ends once: the thread that takes its ticket out of `ClientRecord::waiting` ends it, and holds that
//! lock while it tries the request (`core/blocking.rs`). A thread that has found a request in a queue
//! compares tickets first: by then its client may wait for something else.
use crate::core::session::{ClientRecord, Session, Ticket};
use crate::state::acl::User;
use crate::state::lock::lock;
use command::Wait;
use resp::{Args, Protocol, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use store::{Key, Keyspace, Kind, Offer, Told, View};

/// A request that waits, whole, to be tried again.
pub(crate) struct Waiter {
    pub(crate) record: Arc<ClientRecord>,
    /// Its place in the order of arrival.
    pub(crate) ticket: Ticket,
    /// `Row::number` of its command.
    pub(crate) row: usize,
    pub(crate) db: u16,
    pub(crate) protocol: Protocol,
    /// The user who sent it, as of this version of all users. If they have changed since, the new rules hold
    /// when the request is tried again.
    pub(crate) user: Arc<User>,
    pub(crate) users_version: u64,
    request: Vec<u8>,
    spans: Vec<Span>,
    /// Which arguments are keys.
    keys: Vec<u32>,
    /// How many of them, from the first, it waits for.
    awaited: usize,
    pub(crate) kind: Kind,
    /// Whether its command is also tried again when a key is gone or has another type.
    pub(crate) ends_without_key: bool,
}

impl Waiter {
    /// The request, as it is tried again.
    pub(crate) fn args(&self) -> Args<'_> {
        Args::new(&self.request, &self.spans)
    }

    /// The names of all its keys.
    pub(crate) fn keys(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let args = self.args();
        self.keys.iter().map(move |position| args.at(*position as usize))
    }

    /// The keys that it waits for. One may be named twice.
    fn awaited(&self) -> impl Iterator<Item = &[u8]> {
        self.keys().take(self.awaited)
    }

    /// Bytes of memory that it takes, queues included.
    pub(crate) fn bytes(&self) -> usize {
        const QUEUED_BYTES: usize = 408;
        let names: usize = self.awaited().map(|name| name.len() + QUEUED_BYTES).sum();
        size_of::<Waiter>() + self.request.len() + self.spans.len() * size_of::<Span>() + names
    }
}

/// Those who wait for one key, by their tickets.
#[derive(Default)]
struct Queue {
    waiters: BTreeMap<Ticket, Arc<Waiter>>,
    /// How many of them are tried also when the key is gone ([`Waiter::ends_without_key`]).
    ends_without_key: usize,
    /// How many wait for a list, a sorted set, a stream.
    of_kind: [usize; 3],
}

/// The place of a kind in [`Queue::of_kind`]; None for one that nobody waits for.
fn nth_kind(kind: Kind) -> Option<usize> {
    [Kind::List, Kind::ZSet, Kind::Stream].iter().position(|other| *other == kind)
}

/// The queues of one shard's keys, by database and name.
#[derive(Default)]
struct Part(BTreeMap<u16, BTreeMap<Box<[u8]>, Queue>>);

impl Part {
    fn queue(&self, db: u16, key: &[u8]) -> Option<&Queue> {
        self.0.get(&db)?.get(key)
    }
}

/// A key that somebody waits for, and the shard it lies in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) shard: u32,
    pub(crate) db: u16,
    pub(crate) key: Box<[u8]>,
}

/// A key that has changed. Those who wait for it are to be tried, from this ticket on.
pub(crate) struct Ready {
    pub(crate) place: Place,
    pub(crate) first: Ticket,
}

impl Ready {
    /// All who wait for it are to be tried.
    fn for_all(place: Place) -> Ready {
        Ready { place, first: Ticket(0) }
    }
}

/// Keys that have changed, each once: a script may push to one again and again. With each its place in the
/// order in which they came, and the first ticket from which on those who wait are to be tried.
#[derive(Default)]
pub(crate) struct ReadyKeys(BTreeMap<Place, (usize, Ticket)>);

impl ReadyKeys {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds more keys, and tickets of those that are there.
    pub(crate) fn add(&mut self, more: Vec<Ready>) {
        for Ready { place, first } in more {
            let number = self.0.len();
            let (_, least) = self.0.entry(place).or_insert((number, first));
            *least = first.min(*least);
        }
    }

    /// In the order in which they came.
    pub(crate) fn in_order(self) -> Vec<Ready> {
        let mut keys: Vec<_> = self.0.into_iter().collect();
        keys.sort_by_key(|(_, (number, _))| *number);
        keys.into_iter().map(|(place, (_, first))| Ready { place, first }).collect()
    }

    /// These with each key once.
    pub(crate) fn merged(all: Vec<Ready>) -> Vec<Ready> {
        if all.len() < 2 {
            return all;
        }
        let mut keys = ReadyKeys::default();
        keys.add(all);
        keys.in_order()
    }
}

/// See the file's opener.
pub(crate) struct Waiters {
    /// One for each shard.
    parts: Box<[Mutex<Part>]>,
    tickets: AtomicU64,
    /// Keys that changed where nobody could serve those who wait for them, and how many they are together
    /// with those that a worker has taken and not yet served.
    ready: Mutex<Vec<Ready>>,
    ready_count: AtomicU64,
    /// Held by whoever serves them.
    serving: Mutex<()>,
    /// Keys that changed while those who wait for them may not be served.
    postponed: Mutex<Vec<Ready>>,
    /// INFO's `total_blocking_keys`, and `total_blocking_keys_on_nokey`: those of them of which a waiting
    /// request is tried also when the key is gone.
    pub(crate) keys: AtomicU64,
    pub(crate) keys_on_nokey: AtomicU64,
}

impl Waiters {
    /// Nobody waits.
    pub(crate) fn new(shards: usize) -> Waiters {
        Waiters {
            parts: (0..shards).map(|_| Mutex::default()).collect(),
            tickets: AtomicU64::new(1),
            ready: Mutex::default(),
            ready_count: AtomicU64::new(0),
            serving: Mutex::default(),
            postponed: Mutex::default(),
            keys: AtomicU64::new(0),
            keys_on_nokey: AtomicU64::new(0),
        }
    }

    /// Whether anybody waits for any key.
    pub(crate) fn is_any(&self) -> bool {
        self.keys.load(Relaxed) > 0
    }

    /// A request joins the queues of the keys that it waits for. Their shards are locked by `view`, and
    /// `keys` are those of the request, as `positions` has them.
    pub(crate) fn add(
        &self,
        (view, keys, positions): (&mut View<'_>, &[Key<'_>], &[u32]),
        (session, row, protocol): (&Session, usize, Protocol),
        args: &Args<'_>,
        wait: &Wait,
    ) -> Arc<Waiter> {
        let record = &session.record;
        let (request, spans) = written(args, &wait.resolved);
        let ticket = Ticket(self.tickets.fetch_add(1, Relaxed));
        // Set before it is queued: from then on any thread that locks these shards may end the wait.
        *record.waiting() = Some(ticket);
        let waiter = Arc::new(Waiter {
            record: Arc::clone(record),
            ticket,
            row,
            db: keys.first().map_or(0, Key::db),
            protocol,
            user: Arc::clone(&session.user),
            users_version: session.users_version,
            request,
            spans,
            keys: positions.to_vec(),
            awaited: if wait.is_of_source { 1 } else { keys.len() },
            kind: wait.kind,
            ends_without_key: wait.ends_without_key,
        });
        for key in &keys[..waiter.awaited] {
            if self.join(view.shard_number(key), key.bytes(), &waiter) {
                view.open_ear(key);
            }
        }
        waiter
    }

    /// Puts it into the queue of one key. Returns false if it is there already: a key may be named twice.
    fn join(&self, shard: usize, key: &[u8], waiter: &Arc<Waiter>) -> bool {
        let mut part = self.part(shard);
        let queue = part.0.entry(waiter.db).or_default().entry(key.into()).or_default();
        let is_new = queue.waiters.insert(waiter.ticket, Arc::clone(waiter)).is_none();
        if is_new {
            self.keys.fetch_add(u64::from(queue.waiters.len() == 1), Relaxed);
            queue.ends_without_key += usize::from(waiter.ends_without_key);
            nth_kind(waiter.kind).into_iter().for_each(|kind| queue.of_kind[kind] += 1);
            let is_first = waiter.ends_without_key && queue.ends_without_key == 1;
            self.keys_on_nokey.fetch_add(u64::from(is_first), Relaxed);
        }
        is_new
    }

    /// Takes a waiter out of the queues of its keys. Locks the shards of these, one after the other.
    pub(crate) fn remove(&self, keyspace: &Keyspace, waiter: &Waiter) {
        for key in waiter.awaited() {
            if self.leave(keyspace.shard_of_key(key), key, waiter) {
                keyspace.close_ear(key);
            }
        }
    }

    /// Takes it out of the queue of one key, and returns whether it was in it. The caller closes the ear.
    pub(crate) fn leave(&self, shard: usize, key: &[u8], waiter: &Waiter) -> bool {
        let mut part = self.part(shard);
        let Some(queues) = part.0.get_mut(&waiter.db) else { return false };
        let Some(queue) = queues.get_mut(key) else { return false };
        if queue.waiters.remove(&waiter.ticket).is_none() {
            return false;
        }
        queue.ends_without_key -= usize::from(waiter.ends_without_key);
        nth_kind(waiter.kind).into_iter().for_each(|kind| queue.of_kind[kind] -= 1);
        let is_last = waiter.ends_without_key && queue.ends_without_key == 0;
        self.keys_on_nokey.fetch_sub(u64::from(is_last), Relaxed);
        if queue.waiters.is_empty() {
            self.keys.fetch_sub(1, Relaxed);
            queues.remove(key);
            if queues.is_empty() {
                part.0.remove(&waiter.db);
            }
        }
        true
    }

    /// Up to `count` of the requests that wait for this key, in order, from ticket `first` on.
    pub(crate) fn next(&self, place: &Place, first: Ticket, count: usize) -> Vec<Arc<Waiter>> {
        let part = self.part(place.shard as usize);
        let Some(queue) = part.queue(place.db, &place.key) else { return Vec::new() };
        queue.waiters.range(first..).take(count).map(|(_, waiter)| Arc::clone(waiter)).collect()
    }

    /// Whether a request that waits for this key is tried when it holds a value of this kind, or none.
    pub(crate) fn is_any_for(&self, place: &Place, kind: Option<Kind>) -> bool {
        let part = self.part(place.shard as usize);
        let Some(queue) = part.queue(place.db, &place.key) else { return false };
        let of_kind = kind.and_then(nth_kind).map_or(0, |kind| queue.of_kind[kind]);
        queue.ends_without_key > 0 || of_kind > 0
    }

    /// The keys of these events that somebody waits for, each once, in order. All who wait are to be tried.
    pub(crate) fn awaited(&self, told: &[Told]) -> Vec<Ready> {
        let (mut keys, mut seen) = (Vec::new(), BTreeSet::new());
        for Told { db, shard, key, event, .. } in told {
            let mut is_new = || told.len() == 1 || seen.insert((*db, &**key));
            if self.is_awaited(*shard, *db, key, event.offer) && is_new() {
                keys.push(Ready::for_all(Place { shard: *shard, db: *db, key: key.clone() }));
            }
        }
        keys
    }

    /// Whether somebody waits for this key who may be served by what an event offers.
    fn is_awaited(&self, shard: u32, db: u16, key: &[u8], offer: Offer) -> bool {
        let part = || self.part(shard as usize);
        match offer {
            Offer::Nothing => false,
            Offer::Value => part().queue(db, key).is_some(),
            Offer::Absence => part().queue(db, key).is_some_and(|queue| queue.ends_without_key > 0),
        }
    }

    /// Keeps keys that are ready for the next worker that calls [`Waiters::serve_ready`].
    pub(crate) fn make_ready(&self, mut more: Vec<Ready>) {
        if !more.is_empty() {
            let mut ready = lock(&self.ready);
            self.ready_count.fetch_add(more.len() as u64, Relaxed);
            ready.append(&mut more);
        }
    }

    /// Keeps keys until [`Waiters::bring_back`] makes them ready.
    pub(crate) fn postpone(&self, mut more: Vec<Ready>) {
        lock(&self.postponed).append(&mut more);
    }

    /// Those who wait for keys that were postponed may be served again.
    pub(crate) fn bring_back(&self) {
        let postponed = std::mem::take(&mut *lock(&self.postponed));
        self.make_ready(postponed);
    }

    /// Keeps all keys of these databases that somebody waits for: their values are about to change.
    pub(crate) fn make_all_ready(&self, is_meant: impl Fn(u16) -> bool) {
        let mut places = Vec::new();
        for shard in 0..self.parts.len() {
            let part = self.part(shard);
            for (db, queues) in part.0.iter().filter(|(db, _)| is_meant(**db)) {
                let (shard, db) = (shard as u32, *db);
                let places_of = queues.keys().map(|key| Place { shard, db, key: key.clone() });
                places.extend(places_of.map(Ready::for_all));
            }
        }
        self.make_ready(places);
    }

    /// Whether there is anything to do for [`Waiters::serve_ready`], or somebody is at it: a load.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.ready_count.load(Relaxed) > 0
    }

    /// Calls `serve` with each key that [`Waiters::make_ready`] has left. When it returns all are served that
    /// were left before, also those that another worker had taken: so whoever has made a key ready answers
    /// its client after those who wait for the key. The caller holds no shard.
    pub(crate) fn serve_ready(&self, mut serve: impl FnMut(Ready)) {
        while self.is_ready() {
            let serving = lock(&self.serving);
            let taken = std::mem::take(&mut *lock(&self.ready));
            let count = taken.len() as u64;
            ReadyKeys::merged(taken).into_iter().for_each(&mut serve);
            self.ready_count.fetch_sub(count, Relaxed);
            drop(serving);
        }
    }

    fn part(&self, shard: usize) -> MutexGuard<'_, Part> {
        lock(&self.parts[shard])
    }
}

/// A copy of a request with some arguments replaced; `replaced` is in the order of their places.
fn written(args: &Args<'_>, replaced: &[(usize, Vec<u8>)]) -> (Vec<u8>, Vec<Span>) {
    let (mut bytes, mut spans) = (Vec::new(), Vec::with_capacity(args.len()));
    let mut replaced = replaced.iter().peekable();
    for (index, arg) in args.iter_from(0).enumerate() {
        let arg = replaced.next_if(|(at, _)| *at == index).map_or(arg, |(_, text)| text);
        spans.push(Span { start: bytes.len(), len: arg.len() });
        bytes.extend_from_slice(arg);
    }
    bytes.shrink_to_fit();
    (bytes, spans)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::*};

    #[test]
    fn whoever_serves_what_is_ready_waits_for_what_another_has_taken() {
        let waiters = Waiters::new(1);
        let place = Place { shard: 0, db: 0, key: (*b"key").into() };
        let (has_taken, is_awaited, is_served) =
            (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
        let wait_for = |flag: &AtomicBool| {
            while !flag.load(Acquire) {
                std::thread::yield_now()
            }
        };
        for _ in 0..100 {
            [&has_taken, &is_awaited, &is_served].iter().for_each(|flag| flag.store(false, Release));
            waiters.make_ready(vec![Ready::for_all(place.clone())]);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    waiters.serve_ready(|_| {
                        has_taken.store(true, Release);
                        wait_for(&is_awaited);
                        (0..10).for_each(|_| std::thread::yield_now());
                        is_served.store(true, Release);
                    })
                });
                wait_for(&has_taken);
                is_awaited.store(true, Release);
                waiters.serve_ready(|_| unreachable!("there is but one"));
                assert!(is_served.load(Acquire));
            });
            assert!(!waiters.is_ready());
        }
    }

    #[test]
    fn a_key_that_is_made_ready_again_and_again_is_served_once() {
        let place = |key: &[u8]| Place { shard: 0, db: 0, key: key.into() };
        let mut keys = ReadyKeys::default();
        assert!(keys.is_empty());
        for _ in 0..3 {
            keys.add([b"z", b"a", b"m"].map(|key| Ready::for_all(place(key))).into());
        }
        let in_order: Vec<Place> = keys.in_order().into_iter().map(|ready| ready.place).collect();
        assert_eq!(in_order, [place(b"z"), place(b"a"), place(b"m")]);
        let tickets = [(b"z", 4), (b"a", 9), (b"z", 2), (b"a", 9), (b"z", 7)];
        let all = tickets.map(|(key, ticket)| Ready { place: place(key), first: Ticket(ticket) });
        let waiters = Waiters::new(1);
        waiters.make_ready(all.into());
        let mut served = Vec::new();
        waiters.serve_ready(|ready| served.push((ready.place, ready.first)));
        assert_eq!(served, [(place(b"z"), Ticket(2)), (place(b"a"), Ticket(9))]);
        assert!(!waiters.is_ready());
    }

    #[test]
    fn what_is_postponed_is_ready_when_it_is_brought_back() {
        let waiters = Waiters::new(1);
        let place = Place { shard: 0, db: 0, key: (*b"key").into() };
        waiters.postpone(vec![Ready { place, first: Ticket(3) }]);
        assert!(!waiters.is_ready());
        waiters.bring_back();
        let mut served = Vec::new();
        waiters.serve_ready(|ready| served.push(ready.first));
        assert_eq!((served, waiters.is_ready()), (vec![Ticket(3)], false));
        waiters.bring_back();
        assert!(!waiters.is_ready());
    }
}
