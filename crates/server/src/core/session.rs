//! One connection's state, in two parts. The [`Session`] belongs to the connection's worker alone and needs
//! no lock. The [`ClientRecord`] is what other workers may read or change: CLIENT LIST reads it, CLIENT KILL
//! marks it.
use crate::core::address::{Side, append_address};
use crate::core::modes::Modes;
use crate::core::queue::Queue;
use crate::core::subscriptions::Subscriptions;
use crate::core::tracking::tracker::Tracker;
use crate::core::waiters::Waiter;
use crate::state::acl::{DEFAULT_USER, User, Users};
use crate::state::counters::{Count, Counters};
use crate::state::log::NAME_BYTES_LOGGED;
use crate::state::pubsub::Topic;
use crate::state::watched::Mark;
use base::Millis;
use base::hash::Hash;
use base::name::Name;
use std::hint::cold_path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

const CACHE_LINE: usize = 64;

/// What any worker may see of a connection. It is registered in `Server::clients` while the connection lives.
/// What the connection's worker writes for every batch stands first, on one cache line; each of those fields
/// has that worker as its only writer.
#[repr(C, align(64))]
pub(crate) struct ClientRecord {
    /// Never used twice.
    pub(crate) id: u64,
    /// When it was last served, or has read some of its replies; steady time.
    pub(crate) last_active_ms: AtomicI64,
    /// Commands that ran before the present batch.
    pub(crate) commands: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    /// Bytes of memory that its requests which have not run take, with spare capacity.
    pub(crate) query_buffer_bytes: AtomicU64,
    /// Bytes of replies that it has not read yet; a small number is not noted (`worker/slow_readers.rs`).
    pub(crate) output_buffer_bytes: AtomicU64,
    /// `Row::number` of the last command that began; [`ClientRecord::NO_COMMAND`] before the first.
    pub(crate) last_row: AtomicU32,
    /// CLIENT KILL sets this and wakes the connection's worker, which runs no further command and closes the
    /// connection at its next turn.
    pub(crate) is_killed: AtomicBool,
    /// It is closed as soon as it has read its replies.
    pub(crate) is_closing: AtomicBool,
    /// Its next request waits: for a key, a time, memory, or the end of CLIENT PAUSE. INFO counts it among
    /// `blocked_clients`.
    pub(crate) is_parked: AtomicBool,
    /// It speaks TLS.
    pub(crate) is_secure: bool,
    pub(crate) peer: net::Peer,
    /// The fd's number, for CLIENT LIST.
    pub(crate) fd: i32,
    /// The index of the worker that serves it, for as long as it lives.
    pub(crate) worker: usize,
    /// By the steady time.
    pub(crate) created_ms: i64,
    /// Of `query_buffer_bytes`: what has arrived and has not run, and what is known of a request that is not
    /// whole.
    pub(crate) query_len_bytes: AtomicU64,
    pub(crate) query_parsed_bytes: AtomicU64,
    /// How many channels, patterns and shard channels it listens to, and about how many bytes these take.
    pub(crate) subscriptions: [AtomicU32; 3],
    pub(crate) subscription_bytes: AtomicU64,
    /// What TLS takes for it: keys, and what has arrived and cannot be decrypted yet.
    pub(crate) tls_bytes: AtomicU64,
    /// Bytes that its request takes in the queues of keys, while it waits for some.
    pub(crate) waiter_bytes: AtomicU64,
    /// Whether its command waits; see [`ClientRecord::waiting`].
    pub(crate) waiting: Mutex<Option<Ticket>>,
    /// How many requests are queued since MULTI, or [`ClientRecord::NO_TRANSACTION`].
    pub(crate) queued: AtomicI64,
    /// What that queue takes of memory.
    pub(crate) queue_bytes: AtomicU64,
    /// How many keys the client watches, and what that takes.
    pub(crate) watched: AtomicU64,
    pub(crate) watched_bytes: AtomicU64,
    /// Whether one of them has changed: then the next EXEC runs nothing. Made when the client first watches.
    pub(crate) watch_mark: OnceLock<Mark>,
    /// How it tracks keys, if it ever has; and what its prefixes take.
    pub(crate) tracker: OnceLock<Arc<Tracker>>,
    pub(crate) tracking_bytes: AtomicU64,
    /// How many bytes the names take that it has given itself.
    pub(crate) name_bytes: AtomicU64,
    /// What changes rarely, behind a lock.
    pub(crate) details: Mutex<ClientDetails>,
}

/// How a connection has come, and to whom.
pub(crate) struct Way {
    pub(crate) peer: net::Peer,
    pub(crate) fd: i32,
    pub(crate) worker: usize,
    pub(crate) is_secure: bool,
}

/// What a connection keeps of requests that have not run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueryBuffer {
    pub(crate) len_bytes: usize,
    pub(crate) room_bytes: usize,
    pub(crate) parsed_bytes: usize,
}

const _: () = assert!(std::mem::offset_of!(ClientRecord, peer) == CACHE_LINE);

impl ClientRecord {
    /// `last_row` before the first command.
    pub(crate) const NO_COMMAND: u32 = u32::MAX;
    /// `queued` outside a transaction, as CLIENT LIST shows it.
    pub(crate) const NO_TRANSACTION: i64 = -1;

    /// Of a connection that has sent nothing yet.
    pub(crate) fn new(id: u64, way: Way, now: Millis) -> ClientRecord {
        let Way { peer, fd, worker, is_secure } = way;
        ClientRecord {
            id,
            peer,
            fd,
            worker,
            created_ms: now.0,
            last_active_ms: now.0.into(),
            commands: 0.into(),
            bytes_in: 0.into(),
            bytes_out: 0.into(),
            query_buffer_bytes: 0.into(),
            query_len_bytes: 0.into(),
            query_parsed_bytes: 0.into(),
            tls_bytes: 0.into(),
            output_buffer_bytes: 0.into(),
            subscriptions: Default::default(),
            subscription_bytes: 0.into(),
            queued: ClientRecord::NO_TRANSACTION.into(),
            queue_bytes: 0.into(),
            watched: 0.into(),
            watched_bytes: 0.into(),
            watch_mark: OnceLock::new(),
            name_bytes: 0.into(),
            last_row: ClientRecord::NO_COMMAND.into(),
            is_killed: false.into(),
            is_closing: false.into(),
            is_parked: false.into(),
            is_secure,
            waiter_bytes: 0.into(),
            tracker: OnceLock::new(),
            tracking_bytes: 0.into(),
            waiting: None.into(),
            details: ClientDetails { user: DEFAULT_USER.to_vec(), ..ClientDetails::default() }.into(),
        }
    }

    /// Whether its address, or ours that it has come to, is written so. `text` is room for it.
    pub(crate) fn is_at(&self, side: Side, address: &[u8], text: &mut Vec<u8>) -> bool {
        text.clear();
        append_address(&self.peer, side, text);
        text == address
    }

    /// The addresses as CLIENT LIST shows them and CLIENT KILL compares them: the client's, then ours. It
    /// allocates.
    pub(crate) fn addresses(&self) -> (String, String) {
        let text = |side| {
            let mut text = Vec::new();
            append_address(&self.peer, side, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        };
        (text(Side::Theirs), text(Side::Ours))
    }

    /// Whether it listens to anything: then the limits of the class `pubsub` hold for it.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.subscriptions.iter().any(|count| count.load(Relaxed) > 0)
    }

    /// Whether the client is on this machine: it came by a Unix socket or from a loopback address.
    pub(crate) fn is_local(&self) -> bool {
        match &self.peer {
            net::Peer::Unix { .. } => true,
            net::Peer::Tcp { peer, .. } => peer.ip().to_canonical().is_loopback(),
        }
    }

    /// Notes how much is kept of requests that have not run. Only the connection's worker calls this;
    /// `counters` are its own, and keep the sum over its clients.
    pub(crate) fn note_query_buffer(&self, query: QueryBuffer, counters: &Counters) {
        let bytes = (query.room_bytes + query.parsed_bytes) as u64;
        let before = self.query_buffer_bytes.load(Relaxed);
        if bytes != 0 || before != 0 {
            cold_path();
            note_buffer(&self.query_buffer_bytes, bytes, &counters.client_bytes, &counters.input_peak);
            self.query_len_bytes.store(query.len_bytes as u64, Relaxed);
            self.query_parsed_bytes.store(query.parsed_bytes as u64, Relaxed);
        }
    }

    /// Notes how much waits for the client to read it. Only the connection's worker calls this.
    pub(crate) fn note_output_buffer(&self, bytes: usize, counters: &Counters) {
        note_buffer(&self.output_buffer_bytes, bytes as u64, &counters.client_bytes, &counters.output_peak);
    }

    /// Notes how much TLS takes for it. Only the connection's worker calls this.
    pub(crate) fn note_tls(&self, bytes: usize, counters: &Counters) {
        note_buffer(&self.tls_bytes, bytes as u64, &counters.client_bytes, &counters.input_peak);
    }

    /// Notes how many bytes its request takes in the queues of keys. Only the connection's worker calls this.
    pub(crate) fn note_waiter(&self, bytes: usize, counters: &Counters) {
        let before = self.waiter_bytes.swap(bytes as u64, Relaxed);
        counters.state_bytes.add((bytes as u64).wrapping_sub(before));
    }

    /// The ticket of its command, if that waits, locked: whoever takes the ticket out ends the wait. While it
    /// is held shards are only tried, never waited for.
    pub(crate) fn waiting(&self) -> MutexGuard<'_, Option<Ticket>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the wait of its command. Returns whether it waited until now.
    pub(crate) fn end_waiting(&self) -> bool {
        self.waiting().take().is_some()
    }

    /// Ends the wait for CLIENT UNBLOCK, which leaves a command alone whose reply is on its way. Returns
    /// whether the command waited until now.
    pub(crate) fn unblock(&self) -> bool {
        self.waiting().take_if(|ticket| *ticket != Ticket::FOR_ANSWER).is_some()
    }

    /// Whether a key that the client watches has changed.
    #[inline]
    pub(crate) fn is_watch_broken(&self) -> bool {
        self.watch_mark.get().is_some_and(|mark| mark.load(Acquire))
    }

    /// How many keys the client watches; none once one of them has changed, as in Redis.
    pub(crate) fn watched_keys(&self) -> u64 {
        if self.is_watch_broken() { 0 } else { self.watched.load(Relaxed) }
    }

    /// Notes what the prefixes take that it tracks. Only the connection's worker calls this.
    pub(crate) fn note_tracking(&self, counters: &Counters) {
        let bytes = self.tracker.get().map_or(0, |tracker| tracker.prefix_bytes());
        let before = self.tracking_bytes.swap(bytes, Relaxed);
        counters.state_bytes.add(bytes.wrapping_sub(before));
    }

    /// Notes what the names take that it has given itself. Only the connection's worker calls this.
    pub(crate) fn note_names(&self, counters: &Counters) {
        self.note_name_bytes(self.details().name_bytes() as u64, counters);
    }

    /// Counts its names as freed: its connection has ended.
    pub(crate) fn forget_names(&self, counters: &Counters) {
        self.note_name_bytes(0, counters);
    }

    fn note_name_bytes(&self, bytes: u64, counters: &Counters) {
        let before = self.name_bytes.swap(bytes, Relaxed);
        counters.state_bytes.add(bytes.wrapping_sub(before));
    }

    /// What changes rarely, locked. Not for the path of every request.
    pub(crate) fn details(&self) -> MutexGuard<'_, ClientDetails> {
        self.details.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Brings a client's figure, its worker's sum and its worker's peak up to date. Nothing is written where
/// nothing has changed, so that the cache line stays shared.
fn note_buffer(cell: &AtomicU64, bytes: u64, sum: &Count, peak: &AtomicU64) {
    let before = cell.load(Relaxed);
    if before != bytes {
        cell.store(bytes, Relaxed);
        sum.add(bytes.wrapping_sub(before));
        if bytes > peak.load(Relaxed) {
            peak.store(bytes, Relaxed);
        }
    }
}

/// What a connection says about itself, or others decide about it, now and then.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientDetails {
    /// CLIENT SETNAME or HELLO SETNAME; empty for none.
    pub(crate) name: Vec<u8>,
    pub(crate) lib_name: Vec<u8>,
    pub(crate) lib_ver: Vec<u8>,
    /// Whose session it is; any bytes but white space.
    pub(crate) user: Vec<u8>,
    pub(crate) db: u16,
    pub(crate) is_resp3: bool,
    /// MONITOR
    pub(crate) is_monitor: bool,
    /// CLIENT NO-EVICT
    pub(crate) is_spared: bool,
    /// CLIENT NO-TOUCH
    pub(crate) is_touchless: bool,
}

impl ClientDetails {
    /// The client's name as logs keep it.
    pub(crate) fn logged_name(&self) -> &[u8] {
        beginning(&self.name)
    }

    /// A copy in which long names are cut.
    pub(crate) fn shortened(&self) -> ClientDetails {
        ClientDetails {
            name: beginning(&self.name).to_vec(),
            lib_name: beginning(&self.lib_name).to_vec(),
            lib_ver: beginning(&self.lib_ver).to_vec(),
            user: beginning(&self.user).to_vec(),
            ..*self
        }
    }

    /// How many bytes the names take that the client has given itself.
    fn name_bytes(&self) -> usize {
        self.name.len() + self.lib_name.len() + self.lib_ver.len()
    }
}

fn beginning(name: &[u8]) -> &[u8] {
    &name[..name.len().min(NAME_BYTES_LOGGED)]
}

/// What becomes of a connection after the command that ran last. The order matters: from `Close` on no
/// further request of it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(crate) enum After {
    /// The next request runs.
    Next,
    /// The next request runs when the client has been sent what it has just been told of.
    Tell,
    /// The next request runs at the connection's next turn: others come first, or it has to be parsed anew.
    Yield,
    /// The same request is tried again later: memory is being freed, or a worker has too much to deliver.
    Retry,
    /// No request runs until this command is answered (`blocking.rs`).
    Wait,
    /// No request runs until this one has: it runs on another thread, with the session (`lent.rs`).
    Elsewhere,
    /// QUIT, a protocol error, CLIENT KILL of itself: close once the replies have left.
    Close,
    /// It is a browser and no client (`cross_protocol.rs`): close at once.
    Abort,
    /// It has queued more than it may (client-query-buffer-limit): close at once.
    Overflow,
}

/// The worker's own part of a connection. Its protocol is not here but in the worker's reply: HELLO changes
/// it there, and the worker keeps it with the connection.
pub(crate) struct Session {
    pub(crate) record: Arc<ClientRecord>,
    /// What its worker calls the connection.
    pub(crate) conn: net::ConnId,
    /// What it listens to.
    pub(crate) subscriptions: Option<Box<Subscriptions>>,
    /// The database that SELECT has chosen.
    pub(crate) db: u16,
    /// The states in which its requests are checked before they run.
    pub(crate) modes: Modes,
    /// Its user, with the rules of this version of all users (`state/acl`).
    pub(crate) user: Arc<User>,
    pub(crate) users_version: u64,
    /// What is to happen after the command that ran last: the one field that the worker looks at between two
    /// requests.
    pub(crate) after: After,
    /// What is queued since MULTI; Some exactly in [`Modes::TRANSACTION`].
    pub(crate) queue: Option<Box<Queue>>,
    /// The keys that this client watches; see `state/watched.rs`.
    pub(crate) watching: Option<Box<Watching>>,
    /// The command of this client that waits, with [`After::Wait`].
    pub(crate) waiting: Option<Box<Waiting>>,
    /// CLIENT REPLY. After each command dispatch drops what it wrote unless this answers, and moves on to
    /// [`ReplyMode::next`].
    pub(crate) reply_mode: ReplyMode,
    /// Whether keys that this client looks at count as used: CLIENT NO-TOUCH says no.
    pub(crate) leaves_trace: bool,
    /// There was no memory when EXEC began whose scripts run, though what can be evicted was.
    pub(crate) is_short_of_memory: bool,
    /// What it has changed is told by records of the journal below this number.
    pub(crate) records_end: u64,
}

impl Session {
    /// A connection's state before its first request.
    pub(crate) fn new(conn: net::ConnId, record: Arc<ClientRecord>, users: &Users) -> Session {
        Session {
            record,
            conn,
            subscriptions: None,
            db: 0,
            modes: Modes::of_new(users),
            user: Arc::clone(users.default_user()),
            users_version: users.version(),
            after: After::Next,
            queue: None,
            watching: None,
            waiting: None,
            reply_mode: ReplyMode::default(),
            leaves_trace: true,
            is_short_of_memory: false,
            records_end: 0,
        }
    }

    /// Whether the client has to log in before it may do anything. Clients that are connected when the
    /// default user's password is taken away are served, and asked again when there is a new one.
    pub(crate) fn must_log_in(&self, users: &Users) -> bool {
        self.modes.has(Modes::NOT_LOGGED_IN) && users.ask_for_login()
    }

    /// The client has logged in as this user: from here on its requests run by the user's rules.
    pub(crate) fn log_in(&mut self, user: &Arc<User>) {
        self.modes.clear(Modes::NOT_LOGGED_IN);
        self.modes.restrict(user);
        self.user = Arc::clone(user);
        self.record.details().user = user.name().to_vec();
    }

    /// Makes the session that of the default user again, as when a client connects: if new clients have to
    /// log in, this one has to.
    pub(crate) fn log_out(&mut self, users: &Users) {
        let user = users.default_user();
        self.log_in(user);
        if users.ask_for_login() {
            self.modes.set(Modes::NOT_LOGGED_IN);
        }
    }

    /// Takes up the rules of its user that hold now. If there is no such user any more, nothing is allowed;
    /// but the rest of a transaction that has removed it runs by the rules of the default user, as in Redis.
    /// Returns false if the connection has to be closed: for that reason, or because its user has changed and
    /// it listens to something that the user may not hear.
    #[cold]
    pub(crate) fn obey(&mut self, users: &Users) -> bool {
        self.users_version = users.version();
        let renewed = users.renewed(&self.user).cloned();
        let is_known = renewed.is_some();
        let user = renewed.unwrap_or_else(|| match self.modes.has(Modes::EXECUTING) {
            true => Arc::clone(users.default_user()),
            false => Arc::new(users.nobody()),
        });
        // In Redis nobody is looked at where the user could hear nothing before.
        let is_looked_at = !Arc::ptr_eq(&user, &self.user) && self.user.allows_some_channel();
        self.modes.restrict(&user);
        self.user = user;
        is_known && !(is_looked_at && self.hears_too_much())
    }

    /// Takes the session away from its connection, to which it leaves what is needed to send the client what
    /// it has not asked for.
    pub(crate) fn lend(&mut self) -> Session {
        let stays = Session {
            record: Arc::clone(&self.record),
            subscriptions: self.subscriptions.take(),
            user: Arc::clone(&self.user),
            after: After::Elsewhere,
            queue: None,
            watching: None,
            waiting: None,
            ..*self
        };
        std::mem::replace(self, stays)
    }

    /// Whether it is what [`Session::lend`] has left.
    pub(crate) fn is_lent(&self) -> bool {
        self.after == After::Elsewhere
    }

    /// Puts back what [`Session::lend`] took away.
    pub(crate) fn take_back(&mut self, lent: Session) {
        let subscriptions = self.subscriptions.take();
        // What ran before, in the same turn, may have been recorded after the session was lent.
        let records_end = self.records_end.max(lent.records_end);
        // EXEC of a script may have ended the session (CLIENT KILL, SHUTDOWN). A request that may wait for
        // its keys may have begun to.
        let ends_or_waits = lent.after >= After::Close || lent.after == After::Wait;
        let after = if ends_or_waits { lent.after } else { After::Next };
        // EXEC has run there, and the next request is the one that CLIENT REPLY SKIP was about.
        let reply_mode = match lent.reply_mode {
            ReplyMode::SkipNext => ReplyMode::Skip,
            same => same,
        };
        *self = Session { subscriptions, after, records_end, reply_mode, ..lent };
    }

    /// Whether it listens to what its user may not.
    fn hears_too_much(&self) -> bool {
        [Topic::Channel, Topic::Pattern, Topic::Shard].into_iter().any(|topic| {
            let is_pattern = matches!(topic, Topic::Pattern);
            self.subscribed(topic).iter().any(|name| !self.user.allows_channel(name, is_pattern))
        })
    }
}

/// The number of one wait, which tells it from other waits of the same client. Requests that wait for a key
/// are served in the order of their tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(crate) u64);

impl Ticket {
    /// The ticket of a command that waits for no key and stands in no queue.
    pub(crate) const NO_KEY: Ticket = Ticket(0);
    /// The ticket of a command whose reply will come, and that CLIENT UNBLOCK leaves waiting.
    pub(crate) const FOR_ANSWER: Ticket = Ticket(u64::MAX);
}

/// What a client watches.
#[derive(Default)]
pub(crate) struct Watching(pub(crate) Vec<WatchedKey>);

/// A key that a client watches.
pub(crate) struct WatchedKey {
    pub(crate) db: u16,
    pub(crate) key: Name,
    pub(crate) hash: Hash,
}

/// A command whose reply comes later.
pub(crate) struct Waiting {
    /// When it ends by itself, by the steady time; None if it never does.
    pub(crate) until: Option<Millis>,
    /// The reply that is sent when its time is over; None for a null array, which all commands that wait for
    /// keys send then.
    pub(crate) late_reply: Option<Vec<u8>>,
    /// CLIENT REPLY has turned its reply off: none is sent, whatever ends the wait.
    pub(crate) is_mute: bool,
    /// Its request in the queues of keys; None if it waits for no key.
    pub(crate) waiter: Option<Arc<Waiter>>,
    /// What it waits for on the disk of this server.
    pub(crate) local: Option<Local>,
}

/// WAITAOF waits until the disk has what its client wrote.
pub(crate) struct Local {
    /// All records of the journal below this number.
    pub(crate) number: u64,
    /// The reply that it has then.
    pub(crate) reply: Vec<u8>,
    /// It waits for nothing else.
    pub(crate) is_all: bool,
    /// The command has asked for it, not for replicas alone.
    pub(crate) is_asked: bool,
}

/// What a waiting client is answered when CLIENT UNBLOCK ends its wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unblock {
    /// As if its time were over.
    Timeout,
    Error,
}

/// CLIENT REPLY: which replies the client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum ReplyMode {
    #[default]
    On,
    Off,
    /// All but this command's and the next one's.
    SkipNext,
    /// All but this command's.
    Skip,
}

impl ReplyMode {
    /// Whether the command that just ran is answered.
    pub(crate) fn answers(self) -> bool {
        self == ReplyMode::On
    }

    /// The mode for the next command.
    pub(crate) fn next(self) -> ReplyMode {
        match self {
            ReplyMode::SkipNext => ReplyMode::Skip,
            ReplyMode::Skip => ReplyMode::On,
            same => same,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_mutes_itself_and_the_next_command() {
        let mut mode = ReplyMode::SkipNext;
        let mut answered = Vec::new();
        for _ in 0..3 {
            answered.push(mode.answers());
            mode = mode.next();
        }
        assert_eq!(answered, [false, false, true]);
        assert_eq!(ReplyMode::Off.next(), ReplyMode::Off);
    }
}
