//! Adding and removing members by name, and moving one between two sets. On the path of every request:
//! nothing is allocated here.
//!
//! All members of one command go through one open set, which is written back once, when it is dropped. The
//! type is checked before the first of them; after that nothing can fail.
use super::row::{ABOUT, ROW, SADD_EVENT, SREM_EVENT};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec};
use store::Kind;

pub(super) const SADD: Command = Command {
    name: "SADD",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::INSERT))],
    doc: Doc {
        since: "1.0.0",
        summary: "Adds members to a set; creates the key where it is missing.",
        complexity: "O(log N) for each member.",
        args: &[Arg::key("key", 0), Arg::str("member").many()],
        history: &[("2.4.0", "Takes several members.")],
        ..ABOUT
    },
    run: DataRun::Keys(sadd),
    ..ROW
};

pub(super) const SREM: Command = Command {
    name: "SREM",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::DELETE))],
    doc: Doc {
        since: "1.0.0",
        summary: "Removes members from a set; the key goes with the last of them.",
        complexity: "O(log N) for each member.",
        args: &[Arg::key("key", 0), Arg::str("member").many()],
        history: &[("2.4.0", "Takes several members.")],
        ..ABOUT
    },
    run: DataRun::Keys(srem),
    ..ROW
};

pub(super) const SMOVE: Command = Command {
    name: "SMOVE",
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[
        KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::DELETE)),
        KeySpec::one(2, Access::RW.or(Access::INSERT)),
    ],
    doc: Doc {
        since: "1.0.0",
        summary: "Moves a member from one set to another.",
        complexity: "O(log N)",
        args: &[Arg::key("source", 0), Arg::key("destination", 1), Arg::str("member")],
        ..ABOUT
    },
    run: DataRun::Keys(smove),
    ..ROW
};

/// SADD. The set is edited in the result that holds it: moving it out would cost as much as a lookup.
fn sadd(call: &mut Call<'_, '_>) -> Done {
    let (key, count) = (call.key(0), call.args.len() as u64 - 2);
    let added = match &mut call.view.set_or_new(key) {
        Ok(set) => {
            if count > 1 {
                set.announce(count);
            }
            let built = set.build_new(call.args.iter_from(2));
            let rest = call.args.iter_from(2 + built);
            built as u64 + rest.map(|member| u64::from(set.insert(member))).sum::<u64>()
        }
        Err(wrong) => return Err((*wrong).into()),
    };
    call.view.changed(key, added, SADD_EVENT);
    call.reply.int(added as i64);
    Ok(())
}

fn srem(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let removed = match &mut call.view.set_mut(key) {
        Ok(Some(set)) => {
            set.expect_removals(call.args.len() as u64 - 2);
            call.args.iter_from(2).map(|member| u64::from(set.remove(member))).sum()
        }
        Ok(None) => 0,
        Err(wrong) => return Err((*wrong).into()),
    };
    call.view.reduced(key, removed, SREM_EVENT);
    call.reply.int(removed as i64);
    Ok(())
}

/// SMOVE. A missing source is answered before the destination is looked up. If both are the same set, nothing
/// changes.
fn smove(call: &mut Call<'_, '_>) -> Done {
    let (source, destination, member) = (call.key(0), call.key(1), call.args.at(3));
    let is_same = source.bytes() == destination.bytes();
    let Some(set) = call.view.set(source)? else {
        call.reply.int(0);
        return Ok(());
    };
    let mut is_there = is_same && set.contains(member);
    if call.view.kind(destination).is_some_and(|kind| kind != Kind::Set) {
        return Err(Error::wrong_type());
    }
    if !is_same {
        is_there = call.view.set_mut(source)?.is_some_and(|mut set| set.remove(member));
        if is_there {
            call.view.reduced(source, 1, SREM_EVENT);
            let is_new = call.view.set_or_new(destination)?.insert(member);
            call.view.changed(destination, u64::from(is_new), SADD_EVENT);
        }
    }
    call.reply.int(i64::from(is_there));
    Ok(())
}
