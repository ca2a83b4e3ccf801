//! XREAD and XREADGROUP: what came to several streams behind an id; for a consumer of a group, what no other
//! was given, or once more what it holds.
//!
//! With BLOCK and nothing to answer they wait (`wait.rs`).
use super::effect::{self, Holding, Place};
use super::range::{Walk, reply_range};
use super::row::{ABOUT, CONSUMER_CREATED, ROW};
use super::{id, note_lookup, reply_entry};
use crate::argument::{int, is_word};
use crate::wait::{self, Wait};
use crate::{
    Access, Arg, Arity, Begin, Call, Command, DataRun, Doc, Done, Error, Find, Flags, KeySpec, LONG_STEPS,
    Long, work,
};
use base::Millis;
use base::text::parse_i64;
use resp::{Args, Protocol, Reply};
use std::ops::ControlFlow;
use store::{Acknowledgment, ConsumerId, Direction, Id, Key, Kind, Member, Pending, Stream, StreamMut};

pub(super) const XREAD: Command = Command {
    name: "XREAD",
    arity: Arity::AtLeast(4),
    flags: Flags::READONLY.or(Flags::BLOCKING).or(Flags::MOVABLEKEYS),
    keys: &[KeySpec {
        begin: Begin::Keyword { word: "STREAMS", start: 1 },
        find: Find::Range { last: -1, step: 1, limit: 2 },
        access: Access::RO.or(Access::ACCESS).or(Access::INCOMPLETE),
        notes: "A name before it may be STREAMS, too.",
        ..KeySpec::NEW
    }],
    doc: Doc {
        since: "5.0.0",
        summary: "Answers what came to streams behind ids.",
        complexity: "O(log L + N) for each stream where L is its length and N the number of entries answered.",
        args: &[
            Arg::int("count").after("COUNT").optional(),
            Arg::int("milliseconds").after("BLOCK").optional(),
            Arg::block("streams", &[Arg::key("key", 0).many(), Arg::str("id").many()]).after("STREAMS"),
        ],
        ..ABOUT
    },
    at_once: Some(&Long::reading(|call| read_of(call, call.keys().len()), xread)),
    run: DataRun::Blocking(&Long::reading(read_before_last, xread)),
    ..ROW
};

pub(super) const XREADGROUP: Command = Command {
    name: "XREADGROUP",
    arity: Arity::AtLeast(7),
    flags: Flags::WRITE.or(Flags::BLOCKING).or(Flags::MOVABLEKEYS),
    keys: &[KeySpec {
        begin: Begin::Keyword { word: "STREAMS", start: 4 },
        find: Find::Range { last: -1, step: 1, limit: 2 },
        access: Access::RO.or(Access::ACCESS).or(Access::INCOMPLETE),
        notes: "A name before it may be STREAMS, too.",
        ..KeySpec::NEW
    }],
    doc: Doc {
        since: "5.0.0",
        summary: "Answers what a consumer of a group is given, or holds, in streams.",
        complexity: "O(log L + N log P) for each stream where L is its length, \
                      N the number of entries answered and P what is pending.",
        args: &[
            Arg::block("group-block", &[Arg::str("group"), Arg::str("consumer")]).after("GROUP"),
            Arg::int("count").after("COUNT").optional(),
            Arg::int("milliseconds").after("BLOCK").optional(),
            Arg::word("noack", "NOACK").optional(),
            Arg::block("streams", &[Arg::key("key", 0).many(), Arg::str("id").many()]).after("STREAMS"),
        ],
        ..ABOUT
    },
    run: DataRun::Blocking(&Long::writing(given, xreadgroup)),
    ..ROW
};

/// A command whose two names share a syntax.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Alone,
    InGroup,
}

/// The group and the consumer that read, by name.
#[derive(Clone, Copy)]
struct Name<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
}

struct Request<'a> {
    count: Option<u64>,
    /// BLOCK: for how long it waits where there is nothing; None within: without end.
    wait: Option<Option<Millis>>,
    /// NOACK: what is given need not be acknowledged.
    forgets: bool,
    name: Option<Name<'a>>,
    /// The argument that is the first id.
    ids_at: usize,
}

/// The entries of all streams but the last, which is read as the client reads, up to COUNT of each. None
/// where they are few: what is found nowhere is waited for here.
fn read_before_last(call: &mut Call<'_, '_>) -> Option<u64> {
    let others = call.keys().len().checked_sub(1)?;
    read_of(call, others)
}

/// The same of so many of them.
fn read_of(call: &mut Call<'_, '_>, streams: usize) -> Option<u64> {
    if call.elements().take(streams).sum::<u64>() < LONG_STEPS {
        return None;
    }
    let request = request(&call.args, Reader::Alone, call.view.clock()).ok()?;
    let mut steps = 0;
    for (index, key) in call.keys()[..streams].iter().enumerate() {
        let start = start(call, key, call.args.at(request.ids_at + index), &request).ok()?;
        let (Ok(Some(stream)), From::Behind(id)) = (call.view.stream(key), start) else { continue };
        steps += behind(stream, id, request.count);
    }
    (steps >= LONG_STEPS).then_some(steps)
}

/// The entries that are given to the consumer, or given again, each of which is noted. Ids whose entries were
/// deleted are given again too.
fn given(call: &mut Call<'_, '_>) -> Option<u64> {
    let is_of_new = call.args.iter_from(call.args.len() - call.keys().len()).all(|id| id == b">");
    let are_few = is_of_new && call.elements().sum::<u64>() < work::FEW_ELEMENTS;
    if gives_few(&call.args) || are_few {
        return Some(0);
    }
    let request = request(&call.args, Reader::InGroup, call.view.clock()).ok()?;
    let name = request.name?;
    let mut steps = 0;
    for (index, key) in call.keys().iter().enumerate() {
        let Ok(Some(stream)) = call.view.stream(key) else { continue };
        let Some(group) = stream.group(name.group) else { continue };
        let entries = match call.args.at(request.ids_at + index) == b">" {
            true => behind(stream, group.last_id(), request.count),
            false => {
                let consumer = group.find_consumer(name.consumer).map(|id| group.consumer(id));
                let pending = consumer.map_or(0, |consumer| consumer.pending_len());
                let told = pending.min(request.count.unwrap_or(u64::MAX));
                steps += work::STEPS_AN_EDIT * told;
                told
            }
        };
        steps += work::edited(|| call.extent(key), entries);
    }
    Some(steps)
}

/// Whether COUNT, where it usually stands, says that few entries are wanted of each stream.
fn gives_few(args: &Args<'_>) -> bool {
    let says_count = args.get(4).is_some_and(|word| is_word(word, "COUNT"));
    says_count && args.get(5).and_then(parse_i64).is_some_and(|count| (1..work::FEW).contains(&count))
}

/// How many entries are behind this id, up to `count`.
fn behind(stream: &Stream, id: Id, count: Option<u64>) -> u64 {
    let Some(next) = id.next() else { return 0 };
    stream.count_between((next, Id::MAX)).min(count.unwrap_or(u64::MAX))
}

fn xread(call: &mut Call<'_, '_>) -> Done {
    read(call, Reader::Alone)
}

fn xreadgroup(call: &mut Call<'_, '_>) -> Done {
    read(call, Reader::InGroup)
}

fn request<'a>(args: &Args<'a>, reader: Reader, now: Millis) -> Result<Request<'a>, Error> {
    let mut request = Request { count: None, wait: None, forgets: false, name: None, ids_at: 0 };
    let mut index = 1;
    while index < args.len() {
        let (word, more) = (args.at(index), args.len() - 1 - index);
        if is_word(word, "BLOCK") && more > 0 {
            request.wait = Some(wait::milliseconds(args.at(index + 1), now)?);
            index += 2;
        } else if is_word(word, "COUNT") && more > 0 {
            request.count = u64::try_from(int(args.at(index + 1))?).ok().filter(|count| *count > 0);
            index += 2;
        } else if is_word(word, "STREAMS") && more > 0 {
            if more % 2 != 0 {
                return Err(unbalanced(reader));
            }
            request.ids_at = index + 1 + more / 2;
            break;
        } else if is_word(word, "GROUP") && more >= 2 {
            only_in_groups(reader, "GROUP")?;
            request.name = Some(Name { group: args.at(index + 1), consumer: args.at(index + 2) });
            index += 3;
        } else if is_word(word, "NOACK") {
            only_in_groups(reader, "NOACK")?;
            request.forgets = true;
            index += 1;
        } else {
            return Err(Error::syntax());
        }
    }
    if request.ids_at == 0 {
        return Err(Error::syntax());
    }
    if reader == Reader::InGroup && request.name.is_none() {
        return Err(Error::xreadgroup_without_group());
    }
    Ok(request)
}

fn unbalanced(reader: Reader) -> Error {
    match reader {
        Reader::Alone => Error::unbalanced_xread(),
        Reader::InGroup => Error::unbalanced_xreadgroup(),
    }
}

fn only_in_groups(reader: Reader, option: &str) -> Done {
    match reader {
        Reader::InGroup => Ok(()),
        Reader::Alone => Err(Error::only_xreadgroup(option)),
    }
}

/// From where on a stream is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    /// Behind this id.
    Behind(Id),
    /// What the group has yet to give.
    New,
}

fn read(call: &mut Call<'_, '_>, reader: Reader) -> Done {
    let request = request(&call.args, reader, call.view.clock())?;
    let mut starts = Vec::with_capacity(call.keys().len());
    for (index, key) in call.keys().iter().enumerate() {
        starts.push(start(call, key, call.args.at(request.ids_at + index), &request)?);
    }
    let header = call.reply.deferred();
    let mut streams = 0;
    for (index, (key, from)) in call.keys().iter().zip(starts.iter().copied()).enumerate() {
        if request.name.is_some() {
            note_lookup(call, key);
        }
        let has_answered = match (request.name, from) {
            (None, from) => read_alone(call, index, from, request.count)?,
            (Some(name), From::New) => read_new(call, key, name, &request)?,
            (Some(name), From::Behind(id)) => read_again(call, key, name, id, request.count)?,
        };
        streams += usize::from(has_answered);
        if request.name.is_none() && call.reply.is_full() {
            break;
        }
    }
    if streams > 0 {
        match call.reply.protocol {
            Protocol::Resp3 => call.reply.fill_map(header, streams),
            Protocol::Resp2 => call.reply.fill_array(header, streams),
        }
        return Ok(());
    }
    match request.wait {
        None => call.reply.null_array(),
        Some(timeout) => {
            let resolved = resolved(call, &request, &starts);
            let ends_without_key = request.name.is_some();
            call.wait(Wait { ends_without_key, resolved, ..Wait::of(Kind::Stream, timeout) });
        }
    }
    Ok(())
}

/// What `$` meant, for when the command is tried again.
fn resolved(call: &Call<'_, '_>, request: &Request<'_>, starts: &[From]) -> Vec<(usize, Vec<u8>)> {
    let ids = starts.iter().enumerate().map(|(index, from)| (request.ids_at + index, from));
    let dollars = ids.filter(|(at, _)| call.args.at(*at) == b"$");
    let meaning = dollars.filter_map(|(at, from)| match from {
        From::Behind(id) => Some((at, id::text(*id))),
        From::New => None,
    });
    meaning.collect()
}

/// Where the reading of one stream begins. The type of the key is checked before the id is read.
fn start(call: &mut Call<'_, '_>, key: &Key<'_>, text: &[u8], request: &Request<'_>) -> Result<From, Error> {
    if request.name.is_some() {
        note_lookup(call, key);
    }
    let stream = call.view.stream(key)?;
    if let Some(name) = request.name
        && stream.is_none_or(|stream| stream.group(name.group).is_none())
    {
        return Err(Error::no_group(key.bytes(), name.group, " in XREADGROUP with GROUP option"));
    }
    match (text, request.name.is_some()) {
        (b"$" | b"+", true) => Err(Error::meaningless_in_group(text)),
        (b"$", false) => Ok(From::Behind(stream.map_or(Id::MIN, Stream::last_id))),
        (b"+", false) => {
            let last = stream.and_then(Stream::last_entry_id).and_then(Id::prev);
            Ok(From::Behind(last.unwrap_or(Id::MIN)))
        }
        (b">", false) => Err(Error::new_entries_without_group()),
        (b">", true) => Ok(From::New),
        (text, in_group) => match id::strict(text, 0)? {
            Id::MAX if in_group => Ok(From::New),
            id => Ok(From::Behind(id)),
        },
    }
}

/// Begins the part of the reply for one stream, which is written only if there is something to show.
fn begin(reply: &mut Reply, key: &Key<'_>) {
    if reply.protocol == Protocol::Resp2 {
        reply.array(2);
    }
    reply.bulk(key.bytes());
}

/// What the stream of this key has behind an id. The end of the reply is written as the client reads.
fn read_alone(call: &mut Call<'_, '_>, index: usize, from: From, count: Option<u64>) -> Result<bool, Error> {
    let (key, is_last) = (call.key(index), index + 1 == call.keys().len());
    let (Some(stream), From::Behind(id)) = (call.view.stream(key)?, from) else { return Ok(false) };
    let Some(start) = id.next().filter(|_| stream.last_entry_id().is_some_and(|last| last > id)) else {
        return Ok(false);
    };
    begin(call.reply, key);
    if is_last {
        let mut walk = Walk { start, end: Id::MAX, direction: Direction::Up };
        let rest = walk.begin(call.reply, stream, count);
        walk.leave(call, key, rest);
    } else {
        reply_range(call.reply, stream, (start, Id::MAX), Direction::Up, count);
    }
    Ok(true)
}

/// Creates the consumer where it is missing, and notes that it was seen now. Returns it, and whether it was
/// created.
fn meet(stream: &mut StreamMut<'_>, name: Name<'_>, now: base::Millis) -> (Option<ConsumerId>, bool) {
    let Some(group) = stream.group_mut(name.group) else { return (None, false) };
    let found = group.find_consumer(name.consumer);
    let consumer = found.or_else(|| group.create_consumer(name.consumer, now));
    if let Some(consumer) = consumer {
        group.consumer_mut(consumer).seen = now;
    }
    (consumer, found.is_none())
}

fn read_new(
    call: &mut Call<'_, '_>,
    key: &Key<'_>,
    name: Name<'_>,
    request: &Request<'_>,
) -> Result<bool, Error> {
    let now = call.view.clock();
    let Some(mut stream) = call.view.stream_mut(key)? else { return Ok(false) };
    let (Some(consumer), is_new) = meet(&mut stream, name, now) else { return Ok(false) };
    let last_id = stream.group(name.group).map_or(Id::MAX, store::Group::last_id);
    let mut given = 0;
    if stream.last_entry_id().is_some_and(|last| last > last_id) {
        begin(call.reply, key);
        let header = call.reply.deferred();
        let acknowledgment = if request.forgets { Acknowledgment::Waived } else { Acknowledgment::Awaited };
        let member = Member { group: name.group, consumer, now };
        let place = Place { key: key.bytes(), group: name.group };
        let mut effects = call.effects.as_deref_mut();
        given = stream.deliver(member, request.count, acknowledgment, &mut |row| {
            if let Some(effects) = effects.as_deref_mut().filter(|_| !request.forgets) {
                let holding = Holding { id: row.id, consumer: name.consumer, delivered_ms: now.0, count: 1 };
                effect::claim(effects, place, holding, row.id);
            }
            reply_entry(call.reply, row);
        });
        if let Some(effects) = effects.filter(|_| given > 0) {
            if is_new && request.forgets {
                effect::new_consumer(effects, place, name.consumer);
            }
            stream.group(name.group).into_iter().for_each(|group| effect::progress(effects, place, group));
        }
        call.reply.fill_array(header, given as usize);
        // With NOACK nothing becomes pending for the consumer, so it does not count as active.
        if let Some(group) = stream.group_mut(name.group).filter(|_| !request.forgets) {
            group.consumer_mut(consumer).active = Some(now);
        }
    }
    drop(stream);
    tell_consumer(call, key, name, is_new && given == 0);
    call.view.changed(key, u64::from(is_new), CONSUMER_CREATED);
    call.view.dirty(u64::from(given > 0));
    Ok(given > 0)
}

/// What the consumer holds, behind an id. Being given once more counts as a delivery; of an entry that is
/// gone only its id is told.
fn read_again(
    call: &mut Call<'_, '_>,
    key: &Key<'_>,
    name: Name<'_>,
    behind: Id,
    count: Option<u64>,
) -> Result<bool, Error> {
    let now = call.view.clock();
    let Some(mut stream) = call.view.stream_mut(key)? else { return Ok(false) };
    let (Some(consumer), is_new) = meet(&mut stream, name, now) else { return Ok(false) };
    let held = held(&stream, name, consumer, behind, count);
    begin(call.reply, key);
    call.reply.array(held.len());
    for pending in held {
        if stream.find(pending.id, |row| reply_entry(call.reply, row)).is_none() {
            call.reply.array(2);
            id::reply(call.reply, pending.id);
            call.reply.null_array();
        } else if let Some(group) = stream.group_mut(name.group) {
            group.hold(Pending { delivered: now, count: pending.count.saturating_add(1), ..pending });
        }
    }
    drop(stream);
    tell_consumer(call, key, name, is_new);
    call.view.changed(key, u64::from(is_new), CONSUMER_CREATED);
    Ok(true)
}

/// Says that a consumer was created, where nothing else says so.
fn tell_consumer(call: &mut Call<'_, '_>, key: &Key<'_>, name: Name<'_>, is_new: bool) {
    if let Some(effects) = call.effects().filter(|_| is_new) {
        effect::new_consumer(effects, Place { key: key.bytes(), group: name.group }, name.consumer);
    }
}

fn held(
    stream: &Stream,
    name: Name<'_>,
    consumer: ConsumerId,
    behind: Id,
    count: Option<u64>,
) -> Vec<Pending> {
    let mut held = Vec::new();
    let (Some(group), Some(from)) = (stream.group(name.group), behind.next()) else { return held };
    group.visit_pending_of(consumer, from, &mut |pending| {
        if count.is_some_and(|count| held.len() as u64 >= count) {
            return ControlFlow::Break(());
        }
        held.push(pending);
        ControlFlow::Continue(())
    });
    held
}
