//! What a set has. SISMEMBER is on the path of every request: nothing is allocated here.
use super::row::{ABOUT, ROW};
use crate::walk::{self, Share};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Flags, KeySpec, Long, work};
use resp::Reply;
use std::ops::ControlFlow;
use store::{Halt, Key, Set};

pub(super) const SISMEMBER: Command = Command {
    name: "SISMEMBER",
    arity: Arity::Exactly(3),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO)],
    doc: Doc {
        since: "1.0.0",
        summary: "Answers whether a set has a member.",
        complexity: "O(log N)",
        args: &[Arg::key("key", 0), Arg::str("member")],
        ..ABOUT
    },
    run: DataRun::Keys(sismember),
    ..ROW
};

pub(super) const SMISMEMBER: Command = Command {
    name: "SMISMEMBER",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "6.2.0",
        summary: "Answers of each of several members whether a set has it.",
        complexity: "O(log N) for each member.",
        args: &[Arg::key("key", 0), Arg::str("member").many()],
        ..ABOUT
    },
    run: DataRun::Keys(smismember),
    ..ROW
};

pub(super) const SCARD: Command = Command {
    name: "SCARD",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO)],
    doc: Doc {
        since: "1.0.0",
        summary: "Answers how many members a set has.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        ..ABOUT
    },
    run: DataRun::Keys(scard),
    ..ROW
};

pub(super) const SMEMBERS: Command = Command {
    name: "SMEMBERS",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "1.0.0",
        summary: "Answers all members of a set.",
        complexity: "O(N) where N is the number of members.",
        args: &[Arg::key("key", 0)],
        tips: &["nondeterministic_output_order"],
        ..ABOUT
    },
    at_once: Some(&Long::reading(work::whole_reply, smembers)),
    run: DataRun::Keys(smembers),
    ..ROW
};

fn sismember(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let is_there = call.view.set(key)?.is_some_and(|set| set.contains(call.args.at(2)));
    call.reply.int(i64::from(is_there));
    Ok(())
}

fn smismember(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let set = call.view.set(key)?;
    call.reply.array(call.args.len() - 2);
    for member in call.args.iter_from(2) {
        let is_there = set.as_ref().is_some_and(|set| set.contains(member));
        call.reply.int(i64::from(is_there));
    }
    Ok(())
}

fn scard(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let len = call.view.set(key)?.map_or(0, |set| set.len());
    call.reply.int(len as i64);
    Ok(())
}

fn smembers(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let Some(set) = call.view.set(key)? else {
        call.reply.set(0);
        return Ok(());
    };
    let len = set.len();
    call.reply.set(len as usize);
    let mut share = Share::first(len, call.reply);
    reply_first(call.reply, &set, &mut share);
    leave_members(call, key, (len, share.written()));
    Ok(())
}

/// Replies the first members of a set, as many as the share allows.
pub(super) fn reply_first(reply: &mut Reply, set: &Set<'_>, share: &mut Share) {
    let _ = set.visit(&mut |member| {
        reply.item(member);
        share.wrote(reply)
    });
}

/// Leaves all members but the first `written` for later.
pub(super) fn leave_members(call: &mut Call<'_, '_>, key: &Key<'_>, (len, written): (u64, u64)) {
    let (mut halt, mut skipped) = (Halt::START, written);
    walk::leave(call, key, len - written, move |value, reply, share| {
        let Some(set) = value.set() else { return };
        let next = set.visit_from(halt, &mut |member| {
            if skipped > 0 {
                skipped -= 1;
                return ControlFlow::Continue(());
            }
            reply.item(member);
            share.wrote(reply)
        });
        halt = next.unwrap_or(halt);
    });
}
