//! Every transcript, replayed: on the data commands alone, on whole servers in this process over real
//! sockets, with one shard and with many, in both protocols, and on a real redis-server, so that what is
//! expected stays what it answers.
use net::EngineKind;
use pack::arena::Arena;
use pack::counted::Counted;
use resp::Protocol;
use server::{AppendSync, Appending, Config};
use std::path::PathBuf;
use testkit::bare_commands::BareCommands;
use testkit::conversation::Conversation;
use testkit::in_process::InProcess;
use testkit::redis_server::{RedisServer, skip_without};
use testkit::resp_client::RespClient;
use testkit::resp_value::Value;
use testkit::socket_peer::SocketPeer;
use testkit::suite::{Script, is_of_redis, load, replay, transcripts_folder};
use testkit::transcript::{Mismatch, Peer, Version};

/// As in the program: `maxmemory` limits what this counts, and only data in the arena can move.
#[global_allocator]
static HEAP: Counted<Arena<std::alloc::System>> = Counted(Arena(std::alloc::System));

/// Families whose commands need no server around them.
const DATA_FAMILIES: [&str; 6] = ["bits", "keys", "list", "set", "stream", "string"];

fn scripts() -> Vec<Script> {
    load(&transcripts_folder()).expect("transcripts can be read")
}

/// Whether the data commands alone can answer it, for one client at a time.
fn is_of_data(script: &Script) -> bool {
    !script.transcript.is_conversation()
        && DATA_FAMILIES.iter().any(|family| script.name.split('/').next() == Some(family))
}

/// Whether it is about values of some type, for one client at a time.
fn is_of_types(script: &Script) -> bool {
    const FAMILIES: [&str; 10] =
        ["bits", "geo", "hash", "hyperloglog", "keys", "list", "set", "stream", "string", "zset"];
    let family = script.name.split('/').next().unwrap_or_default();
    !script.transcript.is_conversation() && FAMILIES.contains(&family)
}

fn replay_bare(shard_bits: u32, protocol: Protocol) {
    replay(&scripts(), protocol, is_of_data, || BareCommands::new(shard_bits, 1));
}

/// A server that lives as long as its peer.
struct Served {
    peer: SocketPeer,
    /// Requests take turns on so many connections, which different workers serve.
    connection_count: usize,
    turn: usize,
    _server: InProcess,
}

impl Peer for Served {
    fn call(&mut self, connection: &str, protocol: Protocol, args: &[Vec<u8>]) -> Value {
        if self.connection_count == 1 {
            return self.peer.call(connection, protocol, args);
        }
        self.turn = (self.turn + 1) % self.connection_count;
        self.peer.call(&format!("{connection}{}", self.turn), protocol, args)
    }
    fn advance(&mut self, ms: u64) {
        self.peer.advance(ms);
    }
    fn changes(&mut self) -> i64 {
        self.peer.changes()
    }
    fn version(&self) -> Version {
        self.peer.version()
    }
    fn conversation(&mut self) -> Option<&mut dyn Conversation> {
        if self.connection_count == 1 { self.peer.conversation() } else { None }
    }
}

fn served(shard_bits: u32, worker_threads: usize, connection_count: usize) -> Served {
    served_by(EngineKind::Epoll, shard_bits, worker_threads, connection_count)
}

fn served_by(
    io_engine: EngineKind,
    shard_bits: u32,
    worker_threads: usize,
    connection_count: usize,
) -> Served {
    let config = Config { shard_bits, worker_threads, io_engine, ..InProcess::config() };
    let server = InProcess::start(config);
    Served { peer: server.peer().expect("it listens"), connection_count, turn: 0, _server: server }
}

#[test]
fn data_commands_hold_their_transcripts_on_one_shard() {
    replay_bare(0, Protocol::Resp2);
}

#[test]
fn data_commands_hold_their_transcripts_on_many_shards() {
    replay_bare(8, Protocol::Resp2);
}

#[test]
fn data_commands_hold_their_transcripts_in_resp3() {
    replay_bare(8, Protocol::Resp3);
}

#[test]
fn a_server_of_one_shard_and_one_worker_holds_the_transcripts() {
    replay(&scripts(), Protocol::Resp2, |_| true, || served(0, 1, 1));
}

#[test]
fn a_server_of_many_shards_and_workers_holds_the_transcripts() {
    replay(&scripts(), Protocol::Resp2, |_| true, || served(8, 4, 1));
}

#[test]
fn a_server_holds_the_transcripts_in_resp3() {
    replay(&scripts(), Protocol::Resp3, |_| true, || served(8, 2, 1));
}

#[test]
fn a_server_over_io_uring_where_there_is_one_holds_the_transcripts() {
    replay(&scripts(), Protocol::Resp3, |_| true, || served_by(EngineKind::Auto, 8, 4, 1));
}

/// What fails here fails by chance: the seed names what the server did besides, not when.
/// `SARDINE_RESTLESS=seed` makes the other replays restless too.
#[test]
fn a_restless_server_holds_the_transcripts() {
    let mut seed = 0;
    for (protocol, io_engine) in [(Protocol::Resp2, EngineKind::Epoll), (Protocol::Resp3, EngineKind::Auto)] {
        replay(
            &scripts(),
            protocol,
            |_| true,
            || {
                seed += 1;
                let served = served_by(io_engine, 2, 3, 1);
                served._server.server.make_restless(seed);
                served
            },
        );
    }
}

#[test]
fn what_one_worker_wrote_the_others_read_as_the_transcripts_say() {
    replay(&scripts(), Protocol::Resp2, is_of_data, || served(8, 4, 7));
}

/// A server that loads its data again from a file before every request.
struct Reloaded {
    /// What has it do so.
    word: &'static str,
    /// The append-only file begins anew before that, if there was a change.
    begins_anew: bool,
    served: Served,
    side: RespClient,
    changes: i64,
}

impl Reloaded {
    fn begin_anew(&mut self) {
        self.side.call(&["BGREWRITEAOF"]).expect("it answers");
        loop {
            let info = self.side.call(&["INFO", "persistence"]).expect("it answers");
            let Value::Blob(_, text) = info else { panic!("INFO answers {info:?}") };
            if String::from_utf8_lossy(&text).contains("aof_rewrite_in_progress:0") {
                return;
            }
        }
    }
}

impl Peer for Reloaded {
    fn call(&mut self, connection: &str, protocol: Protocol, request: &[Vec<u8>]) -> Value {
        // What the file holds counts as saved.
        let changes = self.served.changes();
        self.changes += changes;
        if self.begins_anew && changes > 0 {
            self.begin_anew();
        }
        let reloaded = self.side.call(&["DEBUG", self.word]).expect("it answers");
        assert_eq!(reloaded, Value::Line(b'+', b"OK".to_vec()));
        self.served.call(connection, protocol, request)
    }
    fn advance(&mut self, ms: u64) {
        self.served.advance(ms);
    }
    fn changes(&mut self) -> i64 {
        self.changes + self.served.changes()
    }
    fn version(&self) -> Version {
        self.served.version()
    }
}

/// A folder that is gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("sardine-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("it can be made");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a dump file does not hold, in Redis either: by which name a value goes because of what it was before,
/// and when a key was used where no policy asks for it.
const NOT_IN_A_FILE: [&str; 2] = [": OBJECT ENCODING ", ": OBJECT IDLETIME "];

/// A BITFIELD that fails by `OVERFLOW FAIL` makes a string of zeros; it counts as no change, so it is not
/// appended, in Redis either. And what a consumer has not done is not appended: when it was last seen.
const NOT_A_CHANGE: [&str; 2] = [": STRLEN fail", ": XINFO CONSUMERS "];

/// Commands cannot make an entry of a stream pending that was deleted (XCLAIM leaves it out), in Redis
/// either. These transcripts have such.
const NOT_IN_COMMANDS: [&str; 6] = [
    "stream/lag.txt",
    "stream/xautoclaim.txt",
    "stream/xclaim.txt",
    "stream/xdelex.txt",
    "stream/xinfo.txt",
    "stream/xreadgroup.txt",
];

#[test]
fn data_that_is_saved_and_loaded_before_every_request_holds_the_transcripts() {
    replay_reloaded("RELOAD", Appending::default(), &NOT_IN_A_FILE);
}

#[test]
fn data_that_is_loaded_from_what_was_appended_before_every_request_holds_the_transcripts() {
    let append = Appending { is_wanted: true, sync: AppendSync::No, ..Appending::default() };
    let not_in_it = [&NOT_IN_A_FILE[..], &NOT_A_CHANGE].concat();
    replay_reloaded("LOADAOF", append, &not_in_it);
}

#[test]
fn data_that_is_loaded_from_commands_that_make_it_before_every_request_holds_the_transcripts() {
    let sync = AppendSync::No;
    let append = Appending { is_wanted: true, sync, begins_with_dump: false, ..Appending::default() };
    let not_in_it = [&NOT_IN_A_FILE[..], &NOT_A_CHANGE, &NOT_IN_COMMANDS].concat();
    replay_reloaded("LOADAOF", append, &not_in_it);
}

fn replay_reloaded(word: &'static str, append: Appending, not_in_it: &[&str]) {
    let is_in_a_file = |told: &String| !not_in_it.iter().any(|request| told.contains(request));
    let mut failures = Vec::new();
    for script in scripts().iter().filter(|script| is_of_types(script)) {
        let folder = Folder::new(&format!("{word}-{}", append.begins_with_dump));
        let config =
            Config { shard_bits: 2, worker_threads: 2, append: append.clone(), ..InProcess::config() };
        let server = InProcess::start(Config { dir: folder.0.clone(), ..config });
        let peer = server.peer().expect("it listens");
        let served = Served { peer, connection_count: 1, turn: 0, _server: server };
        let side = served._server.client().expect("it listens");
        let begins_anew = !append.begins_with_dump;
        let mut peer = Reloaded { word, begins_anew, served, side, changes: 0 };
        let mismatches = script.transcript.replay(&mut peer, Protocol::Resp2);
        let told = mismatches.iter().map(|mismatch| format!("{} {mismatch}", script.name));
        failures.extend(told.filter(is_in_a_file));
    }
    assert!(failures.is_empty(), "{} replies differ\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn the_installed_redis_server_holds_the_transcripts_that_its_version_knows() {
    match RedisServer::installed().unwrap() {
        Some(redis) => replay_real(&redis),
        None => skip_without("redis-server"),
    }
}

#[test]
fn the_unpacked_redis_server_holds_the_transcripts_that_its_version_knows() {
    // Not every machine has it, and none must.
    if let Some(redis) = RedisServer::unpacked().unwrap() {
        replay_real(&redis);
    }
}

fn replay_real(redis: &RedisServer) {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        replay(&scripts(), protocol, is_of_redis, || {
            SocketPeer::connect(&redis.address()).expect("it listens")
        });
    }
}

#[test]
fn a_reply_that_differs_is_shown_with_its_file_and_line() {
    let scripts = scripts();
    let script = scripts.iter().find(|script| script.name == "string/strlen.txt").unwrap();
    let mismatches: Vec<Mismatch> = script.transcript.replay(&mut Mute, Protocol::Resp2);
    let told = mismatches[0].to_string();
    assert!(
        told.contains("line ") && told.contains("expected: ") && told.contains("answered: +OK"),
        "{told}"
    );
}

/// Answers everything with OK.
struct Mute;

impl Peer for Mute {
    fn call(&mut self, _: &str, _: Protocol, _: &[Vec<u8>]) -> Value {
        Value::Line(b'+', b"OK".to_vec())
    }
    fn advance(&mut self, _: u64) {}
    fn changes(&mut self) -> i64 {
        0
    }
    fn version(&self) -> Version {
        (8, 0)
    }
}
