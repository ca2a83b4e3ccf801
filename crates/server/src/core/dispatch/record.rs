//! Running commands while the journal is read: what each has done is recorded before its shards are let go
//! (`core/recorder.rs`).
use super::{Executor, Request};
use crate::core::registry::Row;
use crate::core::session::Session;
use base::hash::Hash;
use command::{Call, Done, Flags, WholeCall};
use resp::{Args, Reply};
use store::{Key, View};

/// When a command on the whole keyspace is recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    /// Also where it has changed nothing, as FLUSHALL is.
    Always,
    /// If it has changed something.
    IfChanged,
}

impl Executor<'_> {
    /// The record that this worker wrote last, plus one.
    #[inline]
    pub(crate) fn end_of_records(&self) -> u64 {
        self.recorder.end_of_records()
    }

    /// What the session has changed in this turn, told to it before a command that may ask (WAITAOF).
    pub(super) fn note_records(&self, session: &mut Session) {
        let end = self.end_of_records();
        if end != self.records_before {
            session.records_end = end;
        }
    }

    /// [`Executor::run_on_key`], while somebody reads the journal.
    #[inline(never)]
    pub(super) fn run_on_key_recorded(
        &mut self,
        db: u16,
        row: &Row,
        run: fn(&mut Call<'_, '_>) -> Done,
        (key, hash): (&[u8], Hash),
        (request, reply): (&Request<'_, '_>, &mut Reply),
    ) -> Done {
        let (keyspace, settings, journal) = (&self.server.keyspace, &self.config.store, &self.server.journal);
        let (mut view, key) = keyspace.lock_one_hashed(db, self.now.wall, settings, key, hash);
        self.prepare(&mut view, row, &[key]);
        view.leave_copies();
        let words = request.args.framed(request.framing).filter(|_| row.flags.has(Flags::WRITE));
        let mut recording = self.recorder.begin_drafted(journal, db, view.changes(), words);
        let keys = [key];
        let call = Call::new(&mut view, request.args, &keys, reply);
        let done = run(&mut call.telling(Some(recording.effects())));
        self.recorder.end(recording, journal, &mut view, &request.args);
        self.let_go(view);
        done
    }

    /// Runs a command on keys whose shards the view holds, and records what it does. `then` is called before
    /// that, for what becomes of a command that would wait.
    #[inline]
    pub(super) fn run_call<'c, 'k>(
        &self,
        db: u16,
        view: &'c mut View<'k>,
        run: fn(&mut Call<'_, '_>) -> Done,
        (args, keys, reply): (Args<'k>, &'c [Key<'k>], &'c mut Reply),
        then: impl FnOnce(&mut Call<'_, '_>),
    ) -> Done {
        let journal = &self.server.journal;
        let mut recording = self.recorder.begin(journal, db, view);
        let effects = recording.as_mut().map(|recording| recording.effects());
        let mut call = Call::new(view, args, keys, reply).telling(effects);
        let done = run(&mut call);
        if done.is_ok() {
            then(&mut call);
        }
        drop(call);
        if let Some(recording) = recording {
            self.recorder.end(recording, journal, view, &args);
        }
        done
    }

    /// Runs a command on the whole keyspace, while all gates are held.
    pub(super) fn run_on_all_recorded(
        &mut self,
        db: u16,
        row: &Row,
        (run, says): (fn(&mut WholeCall<'_>) -> Done, Says),
        (args, reply): (Args<'_>, &mut Reply),
    ) -> Done {
        if !self.recorder.is_on() || !row.flags.has(Flags::WRITE) {
            return self.run_on_all(db, run, args, reply);
        }
        let (journal, keyspace) = (&self.server.journal, &self.server.keyspace);
        let before = keyspace.stats().dirty;
        // Whoever is served by it comes behind it.
        let serves_later = std::mem::replace(&mut self.serves_later, true);
        let done = self.run_on_all(db, run, args, reply);
        let recording = self.recorder.begin_counted(journal, db, 0);
        let is_said = match says {
            Says::Always => done.is_ok(),
            Says::IfChanged => keyspace.stats().dirty != before,
        };
        self.recorder.end_said(recording, journal, is_said, &args);
        self.serves_later = serves_later;
        if !serves_later && self.server.key_events.waiters.is_ready() {
            self.serve_ready();
        }
        done
    }

    /// Between batches: nothing is kept of a tail that has gone.
    #[inline]
    pub(crate) fn leave_former_tail(&self) {
        self.recorder.leave_former_tail(&self.server.journal);
    }

    /// Records a command on the server that concerns replicas.
    pub(super) fn tell_replicas(&self, db: u16, row: &Row, args: &Args<'_>) {
        if self.recorder.is_on() && row.flags.has(Flags::MAY_REPLICATE) {
            self.recorder.tell_replicas(&self.server.journal, db, args);
        }
    }

    /// Whether this command, or what EXEC would run, has to wait because those who read the journal have
    /// fallen behind.
    pub(super) fn must_wait_for_readers(&self, session: &Session, row: &Row, is_exec: bool) -> bool {
        let has = |flag| row.flags.has(flag) || is_exec && session.has_queued(flag);
        self.recorder.is_on()
            && self.server.journal.is_behind()
            && (has(Flags::WRITE) || has(Flags::MAY_REPLICATE))
    }
}
