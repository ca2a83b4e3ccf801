//! Commands that wait for a key, and those who make keys ready.
//!
//! A command that has found nothing is queued before its shards are let go. A worker whose command has
//! changed a key that somebody waits for serves the waiting requests before it lets the shards go: so nobody
//! sees the key in between, and who came first is served first. A request is tried again as a whole. It may
//! name keys of other shards, and those are locked too if they are free at once; to wait for a lock while
//! holding others could be a deadlock. Where they are not free, the key is noted as ready, and its requests
//! are served under locks of their own as soon as the shards are let go.
//!
//! A served request may change a key that other requests wait for. So serving goes in rounds: each tries the
//! requests whose keys the round before has changed.
use super::Executor;
use crate::core::error;
use crate::core::mailbox::Message;
use crate::core::modes::Modes;
use crate::core::permission;
use crate::core::refusal::append_error;
use crate::core::registry::{Row, Run};
use crate::core::session::{After, Session, Ticket, Waiting};
use crate::core::waiters::{Place, Ready, ReadyKeys, Waiter};
use crate::state::acl::log::Context;
use crate::state::moving::InParts;
use crate::state::pause::Held;
use base::Millis;
use command::{Call, DataRun, Done, Flags, Wait};
use resp::{Args, Protocol, Reply};
use std::hint::cold_path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use store::{Key, Told, View};

/// How many of a key's waiting requests are tried in the first round, since a push most often serves one, and
/// how many in each later round.
const TAKEN_FIRST: usize = 2;
const TAKEN_LATER: usize = 256;
/// After so many rounds under the same locks, what is left is served under locks of its own.
const ROUNDS_MAX: usize = 32;

/// What came of trying a request again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Answered,
    /// It goes on waiting, or its wait has ended meanwhile.
    Waits,
    /// A shard that it needs is held by another thread.
    Contended,
    /// It may not be served now.
    Postponed,
}

/// What came of trying those who wait for a key.
enum Tried {
    /// All were tried; the ticket of the last one, if there was any.
    All(Option<Ticket>),
    /// The key holds nothing (any more) that a request in its queue waits for.
    Enough,
    /// The request with this ticket could not be tried: a shard that it needs is held by another thread.
    Contended(Ticket),
    /// The request with this ticket may not be served now, so those behind it are not either.
    Postponed(Ticket),
}

/// How often shards are asked for that another thread holds, which lasts about a microsecond mostly. To let
/// go of the others for that would let somebody in who takes what is there for a waiting request.
const ASKED_MAX: usize = 64;

/// Locks the shards of a waiting request's keys as well; None where another thread holds one of them for
/// long.
fn add_soon<'v>(view: &mut View<'v>, waiter: &'v Waiter) -> Option<Vec<Key<'v>>> {
    for _ in 0..ASKED_MAX {
        if let Some(keys) = view.try_add(waiter.db, waiter.keys()) {
            return Some(keys);
        }
        cold_path();
        (0..ASKED_MAX).for_each(|_| std::hint::spin_loop());
    }
    None
}

impl<'s> Executor<'s> {
    /// Runs a command that may wait for its keys, whose shards are locked. They stand at these places among
    /// its arguments.
    #[inline]
    pub(super) fn run_or_wait<'k>(
        &self,
        (session, row, run): (&mut Session, &Row, fn(&mut Call<'_, '_>) -> Done),
        view: &mut View<'k>,
        positions: &[u32],
        (args, keys, reply): (Args<'k>, &[Key<'k>], &mut Reply),
    ) -> Done {
        let (mut wait, protocol) = (None, reply.protocol);
        let is_executing = session.modes.has(Modes::EXECUTING);
        let done = self.run_call(session.db, view, run, (args, keys, reply), |call| {
            if is_executing {
                call.give_up_waiting();
            }
            wait = call.wait.take();
        });
        if let Some(wait) = wait {
            let waiting = (session, row, protocol);
            self.wait_for_keys(waiting, (view, keys, positions), &args, &wait);
        }
        done
    }

    /// Lets a request wait for its keys, whose shards are locked, and the session with it.
    fn wait_for_keys(
        &self,
        (session, row, protocol): (&mut Session, &Row, Protocol),
        keys: (&mut View<'_>, &[Key<'_>], &[u32]),
        args: &Args<'_>,
        wait: &Wait,
    ) {
        let client = (&*session, row.number, protocol);
        let waiter = self.server.key_events.waiters.add(keys, client, args, wait);
        let until = |timeout: Millis| Millis(self.server.clock.steady_up().0.saturating_add(timeout.0));
        let until = wait.timeout.map(until);
        let waiting = Waiting { until, late_reply: None, is_mute: false, waiter: Some(waiter), local: None };
        session.waiting = Some(Box::new(waiting));
        session.after = After::Wait;
    }

    /// Before the shards of a view are let go: tells what happened to keys, serves those who wait for them,
    /// and frees what is large.
    #[cold]
    #[inline(never)]
    pub(super) fn finish(&self, mut view: View<'_>) {
        if self.recorder.is_on() {
            self.recorder.note_gone(&self.server.journal, &mut view);
        }
        let told = view.take_told();
        let events = &self.server.key_events;
        if let Some(attempt) = &self.attempt {
            attempt.defer(told, view.take_garbage());
            return self.remember_reader();
        }
        self.hear(&told);
        if events.waiters.is_any() {
            let keys = events.waiters.awaited(&told);
            if self.serves_later {
                events.waiters.make_ready(keys);
            } else if !keys.is_empty() {
                return self.serve_keys(view, keys);
            }
        }
        self.free(view);
    }

    /// Serves those who wait for these keys, whose shards the view holds, and lets the view go.
    pub(super) fn serve_keys(&self, view: View<'_>, keys: Vec<Ready>) {
        self.serve_under(view, keys);
        self.serve_ready();
    }

    /// The same where the view has borrowed its locks. Those who need a shard that another thread holds are
    /// noted as ready: [`Executor::serve_ready`] is due as soon as the locks are let go.
    pub(super) fn serve_under(&self, view: View<'_>, keys: Vec<Ready>) {
        self.serve(view, keys, 0);
    }

    fn free(&self, mut view: View<'_>) {
        let mut garbage = view.take_garbage();
        drop(view);
        self.server.background.free(&mut garbage);
    }

    /// Serves those who wait for these keys, whose shards are locked by the view.
    fn serve(&self, view: View<'_>, ready: Vec<Ready>, round: usize) {
        let events = &self.server.key_events;
        if round == ROUNDS_MAX {
            events.waiters.make_ready(ready);
            return self.free(view);
        }
        // A key that came twice would have those who wait tried twice, in this round and in all that follow.
        let ready = ReadyKeys::merged(ready);
        let count = if round == 0 { TAKEN_FIRST } else { TAKEN_LATER };
        let taken = |ready: &Ready| events.waiters.next(&ready.place, ready.first, count);
        let due: Vec<Vec<Arc<Waiter>>> = ready.iter().map(taken).collect();
        // From here on the view lives no longer than the requests that it is lent to.
        let mut view = view.shortened();
        let (mut contended, mut next, mut told) = (Vec::new(), Vec::new(), Vec::new());
        let mut postponed = Vec::new();
        for (Ready { place, .. }, due) in ready.iter().zip(&due) {
            match self.serve_key(&mut view, place, due, &mut told) {
                Tried::Contended(first) => contended.push(Ready { place: place.clone(), first }),
                Tried::Postponed(first) => postponed.push(Ready { place: place.clone(), first }),
                Tried::All(Some(last)) if due.len() == count => {
                    next.push(Ready { place: place.clone(), first: Ticket(last.0 + 1) });
                }
                Tried::All(_) | Tried::Enough => {}
            }
        }
        if self.recorder.is_on() && view.has_garbage() {
            self.recorder.note_gone(&self.server.journal, &mut view);
        }
        let rest = view.take_told();
        events.hear(&rest, self.origin(None));
        told.extend(rest);
        next.extend(events.waiters.awaited(&told));
        events.waiters.make_ready(contended);
        if !postponed.is_empty() {
            self.postpone(postponed);
        }
        match next.is_empty() {
            true => self.free(view),
            false => self.serve(view, next, round + 1),
        }
    }

    /// Tries the requests that wait for one key, in their order. Tells of the events that they cause, and
    /// adds these to `told`.
    fn serve_key<'v>(
        &self,
        view: &mut View<'v>,
        place: &'v Place,
        due: &'v [Arc<Waiter>],
        told: &mut Vec<Told>,
    ) -> Tried {
        let waiters = &self.server.key_events.waiters;
        let Some(keys) = view.try_add(place.db, std::iter::once(&*place.key)) else {
            return Tried::Contended(due.first().map_or(Ticket(0), |waiter| waiter.ticket));
        };
        for waiter in due {
            let kind = view.kind(&keys[0]);
            if !waiters.is_any_for(place, kind) {
                return Tried::Enough;
            }
            if kind != Some(waiter.kind) && !waiter.ends_without_key {
                continue;
            }
            match self.try_again(view, waiter) {
                Outcome::Answered => {
                    let changes = view.take_told();
                    self.server.key_events.hear(&changes, self.origin(Some(&waiter.record)));
                    told.extend(changes);
                    if waiters.leave(place.shard as usize, &place.key, waiter) {
                        view.close_ear(&keys[0]);
                    }
                }
                Outcome::Waits => {}
                Outcome::Contended => return Tried::Contended(waiter.ticket),
                Outcome::Postponed => return Tried::Postponed(waiter.ticket),
            }
        }
        Tried::All(due.last().map(|waiter| waiter.ticket))
    }

    /// Runs a waiting request again, and ends its wait if that answers it.
    fn try_again<'v>(&self, view: &mut View<'v>, waiter: &'v Waiter) -> Outcome {
        let mut waiting = waiter.record.waiting();
        if *waiting != Some(waiter.ticket) || waiter.record.is_killed.load(Acquire) {
            return Outcome::Waits;
        }
        let row = self.server.registry.row(waiter.row);
        if self.is_postponed(waiter, row) {
            return Outcome::Postponed;
        }
        if waiter.users_version < self.users.version()
            && let Err(outcome) = self.permits_now(waiter, row)
        {
            if outcome == Outcome::Answered {
                *waiting = None;
            }
            return outcome;
        }
        if row.flags.has(Flags::DENYOOM) && self.memory_limit.refuses(waiter.args().bytes_from(1)) {
            *waiting = None;
            self.refuse_waiter(waiter, row, error::OUT_OF_MEMORY);
            return Outcome::Answered;
        }
        let Some(keys) = add_soon(view, waiter) else { return Outcome::Contended };
        let Run::Data(DataRun::Blocking(long)) = row.run else {
            unreachable!("only commands that may wait are queued")
        };
        let mut reply = Reply::new(waiter.protocol);
        view.begin_anew();
        self.prepare_anew(view, row, &keys, &waiter.record);
        let mut waits = false;
        let done = self.run_call(waiter.db, view, long.run, (waiter.args(), &keys, &mut reply), |call| {
            waits = call.wait.is_some();
        });
        if waits {
            return Outcome::Waits;
        }
        // It goes to its worker as a whole.
        reply.finish();
        if let Err(error) = done {
            self.counters.commands[row.number].failed.add(1);
            self.counters.count_error(error.text());
            reply.error(error.text());
        }
        *waiting = None;
        // Its worker is woken when this batch has ended and no lock is held.
        self.server.mailboxes.post(waiter.record.worker, Message::Served(waiter.record.id, reply.out));
        Outcome::Answered
    }

    /// The users have changed since this request began to wait. One whose user may not send it any more is
    /// refused and takes nothing; the client of a user who has gone is about to be closed.
    #[cold]
    fn permits_now(&self, waiter: &Waiter, row: &Row) -> Result<(), Outcome> {
        let user = self.users.renewed(&waiter.user).ok_or(Outcome::Waits)?;
        let args = waiter.args();
        let Err(denied) = permission::check(user, row, &args) else { return Ok(()) };
        let by = (&*waiter.record, Context::Toplevel);
        permission::note(self.server, by, row, (user, denied), &args);
        self.refuse_waiter(waiter, row, &error::no_permission(user, &row.full_name, denied));
        Err(Outcome::Answered)
    }

    /// Answers a request that waits with an error, without running it.
    #[cold]
    fn refuse_waiter(&self, waiter: &Waiter, row: &Row, text: &[u8]) {
        self.counters.commands[row.number].rejected.add(1);
        self.counters.count_error(text);
        let mut reply = Reply::new(waiter.protocol);
        append_error(&mut reply, text);
        self.server.mailboxes.post(waiter.record.worker, Message::Served(waiter.record.id, reply.out));
    }

    /// Serves requests whose keys were noted as ready, each under locks of its own.
    #[cold]
    pub(super) fn serve_ready(&self) {
        let (server, settings) = (self.server, &self.config.store);
        let waiters = &server.key_events.waiters;
        waiters.serve_ready(|Ready { place, first: ticket }| {
            let Some(first) = waiters.next(&place, ticket, 1).pop() else { return };
            // FLUSHALL and SWAPDB note every key that somebody waits for, of which one request may name
            // thousands: to lock and try all of them for each would take seconds.
            let is_absent = server.keyspace.deadline_of(place.db, &place.key).is_none();
            if is_absent && !waiters.is_any_for(&place, None) {
                return;
            }
            let names: Vec<_> = std::iter::once(&*place.key).chain(first.keys()).collect();
            let names = names.into_iter().map(|name| (name, server.keyspace.hash(name)));
            let (view, _) = server.keyspace.lock(place.db, self.now.wall, settings, names);
            self.serve(view, vec![Ready { place: place.clone(), first: ticket }], 0);
        });
    }

    /// Whether a request that waits may not be served now: its client is held back (CLIENT PAUSE), or it
    /// names a key of a request that runs in parts.
    fn is_postponed(&self, waiter: &Waiter, row: &Row) -> bool {
        let held = match self.server.pause.word() {
            0 => Held::Nothing,
            _ => self.server.pause.held(self.now.steady),
        };
        let is_held = match held {
            Held::Nothing => false,
            Held::Writes => row.flags.has_any(Flags::WRITE.or(Flags::MAY_REPLICATE)),
            Held::Everything => true,
        };
        let in_parts = || self.server.moving.in_parts();
        let names_any = |parts: Arc<dyn InParts>| waiter.keys().any(|key| parts.names(Some(waiter.db), key));
        is_held || in_parts().is_some_and(names_any)
    }

    /// Keeps these keys until nothing stands against serving those who wait for them.
    #[cold]
    fn postpone(&self, keys: Vec<Ready>) {
        let waiters = &self.server.key_events.waiters;
        waiters.postpone(keys);
        // What stood against it may have ended before they were noted.
        if self.server.pause.word() == 0 && self.server.moving.in_parts().is_none() {
            waiters.bring_back();
        }
    }
}
