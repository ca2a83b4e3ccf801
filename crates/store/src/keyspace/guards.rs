//! The locks of shards, as a view holds them.
use crate::keyspace::locked::Locked;
use crate::keyspace::shard::Shard;
use crate::keyspace::stats::ShardStats;
use crate::{Key, Keyspace};

/// The locks that a view holds, one for each of its keys' shards.
pub(crate) enum Guards<'k> {
    /// Inline, for nearly every request.
    One(Locked<'k>),
    /// In ascending order, but for those that were added by [`Guards::hold`].
    Many(Vec<Locked<'k>>),
    /// Those of somebody who holds them for longer than the view is there (`held.rs`). Behind a trait,
    /// because locks behind a reference cannot be taken for locks of a shorter time.
    Lent(&'k mut (dyn Shards + 'k)),
}
const _: () = assert!(size_of::<Guards<'_>>() == 32, "a view is moved about by every request");

/// Room for the locks of a script that is alone: they come one by one.
const FEW: usize = 8;

/// Shards that are locked, by their places among them.
pub(crate) trait Shards {
    fn at(&self, guard: u32) -> &Shard;

    fn at_mut(&mut self, guard: u32) -> &mut Shard;

    /// How many there are.
    fn count(&self) -> u32;

    /// [`Guards::find`]
    fn find(&self, shard: usize) -> Option<u32>;

    /// [`Guards::hold`]
    fn hold(&mut self, shard: usize) -> Option<u32>;
}

impl<'k> Guards<'k> {
    /// No locks.
    pub(crate) fn none() -> Guards<'k> {
        Guards::Many(Vec::new())
    }

    /// Which guard holds this shard, after it was locked if need be; None where another thread holds it.
    pub(crate) fn hold(&mut self, keyspace: &'k Keyspace, shard: usize) -> Option<u32> {
        if let Guards::Lent(shards) = self {
            return shards.hold(shard);
        }
        match self.find(shard) {
            Some(held) => Some(held),
            None => Some(self.push(keyspace.try_shard(shard)?)),
        }
    }

    /// Adds a lock, and returns its place.
    pub(crate) fn push(&mut self, locked: Locked<'k>) -> u32 {
        let mut many = match std::mem::replace(self, Guards::none()) {
            Guards::One(one) => {
                let mut few = Vec::with_capacity(FEW);
                few.push(one);
                few
            }
            Guards::Many(many) if many.is_empty() => {
                *self = Guards::One(locked);
                return 0;
            }
            Guards::Many(many) => many,
            Guards::Lent(_) => unreachable!("who has lent them adds to them"),
        };
        many.push(locked);
        let last = many.len() - 1;
        *self = Guards::Many(many);
        last as u32
    }

    /// The same locks for a shorter time. Where they are lent, the compiler cannot see by itself that this is
    /// sound.
    pub(crate) fn shortened<'s>(self) -> Guards<'s>
    where
        'k: 's,
    {
        match self {
            Guards::One(one) => Guards::One(one),
            Guards::Many(many) => Guards::Many(many),
            Guards::Lent(shards) => Guards::Lent(shards),
        }
    }
}

impl Guards<'_> {
    #[inline]
    pub(crate) fn shard(&mut self, key: &Key<'_>) -> &mut Shard {
        self.at_mut(key.guard)
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, guard: u32) -> &mut Shard {
        match self {
            Guards::One(shard) => shard,
            Guards::Many(shards) => &mut shards[guard as usize],
            Guards::Lent(shards) => shards.at_mut(guard),
        }
    }

    #[inline]
    pub(crate) fn shard_ref(&self, key: &Key<'_>) -> &Shard {
        self.at(key.guard)
    }

    #[inline]
    pub(crate) fn at(&self, guard: u32) -> &Shard {
        match self {
            Guards::One(shard) => shard,
            Guards::Many(shards) => &shards[guard as usize],
            Guards::Lent(shards) => shards.at(guard),
        }
    }

    pub(crate) fn count(&self) -> u32 {
        match self {
            Guards::One(_) => 1,
            Guards::Many(shards) => shards.len() as u32,
            Guards::Lent(shards) => shards.count(),
        }
    }

    /// What the shards have counted, each with its number.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (usize, ShardStats)> {
        self.counts_from(0)
    }

    /// The same of those from this place on.
    pub(crate) fn counts_from(&self, first: u32) -> impl Iterator<Item = (usize, ShardStats)> {
        (first..self.count()).map(|guard| self.at(guard)).map(|shard| (shard.index as usize, shard.stats))
    }

    /// Which of the guards holds this shard.
    #[inline]
    pub(crate) fn find(&self, shard: usize) -> Option<u32> {
        match self {
            Guards::One(one) => (one.index as usize == shard).then_some(0),
            Guards::Many(all) => {
                let sought = all.binary_search_by_key(&shard, |locked| locked.index as usize).ok();
                let is_it = |locked: &Locked<'_>| locked.index as usize == shard;
                sought.or_else(|| all.iter().position(is_it)).map(|at| at as u32)
            }
            Guards::Lent(shards) => shards.find(shard),
        }
    }

    /// The same for a shard that must be among them.
    pub(crate) fn position(&self, shard: usize) -> u32 {
        self.find(shard).expect("whoever names a key has locked its shard")
    }
}
