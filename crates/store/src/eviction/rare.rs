//! Eviction where only keys with a deadline may go, and few have one. The timing wheels name the leaves that
//! hold such keys, so the leaf to look over is that of an item drawn from a wheel.
//!
//! ```text
//!  an item of the wheel:  leaves 40 to 41, due at 12:00
//!  leaf 40  [ k1  k2  k3 ... ]  has a key with a deadline: a candidate
//!  leaf 40  [ k1  --  k3 ... ]  has none, it was evicted: the leaf's note and the item are dropped
//! ```
//!
//! A key that is evicted leaves its leaf's note and its item behind, since to find the next deadline would
//! mean to read the whole leaf each time. So where keys come and go long before their deadlines, nearly all
//! items would stand for leaves that have no such key any more. Each of those is found by one draw and
//! dropped, and since a key that comes schedules one item at most, a search meets about as many as have come
//! since the one before.
use crate::Keyspace;
use crate::eviction::choose::{Evictor, Search};
use crate::expiry::notes::{NO_DEADLINE, is_needed};
use crate::expiry::timer::earliest_of;
use crate::keyspace::shard::Shard;

impl Keyspace {
    /// Looks over a leaf that one of the database's items names.
    pub(crate) fn look_for_rare(
        &self,
        (shard, number): (&mut Shard, u16),
        evictor: &mut Evictor,
        search: &Search<'_>,
    ) {
        let index = shard.index as usize;
        let (db, ..) = shard.open(number);
        let Some((drawn, item)) = db.wheel.as_mut().and_then(|wheel| wheel.draw(&mut evictor.random)) else {
            return;
        };
        let leaves = u64::from(item.range.last - item.range.first) + 1;
        let place = item.range.first + evictor.random.below(leaves) as u32;
        let Some(crowd) = db.map.crowd(place) else { return };
        if evictor.look_over(&crowd, search, index, number) {
            return;
        }
        // Fields of hashes wait like keys. Where some do, the leaf's note may be early, and stays.
        if crowd.iter().all(|found| earliest_of(&found) == NO_DEADLINE) {
            db.map.note_leaf(place, NO_DEADLINE);
        }
        if !is_needed(&db.map, item)
            && let Some(wheel) = &mut db.wheel
        {
            wheel.drop_drawn(drawn);
        }
    }
}
