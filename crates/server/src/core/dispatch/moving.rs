//! Requests that name a key which is on its way to another server (MIGRATE), or may change one that a command
//! elsewhere holds, or a key of a request that runs in parts: they are tried again until it is there, or is
//! not, and until that command has ended.
use super::elsewhere::{Wide, is_wide, long_of};
use super::{Executor, Request};
use crate::core::call::{Apart, MayWait};
use crate::core::lent::{Errand, OwnThread, Task, Turn, Work};
use crate::core::registry::Row;
use crate::core::server::Server;
use crate::core::session::{After, Session};
use crate::state::moving::Asks;
use command::Flags;
use resp::Args;
use std::io;

/// Has the worker lend the session to another thread, for this.
pub(super) fn leave(
    server: &Server,
    session: &mut Session,
    (apart, may_wait): (Apart, MayWait),
    errand: &mut Option<Errand>,
) -> io::Result<()> {
    let work: Work = Box::new(move |turn: Turn<'_>| apart(turn.session, turn.reply));
    let task = match may_wait {
        MayWait::No => Task::Work(work),
        MayWait::Yes => Task::Waits(work, OwnThread::start(server)?),
    };
    *errand = Some(Errand { task, is_mute: !session.reply_mode.answers() });
    session.after = After::Elsewhere;
    Ok(())
}

impl<'s> Executor<'s> {
    /// Whether this request, or what EXEC would run, names such a key.
    #[cold]
    pub(super) fn names_moving(
        &mut self,
        session: &Session,
        row: &Row,
        request: (&Request<'s, '_>, bool),
    ) -> bool {
        let waits = self.has_to_wait(session, row, request);
        if waits {
            self.server.moving.note_waited_for();
        }
        waits
    }

    fn has_to_wait(
        &mut self,
        session: &Session,
        row: &Row,
        (request, is_exec): (&Request<'s, '_>, bool),
    ) -> bool {
        let is_wide = !is_exec && is_wide(&request.args);
        if is_wide && matches!(self.wide(session, row, &request.args), Some(Wide::InParts(_))) {
            // It waits when it is to begin: each time that it is tried again it would be parsed again.
            return false;
        }
        if self.waits_for_parts(session, row, (request, is_exec)) {
            return true;
        }
        if !is_exec {
            return self.has_moving(session.db, row, &request.args);
        }
        let queued = session.queue.iter().flat_map(|queue| queue.iter());
        let watched = session.watching.iter().flat_map(|all| &all.0);
        let (moving, mut watched) = (&self.server.moving, watched);
        watched.any(|key| moving.has_any(Asks::to_read(key.db), std::iter::once(&*key.key)))
            || queued.into_iter().any(|queued| {
                let row = self.server.registry.row(queued.row);
                self.has_moving(session.db, row, &queued.args)
            })
    }

    fn has_moving(&mut self, db: u16, row: &Row, args: &Args<'_>) -> bool {
        row.extract_keys(args, &mut self.positions);
        let names = self.positions.iter().map(|position| args.at(*position as usize));
        let has = |flag| row.flags.has(flag);
        let changes = has(Flags::WRITE) || has(Flags::MAY_REPLICATE) || has(Flags::RUNS_SCRIPT);
        let may_hold = changes && long_of(row, args).is_some();
        let asks = Asks { db, changes, may_hold, goes_further: has(Flags::OTHER_DATABASES) };
        self.server.moving.has_any(asks, names)
    }
}
