//! Moving data out of sparse memory, so that its extents can be given back: a walk over all that the shards
//! own, in steps.
//!
//! Which extents shall empty is the arena's affair (`pack::arena::Evacuation`). Every step locks one shard,
//! does so much, and lets it go; what happens in between does not matter, because the walk remembers a place
//! in hash order and, within a collection, a position of the collection's own kind, as SCAN does. What a
//! snapshot shares stays where it is.
//!
//! The shards take turns, a step each. Were one shard to get several steps in a row, a worker that waits for
//! its lock would lose the race for it each time to this thread, which is already running.
//!
//! A long collection is put aside when the walk meets it, by its key, and goes through steps of its own
//! before the walk goes on: the leaf that its entry lies in may change meanwhile.
use crate::Keyspace;
use crate::keyspace::shard::{Db, Shard};
use crate::value::Value;
use pack::arena::{Moves, Progress, relocate_box, relocate_vec};
use pack::map::Entry;

/// A walk over everything.
#[derive(Debug)]
pub struct Mover {
    /// One for each shard; those that are done are gone.
    walks: Vec<Walk>,
    /// Whose turn it is.
    turn: usize,
    pub stats: MoverStats,
}

/// What has been done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoverStats {
    /// Blocks of memory.
    pub moves: Moves,
    /// Keys with a value outside their leaf, of which something was moved, or nothing.
    pub keys_moved: u64,
    pub keys_stayed: u64,
}

impl Mover {
    /// How many shards are not done yet. They take turns, so after so many steps the same shard has its turn
    /// again.
    pub fn shards_left(&self) -> usize {
        self.walks.len()
    }
}

/// Where the walk over one shard stands.
#[derive(Debug)]
struct Walk {
    shard: usize,
    db: u16,
    place: u32,
    /// Long collections that wait for their steps.
    longs: Vec<Long>,
}

/// A long collection, of which everything before position `next` has been moved.
#[derive(Debug)]
struct Long {
    db: u16,
    key: Vec<u8>,
    /// As [`Outside::relocate`](crate::outside::Outside::relocate) returned it.
    next: u64,
}

/// The limits of one step.
#[derive(Clone, Copy, Debug)]
pub struct StepLimits {
    /// How much work one step does, in blocks looked at: see [`Moves::effort`].
    pub effort: u64,
    /// Collections of more elements have steps of their own: `active-defrag-max-scan-fields`.
    pub len_max: u64,
}

#[derive(PartialEq, Eq)]
enum Rest {
    More,
    None,
}

impl Keyspace {
    /// Begins a walk over everything.
    pub fn mover(&self) -> Mover {
        let walk = |shard| Walk { shard, db: 0, place: 0, longs: Vec::new() };
        Mover { walks: (0..self.shards()).map(walk).collect(), turn: 0, stats: MoverStats::default() }
    }

    /// One step of a walk, under the lock of one shard.
    pub fn relocate(&self, mover: &mut Mover, limits: StepLimits) -> Progress {
        if mover.turn >= mover.walks.len() {
            mover.turn = 0;
        }
        let Some(walk) = mover.walks.get_mut(mover.turn) else { return Progress::Done };
        let effort = mover.stats.moves.effort() + limits.effort;
        let limits = StepLimits { effort, ..limits };
        let mut shard = self.shard(walk.shard);
        let mut rest = Rest::More;
        while rest == Rest::More && mover.stats.moves.effort() < effort {
            match walk.longs.pop() {
                Some(long) => self.relocate_long(&mut shard, walk, long, limits, &mut mover.stats),
                None => rest = walk.relocate_leaves(&mut shard, limits, &mut mover.stats),
            }
        }
        drop(shard);
        match rest {
            Rest::More => mover.turn += 1,
            // The last shard of the list replaces the one that is done, and has its turn next.
            Rest::None => drop(mover.walks.swap_remove(mover.turn)),
        }
        Progress::More
    }

    fn relocate_long(
        &self,
        shard: &mut Shard,
        walk: &mut Walk,
        long: Long,
        limits: StepLimits,
        stats: &mut MoverStats,
    ) {
        let (Some(db), ..) = shard.db_to_use(long.db) else { return };
        let Entry::Occupied(mut entry) = db.map.entry(&self.seeds.keys, self.hash(&long.key), &long.key)
        else {
            return;
        };
        // A value that a snapshot shares would have to be copied before anything of it is moved.
        let Some(collection) = entry.outside_if_sole().and_then(Value::collection_mut) else { return };
        if let Some(next) = collection.relocate(long.next, limits.effort, &mut stats.moves) {
            walk.longs.push(Long { next, ..long });
        }
    }
}

impl Walk {
    /// Goes over leaves of the current database; [`Rest::None`] when the shard has no more databases.
    fn relocate_leaves(&mut self, shard: &mut Shard, limits: StepLimits, stats: &mut MoverStats) -> Rest {
        let Some((number, db)) = shard.db_from(self.db) else {
            shard.buffers.relocate();
            return Rest::None;
        };
        if number > self.db {
            (self.db, self.place) = (number, 0);
        }
        if self.place == 0 {
            db.relocate_wheel(&mut stats.moves);
        }
        let (mut moved, mut stayed) = (0, 0);
        let next = db.map.relocate(self.place, limits.effort, &mut stats.moves, &mut |key, value, moves| {
            let before = moves.moved;
            if let Some(next) = relocate_value(value, limits, moves) {
                self.longs.push(Long { db: self.db, key: key.to_vec(), next });
            }
            *(if moves.moved > before { &mut moved } else { &mut stayed }) += 1;
        });
        stats.keys_moved += moved;
        stats.keys_stayed += stayed;
        (self.db, self.place) = match next {
            Some(place) => (self.db, place),
            None => (self.db + 1, 0),
        };
        Rest::More
    }
}

/// Moves a value. Returns the position to go on from where it is too long for this step.
fn relocate_value(value: &mut Value, limits: StepLimits, moves: &mut Moves) -> Option<u64> {
    match value {
        Value::Str(bytes) => {
            let has_moved = relocate_vec(bytes);
            moves.note(has_moved, bytes.len());
            None
        }
        Value::Arrived(arrived) => {
            let bytes = arrived.buffer_mut();
            let has_moved = relocate_vec(bytes);
            moves.note(has_moved, bytes.len());
            None
        }
        other => match other.collection_mut()? {
            long if long.len() > limits.len_max => Some(0),
            short => short.relocate(0, limits.effort, moves),
        },
    }
}

impl Db {
    fn relocate_wheel(&mut self, moves: &mut Moves) {
        if let Some(wheel) = self.wheel.take() {
            let mut wheel = relocate_box(wheel);
            wheel.relocate(moves);
            self.wheel = Some(wheel);
        }
    }
}
