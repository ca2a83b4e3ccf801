//! Adding members and changing scores: ZADD with its conditions, and ZINCRBY, which is one of its forms.
//!
//! On the path of every request: nothing is allocated. Scores are read twice: first to refuse a wrong one
//! before anything is changed, then to add, which is cheaper than keeping them all. Only the last one is
//! kept, because most requests have one.
use super::row::{ABOUT, ROW};
use crate::argument::is_word;
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec};
use base::double::parse_f64;
use base::text::parse_i64;
use resp::Reply;
use store::Event;

pub(super) const ZADD: Command = Command {
    name: "ZADD",
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "1.2.0",
        summary: "Adds members to a sorted set, or changes their scores.",
        complexity: "O(log(N)) for each member, where N is the number of members in the set.",
        args: &[
            Arg::key("key", 0),
            Arg::one_of("condition", &[Arg::word("nx", "NX"), Arg::word("xx", "XX")])
                .optional()
                .since("3.0.2"),
            Arg::one_of("comparison", &[Arg::word("gt", "GT"), Arg::word("lt", "LT")])
                .optional()
                .since("6.2.0"),
            Arg::word("change", "CH").optional().since("3.0.2"),
            Arg::word("increment", "INCR").optional().since("3.0.2"),
            Arg::block("data", &[Arg::double("score"), Arg::str("member")]).many(),
        ],
        history: &[
            ("2.4.0", "Takes several members."),
            ("3.0.2", "Takes `XX`, `NX`, `CH` and `INCR`."),
            ("6.2.0", "Takes `GT` and `LT`."),
        ],
        ..ABOUT
    },
    run: DataRun::Keys(zadd),
    ..ROW
};

pub(super) const ZINCRBY: Command = Command {
    name: "ZINCRBY",
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::UPDATE))],
    doc: Doc {
        since: "1.2.0",
        summary: "Adds to the score of a member.",
        complexity: "O(log(N)) where N is the number of members in the set.",
        args: &[Arg::key("key", 0), Arg::int("increment"), Arg::str("member")],
        ..ABOUT
    },
    run: DataRun::Keys(zincrby),
    ..ROW
};

/// ZADD's options.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    /// Only members that are not there; only those that are.
    nx: bool,
    xx: bool,
    /// Only to a greater score; only to a lesser one.
    gt: bool,
    lt: bool,
    /// Count changed scores too.
    ch: bool,
    incr: bool,
}

impl Options {
    /// What the options make of a member with the score `old` (None: a new member) and the score that was
    /// given.
    fn decide(&self, old: Option<f64>, given: f64) -> Decision {
        let Some(old) = old else {
            return if self.xx { Decision::Nothing } else { Decision::Put(given) };
        };
        if self.nx {
            return Decision::Nothing;
        }
        let score = if self.incr { old + given } else { given };
        if score.is_nan() {
            return Decision::NotANumber;
        }
        if self.gt && score <= old || self.lt && score >= old {
            return Decision::Nothing;
        }
        if score == old { Decision::Same(score) } else { Decision::Put(score) }
    }
}

/// What becomes of one member.
#[derive(Clone, Copy, Debug)]
enum Decision {
    Put(f64),
    /// It keeps its own score, because the new one is equal to it; 0 and -0 are equal.
    Same(f64),
    /// A condition forbids it.
    Nothing,
    NotANumber,
}

/// What happened to all of them.
#[derive(Default)]
struct Changes {
    added: u64,
    updated: u64,
}

fn zadd(call: &mut Call<'_, '_>) -> Done {
    let (options, first) = options(call);
    let pairs = call.args.len() - first;
    if pairs == 0 || !pairs.is_multiple_of(2) {
        return Err(Error::syntax());
    }
    if options.nx && options.xx {
        return Err(Error::zadd_nx_with_xx());
    }
    if options.nx && (options.gt || options.lt) || options.gt && options.lt {
        return Err(Error::zadd_gt_lt_nx());
    }
    if options.incr && pairs > 2 {
        return Err(Error::zadd_incr_pairs());
    }
    add(call, options, first)
}

fn zincrby(call: &mut Call<'_, '_>) -> Done {
    if options(call).1 != 2 {
        // The options of ZADD are words here too, and leave no pair of a score and a member.
        return Err(Error::syntax());
    }
    add(call, Options { incr: true, ..Options::default() }, 2)
}

/// The options, and where the pairs begin.
fn options(call: &Call<'_, '_>) -> (Options, usize) {
    let mut options = Options::default();
    let mut at = 2;
    while let Some(word) = call.args.get(at) {
        // Nearly always this is a score, which does not begin with a letter.
        let option = match word {
            [first, ..] if !first.is_ascii_alphabetic() => break,
            _ if is_word(word, "NX") => &mut options.nx,
            _ if is_word(word, "XX") => &mut options.xx,
            _ if is_word(word, "GT") => &mut options.gt,
            _ if is_word(word, "LT") => &mut options.lt,
            _ if is_word(word, "CH") => &mut options.ch,
            _ if is_word(word, "INCR") => &mut options.incr,
            _ => break,
        };
        *option = true;
        at += 1;
    }
    (options, at)
}

/// Adds the pairs from argument `first` on. If a score becomes NaN the command ends there, and the members
/// before it stay changed.
fn add(call: &mut Call<'_, '_>, options: Options, first: usize) -> Done {
    let (mut longest, mut last_given) = (0, 0.0);
    for at in (first..call.args.len()).step_by(2) {
        last_given = score(call.args.at(at))?;
        longest = longest.max(call.args.at(at + 1).len());
    }
    let (key, pairs) = (call.key(0), (call.args.len() - first) / 2);
    let mut set = if options.xx {
        match call.view.zset_mut(key)? {
            Some(set) => set,
            None => return reply_nothing(call.reply, options),
        }
    } else {
        call.view.zset_or_new(key)?
    };
    set.announce(pairs as u64, longest);
    // Where there is nothing yet no option but XX matters; INCR has one pair. All scores were read above.
    let built = match options.xx || options.incr {
        true => 0,
        false => set.build_new((0..pairs).map(|n| {
            let at = first + 2 * n;
            (score(call.args.at(at)).unwrap_or_default(), call.args.at(at + 1))
        })),
    };
    let mut changes = Changes { added: built as u64, ..Changes::default() };
    let mut last = None;
    for at in (first + 2 * built..call.args.len()).step_by(2) {
        let given = if at + 2 == call.args.len() { last_given } else { score(call.args.at(at))? };
        let mut decision = Decision::Nothing;
        let old = set.update(call.args.at(at + 1), |old| {
            decision = options.decide(old, given);
            if let Decision::Put(score) = decision { Some(score) } else { None }
        });
        match decision {
            Decision::NotANumber => return Err(Error::score_not_a_number()),
            Decision::Put(score) => {
                changes.added += u64::from(old.is_none());
                changes.updated += u64::from(old.is_some());
                last = Some(score);
            }
            Decision::Same(score) => last = Some(score),
            Decision::Nothing => {}
        }
    }
    drop(set);
    let event = Event::zset(if options.incr { "zincr" } else { "zadd" });
    call.view.changed(key, changes.added + changes.updated, event);
    match (options.incr, last) {
        (true, Some(score)) => call.reply.double(score),
        (true, None) => call.reply.null(),
        (false, _) if options.ch => call.reply.int((changes.added + changes.updated) as i64),
        (false, _) => call.reply.int(changes.added as i64),
    }
    Ok(())
}

fn reply_nothing(reply: &mut Reply, options: Options) -> Done {
    if options.incr {
        reply.null()
    } else {
        reply.int(0)
    }
    Ok(())
}

/// Whole numbers are most common by far, and quicker to read as such.
fn score(text: &[u8]) -> Result<f64, Error> {
    match parse_i64(text) {
        Some(n) => Ok(n as f64),
        None => parse_f64(text).ok_or_else(Error::not_a_float),
    }
}
