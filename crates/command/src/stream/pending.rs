//! What a group's consumers hold: XACK and XACKDEL take it from them, XPENDING tells of it.
use super::row::{ABOUT, ROW};
use super::{delete, id, note_lookup, steps_in_group};
use crate::argument::{int, is_word};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long, work};
use resp::Reply;
use std::ops::ControlFlow;
use store::{Fate, Group, Id, Pending};

pub(super) const XACK: Command = Command {
    name: "XACK",
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "5.0.0",
        summary: "Takes entries from what a group has pending.",
        complexity: "O(log P) for each id where P is what is pending.",
        args: &[Arg::key("key", 0), Arg::str("group"), Arg::str("id").many()],
        ..ABOUT
    },
    run: DataRun::Keys(xack),
    ..ROW
};

pub(super) const XACKDEL: Command = Command {
    name: "XACKDEL",
    arity: Arity::AtLeast(6),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE).or(Access::DELETE))],
    doc: Doc {
        since: "8.2.0",
        summary: "Takes entries from what a group has pending, and deletes them.",
        complexity: "O(log P + log L) for each id where P is what is pending and L the length of the stream.",
        args: &[
            Arg::key("key", 0),
            Arg::str("group"),
            Arg::one_of(
                "condition",
                &[
                    Arg::word("keepref", "KEEPREF"),
                    Arg::word("delref", "DELREF"),
                    Arg::word("acked", "ACKED"),
                ],
            )
            .optional(),
            Arg::block("ids", &[Arg::int("numids"), Arg::str("id").many()]).after("IDS"),
        ],
        ..ABOUT
    },
    run: DataRun::Long(
        &Long::writing(|call| delete::deleted(call, 3), xackdel).unless(|args| delete::names_few(args, 3)),
    ),
    ..ROW
};

pub(super) const XPENDING: Command = Command {
    name: "XPENDING",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "5.0.0",
        summary: "Answers what a group has pending.",
        complexity: "O(log P + N) where P is what is pending and N the number of ids answered.",
        args: &[
            Arg::key("key", 0),
            Arg::str("group"),
            Arg::block(
                "filters",
                &[
                    Arg::int("min-idle-time").after("IDLE").optional().since("6.2.0"),
                    Arg::str("start"),
                    Arg::str("end"),
                    Arg::int("count"),
                    Arg::str("consumer").optional(),
                ],
            )
            .optional(),
        ],
        history: &[("6.2.0", "Takes `IDLE`, and bounds that are excluded.")],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(told, xpending)),
    ..ROW
};

/// Where there is no such key or group, nothing is acknowledged, and the ids are not read.
fn xack(call: &mut Call<'_, '_>) -> Done {
    let (key, name) = (call.key(0), call.args.at(2));
    note_lookup(call, key);
    let mut stream = call.view.stream_mut(key)?;
    let Some(group) = stream.as_mut().and_then(|stream| stream.group_mut(name)) else {
        call.reply.int(0);
        return Ok(());
    };
    let ids: Vec<Id> = call.args.iter_from(3).map(|text| id::strict(text, 0)).collect::<Result<_, _>>()?;
    let released = ids.into_iter().filter(|id| group.release(*id)).count() as u64;
    drop(stream);
    call.view.dirty(released);
    call.reply.int(released as i64);
    Ok(())
}

fn xackdel(call: &mut Call<'_, '_>) -> Done {
    let (key, name) = (call.key(0), call.args.at(2));
    note_lookup(call, key);
    let has_group = call.view.stream(key)?.is_some_and(|stream| stream.group(name).is_some());
    let (references, ids) = delete::block(&call.args, 3)?;
    call.reply.array(ids.len());
    if !has_group {
        ids.iter().for_each(|_| call.reply.int(-1));
        return Ok(());
    }
    let mut changes = 0;
    if let Some(mut stream) = call.view.stream_mut(key)? {
        for id in ids {
            let was_pending = stream.group_mut(name).is_some_and(|group| group.release(id));
            // What was acknowledged here is answered as deleted even if the entry was gone before.
            let fate = match was_pending {
                false => Fate::Missing,
                true if stream.delete_with(id, references) == Fate::Kept => Fate::Kept,
                true => Fate::Deleted,
            };
            changes += u64::from(was_pending);
            call.reply.int(delete::code(fate));
        }
    }
    call.view.dirty(changes);
    Ok(())
}

/// XPENDING's long form.
struct Query<'a> {
    idle_min_ms: i64,
    start: Id,
    end: Id,
    count: u64,
    consumer: Option<&'a [u8]>,
}

impl Query<'_> {
    /// Whether an entry is answered that was delivered so long ago.
    fn wants(&self, idle_ms: i64) -> bool {
        self.idle_min_ms == 0 || idle_ms >= self.idle_min_ms
    }
}

fn query<'a>(call: &Call<'_, 'a>) -> Result<Option<Query<'a>>, Error> {
    let args = call.args;
    match args.len() {
        3 => return Ok(None),
        6..=9 => {}
        _ => return Err(Error::syntax()),
    }
    let (mut idle_min_ms, mut first) = (0, 3);
    if is_word(args.at(3), "IDLE") {
        idle_min_ms = int(args.at(4))?;
        first = 5;
        if args.len() < 8 {
            return Err(Error::syntax());
        }
    }
    let count = int(args.at(first + 2))?;
    let (start, end) = (id::start(args.at(first))?, id::end(args.at(first + 1))?);
    let count = u64::try_from(count).unwrap_or(0);
    Ok(Some(Query { idle_min_ms, start, end, count, consumer: args.get(first + 3) }))
}

/// So many pending entries are passed over in a step where only what was delivered at some time is wanted,
/// and their times lie beside each other.
const LOOKS_A_STEP: u64 = 8;
/// Of what one consumer has each entry is looked up in the group.
const STEPS_A_SEARCH: u64 = 2;
/// So many steps may be made to see how far a request goes before it is sent to another thread: to send it
/// takes longer.
const PROBED_STEPS: u64 = work::LONG_STEPS / 64;

/// What is looked at: the consumers, or what is pending in the group or for one consumer.
fn told(call: &mut Call<'_, '_>) -> Option<u64> {
    let Ok(query) = query(call) else { return Some(0) };
    let now = call.view.clock();
    steps_in_group(call, call.args.at(2), |group| {
        let Some(query) = query else { return Some(group.consumers().len() as u64) };
        let (pending, steps_a_look) = match query.consumer {
            None => (group.pending_len(), 1),
            Some(name) => (group.consumer(group.find_consumer(name)?).pending_len(), STEPS_A_SEARCH),
        };
        let shown = steps_a_look * pending.min(query.count);
        Some(shown.max(passed_over(group, &query, pending, now.0)))
    })
}

/// With IDLE all that is pending may have to be looked at, or what is wanted is among the first.
fn passed_over(group: &Group, query: &Query<'_>, pending: u64, now_ms: i64) -> u64 {
    let looks_a_step = if query.consumer.is_some() { 1 } else { LOOKS_A_STEP };
    let steps = pending / looks_a_step;
    if query.idle_min_ms == 0 || query.count == 0 {
        return 0;
    }
    if steps < work::LONG_STEPS || query.count > PROBED_STEPS * looks_a_step {
        return steps;
    }
    let (mut probed, mut wanted) = (0, 0);
    let is_over = visit(group, query, &mut |pending| {
        probed += 1;
        wanted += u64::from(query.wants(idle_ms(&pending, now_ms)));
        match wanted < query.count && probed < PROBED_STEPS * looks_a_step {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    if is_over || wanted == query.count { probed / looks_a_step } else { steps }
}

fn xpending(call: &mut Call<'_, '_>) -> Done {
    let query = query(call)?;
    let (key, name, now) = (call.key(0), call.args.at(2), call.view.clock());
    let group = call.view.stream(key)?.and_then(|stream| stream.group(name));
    let group = group.ok_or_else(|| Error::no_group(key.bytes(), name, ""))?;
    match query {
        None => reply_summary(call.reply, group),
        Some(query) => reply_pending(call.reply, group, &query, now.0),
    }
    Ok(())
}

/// Replies XPENDING's short form: how many entries are pending, the least and the greatest id, and each
/// consumer that holds any with their number.
fn reply_summary(reply: &mut Reply, group: &Group) {
    reply.array(4);
    reply.int(group.pending_len() as i64);
    let Some((first, last)) = group.pending_ends() else {
        reply.null();
        reply.null();
        return reply.null_array();
    };
    id::reply(reply, first);
    id::reply(reply, last);
    let holders = || group.consumers().filter(|consumer| consumer.pending_len() > 0);
    reply.array(holders().count());
    for consumer in holders() {
        reply.array(2);
        reply.bulk(consumer.name());
        reply.bulk_int(consumer.pending_len() as i64);
    }
}

fn reply_pending(reply: &mut Reply, group: &Group, query: &Query<'_>, now_ms: i64) {
    let header = reply.deferred();
    let mut sent = 0;
    visit(group, query, &mut |pending| {
        if sent >= query.count {
            return ControlFlow::Break(());
        }
        let idle_ms = idle_ms(&pending, now_ms);
        if query.wants(idle_ms) {
            reply.array(4);
            id::reply(reply, pending.id);
            reply.bulk(group.consumer(pending.consumer).name());
            reply.int(idle_ms);
            reply.int(pending.count as i64);
            sent += 1;
        }
        reply.flow()
    });
    reply.fill_array(header, sent as usize);
}

/// Visits what is pending between the ids of a query until told to stop. Returns whether it came to the end.
fn visit(group: &Group, query: &Query<'_>, visit: &mut dyn FnMut(Pending) -> ControlFlow<()>) -> bool {
    let mut is_over = true;
    let mut visit = |pending: Pending| {
        if pending.id > query.end {
            return ControlFlow::Break(());
        }
        let flow = visit(pending);
        is_over = flow.is_continue();
        flow
    };
    match query.consumer.map(|name| group.find_consumer(name)) {
        None => group.visit_pending(query.start, &mut visit),
        Some(Some(consumer)) => group.visit_pending_of(consumer, query.start, &mut visit),
        // An unknown consumer holds nothing.
        Some(None) => {}
    }
    is_over
}

fn idle_ms(pending: &Pending, now_ms: i64) -> i64 {
    (now_ms - pending.delivered.0).max(0)
}
