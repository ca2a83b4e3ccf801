//! ACL SETUSER, DELUSER, LOAD and SAVE. All of them run outside the worker's gate: a file may be slow, and a
//! change of users waits until another one has ended.
//!
//! A change is in force when its reply is sent: nothing that runs after that, on any worker, runs by the old
//! rules (`state/acl`). Connections of users who are removed are closed and run nothing more.
use super::{ABOUT, PATTERNS_SINCE, PER_USER};
use crate::core::call::{ADMIN, ON_ALL_NODES, ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use crate::core::mailbox::Message;
use crate::core::session::After;
use crate::state::acl::{self, DEFAULT_USER, Users, has_spaces};
use crate::state::config::{merged, reason, rewrite};
use command::{Arg, Arity, Doc, Done, Error};
use std::path::Path;

pub(super) const SETUSER: ServerCommand = ServerCommand {
    name: "SETUSER",
    arity: Arity::AtLeast(3),
    flags: ADMIN,
    doc: Doc {
        summary: "Makes or changes a user by rules.",
        complexity: "O(N) where N is the number of rules given.",
        args: &[Arg::str("username").secret(), Arg::str("rule").secret().optional().many()],
        history: &[PATTERNS_SINCE, ("7.0.0", "Selectors, and permissions for keys.")],
        tips: ON_ALL_NODES,
        ..ABOUT
    },
    run: ServerRun::Outside(setuser),
    ..ROW
};

pub(super) const DELUSER: ServerCommand = ServerCommand {
    name: "DELUSER",
    arity: Arity::AtLeast(3),
    flags: ADMIN,
    doc: Doc {
        summary: "Removes users, and closes their connections.",
        complexity: "O(N+C) where N is the number of users named and C that of the connections.",
        args: &[Arg::str("username").secret().many()],
        tips: ON_ALL_NODES,
        ..ABOUT
    },
    run: ServerRun::Outside(deluser),
    ..ROW
};

pub(super) const LOAD: ServerCommand = ServerCommand {
    name: "LOAD",
    arity: Arity::Exactly(2),
    flags: ADMIN,
    doc: Doc { summary: "Reads the ACL file again.", complexity: PER_USER, ..ABOUT },
    run: ServerRun::Outside(load),
    ..ROW
};

pub(super) const SAVE: ServerCommand = ServerCommand {
    name: "SAVE",
    arity: Arity::Exactly(2),
    flags: ADMIN,
    doc: Doc {
        summary: "Writes the users to the ACL file.",
        complexity: PER_USER,
        tips: ON_ALL_NODES,
        ..ABOUT
    },
    run: ServerRun::Outside(save),
    ..ROW
};

/// ACL SETUSER: all of the rules are applied or none.
fn setuser(call: &mut ServerCall<'_>) -> Done {
    let name = call.args.at(2);
    if has_spaces(name) {
        return Err(error::user_name_with_spaces());
    }
    let rules =
        merged(call.args.iter_from(3)).map_err(|open| error::selector_not_closed(call.args.at(3 + open)))?;
    replace(call, |users, call| {
        let mut next = users.clone();
        next.set(name, &rules, &call.server.rules())
            .map_err(|(rule, why)| error::wrong_rule(rule, why.text()))?;
        Ok((next, Leaves::Nobody))
    })?;
    call.reply.ok();
    Ok(())
}

/// ACL DELUSER: removes those of the named users that exist; nobody, if the default user is named.
fn deluser(call: &mut ServerCall<'_>) -> Done {
    let names: Vec<&[u8]> = call.args.iter_from(2).collect();
    if names.contains(&DEFAULT_USER) {
        return Err(error::default_user_stays());
    }
    let mut removed = 0;
    replace(call, |users, _| {
        let mut next = users.clone();
        removed = names.iter().filter(|name| next.remove(name)).count();
        Ok((next, if removed > 0 { Leaves::Somebody } else { Leaves::Nobody }))
    })?;
    call.reply.int(removed as i64);
    Ok(())
}

fn load(call: &mut ServerCall<'_>) -> Done {
    let config = call.server.config();
    let file = config.acl_file.as_deref().ok_or_else(error::no_acl_file)?;
    replace(call, |users, call| {
        let next = acl::file::load(file, users, &call.server.rules());
        next.map(|next| (next, Leaves::Somebody)).map_err(|faults| error::acl_file_refused(&faults))
    })?;
    call.reply.ok();
    Ok(())
}

fn save(call: &mut ServerCall<'_>) -> Done {
    let config = call.server.config();
    let file = config.acl_file.as_deref().ok_or_else(error::no_acl_file)?;
    let done = call.server.accounts.with_users_kept(|users| write(file, users));
    if let Err(error) = done {
        call.server.log.warning(&format!("ACL SAVE failed: {}", reason(&error)));
        return Err(error::acl_file_not_saved());
    }
    call.reply.ok();
    Ok(())
}

fn write(file: &Path, users: &Users) -> std::io::Result<()> {
    rewrite::replace(file, &acl::file::written(users))
}

/// Whether a change removes users, whose connections are looked for then.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    Nobody,
    Somebody,
}

/// Puts other users in the place of the present ones, and closes the connections of those who are gone. The
/// client that asks gets its reply first.
fn replace<'c>(
    call: &mut ServerCall<'c>,
    change: impl FnOnce(&Users, &ServerCall<'c>) -> Result<(Users, Leaves), Error>,
) -> Done {
    let mut leaves = Leaves::Nobody;
    let after = call.server.accounts.replace(|users| {
        let next;
        (next, leaves) = change(users, call)?;
        Ok::<_, Error>(next)
    })?;
    if after.renewed(&call.session.user).is_none() {
        call.session.after = After::Close;
    }
    call.server.mailboxes.iter().for_each(|mailbox| mailbox.send(Message::UsersChanged));
    if leaves == Leaves::Nobody {
        return Ok(());
    }
    let clients: Vec<_> = call.server.clients().values().cloned().collect();
    // A client may have logged in meanwhile, as a user made after this change. Its user's name is read first
    // and the users in force after that, so a name that is missing there is of a user who was removed.
    let accounts = &call.server.accounts;
    let is_gone = |name: &[u8]| after.find(name).is_none() && accounts.users().find(name).is_none();
    for record in clients.iter().filter(|record| record.id != call.session.record.id) {
        if is_gone(&record.details().user) {
            call.server.kill(record);
        }
    }
    Ok(())
}
