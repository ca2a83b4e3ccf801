//! When a call is over: its error, its time, and whether a log of commands keeps it.
use super::Executor;
use crate::core::command_log::Measured;
use crate::core::error;
use crate::core::modes::Modes;
use crate::core::registry::Row;
use crate::core::session::{After, Session};
use crate::state::latency;
use command::{Done, Flags};
use resp::{Args, Reply};
use std::hint::cold_path;
use std::sync::atomic::Ordering::Relaxed;

impl<'s> Executor<'s> {
    /// Answers with the error of a command that has run, if it has failed. None if it was put off.
    #[inline(always)]
    pub(super) fn note_done(
        &self,
        session: &mut Session,
        row: &'s Row,
        done: Done,
        reply: &mut Reply,
    ) -> Option<&'s Row> {
        if let Err(error) = done {
            cold_path();
            if error::is_put_off(&error) {
                session.after = After::Retry;
                return None;
            }
            self.counters.commands[row.number].failed.add(1);
            self.counters.count_error(error.text());
            reply.error(error.text());
        }
        Some(row)
    }

    /// A client that watches with MONITOR is shown its own call between this reply and the next one: which
    /// may be that to RESET, behind which it watches no more. Others are shown what is much.
    pub(super) fn show_soon(&mut self, session: &mut Session) {
        if session.modes.has(Modes::EXECUTING) || self.feed.is_empty() {
            return;
        }
        let is_shown = session.record.details().is_monitor;
        let is_over = is_shown || self.feed.ends_turn(&self.server.monitors);
        if is_shown || self.feed.is_much(&self.server.monitors) {
            self.feed.send(self.server);
        }
        if is_over && session.after == After::Next {
            session.after = After::Yield;
        }
    }

    /// Adds ticks to the time of a command whose reply is written piece by piece.
    #[cold]
    pub(crate) fn count_time(&self, row: u32, ticks: u64) {
        self.counters.commands[row as usize].ticks.add(ticks);
    }

    /// Somebody has ended the wait of this client's command, which answers with this error.
    pub(crate) fn note_unblocked(&self, session: &Session, text: &[u8]) {
        let row = session.record.last_row.load(Relaxed);
        self.counters.commands[row as usize].failed.add(1);
        self.counters.count_error(text);
    }

    /// After the last piece of such a reply. `ticks` are those of the command by itself, which were counted
    /// when it ran, and those of all pieces together; the statistics get the second instead of the first.
    #[cold]
    pub(crate) fn look_back(
        &self,
        session: &Session,
        ticks: (u64, u64),
        (args, reply_bytes): (Args<'_>, usize),
    ) {
        let row = self.server.registry.row(session.record.last_row.load(Relaxed) as usize);
        self.counters.commands[row.number].correct(ticks, self.tracked);
        self.report(session, row, (ticks.1, args, reply_bytes));
    }

    /// Gives a call to the latency monitor and the logs of commands, which keep it if it passes their bounds.
    pub(super) fn report(
        &self,
        session: &Session,
        row: &Row,
        (ticks, args, reply_bytes): (u64, Args<'_>, usize),
    ) {
        let shows_all = self.ticks_max == 0;
        if !shows_all && ticks < self.bounds.ticks && reply_bytes < self.bounds.reply_bytes {
            return;
        }
        let call = Measured { time_ns: self.meter.ns(ticks), args, reply_bytes };
        let time_s = self.server.clock.now_us() / 1_000_000;
        let event = if row.flags.has(Flags::FAST) { latency::FAST_COMMAND } else { latency::COMMAND };
        if let Some(attempt) = &self.attempt {
            cold_path();
            return attempt.defer_report(&self.config, row, (event, time_s), &call);
        }
        self.server.latency.note(&self.config, event, call.time_ns, time_s);
        let record = (!session.modes.has(Modes::SCRIPT)).then_some(&*session.record);
        self.server.command_log.note(&self.config.command_log, row, &call, record, time_s);
    }
}
