//! One server: everything that its workers have in common. There is one value of it for each running server,
//! made by `start.rs` and borrowed by every worker until the server ends; in tests several run in one
//! process.
//!
//! Every field may be used by any thread at any time, so each is atomic, has a lock of its own, or never
//! changes. What is written for every request is not here: each worker has its own counters, on its own cache
//! lines (`state/counters.rs`). docs/threads.md describes the threads and what they tell each other.
use crate::core::command_log::CommandLog;
use crate::core::key_events::KeyEvents;
use crate::core::mailbox::{Mailbox, Mailboxes, Message};
use crate::core::monitors::Monitors;
use crate::core::registry::Registry;
use crate::core::session::ClientRecord;
use crate::state::acl::{Accounts, Rules};
use crate::state::append_only::AppendOnly;
use crate::state::background::Background;
use crate::state::clock::{Clock, Moment};
use crate::state::config::notify::published;
use crate::state::config::{AppendSync, Config};
use crate::state::counters::AllCounters;
use crate::state::defrag::DefragStats;
use crate::state::expiry_watch::ExpiryWatch;
use crate::state::fruitless::Fruitless;
use crate::state::gate::{Alone, Gates, ShutOut};
use crate::state::journal::Journal;
use crate::state::latency::LatencyMonitor;
use crate::state::lending::{Job, Lending};
use crate::state::listening::Listening;
use crate::state::lock::lock;
use crate::state::log::{Log, Seldom};
use crate::state::memory_pressure::MemoryPressure;
use crate::state::moving::Moving;
use crate::state::pause::Pause;
use crate::state::persistence::{Persistence, UNSAVED};
use crate::state::pubsub::PubSub;
use crate::state::replication::ReplicationId;
use crate::state::restless::Restless;
use crate::state::scripts::Scripts;
use crate::state::tls::TlsInForce;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use store::{Classes, Keyspace};

/// See the file's opener. Its parts are public to the crate: a command reaches them through its call.
pub(crate) struct Server {
    /// The data: shards, each behind a lock of its own.
    pub(crate) keyspace: Keyspace,
    /// Those who are told what happens to keys.
    pub(crate) key_events: Arc<KeyEvents>,
    /// Every command's row. It never changes while the server runs.
    pub(crate) registry: Registry,
    pub(crate) clock: Clock,
    pub(crate) log: Log,
    /// The settings; [`Server::config`] reads them.
    pub(crate) in_force: InForce,
    /// The users in force, and ACL LOG.
    pub(crate) accounts: Accounts,
    /// The record of every connection, by client id. A connection stands here from the moment it is served
    /// until it is closed or killed.
    pub(crate) clients: Mutex<BTreeMap<u64, Arc<ClientRecord>>>,
    /// Ids begin at 1 and are never used twice.
    pub(crate) next_client_id: AtomicU64,
    /// Where `maxmemory-clients` is passed by clients that must not be closed.
    pub(crate) no_client_to_close: Fruitless,
    /// One for each worker, by its index: how the others reach it.
    pub(crate) mailboxes: Arc<Mailboxes>,
    /// Who listens to which channel.
    pub(crate) pubsub: Arc<PubSub>,
    /// Held by workers while they run commands; whoever takes all of them runs alone.
    pub(crate) gates: Gates,
    pub(crate) counters: AllCounters,
    /// SLOWLOG and COMMANDLOG
    pub(crate) command_log: CommandLog,
    /// LATENCY: what took longer than `latency-monitor-threshold`.
    pub(crate) latency: LatencyMonitor,
    /// The clients that watch with MONITOR.
    pub(crate) monitors: Monitors,
    /// Takes requests that take long, with their sessions.
    pub(crate) lending: Lending<Job>,
    pub(crate) scripts: Scripts,
    /// Keys that MIGRATE is sending.
    pub(crate) moving: Moving,
    /// Takes what is to be freed, and work on memory that is not urgent.
    pub(crate) background: Background,
    pub(crate) stats: Stats,
    pub(crate) warnings: Warnings,
    /// How many bytes of replies may wait for one client where no setting says so; see
    /// `core/output_bound.rs`.
    pub(crate) output_bytes_max: AtomicU64,
    /// For how long memory was over `maxmemory`, and how much workers are freeing.
    pub(crate) pressure: MemoryPressure,
    /// The append-only file: whether there is one, and how far it is on the disk.
    pub(crate) append: Arc<AppendOnly>,
    /// The dump file: whether it is being loaded, and when it was written.
    pub(crate) persistence: Persistence,
    /// What active defragmentation has done.
    pub(crate) defrag: DefragStats,
    /// Which worker wakes for the next key that expires.
    pub(crate) expiry_watch: ExpiryWatch,
    /// Whether keys are removed when their time comes. DEBUG SET-ACTIVE-EXPIRE 0 leaves that to whoever looks
    /// them up.
    pub(crate) expires: AtomicBool,
    /// CLIENT PAUSE
    pub(crate) pause: Pause,
    /// What writes have come to.
    pub(crate) journal: Arc<Journal>,
    /// DEBUG PAUSE-CRON
    pub(crate) is_cron_paused: AtomicBool,
    /// DEBUG RESTLESS
    pub(crate) restless: Restless,
    pub(crate) ending: Ending,
    /// Drawn from the system's randomness; each worker derives a seed of its own from it.
    pub(crate) random_seed: u64,
    pub(crate) replication_id: ReplicationId,
    /// 40 hex digits, INFO's run_id.
    pub(crate) run_id: String,
    /// When it started, for INFO's uptime.
    pub(crate) started: Moment,
    pub(crate) listening: Listening,
    /// Certificates, keys and options with which new connections of TLS begin.
    pub(crate) tls: TlsInForce,
    /// "epoll" or "io_uring"
    pub(crate) engine_name: &'static str,
    /// Itself, for threads that it starts.
    pub(crate) this: Weak<Server>,
}

/// The configuration in force. CONFIG SET replaces it by [`Server::replace_config`].
pub(crate) struct InForce {
    /// Replaced as a whole, so that whoever has read it goes on with what it has.
    config: RwLock<Arc<Config>>,
    /// Held while it is changed or written to its file, which may take long: readers do not wait for that.
    writer: Mutex<()>,
    /// Grows with every replacement: workers compare it, which costs a load, before they ask for the lock.
    version: AtomicU64,
}

impl InForce {
    /// The settings with which the server starts.
    pub(crate) fn new(config: Config) -> InForce {
        InForce {
            config: RwLock::new(Arc::new(config)),
            writer: Mutex::default(),
            version: AtomicU64::new(0),
        }
    }
}

/// Whether the server stops, and what its process then returns.
#[derive(Default)]
pub(crate) struct Ending {
    /// Workers look at it once each turn of their event loop.
    is_near: AtomicBool,
    exit_status: AtomicI32,
    /// The number of the signal that asks for the end; 0: none does.
    asked_by: AtomicI32,
}

impl Ending {
    /// A signal asks for the end. Returns whether one did so before, and has not been answered.
    pub(crate) fn ask(&self, signal: Signal) -> bool {
        self.asked_by.swap(signal as i32, Ordering::AcqRel) != 0
    }

    /// The last signal that asks for the end.
    pub(crate) fn asked_by(&self) -> Option<Signal> {
        Signal::try_from(self.asked_by.load(Ordering::Acquire)).ok()
    }

    /// The server goes on. Returns whether a signal had asked for the end.
    pub(crate) fn call_off(&self) -> bool {
        self.asked_by.swap(0, Ordering::AcqRel) != 0
    }
}

/// Warnings that a client could cause again and again. Each is logged once a minute at most.
#[derive(Default)]
pub(crate) struct Warnings {
    /// The system gives no descriptor or memory for a client.
    pub(crate) accepting: Seldom,
    /// A handshake of TLS has failed.
    pub(crate) handshakes: Seldom,
    /// A client's socket refuses an option, such as keepalive.
    pub(crate) options: Seldom,
    /// No worker can take a client: there is no room for the connection, or TLS was turned off.
    pub(crate) adopting: Seldom,
}

/// Counters that no worker owns; those of a worker's hot path are its own ([`AllCounters`]).
#[derive(Default)]
pub(crate) struct Stats {
    pub(crate) connections_received: AtomicU64,
    pub(crate) connections_rejected: AtomicU64,
    /// AUTH and HELLO with a wrong name or password.
    pub(crate) logins_denied: AtomicU64,
    /// What users' rules refused.
    pub(crate) commands_denied: AtomicU64,
    pub(crate) keys_denied: AtomicU64,
    pub(crate) channels_denied: AtomicU64,
    pub(crate) output_limit_disconnections: AtomicU64,
    pub(crate) query_limit_disconnections: AtomicU64,
    /// When the warning of `cross_protocol.rs` was last logged, in seconds of the Unix time.
    pub(crate) attack_logged_s: AtomicI64,
    /// Closed by `maxmemory-clients`.
    pub(crate) clients_evicted: AtomicU64,
    /// Requests that ran on other threads.
    pub(crate) requests_lent: AtomicU64,
    /// Requests that ran on the thread of scripts.
    pub(crate) scripts_lent: AtomicU64,
    /// Scripts that a worker ran while no other ran anything.
    pub(crate) scripts_alone: AtomicU64,
    /// Filled in by the first worker ten times a second.
    pub(crate) ops_per_second: AtomicU64,
    pub(crate) input_bytes_per_second: AtomicU64,
    pub(crate) output_bytes_per_second: AtomicU64,
    pub(crate) turns_per_second: AtomicU64,
    /// The mean time of a turn of an event loop, lately.
    pub(crate) turn_us: AtomicU64,
    /// How often CONFIG RESETSTAT has run.
    pub(crate) resets: AtomicU64,
    /// The largest buffers of the last seconds.
    pub(crate) recent_input_peak: AtomicU64,
    pub(crate) recent_output_peak: AtomicU64,
}

impl Stats {
    /// CONFIG RESETSTAT sets them back to zero, but for what was denied to users, which stays as
    /// in Redis.
    pub(crate) fn reset(&self) {
        let counters = [
            &self.connections_received,
            &self.connections_rejected,
            &self.output_limit_disconnections,
            &self.query_limit_disconnections,
            &self.clients_evicted,
            &self.requests_lent,
            &self.scripts_lent,
            &self.scripts_alone,
            &self.ops_per_second,
            &self.input_bytes_per_second,
            &self.output_bytes_per_second,
            &self.turns_per_second,
            &self.turn_us,
        ];
        self.resets.fetch_add(1, Ordering::Relaxed);
        counters.iter().for_each(|c| c.store(0, Ordering::Relaxed));
    }
}

impl Server {
    /// Ends CLIENT PAUSE: what it has held back goes on.
    pub(crate) fn end_pause(&self) {
        self.pause.stop();
        self.keyspace.resume_expiry();
        self.key_events.waiters.bring_back();
    }

    /// The configuration in force, as it is now. It takes a lock that is held for no longer than to copy a
    /// pointer; workers keep the result until [`Server::config_version`] has changed.
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.in_force.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The configuration in force; None while another thread replaces it. For the crash report, which must
    /// not wait for a lock.
    pub(crate) fn try_config(&self) -> Option<Arc<Config>> {
        self.in_force.config.try_read().ok().map(|config| Arc::clone(&config))
    }

    /// Grows with every change of the configuration; workers compare it once a batch and after every server
    /// command.
    pub(crate) fn config_version(&self) -> u64 {
        self.in_force.version.load(Ordering::Acquire)
    }

    /// Changes the configuration as a whole: `change` sees the present one and returns the next, or why there
    /// is none. One change is made at a time, and none while [`Server::with_config_kept`] works. It may wait
    /// for a disk, so it is not to be called inside a gate (`ServerRun::Outside`).
    pub(crate) fn replace_config<E>(
        &self,
        change: impl FnOnce(&Config) -> Result<Config, E>,
    ) -> Result<(), E> {
        let writer = self.in_force.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let next = Arc::new(change(&self.config())?);
        self.keyspace.go_by(next.store.eviction.policy);
        self.notify_of(published(next.notify));
        *self.in_force.config.write().unwrap_or_else(PoisonError::into_inner) = next;
        self.in_force.version.fetch_add(1, Ordering::Release);
        self.refuse_writes_if_unsaved();
        // Before the next change, so that the last one counts.
        self.obey_append_settings();
        drop(writer);
        // Sleeping workers may have planned their sleep by the old settings.
        self.mailboxes.iter().for_each(Mailbox::wake);
        Ok(())
    }

    /// From here on events of keys of these classes are published. It locks one shard after the other.
    pub(crate) fn notify_of(&self, classes: Classes) {
        if self.keyspace.classes() != classes {
            self.key_events.notifier.obey(classes);
            self.keyspace.hear_classes(classes);
        }
    }

    /// Calls `work` with a configuration that nobody changes meanwhile. One such call is made at a time:
    /// CONFIG REWRITE writes its file in it.
    pub(crate) fn with_config_kept<R>(&self, work: impl FnOnce(&Config) -> R) -> R {
        let _writer = self.in_force.writer.lock().unwrap_or_else(PoisonError::into_inner);
        work(&self.config())
    }

    /// What rules of users are read against.
    pub(crate) fn rules(&self) -> Rules<'_> {
        Rules { catalog: &self.accounts.catalog, channels: self.config().acl_channels_default }
    }

    /// The records of all clients, locked: nobody connects or leaves while the caller holds them.
    pub(crate) fn clients(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<ClientRecord>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// CLIENT KILL of another connection: it runs no further command, is listed and counted no more, and is
    /// closed at its worker's next turn. (A client that kills itself sets its session's `after` instead, to
    /// get its reply.)
    pub(crate) fn kill(&self, record: &ClientRecord) {
        record.is_killed.store(true, Ordering::Release);
        self.monitors.remove(record);
        self.clients().remove(&record.id);
        self.mailboxes[record.worker].send(Message::Killed(record.id));
    }

    /// Nobody else runs commands until what is returned is dropped, and nothing is half done. It waits as
    /// [`Gates::enter_alone`](crate::state::gate::Gates::enter_alone) does.
    pub(crate) fn enter_alone(&self) -> Alone<'_> {
        let all = self.gates.enter_alone();
        self.finish_parts();
        all
    }

    /// The same for a worker, which does not wait for the end of a script that runs for long.
    pub(crate) fn try_enter_alone(&self) -> Result<Alone<'_>, ShutOut> {
        let all = self.gates.try_enter_alone()?;
        self.finish_parts();
        Ok(all)
    }

    /// Ends a request that runs in parts, before somebody looks who holds all gates.
    fn finish_parts(&self) {
        if let Some(request) = self.moving.in_parts() {
            request.finish();
        }
    }

    /// What the interpreters of scripts take.
    pub(crate) fn interpreter_bytes(&self) -> u64 {
        self.counters.0.iter().map(|worker| worker.interpreter_bytes.load(Ordering::Relaxed)).sum()
    }

    /// What the interpreters of functions take.
    pub(crate) fn functions_bytes(&self) -> u64 {
        let workers = self.counters.0.iter().map(|worker| worker.functions_bytes.load(Ordering::Relaxed));
        self.scripts.libraries.interpreter_bytes() + workers.sum::<u64>()
    }

    /// For how long the server has been up, by the steady time, which no change of the system's clock moves.
    pub(crate) fn uptime_s(&self) -> u64 {
        let passed_us = self.clock.steady_us() - self.started.steady.0 * 1000;
        u64::try_from(passed_us / 1_000_000).unwrap_or(0)
    }

    /// The server, to be kept by a thread of its own.
    pub(crate) fn shared(&self) -> Arc<Server> {
        self.this.upgrade().expect("whoever has lent it owns it")
    }

    /// Changes of the data since the last snapshot, or the start. It locks one shard after the other.
    pub(crate) fn changes_since_save(&self) -> u64 {
        self.keyspace
            .stats()
            .dirty
            .saturating_sub(self.persistence.saves.saved_changes.load(Ordering::Relaxed))
    }

    /// A snapshot has ended, well or not. Whoever sees in INFO that it has failed is refused writes, if the
    /// settings ask for that; whoever sees that it has not is not.
    pub(crate) fn note_snapshot(&self, is_written: bool) {
        let mut has_failed = lock(&self.persistence.saves.has_failed);
        *has_failed = !is_written;
        self.refuse_writes_if(*has_failed);
    }

    /// The settings have changed that say whether writes are refused when the last snapshot has failed.
    pub(crate) fn refuse_writes_if_unsaved(&self) {
        self.refuse_writes_if(*lock(&self.persistence.saves.has_failed));
    }

    /// The caller has the lock that orders snapshots that end and settings that change.
    fn refuse_writes_if(&self, has_failed: bool) {
        let config = self.config();
        let snapshots = &config.snapshots;
        let refuses = has_failed && snapshots.stops_writes && !snapshots.points().is_empty();
        self.persistence.refuse(UNSAVED, refuses);
    }

    /// Writes the append-only file as the settings say, or begins to, or ends.
    fn obey_append_settings(&self) {
        let settings = &self.config().append;
        self.append.obey(settings);
        self.journal.be_urgent(settings.sync == AppendSync::Always);
        self.append.want(settings.is_wanted);
        self.journal.look_again();
    }

    /// Ends the server: workers send what they still owe and return, and the process exits with
    /// `exit_status`. SHUTDOWN and the signals call this; it returns at once.
    pub(crate) fn stop(&self, exit_status: i32) {
        self.ending.exit_status.store(exit_status, Ordering::Release);
        self.ending.is_near.store(true, Ordering::Release);
        self.mailboxes.iter().for_each(Mailbox::wake);
    }

    /// A worker cannot go on: the log says why, and the server stops with exit status 1.
    pub(crate) fn fail(&self, why: &str) {
        self.log.warning(why);
        self.stop(1);
    }

    /// Whether the server has been told to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.ending.is_near.load(Ordering::Acquire)
    }

    /// What the process returns once all workers have.
    pub(crate) fn exit_status(&self) -> i32 {
        self.ending.exit_status.load(Ordering::Acquire)
    }
}
