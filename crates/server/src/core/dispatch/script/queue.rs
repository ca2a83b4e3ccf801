//! EXEC of a queue of scripts: what job queues send to add several jobs.
//!
//! A worker attempts all of them as one, without being disturbed. If one takes too long, fails, or does what
//! cannot be taken back, everything since the first is taken back, and the thread of scripts runs the whole
//! queue: see `attempt.rs`.
use super::attempt::{Fate, QueueAttempt};
use crate::core::call::{Scripting, ServerRun};
use crate::core::dispatch::Executor;
use crate::core::dispatch::exec::Left;
use crate::core::modes::Modes;
use crate::core::queue::{Queue, Queued};
use crate::core::registry::Run;
use crate::core::session::{ReplyMode, Session};
use command::Done;
use resp::Reply;

/// A longer queue is not attempted: all of it would have to be over in the time of one script.
const ATTEMPTED_MAX: usize = 32;

impl<'s> Executor<'s> {
    /// EXEC, on a worker, of a queue with scripts.
    pub(super) fn attempt_exec(&mut self, session: &mut Session, reply: &mut Reply) -> Done {
        let start = reply.out.len();
        self.queue_attempt = QueueAttempt::Runs;
        let done = self.exec(session, reply);
        if std::mem::take(&mut self.queue_attempt) == QueueAttempt::GivenUp {
            reply.cut(start);
            self.lend_for_scripts(session);
        }
        done
    }

    /// Whether a worker tries to run what the session has queued.
    pub(super) fn may_attempt_queue(&self, session: &Session) -> bool {
        // What is evicted between two scripts, and what the log of refusals is told, cannot be taken back.
        let may_leave_traces = self.memory_limit.is_set() || session.modes.has(Modes::RESTRICTED);
        let is_plain = session.reply_mode == ReplyMode::On && !self.server.monitors.is_any();
        let is_attempted = |Queued { row, args, .. }: Queued<'_>| {
            let run = self.server.registry.row(row).run;
            let is_script = matches!(run, Run::Server(ServerRun::Script(what)) if what != Scripting::Load);
            is_script && self.may_attempt(&args)
        };
        is_plain
            && !may_leave_traces
            && session
                .queue
                .as_deref()
                .is_some_and(|queue| queue.len() <= ATTEMPTED_MAX && queue.iter().all(is_attempted))
    }

    /// Runs the scripts of a queue, or takes back what they have done. All gates are taken.
    pub(in crate::core::dispatch) fn attempt_queue(
        &mut self,
        session: &mut Session,
        queue: &Queue,
        reply: &mut Reply,
    ) {
        let mut held = self.server.keyspace.hold_shards(std::iter::empty());
        self.recorder.open();
        self.begin_attempt(&held);
        for Queued { row, args, .. } in queue.iter() {
            let row = self.server.registry.row(row);
            let Run::Server(ServerRun::Script(what)) = row.run else { continue };
            let start = reply.out.len();
            let permitted = self.still_permits(session, row, &args);
            let done = permitted.and_then(|()| self.run_scripting(session, (row, what), args, reply));
            reply.finish();
            let ticks = self.lap();
            let is_large = reply.out.len() - start >= self.bounds.reply_bytes || reply.is_full();
            // What a log wants to know of is run where it can be told at once.
            if done.is_err() || is_large || ticks >= self.bounds.ticks {
                self.queue_attempt = QueueAttempt::GivenUp;
            }
            if self.queue_attempt == QueueAttempt::GivenUp {
                break;
            }
            self.note_call(row, ticks, Fate::Ran);
        }
        let mut left = Left::default();
        match self.queue_attempt {
            QueueAttempt::GivenUp => self.undo_attempt(&mut held, &mut left),
            _ => self.commit_attempt(&mut left),
        }
        self.recorder.close(&self.server.journal);
        self.let_go_of_script(held, left);
    }

    /// A script cannot be run here: it, or the queue that it is of, is to run on the thread of scripts.
    pub(super) fn give_script_up(&mut self, session: &mut Session) {
        match self.queue_attempt {
            QueueAttempt::None => self.lend_for_scripts(session),
            _ => self.queue_attempt = QueueAttempt::GivenUp,
        }
    }
}
