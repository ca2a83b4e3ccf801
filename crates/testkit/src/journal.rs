//! What servers write of what their clients change: the journal of one in this process, the append-only file
//! of a real one. Both as commands, each with the database that it is for.
use crate::redis_server::RedisServer;
use disk::journal::{Reader, Run, Stream};
use server::Running;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Reads the journal of a server in this process.
pub struct Tap {
    taken: Arc<Mutex<Taken>>,
    id: u64,
}

struct Taken {
    stream: Stream,
    bytes: Vec<u8>,
    next: Option<u64>,
}

struct TapReader(Arc<Mutex<Taken>>);

impl Reader for TapReader {
    fn take(&mut self, runs: &[Run<'_>]) {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Taken { stream, bytes, next } = &mut *taken;
        for run in runs {
            assert!(next.is_none_or(|next| next == run.first), "numbers have no gaps");
            *next = Some(run.end);
            stream.write(run, bytes);
        }
    }

    fn pause(&mut self) -> Option<std::time::Duration> {
        None
    }
}

impl Tap {
    /// Reads from here on.
    pub fn open(server: &Running) -> io::Result<Tap> {
        let taken = Taken { stream: Stream::for_files(), bytes: Vec::new(), next: None };
        let taken = Arc::new(Mutex::new(taken));
        let id = server.read_journal(Box::new(TapReader(Arc::clone(&taken))))?;
        Ok(Tap { taken, id })
    }

    /// What has come since this was called last, all that has been answered included.
    pub fn take(&self, server: &Running) -> Vec<u8> {
        let position = server.settle_journal();
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(taken.next.is_none_or(|next| next == position), "all that has a number is published");
        std::mem::take(&mut taken.bytes)
    }

    /// Reads no more.
    pub fn close(self, server: &Running) {
        server.end_journal(self.id);
    }
}

/// The append-only file of a redis-server, which was started with [`AofFile::ARGUMENTS`].
pub struct AofFile {
    path: PathBuf,
    read: usize,
}

impl AofFile {
    /// Replies leave after what they tell of was written to the file.
    pub const ARGUMENTS: [&str; 8] = [
        "--appendonly",
        "yes",
        "--appendfsync",
        "no",
        "--aof-use-rdb-preamble",
        "no",
        "--auto-aof-rewrite-percentage",
        "0",
    ];

    /// The file of a server that has begun it.
    pub fn of(redis: &RedisServer) -> io::Result<AofFile> {
        let folder = fs::read_dir(redis.folder().join("appendonlydir"))?;
        let paths = folder.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
        let is_increment = |path: &PathBuf| path.to_string_lossy().ends_with(".incr.aof");
        let path = paths.into_iter().find(is_increment).ok_or(io::ErrorKind::NotFound)?;
        Ok(AofFile { path, read: 0 })
    }

    /// What has been written since this was called last.
    pub fn take(&mut self) -> io::Result<Vec<u8>> {
        let bytes = fs::read(&self.path)?.split_off(self.read);
        self.read += bytes.len();
        Ok(bytes)
    }
}

/// A command of a journal, and the database that it is for.
pub type Effect = (u16, Vec<Vec<u8>>);

/// The commands of a part of a journal. SELECT is not among them; `db` is the database that is selected.
pub fn effects(mut bytes: &[u8], db: &mut u16) -> Vec<Effect> {
    let mut effects = Vec::new();
    while !bytes.is_empty() {
        let words = next_request(&mut bytes).expect("a journal holds whole commands");
        if words[0].eq_ignore_ascii_case(b"select") {
            let number = std::str::from_utf8(&words[1]).ok().and_then(|text| text.parse().ok());
            *db = number.expect("SELECT has a number");
        } else {
            effects.push((*db, words));
        }
    }
    effects
}

/// The next command; None where it is not whole.
pub(crate) fn next_request(bytes: &mut &[u8]) -> Option<Vec<Vec<u8>>> {
    let count = header(bytes, b'*')?;
    let word = |_| {
        let len = header(bytes, b'$')?;
        let word = bytes.get(..len)?.to_vec();
        *bytes = bytes.get(len + 2..)?;
        Some(word)
    };
    (0..count).map(word).collect()
}

fn header(bytes: &mut &[u8], sign: u8) -> Option<usize> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = bytes[..end].strip_suffix(b"\r")?.strip_prefix(&[sign])?;
    *bytes = &bytes[end + 1..];
    std::str::from_utf8(line).ok()?.parse().ok()
}
