//! Fields chosen at random, each with the same chance whatever the hash looks like inside.
use crate::argument::{int_between, is_word};
use crate::{Access, Acl, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, Group, KeySpec};
use base::Item;
use base::hash::Set;
use base::random::Random;
use resp::{Protocol, Reply};
use store::Hash;

pub(super) const HRANDFIELD: Command = Command {
    name: "HRANDFIELD",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    acl: Acl::HASH,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        group: Group::Hash,
        since: "6.2.0",
        summary: "Answers one or more fields of a hash, chosen at random.",
        complexity: "O(N) where N is the number of fields answered.",
        args: &[
            Arg::key("key", 0),
            Arg::block("options", &[Arg::int("count"), Arg::word("withvalues", "WITHVALUES").optional()])
                .optional(),
        ],
        tips: &["nondeterministic_output"],
        ..Doc::NEW
    },
    subcommands: &[],
    run: DataRun::Keys(hrandfield),
};

/// A field; or so many different ones, all where there are fewer; or, of a negative count, so many that may repeat.
fn hrandfield(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    if call.args.len() == 2 {
        return one(call);
    }
    let (count, shows) = wanted(call)?;
    let mut random = call.view.random(&key);
    let Some(hash) = call.view.hash(&key)? else {
        call.reply.array(0);
        return Ok(());
    };
    match count {
        0 => call.reply.array(0),
        1.. => different(call.reply, &hash, count as u64, shows, &mut random),
        _ => repeating(call.reply, &hash, count.unsigned_abs(), shows, &mut random),
    }
    Ok(())
}

fn one(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let mut random = call.view.random(&key);
    match call.view.hash(&key)?.and_then(|hash| hash.random(&mut random)) {
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

/// Every draw is from all fields.
fn repeating(reply: &mut Reply, hash: &Hash<'_>, count: u64, shows: Shows, random: &mut Random) {
    if hash.random(random).is_none() {
        return reply.array(0);
    }
    begin(reply, count as usize, shows);
    let mut last = None;
    for _ in 0..count {
        last = hash.random(random).or(last);
        if let Some((field, value)) = last {
            show(reply, field, value, shows);
        }
        if reply.is_full() {
            return;
        }
    }
}

/// Few of many are drawn until they are enough; otherwise all are gone through, and each is taken with the chance that it then has
/// to be among those that are still wanted. Either way every choice of so many fields is as likely as every other.
fn different(reply: &mut Reply, hash: &Hash<'_>, count: u64, shows: Shows, random: &mut Random) {
    const FEW: u64 = 4;
    let len = hash.live_len();
    let count = count.min(len);
    begin(reply, count as usize, shows);
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
