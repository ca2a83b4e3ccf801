//! The stream family. Entries are added and read by id (`add.rs`, `range.rs`, `read.rs`), trimmed and deleted
//! (`trim.rs`, `delete.rs`); groups of consumers share what comes (`group.rs`, `read.rs`), acknowledge it
//! (`pending.rs`), and take over what others left (`claim.rs`).
//!
//! The time that ids get and that consumers were last seen is an argument, as everywhere below the server:
//! the view has it.
mod add;
mod claim;
mod delete;
mod effect;
mod group;
mod id;
mod info;
mod pending;
mod range;
mod read;
mod row;
mod trim;

use crate::{Call, Command, checked};
use resp::Reply;
use store::{Group, Key, Row};

pub const COMMANDS: &[&Command] = checked(&[
    &pending::XACK,
    &pending::XACKDEL,
    &add::XADD,
    &claim::XAUTOCLAIM,
    &claim::XCLAIM,
    &delete::XDEL,
    &delete::XDELEX,
    &group::XGROUP,
    &info::XINFO,
    &range::XLEN,
    &pending::XPENDING,
    &range::XRANGE,
    &read::XREAD,
    &read::XREADGROUP,
    &range::XREVRANGE,
    &delete::XSETID,
    &trim::XTRIM,
]);

/// An entry: its id, and its fields and values by turns, an array in RESP3 too, because names may come twice.
fn reply_entry(reply: &mut Reply, row: &Row<'_>) {
    reply.array(2);
    id::reply(reply, row.id);
    reply.array(2 * row.fields());
    row.for_each(&mut |name, value| {
        reply.bulk(name);
        reply.item(value);
    });
}

/// How long a request about the group with this name takes, as `steps` says of it; nothing where there is
/// none.
fn steps_in_group(
    call: &mut Call<'_, '_>,
    name: &[u8],
    steps: impl FnOnce(&Group) -> Option<u64>,
) -> Option<u64> {
    let key = call.key(0);
    let Ok(Some(stream)) = call.view.stream(key) else { return Some(0) };
    Some(stream.group(name).and_then(steps).unwrap_or(0))
}

/// Counts a hit or a miss. These commands change what a group knows and are writes therefore, of which
/// dispatch counts no lookups; but Redis looks their key up as for a read.
fn note_lookup(call: &mut Call<'_, '_>, key: &Key<'_>) {
    let is_found = call.view.exists(key);
    call.view.note_lookup(key, is_found);
}
