//! WAIT and WAITAOF: wait until replicas, or the append-only file, have what this client wrote. There are no
//! replicas yet, so the number of those that have it is 0: a client that asks for more waits until its time
//! is over, as with a primary that has lost its replicas.
use crate::core::blocking::deadline_if_any;
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use crate::core::session::Local;
use crate::state::append_only::Phase;
use base::text::parse_i64;
use command::{Acl, Arg, Arity, Doc, Done, Error, Flags, Group};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&WAIT, &WAITAOF]);

const ABOUT: Doc = Doc {
    group: Group::Generic,
    complexity: "O(1)",
    tips: &["request_policy:all_shards", "response_policy:agg_min"],
    ..Doc::NEW
};

const WAIT: ServerCommand = ServerCommand {
    name: "WAIT",
    arity: Arity::Exactly(3),
    flags: Flags::BLOCKING,
    acl: Acl::CONNECTION,
    doc: Doc {
        since: "3.0.0",
        summary: "Waits until so many replicas have what this client wrote, and answers how many do.",
        args: &[Arg::int("numreplicas"), Arg::int("timeout")],
        ..ABOUT
    },
    run: ServerRun::Anywhere(wait),
    ..ROW
};

const WAITAOF: ServerCommand = ServerCommand {
    name: "WAITAOF",
    arity: Arity::Exactly(4),
    flags: Flags::BLOCKING,
    acl: Acl::CONNECTION,
    doc: Doc {
        since: "7.2.0",
        summary: "Waits until append-only files, here and on replicas, have what this client wrote.",
        args: &[Arg::int("numlocal"), Arg::int("numreplicas"), Arg::int("timeout")],
        ..ABOUT
    },
    run: ServerRun::Anywhere(waitaof),
    ..ROW
};

/// WAIT: answers how many replicas have this client's writes. A number of 0 or less is reached at once.
fn wait(call: &mut ServerCall<'_>) -> Done {
    let wanted = parse_i64(call.args.at(1)).ok_or_else(Error::not_an_integer)?;
    let until = deadline_if_any(call.args.at(2), call.server.clock.steady_up())?;
    if wanted <= 0 {
        call.reply.int(0);
    } else {
        call.wait(until, |reply| reply.int(0));
    }
    Ok(())
}

/// WAITAOF: answers how many local files and how many replicas' files have this client's writes on the disk.
/// To ask for the local file is an error while there is none.
fn waitaof(call: &mut ServerCall<'_>) -> Done {
    let local = parse_i64(call.args.at(1)).ok_or_else(Error::not_an_integer)?;
    if !(0..=1).contains(&local) {
        return Err(Error::not_between(0, 1));
    }
    let wanted = parse_i64(call.args.at(2)).filter(|n| *n >= 0).ok_or_else(Error::not_positive)?;
    let until = deadline_if_any(call.args.at(3), call.server.clock.steady_up())?;
    let append = &call.server.append;
    let is_on = append.is_wanted();
    if local == 1 && !is_on {
        return Err(error::no_append_only_file());
    }
    let number = call.session.records_end;
    // While the file begins, its snapshot is not there yet: then nothing is on the disk.
    let has_it = is_on && append.phase() == Phase::On && append.synced() >= number;
    let answer = |reply: &mut resp::Reply, local: bool| {
        reply.array(2);
        reply.int(i64::from(local));
        reply.int(0);
    };
    if wanted == 0 && (local == 0 || has_it) {
        answer(call.reply, has_it);
        return Ok(());
    }
    call.wait(until, |reply| answer(reply, has_it));
    if is_on
        && !has_it
        && let Some(waiting) = &mut call.session.waiting
    {
        let mut reply = resp::Reply::new(call.reply.protocol);
        answer(&mut reply, true);
        let (is_all, is_asked) = (wanted == 0, local == 1);
        waiting.local = Some(Local { number, reply: reply.out, is_all, is_asked });
    }
    Ok(())
}
