//! The commands on sorted sets, but for those that wait (BZPOPMIN and its like), which are not there yet.
//!
//! | file | what it holds |
//! |---|---|
//! | `add.rs` | ZADD, ZINCRBY |
//! | `read.rs`, `remove.rs` | questions about members, and removing them by name or by range |
//! | `bounds.rs`, `range.rs` | the ends of ranges; ranges answered, counted or stored |
//! | `pop.rs`, `random.rs` | ZPOPMIN, ZPOPMAX, ZMPOP; ZRANDMEMBER |
//! | `combine.rs` | unions, intersections and differences |
//! | `scan.rs` | ZSCAN |
//! | `row.rs` | what the rows have in common |
//!
//! A range of any kind (ranks, scores, members) is a span of ranks as soon as its set is at hand, and one
//! piece of code answers, counts, removes or stores it. Scores travel as doubles; members are lent by the set
//! in two parts and joined in the reply.
mod add;
mod bounds;
mod combine;
mod pop;
mod random;
mod range;
mod read;
mod remove;
mod row;
mod scan;

use crate::{Command, checked};
use resp::Reply;
use store::{Event, Key, View, ZEntry, ZMember};

pub const COMMANDS: &[&Command] = checked(&[
    &pop::BZMPOP,
    &pop::BZPOPMAX,
    &pop::BZPOPMIN,
    &add::ZADD,
    &read::ZCARD,
    &range::ZCOUNT,
    &combine::ZDIFF,
    &combine::ZDIFFSTORE,
    &add::ZINCRBY,
    &combine::ZINTER,
    &combine::ZINTERCARD,
    &combine::ZINTERSTORE,
    &range::ZLEXCOUNT,
    &pop::ZMPOP,
    &read::ZMSCORE,
    &pop::ZPOPMAX,
    &pop::ZPOPMIN,
    &random::ZRANDMEMBER,
    &range::ZRANGE,
    &range::ZRANGEBYLEX,
    &range::ZRANGEBYSCORE,
    &range::ZRANGESTORE,
    &read::ZRANK,
    &remove::ZREM,
    &remove::ZREMRANGEBYLEX,
    &remove::ZREMRANGEBYRANK,
    &remove::ZREMRANGEBYSCORE,
    &range::ZREVRANGE,
    &range::ZREVRANGEBYLEX,
    &range::ZREVRANGEBYSCORE,
    &read::ZREVRANK,
    &scan::ZSCAN,
    &read::ZSCORE,
    &combine::ZUNION,
    &combine::ZUNIONSTORE,
]);

/// Whether scores stand beside the members of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    Members,
    Scores,
}

fn reply_member(reply: &mut Reply, member: ZMember<'_>) {
    let (front, back) = member.parts();
    reply.bulk_joined(front, back);
}

/// The header of `count` entries. With scores, RESP3 has an array of two for each entry, RESP2 one flat
/// array.
fn reply_header(reply: &mut Reply, show: Show, count: usize) {
    let is_flat = show == Show::Scores && !reply.is_resp3();
    reply.array(if is_flat { 2 * count } else { count });
}

fn reply_entry(reply: &mut Reply, show: Show, entry: ZEntry<'_>) {
    if show == Show::Scores && reply.is_resp3() {
        reply.array(2);
    }
    reply_member(reply, entry.member);
    if show == Show::Scores {
        reply.double(entry.score);
    }
}

/// Members with their scores, copied out of what they came from.
type Entries = Vec<(Vec<u8>, f64)>;

fn entry_of((member, score): &(Vec<u8>, f64)) -> ZEntry<'_> {
    ZEntry { score: *score, member: ZMember::classify(member) }
}

/// Puts a set of these entries in the place of whatever was there, without a deadline; nothing where there
/// are none. Replies their number. `longest` is the length of the longest member that Redis knows of before
/// it puts the first.
fn store(
    view: &mut View<'_>,
    destination: &Key<'_>,
    entries: &Entries,
    longest: usize,
    event: Event,
    reply: &mut Reply,
) {
    let replaced = view.remove_for_result(destination);
    if entries.is_empty() {
        view.changed(destination, u64::from(replaced.existed), Event::DEL);
    } else {
        let mut set = view.zset_or_new(destination).expect("whatever was there was removed");
        set.announce(entries.len() as u64, longest);
        let mut entries: Vec<ZEntry<'_>> = entries.iter().map(entry_of).collect();
        let is_built = set.build(&mut entries);
        debug_assert!(is_built, "no member is there twice");
        drop(set);
        view.note_stored(destination, &replaced);
        view.changed(destination, 1, event);
    }
    reply.int(entries.len() as i64);
}
