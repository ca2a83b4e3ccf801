//! How one client tracks keys: what CLIENT TRACKING has said. The client's worker changes it, and others read
//! it.
use super::table::Slot;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// About how many bytes a prefix takes here and in `Prefixes`, each of which has its text.
const PREFIX_BYTES: u64 = 430;

/// What CLIENT TRACKING and CLIENT CACHING have said, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrackingFlags(pub(crate) u32);

impl TrackingFlags {
    pub(crate) const ON: TrackingFlags = TrackingFlags(1);
    /// The client is told of all keys with its prefixes, whoever reads them.
    pub(crate) const BCAST: TrackingFlags = TrackingFlags(1 << 1);
    /// Only keys that the client reads after CLIENT CACHING YES are remembered.
    pub(crate) const OPTIN: TrackingFlags = TrackingFlags(1 << 2);
    /// Keys that the client reads after CLIENT CACHING NO are not remembered.
    pub(crate) const OPTOUT: TrackingFlags = TrackingFlags(1 << 3);
    /// The client is not told of its own changes.
    pub(crate) const NOLOOP: TrackingFlags = TrackingFlags(1 << 4);
    /// The client has sent CLIENT CACHING, which is about its next command.
    pub(crate) const CACHING: TrackingFlags = TrackingFlags(1 << 5);
    /// The client that is told instead (REDIRECT) was gone when there was something to tell.
    pub(crate) const BROKEN: TrackingFlags = TrackingFlags(1 << 6);

    /// Whether this flag is set.
    pub(crate) fn has(self, flag: TrackingFlags) -> bool {
        self.0 & flag.0 != 0
    }

    /// These flags and this one.
    pub(crate) fn with(self, flag: TrackingFlags) -> TrackingFlags {
        TrackingFlags(self.0 | flag.0)
    }

    /// These flags but this one.
    pub(crate) fn without(self, flag: TrackingFlags) -> TrackingFlags {
        TrackingFlags(self.0 & !flag.0)
    }

    /// Whether keys that its commands read are remembered now.
    pub(super) fn remembers(self) -> bool {
        let is_said = self.has(TrackingFlags::CACHING);
        let is_left_out =
            self.has(TrackingFlags::OPTIN) && !is_said || self.has(TrackingFlags::OPTOUT) && is_said;
        self.has(TrackingFlags::ON) && !self.has(TrackingFlags::BCAST) && !is_left_out
    }
}

/// A client that tracks keys, or has tracked some since it connected.
pub(crate) struct Tracker {
    /// The client's id, and the worker that serves it.
    pub(super) client: u64,
    pub(super) worker: usize,
    pub(super) slot: Slot,
    flags: AtomicU32,
    /// The id of the client that is told instead; 0 for none.
    redirect: AtomicU64,
    /// The worker of that client.
    redirect_worker: AtomicUsize,
    /// The prefixes that it tracks with BCAST.
    prefixes: Mutex<BTreeSet<Box<[u8]>>>,
    /// About how many bytes these take, here and in `Prefixes`.
    prefix_bytes: AtomicU64,
}

impl Tracker {
    /// One that tracks nothing yet.
    pub(super) fn new(client: u64, worker: usize, slot: Slot) -> Tracker {
        Tracker {
            client,
            worker,
            slot,
            flags: 0.into(),
            redirect: 0.into(),
            redirect_worker: 0.into(),
            prefixes: Mutex::default(),
            prefix_bytes: 0.into(),
        }
    }

    /// What CLIENT TRACKING and CLIENT CACHING have said: a load.
    pub(crate) fn flags(&self) -> TrackingFlags {
        TrackingFlags(self.flags.load(Relaxed))
    }

    /// Only the client's worker calls it.
    pub(crate) fn set_flags(&self, flags: TrackingFlags) {
        self.flags.store(flags.0, Relaxed);
    }

    /// The id of the client that is told instead of it; 0 for none, None where it does not track.
    pub(crate) fn redirect(&self) -> Option<u64> {
        self.flags().has(TrackingFlags::ON).then(|| self.redirect.load(Relaxed))
    }

    /// The worker and the id of the client that is told instead of it, if there is one. While it changes they
    /// may not belong together: whoever is told passes on what is not for him.
    pub(super) fn target(&self) -> Option<(usize, u64)> {
        let client = self.redirect.load(Relaxed);
        (client != 0).then(|| (self.redirect_worker.load(Relaxed), client))
    }

    /// Names the client that is told instead by its id, 0 for none, and its worker.
    pub(super) fn set_redirect(&self, client: u64, worker: usize) {
        self.redirect_worker.store(worker, Relaxed);
        self.redirect.store(client, Relaxed);
    }

    /// A command has ended: what CLIENT CACHING said was about that one alone.
    pub(crate) fn forget_caching(&self) {
        if self.flags().has(TrackingFlags::CACHING) {
            self.set_flags(self.flags().without(TrackingFlags::CACHING));
        }
    }

    /// About how many bytes its prefixes take.
    pub(crate) fn prefix_bytes(&self) -> u64 {
        self.prefix_bytes.load(Relaxed)
    }

    /// Counts what one more prefix takes.
    pub(super) fn note_prefix(&self, prefix: &[u8]) {
        self.prefix_bytes.fetch_add(PREFIX_BYTES + 2 * prefix.len() as u64, Relaxed);
    }

    /// Takes all prefixes out, and counts them as freed.
    pub(super) fn take_prefixes(&self) -> BTreeSet<Box<[u8]>> {
        self.prefix_bytes.store(0, Relaxed);
        std::mem::take(&mut *self.prefixes())
    }

    /// The prefixes that it tracks with BCAST, locked.
    pub(crate) fn prefixes(&self) -> MutexGuard<'_, BTreeSet<Box<[u8]>>> {
        self.prefixes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two prefixes of one client, of which one begins with the other: a key would be told twice.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Overlap {
    /// The first is new, the second was there.
    Existing(Vec<u8>, Vec<u8>),
    /// Both are new.
    Provided(Vec<u8>, Vec<u8>),
}

fn overlap(a: &[u8], b: &[u8]) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// The first in the order of the names that overlaps with this one, in a set of which no two overlap: those
/// that begin with it follow it, and the only one that it may begin with is the one before.
fn first_overlap<'s>(set: &'s BTreeSet<Box<[u8]>>, prefix: &[u8]) -> Option<&'s [u8]> {
    let before = set.range::<[u8], _>((std::ops::Bound::Unbounded, std::ops::Bound::Included(prefix)));
    let after = set.range::<[u8], _>((std::ops::Bound::Excluded(prefix), std::ops::Bound::Unbounded));
    let nearest = before.last().into_iter().chain(after.take(1));
    nearest.map(|name| &**name).find(|name| overlap(name, prefix))
}

/// The first of these new prefixes, in their order, that overlaps with one that the client has or with a
/// later one. It takes about as long as sorting them.
pub(crate) fn find_overlap(existing: &BTreeSet<Box<[u8]>>, provided: &[&[u8]]) -> Option<Overlap> {
    // The later prefixes, without those that begin with another of them: what overlaps with the longer one
    // overlaps with the shorter one too.
    let mut later: BTreeSet<Box<[u8]>> = BTreeSet::new();
    let mut found = None;
    for (index, prefix) in provided.iter().enumerate().rev() {
        if first_overlap(existing, prefix).is_some() {
            found = Some(index);
        }
        if let Some(name) = first_overlap(&later, prefix) {
            found = Some(index);
            if prefix.starts_with(name) {
                continue;
            }
            let from = (std::ops::Bound::Included(*prefix), std::ops::Bound::Unbounded);
            let longer = later.range::<[u8], _>(from).take_while(|name| name.starts_with(prefix));
            let longer: Vec<Box<[u8]>> = longer.cloned().collect();
            for name in &longer {
                later.remove(name);
            }
        }
        later.insert((*prefix).into());
    }
    let (index, prefix) = found.map(|index| (index, provided[index]))?;
    if let Some(name) = first_overlap(existing, prefix) {
        return Some(Overlap::Existing(prefix.to_vec(), name.to_vec()));
    }
    let other = provided[index + 1..].iter().find(|other| overlap(other, prefix))?;
    Some(Overlap::Provided(prefix.to_vec(), other.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn the_first_overlap_is_what_a_look_at_every_pair_finds() {
        let mut random = Random::new(8);
        let mut found = 0;
        for _ in 0..20_000 {
            let mut name = |_| -> Vec<u8> {
                let len = random.below(5);
                (0..len).map(|_| b'a' + random.below(2) as u8).collect()
            };
            let (one, all): (Vec<_>, Vec<_>) =
                ((0..2).map(&mut name).collect(), (0..4).map(&mut name).collect());
            let existing: BTreeSet<Box<[u8]>> = match overlap(&one[0], &one[1]) {
                true => [one[0].clone().into()].into(),
                false => one.iter().map(|name| name.clone().into()).collect(),
            };
            let provided: Vec<&[u8]> = all.iter().map(|name| &name[..]).collect();
            let naive = provided.iter().enumerate().find_map(|(index, prefix)| {
                let old = existing.iter().find(|old| overlap(old, prefix));
                let new = provided[index + 1..].iter().find(|new| overlap(new, prefix));
                match (old, new) {
                    (Some(old), _) => Some(Overlap::Existing(prefix.to_vec(), old.to_vec())),
                    (None, Some(new)) => Some(Overlap::Provided(prefix.to_vec(), new.to_vec())),
                    (None, None) => None,
                }
            });
            found += usize::from(naive.is_some());
            assert_eq!(find_overlap(&existing, &provided), naive);
        }
        assert!((1000..19_999).contains(&found), "{found} of 20,000");
    }

    #[test]
    fn caching_turns_what_optin_and_optout_say_about_the_next_command() {
        let on = TrackingFlags::ON;
        for (flags, remembers) in [
            (TrackingFlags::default(), false),
            (on, true),
            (on.with(TrackingFlags::BCAST), false),
            (on.with(TrackingFlags::OPTIN), false),
            (on.with(TrackingFlags::OPTIN).with(TrackingFlags::CACHING), true),
            (on.with(TrackingFlags::OPTOUT), true),
            (on.with(TrackingFlags::OPTOUT).with(TrackingFlags::CACHING), false),
        ] {
            assert_eq!(flags.remembers(), remembers, "{flags:?}");
        }
    }
}
