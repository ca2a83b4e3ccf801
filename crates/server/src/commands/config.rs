//! CONFIG GET, SET, RESETSTAT, REWRITE and HELP.
//!
//! CONFIG SET changes a copy of the configuration, pair by pair, and puts it in force only if every pair is
//! good and the system agrees to what it must be told (a folder, a port, a limit of open files,
//! certificates). So all of a CONFIG SET happens or nothing of it. It runs outside the worker's gate, because
//! the system may take its time.
use super::help;
use crate::core::call::{ADMIN, ON_ALL_NODES, ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use crate::core::mailbox::Message;
use crate::core::memory_limit::warn_of_low_limit;
use crate::core::persistence::append;
use crate::core::server::Server;
use crate::state::acl;
use crate::state::config::setting::{Change, Setting, find, listed, until_nul};
use crate::state::config::{Allow, Binds, Config, is_of_tls, reason, rewrite, setting};
use crate::state::system::{adjust_oom_score, open_files};
use crate::state::tls;
use command::{Arg, Arity, Doc, Done, Error, Flags, Group};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&CONFIG]);

const CONFIG: ServerCommand = ServerCommand {
    name: "CONFIG",
    arity: Arity::AtLeast(2),
    doc: Doc {
        group: Group::Server,
        since: "2.0.0",
        summary: "Holds the commands that read and change settings.",
        complexity: "See each subcommand.",
        ..Doc::NEW
    },
    subcommands: &[&GET, &HELP, &RESETSTAT, &REWRITE, &SET],
    run: ServerRun::Container,
    ..ROW
};

const GET: ServerCommand = ServerCommand {
    name: "GET",
    arity: Arity::AtLeast(3),
    flags: ADMIN,
    doc: Doc {
        group: Group::Server,
        since: "2.0.0",
        summary: "Shows the settings whose names match the patterns.",
        complexity: "O(N*S) where N is the number of names or patterns given and S that of the settings.",
        args: &[Arg::str("parameter").many()],
        history: &[("7.0.0", "Takes several patterns.")],
        ..Doc::NEW
    },
    run: ServerRun::Anywhere(get),
    ..ROW
};

const SET: ServerCommand = ServerCommand {
    name: "SET",
    arity: Arity::AtLeast(4),
    flags: ADMIN,
    doc: Doc {
        group: Group::Server,
        since: "2.0.0",
        summary: "Changes settings while the server runs, all of them or none.",
        complexity: "O(N*S) where N is the number of settings named and S that of all settings.",
        args: &[Arg::block(
            "data",
            &[Arg::str("parameter"), Arg::str("value").secret_by_name(setting::is_secret)],
        )
        .many()],
        history: &[("7.0.0", "Takes several settings.")],
        tips: ON_ALL_NODES,
        ..Doc::NEW
    },
    run: ServerRun::Outside(set),
    ..ROW
};

const RESETSTAT: ServerCommand = ServerCommand {
    name: "RESETSTAT",
    arity: Arity::Exactly(2),
    flags: ADMIN,
    doc: Doc {
        group: Group::Server,
        since: "2.0.0",
        summary: "Sets INFO's statistics back to zero.",
        complexity: "O(1)",
        tips: ON_ALL_NODES,
        ..Doc::NEW
    },
    run: ServerRun::Shared(reset_stats),
    ..ROW
};

const REWRITE: ServerCommand = ServerCommand {
    name: "REWRITE",
    arity: Arity::Exactly(2),
    flags: ADMIN,
    doc: Doc {
        group: Group::Server,
        since: "2.8.0",
        summary: "Writes the settings in force back to the configuration file.",
        complexity: "O(1)",
        tips: ON_ALL_NODES,
        ..Doc::NEW
    },
    run: ServerRun::Outside(rewrite),
    ..ROW
};

const HELP: ServerCommand = ServerCommand {
    name: "HELP",
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.or(Flags::STALE),
    doc: help::doc(Group::Server, "5.0.0"),
    run: ServerRun::Anywhere(help),
    ..ROW
};

/// CONFIG GET: all settings that a pattern means, each once, by their names and older names.
fn get(call: &mut ServerCall<'_>) -> Done {
    let config = call.server.config();
    // By the name in lower case: the spelling that is answered, and the setting.
    let mut found: BTreeMap<Vec<u8>, (&[u8], &Setting)> = BTreeMap::new();
    for asked in call.args.iter_from(2) {
        let pattern = until_nul(asked);
        if !pattern.iter().any(|b| b"*?[".contains(b)) {
            // A name is answered in the spelling in which it was first asked for.
            if let Some(setting) = find(asked) {
                found.entry(pattern.to_ascii_lowercase()).or_insert((asked, setting));
            }
            continue;
        }
        let names = listed().flat_map(|s| s.names().map(move |n| (n.as_bytes(), s)));
        for (name, setting) in names.filter(|(name, _)| base::glob::matches_ignore_case(pattern, name)) {
            found.entry(name.to_vec()).or_insert((name, setting));
        }
    }
    call.reply.map(found.len());
    for (name, setting) in found.values() {
        call.reply.bulk(name);
        call.reply.bulk(&setting.render(&config));
    }
    Ok(())
}

/// CONFIG SET. Where the server is to listen at names that have to be looked up, that is done first without
/// any lock, and then all is checked again, since the configuration may have changed meanwhile.
fn set(call: &mut ServerCall<'_>) -> Done {
    let args: Vec<&[u8]> = call.args.iter_from(2).collect();
    if !args.len().is_multiple_of(2) {
        return Err(Error::syntax());
    }
    if call.server.persistence.is_loading() && args.chunks_exact(2).any(|pair| waits_for_load(pair[0])) {
        return Err(error::loading());
    }
    let is_local = call.session.record.is_local();
    let limits = call.server.config().client_output_buffer;
    let mut binds = None;
    loop {
        let done = call.server.replace_config(|present| {
            let next = changed(present, &args, is_local)?;
            if listens_elsewhere(present, &next) && binds.as_ref().is_none_or(|b: &Binds| !b.are_of(&next)) {
                return Err(Obstacle::UnknownNames(Box::new(next)));
            }
            put_in_force(call.server, present, &next, (binds.as_ref(), &args))?;
            if next.requirepass != present.requirepass {
                set_default_password(call.server, &next.requirepass);
            }
            call.server.log.set_level(next.loglevel);
            if next.maxmemory_bytes != present.maxmemory_bytes {
                warn_of_low_limit(call.server, next.maxmemory_bytes);
            }
            Ok(next)
        });
        match done {
            Ok(()) => break,
            Err(Obstacle::Refusal(error)) => return Err(error),
            // No lock is held while a name server is asked. Then the request is checked from its beginning.
            Err(Obstacle::UnknownNames(next)) => binds = Some(Binds::look_up(&next)),
        }
    }
    if call.server.config().client_output_buffer != limits {
        call.server.mailboxes.iter().for_each(|mailbox| mailbox.send(Message::OutputLimitsChanged));
    }
    call.reply.ok();
    Ok(())
}

/// Whether this setting cannot change while the data is loaded, whatever its value. The others are those
/// with files in the folder, which are being read.
fn waits_for_load(name: &[u8]) -> bool {
    find(name).is_some_and(|setting| matches!(setting.name, "dir" | "repl-diskless-load"))
}

/// Makes the value of `requirepass` the default user's only password.
fn set_default_password(server: &Server, password: &[u8]) {
    let done = server.accounts.replace(|users| {
        let mut next = users.clone();
        next.set_default_password(password, &server.rules());
        Ok::<_, std::convert::Infallible>(next)
    });
    let _ = done.expect("the rules are right whatever the password is");
}

/// Why a change is not in force.
enum Obstacle {
    Refusal(Error),
    /// The names in this configuration's `bind` have to be looked up first.
    UnknownNames(Box<Config>),
}

impl From<Error> for Obstacle {
    fn from(error: Error) -> Obstacle {
        Obstacle::Refusal(error)
    }
}

/// Whether the listeners have to change.
fn listens_elsewhere(present: &Config, next: &Config) -> bool {
    next.port != present.port || next.tls_port != present.tls_port || next.bind != present.bind
}

/// The configuration with these names and values put into it; or which of them is refused, and why.
fn changed(present: &Config, pairs: &[&[u8]], is_local: bool) -> Result<Config, Error> {
    let mut settings: Vec<(&str, &Setting, &[u8])> = Vec::new();
    for pair in pairs.chunks_exact(2) {
        let (name, setting) = changeable(present, pair[0], is_local)?;
        if settings.iter().any(|(n, ..)| *n == name) {
            return Err(failed(&String::from_utf8_lossy(pair[0]), "duplicate parameter"));
        }
        settings.push((name, setting, pair[1]));
    }
    let mut next = present.clone();
    for (name, setting, value) in settings {
        setting.set_from_one(&mut next, value).map_err(|why| failed(name, &why))?;
        // A value that asks for what Sardine does not do is refused, unless it is the present one: a
        // configuration file may have set it, and clients write back what they have read.
        if let Some(why) = setting.untrue(&next)
            && setting.render(&next) != setting.render(present)
        {
            return Err(failed(name, &format!("not supported: {why}")));
        }
    }
    Ok(next)
}

/// Tells the system what it must know of the next configuration. If it refuses, the folder, the OOM score and
/// the certificates are put back, so that nothing has changed; a higher limit of open files stays, which does
/// no harm.
fn put_in_force(
    server: &Server,
    present: &Config,
    next: &Config,
    (binds, pairs): (Option<&Binds>, &[&[u8]]),
) -> Result<(), Error> {
    let certificates = tls_named(pairs).map(|name| certificates_of(server, next, name)).transpose()?;
    if next.maxclients > present.maxclients {
        open_files::room_for(next).map_err(too_many_clients)?;
    }
    let former_dir = (next.dir != present.dir).then(|| go_to(&next.dir)).transpose()?;
    let go_back = || {
        let _ = former_dir.as_ref().map(nix::unistd::fchdir);
    };
    if adjust_oom_score(present.oom_score, next).is_err() {
        go_back();
        return Err(failed("oom-score-adj", "Failed to set current oom_score_adj. Check server logs."));
    }
    let put_back = || {
        go_back();
        let _ = adjust_oom_score(next.oom_score, present);
    };
    if next.append.is_wanted != present.append.is_wanted {
        switch_append_only(server, next).inspect_err(|_| put_back())?;
    }
    let former_tls = certificates.map(|next| server.tls.replace(next));
    let elsewhere = binds.filter(|_| listens_elsewhere(present, next));
    if elsewhere.is_some_and(|binds| listen_at(server, next, binds).is_none()) {
        put_back();
        former_tls.map(|former| server.tls.replace(former));
        server.log.warning("The new addresses are not listened on. The former settings stay in force.");
        return Err(match address_named(present, next, pairs) {
            "bind" => failed("bind", "Failed to bind to specified addresses."),
            port => failed(port, "Unable to listen on this port. Check server logs."),
        });
    }
    if next.dir != present.dir {
        append::tell_of_move(server, next);
    }
    Ok(())
}

/// Changes the working directory. Returns the former one, held open, so that there is a way back to it also
/// where its name is gone.
fn go_to(dir: &Path) -> Result<File, Error> {
    let go = || {
        let former = File::options().read(true).custom_flags(nix::libc::O_PATH).open(".")?;
        std::env::set_current_dir(dir)?;
        Ok(former)
    };
    go().map_err(|error: std::io::Error| failed("dir", &reason(&error)))
}

/// The first setting of those that the request changes which says where the server listens.
fn address_named(present: &Config, next: &Config, pairs: &[&[u8]]) -> &'static str {
    let changed = [
        ("bind", next.bind != present.bind),
        ("port", next.port != present.port),
        ("tls-port", next.tls_port != present.tls_port),
    ];
    let mut named = pairs.chunks_exact(2).filter_map(|pair| find(pair[0])).map(|setting| setting.name);
    named.find(|name| changed.contains(&(name, true))).unwrap_or("bind")
}

/// Makes sure that there can be an append-only file, and that there is the thread that turns it on and off.
/// It does so when the configuration is in force.
fn switch_append_only(server: &Server, next: &Config) -> Done {
    let is_possible = if next.append.is_wanted { append::prepare(server, next) } else { Ok(()) };
    is_possible.and_then(|()| append::start(server)).map_err(|error| {
        server.log.warning(&format!("Can't turn the append-only file on or off: {}", reason(&error)));
        if next.append.is_wanted {
            server.append.rewrites.has_failed.store(true, Relaxed);
        }
        failed("appendonly", "Unable to turn on AOF. Check server logs.")
    })
}

/// The first setting of TLS that is named: its files are read again, whether its value changes or not.
fn tls_named(pairs: &[&[u8]]) -> Option<&'static str> {
    let named = pairs.chunks_exact(2).filter_map(|pair| find(pair[0]));
    named.map(|setting| setting.name).find(|name| is_of_tls(name))
}

/// Loads the certificates of the next configuration; None where it lets nobody connect with TLS.
fn certificates_of(server: &Server, next: &Config, name: &'static str) -> Result<Option<net::Tls>, Error> {
    tls::load(next, &server.log).map_err(|()| {
        server.log.warning(&format!(
            "Failed applying new configuration. Possibly related to new {name} setting. Restoring previous settings."
        ));
        failed(name, "Unable to update TLS configuration. Check server logs.")
    })
}

/// Opens the listeners of the next configuration and tells the workers. None if one of them cannot be opened:
/// then nothing has changed.
fn listen_at(server: &Server, next: &Config, binds: &Binds) -> Option<()> {
    server.listening.change(next, binds, &server.log)?;
    server.mailboxes.iter().for_each(|mailbox| mailbox.send(Message::Listen));
    Some(())
}

/// The setting of this name and how the name is spelled, if CONFIG SET may change it.
fn changeable(
    present: &Config,
    name: &[u8],
    is_local: bool,
) -> Result<(&'static str, &'static Setting), Error> {
    let setting = find(name).ok_or_else(|| error::unknown_setting(name))?;
    let spelled = setting.names().find(|n| n.as_bytes().eq_ignore_ascii_case(name)).unwrap_or(setting.name);
    // An error that does not depend on the value names the setting as the request spells it.
    let asked = String::from_utf8_lossy(name);
    match setting.change {
        Change::AtStart => Err(failed(&asked, "can't set immutable config")),
        Change::Protected if !present.enable_protected_configs.allows(is_local) => {
            Err(failed(&asked, "can't set protected config"))
        }
        _ => Ok((spelled, setting)),
    }
}

fn too_many_clients(possible: u32) -> Error {
    let why = "The operating system is not able to handle the specified number of clients, try with";
    failed("maxclients", &format!("{why} {possible}"))
}

fn failed(name: &str, why: &str) -> Error {
    error::setting_failed(name, why)
}

impl Allow {
    /// Whether a connection may do what this setting allows; `is_local` if it comes from this machine.
    pub(crate) fn allows(self, is_local: bool) -> bool {
        match self {
            Allow::No => false,
            Allow::Yes => true,
            Allow::Local => is_local,
        }
    }
}

/// CONFIG RESETSTAT: those of INFO's statistics that Redis resets begin at zero again.
fn reset_stats(call: &mut ServerCall<'_>) -> Done {
    let server = call.server;
    server.counters.reset();
    server.keyspace.reset_stats();
    server.stats.reset();
    server.scripts.cache.reset_evicted();
    server.pressure.reset();
    server.defrag.reset();
    server.persistence.saves.count.store(0, Relaxed);
    server.append.reset();
    call.reply.ok();
    Ok(())
}

/// CONFIG REWRITE: writes the file with which the server was started. It waits for the disk.
fn rewrite(call: &mut ServerCall<'_>) -> Done {
    let done = call.server.with_config_kept(|config| {
        let file = config.file.as_deref();
        let file = file.ok_or_else(error::no_config_file)?;
        let users = match config.acl_file {
            None => acl::file::lines(&call.server.accounts.users()),
            Some(_) => Vec::new(),
        };
        Ok::<_, Error>(rewrite::rewrite(file, config, &users))
    })?;
    if let Err(error) = done {
        let why = reason(&error);
        call.server.log.warning(&format!("CONFIG REWRITE failed: {why}"));
        return Err(error::rewriting_failed(&why));
    }
    call.server.log.notice("CONFIG REWRITE executed with success.");
    append::follow(call.server, &call.server.config());
    call.reply.ok();
    Ok(())
}

fn help(call: &mut ServerCall<'_>) -> Done {
    help::reply(
        call,
        &[
            "GET <pattern>",
            "    Show the settings whose names match <pattern>, with their values.",
            "SET <directive> <value>",
            "    Change the setting <directive> to <value>.",
            "RESETSTAT",
            "    Set the statistics that INFO reports back to zero.",
            "REWRITE",
            "    Write the settings back to the configuration file.",
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(pairs: &[&str]) -> Result<Config, String> {
        let pairs: Vec<&[u8]> = pairs.iter().map(|p| p.as_bytes()).collect();
        changed(&Config::default(), &pairs, true).map_err(|e| String::from_utf8_lossy(e.text()).into_owned())
    }

    #[test]
    fn several_pairs_are_set_together() {
        let next = change(&["HZ", "20", "timeout", "7", "maxclients", "5"]).unwrap();
        assert_eq!((next.hz, next.timeout_s, next.maxclients), (20, 7, 5));
    }

    #[test]
    fn one_bad_pair_spoils_all_and_is_named() {
        let prefix = "ERR CONFIG SET failed (possibly related to argument ";
        for (pairs, error) in [
            (
                &["hz", "20", "databases", "1"][..],
                format!("{prefix}'databases') - can't set immutable config"),
            ),
            (
                &["hz", "x", "loglevel", "y"],
                format!("{prefix}'hz') - argument couldn't be parsed into an integer"),
            ),
            (&["hz", "1", "HZ", "2"], format!("{prefix}'HZ') - duplicate parameter")),
            (&["dir", "/"], format!("{prefix}'dir') - can't set protected config")),
            (
                &["hz", "1", "foo", "2"],
                "ERR Unknown option or number of arguments for CONFIG SET - 'foo'".into(),
            ),
            (
                &["timeout", "-1"],
                format!("{prefix}'timeout') - argument must be between 0 and 2147483647 inclusive"),
            ),
            (&["maxmemory", "10xb"], format!("{prefix}'maxmemory') - argument must be a memory value")),
            (
                &["client-output-buffer-limit", "foo 0 0 0"],
                format!(
                    "{prefix}'client-output-buffer-limit') - Invalid client class specified in buffer limit \
                     configuration."
                ),
            ),
        ] {
            assert_eq!(change(pairs).unwrap_err(), error);
        }
    }

    #[test]
    fn a_setting_and_its_older_name_may_stand_together() {
        let next = change(&["list-max-listpack-size", "3", "list-max-ziplist-size", "4"]).unwrap();
        assert_eq!(next.list_max_listpack_size, 4);
    }
}
