//! One server: what all its workers have together.
use crate::core::command_log::CommandLog;
use crate::core::monitors::Monitors;
use crate::core::registry::Registry;
use crate::core::session::{ClientRecord, Unblock};
use crate::state::background::Background;
use crate::state::clock::{Clock, Moment};
use crate::state::config::Config;
use crate::state::counters::AllCounters;
use crate::state::defrag::DefragStats;
use crate::state::gate::Gates;
use crate::state::latency::Monitor;
use crate::state::listening::Listening;
use crate::state::log::{Log, Seldom};
use crate::state::pause::Pause;
use crate::state::pressure::Pressure;
use crate::state::promise::Promise;
use crate::state::replication::ReplicationId;
use crate::state::restless::Restless;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use store::Keyspace;

pub(crate) struct Server {
    pub(crate) keyspace: Keyspace,
    pub(crate) registry: Registry,
    pub(crate) clock: Clock,
    pub(crate) log: Log,
    pub(crate) in_force: InForce,
    /// Every connection's record, by client id.
    pub(crate) clients: Mutex<BTreeMap<u64, Arc<ClientRecord>>>,
    pub(crate) next_client_id: AtomicU64,
    /// How to reach each worker.
    pub(crate) posts: Box<[Post]>,
    pub(crate) gates: Gates,
    pub(crate) counters: AllCounters,
    pub(crate) command_log: CommandLog,
    pub(crate) latency: Monitor,
    pub(crate) monitors: Monitors,
    pub(crate) background: Background,
    pub(crate) stats: Stats,
    pub(crate) complaints: Complaints,
    /// What one client may be owed where no setting says so.
    pub(crate) output_bytes_max: AtomicU64,
    /// How short memory is.
    pub(crate) pressure: Pressure,
    pub(crate) defrag: DefragStats,
    /// Who wakes for the next key that expires.
    pub(crate) promise: Promise,
    /// Whether keys go when their time comes, not only when they are looked at (DEBUG SET-ACTIVE-EXPIRE).
    pub(crate) expires: AtomicBool,
    /// CLIENT PAUSE
    pub(crate) pause: Pause,
    /// DEBUG PAUSE-CRON
    pub(crate) is_cron_paused: AtomicBool,
    /// DEBUG RESTLESS
    pub(crate) restless: Restless,
    pub(crate) ending: Ending,
    pub(crate) random_seed: u64,
    pub(crate) replication_id: ReplicationId,
    /// 40 hex digits, INFO's run_id.
    pub(crate) run_id: String,
    pub(crate) started: Moment,
    pub(crate) listening: Listening,
    /// "epoll" or "io_uring"
    pub(crate) engine_name: &'static str,
}

/// The configuration in force. CONFIG SET replaces it by [`Server::replace_config`].
pub(crate) struct InForce {
    config: RwLock<Arc<Config>>,
    /// Held while it is changed or written to its file, which may take long: readers do not wait for that.
    writer: Mutex<()>,
    version: AtomicU64,
}

impl InForce {
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
    is_near: AtomicBool,
    exit_status: AtomicI32,
}

/// One worker's letter box.
pub(crate) struct Post {
    waker: net::Waker,
    letters: Mutex<Vec<Letter>>,
    /// Connections that it serves or has been given.
    pub(crate) connections: AtomicUsize,
}

/// What one worker asks of another.
pub(crate) enum Letter {
    /// The listeners have changed.
    Listen,
    /// Serve this connection.
    Adopt(net::Accepted),
    /// Show these lines to the clients that watch.
    Feed(Arc<[u8]>),
    /// The client with this id was killed.
    Killed(u64),
    /// The waiting of the client with this id was ended.
    Unblocked(u64, Unblock),
}

impl Post {
    pub(crate) fn new(waker: net::Waker) -> Post {
        Post { waker, letters: Mutex::default(), connections: AtomicUsize::new(0) }
    }

    pub(crate) fn send(&self, letter: Letter) {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).push(letter);
        self.waker.wake();
    }

    pub(crate) fn take(&self) -> Vec<Letter> {
        std::mem::take(&mut *self.letters.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn wake(&self) {
        self.waker.wake();
    }
}

/// What may happen with every new client, and is logged once a minute.
#[derive(Default)]
pub(crate) struct Complaints {
    pub(crate) accepting: Seldom,
    pub(crate) options: Seldom,
    pub(crate) adopting: Seldom,
}

/// Counters that no worker owns; those of a worker's hot path are its own ([`AllCounters`]).
#[derive(Default)]
pub(crate) struct Stats {
    pub(crate) connections_received: AtomicU64,
    pub(crate) connections_rejected: AtomicU64,
    /// AUTH and HELLO with a wrong name or password.
    pub(crate) logins_denied: AtomicU64,
    pub(crate) output_limit_disconnections: AtomicU64,
    pub(crate) query_limit_disconnections: AtomicU64,
    /// When the log last heard of an attack (`attack.rs`), in seconds.
    pub(crate) attack_logged_s: AtomicI64,
    /// Closed by `maxmemory-clients`.
    pub(crate) clients_evicted: AtomicU64,
    /// Filled in by the first worker ten times a second.
    pub(crate) ops_per_second: AtomicU64,
    pub(crate) input_bytes_per_second: AtomicU64,
    pub(crate) output_bytes_per_second: AtomicU64,
    pub(crate) turns_per_second: AtomicU64,
    /// What a turn of an event loop took lately.
    pub(crate) turn_us: AtomicU64,
    /// The largest buffers of the last seconds.
    pub(crate) recent_input_peak: AtomicU64,
    pub(crate) recent_output_peak: AtomicU64,
}

impl Stats {
    /// CONFIG RESETSTAT. `logins_denied` stays, as in Redis.
    pub(crate) fn reset(&self) {
        let counters = [
            &self.connections_received,
            &self.connections_rejected,
            &self.output_limit_disconnections,
            &self.query_limit_disconnections,
            &self.clients_evicted,
        ];
        counters.iter().for_each(|c| c.store(0, Ordering::Relaxed));
    }
}

impl Server {
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.in_force.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same, unless it is being changed at this moment.
    pub(crate) fn try_config(&self) -> Option<Arc<Config>> {
        self.in_force.config.try_read().ok().map(|config| Arc::clone(&config))
    }

    /// Grows with every change of the configuration; workers compare it once a batch.
    pub(crate) fn config_version(&self) -> u64 {
        self.in_force.version.load(Ordering::Acquire)
    }

    /// Changes the configuration as a whole: `change` sees the present one and returns the next, or why not.
    /// One at a time, and not while [`Server::with_config_kept`] works. Not to be called inside a gate: it
    /// waits for a disk.
    pub(crate) fn replace_config<E>(
        &self,
        change: impl FnOnce(&Config) -> Result<Config, E>,
    ) -> Result<(), E> {
        let writer = self.in_force.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let next = Arc::new(change(&self.config())?);
        self.keyspace.go_by(next.store.eviction.policy);
        *self.in_force.config.write().unwrap_or_else(PoisonError::into_inner) = next;
        self.in_force.version.fetch_add(1, Ordering::Release);
        drop(writer);
        // Sleeping workers may have planned their sleep by the old settings.
        self.posts.iter().for_each(Post::wake);
        Ok(())
    }

    /// Works with a configuration that nobody changes meanwhile, nor works with like this.
    pub(crate) fn with_config_kept<R>(&self, work: impl FnOnce(&Config) -> R) -> R {
        let _writer = self.in_force.writer.lock().unwrap_or_else(PoisonError::into_inner);
        work(&self.config())
    }

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
        self.posts[record.worker].send(Letter::Killed(record.id));
    }

    /// How long it has been up, by the steady time.
    pub(crate) fn uptime_s(&self) -> u64 {
        let passed_us = self.clock.steady_us() - self.started.steady.0 * 1000;
        u64::try_from(passed_us / 1_000_000).unwrap_or(0)
    }

    /// Ends the server: workers flush what they owe and stop. SHUTDOWN and the signals.
    pub(crate) fn stop(&self, exit_status: i32) {
        self.ending.exit_status.store(exit_status, Ordering::Release);
        self.ending.is_near.store(true, Ordering::Release);
        self.posts.iter().for_each(Post::wake);
    }

    /// A worker cannot go on.
    pub(crate) fn fail(&self, why: &str) {
        self.log.warning(why);
        self.stop(1);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.ending.is_near.load(Ordering::Acquire)
    }

    pub(crate) fn exit_status(&self) -> i32 {
        self.ending.exit_status.load(Ordering::Acquire)
    }
}
