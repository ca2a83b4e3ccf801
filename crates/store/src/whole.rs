//! Work on the whole keyspace. The caller (dispatch) holds every worker's lock where the command says so; each method
//! locks shard by shard.
use crate::{Garbage, Keyspace, Kind};
use base::Millis;

/// Where a SCAN stands: 0 at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanStep {
    pub next_cursor: u64,
}

#[allow(unused_variables)]
impl Keyspace {
    /// Keys in `db`, those not yet removed past their deadline included, as DBSIZE counts.
    pub fn len(&self, db: u16) -> u64 {
        todo!()
    }
    pub fn is_empty(&self, db: u16) -> bool {
        self.len(db) == 0
    }
    /// Keys with a deadline in `db`, and the mean time to live in milliseconds of a sample of them.
    pub fn volatile(&self, db: u16, now: Millis) -> (u64, i64) {
        todo!()
    }
    /// Visits about `count` keys of `db` from `cursor` on; keys past their deadline are not shown. A cursor is any u64.
    pub fn scan(
        &self,
        db: u16,
        now: Millis,
        cursor: u64,
        count: u64,
        visit: &mut dyn FnMut(&[u8], Kind),
    ) -> ScanStep {
        todo!()
    }
    /// Every live key of `db`.
    pub fn for_each(&self, db: u16, now: Millis, visit: &mut dyn FnMut(&[u8], Kind)) {
        todo!()
    }
    /// Empties `db`, or all (None); what was there is returned to be dropped by whoever pleases. Returns the key count too.
    pub fn flush(&self, db: Option<u16>) -> (u64, Vec<Garbage>) {
        todo!()
    }
    /// Sums of all trees of `db`.
    pub fn tree_stats(&self, db: u16) -> pack::stats::Stats {
        todo!()
    }
}
