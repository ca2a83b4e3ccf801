//! Keys of a file, brought into the order of the keyspace before they are loaded.
//!
//! ```text
//! batches --> for each shard its records, as they come (any number of threads, each for itself)
//! a shard's records --> sorted by their places in hash order --> loaded, one after the other (a thread each)
//! ```
//!
//! Keys come in any order, so each would be put into a leaf that is in no cache, which grows by one entry at
//! a time. In hash order a leaf gets all of its entries at once, and no two threads want the same shard. That
//! makes up for the work of sorting several times over. What is held meanwhile are the bytes of the file, up
//! to a bound (`load.rs` of the server): then they are loaded, and the rest of the file follows.
//!
//! ```text
//! record = | length of the part: u32 | database: u16 | hash: u64 | a part of the file: a key and its value |
//! ```
use super::file::{Part, next_part};
use super::load_file::{Batch, LoadCounts, LoadError, LoadRules, Order, load_entry};
use super::read::{LengthsMax, Reader};
use crate::source::Slice;
use base::hash::Hash;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

/// Records lie in pieces of memory of so many bytes, if they are not longer; or of fewer, where there are so
/// many shards that the pieces which each thread fills would take more than [`OPEN_BYTES_MAX`].
const CHUNK_BYTES_MAX: usize = 64 << 10;
const CHUNK_BYTES_MIN: usize = 1 << 10;
const OPEN_BYTES_MAX: usize = 16 << 20;
const HEAD_BYTES: usize = 4 + 2 + 8;

/// Records of one shard.
type Chunks = Vec<Vec<u8>>;

/// What all threads have sorted, by shard.
pub struct Sorted {
    shards: Box<[Mutex<Chunks>]>,
    bytes: AtomicU64,
    version: u16,
}

impl Sorted {
    /// For a keyspace of so many shards, and a file of this version.
    pub fn new(shards: usize, version: u16) -> Sorted {
        let shards = (0..shards).map(|_| Mutex::default()).collect();
        Sorted { shards, bytes: AtomicU64::new(0), version }
    }

    /// How many bytes it holds, about.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// How many shards there are, to be loaded by [`Sorted::load`].
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    fn take(&self, shard: usize) -> Chunks {
        std::mem::take(&mut *self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, shard: usize, chunk: Vec<u8>) {
        self.bytes.fetch_add(chunk.capacity() as u64, Relaxed);
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner).push(chunk);
    }

    /// Loads what is there of a shard. Returns how many bytes of the file that was.
    pub fn load(
        &self,
        shard: usize,
        rules: &LoadRules<'_>,
        counts: &mut LoadCounts,
    ) -> Result<u64, LoadError> {
        let chunks = self.take(shard);
        let mut records = Vec::new();
        for (index, chunk) in chunks.iter().enumerate() {
            let mut at = 0;
            while at < chunk.len() {
                let record = Record::read(chunk, at);
                records.push((record.db, record.hash.order(), index as u32, at as u32));
                at += HEAD_BYTES + record.len;
            }
        }
        records.sort_unstable();
        let mut reader = Reader::new(Slice::new(&[]), self.version, LengthsMax::of_file(rules.settings));
        let (mut name, mut bytes) = (Vec::new(), 0);
        let mut ends = Vec::new();
        for (.., index, at) in records {
            let (chunk, at) = (&chunks[index as usize], at as usize);
            let Record { len, db, hash } = Record::read(chunk, at);
            let part = &chunk[at + HEAD_BYTES..at + HEAD_BYTES + len];
            reader.source = Slice::new(part);
            let Part::Key(head) = next_part(&mut reader)? else { continue };
            reader.element_into(&mut name)?;
            load_entry(&mut reader, (&head, db, (&name, hash)), rules, Order::ByHash, counts)
                .map_err(|e| e.in_value(db, &name))?;
            if ends.last().is_none_or(|(last, _)| *last != db) {
                ends.push((db, hash));
            }
            bytes += len as u64;
        }
        ends.into_iter().for_each(|(db, hash)| rules.keyspace.end_order(db, hash));
        let held = chunks.iter().map(|chunk| chunk.capacity() as u64).sum();
        self.bytes.fetch_sub(held, Relaxed);
        Ok(bytes)
    }
}

struct Record {
    len: usize,
    db: u16,
    hash: Hash,
}

impl Record {
    fn read(chunk: &[u8], at: usize) -> Record {
        let word = |at: usize| chunk[at..at + 8].try_into().expect("a record has a head");
        let head: [u8; 8] = word(at);
        Record {
            len: u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize,
            db: u16::from_le_bytes([head[4], head[5]]),
            hash: Hash(u64::from_le_bytes(word(at + 6))),
        }
    }

    fn write(&self, part: &[u8], chunk: &mut Vec<u8>) {
        chunk.extend_from_slice(&(self.len as u32).to_le_bytes());
        chunk.extend_from_slice(&self.db.to_le_bytes());
        chunk.extend_from_slice(&self.hash.0.to_le_bytes());
        chunk.extend_from_slice(part);
    }
}

/// What one thread sorts.
pub struct Sorter<'s> {
    sorted: &'s Sorted,
    /// The chunk of each shard that is being filled.
    open: Vec<Vec<u8>>,
    chunk_bytes: usize,
    name: Vec<u8>,
}

impl<'s> Sorter<'s> {
    /// [`Sorter::finish`] hands over what it has not handed to `sorted` by then.
    pub fn new(sorted: &'s Sorted) -> Sorter<'s> {
        let shards = sorted.shards();
        let chunk_bytes = (OPEN_BYTES_MAX / shards).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        Sorter { sorted, open: vec![Vec::new(); shards], chunk_bytes, name: Vec::new() }
    }

    /// Sorts the keys of a batch. Those that have expired are left out.
    pub fn sort(
        &mut self,
        batch: &Batch,
        rules: &LoadRules<'_>,
        counts: &mut LoadCounts,
    ) -> Result<(), LoadError> {
        let db = batch.database(rules)?;
        let mut reader = batch.reader(rules);
        for part in batch.keys() {
            reader.source = batch.part(part.clone());
            let Part::Key(head) = next_part(&mut reader)? else { continue };
            if head.deadline.is_past(rules.now) {
                counts.expired += 1;
                continue;
            }
            reader.element_into(&mut self.name)?;
            let hash = rules.keyspace.hash(&self.name);
            let shard = rules.keyspace.shard_number(hash);
            let bytes = batch.bytes_of(part);
            let open = &mut self.open[shard];
            if open.len() + HEAD_BYTES + bytes.len() > open.capacity() {
                let room = self.chunk_bytes.max(HEAD_BYTES + bytes.len());
                let full = std::mem::replace(open, Vec::with_capacity(room));
                if !full.is_empty() {
                    self.sorted.add(shard, full);
                }
            }
            Record { len: bytes.len(), db, hash }.write(bytes, open);
        }
        Ok(())
    }

    /// Hands over the rest.
    pub fn finish(self) {
        for (shard, chunk) in self.open.into_iter().enumerate().filter(|(_, chunk)| !chunk.is_empty()) {
            self.sorted.add(shard, chunk);
        }
    }
}
