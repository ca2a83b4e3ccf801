//! Fields read and written together with their deadlines: HGETEX, HSETEX, HGETDEL.
use super::deadline::{FIELDS, Named, TOLD, tell_deadlines, time_of};
use super::row::{ABOUT, HDEL_EVENT, HEXPIRE_EVENT, HPERSIST_EVENT, HSET_EVENT, ROW};
use crate::argument::{int, is_word};
use crate::lifetime::Lifetime;
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long, work};
use base::Millis;
use base::text::{I64Text, parse_i64};
use resp::Args;
use store::{Deadline, Event, HashMut};

pub(super) const HGETEX: Command = Command {
    name: "HGETEX",
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::UPDATE))
        .note("RW and UPDATE because it changes deadlines.")],
    doc: Doc {
        since: "8.0.0",
        summary: "Answers the values of fields of a hash and sets or takes away their deadlines.",
        complexity: "O(N) where N is the number of fields named.",
        args: &[
            Arg::key("key", 0),
            Arg::one_of(
                "expiration",
                &[
                    Arg::int("seconds").after("EX"),
                    Arg::int("milliseconds").after("PX"),
                    Arg::unix_time("unix-time-seconds").after("EXAT"),
                    Arg::unix_time("unix-time-milliseconds").after("PXAT"),
                    Arg::word("persist", "PERSIST"),
                ],
            )
            .optional(),
            FIELDS,
        ],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(work::named, hgetex).with_words(work::NAMED_FEW)),
    ..ROW
};

pub(super) const HSETEX: Command = Command {
    name: "HSETEX",
    arity: Arity::AtLeast(6),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "8.0.0",
        summary: "Writes fields of a hash with a deadline, if all or none of them are there where that is asked for.",
        complexity: "O(N) where N is the number of fields written.",
        args: &[
            Arg::key("key", 0),
            Arg::one_of("condition", &[Arg::word("fnx", "FNX"), Arg::word("fxx", "FXX")]).optional(),
            Arg::one_of(
                "expiration",
                &[
                    Arg::int("seconds").after("EX"),
                    Arg::int("milliseconds").after("PX"),
                    Arg::unix_time("unix-time-seconds").after("EXAT"),
                    Arg::unix_time("unix-time-milliseconds").after("PXAT"),
                    Arg::word("keepttl", "KEEPTTL"),
                ],
            )
            .optional(),
            Arg::block(
                "fields",
                &[Arg::int("numfields"), Arg::block("data", &[Arg::str("field"), Arg::str("value")]).many()],
            )
            .after("FIELDS"),
        ],
        ..ABOUT
    },
    run: DataRun::Keys(hsetex),
    ..ROW
};

pub(super) const HGETDEL: Command = Command {
    name: "HGETDEL",
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::DELETE))],
    doc: Doc {
        since: "8.0.0",
        summary: "Answers the values of fields of a hash and removes them.",
        complexity: "O(N) where N is the number of fields named.",
        args: &[Arg::key("key", 0), FIELDS],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(work::named, hgetdel).with_words(work::NAMED_FEW)),
    ..ROW
};

/// Removes the fields when their values have been replied, and the key with the last field.
fn hgetdel(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let mut hash = call.view.hash_mut(key)?;
    let fields = Named::parse(call.args, 2, Error::numfields_not_positive)?;
    call.reply.array(fields.count());
    if let Some(hash) = &mut hash {
        hash.expect_removals(fields.count() as u64);
    }
    let mut changes = 0;
    for field in fields.iter() {
        match hash.as_ref().and_then(|hash| hash.get(field)) {
            Some(value) => call.reply.item(value),
            None => call.reply.null(),
        }
        changes += u64::from(hash.as_mut().is_some_and(|hash| hash.remove(field)));
    }
    drop(hash);
    call.view.reduced(key, changes, HDEL_EVENT);
    if changes > 0 && call.effects.is_some() {
        let words = [&b"HDEL"[..], key.bytes()].into_iter().chain(fields.iter());
        call.effect(&words.collect::<Vec<_>>());
    }
    Ok(())
}

/// What becomes of the deadlines of fields that HGETEX answers.
#[derive(Clone, Copy)]
enum Change {
    None,
    To(Deadline),
}

/// Time options and PERSIST stand first or not at all. A deadline that has passed removes the field that was
/// answered.
fn hgetex(call: &mut Call<'_, '_>) -> Done {
    let (key, now, clock) = (call.key(0), call.view.now(), call.view.clock());
    let mut hash = call.view.hash_mut(key)?;
    let (change, at) = change(call.args, clock)?;
    let fields = Named::parse(call.args, at, Error::numfields_not_positive)?;
    call.reply.array(fields.count());
    if let (Some(hash), Change::To(_)) = (&mut hash, change) {
        hash.expect_deadlines();
    }
    let event = match change {
        Change::To(Deadline::At(at)) if at <= now => HDEL_EVENT,
        Change::To(Deadline::At(_)) => HEXPIRE_EVENT,
        Change::To(Deadline::Never) | Change::None => HPERSIST_EVENT,
    };
    let mut changes = 0;
    let mut found = Vec::new();
    for field in fields.iter() {
        let Some((hash, kept)) = hash.as_mut().and_then(|hash| {
            let deadline = hash.deadline(field)?;
            Some((hash, deadline))
        }) else {
            call.reply.null();
            continue;
        };
        hash.get(field).into_iter().for_each(|value| call.reply.item(value));
        changes += u64::from(apply(hash, field, kept, change, now));
        if call.effects.is_some() {
            found.push(field);
        }
    }
    drop(hash);
    call.view.reduced(key, changes, event);
    if changes > 0 && call.effects.is_some() {
        tell_change(call, key.bytes(), change, (&fields, &found));
    }
    Ok(())
}

/// What HGETEX has done to the fields that it names, of which some were found.
fn tell_change(call: &mut Call<'_, '_>, key: &[u8], change: Change, (named, found): (&Named<'_>, &[&[u8]])) {
    let all: Vec<&[u8]> = named.iter().collect();
    match change {
        Change::To(Deadline::At(at)) if at <= call.view.now() => {
            tell_deadlines(call, key, (TOLD, at, &[]), (named.word(), found))
        }
        Change::To(Deadline::At(at)) => tell_deadlines(call, key, (TOLD, at, &[]), (named.word(), &all)),
        Change::To(Deadline::Never) | Change::None => {
            let mut count = I64Text::new();
            let words = [&b"HPERSIST"[..], key, named.word(), count.format_u64(all.len() as u64)];
            call.effect(&[&words, &all[..]].concat());
        }
    }
}

/// Changes the deadline of a field, and returns whether something changed.
fn apply(hash: &mut HashMut<'_>, field: &[u8], old: Deadline, change: Change, now: Millis) -> bool {
    match change {
        Change::None => false,
        Change::To(Deadline::Never) if old == Deadline::Never => false,
        Change::To(Deadline::At(at)) if at <= now => {
            hash.count_expired();
            hash.remove(field)
        }
        Change::To(new) => {
            hash.set_deadline(field, new);
            true
        }
    }
}

/// The option that a HGETEX begins with, and where its fields do.
fn change(args: Args<'_>, clock: Millis) -> Result<(Change, usize), Error> {
    match Lifetime::parse(args.at(2), args.get(3)) {
        Some((Lifetime::Persist, _)) => Ok((Change::To(Deadline::Never), 3)),
        Some((Lifetime::Until { unit, from, text }, _)) => {
            let at = time_of(int(text)?, unit, from, clock, "hgetex")?;
            if args.len() == 5 {
                return Err(Error::wrong_arity("hgetex"));
            }
            Ok((Change::To(Deadline::At(at)), 4))
        }
        _ => Ok((Change::None, 2)),
    }
}

/// Whether all fields, or none, must be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    All,
    None,
}

/// What a HSETEX asks for.
struct Writing {
    presence: Option<Presence>,
    lifetime: Option<store::Lifetime>,
    /// Where the first field stands.
    first: usize,
}

impl Writing {
    fn parse(args: Args<'_>, clock: Millis) -> Result<Writing, Error> {
        let mut writing = Writing { presence: None, lifetime: None, first: 0 };
        let mut at = 2;
        while let Some(word) = args.get(at) {
            if is_word(word, "FIELDS") {
                return writing.begin(args, at);
            }
            at += writing.take(word, args.get(at + 1), clock)?;
        }
        Err(Error::wrong_arity("hsetex"))
    }

    /// Whether what is written is gone at once.
    fn is_past(&self, now: Millis) -> bool {
        matches!(self.lifetime, Some(store::Lifetime::Until(at)) if at <= now)
    }

    /// Called at FIELDS: there must be as many fields and values as the count says.
    fn begin(mut self, args: Args<'_>, at: usize) -> Result<Writing, Error> {
        if args.len() < at + 4 {
            return Err(Error::wrong_arity("hsetex"));
        }
        let is_count = |count: &i64| (1..=i64::from(i32::MAX)).contains(count);
        let count = args.get(at + 1).and_then(parse_i64).filter(is_count);
        let count = count.ok_or_else(Error::invalid_number_of_fields)? as u64;
        self.first = at + 2;
        if Some((args.len() - self.first) as u64) != count.checked_mul(2) {
            return Err(Error::wrong_arity("hsetex"));
        }
        Ok(self)
    }

    /// Takes an option; how many arguments it has.
    fn take(&mut self, word: &[u8], next: Option<&[u8]>, clock: Millis) -> Result<usize, Error> {
        let presence = [("FNX", Presence::None), ("FXX", Presence::All)];
        if let Some((_, presence)) = presence.iter().find(|(name, _)| is_word(word, name)) {
            if self.presence.replace(*presence).is_some() {
                return Err(Error::fnx_and_fxx());
            }
            return Ok(1);
        }
        // A second one is refused, whether it has a time or not.
        let time = next.or(self.lifetime.map(|_| &b""[..]));
        let (lifetime, count) = match Lifetime::parse(word, time) {
            Some((Lifetime::Keep, _)) => (store::Lifetime::Kept, 1),
            Some((Lifetime::Until { unit, from, text }, _)) => {
                if self.lifetime.is_some() {
                    return Err(Error::field_lifetimes());
                }
                (store::Lifetime::Until(time_of(int(text)?, unit, from, clock, "hsetex")?), 2)
            }
            _ => return Err(Error::unknown_argument(word)),
        };
        match self.lifetime.replace(lifetime) {
            None => Ok(count),
            Some(_) => Err(Error::field_lifetimes()),
        }
    }
}

/// Writes nothing where one field is not as FNX or FXX asks. A deadline that has passed removes what was
/// written.
fn hsetex(call: &mut Call<'_, '_>) -> Done {
    let (key, now) = (call.key(0), call.view.now());
    let writing = Writing::parse(call.args, call.view.clock())?;
    let count = (call.args.len() - writing.first) as u64 / 2;
    let mut hash = call.view.hash_or_new(key)?;
    let fields = || call.args.iter_from(writing.first).step_by(2);
    let is_refused = match writing.presence {
        None => false,
        Some(Presence::All) => fields().any(|field| hash.get(field).is_none()),
        Some(Presence::None) => fields().any(|field| hash.get(field).is_some()),
    };
    if !is_refused {
        write_all(&mut hash, call.args, &writing, now);
    }
    let is_new = hash.is_new();
    drop(hash);
    if !is_refused {
        if is_new && writing.is_past(now) {
            // The key was there for an instant.
            call.view.touched(key, Event::NEW);
        }
        call.view.changed(key, count, HSET_EVENT);
        match writing.lifetime {
            Some(store::Lifetime::Until(_)) if writing.is_past(now) => {
                call.view.touched_and_reduced(key, HDEL_EVENT);
            }
            Some(store::Lifetime::Until(_)) => call.view.touched(key, HEXPIRE_EVENT),
            _ => {}
        }
        tell_written(call, key.bytes(), &writing);
    }
    call.reply.int(i64::from(!is_refused));
    Ok(())
}

/// What HSETEX has done: the deadline is absolute, and fields with one that has passed are gone.
fn tell_written(call: &mut Call<'_, '_>, key: &[u8], writing: &Writing) {
    let (args, now) = (call.args, call.view.now());
    let (Some(store::Lifetime::Until(at)), true) = (writing.lifetime, call.effects.is_some()) else { return };
    if at <= now {
        let fields: Vec<&[u8]> = args.iter_from(writing.first).step_by(2).collect();
        return tell_deadlines(call, key, (TOLD, at, &[]), (b"FIELDS", &fields));
    }
    let mut time = I64Text::new();
    let mut words: Vec<&[u8]> = args.iter_from(0).collect();
    let is_option = |at: &usize| Lifetime::parse(words[*at], Some(b"")).is_some();
    if let Some(option) = (2..writing.first).find(is_option) {
        if is_word(words[option], "PXAT") {
            return;
        }
        (words[option], words[option + 1]) = (b"PXAT", time.format(at.0));
    }
    call.effect(&words);
}

fn write_all(hash: &mut HashMut<'_>, args: Args<'_>, writing: &Writing, now: Millis) {
    hash.announce((args.len() - writing.first) as u64 / 2);
    let lifetime = writing.lifetime.unwrap_or(store::Lifetime::Endless);
    if matches!(lifetime, store::Lifetime::Until(_)) {
        hash.expect_deadlines();
    }
    let is_past = writing.is_past(now);
    let mut words = args.iter_from(writing.first);
    while let (Some(field), Some(value)) = (words.next(), words.next()) {
        match is_past {
            true => {
                hash.expect_text(field, value);
                hash.remove(field);
                hash.count_expired();
            }
            false => {
                hash.set(field, value, lifetime);
            }
        }
    }
}
