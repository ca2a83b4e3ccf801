//! All data as it was at one moment, for whoever writes it to a file while commands go on.
//!
//! ```text
//! freeze: one more owner for the tree of every database in every shard, O(shards), whatever they hold
//! visit:  leaf by leaf, without a lock
//! let go: a shard's tree when all of it was visited, leaf by leaf too
//! ```
//!
//! A command that writes copies the leaf, and the nodes above it, which the frozen tree still holds; then the
//! values that it changes likewise. So the price of a frozen keyspace is what is written while it lasts, and
//! falls as it is visited. Uses of keys are not recorded in leaves that are held (`eviction/uses.rs`).
use crate::entry::Meta;
use crate::eviction::lru_clock::CODES;
use crate::eviction::uses::Tracking;
use crate::keyspace::seeds::Seeds;
use crate::keyspace::shard::kind;
use crate::snapshot::ValueRef;
use crate::value::Value;
use crate::{Deadline, Keyspace, Policy, Usage};
use base::Millis;
use pack::counted::Holder;
use pack::map::Map;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// All databases as they were at one moment.
pub struct Frozen {
    /// Those that had keys, in order.
    dbs: Vec<FrozenDb>,
    /// How many keys there are in all.
    pub keys: u64,
    /// Whether some hash has fields with deadlines.
    pub has_timed_hashes: bool,
}

/// One database as it was at one moment.
pub struct FrozenDb {
    /// Its number.
    pub number: u16,
    /// How many keys it has, those past their deadline included.
    pub keys: u64,
    /// How many of them have a deadline.
    pub volatile_keys: u64,
    /// Its tree in each shard that has some of it.
    maps: Vec<Map<Value>>,
    /// Fields of hashes whose deadline is not later are left out.
    sees: Millis,
    moment: Arc<Moment>,
}

/// What one shard had of a database at one moment.
pub struct FrozenShard {
    map: Map<Value>,
    sees: Millis,
    moment: Arc<Moment>,
}

/// What has to be known of the moment to read what was frozen.
struct Moment {
    #[expect(dead_code, reason = "its end says that nothing is held any more")]
    holder: Holder,
    now: Millis,
    seeds: Seeds,
    tracking: Tracking,
    /// When each code of the LRU clock began, in microseconds.
    began_us: Box<[i64; CODES]>,
}

/// A key and its value.
pub struct FrozenEntry<'f> {
    pub key: &'f [u8],
    pub value: ValueRef<'f>,
    /// It may have passed.
    pub deadline: Deadline,
    /// [`Usage::Untracked`] where the policy does not go by uses.
    pub usage: Usage,
}

impl Keyspace {
    /// The data at this moment. The caller makes sure that no command is half done: the shards are locked one
    /// after the other. `policy` says which uses of keys are wanted.
    pub fn freeze(&self, now: Millis, policy: Policy) -> Frozen {
        let moment = Arc::new(Moment {
            holder: Holder::new(),
            now,
            seeds: self.seeds,
            tracking: policy.tracking(),
            began_us: Box::new(std::array::from_fn(|code| self.uses.began_us(code as u8))),
        });
        let mut dbs = BTreeMap::new();
        let mut timed_hashes = 0;
        for index in 0..self.shards() {
            let shard = self.shard(index);
            for (number, db) in shard.dbs().filter(|(_, db)| !db.map.is_empty()) {
                let frozen = dbs.entry(number).or_insert_with(|| FrozenDb::new(number, &moment));
                frozen.keys += db.map.len();
                frozen.volatile_keys += db.volatile.keys;
                timed_hashes += db.volatile.hashes;
                frozen.maps.push(db.map.clone());
            }
        }
        let dbs: Vec<FrozenDb> = dbs.into_values().collect();
        Frozen { keys: dbs.iter().map(|db| db.keys).sum(), dbs, has_timed_hashes: timed_hashes > 0 }
    }
}

impl Frozen {
    /// Shows fields of hashes that are past their deadline, as keys are: for whoever writes down what comes
    /// behind. A worker may take a field for present for a moment still, because it reads the clock once for
    /// each batch of requests; and what it does to that field is not to make a new one, without a deadline.
    pub fn with_overdue_fields(mut self) -> Frozen {
        self.dbs.iter_mut().for_each(|db| db.sees = Millis(i64::MIN));
        self
    }

    /// The databases that had keys, in order.
    pub fn into_dbs(self) -> impl Iterator<Item = FrozenDb> {
        self.dbs.into_iter()
    }
}

impl FrozenDb {
    fn new(number: u16, moment: &Arc<Moment>) -> FrozenDb {
        let moment = Arc::clone(moment);
        FrozenDb { number, keys: 0, volatile_keys: 0, maps: Vec::new(), sees: moment.now, moment }
    }

    /// What each shard had of it.
    pub fn into_shards(self) -> impl Iterator<Item = FrozenShard> {
        let FrozenDb { maps, moment, sees, .. } = self;
        maps.into_iter().map(move |map| FrozenShard { map, sees, moment: Arc::clone(&moment) })
    }
}

impl FrozenShard {
    /// Visits all keys until told to stop.
    pub fn visit(&self, visit: &mut dyn FnMut(FrozenEntry<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.moment.visit_map(&self.map, self.sees, visit)
    }

    /// Lets go of it, with a `pause` behind each leaf that nobody else has any more.
    pub fn let_go(self, pause: &mut dyn FnMut()) {
        Holder::letting_go(|| self.map.let_go(pause));
    }
}

impl Moment {
    fn visit_map(
        &self,
        map: &Map<Value>,
        sees: Millis,
        visit: &mut dyn FnMut(FrozenEntry<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut place = Some(0);
        while let Some(crowd) = place.and_then(|place| map.crowd(place)) {
            for index in 0..crowd.len() {
                let found = crowd.at(index);
                let meta = Meta(found.meta);
                let seed = self.seeds.of_elements(kind(&found));
                visit(FrozenEntry {
                    key: found.key,
                    value: ValueRef::new((meta, found.inline, found.outside), seed, sees),
                    deadline: meta.deadline(found.inline),
                    usage: self.usage(crowd.uses().get(index).copied().unwrap_or(0)),
                })?;
            }
            place = crowd.leaf_note().range.last.checked_add(1);
        }
        ControlFlow::Continue(())
    }

    fn usage(&self, byte: u8) -> Usage {
        match self.tracking {
            Tracking::Off => Usage::Untracked,
            Tracking::Frequency => Usage::Frequency(byte),
            Tracking::Recency => {
                let used_us = self.began_us[usize::from(byte)];
                Usage::IdleMs((self.now.0 - used_us / 1000).max(0))
            }
        }
    }
}
