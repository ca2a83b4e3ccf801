//! What a client says about its own connection: who it is (HELLO, AUTH), which protocol and database it
//! wants, whether anybody is there (PING, ECHO), and that it leaves (QUIT) or starts afresh (RESET).
//!
//! A client begins as the user `default`. If that user has a password, or is off, it has to log in before
//! anything else (`Session::must_log_in`); the commands with the flag `NO_AUTH` are those by which it can.
//! `state/acl` says who may do what.
use crate::commands::client;
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use crate::core::modes::Modes;
use crate::core::permission;
use crate::core::session::After;
use crate::core::session::ReplyMode;
use crate::state::REDIS_VERSION;
use crate::state::acl::DEFAULT_USER;
use command::{Acl, Arg, Arity, Deprecated, Doc, Done, Error, Flags, Group};
use resp::Protocol;

pub(crate) const COMMANDS: &[&ServerCommand] =
    command::checked(&[&AUTH, &ECHO, &HELLO, &PING, &QUIT, &RESET, &SELECT]);

/// The flags of commands that work before the client has given the password.
const UNKNOWN_CLIENT: Flags = Flags::NOSCRIPT
    .or(Flags::LOADING)
    .or(Flags::STALE)
    .or(Flags::FAST)
    .or(Flags::NO_AUTH)
    .or(Flags::ALLOW_BUSY);
const SINCE_FIRST: Doc = Doc { group: Group::Connection, since: "1.0.0", complexity: "O(1)", ..Doc::NEW };

const PING: ServerCommand = ServerCommand {
    name: "PING",
    arity: Arity::AtLeast(1),
    flags: Flags::FAST.or(Flags::TELLS_HEALTH),
    acl: Acl::CONNECTION,
    doc: Doc {
        summary: "Answers PONG, or with the message it was given.",
        args: &[Arg::str("message").optional()],
        tips: crate::core::call::ON_ALL_SHARDS,
        ..SINCE_FIRST
    },
    run: ServerRun::Anywhere(ping),
    ..ROW
};

const ECHO: ServerCommand = ServerCommand {
    name: "ECHO",
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST),
    acl: Acl::CONNECTION,
    doc: Doc { summary: "Answers with the message.", args: &[Arg::str("message")], ..SINCE_FIRST },
    run: ServerRun::Anywhere(echo),
    ..ROW
};

const HELLO: ServerCommand = ServerCommand {
    name: "HELLO",
    arity: Arity::AtLeast(1),
    flags: UNKNOWN_CLIENT.or(Flags::HEARS_LESS),
    acl: Acl::CONNECTION,
    doc: Doc {
        group: Group::Connection,
        since: "6.0.0",
        summary: "Agrees on the protocol, and tells client and server about each other.",
        complexity: "O(1)",
        args: &[Arg::block("arguments", HELLO_ARGS).optional()],
        history: &[("6.2.0", "Without arguments it only reports.")],
        ..Doc::NEW
    },
    run: ServerRun::Anywhere(hello),
    ..ROW
};

const HELLO_ARGS: &[Arg] = &[
    Arg::int("protover"),
    Arg::block("auth", &[Arg::str("username").secret(), Arg::str("password").secret()])
        .after("AUTH")
        .optional(),
    Arg::str("clientname").after("SETNAME").optional(),
];

const AUTH: ServerCommand = ServerCommand {
    name: "AUTH",
    arity: Arity::AtLeast(2),
    flags: UNKNOWN_CLIENT,
    acl: Acl::CONNECTION,
    doc: Doc {
        summary: "Says who the client is.",
        complexity: "O(N) where N is the number of passwords of the user.",
        args: &[Arg::str("username").since("6.0.0").optional().secret(), Arg::str("password").secret()],
        history: &[("6.0.0", "Takes a user name.")],
        ..SINCE_FIRST
    },
    run: ServerRun::Anywhere(auth),
    ..ROW
};

const SELECT: ServerCommand = ServerCommand {
    name: "SELECT",
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST),
    acl: Acl::CONNECTION,
    doc: Doc { summary: "Chooses the database.", args: &[Arg::int("index")], ..SINCE_FIRST },
    run: ServerRun::Anywhere(select),
    ..ROW
};

const QUIT: ServerCommand = ServerCommand {
    name: "QUIT",
    arity: Arity::AtLeast(1),
    flags: UNKNOWN_CLIENT.or(Flags::NEVER_QUEUED).or(Flags::HEARS_LESS),
    acl: Acl::CONNECTION,
    doc: Doc {
        summary: "Ends the connection.",
        deprecated: Some(Deprecated { since: "7.2.0", replaced_by: "just closing the connection" }),
        ..SINCE_FIRST
    },
    run: ServerRun::Anywhere(quit),
    ..ROW
};

const RESET: ServerCommand = ServerCommand {
    name: "RESET",
    arity: Arity::Exactly(1),
    flags: UNKNOWN_CLIENT.or(Flags::NEVER_QUEUED).or(Flags::HEARS_LESS),
    acl: Acl::CONNECTION,
    doc: Doc { since: "6.2.0", summary: "Makes the connection as if it were new.", ..SINCE_FIRST },
    run: ServerRun::Anywhere(reset),
    ..ROW
};

fn ping(call: &mut ServerCall<'_>) -> Done {
    match call.args.len() {
        1 | 2 if call.session.modes.has(Modes::LISTENS_ONLY) => {
            call.reply.array(2);
            call.reply.bulk(b"pong");
            call.reply.bulk(call.args.get(1).unwrap_or_default());
        }
        1 => call.reply.pong(),
        2 => call.reply.bulk(call.args.at(1)),
        _ => return Err(Error::wrong_arity("ping")),
    }
    Ok(())
}

fn echo(call: &mut ServerCall<'_>) -> Done {
    call.reply.bulk(call.args.at(1));
    Ok(())
}

fn select(call: &mut ServerCall<'_>) -> Done {
    let index = base::text::parse_i64(call.args.at(1)).ok_or_else(Error::not_an_integer)?;
    if i32::try_from(index).is_err() {
        return Err(Error::not_between(i64::from(i32::MIN), i64::from(i32::MAX)));
    }
    match u16::try_from(index) {
        Ok(db) if db < call.server.keyspace.databases() => choose_db(call, db),
        _ => return Err(Error::no_such_db()),
    }
    call.reply.ok();
    Ok(())
}

/// From here on the connection's commands work on this database.
fn choose_db(call: &mut ServerCall<'_>, db: u16) {
    call.session.db = db;
    call.session.record.details().db = db;
}

fn quit(call: &mut ServerCall<'_>) -> Done {
    call.session.after = After::Close;
    call.reply.ok();
    Ok(())
}

/// RESET: everything that the client has said of the connection is forgotten, also its password. What follows
/// in the same batch was parsed under the old state, so the turn ends here if the client has to give the
/// password again.
fn reset(call: &mut ServerCall<'_>) -> Done {
    call.session.give_up_transaction(call.server);
    call.session.unwatch(call.server);
    client::tracking::end(call);
    call.session.log_out(&call.server.accounts.users());
    if call.session.modes.has(Modes::NOT_LOGGED_IN) {
        // What follows is parsed under the limits of those who have not said the password.
        call.session.after = After::Yield;
    }
    if call.session.reply_mode != ReplyMode::Skip {
        // With Skip, RESET is itself the request that is not answered.
        call.session.reply_mode = ReplyMode::On;
    }
    call.session.leaves_trace = true;
    call.server.monitors.remove(&call.session.record);
    call.session.unsubscribe_from_all(call.server);
    choose_db(call, 0);
    speak(call, Protocol::Resp2);
    let mut details = call.session.record.details();
    details.name.clear();
    (details.is_spared, details.is_touchless) = (false, false);
    drop(details);
    client::note_names(call);
    call.reply.simple("RESET");
    Ok(())
}

/// From this reply on the connection uses this protocol.
fn speak(call: &mut ServerCall<'_>, protocol: Protocol) {
    call.reply.protocol = protocol;
    call.session.record.details().is_resp3 = protocol == Protocol::Resp3;
    call.session.note_subscriptions(protocol);
}

fn auth(call: &mut ServerCall<'_>) -> Done {
    match call.args.len() {
        2 if call.server.accounts.users().default_user().is_nopass() => {
            return Err(error::no_password_is_set());
        }
        2 => log_in(call, DEFAULT_USER, call.args.at(1))?,
        3 => log_in(call, call.args.at(1), call.args.at(2))?,
        _ => return Err(Error::syntax()),
    }
    call.reply.ok();
    Ok(())
}

/// Lets the client in as this user, or refuses it and enters the attempt in ACL LOG. Where there is no such
/// user, the password is compared with the default user's, so that the time tells little of which users there
/// are.
fn log_in(call: &mut ServerCall<'_>, name: &[u8], password: &[u8]) -> Done {
    let users = call.server.accounts.users();
    let user = users.find(name);
    let is_admitted = user.unwrap_or_else(|| users.default_user()).admits(password);
    let Some(user) = user.filter(|_| is_admitted) else {
        permission::note_login(call.server, call.session, call.args.at(0), name);
        return Err(error::wrong_password());
    };
    call.session.log_in(user);
    Ok(())
}

/// What HELLO asks for, checked before anything of it is done.
#[derive(Default)]
struct Greeting<'a> {
    protocol: Option<Protocol>,
    login: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

/// HELLO: all of it happens, or an error says why none of it does. It answers with facts about the server, in
/// the new protocol.
fn hello(call: &mut ServerCall<'_>) -> Done {
    let greeting = greeting(&call.args)?;
    if let Some((user, password)) = greeting.login {
        log_in(call, user, password)?;
    }
    // Unlike other commands HELLO insists on a login also where the password was taken away since the
    // client connected.
    if call.session.modes.has(Modes::NOT_LOGGED_IN) {
        return Err(error::hello_without_login());
    }
    if let Some(name) = greeting.name {
        call.session.record.details().name = name.to_vec();
        client::note_names(call);
    }
    if let Some(protocol) = greeting.protocol {
        speak(call, protocol);
    }
    introduce(call);
    Ok(())
}

/// Reads HELLO's arguments.
fn greeting<'a>(args: &resp::Args<'a>) -> Result<Greeting<'a>, Error> {
    let mut greeting = Greeting::default();
    let Some(version) = args.get(1) else { return Ok(greeting) };
    greeting.protocol = Some(protocol(version)?);
    let mut rest: Vec<&[u8]> = args.iter_from(2).collect();
    rest.reverse();
    while let Some(option) = rest.pop() {
        if option.eq_ignore_ascii_case(b"AUTH") && rest.len() >= 2 {
            greeting.login = rest.pop().zip(rest.pop());
        } else if option.eq_ignore_ascii_case(b"SETNAME") && !rest.is_empty() {
            greeting.name = rest.pop();
            client::check_word(greeting.name.unwrap_or_default(), "Client names")?;
        } else {
            return Err(error::hello_option(option));
        }
    }
    Ok(greeting)
}

/// The protocol of this number: RESP2 or RESP3.
fn protocol(version: &[u8]) -> Result<Protocol, Error> {
    match base::text::parse_i64(version) {
        None => Err(error::protocol_not_an_integer()),
        Some(2) => Ok(Protocol::Resp2),
        Some(3) => Ok(Protocol::Resp3),
        Some(_) => Err(error::unsupported_protocol()),
    }
}

/// The facts about the server, by which client libraries choose what to send.
fn introduce(call: &mut ServerCall<'_>) {
    let reply = &mut *call.reply;
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(REDIS_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.int(if reply.protocol == Protocol::Resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.int(call.session.record.id as i64);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
}
