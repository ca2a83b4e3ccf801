//! EXEC of a queue with scripts: what job queues send to add several jobs, and flows of them.
//!
//! A worker attempts all of it as one script, of which each request is a part (`attempt.rs`): beside what
//! other workers do, with the shards of all keys that its requests name; if another has one that a script
//! reaches for, once more with that one too; then alone. If it takes too long, if a script fails, or if
//! something cannot be taken back, the thread of scripts runs it.
use super::ATTEMPTED_BYTES_MAX;
use super::attempt::{Fate, QueueAttempt, is_undoable};
use super::call::ScriptCall;
use super::host::{End, HELD_MAX, Reach, ScriptHost, Start};
use crate::core::call::{Functions, Scripting, ServerRun};
use crate::core::dispatch::Executor;
use crate::core::dispatch::exec::{Handler, Left, answer_null, begin};
use crate::core::modes::Modes;
use crate::core::queue::{Queue, Queued};
use crate::core::registry::{Row, Run};
use crate::core::session::{ReplyMode, Session, WatchedKey};
use crate::core::tries::Tries;
use crate::state::scripts::Kind;
use command::{Done, Flags};
use resp::{Args, Reply};
use std::rc::Rc;

/// A longer queue is not attempted: all of it would have to be over in the time of one script.
const ATTEMPTED_MAX: usize = 32;
/// Nor one of more words: a command may name very many keys, of which each is kept as it was.
const ATTEMPTED_WORDS_MAX: usize = 2_000;
/// Nor one of more bytes.
const ATTEMPTED_QUEUE_BYTES_MAX: usize = 1 << 20;

impl<'s> Executor<'s> {
    /// EXEC, on a worker, of a queue with scripts.
    pub(super) fn attempt_exec(&mut self, session: &mut Session, reach: Reach, reply: &mut Reply) -> Done {
        self.attempts.queue = QueueAttempt::Runs(reach);
        let done = self.exec(session, reply);
        let is_given_up = self.attempts.have_given_up_queue();
        self.attempts.queue = QueueAttempt::None;
        self.attempts.scripts.drain(..).for_each(|tries| tries.in_queues.note_attempt(!is_given_up));
        if is_given_up {
            self.lend_for_scripts(session);
        }
        done
    }

    /// Whether a worker tries to run what the session has queued, as far as is seen by its form.
    pub(super) fn may_attempt_queue(&self, session: &Session) -> bool {
        let Some(queue) = session.queue.as_deref() else { return false };
        let (mut words, mut text_bytes) = (0, 0);
        let is_attempted = |Queued { row, args, .. }: Queued<'_>| {
            let row = self.server.registry.row(row);
            words += args.len();
            match row.run {
                Run::Server(ServerRun::Script(what)) => {
                    text_bytes += args.at(1).len();
                    what != Scripting::Load && self.may_attempt(&args)
                }
                Run::Server(ServerRun::Function(what)) => {
                    matches!(what, Functions::Call(_)) && self.may_attempt(&args)
                }
                _ => is_attempted_among_scripts(row, &args),
            }
        };
        // What came in earlier turns may be of interest to the log of large requests.
        let is_small = queue.request_bytes() < self.bounds.request_bytes.min(ATTEMPTED_QUEUE_BYTES_MAX);
        session.reply_mode == ReplyMode::On
            && !self.server.monitors.is_any()
            && is_small
            && queue.len() <= ATTEMPTED_MAX
            && queue.iter().all(is_attempted)
            && words <= ATTEMPTED_WORDS_MAX
            && text_bytes <= ATTEMPTED_BYTES_MAX
            && !(self.memory_limit.is_set() && session.is_short_of_memory)
    }

    /// Finds the scripts of what the session has queued, and compiles what is to be, while nothing is locked.
    /// What the queue is to reach first, by how its scripts have fared; None where it is not attempted.
    pub(super) fn look_at_scripts(&mut self, session: &Session) -> Option<Reach> {
        self.attempts.scripts.clear();
        for Queued { row, args, .. } in session.queue.as_deref()?.iter() {
            let tries = match self.server.registry.row(row).run {
                Run::Server(ServerRun::Script(what)) => self.tries_of_script(what, &args)?,
                Run::Server(ServerRun::Function(_)) => self.tries_of_function(&args)?,
                _ => continue,
            };
            let scripts = &mut self.attempts.scripts;
            if !scripts.iter().any(|known| Rc::ptr_eq(known, &tries)) {
                scripts.push(tries);
            }
        }
        // All are asked: each counts how often it is.
        let all =
            |asks: fn(&Tries) -> bool| self.attempts.scripts.iter().filter(|tries| !asks(tries)).count() == 0;
        let is_worth_it = all(|tries| tries.in_queues.is_worth_an_attempt());
        let may_be_beside = all(Tries::may_run_beside_others);
        is_worth_it.then_some(match may_be_beside {
            true => Reach::Keys { again: false },
            false => Reach::Everything,
        })
    }

    /// Runs a queue with scripts, or takes back what it has done.
    pub(in crate::core::dispatch) fn attempt_queue(
        &mut self,
        session: &mut Session,
        queue: &Queue,
        reply: &mut Reply,
    ) -> Done {
        self.reach_for_keys_of(queue);
        let starts_beside = matches!(self.attempts.queue, QueueAttempt::Runs(Reach::Keys { .. }));
        let may_be_beside = starts_beside && self.attempts.reached.len() <= HELD_MAX;
        let end = self.beside_others_or_alone(may_be_beside, reply, |this, reach, reply| {
            Ok(this.try_queue(session, queue, reach, reply))
        })?;
        if end.is_undone() {
            self.attempts.queue = QueueAttempt::Ended(End::GivenUp);
        }
        Ok(())
    }

    /// The queue is to begin with the shards of all keys that its requests name.
    fn reach_for_keys_of(&mut self, queue: &Queue) {
        let keyspace = &self.server.keyspace;
        let reached = &mut self.attempts.reached;
        reached.clear();
        for Queued { row, args, .. } in queue.iter() {
            self.server.registry.row(row).extract_keys(&args, &mut self.positions);
            let hashes = self.positions.iter().map(|at| keyspace.hash(args.at(*at as usize)));
            reached.extend(hashes.map(|hash| keyspace.shard_number(hash)));
        }
        reached.sort_unstable();
        reached.dedup();
    }

    /// Runs a queue with this reach, as one step.
    fn try_queue(&mut self, session: &mut Session, queue: &Queue, reach: Reach, reply: &mut Reply) -> End {
        // What the log of refusals is told cannot be taken back.
        if session.modes.has(Modes::RESTRICTED) && !self.permits_all(session, queue) {
            return End::GivenUp;
        }
        let (server, now) = (self.server, self.now.wall);
        let watched = session.watching.iter().flat_map(|all| &all.0);
        let watched = watched.map(|key| server.keyspace.shard_number(key.hash));
        let mut held = server.keyspace.hold_shards(self.attempts.reached.drain(..).chain(watched));
        let view = held.view(now, &self.config.store);
        let is_overdue = |key: &WatchedKey| view.has_overdue(key.db, &key.key, key.hash);
        if session.has_stale_watch(server, is_overdue) {
            answer_null(session, reply);
            return End::Done;
        }
        drop(view);
        begin(session, queue, reply);
        let shown = self.feed.len();
        self.attempts.queue = QueueAttempt::Runs(reach);
        let serves_later = std::mem::replace(&mut self.serves_later, true);
        self.recorder.open();
        self.begin_attempt(&held);
        self.attempts.held = Some(held);
        let end = self.run_requests(session, queue, reach, reply);
        let mut held = self.take_held();
        let mut left = Left::default();
        match end.is_undone() {
            true => self.undo_attempt(&mut held, &mut left),
            false => self.commit_attempt(&mut left),
        }
        self.recorder.close(&server.journal);
        self.serves_later = serves_later;
        self.let_go_of_script(held, left);
        if end.is_undone() {
            // Somebody may have begun to watch meanwhile.
            self.feed.cut(shown);
        }
        end
    }

    fn run_requests(&mut self, session: &mut Session, queue: &Queue, reach: Reach, reply: &mut Reply) -> End {
        for Queued { row, args, .. } in queue.iter() {
            let (row, start, now) = (self.server.registry.row(row), reply.out.len(), self.mark);
            if self.attempt.as_mut().is_some_and(|attempt| attempt.is_over(now)) {
                return End::GivenUp;
            }
            let done = match row.run {
                Run::Server(ServerRun::Script(what)) => self.run_scripting(session, (row, what), args, reply),
                Run::Server(ServerRun::Function(what)) => {
                    self.run_functions(session, (row, what), args, reply)
                }
                _ => {
                    let end = self.run_among_scripts(session, (row, args), reach, reply);
                    if end.is_undone() {
                        return end;
                    }
                    continue;
                }
            };
            if let QueueAttempt::Ended(end) = self.attempts.queue {
                return end;
            }
            reply.finish();
            let ticks = self.lap();
            let is_large = reply.out.len() - start >= self.bounds.reply_bytes || reply.is_full();
            // What a log wants to know of is run where it can be told at once.
            if done.is_err() || is_large || ticks >= self.bounds.ticks {
                return End::GivenUp;
            }
            self.note_call(row, ticks, Fate::Ran);
        }
        End::Done
    }

    /// A request that is no script runs as a command of one does, which is counted in the same way too.
    fn run_among_scripts(
        &mut self,
        session: &mut Session,
        (row, args): (&'s Row, Args<'_>),
        reach: Reach,
        reply: &mut Reply,
    ) -> End {
        let start = Start { kind: Kind::Script, name: Vec::new(), is_readonly: false, is_full: false };
        let held = self.take_held();
        let mut host = ScriptHost::new(self, session, &args, start, (reach, held));
        // It stops only where it gives up, which is how it ends.
        let _ = match host.draw_end() {
            Some(stop) => Err(stop),
            None => host.run(row, args, reply),
        };
        let (end, held, _) = host.end();
        self.attempts.held = Some(held);
        if reply.is_full() { End::GivenUp } else { end }
    }

    /// Runs a script that is a part of a queue.
    pub(super) fn run_script_of_queue(
        &mut self,
        call: &ScriptCall<'_, 's>,
        reach: Reach,
        session: &mut Session,
        reply: &mut Reply,
    ) -> Done {
        let end = self.start_script(call, reach, session, reply)?;
        if end.is_undone() {
            self.attempts.queue = QueueAttempt::Ended(end);
        }
        Ok(())
    }

    /// A script cannot be run here: it, or the queue that it is of, is to run on the thread of scripts.
    pub(super) fn give_script_up(&mut self, session: &mut Session) {
        match self.attempts.queue {
            QueueAttempt::None => self.lend_for_scripts(session),
            _ => self.attempts.queue = QueueAttempt::Ended(End::GivenUp),
        }
    }

    /// What the queue that is attempted has locked.
    fn take_held(&mut self) -> store::Held<'s> {
        self.attempts.held.take().unwrap_or_else(|| self.server.keyspace.hold_shards(std::iter::empty()))
    }
}

/// Whether a request that is no script may stand in a queue that is attempted: it is about keys, or sends a
/// message.
fn is_attempted_among_scripts(row: &Row, args: &Args<'_>) -> bool {
    let is_of_keys = matches!(Handler::of(row, args), Some(Handler::Data(_)));
    let publishes = row.flags.has(Flags::PUBSUB) && row.flags.has(Flags::MAY_REPLICATE);
    (is_of_keys || publishes) && is_undoable(row, args)
}
