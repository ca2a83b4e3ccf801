//! ZSCAN: all members, some at a time. The cursor is a place in the order of the members' hashes, so that a
//! member whose score changes is not missed.
use super::reply_member;
use super::row::{ABOUT, ROW};
use crate::cursor::{Filter, answer, cursor};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Flags, KeySpec, Long, work};
use base::Item;
use base::double::F64Text;
use resp::Reply;
use store::ZSet;

pub(super) const ZSCAN: Command = Command {
    name: "ZSCAN",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.8.0",
        summary: "Goes through the members of a sorted set with their scores, some at a time.",
        complexity: "O(1) for every call, O(N) for all of them together, where N is the number of members.",
        args: &[
            Arg::key("key", 0),
            Arg::int("cursor"),
            Arg::pattern("pattern").after("MATCH").optional(),
            Arg::int("count").after("COUNT").optional(),
        ],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(work::scanned, zscan)),
    ..ROW
};

/// Where there is no set, the options are not read.
fn zscan(call: &mut Call<'_, '_>) -> Done {
    let cursors = call.view.element_cursors();
    let place = cursor(call.args.at(2), cursors)?;
    let key = call.key(0);
    let Some(set) = call.view.zset(key)? else {
        answer(call.reply, cursors, |_| (0, 0));
        return Ok(());
    };
    let filter = Filter::parse(&call.args)?;
    answer(call.reply, cursors, |reply| scan(reply, &set, place, &filter));
    Ok(())
}

/// Replies members with their scores until enough were looked at; the next cursor, and how many replies were
/// written.
fn scan(reply: &mut Reply, set: &ZSet<'_>, place: u64, filter: &Filter<'_>) -> (u64, usize) {
    let (mut place, mut written, mut seen, mut text) = (place, 0, 0_u64, Vec::new());
    loop {
        // No place lies behind the last; a small set is answered whole, whatever the cursor.
        let from = u32::try_from(place).unwrap_or(u32::MAX);
        let next = set.scan(from, filter.count.saturating_sub(seen), &mut |entry| {
            seen += 1;
            text.clear();
            entry.member.append_to(&mut text);
            if filter.takes(Item::Bytes(&text)) {
                reply_member(reply, entry.member);
                reply_score(reply, set, entry.score);
                written += 2;
            }
        });
        place = next.map_or(0, u64::from);
        if place == 0 || seen >= filter.count {
            return (place, written);
        }
    }
}

/// Replies a score as text in either protocol, with as many digits as Redis shows.
fn reply_score(reply: &mut Reply, set: &ZSet<'_>, score: f64) {
    let mut text = F64Text::new();
    reply.bulk(match set.is_skiplist() {
        true => text.format_17_digits(score),
        false => text.format(score),
    });
}
