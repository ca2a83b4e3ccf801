//! How long a request takes, before it runs: what it names, and how much there is of it, are known at once.
//!
//! The unit is a *step*, about a tenth of a microsecond: an element that is looked at, or a kilobyte that is
//! gone through. It is a rough guess. Whoever runs commands asks whether a request takes so many that other
//! requests should not wait for it. The answer is None for a request that does more than read.
use crate::{Call, WholeCall};
use base::text::parse_i64;
use resp::Args;
use store::{Extent, Key};

/// A request of so many steps may be run elsewhere: it takes about a millisecond. Builds with checks send
/// away much less, so that every test of these commands also tests that.
pub const LONG_STEPS: u64 = if cfg!(debug_assertions) { 150 } else { 10_000 };

const STEP_BYTES: u64 = 1 << 10;

impl Call<'_, '_> {
    fn extent(&self, key: &Key<'_>) -> Extent {
        self.view.extent(key)
    }

    fn elements(&self) -> impl Iterator<Item = u64> {
        self.keys().iter().map(|key| self.extent(key).elements)
    }
}

/// Every element of every key.
pub(crate) fn all(call: &mut Call<'_, '_>) -> Option<u64> {
    Some(call.elements().sum())
}

/// The elements of the smallest key, each looked for in all others.
pub(crate) fn smallest_in_all(call: &mut Call<'_, '_>) -> Option<u64> {
    Some(call.elements().min().unwrap_or(0).saturating_mul(call.keys().len() as u64))
}

/// The elements of the first key, each looked for in all others.
pub(crate) fn first_in_all(call: &mut Call<'_, '_>) -> Option<u64> {
    Some(call.elements().next().unwrap_or(0).saturating_mul(call.keys().len() as u64))
}

/// Every byte of a string.
pub(crate) fn text(call: &mut Call<'_, '_>) -> Option<u64> {
    Some(call.extent(call.key(0)).bytes / STEP_BYTES)
}

/// Every element of a key, and every byte.
pub(crate) fn elements_and_bytes(call: &mut Call<'_, '_>) -> Option<u64> {
    let extent = call.extent(call.key(0));
    Some(extent.elements + extent.bytes / STEP_BYTES)
}

/// So many different elements of a key, drawn at random, as the second argument says: all of them are gone
/// through where most are wanted. Where it is negative they may be the same, and are drawn as the client
/// reads.
pub(crate) fn drawn(call: &mut Call<'_, '_>) -> Option<u64> {
    let count = call.args.get(2).and_then(parse_i64).unwrap_or(0);
    Some(call.extent(call.key(0)).elements.min(u64::try_from(count).unwrap_or(0)))
}

/// As many elements of a key as COUNT says, behind the cursor.
pub(crate) fn scanned(call: &mut Call<'_, '_>) -> Option<u64> {
    Some(call.extent(call.key(0)).elements.min(count_of(&call.args, 3)))
}

/// As many keys of the database as COUNT says, behind the cursor. A SCAN that takes a while leaves the keys
/// past their deadline to be removed when their turn comes; others remove those that they meet.
pub(crate) fn scanned_keys(call: &WholeCall<'_>) -> Option<u64> {
    Some(call.keyspace.len(call.db).min(count_of(&call.args, 2))).filter(|steps| *steps >= LONG_STEPS)
}

/// Every key of the database.
pub(crate) fn all_keys(call: &WholeCall<'_>) -> Option<u64> {
    Some(call.keyspace.len(call.db))
}

/// The number behind the last COUNT; 0 where there is none that is a number, for then it is 10 or an error.
fn count_of(args: &Args<'_>, start: usize) -> u64 {
    let is_count = |at: &usize| args.at(*at).eq_ignore_ascii_case(b"COUNT");
    let last = (start..args.len().saturating_sub(1)).rev().find(is_count);
    let count = last.and_then(|at| parse_i64(args.at(at + 1)));
    count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
}
