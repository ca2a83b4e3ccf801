//! From a configuration to a running server, and back: opens the sockets, puts the [`Server`] together,
//! starts its threads, and waits for them when it ends. This is where all parts of the crate meet.
use crate::commands::families::FAMILIES;
use crate::core::journal;
use crate::core::key_events::{KeyEvents, KeyListener};
use crate::core::mailbox::{Mailboxes, Message};
use crate::core::notify::Notifier;
use crate::core::persistence;
use crate::core::registry::Registry;
use crate::core::server::{Ending, InForce, Server, Stats};
use crate::core::tracking::Tracking;
use crate::service::{background, restless};
use crate::state::acl::{self, Accounts, Catalog, Passwords, Rules, Users};
use crate::state::append_only::AppendOnly;
use crate::state::background::Background;
use crate::state::clock::Moment;
use crate::state::config::Checks;
use crate::state::config::notify::published;
use crate::state::counters::AllCounters;
use crate::state::defrag::DefragStats;
use crate::state::disk::DiskWatch;
use crate::state::expiry_watch::ExpiryWatch;
use crate::state::gate::Gates;
use crate::state::journal::Journal;
use crate::state::lending::Lending;
use crate::state::listening::{self, Listening};
use crate::state::lock::lock;
use crate::state::memory_pressure::MemoryPressure;
use crate::state::moving::Moving;
use crate::state::pause::Pause;
use crate::state::persistence::{LOADING, Persistence};
use crate::state::pubsub::PubSub;
use crate::state::replication::ReplicationId;
use crate::state::start_error::StartError;
use crate::state::system::{self, adjust_oom_score};
use crate::state::tls::{self, TlsInForce};
use crate::worker::{ScriptThread, Worker};
use crate::{Clock, Config, ConfigError, Log, OomScore, Source};
use base::hash::Seed;
use net::{Engine, EngineKind, Listener, Opened, Peer};
use std::cell::OnceCell;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use store::{Keyspace, KeyspaceOptions};

impl Source {
    /// The default configuration with all of this over it. `stdin` is read if the command line says so. An
    /// error names the line.
    pub fn load(&self, stdin: &mut dyn Read) -> Result<Config, ConfigError> {
        with_checks(|checks| self.load_checked(stdin, checks))
    }

    /// The same where the configuration is only looked at: all errors.
    pub fn load_or_tell_all(&self, stdin: &mut dyn Read) -> Result<Config, Vec<ConfigError>> {
        with_checks(|checks| self.check(stdin, checks))
    }
}

/// Lines that name commands are checked against the commands that there are.
fn with_checks<R>(load: impl FnOnce(Checks<'_>) -> R) -> R {
    let catalog = OnceCell::new();
    let catalog = || catalog.get_or_init(|| Registry::new(FAMILIES).catalog());
    load(Checks {
        renames: &|renames| Registry::renamed(FAMILIES, renames).map(drop),
        user: &|line, channels| acl::file::check(line, &Rules { catalog: catalog(), channels }),
    })
}

/// Who connects at once to a server with little data need not know that it is being loaded: programs that
/// wait for the port alone take an error for a failure.
const UNTOLD: Duration = Duration::from_millis(100);

/// Files of fewer bytes are loaded in no time, unless the machine is very busy, or commands of an append-only
/// file take long, or `key-load-delay` asks for it: that is to see what is told meanwhile.
const SMALL_BYTES: u64 = 2 << 20;
const UNTOLD_IF_SMALL: Duration = Duration::from_secs(2);

/// A running server. In-process servers of tests are made in the same way as the program's. Dropping it ends
/// it.
pub struct Running {
    /// Where it listens. Ports that the system has chosen are known here.
    pub addresses: Vec<SocketAddr>,
    /// Where it listens for clients with TLS.
    pub tls_addresses: Vec<SocketAddr>,
    server: Arc<Server>,
    /// Those of workers that have not been started yet.
    engines: Mutex<Engines>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    scripts: Arc<ScriptThread>,
    background: Option<JoinHandle<()>>,
}

/// The means to end a server from any thread.
#[derive(Clone)]
pub struct Stopper(Arc<Server>);

impl Stopper {
    /// As SHUTDOWN NOSAVE would; `Running::wait` returns `exit_status`.
    pub fn stop(&self, exit_status: i32) {
        self.0.stop(exit_status);
    }

    pub(crate) fn server(&self) -> &Arc<Server> {
        &self.0
    }
}

impl Running {
    /// The means to end it while another thread waits for its end.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.server))
    }

    pub fn log(&self) -> &Log {
        &self.server.log
    }

    /// Loads the data, and says then that it is ready. Where that takes longer than [`UNTOLD`] (for a small
    /// file, [`UNTOLD_IF_SMALL`] more), clients are told that it is being loaded; those who have connected
    /// before wait.
    pub fn load(&self) -> Result<(), StartError> {
        let config = self.server.config();
        persistence::remove_left(&self.server.persistence.disk, &config.dir);
        pack::counted::note_startup();
        let (loaded, is_served) = match has_data(&config) {
            true => self.load_and_tell()?,
            false => (load_data(&self.server), false),
        };
        if let Err(why) = loaded {
            if self.server.is_stopping() {
                return Ok(());
            }
            self.server.log.warning(&why);
            self.server.stop(1);
            return Err(StartError(why));
        }
        if !is_served {
            self.serve()?;
        }
        announce(&self.server, &self.server.listening.all());
        Ok(())
    }

    /// Loads the data while another thread starts the workers if that takes long. What came of it, and
    /// whether they have been started.
    fn load_and_tell(&self) -> Result<(Result<(), String>, bool), StartError> {
        let (is_done, done) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let takes_longer = move |than| done.recv_timeout(than) == Err(mpsc::RecvTimeoutError::Timeout);
            let is_slowed = self.server.config().snapshots.load_delay != 0;
            let total_bytes = &self.server.persistence.loading.total_bytes;
            let is_small = move || !is_slowed && total_bytes.load(Relaxed) < SMALL_BYTES;
            let serve_late = move || {
                let is_late = takes_longer(UNTOLD) && (!is_small() || takes_longer(UNTOLD_IF_SMALL));
                if is_late { self.serve().map(|()| true) } else { Ok(false) }
            };
            let teller = std::thread::Builder::new().name("load".into()).spawn_scoped(scope, serve_late);
            let teller = teller.map_err(|e| cannot("start a thread for loading", &e))?;
            let loaded = load_data(&self.server);
            drop(is_done);
            let is_served = teller.join().expect("starting workers does not panic")?;
            Ok((loaded, is_served))
        })
    }

    /// Starts the workers.
    fn serve(&self) -> Result<(), StartError> {
        let engines = std::mem::take(&mut *lock(&self.engines));
        for (index, engine) in engines.into_iter().enumerate() {
            let worker = spawn((&self.server, &self.scripts), index, engine)
                .map_err(|e| cannot("start a worker", &e))
                .inspect_err(|e| self.server.log.warning(&e.0))?;
            lock(&self.workers).push(worker);
        }
        Ok(())
    }

    /// From here on the server does all the time, at random, what it otherwise does rarely (`DEBUG
    /// RESTLESS`): for tests.
    pub fn make_restless(&self, seed: u64) {
        if let Err(error) = self.server.restless.begin(seed) {
            self.server.fail(&format!("no thread for restless mode: {error}"));
        }
    }

    /// Holds back what workers lend to other threads from here on, or no longer: for tests.
    pub fn hold_lent(&self, is_held: bool) {
        self.server.lending.hold(is_held);
    }

    /// From here on requests that would add to what workers have to deliver wait, as if there were too much
    /// of that already, or no longer: for tests.
    pub fn congest(&self, is_congested: bool) {
        self.server.mailboxes.pretend_congested(is_congested);
    }

    /// How many requests wait for a thread that they are to run on.
    pub fn waiting_lent(&self) -> usize {
        self.server.lending.waiting()
    }

    /// From here on so many parts run of requests that run in parts, and no more; None: all. For tests.
    pub fn hold_parts_after(&self, parts: Option<usize>) {
        self.server.moving.hold_parts_after(parts);
    }

    /// Whether a request has begun to run in parts: for tests.
    pub fn has_parts_left(&self) -> bool {
        self.server.moving.in_parts().is_some()
    }

    /// Calls this while no request runs: for tests.
    pub fn while_alone<R>(&self, work: impl FnOnce() -> R) -> R {
        let _all = self.server.enter_alone();
        work()
    }

    /// From here on this one is told of whatever is done to the files of the data, and may have it fail: for
    /// tests, before [`Running::load`].
    pub fn watch_disk(&self, watch: Arc<dyn DiskWatch>) {
        self.server.persistence.disk.watch(watch);
    }

    /// From here on this reader is handed whatever changes the data (`disk::journal`), until the server ends.
    /// Returns a number for [`Running::end_journal`].
    pub fn read_journal(&self, reader: Box<dyn disk::journal::Reader>) -> std::io::Result<u64> {
        let (all, mut rest) = journal::enter_at_rest(&self.server);
        journal::attach(&self.server, (&all, &mut rest), reader)
    }

    /// Hands to all readers what has changed the data so far. Requests that have been answered are among it.
    /// Returns the number of the record that comes next.
    pub fn settle_journal(&self) -> u64 {
        let alone = self.server.enter_alone();
        self.server.journal.turn();
        self.server.journal.position(&alone)
    }

    /// That reader gets what has changed the data so far, and no more.
    pub fn end_journal(&self, reader: u64) {
        journal::finish(&self.server, reader, || ());
        let (all, mut rest) = journal::enter_at_rest(&self.server);
        drop(self.server.journal.part_with((&all, &mut rest), &self.server.keyspace, reader));
    }

    /// Waits until SHUTDOWN or a signal has ended it, and returns the exit status.
    pub fn wait(self) -> i32 {
        self.wait_then(|_| {})
    }

    /// Waits for the end as [`Running::wait`] does, and calls `last` when no client is served any more.
    pub fn wait_then(mut self, last: impl FnOnce(&Log)) -> i32 {
        self.join();
        last(&self.server.log);
        self.server.log.warning("Sardine is now ready to exit, bye bye...");
        self.server.exit_status()
    }

    /// Ends it as SHUTDOWN NOSAVE would, and waits.
    pub fn stop(self) {
        self.stopper().stop(0);
        self.wait();
    }

    /// Waits for all threads, workers first: they may still hand values to the background thread.
    fn join(&mut self) {
        lock(&self.engines).clear();
        for worker in std::mem::take(&mut *lock(&self.workers)) {
            // A worker that panicked has said so itself; the others are told.
            if worker.join().is_err() {
                self.server.fail("A worker has panicked: the server stops");
            }
        }
        self.server.restless.end();
        self.server.lending.end();
        self.scripts.end();
        self.server.listening.clear();
        persistence::append::end(&self.server);
        self.server.persistence.end();
        self.server.journal.end();
        persistence::append::forget_tail(&self.server);
        self.server.background.end();
        if let Some(background) = self.background.take() {
            let _ = background.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.background.is_some() {
            self.server.stop(0);
            self.join();
        }
    }
}

/// Opens the sockets, starts the workers, loads the data and returns. Why a server does not start is also
/// logged.
pub fn start(config: Config, clock: Clock, log: Log) -> Result<Running, StartError> {
    let running = start_when(config, clock, log, |_| {})?;
    running.load()?;
    Ok(running)
}

/// Whether a server would find right what the configuration names: users and certificates. It is not started,
/// and no folder is touched.
pub fn examine(config: &Config) -> Result<(), StartError> {
    if config.needs_tls() {
        net::Tls::load(&config.tls_settings()).map_err(StartError)?;
    }
    let catalog = registry(config)?.catalog();
    accounts(config, catalog, Passwords::new([0; 32]), &Log::silent()).map(drop)
}

/// Starts a server that has to load its data yet ([`Running::load`]), and calls `is_bound` once it has its
/// addresses, before any client is served.
pub fn start_when(
    config: Config,
    clock: Clock,
    log: Log,
    is_bound: impl FnOnce(&Log),
) -> Result<Running, StartError> {
    let logged = |e: &StartError| log.warning(&e.0);
    if let Err(error) = adjust_oom_score(OomScore::No, &config) {
        log.warning(&format!("Unable to write oom_score_adj: {}", crate::state::config::reason(&error)));
    }
    system::warn_of_limits(&config, &log);
    let no_tls = |()| StartError("Failed to configure TLS. Check logs for more info.".into());
    let tls = tls::load(&config, &log).map_err(no_tls).inspect_err(logged)?;
    let listeners = listening::open(&config, &log).inspect_err(logged)?;
    let engines = open_engines(&config, &log).inspect_err(logged)?;
    let (background, jobs) = Background::new();
    let (server, engines) =
        share(config, clock, log, (Listening::new(listeners), TlsInForce::new(tls)), engines, background)?;
    server.notify_of(published(server.config().notify));
    restless::serve(&server);
    let logged = |e: &StartError| server.log.warning(&e.0);
    let thread = background::start(jobs, &server)
        .map_err(|e| cannot("start the freeing thread", &e))
        .inspect_err(logged)?;
    crate::service::crash::note_server(&server);
    is_bound(&server.log);
    server.log.notice("Server initialized");
    let running = Running {
        addresses: server.listening.addresses(),
        tls_addresses: server.listening.tls_addresses(),
        server: Arc::clone(&server),
        engines: Mutex::default(),
        workers: Mutex::default(),
        scripts: Arc::default(),
        background: Some(thread),
    };
    let listeners = server.listening.all();
    // Nobody sees the data before it is loaded.
    server.persistence.refuse(LOADING, true);
    for mut engine in engines {
        for listener in &listeners {
            engine.listen(Arc::clone(listener)).map_err(|e| cannot("listen", &e)).inspect_err(logged)?;
        }
        lock(&running.engines).push(engine);
    }
    if let Some(seed) = restless::seed_of_environment(&server) {
        running.make_restless(seed);
    }
    Ok(running)
}

/// Whether there is anything to load. Where there is not, nobody need be told that it is being loaded.
fn has_data(config: &Config) -> bool {
    match config.append.is_wanted {
        true => persistence::append::has_data(config),
        false => persistence::has_data(config),
    }
}

/// Loads the data, from the append-only file or the dump file, and lets requests run then. An error says why
/// it cannot be loaded; the data is then not what the file holds, so the server must not go on.
fn load_data(server: &Server) -> Result<(), String> {
    match server.config().append.is_wanted {
        true => persistence::append::load(server)?,
        false => persistence::load(server)?,
    }
    server.persistence.refuse(LOADING, false);
    persistence::append::go_on(server);
    Ok(())
}

/// Scripts that start a server wait for these words.
fn announce(server: &Server, listeners: &[Arc<Listener>]) {
    let kind_of = |listener: &Arc<Listener>| match listener.local_addr() {
        Peer::Unix { .. } => "unix",
        Peer::Tcp { .. } if listener.is_secure() => "tls",
        Peer::Tcp { .. } => "tcp",
    };
    for kind in ["tcp", "unix", "tls"] {
        if listeners.iter().any(|listener| kind_of(listener) == kind) {
            server.log.notice(&format!("Ready to accept connections {kind}"));
        }
    }
}

fn cannot(what: &str, error: &std::io::Error) -> StartError {
    StartError(format!("Cannot {what}: {error}"))
}

fn open_engines(config: &Config, log: &Log) -> Result<Vec<Opened>, StartError> {
    let open = |kind| -> Result<Vec<Opened>, StartError> {
        let all = (0..config.worker_threads.max(1)).map(|_| net::open(kind)).collect::<Result<_, _>>();
        all.map_err(|e| cannot("open the I/O engine", &e))
    };
    let engines = open(config.io_engine)?;
    let Some(error) = engines.iter().find_map(|opened| opened.refused.as_ref()) else {
        return Ok(engines);
    };
    log.notice(&format!("io-engine auto: epoll, because io_uring was refused: {error}"));
    // All of one kind, since they share listeners: the last of them may have been refused for want of memory.
    open(EngineKind::Epoll)
}

/// Who hears of what happens to keys.
fn key_events(pubsub: &Arc<PubSub>, mailboxes: &Arc<Mailboxes>, keyspace: &Keyspace) -> Arc<KeyEvents> {
    let notifier = Notifier::new(Arc::clone(pubsub), Arc::clone(mailboxes));
    let tracking = tracking(Arc::clone(mailboxes), keyspace);
    Arc::new(KeyEvents::new(keyspace.shards(), notifier, tracking))
}

/// What clients are told of keys that they track goes by the workers' mailboxes.
fn tracking(mailboxes: Arc<Mailboxes>, keyspace: &Keyspace) -> Tracking {
    let post = move |worker, invalidation| mailboxes.post(worker, Message::Invalidated(invalidation));
    Tracking::new(Box::new(post), *keyspace.seed())
}

type Engines = Vec<Box<dyn Engine>>;

/// Puts the server together, with one engine for each worker.
fn share(
    config: Config,
    clock: Clock,
    log: Log,
    (listening, tls): (Listening, TlsInForce),
    opened: Vec<Opened>,
    background: Background,
) -> Result<(Arc<Server>, Engines), StartError> {
    let logged = |e: &StartError| log.warning(&e.0);
    let random = random_bytes().inspect_err(logged)?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| random[at * 8 + i]));
    let engine_name = opened[0].name;
    let engines: Engines = opened.into_iter().map(|opened| opened.engine).collect();
    let registry = registry(&config).inspect_err(logged)?;
    let passwords = Passwords::new(std::array::from_fn(|i| random[52 + i]));
    let accounts = accounts(&config, registry.catalog(), passwords, &log).inspect_err(logged)?;
    let mut keyspace = keyspace(&config, Seed::new(word(0), word(1)));
    let mailboxes = Arc::new(Mailboxes::new(engines.iter().map(|engine| engine.waker())));
    let pubsub = Arc::new(PubSub::new(mailboxes.len()));
    let key_events = key_events(&pubsub, &mailboxes, &keyspace);
    let journal = Journal::new(mailboxes.executors(), &config);
    keyspace.listen(Box::new(KeyListener { events: Arc::clone(&key_events), journal: Arc::clone(&journal) }));
    engines.iter().for_each(|engine| clock.wakes(engine.waker()));
    let server = Arc::new_cyclic(|this| Server {
        this: Weak::clone(this),
        append: Arc::new(AppendOnly::new(mailboxes.len(), &config.append)),
        persistence: Persistence::new(clock.now()),
        counters: counters(&mailboxes, &registry, &engines),
        gates: Gates::new(mailboxes.executors()),
        started: clock.moment(Moment::NONE),
        listening,
        tls,
        random_seed: word(2),
        run_id: base::text::hex(&random[32..52]),
        accounts,
        replication_id: ReplicationId::new(word(3)),
        next_client_id: 1.into(),
        no_client_to_close: Default::default(),
        clients: Default::default(),
        stats: Stats::default(),
        warnings: Default::default(),
        output_bytes_max: crate::core::output_bound::output_bytes_max().into(),
        pressure: MemoryPressure::default(),
        defrag: DefragStats::default(),
        expiry_watch: ExpiryWatch::new(),
        expires: true.into(),
        pause: Pause::default(),
        journal,
        lending: Lending::new(mailboxes.len() + 1),
        scripts: Default::default(),
        moving: Moving::default(),
        command_log: Default::default(),
        latency: Default::default(),
        monitors: Default::default(),
        is_cron_paused: false.into(),
        restless: Default::default(),
        keyspace,
        key_events,
        registry,
        clock,
        log,
        pubsub,
        mailboxes,
        background,
        engine_name,
        in_force: InForce::new(config),
        ending: Ending::default(),
    });
    Ok((server, engines))
}

fn counters(mailboxes: &Mailboxes, registry: &Registry, engines: &Engines) -> AllCounters {
    let counters = AllCounters::new(mailboxes.executors(), registry.count());
    counters.with_spare(engines.iter().map(|engine| engine.spare_bytes()))
}

fn registry(config: &Config) -> Result<Registry, StartError> {
    let renamed = Registry::renamed(FAMILIES, &config.renamed_commands);
    renamed.map_err(|why| StartError(format!("rename-command: {why}")))
}

fn keyspace(config: &Config, seed: Seed) -> Keyspace {
    let Config { shard_bits, databases, .. } = *config;
    let keyspace = Keyspace::new(KeyspaceOptions { shard_bits, databases, seed });
    keyspace.go_by(config.store.eviction.policy);
    keyspace
}

/// The users with whom the server starts: those of the file that `aclfile` names, or of the configuration's
/// own lines, and the default user.
fn accounts(
    config: &Config,
    catalog: Catalog,
    passwords: Passwords,
    log: &Log,
) -> Result<Accounts, StartError> {
    let rules = &Rules { catalog: &catalog, channels: config.acl_channels_default };
    let mut users = Users::new(&config.requirepass, rules);
    if let Some(file) = &config.acl_file {
        if !config.declared_users.is_empty() {
            let why = "Users are declared by lines of the configuration and by an ACL file ('aclfile') at the same \
                       time: please do it in one of the two.";
            return Err(StartError(why.into()));
        }
        users = acl::file::load(file, &users, rules).map_err(|faults| {
            let faults = String::from_utf8_lossy(&faults).into_owned();
            StartError(format!("Aborting startup because of ACL errors: {faults}"))
        })?;
        if !config.requirepass.is_empty() && users.default_user().is_nopass() {
            log.warning(
                "WARNING: 'requirepass' has no effect: the ACL file says how the default user logs in",
            );
        }
    }
    for line in &config.declared_users {
        users.declare(line, rules).map_err(StartError)?;
        if users.find(&line.name).is_some_and(|user| !user.is_on()) {
            log.notice(&format!(
                "The user '{}' is disabled (there is no 'on' modifier in the user description). Make sure this is \
                 not a configuration error.",
                String::from_utf8_lossy(&line.name)
            ));
        }
    }
    Ok(Accounts::new(users, catalog, passwords))
}

/// Randomness of the system: 16 bytes for the hash seed, 8 for commands that choose at random, 8 for the
/// replication id, 20 for the run id, 32 for ACL GENPASS.
fn random_bytes() -> Result<[u8; 84], StartError> {
    let mut bytes = [0; 84];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map(|()| bytes).map_err(|e| cannot("read the system's randomness", &e))
}

/// Starts the thread of one worker.
fn spawn(
    (server, scripts): (&Arc<Server>, &Arc<ScriptThread>),
    index: usize,
    engine: Box<dyn Engine>,
) -> std::io::Result<JoinHandle<()>> {
    let (server, scripts) = (Arc::clone(server), Arc::clone(scripts));
    let name = format!("sardine-{index}");
    std::thread::Builder::new().name(name).spawn(move || {
        crate::service::crash::note_worker(&server, index);
        Worker::new(&server, index, engine, scripts).run();
    })
}
