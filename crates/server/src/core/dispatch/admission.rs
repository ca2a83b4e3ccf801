//! Whether a request of a session that is in some mode (`core/modes.rs`) runs. The client may have to log in
//! first; its user's rules may forbid the request; the client may be listening, which leaves it few
//! commands; or it collects requests for EXEC.
//!
//! The rules are those of the worker's copy of the users. A worker renews the copy when it enters its gate,
//! and brings a session up to date with it at the start of the session's turn.
use super::{Executor, Hindrance, Request};
use crate::core::memory_limit::Room;
use crate::core::modes::Modes;
use crate::core::permission;
use crate::core::refusal::{NoPermission, Refusal};
use crate::core::registry::Row;
use crate::core::server::Server;
use crate::core::session::{After, Session};
use crate::state::acl::Users;
use crate::state::pause::Held;
use crate::state::persistence::{LOADING, NOTHING, UNSAVED, UNWRITTEN};
use base::hash::Hash;
use command::{Done, Error, Flags};
use resp::{Args, Reply};
use std::hint::cold_path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Commands with one of these flags are looked at before they are queued for EXEC, also where nothing else is
/// to be asked.
pub(super) const NOT_SIMPLY_QUEUED: Flags = Flags::NEVER_QUEUED
    .or(Flags::NO_MULTI)
    .or(Flags::LOOKS_INSIDE)
    .or(Flags::LOADS_CODE)
    .or(Flags::RUNS_SCRIPT);

/// Whether a session outlasts a change of users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stays {
    Yes,
    No,
}

/// What a request is answered that is kept for EXEC.
const QUEUED: &[u8] = b"+QUEUED\r\n";

impl<'s> Executor<'s> {
    /// The worker's copy of the users, which may be older than those in force.
    pub(crate) fn users(&self) -> &Users {
        &self.users
    }

    /// The users in force now, which the worker uses from here on.
    pub(crate) fn users_now(&mut self) -> &Users {
        self.refresh_users();
        &self.users
    }

    /// Renews the worker's copy of the users if they have changed: otherwise a load.
    #[inline]
    pub(super) fn refresh_users(&mut self) {
        if self.server.accounts.version() != self.users_version {
            cold_path();
            self.users = self.server.accounts.users();
            self.users_version = self.users.version();
            // In the middle of a turn its session goes by the old ones: it ends after this call (`look`).
            self.ticks_max = 0;
        }
    }

    /// The users have changed since this session's last turn. Kills it if its user has gone, or may not hear
    /// what it listens to.
    #[cold]
    pub(crate) fn obey_users(&self, session: &mut Session) -> Stays {
        if session.obey(&self.users) {
            return Stays::Yes;
        }
        self.server.kill(&session.record);
        Stays::No
    }

    /// Whether a request of a session that is in some mode runs now.
    #[cold]
    pub(super) fn look_at_modes(
        &mut self,
        session: &mut Session,
        row: &'s Row,
        request: &Request<'s, '_>,
    ) -> Result<(), Hindrance<'s>> {
        if let Some(refusal) = self.bars(session, row, &request.args) {
            return Err(Hindrance::Refused(refusal));
        }
        if !is_for_exec(session, row) {
            return Ok(());
        }
        if self.is_guarded {
            self.guard(session, row, request)?;
        }
        Err(Hindrance::Queued)
    }

    /// Why a session may not send this, in the mode that it is in, if it may not.
    #[cold]
    pub(super) fn bars(&self, session: &Session, row: &'s Row, args: &Args<'_>) -> Option<Refusal<'s>> {
        if let Some(refusal) = self.denies(session, row, args) {
            return Some(refusal);
        }
        if session.modes.has(Modes::LISTENS_ONLY) && !MAY_LISTEN.contains(&row.full_name.as_str()) {
            return Some(Refusal::OnlyListens(row));
        }
        let is_barred = is_for_exec(session, row) && row.flags.has(Flags::NO_MULTI);
        is_barred.then_some(Refusal::InTransaction(row))
    }

    /// Why a session may not send this, if it may not: it has to log in, or its user's rules do not allow it.
    #[cold]
    pub(super) fn denies(&self, session: &Session, row: &'s Row, args: &Args<'_>) -> Option<Refusal<'s>> {
        if let Err(why) = self.is_enabled(session, row) {
            return Some(Refusal::NotEnabled(row, why));
        }
        if session.must_log_in(&self.users) && !row.flags.has(Flags::NO_AUTH) {
            return Some(Refusal::NotAuthenticated(row));
        }
        if !session.modes.has(Modes::RESTRICTED) {
            return None;
        }
        let denied = permission::check(&session.user, row, args).err()?;
        let user = Arc::clone(&session.user);
        Some(Refusal::NoPermission(row, Box::new(NoPermission { user, denied })))
    }

    /// Whether the settings allow the command. As in Redis this comes before all other checks, so that
    /// nothing of the kind is queued. The commands check it themselves too, for sessions that are in no
    /// mode.
    fn is_enabled(&self, session: &Session, row: &Row) -> Done {
        let allow = if row.flags.has(Flags::LOOKS_INSIDE) {
            self.config.enable_debug_command
        } else if row.flags.has(Flags::LOADS_CODE) {
            self.config.enable_module_command
        } else {
            return Ok(());
        };
        if allow.allows(session.record.is_local()) {
            return Ok(());
        }
        let name = row.full_name.split('|').next().unwrap_or_default();
        Err(Error::not_enabled(&name.to_ascii_uppercase(), &format!("enable-{name}-command")))
    }

    /// Whether this request is refused because the data is being loaded, or could not be saved.
    #[inline]
    pub(super) fn look_at_disk(
        &self,
        session: &Session,
        (row, flags): (&'s Row, Flags),
        is_exec: bool,
    ) -> Result<(), Refusal<'s>> {
        match self.server.persistence.refusing() {
            NOTHING => Ok(()),
            why => refuse_for_disk(self.server, why, session, (row, flags, is_exec)),
        }
    }

    /// Whether there is memory for what a request adds, or EXEC would add.
    #[inline]
    pub(super) fn room_wanted(
        &mut self,
        session: &mut Session,
        (flags, is_exec): (Flags, bool),
        request: &Request<'s, '_>,
    ) -> Room {
        if !self.memory_limit.is_set() {
            Room::Enough
        } else if flags.has(Flags::DENYOOM) {
            self.room_for(session.db, request)
        } else if is_exec && (session.has_queued(Flags::DENYOOM) || session.has_queued(Flags::RUNS_SCRIPT)) {
            cold_path();
            let room = self.room_for_bytes(session.queued_bytes() as u64, None);
            session.is_short_of_memory = room == Room::None;
            // Scripts that have promised nothing may run, and are refused what takes memory.
            if session.is_short_of_memory && !session.has_queued(Flags::DENYOOM) {
                Room::Enough
            } else {
                room
            }
        } else {
            Room::Enough
        }
    }

    /// Has a request that does not run now tried again, queued or refused.
    #[cold]
    pub(super) fn hinder(
        &mut self,
        session: &mut Session,
        row: &Row,
        hindrance: Hindrance<'s>,
        (request, reply): (&Request<'s, '_>, &mut Reply),
    ) {
        match hindrance {
            Hindrance::Overload => session.after = After::Retry,
            Hindrance::Queued => self.enqueue(session, row, request, reply),
            Hindrance::Refused(refusal) => self.refuse(session, &refusal, &request.args, reply),
        }
    }

    /// Keeps a request for EXEC. A client may queue as much as may be kept of requests that have not run.
    #[inline(never)]
    pub(super) fn enqueue(
        &mut self,
        session: &mut Session,
        row: &Row,
        request: &Request<'s, '_>,
        reply: &mut Reply,
    ) {
        session.record.last_row.store(row.number as u32, Relaxed);
        // A script's, where it has said what it does.
        let flags = self.flags_of(row, &request.args);
        let request = (request.hash, &request.args);
        session.enqueue((row.number, flags), request, self.counters);
        reply.append(QUEUED);
        if session.queued_bytes() as u64 > self.query_buffer_bytes_max(session) {
            session.after = After::Overflow;
        }
    }
}

/// Whether this is one of the requests between MULTI and EXEC.
fn is_for_exec(session: &Session, row: &Row) -> bool {
    session.modes.has(Modes::TRANSACTION) && !row.flags.has(Flags::NEVER_QUEUED)
}

impl<'s> Executor<'s> {
    /// Whether [`Executor::enqueue_run`] may take what this session has sent.
    #[inline]
    pub(crate) fn queues_freely(&self, session: &Session) -> bool {
        session.modes.only_queues() && !self.is_guarded && session.reply_mode.answers()
    }

    /// Keeps the next requests of a batch for EXEC together, up to the first of which anything is to be
    /// asked, and answers each. Of each request `next` has the row, the hash of its first key, and where its
    /// arguments end in what `args` makes of all of them. Returns how many were taken; those are not timed.
    #[inline(never)]
    pub(crate) fn enqueue_run<'a>(
        &mut self,
        session: &mut Session,
        next: impl ExactSizeIterator<Item = (Option<&'s Row>, Option<Hash>, usize)> + Clone,
        args: impl FnOnce(usize) -> Args<'a>,
        reply: &mut Reply,
    ) -> usize {
        if self.held != Held::Nothing {
            return 0;
        }
        let (mut count, mut end, mut last_row) = (0, 0, None);
        for (row, _, args_end) in next.clone() {
            let Some(row) = row.filter(|row| is_simply_queued(row, args_end - end)) else { break };
            (count, end, last_row) = (count + 1, args_end, Some(row));
        }
        let Some(last_row) = last_row.filter(|_| count > 1) else { return 0 };
        let requests = next
            .take(count)
            .filter_map(|(row, hash, end)| row.map(|row| ((row.number, row.flags), hash, end)));
        let bytes_max = self.query_buffer_bytes_max(session);
        if !session.enqueue_run((&args(end), count), requests, bytes_max, self.counters) {
            return 0;
        }
        session.record.last_row.store(last_row.number as u32, Relaxed);
        (0..count).for_each(|_| reply.append(QUEUED));
        self.lap();
        count
    }
}

/// Whether a request of so many arguments is queued without a further look.
#[inline]
fn is_simply_queued(row: &Row, args: usize) -> bool {
    row.subcommands.is_empty() && row.arity.accepts(args) && !row.flags.has_any(NOT_SIMPLY_QUEUED)
}

#[cold]
fn refuse_for_disk<'s>(
    server: &Server,
    why: u8,
    session: &Session,
    (row, flags, is_exec): (&'s Row, Flags, bool),
) -> Result<(), Refusal<'s>> {
    let has = |flag| flags.has(flag) || is_exec && session.has_queued(flag);
    let concerns = has(Flags::WRITE) || row.flags.has(Flags::TELLS_HEALTH);
    if why & UNSAVED != 0 && concerns {
        return Err(Refusal::Unsaved(row));
    }
    if why & UNWRITTEN != 0 && concerns {
        return Err(Refusal::Unwritten(row, server.append.failure()));
    }
    if why & LOADING != 0 && !row.flags.has(Flags::LOADING) {
        return Err(Refusal::Loading(row));
    }
    Ok(())
}

/// The commands that a client may call while it listens to channels in RESP2.
const MAY_LISTEN: [&str; 9] = [
    "subscribe",
    "unsubscribe",
    "psubscribe",
    "punsubscribe",
    "ssubscribe",
    "sunsubscribe",
    "ping",
    "quit",
    "reset",
];
