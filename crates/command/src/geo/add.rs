//! GEOADD: ZADD with positions for scores.
use super::longitude_latitude;
use super::row::{ABOUT, ROW};
use crate::argument::is_word;
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec};
use store::Event;

pub(super) const GEOADD: Command = Command {
    name: "GEOADD",
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "3.2.0",
        summary: "Adds members with their positions, or moves them; creates the key where it is missing.",
        complexity: "O(log(N)) for each member, where N is the number of members.",
        args: &[
            Arg::key("key", 0),
            Arg::one_of("condition", &[Arg::word("nx", "NX"), Arg::word("xx", "XX")])
                .optional()
                .since("6.2.0"),
            Arg::word("change", "CH").optional().since("6.2.0"),
            Arg::block("data", &[Arg::double("longitude"), Arg::double("latitude"), Arg::str("member")])
                .many(),
        ],
        history: &[("6.2.0", "Takes `CH`, `NX` and `XX`.")],
        ..ABOUT
    },
    run: DataRun::Keys(geoadd),
    ..ROW
};

/// Which members are touched, and which are counted.
#[derive(Clone, Copy, Default)]
struct Options {
    only_new: bool,
    only_old: bool,
    counts_moved: bool,
}

fn geoadd(call: &mut Call<'_, '_>) -> Done {
    let (options, first) = options(call);
    let words = call.args.len() - first;
    if !words.is_multiple_of(3) || options.only_new && options.only_old {
        return Err(Error::syntax());
    }
    let (mut entries, mut longest) = (Vec::with_capacity(words / 3), 0);
    for at in (first..call.args.len()).step_by(3) {
        let point = longitude_latitude(call.args.at(at), call.args.at(at + 1))?;
        let member = call.args.at(at + 2);
        longest = longest.max(member.len());
        entries.push((member, point.score()));
    }
    if entries.is_empty() {
        return Err(Error::syntax());
    }
    let (added, moved) = put(call, options, &entries, longest)?;
    let key = call.key(0);
    call.view.changed(key, added + moved, Event::zset("zadd"));
    if added + moved > 0 && call.effects.is_some() {
        tell(call, &entries);
    }
    call.reply.int((added + if options.counts_moved { moved } else { 0 }) as i64);
    Ok(())
}

/// As ZADD, with the options that were given.
fn tell(call: &mut Call<'_, '_>, entries: &[(&[u8], f64)]) {
    let first = options(call).1;
    let mut texts = Vec::new();
    // The score of a position is a whole number of 52 bits.
    entries.iter().for_each(|(_, score)| texts.push((*score as u64).to_string()));
    let mut words: Vec<&[u8]> = vec![b"zadd"];
    words.extend(call.args.iter_from(1).take(first - 1));
    for ((member, _), text) in entries.iter().zip(&texts) {
        words.extend([text.as_bytes(), member]);
    }
    call.effect(&words);
}

/// The options, and where the positions begin.
fn options(call: &Call<'_, '_>) -> (Options, usize) {
    let mut options = Options::default();
    let mut at = 2;
    while let Some(word) = call.args.get(at) {
        let option = match word {
            _ if is_word(word, "NX") => &mut options.only_new,
            _ if is_word(word, "XX") => &mut options.only_old,
            _ if is_word(word, "CH") => &mut options.counts_moved,
            _ => break,
        };
        *option = true;
        at += 1;
    }
    (options, at)
}

/// Adds the members, and returns how many are new and how many got another position.
fn put(
    call: &mut Call<'_, '_>,
    options: Options,
    entries: &[(&[u8], f64)],
    longest: usize,
) -> Result<(u64, u64), Error> {
    let key = call.key(0);
    let set = if options.only_old { call.view.zset_mut(key)? } else { Some(call.view.zset_or_new(key)?) };
    let Some(mut set) = set else { return Ok((0, 0)) };
    set.announce(entries.len() as u64, longest);
    let (mut added, mut moved) = (0, 0);
    for (member, score) in entries {
        let mut is_put = false;
        let old = set.update(member, |old| {
            is_put = match old {
                None => !options.only_old,
                Some(old) => !options.only_new && old != *score,
            };
            is_put.then_some(*score)
        });
        added += u64::from(is_put && old.is_none());
        moved += u64::from(is_put && old.is_some());
    }
    Ok((added, moved))
}
