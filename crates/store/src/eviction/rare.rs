//! Eviction where only keys with a deadline may go, and few have one. The timing wheels name the leaves that
//! hold such keys, so the leaf to look over is that of an item drawn from a wheel.
//!
//! ```text
//!  an item of the wheel:  leaves 40 to 41, due at 12:00
//!  leaf 40  [ k1  k2  k3 ... ]  has a key with a deadline: a candidate
//!  leaf 40  [ k1  --  k3 ... ]  has none, it was evicted: the leaf's note and the item are dropped
//! ```
//!
//! A key that is evicted leaves its item behind, which only a draw finds. So where keys come and go long
//! before their deadlines, nearly all items would stand for leaves that have no such key any more. Each of
//! those is found by one draw and dropped, and since a key that comes schedules one item at most, a search
//! meets about as many as have come since the one before.
use crate::Keyspace;
use crate::eviction::choose::{Evictor, Sample, Search};
use crate::expiry::notes::{NO_DEADLINE, is_needed};
use crate::expiry::timer::earliest_of;
use crate::keyspace::shard::{Db, Shard};
use crate::value::Value;
use pack::map::Crowd;

/// A search draws at most so many items of a shard for each leaf that it wants.
const DRAWS_PER_LEAF: usize = 2;

impl Keyspace {
    /// Looks over leaves that the database's items name, as many as the search wants: what leads to them is
    /// in the cache by the second.
    pub(crate) fn look_for_rare(
        &self,
        (shard, number): (&mut Shard, u16),
        evictor: &mut Evictor,
        search: &Search<'_>,
    ) {
        let index = shard.index as usize;
        let (db, ..) = shard.open(number);
        for _ in 0..DRAWS_PER_LEAF * search.leaves_wanted() {
            if !look_for_one((db, index, number), evictor, search) || evictor.has_enough(search) {
                return;
            }
        }
    }
}

/// Looks over a leaf that one of the items names. False if none was drawn.
fn look_for_one(
    (db, shard, number): (&mut Db, usize, u16),
    evictor: &mut Evictor,
    search: &Search<'_>,
) -> bool {
    let Some((drawn, item)) = db.wheel.as_mut().and_then(|wheel| wheel.draw(&mut evictor.random)) else {
        return false;
    };
    let leaves = u64::from(item.range.last - item.range.first) + 1;
    let place = item.range.first + evictor.random.below(leaves) as u32;
    let Some(crowd) = db.map.crowd(place) else { return true };
    if crowd.leaf_note().note != NO_DEADLINE {
        if evictor.look_over_rare(&Sample::new(&crowd, (shard, number), search), search) {
            return true;
        }
        note_if_done(db, place);
    }
    if !is_needed(&db.map, item)
        && let Some(wheel) = &mut db.wheel
    {
        wheel.drop_drawn(drawn);
    }
    true
}

/// Where few keys have a deadline and one of them has gone, its leaf may have no other. To look for one is
/// cheap now, because the leaf has just been written to.
pub(crate) fn note_gone(db: &mut Db, place: u32) {
    if db.has_rare_deadlines() {
        note_if_done(db, place);
    }
}

/// Notes of this leaf that nothing waits there any more, if so. Fields of hashes wait like keys; where some
/// do, the leaf's note may be early, and stays.
fn note_if_done(db: &mut Db, place: u32) {
    let waits_for_nothing =
        |crowd: Crowd<'_, Value>| crowd.iter().all(|found| earliest_of(&found) == NO_DEADLINE);
    if db.map.crowd(place).is_some_and(waits_for_nothing) {
        db.map.note_leaf(place, NO_DEADLINE);
    }
}
