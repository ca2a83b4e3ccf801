//! Fields chosen at random, each with the same chance whatever the hash looks like inside.
use super::row::{ABOUT, ROW};
use crate::argument::{int_between, is_word};
use crate::{
    Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long, draws, work,
};
use base::Item;
use base::hash::Set;
use base::random::Random;
use resp::{Protocol, Reply};
use store::{Hash, Key};

pub(super) const HRANDFIELD: Command = Command {
    name: "HRANDFIELD",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "6.2.0",
        summary: "Answers one or more fields of a hash, chosen at random.",
        complexity: "O(N) where N is the number of fields answered.",
        args: &[
            Arg::key("key", 0),
            Arg::block("options", &[Arg::int("count"), Arg::word("withvalues", "WITHVALUES").optional()])
                .optional(),
        ],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    at_once: Some(&Long::reading(counted_and_drawn_at_once, hrandfield).with_words(3)),
    run: DataRun::Long(&Long::reading(counted_and_drawn, hrandfield)),
    ..ROW
};

/// Without a count one field; with a positive one so many different fields, or all if there are fewer; with a
/// negative one so many fields that may repeat.
fn hrandfield(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    if call.args.len() == 2 {
        return one(call);
    }
    let (count, shows) = wanted(call)?;
    let mut random = call.view.random(key);
    if count < 0 {
        return repeating(call, key, count.unsigned_abs(), shows, random);
    }
    match call.view.hash(key)? {
        Some(hash) if count > 0 => different(call.reply, &hash, count as u64, shows, &mut random),
        _ => call.reply.array(0),
    }
    Ok(())
}

fn one(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let mut random = call.view.random(key);
    match call.view.hash(key)?.and_then(|hash| hash.random(&mut random)) {
        Some((field, _)) => call.reply.item(field),
        None => call.reply.null(),
    }
    Ok(())
}

/// What is shown of each field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    Fields,
    Pairs,
}

fn wanted(call: &Call<'_, '_>) -> Result<(i64, Shows), Error> {
    let count = int_between(call.args.at(2), -i64::MAX, i64::MAX)?;
    match call.args.get(3) {
        None => Ok((count, Shows::Fields)),
        Some(word) if call.args.len() == 4 && is_word(word, "WITHVALUES") => {
            if count.unsigned_abs() > i64::MAX as u64 / 2 {
                return Err(Error::out_of_range());
            }
            Ok((count, Shows::Pairs))
        }
        Some(_) => Err(Error::syntax()),
    }
}

/// Begins an answer of so many fields: RESP3 has an array of two for each pair.
fn begin(reply: &mut Reply, count: usize, shows: Shows) {
    let is_flat = shows == Shows::Pairs && reply.protocol == Protocol::Resp2;
    reply.array(if is_flat { 2 * count } else { count });
}

fn show(reply: &mut Reply, field: Item<'_>, value: Item<'_>, shows: Shows) {
    if shows == Shows::Pairs && reply.protocol == Protocol::Resp3 {
        reply.array(2);
    }
    reply.item(field);
    if shows == Shows::Pairs {
        reply.item(value);
    }
}

/// Each draw is from all fields. If nearly all are past their deadline a draw may fail to find another one:
/// then the first field that was found is repeated.
fn repeating(call: &mut Call<'_, '_>, key: &Key<'_>, count: u64, shows: Shows, mut random: Random) -> Done {
    let hash = call.view.hash(key)?;
    let Some((hash, first)) = hash.and_then(|hash| hash.random(&mut random).map(|first| (hash, first)))
    else {
        call.reply.array(0);
        return Ok(());
    };
    begin(call.reply, count as usize, shows);
    let left = draws::begin(count, call.reply, |reply| draw(&hash, &mut random, reply, shows, || first));
    let spare = if left > 0 && hash.has_overdue() { first } else { (Item::Int(0), Item::Int(0)) };
    let spare = [owned(spare.0), owned(spare.1)];
    let held_bytes = spare[0].len() + spare[1].len();
    draws::leave(call, key, (left, random), held_bytes, move |value, random, reply| {
        if let Some(hash) = value.hash() {
            draw(&hash, random, reply, shows, || (Item::Bytes(&spare[0]), Item::Bytes(&spare[1])));
        }
    });
    Ok(())
}

fn owned(item: Item<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    item.append_to(&mut text);
    text
}

fn draw<'v>(
    hash: &Hash<'v>,
    random: &mut Random,
    reply: &mut Reply,
    shows: Shows,
    spare: impl FnOnce() -> (Item<'v>, Item<'v>),
) {
    let (field, value) = hash.draw(random).unwrap_or_else(spare);
    show(reply, field, value, shows);
}

/// So many different fields are drawn. While some are past their deadline and not removed yet, all fields are
/// gone through to count the others.
fn counted_and_drawn(call: &mut Call<'_, '_>) -> Option<u64> {
    let key = call.key(0);
    match call.view.hash(key) {
        Ok(Some(hash)) if call.args.len() > 2 && hash.has_overdue() => Some(hash.len()),
        _ => work::drawn(call),
    }
}

/// The same where all are drawn at once.
fn counted_and_drawn_at_once(call: &mut Call<'_, '_>) -> Option<u64> {
    let steps = counted_and_drawn(call)?;
    Some(steps.max(work::drawn_at_once(call)?))
}

/// Of up to so many fields the numbers of those that are shown fit one word.
const NUMBERED_MAX: u64 = u64::BITS as u64;

/// Of few fields numbers are chosen first, and one walk shows the fields of these. Few of many are drawn
/// until there are enough. Otherwise all fields are walked, and each is taken with the chance (fields still
/// wanted) / (fields left). Every choice of so many fields is as likely as every other, whichever way is
/// taken.
fn different(reply: &mut Reply, hash: &Hash<'_>, count: u64, shows: Shows, random: &mut Random) {
    const FEW: u64 = 4;
    let len = hash.live_len();
    let count = count.min(len);
    begin(reply, count as usize, shows);
    if len <= NUMBERED_MAX {
        let _ = hash.visit_chosen(numbers(count, len, random), &mut |field, value| {
            show(reply, field, value, shows);
            reply.flow()
        });
        return;
    }
    if count * FEW < len && hash.len() < len * FEW {
        let mut seen: Set<Vec<u8>> = Set::default();
        while (seen.len() as u64) < count {
            let Some((field, value)) = hash.random(random) else { return };
            let mut name = Vec::new();
            field.append_to(&mut name);
            if seen.insert(name) {
                show(reply, field, value, shows);
            }
            if reply.is_full() {
                return;
            }
        }
        return;
    }
    let (mut left, mut wanted) = (len, count);
    let _ = hash.visit(&mut |field, value| {
        if random.below(left) < wanted {
            wanted -= 1;
            show(reply, field, value, shows);
        }
        left -= 1;
        reply.flow()
    });
}

/// So many different numbers below `len`, as the bits of a word. Where most are wanted, those that are not
/// wanted are drawn.
fn numbers(count: u64, len: u64, random: &mut Random) -> u64 {
    debug_assert!(count <= len && len <= NUMBERED_MAX, "{count} of {len} numbers");
    let drawn_count = count.min(len - count);
    let mut drawn = 0_u64;
    while u64::from(drawn.count_ones()) < drawn_count {
        drawn |= 1 << random.below(len);
    }
    if drawn_count == count { drawn } else { !drawn & u64::MAX >> (NUMBERED_MAX - len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_chosen_as_often_as_every_other() {
        let mut random = Random::new(1);
        for (count, len) in [(0, 0), (0, 1), (1, 1), (3, 7), (4, 7), (7, 7), (3, 64), (61, 64), (64, 64)] {
            let mut times = [0_u64; NUMBERED_MAX as usize];
            const ROUNDS: u64 = 4_000;
            for _ in 0..ROUNDS {
                let chosen = numbers(count, len, &mut random);
                assert_eq!(u64::from(chosen.count_ones()), count, "{count} of {len}");
                (0..NUMBERED_MAX as usize).for_each(|n| times[n] += chosen >> n & 1);
            }
            let (inside, outside) = times.split_at(len as usize);
            assert!(outside.iter().all(|times| *times == 0), "{count} of {len}");
            // Six standard deviations of a binomial distribution, or fewer.
            let expected = ROUNDS * count / len.max(1);
            assert!(
                inside.iter().all(|times| times.abs_diff(expected) <= 190),
                "{count} of {len}: {times:?}"
            );
        }
    }
}
