//! What commands on streams have done, in words that do not look at the clock: an entry that a consumer was
//! given or has taken over is an XCLAIM that says all there is to know of it.
//!
//! ```text
//! XREADGROUP GROUP g c STREAMS s >
//!     XCLAIM s g c 0 5-1 TIME 1795404771410 RETRYCOUNT 1 FORCE JUSTID LASTID 5-1
//!     XGROUP SETID s g 5-1 ENTRIESREAD 3
//! ```
use super::id;
use crate::Effects;
use base::text::I64Text;
use store::{Group, Id, Pending};

/// A group of a stream, by its names.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) key: &'a [u8],
    pub(super) group: &'a [u8],
}

/// What is known of an entry that a consumer holds.
#[derive(Clone, Copy)]
pub(super) struct Holding<'a> {
    pub(super) id: Id,
    pub(super) consumer: &'a [u8],
    pub(super) delivered_ms: i64,
    pub(super) count: u64,
}

impl<'a> Holding<'a> {
    /// Of an entry that a consumer of this group holds.
    pub(super) fn of(group: &'a Group, pending: Pending) -> Holding<'a> {
        let consumer = group.consumer(pending.consumer).name();
        Holding { id: pending.id, consumer, delivered_ms: pending.delivered.0, count: pending.count }
    }
}

/// An entry is held so, or not any more if the stream does not have it.
pub(super) fn claim(effects: &mut Effects, place: Place<'_>, holding: Holding<'_>, last_id: Id) {
    let (mut time, mut count) = (I64Text::new(), I64Text::new());
    effects.say(&[
        b"XCLAIM",
        place.key,
        place.group,
        holding.consumer,
        b"0",
        &id::text(holding.id),
        b"TIME",
        time.format(holding.delivered_ms),
        b"RETRYCOUNT",
        count.format_u64(holding.count),
        b"FORCE",
        b"JUSTID",
        b"LASTID",
        &id::text(last_id),
    ]);
}

/// The group has read so far.
pub(super) fn progress(effects: &mut Effects, place: Place<'_>, group: &Group) {
    let mut read = I64Text::new();
    let read = group.entries_read().map_or(&b"-1"[..], |count| read.format_u64(count));
    let last_id = id::text(group.last_id());
    effects.say(&[b"XGROUP", b"SETID", place.key, place.group, &last_id, b"ENTRIESREAD", read]);
}

/// The group has a consumer of this name from here on.
pub(super) fn new_consumer(effects: &mut Effects, place: Place<'_>, consumer: &[u8]) {
    effects.say(&[b"XGROUP", b"CREATECONSUMER", place.key, place.group, consumer]);
}
