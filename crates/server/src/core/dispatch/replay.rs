//! Running what an append-only file holds. There is no client: nothing is checked that was checked when it
//! was first run, nothing is counted, recorded or answered; but what scripts call is counted, as in Redis. A
//! command that fails all the same is told in the log; what a script makes of its errors is not looked at.
//!
//! Time stands at its beginning meanwhile. So a key whose deadline has passed since is there until the file
//! says that it went, as it was when the file was written: else an APPEND behind it would make a new key,
//! which has no deadline. The clock goes on all the same: a lifetime that counts from the present (SETEX, in
//! the file of an old server or of another program) begins when its command is run.
use super::script::ScriptsRun;
use super::{Executor, Request, admit};
use crate::core::call::{Functions, ServerRun};
use crate::core::command_log::Bounds;
use crate::core::error::{self, NotRun};
use crate::core::modes::Modes;
use crate::core::registry::{Row, Run};
use crate::core::server::Server;
use crate::core::session::{ClientRecord, Session, Way};
use crate::state::clock::Moment;
use command::{Call, DataRun, Done, Error};
use net::{ConnId, Peer};
use resp::Reply;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::BEFORE_ALL;

/// Scripts of a file have no client.
const NO_CONNECTION: ConnId = ConnId { index: u32::MAX, generation: 0 };

/// So many commands of a file that fail have a line in the log each.
const FAILURES_TOLD: u64 = 10;

impl<'s> Executor<'s> {
    /// One that replays, in the place of this worker. `is_alone`: all gates are held for it.
    pub(crate) fn to_replay(server: &'s Server, worker: usize, is_alone: bool) -> Executor<'s> {
        let mut executor = Executor::new(server, worker);
        executor.set_now(Moment { wall: BEFORE_ALL, steady: BEFORE_ALL });
        executor.is_alone = is_alone;
        executor.scripts = ScriptsRun::Replayed;
        (executor.bounds, executor.ticks_max) = (Bounds::NONE, u64::MAX);
        executor
    }

    /// Calls `work` inside a gate. The clock shows its commands the present.
    pub(crate) fn replay_some<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        self.server.keyspace.set_replay_clock(self.server.clock.now());
        if self.is_alone {
            return work(self);
        }
        self.begin();
        let result = work(self);
        self.end();
        result
    }

    /// Runs a command on the data of this database, a script, or one that changes libraries of functions.
    /// Other commands on the server do nothing.
    pub(crate) fn replay(
        &mut self,
        db: u16,
        request: &Request<'s, '_>,
        reply: &mut Reply,
    ) -> Result<(), NotRun> {
        let row = admit(request).map_err(|_| NotRun::NotACommand)?;
        let args = request.args;
        let done = match row.run {
            Run::Data(DataRun::Keys(run)) => match (row.only_key(&args), request.hash) {
                (Some(key), Some(hash)) => match self.run_on_key(db, row, run, (key, hash), (args, reply)) {
                    // Nobody waits for a replay: the text is copied here.
                    Err(error) if error.is_would_copy() => self.run_on_keys(db, row, run, request, reply),
                    done => done,
                },
                _ => self.run_on_keys(db, row, run, request, reply),
            },
            // One that would wait for its keys does nothing: nobody takes up what it leaves.
            Run::Data(DataRun::Long(long) | DataRun::Blocking(long)) => {
                self.run_on_keys(db, row, long.run, request, reply)
            }
            Run::Data(DataRun::Whole(_, run)) => self.run_on_all(db, run, args, reply),
            Run::Data(DataRun::KeysOrAll(ways)) if (ways.needs_all)(&args) => {
                self.run_on_all(db, ways.all.run, args, reply)
            }
            Run::Data(DataRun::KeysOrAll(ways)) => self.run_on_keys(db, row, ways.keys.run, request, reply),
            Run::Data(DataRun::LongWhole(_, long)) => self.run_on_all(db, long.run, args, reply),
            Run::Server(ServerRun::Function(Functions::Change(what))) => {
                self.replay_change(what, &args, reply)
            }
            Run::Server(ServerRun::Script(what)) => {
                self.replay_script(db, |this, session| this.run_scripting(session, (row, what), args, reply))
            }
            Run::Server(ServerRun::Function(what)) => {
                self.replay_script(db, |this, session| this.run_functions(session, (row, what), args, reply))
            }
            Run::Data(DataRun::Container) | Run::Server(_) => Ok(()),
        };
        reply.cut(0);
        done.or_else(|error| self.note_failed(row, &error))
    }

    /// A command has failed. One that failed when it was first run is not in the file, so something is wrong.
    /// What there is no memory for is not left out: the next file would lack it.
    #[cold]
    fn note_failed(&self, row: &Row, error: &Error) -> Result<(), NotRun> {
        if *error == Error::string_too_long() {
            return Err(NotRun::NoMemory);
        }
        if self.server.persistence.loading.failed.fetch_add(1, Relaxed) < FAILURES_TOLD {
            self.server.log.warning(&format!(
                "== CRITICAL == This server is sending an error to its AOF-loading-client: '{}' after processing the \
                 command '{}'",
                error::without_code(error).replace(char::is_control, " "),
                row.full_name
            ));
        }
        Ok(())
    }

    /// Runs a script or a function again, in a session of no client. Redis before 5 wrote EVAL itself into
    /// its file, not what came of it.
    #[cold]
    fn replay_script(&mut self, db: u16, mut run: impl FnMut(&mut Self, &mut Session) -> Done) -> Done {
        let peer = Peer::Unix { path: PathBuf::new() };
        let way = Way { peer, fd: -1, worker: self.worker, is_secure: false };
        let record = Arc::new(ClientRecord::new(0, way, self.now.steady));
        let mut session = Session::new(NO_CONNECTION, record, &self.users);
        session.modes.clear(Modes::RESTRICTED);
        session.db = db;
        loop {
            let done = run(self, &mut session);
            if !done.as_ref().is_err_and(error::is_put_off) {
                return done;
            }
        }
    }

    /// [`Executor::replay`] for a command of one key, where keys come in hash order, shard by shard.
    pub(crate) fn replay_in_order(
        &mut self,
        db: u16,
        request: &Request<'s, '_>,
        reply: &mut Reply,
    ) -> Result<(), NotRun> {
        let row = admit(request).map_err(|_| NotRun::NotACommand)?;
        let args = request.args;
        let (Run::Data(DataRun::Keys(run)), Some(key), Some(hash)) =
            (row.run, row.only_key(&args), request.hash)
        else {
            return self.replay(db, request, reply);
        };
        let keyspace = &self.server.keyspace;
        let (mut view, key) = keyspace.lock_one_hashed(db, self.now.wall, &self.config.store, key, hash);
        view.expect_order();
        self.prepare(&mut view, row, &[key]);
        let done = run(&mut Call::new(&mut view, args, &[key], reply));
        self.let_go(view);
        reply.cut(0);
        done.or_else(|error| self.note_failed(row, &error))
    }
}
