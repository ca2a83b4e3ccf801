//! Eviction beside a key that is about to be written: from the very leaf that the command will touch anyway,
//! so that making room costs no look at memory that is not in the cache already.
//!
//! ```text
//!  a leaf about to be written:  [ k1 k2 k3 ... k36 ]      its worst key is k2
//!  the worst keys of the 32 leaves seen last:             5 of them are worse than k2
//!  urgency 12 of 32: what is among the 12 worst goes      k2 goes, k3 behind it is not that bad, and stays
//! ```
//!
//! If the worst key of the leaf went in every case, each leaf would be a cache of its own. So it goes only if
//! it ranks high enough among the worst keys of the leaves seen lately, which stand for more than a thousand
//! keys and cost no further look. How high it must rank follows from how much memory is over the limit
//! ([`Beside::urgency`]), so that keys go as fast as others come: a leaf with two bad keys loses both, and a
//! leaf without one loses none. Where memory is over the limit all the same, `choose.rs` looks elsewhere.
//!
//! The key that is written must stay: INCR must not find that its counter has just been evicted. Keys are
//! told apart by their tags here, so all keys with the same tag stay with it.
//!
//! The room that a key leaves is what the new one needs, so in the usual case nothing is allocated and no
//! leaf moves.
use crate::entry::Meta;
use crate::eviction::choose::{Evictor, Search, deadline, is_volatile};
use crate::eviction::uses::Tracking;
use crate::expiry::deadline::Deadline;
use crate::expiry::notes::NO_DEADLINE;
use crate::keyspace::ears::Teller;
use crate::keyspace::garbage::Garbage;
use crate::keyspace::shard::{Db, discard};
use crate::value::Value;
use crate::{Eviction, Keyspace, Policy};
use base::Millis;
use base::hash::Hash;
use pack::map::{Crowd, Cull};

/// How much room is to be made for a write, and how urgently.
#[derive(Clone, Copy, Debug)]
pub struct Beside {
    pub db: u16,
    pub hash: Hash,
    /// About how many bytes the command brings.
    pub coming_bytes: usize,
    /// No more bytes than this are evicted.
    pub excess_bytes: u64,
    /// From 1 to [`Beside::URGENT`].
    pub urgency: u32,
}

impl Beside {
    pub const URGENT: u32 = SEEN as u32;
}

/// Of so many leaves the worst key is remembered.
const SEEN: usize = 32;
/// The part of the urgency by which a leaf with room for the new entry is spared, and one without is not. So
/// leaves rarely move to larger blocks.
const ROOM_SHARE: u32 = 4;
/// At most so many keys are evicted for one write, so that no client waits for more.
const VICTIMS_MAX: u32 = 8;
/// A key stays, however urgent it is, if the worst keys of so many leaves are worse: then this leaf has lost
/// the keys that should go, and others have not. `choose.rs` finds them; the wheels find the nearest deadline
/// sooner than random leaves find what was not used for long.
const WORSE_MAX: u32 = SEEN as u32 - 4;
const WORSE_MAX_BY_DEADLINE: u32 = SEEN as u32 / 2;
/// The urgency by which keys go from random leaves.
const SEVERAL_URGENCY: u32 = SEEN as u32 - 4;
/// A leaf keeps room for so many entries like the one that comes.
const KEPT_ENTRIES: usize = 1;
/// The most that an entry is thought to need in its leaf: what is longer lies in a block of its own.
const IN_LEAF_BYTES_MAX: usize = 640;

/// The ranks of the worst keys of the leaves seen last. A key of a lower rank goes sooner.
pub(crate) struct Seen {
    ranks: [i64; SEEN],
    next: usize,
}

impl Seen {
    pub(crate) fn new() -> Seen {
        // The lowest ranks stand for leaves that were not seen yet, so that at first no key counts as bad.
        Seen { ranks: [i64::MIN; SEEN], next: 0 }
    }

    /// In how many of the leaves seen last the worst key was worse than one of this rank.
    fn worse_than(&self, rank: i64) -> u32 {
        self.ranks.iter().map(|seen| u32::from(*seen < rank)).sum()
    }

    fn note(&mut self, rank: i64) {
        self.ranks[self.next] = rank;
        self.next = (self.next + 1) % SEEN;
    }
}

impl Policy {
    /// Whether [`Keyspace::evict_beside`] does anything under this policy.
    pub fn evicts_beside(self) -> bool {
        self != Policy::NoEviction
    }
}

/// One key of a leaf, and how soon it goes.
#[derive(Clone, Copy)]
struct Worst {
    index: usize,
    rank: i64,
}

impl Keyspace {
    /// Removes some of the keys that share a leaf with the one of this hash, if they can be spared, and
    /// returns how many. Locks that key's shard.
    pub fn evict_beside(
        &self,
        evictor: &mut Evictor,
        now: Millis,
        eviction: &Eviction,
        beside: &Beside,
        garbage: &mut Vec<Garbage>,
    ) -> u32 {
        let search = Search::new(now, eviction, self);
        let beside = &Beside { coming_bytes: beside.coming_bytes.min(IN_LEAF_BYTES_MAX), ..*beside };
        let evicted = {
            let mut shard = self.shard_of(beside.hash);
            if shard.db(beside.db).is_none_or(|db| db.map.is_empty()) {
                return 0;
            }
            let mut teller = Teller::new(self, &shard);
            teller.db = beside.db;
            let (db, stats, _) = shard.open(beside.db);
            let Db { map, volatile, .. } = db;
            let Some(mut cull) = map.cull(beside.hash.order()) else { return 0 };
            if may_wait(&cull, eviction, beside) {
                return 0;
            }
            let (mut evicted, mut freed_bytes) = (0, 0);
            while evicted < VICTIMS_MAX && freed_bytes < beside.excess_bytes {
                let Some(index) = next_to_go(&cull, evictor, &search, beside, evicted == 0) else { break };
                let found = cull.at(index);
                let is_past = deadline(&found).is_past(now);
                volatile.forget(Meta(found.meta), found.inline, found.outside);
                teller.note(found.key, stats.count_gone(is_past));
                let (outside, bytes) = cull.remove(index);
                freed_bytes += bytes as u64 + discard(outside, garbage);
                evicted += 1;
            }
            if evicted > 0 {
                cull.finish((KEPT_ENTRIES + 1) * beside.coming_bytes);
            }
            teller.tell();
            evicted
        };
        (0..evicted).for_each(|_| self.note_eviction(now, eviction));
        evicted
    }
}

impl Keyspace {
    /// Removes some of the keys of a random leaf, where many have to go, and returns how many: one leaf is
    /// found for several keys. None may go of a leaf that has better keys than others, or none with a
    /// deadline.
    pub fn evict_several(
        &self,
        evictor: &mut Evictor,
        now: Millis,
        eviction: &Eviction,
        wanted_bytes: u64,
        garbage: &mut Vec<Garbage>,
    ) -> u32 {
        // Of the nearest deadline the wheels know which is next.
        if matches!(eviction.policy, Policy::NoEviction | Policy::VolatileTtl) {
            return 0;
        }
        let hash = Hash(evictor.draw_hash());
        let search = Search::new(now, eviction, self);
        let Some(db) = search.draw_db(&self.shard_of(hash), evictor) else { return 0 };
        let urgency = SEVERAL_URGENCY;
        let beside = Beside { db, hash, coming_bytes: 0, excess_bytes: wanted_bytes, urgency };
        self.evict_beside(evictor, now, eviction, &beside, garbage)
    }
}

/// Whether this leaf should be left alone under a policy that goes by deadlines. These are in the entries
/// themselves, each of which may cost a cache miss, so a leaf is searched only if it has no room for the new
/// entry.
fn may_wait(cull: &Cull<'_, Value>, eviction: &Eviction, beside: &Beside) -> bool {
    eviction.policy == Policy::VolatileTtl
        && beside.urgency < Beside::URGENT
        && cull.room_bytes() >= beside.coming_bytes
}

/// The worst of the leaf's keys, if it is bad enough to go.
fn next_to_go(
    cull: &Cull<'_, Value>,
    evictor: &mut Evictor,
    search: &Search<'_>,
    beside: &Beside,
    is_first: bool,
) -> Option<usize> {
    let crowd = cull.crowd();
    let worst = worst(&crowd, evictor, search, beside.hash.tag())?;
    let worse = evictor.seen_beside.worse_than(worst.rank);
    if is_first {
        evictor.seen_beside.note(worst.rank);
    }
    let share = beside.urgency / ROOM_SHARE;
    let bar = match cull.room_bytes() < beside.coming_bytes {
        true => beside.urgency + share,
        false => beside.urgency - share,
    };
    let bar_max = match search.eviction.policy {
        Policy::VolatileTtl => WORSE_MAX_BY_DEADLINE,
        _ => WORSE_MAX,
    };
    (worse < bar.min(bar_max)).then_some(worst.index)
}

/// Of those used at one time the first, which came before the others; of those used equally often a random
/// one (`choose.rs` says why).
fn worst(crowd: &Crowd<'_, Value>, evictor: &mut Evictor, search: &Search<'_>, tag: u8) -> Option<Worst> {
    let is_volatile_only = search.eviction.policy.is_volatile();
    if crowd.len() == 0 || is_volatile_only && crowd.leaf_note().note == NO_DEADLINE {
        return None;
    }
    let may_go =
        |index: usize| crowd.tag(index) != tag && (!is_volatile_only || is_volatile(crowd.meta(index)));
    if search.eviction.policy == Policy::VolatileTtl {
        return soonest(crowd, tag);
    }
    if search.eviction.policy.tracking() == Tracking::Off {
        let index = evictor.draw(crowd.len());
        return may_go(index).then_some(Worst { index, rank: 0 });
    }
    let uses = crowd.uses();
    if uses.is_empty() {
        let rank = search.rank(0);
        return (0..crowd.len()).find(|index| may_go(*index)).map(|index| Worst { index, rank });
    }
    let first = match search.eviction.policy.tracking() {
        Tracking::Frequency => evictor.draw(uses.len()),
        _ => 0,
    };
    let mut worst: Option<Worst> = None;
    for index in (first..uses.len()).chain(0..first) {
        let rank = search.rank(uses[index]);
        if worst.is_none_or(|worst| rank < worst.rank) && may_go(index) {
            worst = Some(Worst { index, rank });
        }
    }
    worst
}

/// The key with the nearest deadline. The leaf's note is no help: it may be much earlier than the first
/// deadline by now, and correcting it would put an item into the wheel for each key that goes.
fn soonest(crowd: &Crowd<'_, Value>, tag: u8) -> Option<Worst> {
    let mut worst: Option<Worst> = None;
    for (index, found) in crowd.iter().enumerate() {
        if let Deadline::At(Millis(rank)) = deadline(&found)
            && worst.is_none_or(|worst| rank < worst.rank)
            && crowd.tag(index) != tag
        {
            worst = Some(Worst { index, rank });
        }
    }
    worst
}
