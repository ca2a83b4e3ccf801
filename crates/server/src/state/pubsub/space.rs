//! Channels by name, cut into parts by the hash of the name, each behind a lock of its own: a name space for
//! SUBSCRIBE and one for SSUBSCRIBE.
use super::{Joined, Name};
use base::hash::{Keyed, Map};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Channels are divided among this many locks, so that workers seldom wait for each other.
const PARTS: usize = 64;

pub(super) struct Space {
    parts: Box<[Mutex<Part>]>,
    /// Channels in all parts.
    count: AtomicUsize,
    keyed: Keyed,
}

/// The channels of one part that somebody listens to.
pub(super) type Part = Map<Name, Receivers>;

impl Default for Space {
    fn default() -> Space {
        let parts = (0..PARTS).map(|_| Mutex::default()).collect();
        Space { parts, count: AtomicUsize::new(0), keyed: Keyed::default() }
    }
}

impl Space {
    /// How many channels somebody listens to: a load.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// The part in which a channel of this name would be, locked.
    pub(super) fn part(&self, channel: &[u8]) -> MutexGuard<'_, Part> {
        let part = self.keyed.hash_one(channel) as usize % PARTS;
        self.parts[part].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One connection of this worker more listens. `number` is called while nobody can publish to the
    /// channel.
    pub(super) fn add(&self, channel: &[u8], worker: usize, number: impl FnOnce() -> u64) -> (Joined, u64) {
        let mut part = self.part(channel);
        let name = part.get_key_value(channel).map_or_else(|| channel.into(), |(name, _)| Name::clone(name));
        let receivers = part.entry(Name::clone(&name)).or_default();
        let is_first = receivers.is_empty();
        if is_first {
            self.count.fetch_add(1, Relaxed);
        }
        receivers.add(worker);
        (Joined { name, is_first }, number())
    }

    /// One connection of this worker less listens to this channel.
    pub(super) fn remove(&self, channel: &[u8], worker: usize) {
        let mut part = self.part(channel);
        let Some(receivers) = part.get_mut(channel) else { return };
        receivers.remove(worker);
        if receivers.is_empty() {
            part.remove(channel);
            self.count.fetch_sub(1, Relaxed);
            give_room_back(&mut part);
        }
    }

    /// All channels, without order.
    pub(super) fn names(&self) -> Vec<Name> {
        let locked = |part: &Mutex<Part>| -> Vec<Name> {
            part.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
        };
        self.parts.iter().flat_map(locked).collect()
    }
}

/// Makes a table small again when most of its entries have been removed.
pub(super) fn give_room_back<K: Eq + std::hash::Hash, V>(table: &mut Map<K, V>) {
    const KEPT: usize = 64;
    if table.capacity() > KEPT && table.len() < table.capacity() / 8 {
        table.shrink_to(2 * table.len());
    }
}

/// How many connections of each worker listen.
#[derive(Default)]
pub(super) struct Receivers {
    /// (worker, connections). Apart from `more`, because nearly always there is one pair.
    first: (u32, u32),
    more: Vec<(u32, u32)>,
}

impl Receivers {
    /// Whether nobody listens.
    pub(super) fn is_empty(&self) -> bool {
        self.first.1 == 0
    }

    /// Workers and how many of their connections listen.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, u32)> {
        let all = std::iter::once(&self.first).chain(&self.more);
        all.filter(|(_, count)| *count > 0).map(|(worker, count)| (*worker as usize, *count))
    }

    pub(super) fn add(&mut self, worker: usize) {
        let worker = worker as u32;
        if self.is_empty() {
            self.first = (worker, 1);
        } else if let Some((_, count)) = self.all_mut().find(|(w, _)| *w == worker) {
            *count += 1;
        } else {
            self.more.push((worker, 1));
        }
    }

    pub(super) fn remove(&mut self, worker: usize) {
        let Some((_, count)) = self.all_mut().find(|(w, _)| *w == worker as u32) else { return };
        *count -= 1;
        self.more.retain(|(_, count)| *count > 0);
        if self.is_empty()
            && let Some(last) = self.more.pop()
        {
            self.first = last;
        }
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut (u32, u32)> {
        std::iter::once(&mut self.first).chain(&mut self.more)
    }
}
