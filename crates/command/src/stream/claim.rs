//! Taking over what another consumer holds: XCLAIM by id, XAUTOCLAIM by how long it has lain there.
use super::effect::{self, Holding, Place};
use super::row::{ABOUT, CONSUMER_CREATED, ROW};
use super::{id, note_lookup, reply_entry, steps_in_group};
use crate::argument::{int, is_word};
use crate::{
    Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Effects, Error, Flags, KeySpec, Long, work,
};
use base::Millis;
use base::text::parse_i64;
use std::ops::ControlFlow;
use store::{ConsumerId, Id, Pending, Stream};

pub(super) const XCLAIM: Command = Command {
    name: "XCLAIM",
    arity: Arity::AtLeast(6),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "5.0.0",
        summary: "Gives a consumer what others hold, by id.",
        complexity: "O(log P + log L) for each id where P is what is pending and L the length of the stream.",
        args: &[
            Arg::key("key", 0),
            Arg::str("group"),
            Arg::str("consumer"),
            Arg::str("min-idle-time"),
            Arg::str("id").many(),
            Arg::int("ms").after("IDLE").optional(),
            Arg::unix_time("unix-time-milliseconds").after("TIME").optional(),
            Arg::int("count").after("RETRYCOUNT").optional(),
            Arg::word("force", "FORCE").optional(),
            Arg::word("justid", "JUSTID").optional(),
            Arg::str("lastid").after("LASTID").optional(),
        ],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(work::named, xclaim).with_words(work::NAMED_FEW)),
    ..ROW
};

pub(super) const XAUTOCLAIM: Command = Command {
    name: "XAUTOCLAIM",
    arity: Arity::AtLeast(6),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::DELETE))],
    doc: Doc {
        since: "6.2.0",
        summary: "Gives a consumer what others have held for long.",
        complexity: "O(log P + N) where P is what is pending and N the number of ids looked at.",
        args: &[
            Arg::key("key", 0),
            Arg::str("group"),
            Arg::str("consumer"),
            Arg::str("min-idle-time"),
            Arg::str("start"),
            Arg::int("count").after("COUNT").optional(),
            Arg::word("justid", "JUSTID").optional(),
        ],
        history: &[("7.0.0", "Answers the ids that no entry has any more, too.")],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(looked_at, xautoclaim).with_words(8)),
    ..ROW
};

/// What XCLAIM writes into what it takes over.
struct Claim {
    ids: Vec<Id>,
    idle_min_ms: i64,
    delivered: Option<i64>,
    count: Option<u64>,
    creates: bool,
    ids_only: bool,
    last_id: Id,
}

fn option_int(text: &[u8], option: &str) -> Result<i64, Error> {
    let invalid = || Error::xclaim_option(option);
    parse_i64(text).ok_or_else(invalid)
}

fn idle_min(text: &[u8], command: &str) -> Result<i64, Error> {
    let invalid = || Error::min_idle_time(command);
    Ok(parse_i64(text).ok_or_else(invalid)?.max(0))
}

/// Arguments are ids as long as they read as ids; all behind them are options.
fn claim(call: &Call<'_, '_>, now_ms: i64) -> Result<Claim, Error> {
    let args = call.args;
    let ids: Vec<Id> = args.iter_from(5).map_while(|text| id::parse(text, 0)).collect();
    let mut index = 5 + ids.len();
    let mut claim = Claim {
        ids,
        idle_min_ms: idle_min(args.at(4), "XCLAIM")?,
        delivered: None,
        count: None,
        creates: false,
        ids_only: false,
        last_id: Id::MIN,
    };
    while index < args.len() {
        let (word, value) = (args.at(index), args.get(index + 1));
        index += 1;
        match value {
            _ if is_word(word, "FORCE") => claim.creates = true,
            _ if is_word(word, "JUSTID") => claim.ids_only = true,
            Some(value) => {
                claim.read_pair(word, value, now_ms)?;
                index += 1;
            }
            None => return Err(Error::unrecognized_xclaim(word)),
        }
    }
    Ok(claim)
}

impl Claim {
    fn read_pair(&mut self, word: &[u8], value: &[u8], now_ms: i64) -> Done {
        if is_word(word, "IDLE") {
            self.delivered = Some(now_ms.wrapping_sub(option_int(value, "IDLE")?));
        } else if is_word(word, "TIME") {
            self.delivered = Some(option_int(value, "TIME")?);
        } else if is_word(word, "RETRYCOUNT") {
            self.count = u64::try_from(option_int(value, "RETRYCOUNT")?).ok();
        } else if is_word(word, "LASTID") {
            self.last_id = id::strict(value, 0)?;
        } else {
            return Err(Error::unrecognized_xclaim(word));
        }
        Ok(())
    }

    /// The time of delivery that is written. A time in the future, or before 1970, counts as now.
    fn delivered(&self, now: Millis) -> Millis {
        Millis(self.delivered.filter(|at| (0..=now.0).contains(at)).unwrap_or(now.0))
    }
}

fn xclaim(call: &mut Call<'_, '_>) -> Done {
    let (key, name, now) = (call.key(0), call.args.at(2), call.view.clock());
    note_lookup(call, key);
    let has_group = call.view.stream(key)?.is_some_and(|stream| stream.group(name).is_some());
    if !has_group {
        return Err(Error::no_group(key.bytes(), name, ""));
    }
    let claim = claim(call, now.0)?;
    let Some(mut stream) = call.view.stream_mut(key)? else {
        return Err(Error::no_group(key.bytes(), name, ""));
    };
    let (consumer, created) = claimer(&mut stream, name, call.args.at(3), now)?;
    let place = Place { key: key.bytes(), group: name };
    let mut changes = 0;
    let has_moved = move_on(&mut stream, name, claim.last_id);
    let header = call.reply.deferred();
    let mut sent = 0;
    for id in &claim.ids {
        let pending = stream.group(name).and_then(|group| group.pending(*id));
        if !stream.contains(*id) {
            // An entry that was deleted cannot be claimed, and is held by no consumer any more.
            let is_released = stream.group_mut(name).is_some_and(|group| group.release(*id));
            changes += u64::from(is_released);
            if let (Some(group), Some(pending), Some(effects)) =
                (stream.group(name), pending, call.effects.as_deref_mut())
            {
                effect::claim(effects, place, Holding::of(group, pending), group.last_id());
            }
            continue;
        }
        let Some(taken) = taken(&claim, *id, pending, consumer, now) else { continue };
        give(&mut stream, name, taken, now);
        if let (Some(group), Some(effects)) = (stream.group(name), call.effects.as_deref_mut()) {
            effect::claim(effects, place, Holding::of(group, taken), group.last_id());
        }
        match claim.ids_only {
            true => id::reply(call.reply, *id),
            false => drop(stream.find(*id, |row| reply_entry(call.reply, row))),
        }
        (sent, changes) = (sent + 1, changes + 1);
    }
    if let (Some(group), Some(effects)) = (stream.group(name), call.effects.as_deref_mut()) {
        if created > 0 && sent == 0 {
            effect::new_consumer(effects, place, call.args.at(3));
        }
        if has_moved && changes == 0 {
            effect::progress(effects, place, group);
        }
    }
    drop(stream);
    call.reply.fill_array(header, sent);
    // Moving the last id counts as a change of its own only if nothing is claimed, because a claim is
    // replicated with the last id.
    changes += u64::from(has_moved && sent == 0);
    call.view.changed(key, created, CONSUMER_CREATED);
    call.view.dirty(changes);
    Ok(())
}

/// LASTID: moves the group to this id, unless it is further already. Returns whether it moved.
fn move_on(stream: &mut Stream, name: &[u8], last_id: Id) -> bool {
    let Some(group) = stream.group_mut(name).filter(|group| group.last_id() < last_id) else { return false };
    let entries_read = group.entries_read();
    group.set_progress(last_id, entries_read);
    true
}

/// The pending entry as the consumer has it after claiming it; None where it may not be claimed.
fn taken(
    claim: &Claim,
    id: Id,
    pending: Option<Pending>,
    consumer: ConsumerId,
    now: Millis,
) -> Option<Pending> {
    let before = match pending {
        Some(pending) if now.0 - pending.delivered.0 < claim.idle_min_ms => return None,
        Some(pending) => pending.count,
        None if claim.creates => 1,
        None => return None,
    };
    let count = claim.count.unwrap_or(before.saturating_add(u64::from(!claim.ids_only)));
    Some(Pending { id, consumer, delivered: claim.delivered(now), count })
}

fn give(stream: &mut Stream, name: &[u8], taken: Pending, now: Millis) {
    if let Some(group) = stream.group_mut(name) {
        group.hold(taken);
        group.consumer_mut(taken.consumer).active = Some(now);
    }
}

/// The consumer that claims. It is created where it is missing, and counts as seen now. Returns it, and how
/// many changes that was.
fn claimer(stream: &mut Stream, group: &[u8], name: &[u8], now: Millis) -> Result<(ConsumerId, u64), Error> {
    let group = stream.group_mut(group).ok_or_else(Error::no_such_key)?;
    let found = group.find_consumer(name);
    let consumer = found.or_else(|| group.create_consumer(name, now)).ok_or_else(Error::no_such_key)?;
    group.consumer_mut(consumer).seen = now;
    Ok((consumer, u64::from(found.is_none())))
}

/// XAUTOCLAIM looks at so many pending entries for each that COUNT allows.
const LOOKS_PER_CLAIM: u64 = 10;
const COUNT_MAX: i64 = i64::MAX / 16;

struct Auto {
    idle_min_ms: i64,
    start: Id,
    count: u64,
    ids_only: bool,
}

fn auto(call: &Call<'_, '_>) -> Result<Auto, Error> {
    let args = call.args;
    let mut auto = Auto {
        idle_min_ms: idle_min(args.at(4), "XAUTOCLAIM")?,
        start: id::start(args.at(5))?,
        count: 100,
        ids_only: false,
    };
    let mut index = 6;
    while index < args.len() {
        if is_word(args.at(index), "COUNT") && index + 1 < args.len() {
            let count = int(args.at(index + 1)).ok().filter(|count| (1..=COUNT_MAX).contains(count));
            auto.count = count.ok_or_else(Error::count_below_one)? as u64;
            index += 2;
        } else if is_word(args.at(index), "JUSTID") {
            auto.ids_only = true;
            index += 1;
        } else {
            return Err(Error::syntax());
        }
    }
    Ok(auto)
}

/// What is looked at, each of which may be too young to be taken, or what is taken.
fn looked_at(call: &mut Call<'_, '_>) -> Option<u64> {
    const STEPS_A_LOOK: u64 = 2;
    let Ok(auto) = auto(call) else { return Some(0) };
    let mut claimed = 0;
    let looks = steps_in_group(call, call.args.at(2), |group| {
        let pending = group.pending_len();
        claimed = pending.min(auto.count);
        Some(pending.min(auto.count.saturating_mul(LOOKS_PER_CLAIM)) * STEPS_A_LOOK)
    })?;
    Some(looks.max(work::edited(|| call.extent(call.key(0)), claimed)))
}

/// What XAUTOCLAIM found before it took anything.
#[derive(Default)]
struct Findings {
    claimed: Vec<Pending>,
    /// Pending, but no entry has these ids any more.
    gone: Vec<Pending>,
    /// The id at which the next call goes on; the least id if all was seen.
    next: Id,
}

/// Looks at what is pending, for a limited number of steps.
fn findings(stream: &Stream, name: &[u8], auto: &Auto, now: Millis) -> Findings {
    let mut findings = Findings::default();
    let Some(group) = stream.group(name) else { return findings };
    let (mut left, mut looks) = (auto.count, auto.count.saturating_mul(LOOKS_PER_CLAIM));
    group.visit_pending(auto.start, &mut |pending| {
        if left == 0 || looks == 0 {
            findings.next = pending.id;
            return ControlFlow::Break(());
        }
        looks -= 1;
        if !stream.contains(pending.id) {
            findings.gone.push(pending);
            left -= 1;
        } else if now.0 - pending.delivered.0 >= auto.idle_min_ms {
            findings.claimed.push(pending);
            left -= 1;
        }
        ControlFlow::Continue(())
    });
    findings
}

/// Says in the order of ids what becomes of pending entries: `claimed` says how one is held from here on.
fn tell_found<'a>(
    effects: &mut Effects,
    (place, group): (Place<'_>, &'a store::Group),
    findings: &Findings,
    claimed: impl Fn(Pending) -> Holding<'a>,
) {
    let claimed = findings.claimed.iter().map(|pending| claimed(*pending));
    let gone = findings.gone.iter().map(|pending| Holding::of(group, *pending));
    let mut all: Vec<Holding<'_>> = claimed.chain(gone).collect();
    all.sort_by_key(|holding| holding.id);
    all.into_iter().for_each(|holding| effect::claim(effects, place, holding, group.last_id()));
}

fn xautoclaim(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    note_lookup(call, key);
    let auto = auto(call)?;
    let (name, now) = (call.args.at(2), call.view.clock());
    let Some(mut stream) = call.view.stream_mut(key)? else {
        return Err(Error::no_group(key.bytes(), name, ""));
    };
    if stream.group(name).is_none() {
        return Err(Error::no_group(key.bytes(), name, ""));
    }
    let (consumer, created) = claimer(&mut stream, name, call.args.at(3), now)?;
    let mut changes = 0;
    let findings = findings(&stream, name, &auto, now);
    call.reply.array(3);
    id::reply(call.reply, findings.next);
    call.reply.array(findings.claimed.len());
    changes += (findings.claimed.len() + findings.gone.len()) as u64;
    if let (Some(group), Some(effects)) = (stream.group(name), call.effects.as_deref_mut()) {
        let place = Place { key: key.bytes(), group: name };
        let (claimer, delivered_ms) = (call.args.at(3), now.0);
        tell_found(effects, (place, group), &findings, |pending| {
            let count = pending.count.saturating_add(u64::from(!auto.ids_only));
            Holding { id: pending.id, consumer: claimer, delivered_ms, count }
        });
        if created > 0 && findings.claimed.is_empty() {
            effect::new_consumer(effects, place, claimer);
        }
    }
    for pending in findings.claimed {
        let count = pending.count.saturating_add(u64::from(!auto.ids_only));
        give(&mut stream, name, Pending { consumer, delivered: now, count, ..pending }, now);
        match auto.ids_only {
            true => id::reply(call.reply, pending.id),
            false => drop(stream.find(pending.id, |row| reply_entry(call.reply, row))),
        }
    }
    call.reply.array(findings.gone.len());
    for pending in findings.gone {
        if let Some(group) = stream.group_mut(name) {
            group.release(pending.id);
        }
        id::reply(call.reply, pending.id);
    }
    drop(stream);
    call.view.changed(key, created, CONSUMER_CREATED);
    call.view.dirty(changes);
    Ok(())
}
