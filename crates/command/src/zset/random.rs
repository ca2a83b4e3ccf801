//! ZRANDMEMBER: members chosen uniformly, by rank: every entry is found by its number in the same time, so
//! nothing is approximated.
use super::range::Walk;
use super::row::{ABOUT, ROW};
use super::{Show, reply_entry, reply_header, reply_member};
use crate::argument::{int, is_word};
use crate::walk::Share;
use crate::{
    Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long, draws, work,
};
use base::hash::Set;
use base::random::Random;
use resp::Reply;
use store::{End, RankSpan, ZSet};

pub(super) const ZRANDMEMBER: Command = Command {
    name: "ZRANDMEMBER",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "6.2.0",
        summary: "Answers members chosen at random.",
        complexity: "O(N*log(M)) where N is the number of members answered and M the number in the set.",
        args: &[
            Arg::key("key", 0),
            Arg::block("options", &[Arg::int("count"), Arg::word("withscores", "WITHSCORES").optional()])
                .optional(),
        ],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    at_once: Some(&Long::reading(work::drawn_at_once, zrandmember).with_words(3)),
    run: DataRun::Long(&Long::reading(work::drawn, zrandmember)),
    ..ROW
};

fn zrandmember(call: &mut Call<'_, '_>) -> Done {
    let count = call.args.get(2).map(count).transpose()?;
    let show = match (call.args.len(), call.args.get(3)) {
        (..=3, _) => Show::Members,
        (4, Some(word)) if is_word(word, "WITHSCORES") => Show::Scores,
        _ => return Err(Error::syntax()),
    };
    if show == Show::Scores && count.is_some_and(|count| count.unsigned_abs() > i64::MAX as u64 / 2) {
        return Err(Error::out_of_range());
    }
    let key = call.key(0);
    let mut random = call.view.random(key);
    let set = call.view.zset(key)?;
    match (set, count) {
        (Some(set), None) => {
            set.get(random.below(set.len()), |entry| reply_member(call.reply, entry.member));
        }
        (None, None) => call.reply.null(),
        (None, Some(_)) => call.reply.array(0),
        (Some(set), Some(count)) if count < 0 => {
            let count = count.unsigned_abs();
            reply_header(call.reply, show, count as usize);
            let left = draws::begin(count, call.reply, |reply| draw(&set, &mut random, reply, show));
            draws::leave(call, key, (left, random), 0, move |value, random, reply| {
                if let Some(set) = value.zset() {
                    draw(&set, random, reply, show);
                }
            });
        }
        (Some(set), Some(count)) if count as u64 >= set.len() => {
            let count = set.len();
            // From the greatest score down, as in Redis.
            let walk = Walk { span: RankSpan { first: 0, count }, towards: End::Head, skipped: 0, show };
            reply_header(call.reply, show, count as usize);
            let mut share = Share::first(count, call.reply);
            walk.reply(call.reply, &set, &mut share);
            walk.leave(call, key, (count, share.written()));
        }
        (Some(set), Some(count)) => reply_some(call.reply, &set, count.unsigned_abs(), show, &mut random),
    }
    Ok(())
}

fn draw(set: &ZSet<'_>, random: &mut Random, reply: &mut Reply, show: Show) {
    set.get(random.below(set.len()), |entry| reply_entry(reply, show, entry));
}

fn count(text: &[u8]) -> Result<i64, Error> {
    match int(text)? {
        i64::MIN => Err(Error::not_between(-i64::MAX, i64::MAX)),
        count => Ok(count),
    }
}

/// Some of the members, each at most once.
fn reply_some(reply: &mut Reply, set: &ZSet<'_>, wanted: u64, show: Show, random: &mut Random) {
    reply_header(reply, show, wanted as usize);
    for rank in distinct(wanted, set.len(), random) {
        set.get(rank, |entry| reply_entry(reply, show, entry));
        if reply.is_full() {
            return;
        }
    }
}

/// So many different numbers below `len`, every choice of them as likely as any other: Floyd's method
/// (Bentley, "A sample of brilliance", 1987), a draw for each.
fn distinct(wanted: u64, len: u64, random: &mut Random) -> Vec<u64> {
    let (mut seen, mut all) = (Set::default(), Vec::with_capacity(wanted as usize));
    for top in len - wanted..len {
        let drawn = random.below(top + 1);
        let fresh = if seen.insert(drawn) { drawn } else { top };
        seen.insert(fresh);
        all.push(fresh);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_drawn_as_often_as_any_other_and_none_twice() {
        let (mut random, mut counts) = (Random::new(1), [0; 10]);
        for _ in 0..20_000 {
            let drawn = distinct(4, 10, &mut random);
            assert_eq!(drawn.iter().copied().collect::<std::collections::BTreeSet<_>>().len(), 4);
            drawn.iter().for_each(|n| counts[*n as usize] += 1);
        }
        assert!(counts.iter().all(|count| (7600..8400).contains(count)), "{counts:?}");
    }
}
