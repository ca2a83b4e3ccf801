//! Which permissions a request needs: for its command, for its keys, which the row's key specs find, with
//! what it does to each, and for its channels. `state/acl` says which permissions a user has. Only sessions
//! of users with limits come here (`Modes::RESTRICTED`).
use crate::core::client_line;
use crate::core::error;
use crate::core::modes::Modes;
use crate::core::registry::Row;
use crate::core::server::Server;
use crate::core::session::{ClientRecord, Session};
use crate::state::acl::log::{Cause, Context, Refused};
use crate::state::acl::{ChannelUse, Denied, KeyUse, Reason, User, Wanted};
use base::Millis;
use command::{Access, ArgKind, Done, Flags, KeysOrAll};
use resp::Args;
use std::sync::atomic::Ordering::Relaxed;

/// Whether the user may send this request, and if not, what stands in the way.
#[cold]
pub(crate) fn check(user: &User, row: &Row, args: &Args<'_>) -> Result<(), Denied> {
    let (keys, channels) = (keys(row, args), channels(row, args));
    user.check(&wanted(row, args, &keys, &channels))
}

fn wanted<'a>(
    row: &Row,
    args: &Args<'a>,
    keys: &'a [KeyUse<'a>],
    channels: &'a [ChannelUse<'a>],
) -> Wanted<'a> {
    Wanted {
        command: row.number,
        is_free: row.flags.has(Flags::NO_AUTH),
        first_arg: args.get(1),
        keys,
        channels,
    }
}

/// The keys that a request names. A key whose value it neither reads nor changes, as EXISTS does, counts as
/// neither read nor written.
fn keys<'a>(row: &Row, args: &Args<'a>) -> Vec<KeyUse<'a>> {
    let key = |key: command::KeyUse| {
        let position = key.position as usize;
        let changes = [Access::INSERT, Access::DELETE, Access::UPDATE];
        KeyUse {
            name: args.at(position),
            position,
            reads: key.access.has(Access::ACCESS),
            writes: changes.into_iter().any(|change| key.access.has(change)),
        }
    };
    command::key_uses(row.keys, args).found.into_iter().map(key).collect()
}

/// The channels that a request names, by the grammar of its row: the first argument of a command of
/// publish/subscribe, and its repetitions. Commands with which it may be left out unsubscribe, or list
/// channels: that needs no permission.
fn channels<'a>(row: &Row, args: &Args<'a>) -> Vec<ChannelUse<'a>> {
    let named = row.doc.args.first().filter(|arg| row.flags.has(Flags::PUBSUB) && !arg.optional);
    let Some(named) = named else { return Vec::new() };
    let end = if named.multiple { args.len() } else { args.len().min(2) };
    let is_pattern = named.kind == ArgKind::Pattern;
    (1..end).map(|position| ChannelUse { name: args.at(position), position, is_pattern }).collect()
}

/// Refuses an option that lets a request read keys which it does not name, unless its user may read every
/// key.
#[cold]
pub(crate) fn check_options(session: &Session, row: &Row, ways: &KeysOrAll, args: &Args<'_>) -> Done {
    if !session.modes.has(Modes::RESTRICTED) {
        return Ok(());
    }
    let (keys, channels) = (keys(row, args), channels(row, args));
    if session.user.reads_all_keys_in(&wanted(row, args, &keys, &channels)) {
        return Ok(());
    }
    match (ways.reaches_further)(args) {
        Some(option) => Err(error::sort_pattern_denied(option)),
        None => Ok(()),
    }
}

/// Counts what a user's rules refused, and keeps it for ACL LOG.
pub(crate) fn note(
    server: &Server,
    by: (&ClientRecord, Context),
    row: &Row,
    (user, denied): (&User, Denied),
    args: &Args<'_>,
) {
    let counter = match denied.reason {
        Reason::Command => &server.stats.commands_denied,
        Reason::Key => &server.stats.keys_denied,
        Reason::Channel => &server.stats.channels_denied,
    };
    counter.fetch_add(1, Relaxed);
    let object = match denied.reason {
        Reason::Command => row.full_name.as_bytes(),
        Reason::Key | Reason::Channel => args.at(denied.position),
    };
    keep(server, by, Cause::Rules(denied.reason), (object, user.name()));
}

/// Counts a login that was refused, and keeps it for ACL LOG. `command` is what the client called it.
pub(crate) fn note_login(server: &Server, session: &Session, command: &[u8], username: &[u8]) {
    server.stats.logins_denied.fetch_add(1, Relaxed);
    keep(server, (&session.record, context(session)), Cause::Login, (command, username));
}

fn keep(
    server: &Server,
    (record, context): (&ClientRecord, Context),
    cause: Cause,
    (object, username): (&[u8], &[u8]),
) {
    let now = Millis(server.clock.now_us() / 1000);
    let (object, username) = (object.to_vec(), username.to_vec());
    let what = Refused { cause, context, object, username, client: line(server, record) };
    server.accounts.log.note(what, now, server.config().acl_log_len_max);
}

/// The client as CLIENT LIST shows it.
fn line(server: &Server, record: &ClientRecord) -> Vec<u8> {
    let now_ms = server.clock.steady_us() / 1000;
    client_line::line_of(record, &server.registry, now_ms).into_bytes()
}

/// Whether the request that runs is part of a transaction, as ACL LOG shows it.
pub(crate) fn context(session: &Session) -> Context {
    if session.modes.has(Modes::SCRIPT) {
        return Context::Lua;
    }
    let in_transaction = session.modes.has(Modes::TRANSACTION) || session.modes.has(Modes::EXECUTING);
    if in_transaction { Context::Multi } else { Context::Toplevel }
}
