//! Pushing at either end. On the path of every request: nothing is allocated here.
use crate::{Access, Acl, Arg, Arity, Call, Command, DataRun, Doc, Done, Flags, Group, KeySpec};
use resp::Args;
use store::{End, ListMut};

pub(super) const LPUSH: Command = Command {
    name: "LPUSH",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    acl: Acl::LIST,
    keys: &[KeySpec::one(1, Access::RW.or(Access::INSERT))],
    doc: Doc {
        group: Group::List,
        since: "1.0.0",
        summary: "Pushes elements at the head of a list; creates the key where it is missing.",
        complexity: "O(N) where N is the number of elements pushed.",
        args: &[Arg::key("key", 0), Arg::str("element").many()],
        history: &[("2.4.0", "Takes several elements.")],
        ..Doc::NEW
    },
    subcommands: &[],
    run: DataRun::Keys(lpush),
};

pub(super) const RPUSH: Command = Command {
    name: "RPUSH",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    acl: Acl::LIST,
    keys: &[KeySpec::one(1, Access::RW.or(Access::INSERT))],
    doc: Doc {
        group: Group::List,
        since: "1.0.0",
        summary: "Pushes elements at the tail of a list; creates the key where it is missing.",
        complexity: "O(N) where N is the number of elements pushed.",
        args: &[Arg::key("key", 0), Arg::str("element").many()],
        history: &[("2.4.0", "Takes several elements.")],
        ..Doc::NEW
    },
    subcommands: &[],
    run: DataRun::Keys(rpush),
};

pub(super) const LPUSHX: Command = Command {
    name: "LPUSHX",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    acl: Acl::LIST,
    keys: &[KeySpec::one(1, Access::RW.or(Access::INSERT))],
    doc: Doc {
        group: Group::List,
        since: "2.2.0",
        summary: "Pushes elements at the head of a list that exists.",
        complexity: "O(N) where N is the number of elements pushed.",
        args: &[Arg::key("key", 0), Arg::str("element").many()],
        history: &[("4.0.0", "Takes several elements.")],
        ..Doc::NEW
    },
    subcommands: &[],
    run: DataRun::Keys(lpushx),
};

pub(super) const RPUSHX: Command = Command {
    name: "RPUSHX",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    acl: Acl::LIST,
    keys: &[KeySpec::one(1, Access::RW.or(Access::INSERT))],
    doc: Doc {
        group: Group::List,
        since: "2.2.0",
        summary: "Pushes elements at the tail of a list that exists.",
        complexity: "O(N) where N is the number of elements pushed.",
        args: &[Arg::key("key", 0), Arg::str("element").many()],
        history: &[("4.0.0", "Takes several elements.")],
        ..Doc::NEW
    },
    subcommands: &[],
    run: DataRun::Keys(rpushx),
};

fn lpush(call: &mut Call<'_, '_>) -> Done {
    push(call, End::Head)
}

fn rpush(call: &mut Call<'_, '_>) -> Done {
    push(call, End::Tail)
}

fn lpushx(call: &mut Call<'_, '_>) -> Done {
    push_existing(call, End::Head)
}

fn rpushx(call: &mut Call<'_, '_>) -> Done {
    push_existing(call, End::Tail)
}

fn push(call: &mut Call<'_, '_>, end: End) -> Done {
    let key = call.key(0);
    let list = call.view.list_or_new(&key)?;
    let len = push_all(list, end, call.args);
    finish(call, len)
}

fn push_existing(call: &mut Call<'_, '_>, end: End) -> Done {
    let key = call.key(0);
    let Some(list) = call.view.list_mut(&key)? else {
        call.reply.int(0);
        return Ok(());
    };
    let len = push_all(list, end, call.args);
    finish(call, len)
}

/// The length afterwards. Several elements are announced together, because the encoding's name changes once for all.
fn push_all(mut list: ListMut<'_>, end: End, args: Args<'_>) -> u64 {
    let count = args.len() as u64 - 2;
    if count > 1 {
        list.announce(count, args.iter_from(2).map(|element| element.len() as u64).sum());
    }
    for element in args.iter_from(2) {
        list.push(end, element);
    }
    list.len()
}

fn finish(call: &mut Call<'_, '_>, len: u64) -> Done {
    call.view.dirty(call.args.len() as u64 - 2);
    call.reply.int(len as i64);
    Ok(())
}
