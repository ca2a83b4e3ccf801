//! Requests that write and take long. They run elsewhere as those that read do, on values with one more owner
//! each; what they have made of their keys is then put in its place by the session's worker, under the locks
//! of these keys, with all that follows from a write.
//!
//! ```text
//! worker: share the values, hold the keys -- a thread: run -- worker: lock, has anybody changed a key?
//!               ^                                                       |             \-- no: commit
//!               \------------------- share them anew, run again --------/ yes
//! ```
//!
//! The request has its place among all others where it is committed: until then nobody sees anything of it,
//! and its number in the journal is of that moment. So nobody may have changed a key that it names in
//! between, also one that it only reads. While the keys are *held* (`state/moving.rs`), requests that may
//! change one are tried again later; those that read go on. What cannot be held back is seen when it is to be
//! committed, and the request runs again: a key that expires or is evicted, FLUSHALL, a script that reaches
//! for a key, a client that waited for a key and is served. One that has run in vain so often runs where it
//! is, and so does one that finds nothing and would wait for its keys: it begins to wait under their locks.
//!
//! Nothing is committed while CLIENT PAUSE holds writes back, while a script has all gates for long, or while
//! data is loaded; nor after SHUTDOWN has begun: then nobody is told that it was done, and it is not.
use super::Executor;
use super::elsewhere::Reading;
use crate::core::error;
use crate::core::lent::{Lent, Turn, Work};
use crate::core::registry::Row;
use crate::core::written_elsewhere::{Committed, Hold, Writing};
use crate::state::pause::Held;
use command::{Call, Done, Effects, Long, Words};
use resp::Args;
use std::sync::atomic::Ordering::Relaxed;
use store::{Before, Garbage, Made};

/// So often a request runs elsewhere in vain.
pub(super) const TRIES_MAX: u32 = 4;

impl Executor<'_> {
    /// A request that is to write elsewhere, whose keys are shared.
    pub(super) fn writing(
        &mut self,
        db: u16,
        (row, args): (&Row, &Args<'_>),
        (long, before): (Long, Before),
    ) -> Box<Writing> {
        row.extract_keys(args, &mut self.positions);
        let names = self.positions.iter().map(|position| args.at(*position as usize).to_vec());
        let hold = Hold::new(self.server.shared(), db, names.collect());
        Box::new(Writing {
            long,
            positions: self.positions.clone(),
            before,
            made: Made::default(),
            effects: self.wanted_effects(),
            waits: false,
            tries: 0,
            hold,
        })
    }

    pub(super) fn wanted_effects(&self) -> Option<(Effects, Words)> {
        self.recorder.is_on().then(|| (Effects::default(), self.server.journal.words()))
    }

    /// A request has run elsewhere: what it has written takes its place, or it is to be lent again.
    pub(crate) fn commit(&mut self, lent: &mut Lent) -> Committed {
        if let Some(parted) = lent.parts.take() {
            return self.go_on(lent, parted);
        }
        let is_put_off = lent.done.as_ref().is_err_and(error::is_put_off);
        if lent.queue.is_none() && lent.writing.is_none() && !is_put_off {
            return Committed::Done;
        }
        self.begin();
        let passes = match &lent.queue {
            Some(queue) if queue.only_reads() => Held::Writes,
            _ => lent.passed_by(),
        };
        let committed = if !self.may_commit_past(passes) {
            Committed::Later
        } else if is_put_off {
            lent.done = Ok(());
            Committed::Anew
        } else if let Some(queue) = lent.queue.take() {
            self.commit_queue(lent, queue)
        } else if let Some(writing) = lent.writing.take() {
            self.commit_now(lent, writing)
        } else {
            Committed::Done
        };
        self.end();
        committed
    }

    pub(super) fn may_commit(&self) -> bool {
        self.may_commit_past(Held::Nothing)
    }

    /// The same for what a pause of this kind does not hold back.
    fn may_commit_past(&self, pause: Held) -> bool {
        let is_free = self.held == Held::Nothing || self.held == pause;
        is_free && !self.is_shut_out && !self.server.persistence.is_loading()
    }

    fn commit_now(&mut self, lent: &mut Lent, mut writing: Box<Writing>) -> Committed {
        if writing.made.is_nothing() && !writing.waits {
            return Committed::Done;
        }
        self.attend(&lent.session);
        let (start, records) = (self.meter.read(), self.end_of_records());
        let db = lent.session.db;
        let row = self.server.registry.row(lent.session.record.last_row.load(Relaxed) as usize);
        let Lent { session, request, reply, done, .. } = lent;
        let args = request.args();
        let names = writing.positions.iter().map(|position| args.at(*position as usize));
        let names = names.map(|name| (name, self.server.keyspace.hash(name)));
        let (mut view, keys) = self.server.keyspace.lock(db, self.now.wall, &self.config.store, names);
        self.prepare(&mut view, row, &keys);
        let is_unheard = self.recorder.is_on() && writing.effects.is_none();
        if writing.waits || is_unheard || !view.is_still(&keys, &writing.before) {
            writing.tries += 1;
            if writing.tries <= TRIES_MAX && !writing.waits {
                let (before, aside) = view.take_along(&keys);
                self.let_go(view);
                let outdated =
                    (std::mem::replace(&mut writing.before, before), std::mem::take(&mut writing.made));
                writing.effects = self.wanted_effects();
                let reading = self.reading(aside, row);
                lent.begin_anew(writing.work_anew(reading, outdated));
                return Committed::Anew;
            }
            reply.cut(0);
            let call = (session, row, writing.long.run);
            *done = self.run_or_wait(call, &mut view, &writing.positions, (args, &keys, reply));
        } else {
            let recording = self.recorder.begin(&self.server.journal, db, &view);
            view.accept(&keys, std::mem::take(&mut writing.made));
            if let (Some(recording), Some((effects, _))) = (recording, writing.effects.take()) {
                self.recorder.end_made(recording, &self.server.journal, &mut view, effects);
            }
        }
        self.let_go(view);
        if self.end_of_records() != records {
            lent.session.records_end = self.end_of_records();
        }
        lent.ticks += self.meter.read().since(start);
        self.free_outdated(*writing);
        Committed::Done
    }

    /// Frees in the background what only a request has kept that has ended.
    fn free_outdated(&self, writing: Writing) {
        let mut garbage: Vec<Garbage> = writing.before.into_garbage().collect();
        garbage.extend(writing.made.into_garbage());
        if !garbage.is_empty() {
            self.server.background.free(&mut garbage);
        }
    }
}

impl Writing {
    /// What the thread does.
    pub(super) fn work(self: Box<Self>, reading: Reading) -> Work {
        Box::new(move |turn| self.run(reading, turn))
    }

    /// The same, after it has made something in vain, which the thread frees.
    fn work_anew(self: Box<Self>, reading: Reading, outdated: (Before, Made)) -> Work {
        Box::new(move |turn| {
            drop(outdated);
            self.run(reading, turn)
        })
    }

    fn run(mut self: Box<Self>, reading: Reading, turn: Turn<'_>) -> Done {
        let Turn { session, args, reply, writing, .. } = turn;
        let Reading { aside, config, now, .. } = reading;
        let names = self.positions.iter().map(|position| args.at(*position as usize));
        let names = names.map(|name| (name, aside.hash(name)));
        let (mut view, keys) = aside.lock(session.db, now, &config.store, names);
        let effects = self.effects.as_mut().map(|(effects, words)| {
            effects.begin(session.db, *words);
            effects
        });
        let mut call = Call::new(&mut view, args, &keys, reply).telling(effects);
        let done = (self.long.run)(&mut call);
        self.waits = call.wait.is_some();
        drop(call);
        self.made = view.made(&keys, &self.before);
        if let Some((effects, _)) = &mut self.effects
            && self.made.is_change()
        {
            effects.end(args.iter_from(0));
        }
        drop((keys, view));
        *writing = Some(self);
        done
    }
}
