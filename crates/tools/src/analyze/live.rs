//! Reads a live server: SCAN, and for each key its idle time, MEMORY USAGE, PTTL and DUMP, in pipelines, no
//! faster than it was told. What DUMP answers is restored into a scratch keyspace.
//!
//! Where the server knows CLIENT NO-TOUCH, reading leaves no trace; an older one counts DUMP as a use.
use crate::analyze::Options;
use crate::analyze::client::{Client, Reply, TIMEOUT, request};
use crate::analyze::report::Report;
use crate::analyze::url::Url;
use crate::scratch;
use base::Millis;
use base::hash::Hash;
use disk::rdb::restore;
use indicatif::ProgressBar;
use server::Clock;
use std::collections::BTreeMap;
use std::io;
use std::thread::sleep;
use std::time::Duration;
use store::{Deadline, Keyspace, Settings};

/// So many keys are asked for at once.
const PIPELINE_KEYS: usize = 32;
const REPLIES_A_KEY: usize = 4;

struct Reader<'r> {
    client: Client,
    keyspace: Keyspace,
    settings: Settings,
    report: &'r mut Report,
    options: &'r Options,
    bar: ProgressBar,
    seen: u64,
    now: Millis,
    /// How long a key has not been used, by its database and hash.
    idle_s: BTreeMap<(u16, Hash), i64>,
}

/// Reads all keys, or a sample, into the report.
pub(crate) fn read(url: &Url, options: &Options, report: &mut Report) -> Result<(), String> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock => format!("it has said nothing for {} seconds", TIMEOUT.as_secs()),
        _ => base::reason::reason(&error),
    };
    let client = Client::connect(url, &options.tls).map_err(failed)?;
    // A sample is held in so many shards less, so that each holds as many keys as it would of all: what a
    // shard takes for itself is then multiplied as the keys are.
    let shard_bits = options.shard_bits.saturating_sub(options.sample.max(1).ilog2());
    let keyspace = scratch::keyspace(shard_bits, options.databases);
    let (bar, now) = (ProgressBar::new(0), Clock::real().now());
    let settings = Settings::default();
    let mut reader =
        Reader { client, keyspace, settings, report, options, bar, seen: 0, now, idle_s: BTreeMap::new() };
    let done = reader.run(url).map_err(failed);
    reader.bar.finish_and_clear();
    done
}

/// Which program answers, and of which version, by lines of its INFO. All of them say which Redis they are
/// like.
fn writer<'i>(line: impl Fn(&str) -> Option<&'i str>) -> String {
    let version = |program: &str| Some(format!("{program} {}", line(&format!("{program}_version"))?));
    let known = ["sardine", "valkey", "redis"].into_iter().find_map(version);
    known.unwrap_or_else(|| "redis of unknown version".into())
}

impl Reader<'_> {
    fn run(&mut self, url: &Url) -> io::Result<()> {
        if let Some(password) = &url.password {
            let user = url.user.as_deref().map(str::as_bytes);
            let words: Vec<&[u8]> =
                [b"AUTH".as_slice()].into_iter().chain(user).chain([password.as_bytes()]).collect();
            self.demand(&words)?;
        }
        // Unknown to servers before Redis 7.2.
        self.client.call(&[b"CLIENT", b"NO-TOUCH", b"ON"])?;
        let info = self.demand(&[b"INFO"])?.text().unwrap_or_default();
        let info = String::from_utf8_lossy(&info).into_owned();
        let line = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        self.report.writer = writer(line);
        self.report.source_bytes = line("used_memory").and_then(|bytes| bytes.parse().ok());
        let goes_by_frequency = line("maxmemory_policy").is_some_and(|policy| policy.ends_with("lfu"));
        let dbs = info.lines().filter_map(|line| {
            let (db, about) = line.strip_prefix("db")?.split_once(":keys=")?;
            let keys: u64 = about.split(',').next()?.parse().ok()?;
            Some((db.parse::<u16>().ok()?, keys))
        });
        if let Some(db) = url.db {
            // Whether there is one, which an empty one does not show.
            self.demand(&[b"SELECT", db.to_string().as_bytes()])?;
        }
        let (dbs, others): (Vec<(u16, u64)>, Vec<_>) =
            dbs.partition(|(db, _)| url.db.is_none_or(|only| only == *db));
        if !others.is_empty() {
            // What it uses is for those too.
            self.report.source_bytes = None;
        }
        self.bar.set_length(dbs.iter().map(|(_, keys)| keys).sum());
        for (db, _) in dbs {
            if db >= self.keyspace.databases() {
                return Err(io::Error::other(format!("database {db} is beyond --databases")));
            }
            self.demand(&[b"SELECT", db.to_string().as_bytes()])?;
            self.read_db(db, !goes_by_frequency)?;
        }
        self.add_up();
        self.report.multiply();
        Ok(())
    }

    /// Looks at each key when all are there: a key has its share of a leaf, which is less the more there are.
    fn add_up(&mut self) {
        let (keyspace, report) = (&self.keyspace, &mut *self.report);
        scratch::walk(keyspace, &self.settings, self.now, &mut |found| {
            let idle_s = self.idle_s.get(&(found.db, keyspace.hash(found.name))).copied();
            report.add(found, self.now, idle_s);
        });
    }

    fn demand(&mut self, words: &[&[u8]]) -> io::Result<Reply> {
        match self.client.call(words)? {
            Reply::Error(why) => Err(io::Error::other(why)),
            reply => Ok(reply),
        }
    }

    fn read_db(&mut self, db: u16, asks_idle: bool) -> io::Result<()> {
        let mut cursor = b"0".to_vec();
        loop {
            let Reply::List(mut parts) = self.demand(&[b"SCAN", &cursor, b"COUNT", b"100"])? else {
                return Err(io::Error::other("SCAN was not answered with a list"));
            };
            let (Some(Reply::List(names)), Some(Reply::Text(next))) = (parts.pop(), parts.pop()) else {
                return Err(io::Error::other("SCAN was not answered with a cursor and names"));
            };
            let mut chosen = Vec::new();
            for name in names.into_iter().filter_map(Reply::text) {
                self.seen += 1;
                if self.seen.is_multiple_of(self.options.sample) {
                    chosen.push(name);
                }
            }
            self.bar.set_position(self.seen);
            for names in chosen.chunks(PIPELINE_KEYS) {
                self.read_keys(db, names, asks_idle)?;
                sleep(Duration::from_secs_f64(names.len() as f64 / self.options.rate as f64));
            }
            if next == b"0" {
                return Ok(());
            }
            cursor = next;
        }
    }

    fn read_keys(&mut self, db: u16, names: &[Vec<u8>], asks_idle: bool) -> io::Result<()> {
        let mut wire = Vec::new();
        for name in names {
            let idle: &[u8] = if asks_idle { b"IDLETIME" } else { b"FREQ" };
            let requests: [&[&[u8]]; REPLIES_A_KEY] =
                [&[b"OBJECT", idle, name], &[b"MEMORY", b"USAGE", name], &[b"PTTL", name], &[b"DUMP", name]];
            requests.iter().for_each(|words| wire.extend_from_slice(&request(words)));
        }
        self.client.send(&wire)?;
        for name in names {
            let idle_s = self.client.receive()?.int().filter(|_| asks_idle);
            let bytes = self.client.receive()?.int().unwrap_or(0).max(0) as u64;
            let left_ms = self.client.receive()?.int().unwrap_or(-1);
            match self.client.receive()? {
                Reply::Text(payload) if self.add((db, name), &payload, left_ms) => {
                    self.report.source_key_bytes += bytes;
                    let place = (db, self.keyspace.hash(name));
                    self.idle_s.extend(idle_s.map(|idle_s| (place, idle_s)));
                }
                Reply::Text(_) => {}
                // The key is gone meanwhile.
                Reply::Null => {}
                Reply::Error(why) => self.leave_out(why),
                Reply::Int(_) | Reply::List(_) => self.leave_out("DUMP was not answered with a text".into()),
            }
        }
        Ok(())
    }

    /// Puts a key into the scratch keyspace; whether it is there now and was not before.
    fn add(&mut self, (db, name): (u16, &[u8]), payload: &[u8], left_ms: i64) -> bool {
        let before = pack::counted::thread_bytes();
        let (mut view, key) = self.keyspace.lock_one(db, self.now, &self.settings, name);
        view.leave_no_trace();
        // SCAN may show a key twice.
        if view.exists(&key) {
            return false;
        }
        let done = restore(&mut view, &key, payload);
        if done.is_ok() && left_ms >= 0 {
            view.set_deadline(&key, Deadline::At(Millis(self.now.0.saturating_add(left_ms.max(1)))));
        }
        view.conceal_creation();
        drop(view);
        let more = pack::counted::thread_bytes() - before;
        // A tree that was divided may take less than before: only the sum means anything.
        self.report.sardine_bytes = self.report.sardine_bytes.saturating_add_signed(more);
        if done.is_err() {
            self.leave_out("what DUMP answers cannot be read".into());
        }
        done.is_ok()
    }

    fn leave_out(&mut self, why: String) {
        self.report.unread += 1;
        if self.report.why_unread.is_empty() {
            self.report.why_unread = why;
        }
    }
}
