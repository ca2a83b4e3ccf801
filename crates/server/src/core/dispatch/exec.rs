//! EXEC: runs several requests as one step, of which no other worker sees a part.
//!
//! ```text
//! plan: the keys of all requests are found --- all that run need no more ---> on_shards: their shards locked
//!         \                                                                  in ascending order, each once,
//!          \                                                                 in one view for all of them
//!           \--- one needs the whole keyspace, or locks shards itself ------> alone: all gates taken, each
//!                                                                             request locks what it needs
//! ```
//!
//! Either way each request is counted, timed, and shown to MONITOR and the logs of commands as if it had come
//! by itself. What a request would leave to be written piece by piece is written at once, because the next
//! reply stands behind it; where that is much, all of the queue runs elsewhere (`exec_elsewhere`). A reply
//! that outgrows what its client may be owed stops growing, and the requests go on: their effects do not
//! depend on who reads.
use super::elsewhere::long_of;
use super::{Executor, Request};
use crate::core::call::{ServerCall, ServerRun};
use crate::core::error;
use crate::core::modes::Modes;
use crate::core::permission;
use crate::core::queue::{Queue, Queued};
use crate::core::queue_elsewhere::SharedQueue;
use crate::core::registry::{Row, Run};
use crate::core::session::{After, ReplyMode, Session, WatchedKey};
use crate::core::waiters::ReadyKeys;
use base::hash::Hash;
use command::{Call, DataRun, Done, LONG_STEPS};
use resp::{Args, Framing, Reply};
use std::hint::cold_path;
use std::sync::Arc;
use store::{Garbage, Key, View};

/// A key of fewer elements has no reply that takes long, if they are not very long each.
const MANY_ELEMENTS: u64 = LONG_STEPS / 64;

/// To share a key with another thread and to put back what it has made costs little beside running a request
/// that has so many words for the key. Builds with checks send away much more.
const WORDS_A_KEY: usize = if cfg!(debug_assertions) { 3 } else { 64 };

/// How each request of a queue runs, where all can run on the shards of their keys. The memory of one plan is
/// used for the next.
#[derive(Default)]
pub(super) struct Plan {
    steps: Vec<Step>,
    /// Some request may take long because of the size of values.
    may_be_long: bool,
    /// Of some request the reply may be as long as its key's value.
    may_answer_much: bool,
    /// How many words all requests have beyond [`WORDS_A_KEY`] for each of their keys.
    words: u64,
    /// What was shared instead of running the queue.
    shared: Option<Box<SharedQueue>>,
    /// Of all requests in turn, which arguments are keys, and the hashes of these.
    keys: Vec<(u32, Hash)>,
}

struct Step {
    handler: Handler,
    /// Where its keys end in [`Plan::keys`].
    keys_end: usize,
    /// Its reply may be as long as its key's value.
    may_answer_much: bool,
}

/// What is to be done after several commands that run under the same locks.
#[derive(Default)]
pub(super) struct Left {
    pub(super) garbage: Vec<Garbage>,
    /// Keys that somebody waits for and that may be ready.
    pub(super) ready: ReadyKeys,
}

/// How a request runs that needs no more than the shards of its keys.
#[derive(Clone, Copy)]
pub(super) enum Handler {
    Data(fn(&mut Call<'_, '_>) -> Done),
    Server(fn(&mut ServerCall<'_>) -> Done),
}

impl Handler {
    /// None for a request that needs more.
    pub(super) fn of(row: &Row, args: &Args<'_>) -> Option<Handler> {
        match row.run {
            Run::Data(DataRun::Keys(run)) => Some(Handler::Data(run)),
            Run::Data(DataRun::Long(long) | DataRun::Blocking(long)) => Some(Handler::Data(long.run)),
            Run::Data(DataRun::KeysOrAll(ways)) if !(ways.needs_all)(args) => {
                Some(Handler::Data(ways.keys.run))
            }
            Run::Server(ServerRun::Anywhere(run)) => Some(Handler::Server(run)),
            _ => None,
        }
    }
}

impl Plan {
    /// How each request runs, and where its keys are among those of all.
    pub(super) fn steps(&self) -> impl Iterator<Item = (Handler, std::ops::Range<usize>)> {
        let starts = std::iter::once(0).chain(self.steps.iter().map(|step| step.keys_end));
        self.steps.iter().zip(starts).map(|(step, start)| (step.handler, start..step.keys_end))
    }

    /// The keys of all requests in turn.
    pub(super) fn keys(&self) -> &[(u32, Hash)] {
        &self.keys
    }

    /// See the field.
    pub(super) fn words(&self) -> u64 {
        self.words
    }

    /// Bytes of memory that it holds between two uses.
    pub(super) fn room_bytes(&self) -> usize {
        self.steps.capacity() * size_of::<Step>() + self.keys.capacity() * size_of::<(u32, Hash)>()
    }
}

impl<'s> Executor<'s> {
    /// MULTI: requests are queued from here on, in the memory of a short queue that has run before.
    pub(super) fn multi(&mut self, session: &mut Session, reply: &mut Reply) -> Done {
        if !session.begin_transaction(&mut self.queue_room) {
            return Err(error::multi_in_multi());
        }
        reply.ok();
        Ok(())
    }

    /// EXEC: runs what the session has queued.
    pub(super) fn exec(&mut self, session: &mut Session, reply: &mut Reply) -> Done {
        let Some(queue) = session.take_queue() else { return Err(error::exec_without_multi()) };
        let done = match queue.is_broken {
            true => Err(error::transaction_broken()),
            false => self.run_as_one(session, &queue, reply),
        };
        if self.attempts.have_given_up_queue() || done.as_ref().is_err_and(error::is_put_off) {
            cold_path();
            session.put_queue_back(queue);
            return done;
        }
        if let Some(shared) = self.plan.shared.take() {
            cold_path();
            self.lend_queue(session, queue, *shared);
            return done;
        }
        session.record.forget_queue(self.counters);
        session.unwatch(self.server);
        self.queue_room.keep(queue);
        done
    }

    /// Runs requests as one step, and answers with an array of their replies. The caller is inside the
    /// worker's gate and holds no shard.
    fn run_as_one(&mut self, session: &mut Session, queue: &Queue, reply: &mut Reply) -> Done {
        let (mark, request_bytes) = (self.mark, self.request_bytes);
        // What has come with EXEC was asked for when it was queued.
        let is_late = request_bytes <= queue.request_bytes();
        // What was queued in earlier turns may be of interest to the log of large requests.
        let is_larger = queue.request_bytes() > request_bytes;
        if is_larger {
            self.request_bytes = queue.request_bytes();
            self.bound();
        }
        session.modes.set(Modes::EXECUTING);
        let mut plan = std::mem::take(&mut self.plan);
        let locks = match self.attempts.are_of_queue() {
            true => Locks::OfScripts,
            false => self.plan(&mut plan, queue),
        };
        let done = match locks {
            Locks::OfScripts => self.attempt_queue(session, queue, reply),
            Locks::Keys => {
                plan.shared = self.run_on_shards(session, (queue, is_late), &plan, reply);
                Ok(())
            }
            Locks::Everything => self.alone(|this| {
                this.serves_later = true;
                this.run_alone(session, queue, reply);
                this.serves_later = false;
                if this.server.key_events.waiters.is_ready() {
                    this.serve_ready();
                }
            }),
        };
        self.plan = plan;
        session.modes.clear(Modes::EXECUTING);
        if is_larger {
            self.request_bytes = request_bytes;
            self.bound();
        }
        // EXEC took as long as all its requests together, each of which has been counted by itself too.
        self.mark = mark;
        self.has_muted = done.is_ok() && !session.reply_mode.answers();
        done
    }

    /// Finds the keys of all requests.
    fn plan(&mut self, plan: &mut Plan, queue: &Queue) -> Locks {
        plan.steps.clear();
        plan.keys.clear();
        (plan.may_be_long, plan.may_answer_much, plan.words) = (false, false, 0);
        for queued in queue.iter() {
            let row = self.server.registry.row(queued.row);
            let Some(handler) = Handler::of(row, &queued.args) else { return Locks::Everything };
            plan.may_be_long |= long_of(row, &queued.args).is_some();
            let may_answer_much = row.at_once.is_some_and(|long| !long.is_surely_quick(&queued.args));
            plan.may_answer_much |= may_answer_much;
            if matches!(handler, Handler::Data(_)) {
                self.plan_keys(plan, row, &queued);
            }
            let keys = plan.keys.len() - plan.steps.last().map_or(0, |step| step.keys_end);
            plan.words += queued.args.len().saturating_sub(1 + WORDS_A_KEY * keys) as u64;
            plan.steps.push(Step { handler, keys_end: plan.keys.len(), may_answer_much });
        }
        plan.may_be_long |= plan.words >= LONG_STEPS;
        Locks::Keys
    }

    fn plan_keys(&mut self, plan: &mut Plan, row: &Row, Queued { hash, args, .. }: &Queued<'_>) {
        if let (Some(at), Some(hash)) = (row.fixed_keys.only(args.len()), *hash) {
            return plan.keys.push((at as u32, hash));
        }
        row.extract_keys(args, &mut self.positions);
        let mut known = hash.filter(|_| row.first_key() == self.positions.first().map(|p| *p as usize));
        let hash_of = |position: u32| self.server.keyspace.hash(args.at(position as usize));
        let keys = self.positions.iter().map(|p| (*p, known.take().unwrap_or_else(|| hash_of(*p))));
        plan.keys.extend(keys);
    }

    /// Whether a request whose reply may be long names a key of many elements. Most do not, and pay for no
    /// closer look.
    fn has_large_key<'k>(&self, db: u16, (queue, plan): (&'k Queue, &Plan), view: &View<'k>) -> bool {
        let mut start = 0;
        let mut steps = queue.iter().zip(&plan.steps);
        self.server.restless.is_on()
            || steps.any(|(queued, step)| {
                let first = std::mem::replace(&mut start, step.keys_end);
                step.may_answer_much
                    && plan.keys.get(first).is_some_and(|(at, hash)| {
                        view.elements(&view.key(db, queued.args.at(*at as usize), *hash)) >= MANY_ELEMENTS
                    })
            })
    }

    /// The keys of a queue that has come in earlier turns are no longer in the cache. One that is to run
    /// elsewhere does not run: what it runs on is returned.
    fn run_on_shards(
        &mut self,
        session: &mut Session,
        (queue, is_late): (&Queue, bool),
        plan: &Plan,
        reply: &mut Reply,
    ) -> Option<Box<SharedQueue>> {
        // The view keeps these settings while requests may look at newer ones.
        let config = Arc::clone(&self.config);
        let hashes = || plan.keys.iter().map(|(_, hash)| *hash);
        let watched = session.watching.iter().flat_map(|all| &all.0).map(|watched| watched.hash);
        let keyspace = &self.server.keyspace;
        let mut view = keyspace.lock_shards_of(self.now.wall, &config.store, hashes().chain(watched));
        if is_late {
            view.prefetch(session.db, hashes());
        }
        let is_overdue = |watched: &WatchedKey| view.has_overdue(watched.db, &watched.key, watched.hash);
        if session.has_stale_watch(self.server, is_overdue) {
            answer_null(session, reply);
            return None;
        }
        if (plan.may_be_long || plan.may_answer_much && self.has_large_key(session.db, (queue, plan), &view))
            && let Some(shared) = self.share_queue(session, (queue, plan), &mut view)
        {
            cold_path();
            self.let_go(view);
            return Some(Box::new(shared));
        }
        begin(session, queue, reply);
        self.recorder.open();
        let mut left = Left::default();
        let mut tokens = Vec::new();
        let mut keys = &plan.keys[..];
        for (step, queued) in plan.steps.iter().zip(queue.iter()) {
            let (row, args) = (self.server.registry.row(queued.row), queued.args);
            let mine = keys.split_off(..step.keys_end - (plan.keys.len() - keys.len()));
            self.run_step(session, row, args, reply, |this, session, reply| match step.handler {
                Handler::Server(run) => {
                    this.tell_replicas(session.db, row, &args);
                    this.run_on_server(session, run, args, reply)
                }
                Handler::Data(run) => {
                    let (mine, db) = (mine.unwrap_or_default(), session.db);
                    if let [(at, hash)] = mine {
                        let key = view.key(db, args.at(*at as usize), *hash);
                        return this.run_in(&mut view, row, run, (args, &[key], reply), &mut left);
                    }
                    tokens.clear();
                    let key = |(at, hash): &(u32, Hash)| view.key(db, args.at(*at as usize), *hash);
                    tokens.extend(mine.iter().map(key));
                    this.run_in(&mut view, row, run, (args, &tokens, reply), &mut left)
                }
            });
        }
        self.recorder.close(&self.server.journal);
        self.let_go_of_queue(view, left);
        None
    }

    /// Unlocks the shards, after serving those who wait for a key that the queue has changed.
    fn let_go_of_queue(&self, view: View<'_>, mut left: Left) {
        if left.ready.is_empty() {
            drop(view);
        } else {
            self.serve_keys(view, left.ready.in_order());
        }
        if !left.garbage.is_empty() {
            self.server.background.free(&mut left.garbage);
        }
    }

    /// Runs a command on keys whose shards are locked already.
    #[inline(always)]
    pub(super) fn run_in<'k>(
        &self,
        view: &mut View<'k>,
        row: &Row,
        run: fn(&mut Call<'_, '_>) -> Done,
        (args, keys, reply): (Args<'k>, &[Key<'k>], &mut Reply),
        left: &mut Left,
    ) -> Done {
        view.begin_anew();
        self.prepare(view, row, keys);
        let db = keys.first().map_or(0, Key::db);
        let done = self.run_call(db, view, run, (args, keys, reply), |call| call.give_up_waiting());
        if view.has_garbage() {
            cold_path();
            let (told, events) = (view.take_told(), &self.server.key_events);
            if let Some(attempt) = &self.attempt {
                attempt.defer(told, view.take_garbage());
                self.remember_reader();
                return done;
            }
            self.hear(&told);
            if events.waiters.is_any() {
                left.ready.add(events.waiters.awaited(&told));
            }
            left.garbage.append(&mut view.take_garbage());
        }
        done
    }

    /// All gates are taken: each request locks what it needs.
    fn run_alone(&mut self, session: &mut Session, queue: &Queue, reply: &mut Reply) {
        let (keyspace, now) = (&self.server.keyspace, self.now.wall);
        let is_overdue =
            |key: &WatchedKey| keyspace.deadline_of(key.db, &key.key).is_some_and(|at| at.is_past(now));
        if session.has_stale_watch(self.server, is_overdue) {
            return answer_null(session, reply);
        }
        begin(session, queue, reply);
        self.recorder.open();
        for Queued { row, hash, args } in queue.iter() {
            let row = self.server.registry.row(row);
            let request = Request { row: Some(row), hash, framing: Framing::Unknown, args };
            self.run_step(session, row, args, reply, |this, session, reply| {
                this.run(session, row, &request, reply)
            });
        }
        self.recorder.close(&self.server.journal);
    }

    /// Runs one request and counts it, with its error if it makes one.
    fn run_step(
        &mut self,
        session: &mut Session,
        row: &'s Row,
        args: Args<'_>,
        reply: &mut Reply,
        run: impl FnOnce(&mut Self, &mut Session, &mut Reply) -> Done,
    ) {
        let (start, was_full) = (reply.out.len(), reply.is_full());
        // A client that has had itself closed (CLIENT KILL) is not sent the replies that follow.
        let is_leaving = session.after >= After::Close;
        let done = self.still_permits(session, row, &args).and_then(|()| run(self, session, reply));
        if let Err(error) = done {
            self.counters.commands[row.number].failed.add(1);
            self.counters.count_error(error.text());
            reply.error(error.text());
        }
        reply.finish();
        if is_leaving || is_mute(session) {
            reply.cut(start);
            session.append_unmuted(reply);
            if was_full {
                reply.give_up();
            }
        }
        let ticks = self.lap();
        let reply_bytes = reply.out.len() - start;
        self.counters.commands[row.number].count(ticks, self.tracked);
        if ticks >= self.ticks_max || reply_bytes >= self.bounds.reply_bytes {
            self.look(session, row, true, (ticks, args, reply_bytes));
        }
    }
}

impl Executor<'_> {
    /// The rules of the user may have changed since a request was queued, by another client or by what ran
    /// before it.
    #[inline(always)]
    pub(super) fn still_permits(&self, session: &Session, row: &Row, args: &Args<'_>) -> Done {
        match session.modes.has(Modes::RESTRICTED) {
            true => self.look_at_rules(session, row, args),
            false => Ok(()),
        }
    }

    #[cold]
    fn look_at_rules(&self, session: &Session, row: &Row, args: &Args<'_>) -> Done {
        if let Err(denied) = permission::check(&session.user, row, args) {
            let by = (&*session.record, permission::context(session));
            permission::note(self.server, by, row, (&session.user, denied), args);
            return Err(error::rules_changed(denied.reason));
        }
        match row.run {
            Run::Data(DataRun::KeysOrAll(ways)) => permission::check_options(session, row, ways, args),
            _ => Ok(()),
        }
    }
}

/// What a queue has to be run under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Locks {
    /// The shards of its keys.
    Keys,
    /// All gates.
    Everything,
    /// Whatever its scripts reach for.
    OfScripts,
}

/// The reply of EXEC when a key that the client watches has changed, and nothing runs.
pub(super) fn answer_null(session: &Session, reply: &mut Reply) {
    if !is_mute(session) {
        reply.null_array();
    }
}

/// Begins the reply of EXEC: an array of as many replies as there are requests.
pub(super) fn begin(session: &Session, queue: &Queue, reply: &mut Reply) {
    if !is_mute(session) {
        reply.array(queue.len());
    }
}

/// Whether nobody wants the reply of the request that has run. CLIENT REPLY SKIP within a queue is about the
/// first request after the queue.
fn is_mute(session: &Session) -> bool {
    matches!(session.reply_mode, ReplyMode::Off | ReplyMode::Skip)
}
