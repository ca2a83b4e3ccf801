//! One shard: for every database a tree, a timing wheel and the sums over its deadlines; the shard's
//! counters; and the buffers that edits need, so that a request allocates none.
//!
//! A database other than 0 is made in a shard when something is first written to it there (`databases.rs`),
//! so 16 databases in 256 shards cost nothing until they are used.
use crate::entry::Meta;
use crate::expiry::notes::NEVER_DUE;
use crate::expiry::timer::Volatile;
use crate::expiry::wheel::Wheel;
use crate::keyspace::databases::{Databases, Lent};
use crate::keyspace::ears::Ears;
use crate::keyspace::garbage::Garbage;
use crate::keyspace::stats::ShardStats;
use crate::kind::Kind;
use crate::value::Value;
use base::Millis;
use base::hash::Seed;
use base::random::Random;
use pack::arena::is_evacuating;
use pack::counted;
use pack::image::Draft;
use pack::map::{Found, Map, Shared};
use std::hint::cold_path;
use std::ops::ControlFlow;

/// The fields stand in this order so that what every request touches shares a cache line with the mutex.
#[repr(C)]
pub(crate) struct Shard {
    first: Db,
    pub(crate) index: u32,
    /// Database 0's number of keys as it was last published for readers without the lock (`locked.rs`).
    published: u64,
    /// Which of the others may have changed since their lengths were published.
    lent: Lent,
    pub(crate) stats: ShardStats,
    pub(crate) ears: Ears,
    /// Databases 1 and up.
    others: Databases,
    pub(crate) buffers: Buffers,
}

/// Deadlines are rare where fewer than one key in so many has one.
const RARE: u64 = 16;

/// One database's part of a shard.
pub(crate) struct Db {
    pub(crate) map: Map<Value>,
    pub(crate) volatile: Volatile,
    /// Made when a key first gets a deadline.
    pub(crate) wheel: Option<Box<Wheel>>,
}

/// Buffers of a shard that are used again for each edit.
pub(crate) struct Buffers {
    /// A deadline and a value on their way into an entry.
    pub(crate) payload: Vec<u8>,
    /// The text of a string while it is edited, or the image of a small collection that is no list.
    pub(crate) text: Vec<u8>,
    /// A short list while it is edited.
    pub(crate) draft: Draft,
    /// Decides at random which uses raise a counter.
    pub(crate) random: Random,
}

/// A buffer of more bytes, which a long value made grow, is freed after the edit: there are several in each
/// of hundreds of shards.
pub(crate) const BUFFER_KEPT_BYTES_MAX: usize = 1 << 10;

impl Buffers {
    fn new(seed: u64) -> Buffers {
        Buffers { payload: Vec::new(), text: Vec::new(), draft: Draft::default(), random: Random::new(seed) }
    }

    /// Frees what is longer than [`BUFFER_KEPT_BYTES_MAX`]; to be called when an edit has ended.
    #[inline]
    pub(crate) fn shrink(&mut self) {
        for buffer in [&mut self.payload, &mut self.text] {
            if buffer.capacity() > BUFFER_KEPT_BYTES_MAX {
                *buffer = Vec::new();
            }
        }
        self.draft.shrink(BUFFER_KEPT_BYTES_MAX);
    }

    /// Frees the buffers that lie in extents which are being emptied. Nothing is kept in them between edits,
    /// so the next edit allocates anew.
    pub(crate) fn relocate(&mut self) {
        for buffer in [&mut self.payload, &mut self.text] {
            if is_evacuating(buffer.as_ptr()) {
                *buffer = Vec::new();
            }
        }
        self.draft.relocate();
    }
}

impl Db {
    pub(crate) fn new() -> Db {
        Db { map: Map::new(), volatile: Volatile::default(), wheel: None }
    }

    /// Whether keys with a deadline are so few that a leaf chosen at random hardly ever holds one.
    pub(crate) fn has_rare_deadlines(&self) -> bool {
        self.volatile.keys < self.map.len() / RARE
    }

    pub(crate) fn is_overdue(found: &Found<'_, Value>, now: Millis) -> bool {
        Meta(found.meta).is_overdue(found.inline, now)
    }
}

pub(crate) fn kind(found: &Found<'_, Value>) -> Kind {
    Meta(found.meta).shape().kind()
}

impl Shard {
    /// An empty shard. `seed` is that of its random numbers.
    pub(crate) fn new(index: u32, seed: u64) -> Shard {
        Shard {
            first: Db::new(),
            index,
            published: 0,
            lent: Lent::None,
            stats: ShardStats::default(),
            ears: Ears::default(),
            others: Databases::default(),
            buffers: Buffers::new(seed),
        }
    }

    /// A database, to read; None where it was not made yet in this shard.
    pub(crate) fn db(&self, db: u16) -> Option<&Db> {
        match db {
            0 => Some(&self.first),
            n => self.others.find(n),
        }
    }

    /// A database, to read, and the counters.
    pub(crate) fn db_and_stats(&mut self, db: u16) -> (Option<&Db>, &mut ShardStats) {
        let found = match db {
            0 => Some(&self.first),
            n => self.others.find(n),
        };
        (found, &mut self.stats)
    }

    /// A database, to read and to record uses in; the counters; and the generator that decides which uses
    /// count.
    pub(crate) fn db_to_use(&mut self, db: u16) -> (Option<&mut Db>, &mut ShardStats, &mut Random) {
        let found = match db {
            0 => Some(&mut self.first),
            n => self.others.find_mut(n),
        };
        (found, &mut self.stats, &mut self.buffers.random)
    }

    /// A database, to write, with the counters and buffers that writing needs. It is made where it is
    /// missing.
    #[inline(always)]
    pub(crate) fn open(&mut self, db: u16) -> (&mut Db, &mut ShardStats, &mut Buffers) {
        let found = match db {
            0 => &mut self.first,
            n => {
                cold_path();
                self.lent.add(n);
                self.others.open(n)
            }
        };
        (found, &mut self.stats, &mut self.buffers)
    }

    /// All databases that were made, in the order of their numbers, to read.
    pub(crate) fn dbs(&self) -> impl Iterator<Item = (u16, &Db)> {
        std::iter::once((0, &self.first)).chain(self.others.all())
    }

    /// All databases that were made, in the order of their numbers, and the counters beside them.
    pub(crate) fn dbs_mut(&mut self) -> (impl Iterator<Item = (u16, &mut Db)>, &mut ShardStats) {
        self.lent = Lent::Many;
        (std::iter::once((0, &mut self.first)).chain(self.others.all_mut()), &mut self.stats)
    }

    /// The first database that was made of those with this number or a greater one, for whoever adds and
    /// removes no keys.
    pub(crate) fn db_from(&mut self, db: u16) -> Option<(u16, &mut Db)> {
        if db == 0 { Some((0, &mut self.first)) } else { self.others.first_from(db) }
    }

    /// Empties `db`, or all databases; their trees go to `garbage`. Returns how many keys there were.
    /// O(databases).
    pub(crate) fn flush(&mut self, db: Option<u16>, garbage: &mut Vec<Garbage>) -> u64 {
        let (dbs, _) = self.dbs_mut();
        let chosen = dbs.filter(|(number, _)| db.is_none_or(|db| db == *number));
        let mut keys = 0;
        for (_, found) in chosen {
            let old = std::mem::replace(found, Db::new());
            if !old.map.is_empty() {
                keys += old.map.len();
                garbage.push(match weight(&old.map) {
                    Some(bytes) => Garbage::of_bytes(bytes, old.map),
                    None => Garbage::of_keys(old.map.len(), old.map),
                });
            }
        }
        keys
    }

    /// Exchanges two databases. Nothing is made where both are empty.
    pub(crate) fn swap(&mut self, a: u16, b: u16) {
        let (low, high) = (a.min(b), a.max(b));
        let is_empty = |db: u16| self.db(db).is_none_or(|db| db.map.is_empty() && db.wheel.is_none());
        if a == b || is_empty(a) && is_empty(b) {
            return;
        }
        self.lent = Lent::Many;
        match low {
            0 => std::mem::swap(&mut self.first, self.others.open(high)),
            low => self.others.swap(low, high),
        }
    }

    /// How many keys database 0 has, if that differs from what was published. The number counts as published
    /// from then on.
    #[inline]
    pub(crate) fn changed_length(&mut self) -> Option<u64> {
        let len = self.first.map.len();
        if len == self.published {
            return None;
        }
        self.published = len;
        Some(len)
    }

    /// Whether databases other than 0 may have changed since [`Shard::for_each_changed_length`] was called.
    #[inline]
    pub(crate) fn has_lent_others(&self) -> bool {
        self.lent != Lent::None
    }

    /// Visits the databases other than 0 whose number of keys is not what was published, with that number,
    /// which counts as published from then on.
    pub(crate) fn for_each_changed_length(&mut self, publish: impl FnMut(u16, u64)) {
        let lent = std::mem::take(&mut self.lent);
        self.others.publish(lent, publish);
    }

    /// When something in this shard is next due, in milliseconds.
    pub(crate) fn next_due(&self) -> i64 {
        self.dbs().map(|(_, db)| db.next_due()).min().unwrap_or(NEVER_DUE)
    }

    /// A key chosen uniformly among those of `db`, overdue ones included.
    pub(crate) fn random(&self, db: u16, random: &mut Random) -> Option<Found<'_, Value>> {
        self.db(db)?.map.random(random)
    }
}

/// A string of more bytes is freed in the background, because the kernel takes a while to collect its pages;
/// so is a collection of more bytes or elements than the next two say, which has some 64 allocations or more.
const DROPPED_BYTES_MAX: u64 = 5 << 20;
const DROPPED_COLLECTION_BYTES_MAX: u64 = 64 * 512;
const DROPPED_COLLECTION_LEN_MAX: u64 = 4096;

/// About how many bytes a value outside takes.
pub(crate) fn value_bytes(value: &Value) -> u64 {
    match (value.text_room_bytes(), value.collection()) {
        (Some(bytes), _) => bytes as u64,
        (None, Some(all)) => all.bytes(),
        (None, None) => 0,
    }
}

/// Whether freeing a value takes so long that it would hold a worker up.
pub(crate) fn is_heavy(value: &Value, bytes: u64) -> bool {
    match value.collection() {
        None => bytes > DROPPED_BYTES_MAX,
        Some(collection) => {
            bytes > DROPPED_COLLECTION_BYTES_MAX || collection.len() > DROPPED_COLLECTION_LEN_MAX
        }
    }
}

/// The entries of a database of more keys are not visited to add up its size.
const WEIGHED_KEYS_MAX: u64 = 256;

/// How many bytes a database takes; None where it has too many keys to add that up.
fn weight(map: &Map<Value>) -> Option<u64> {
    if map.len() > WEIGHED_KEYS_MAX {
        return None;
    }
    let stats = map.stats();
    let mut bytes =
        stats.inner.allocated_bytes + stats.tagged.allocated_bytes + stats.outside.allocated_bytes;
    map.for_each(&mut |found| bytes += found.outside.map_or(0, value_bytes));
    Some(bytes)
}

/// Frees a value that left the keyspace: here if that is quick, otherwise by handing it to the background.
/// Returns about how many bytes it takes.
pub(crate) fn discard(value: Option<Shared<Value>>, garbage: &mut Vec<Garbage>) -> u64 {
    let Some(value) = value else { return 0 };
    let bytes = value_bytes(&value);
    // If another owner holds the value too, dropping it frees nothing and is quick.
    match is_heavy(&value, bytes) && !value.is_shared() {
        true => garbage.push(Garbage::of_bytes(bytes, value)),
        false => counted::drop_of(bytes, value),
    }
    bytes
}

/// Visits every entry that is not overdue, until told to stop.
pub(crate) fn visit_live(
    db: &Db,
    now: Millis,
    visit: &mut dyn FnMut(&[u8], Kind) -> ControlFlow<()>,
) -> ControlFlow<()> {
    db.map.visit(&mut |found| match Db::is_overdue(&found, now) {
        true => ControlFlow::Continue(()),
        false => visit(found.key, kind(&found)),
    })
}

/// Visits the entries of one leaf from `place` on; overdue ones are shown without a kind. Returns how many
/// there were, and the next place.
pub(crate) fn scan_leaf(
    db: &Db,
    seed: &Seed,
    now: Millis,
    place: u32,
    visit: &mut dyn FnMut(&[u8], Option<Kind>),
) -> (u64, Option<u32>) {
    let mut seen = 0;
    let next = db.map.scan(seed, place, &mut |found| {
        seen += 1;
        visit(found.key, (!Db::is_overdue(&found, now)).then(|| kind(&found)));
    });
    (seen, next)
}
