//! Trimming: the options that XADD and XTRIM share, and XTRIM.
//!
//! `MAXLEN 1000` leaves a thousand entries, `MINID 5-0` those from 5-0 on. With `~` whole leaves go and
//! nothing else, which costs the same whatever they hold; then LIMIT bounds how many entries go at once.
use super::id;
use super::row::{ABOUT, ROW, XTRIM_EVENT};
use crate::argument::{int, is_word};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, LONG_STEPS, Long};
use resp::Args;
use store::{Id, Precision, References, Settings, Trim};

pub(super) const XTRIM: Command = Command {
    name: "XTRIM",
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE,
    keys: &[KeySpec::one(1, Access::RW.or(Access::DELETE))],
    doc: Doc {
        since: "5.0.0",
        summary: "Removes the oldest entries of a stream.",
        complexity: "O(N) where N is the number of entries that go, less where whole leaves go.",
        args: &[
            Arg::key("key", 0),
            Arg::block(
                "trim",
                &[
                    Arg::one_of(
                        "strategy",
                        &[Arg::word("maxlen", "MAXLEN"), Arg::word("minid", "MINID").since("6.2.0")],
                    ),
                    Arg::one_of("operator", &[Arg::word("equal", "="), Arg::word("approximately", "~")])
                        .optional(),
                    Arg::str("threshold"),
                    Arg::int("count").after("LIMIT").optional().since("6.2.0"),
                ],
            ),
            Arg::one_of(
                "condition",
                &[
                    Arg::word("keepref", "KEEPREF"),
                    Arg::word("delref", "DELREF"),
                    Arg::word("acked", "ACKED"),
                ],
            )
            .optional()
            .since("8.2.0"),
        ],
        history: &[("6.2.0", "Takes `MINID` and `LIMIT`.")],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(trimmed, xtrim)),
    ..ROW
};

/// What XADD and XTRIM have in common.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    trim: Option<Trim>,
    is_about: bool,
    limit: Option<u64>,
    references: Option<References>,
    /// Where the mark `~` stands, before the threshold.
    about_at: usize,
}

impl Options {
    /// Reads one option at `index`; how many arguments it takes, None where it is none of these.
    pub(super) fn read(&mut self, args: &Args<'_>, index: usize) -> Result<Option<usize>, Error> {
        let word = args.at(index);
        let more = args.len() - 1 - index;
        if is_word(word, "MAXLEN") && more > 0 {
            let at = self.read_threshold(args, index)?;
            let max = int(args.at(at))?;
            let max = u64::try_from(max).map_err(|_| Error::maxlen_negative())?;
            self.trim = Some(Trim::MaxLen(max));
            return Ok(Some(at + 1 - index));
        }
        if is_word(word, "MINID") && more > 0 {
            let at = self.read_threshold(args, index)?;
            self.trim = Some(Trim::MinId(id::strict(args.at(at), 0)?));
            return Ok(Some(at + 1 - index));
        }
        if is_word(word, "LIMIT") && more > 0 {
            let limit = u64::try_from(int(args.at(index + 1))?);
            self.limit = Some(limit.map_err(|_| Error::limit_negative())?);
            return Ok(Some(2));
        }
        match references(word) {
            Some(references) if self.references.is_none() => self.references = Some(references),
            _ => return Ok(None),
        }
        Ok(Some(1))
    }

    /// Where the threshold stands, behind `=` or `~`.
    fn read_threshold(&mut self, args: &Args<'_>, index: usize) -> Result<usize, Error> {
        if self.trim.is_some() {
            return Err(Error::maxlen_with_minid());
        }
        let has_more = args.len() - 1 - index >= 2;
        self.is_about = has_more && args.at(index + 1) == b"~";
        self.about_at = index + 1;
        let has_mark = self.is_about || has_more && args.at(index + 1) == b"=";
        Ok(index + 1 + usize::from(has_mark))
    }

    /// Whether the options go together.
    pub(super) fn check(&self) -> Done {
        if self.limit.is_some_and(|limit| limit > 0) && self.trim.is_none() {
            return Err(Error::limit_without_strategy());
        }
        Ok(())
    }

    /// Whether LIMIT stands where it may: this comes last. In a file it stands anywhere, and counts for
    /// nothing: Redis writes down how much has gone, with `=`, and leaves the LIMIT there.
    pub(super) fn check_limit(&mut self, is_replay: bool) -> Done {
        if is_replay {
            self.limit = Some(0);
        } else if self.limit.is_some() && !self.is_about {
            return Err(Error::limit_of_exact_trimming());
        }
        Ok(())
    }

    pub(super) fn wants_trimming(&self) -> bool {
        self.trim.is_some()
    }

    /// A request with this trimming, as words that have the same outcome however leaves are filled: what is
    /// left of the stream, exactly. Options end before argument `options_end`.
    pub(super) fn exact_words(&self, stream: &store::Stream, words: &mut Vec<Vec<u8>>, options_end: usize) {
        if !self.is_about {
            return;
        }
        words[self.about_at] = b"=".to_vec();
        words[self.about_at + 1] = match self.trim {
            // Nothing is left: no id is great enough to stay.
            Some(Trim::MinId(_)) if stream.len() == 0 => id::text(Id::MAX),
            Some(Trim::MinId(_)) => id::text(stream.first_id()),
            Some(Trim::MaxLen(_)) | None => stream.len().to_string().into_bytes(),
        };
        // The last first, so that the others stay where they are.
        for at in (2..options_end).rev().filter(|_| self.limit.is_some()) {
            if is_word(&words[at], "LIMIT") {
                words.drain(at..at + 2);
            }
        }
    }

    /// Whether how much goes depends on how entries are kept.
    pub(super) fn is_about(&self) -> bool {
        self.is_about
    }

    /// Trims the stream, and returns how many entries were removed.
    pub(super) fn apply(&self, stream: &mut store::Stream, settings: &Settings) -> u64 {
        let Some(trim) = self.trim else { return 0 };
        let precision = match self.is_about {
            false => Precision::Exact,
            true => Precision::Leaves { entries_max: self.entries_max(settings) },
        };
        stream.trim_with(trim, precision, self.references.unwrap_or_default())
    }

    /// By how many entries go; leaves go as a whole, unless references are looked for, in every group.
    pub(super) fn steps(&self, call: &mut Call<'_, '_>) -> Option<u64> {
        const ENTRIES_A_STEP: u64 = 32;
        let len = call.view.elements(call.key(0));
        let looks = 1 + groups_looked_at(call, self.references.unwrap_or_default());
        let going = match self.trim {
            _ if len.saturating_mul(looks) < LONG_STEPS => 0,
            Some(Trim::MaxLen(max)) => len.saturating_sub(max),
            Some(Trim::MinId(min)) => {
                let before = min.prev().map(|last| (Id::MIN, last));
                let stream = call.view.stream(call.key(0)).ok()?;
                before.zip(stream).map_or(0, |(ids, stream)| stream.count_between(ids))
            }
            None => 0,
        };
        let going = if self.is_about { going.min(self.entries_max(call.view.settings())) } else { going };
        Some(match self.references {
            None | Some(References::Keep) => going / ENTRIES_A_STEP,
            Some(_) => going.saturating_mul(looks),
        })
    }

    /// Without LIMIT at most a hundred leaves go at once.
    fn entries_max(&self, settings: &Settings) -> u64 {
        match self.limit {
            Some(0) => u64::MAX,
            Some(limit) => limit,
            None => match settings.stream.entries.saturating_mul(100) {
                0 => 10_000,
                limit => limit.min(1_000_000),
            },
        }
    }
}

/// In how many groups an entry is looked for that goes.
pub(super) fn groups_looked_at(call: &mut Call<'_, '_>, references: References) -> u64 {
    if references == References::Keep {
        return 0;
    }
    call.view.stream(call.key(0)).ok().flatten().map_or(0, |stream| stream.groups().len() as u64)
}

/// KEEPREF, DELREF or ACKED.
pub(super) fn references(word: &[u8]) -> Option<References> {
    if is_word(word, "KEEPREF") {
        Some(References::Keep)
    } else if is_word(word, "DELREF") {
        Some(References::Delete)
    } else if is_word(word, "ACKED") {
        Some(References::Respect)
    } else {
        None
    }
}

fn trimmed(call: &mut Call<'_, '_>) -> Option<u64> {
    match options_of_xtrim(&call.args) {
        Ok(options) => options.steps(call),
        Err(_) => Some(0),
    }
}

fn options_of_xtrim(args: &Args<'_>) -> Result<Options, Error> {
    let (mut options, mut index) = (Options::default(), 2);
    while index < args.len() {
        index += options.read(args, index)?.ok_or_else(Error::syntax)?;
    }
    Ok(options)
}

fn xtrim(call: &mut Call<'_, '_>) -> Done {
    let mut options = options_of_xtrim(&call.args)?;
    options.check()?;
    if !options.wants_trimming() {
        return Err(Error::xtrim_without_strategy());
    }
    options.check_limit(call.view.is_replay())?;
    let (key, settings) = (call.key(0), call.view.settings());
    let count = match call.view.stream_mut(key)? {
        Some(mut stream) => {
            let count = options.apply(&mut stream, settings);
            if let Some(effects) = call.effects.as_deref_mut().filter(|_| count > 0 && options.is_about()) {
                let mut words: Vec<Vec<u8>> = call.args.iter_from(0).map(<[u8]>::to_vec).collect();
                let end = words.len();
                options.exact_words(&stream, &mut words, end);
                effects.say_all(words.iter().map(Vec::as_slice));
            }
            count
        }
        None => 0,
    };
    call.view.changed(key, count, XTRIM_EVENT);
    call.reply.int(count as i64);
    Ok(())
}
