//! How long a request takes, before it runs: what it names, and how much there is of it, are known at once.
//!
//! The unit is a *step*, about a tenth of a microsecond: an element that is looked at, or some 250 bytes
//! that are gone through. It is a rough guess. Whoever runs commands asks whether a request takes so many
//! that other requests should not wait for it. The answer is None for a request that has to run where its
//! keys are.
use crate::{Call, WholeCall};
use base::text::parse_i64;
use resp::Args;
use std::ops::ControlFlow;
use store::{Extent, Key, View, ZSetCopy};

/// A request of so many steps may be run elsewhere: it takes about a millisecond. Builds with checks send
/// away much less, so that every test of these commands also tests that.
pub const LONG_STEPS: u64 = if cfg!(debug_assertions) { 150 } else { 10_000 };

pub(crate) const STEP_BYTES: u64 = 1 << 8;
/// Nobody asks how large so few elements are: to look at them takes as long as it does to run the request
/// where they are small.
pub(crate) const FEW_ELEMENTS: u64 = if cfg!(debug_assertions) { 4 } else { 32 };
/// The same, to be compared with a number that a request names.
pub(crate) const FEW: i64 = FEW_ELEMENTS as i64;
/// An element that is removed, or stored, takes as long as several that are looked at.
pub(crate) const STEPS_AN_EDIT: u64 = 4;
/// The same of elements that a request names one by one, in so many words.
pub(crate) const NAMED_FEW: u8 = if cfg!(debug_assertions) { 8 } else { 100 };

impl Call<'_, '_> {
    pub(crate) fn extent(&self, key: &Key<'_>) -> Extent {
        self.view.extent(key)
    }

    /// How many elements each of its keys has.
    pub(crate) fn elements(&self) -> impl Iterator<Item = u64> {
        self.keys().iter().map(|key| self.view.elements(key))
    }

    /// How many steps it takes to copy each of its keys, or to compare all of its elements.
    fn texts(&self) -> impl Iterator<Item = u64> {
        self.keys().iter().map(|key| steps_of_texts(self.extent(key)))
    }
}

fn steps_of_texts(extent: Extent) -> u64 {
    extent.elements + extent.bytes / STEP_BYTES
}

/// The steps to copy, remove or store so many elements, or fewer if there are no more. Few are taken for
/// none, and the value is not looked at.
pub(crate) fn edited(extent: impl FnOnce() -> Extent, count: u64) -> u64 {
    if count < FEW_ELEMENTS {
        return 0;
    }
    let extent = extent();
    let steps = STEPS_AN_EDIT + extent.element_bytes() / STEP_BYTES;
    extent.elements.min(count).saturating_mul(steps)
}

/// Every element of every key.
pub(crate) fn all(call: &mut Call<'_, '_>) -> Option<u64> {
    Some(call.elements().sum())
}

/// Every element of every key, and every byte of it.
pub(crate) fn all_texts(call: &mut Call<'_, '_>) -> Option<u64> {
    Some(call.texts().sum())
}

/// The elements of the smallest key, each looked for in all others.
pub(crate) fn smallest_in_all(call: &mut Call<'_, '_>) -> Option<u64> {
    Some(call.texts().min().unwrap_or(0).saturating_mul(call.keys().len() as u64))
}

/// So often members are looked up in the other sets before a request is sent to another thread: to send it
/// takes longer, and it may end among them.
const PROBED_LOOKUPS: u64 = LONG_STEPS / 64;

/// [`smallest_in_all`] for a command that ends when as many members as LIMIT says are in all sets: that may
/// be among the first. Where it is, it is not asked how large the others are.
pub(crate) fn smallest_in_all_to_limit(call: &mut Call<'_, '_>) -> Option<u64> {
    let keys = call.keys().len() as u64;
    if call.elements().min().unwrap_or(0).saturating_mul(keys) < LONG_STEPS {
        let steps = smallest_in_all(call).filter(|steps| *steps < LONG_STEPS);
        if steps.is_some() {
            return steps;
        }
    }
    probed_to_limit(call).or_else(|| smallest_in_all(call))
}

/// How many members of the smallest set are looked up until as many as LIMIT says are in all; None if these
/// are not among the first.
fn probed_to_limit(call: &Call<'_, '_>) -> Option<u64> {
    let keys = call.keys().len();
    let limit = number_behind(b"LIMIT", &call.args, 2 + keys);
    let probed_max = PROBED_LOOKUPS / (keys as u64).saturating_sub(1).max(1);
    if limit == 0 || limit > probed_max {
        return None;
    }
    let mut sets = call.keys().iter().map(|key| call.view.peek_zset_copy(key)).collect::<Option<Vec<_>>>()?;
    sets.sort_by_key(ZSetCopy::len);
    let (mut member, mut probed, mut common) = (Vec::new(), 0, 0);
    sets[0].for_each(&mut |entry| {
        member.clear();
        entry.member.append_to(&mut member);
        probed += 1;
        common += u64::from(sets[1..].iter().all(|set| set.score(&member).is_some()));
        match common < limit && probed < probed_max {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    (common >= limit).then_some(probed)
}

/// The elements of the first key, each looked for in all others.
pub(crate) fn first_in_all(call: &mut Call<'_, '_>) -> Option<u64> {
    Some(call.texts().next().unwrap_or(0).saturating_mul(call.keys().len() as u64))
}

/// Whether the request has an option by which it stores what it has found.
pub(crate) fn stores(args: &Args<'_>) -> bool {
    let is_option =
        |word: &[u8]| word.eq_ignore_ascii_case(b"STORE") || word.eq_ignore_ascii_case(b"STOREDIST");
    args.iter_from(2).any(is_option)
}

/// Of a command that stores under its first key what it makes of the others: every element of these.
pub(crate) fn all_of_sources(call: &mut Call<'_, '_>) -> Option<u64> {
    Some(call.texts().skip(1).sum())
}

/// The elements of the smallest of these, each looked for in all others.
pub(crate) fn smallest_of_sources_in_all(call: &mut Call<'_, '_>) -> Option<u64> {
    let smallest = call.texts().skip(1).min().unwrap_or(0);
    Some(smallest.saturating_mul(call.keys().len() as u64 - 1))
}

/// The elements of the first of these, each looked for in all others.
pub(crate) fn first_of_sources_in_all(call: &mut Call<'_, '_>) -> Option<u64> {
    let first = call.texts().nth(1).unwrap_or(0);
    Some(first.saturating_mul(call.keys().len() as u64 - 1))
}

/// Every byte of these, which are strings.
pub(crate) fn texts_of_sources(call: &mut Call<'_, '_>) -> Option<u64> {
    let bytes: u64 = call.keys().iter().skip(1).map(|key| call.extent(key).bytes).sum();
    Some(bytes / STEP_BYTES)
}

/// As many elements of a key as the third word says, which are removed.
pub(crate) fn popped(call: &mut Call<'_, '_>) -> Option<u64> {
    let count = call.args.get(2).and_then(parse_i64).unwrap_or(0);
    Some(edited(|| call.extent(call.key(0)), u64::try_from(count).unwrap_or(0)))
}

/// As many elements as COUNT says of the first key that has any.
pub(crate) fn popped_of_several(call: &mut Call<'_, '_>) -> Option<u64> {
    let first = || call.keys().iter().map(|key| call.extent(key)).find(|extent| extent.elements > 0);
    Some(edited(|| first().unwrap_or_default(), count_of(&call.args, 3)))
}

/// As many elements of a key as the request has words, which are copied, and may be removed.
pub(crate) fn named(call: &mut Call<'_, '_>) -> Option<u64> {
    Some(edited(|| call.extent(call.key(0)), call.args.len() as u64))
}

/// So many elements of a key, which are removed or stored. They are counted only where all of them are many.
pub(crate) fn of_part<'k>(
    call: &mut Call<'_, 'k>,
    key: &Key<'k>,
    count: impl FnOnce(&mut View<'k>, &Key<'k>) -> u64,
) -> Option<u64> {
    let extent = call.extent(key);
    let steps = STEPS_AN_EDIT + extent.element_bytes() / STEP_BYTES;
    if extent.elements.saturating_mul(steps) < LONG_STEPS {
        return Some(0);
    }
    Some(count(call.view, key).saturating_mul(steps))
}

/// So many bytes of a string are searched before a request is sent to another thread.
pub(crate) const PROBED_BYTES: u64 = LONG_STEPS * STEP_BYTES / 64;

/// Bytes that are gone through.
pub(crate) fn of_bytes(count: u64) -> u64 {
    count / STEP_BYTES
}

/// So many different elements of a key, drawn at random, as the second argument says: all of them are gone
/// through where most are wanted. Where it is negative they may be the same, and are drawn as the client
/// reads.
pub(crate) fn drawn(call: &mut Call<'_, '_>) -> Option<u64> {
    let count = call.args.get(2).and_then(parse_i64).unwrap_or(0);
    Some(looked_at(call, u64::try_from(count).unwrap_or(0)))
}

/// The same where those that may repeat are drawn at once.
pub(crate) fn drawn_at_once(call: &mut Call<'_, '_>) -> Option<u64> {
    match call.args.get(2).and_then(parse_i64) {
        Some(count @ ..0) if call.view.elements(call.key(0)) > 0 => Some(count.unsigned_abs()),
        _ => drawn(call),
    }
}

/// So many elements are written into a reply in the time of a step.
const ANSWERED_A_STEP: u64 = 2;

/// So many elements of a key, which are written into the reply. They are counted only where all of them are
/// many.
pub(crate) fn of_reply<'k>(
    call: &mut Call<'_, 'k>,
    count: impl FnOnce(&mut View<'k>, &Key<'k>) -> u64,
) -> Option<u64> {
    let key = call.key(0);
    let extent = call.extent(key);
    let steps =
        |elements: u64| elements.saturating_mul(1 + extent.element_bytes() / STEP_BYTES) / ANSWERED_A_STEP;
    if steps(extent.elements) < LONG_STEPS {
        return Some(0);
    }
    Some(steps(count(call.view, key)))
}

/// Every element of a key, written into the reply.
pub(crate) fn whole_reply(call: &mut Call<'_, '_>) -> Option<u64> {
    of_reply(call, |view, key| view.elements(key))
}

/// As many elements of a key as COUNT says, behind the cursor.
pub(crate) fn scanned(call: &mut Call<'_, '_>) -> Option<u64> {
    let count = count_of(&call.args, 3);
    Some(looked_at(call, count))
}

/// As many elements of a key, each of which is copied.
fn looked_at(call: &Call<'_, '_>, count: u64) -> u64 {
    if count < FEW_ELEMENTS {
        return 0;
    }
    let extent = call.extent(call.key(0));
    extent.elements.min(count).saturating_mul(1 + extent.element_bytes() / STEP_BYTES)
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
    number_behind(b"COUNT", args, start)
}

/// The number behind the last of these words; 0 where there is none.
fn number_behind(word: &[u8], args: &Args<'_>, start: usize) -> u64 {
    let is_word = |at: &usize| args.at(*at).eq_ignore_ascii_case(word);
    let last = (start..args.len().saturating_sub(1)).rev().find(is_word);
    let count = last.and_then(|at| parse_i64(args.at(at + 1)));
    count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
}
