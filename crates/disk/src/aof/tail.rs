//! The tail of an append-only file: records of the journal that were answered and may not have been handed to
//! the system yet. They lie in a file that is mapped into memory (`appendonly.aof.tail`), so a process that
//! is killed leaves them there, and the next start appends what the increment lacks.
//!
//! ```text
//! page   magic | version, lanes | of which boot | when the file was made | bytes of a ring
//!        | slot in force: 0 or 1 | two slots
//! lane   page: first, end, positions that only grow | ring: entries, one behind the other
//! lane   ...
//!
//! slot   file, len, next, db: all records below `next` are in increment `file`, which has `len` bytes then
//!        and has selected `db` | stop: records from this number on may not all be here | where other
//!        increments begin
//! entry  number: u64 | length: u32 | database: u16 | shape: u8 | 0 | words, or frames | up to 8 bytes
//! ```
//!
//! All numbers are as the machine has them: no other machine reads the file, nor the same one after it has
//! started again, when nobody knows which pages the disk has.
//!
//! An entry is written while the shards of its record are locked, before the record can be seen or answered.
//! So among the entries that a killed process leaves a number may be missing, if its thread was at that
//! moment about to write it; nothing that is there can depend on that record, and nobody was answered. What
//! finds no room is
//! *exposed*: replies wait until it is in the file ([`Head::commit`]), also those to all later records, which
//! may depend on it, and what is read ends before it ([`Head::stop_at`]).
//!
//! Nothing in the file of commands is ever overwritten because of this: what stands there behind `len` has to
//! be what the entries say, or the beginning of that, and is completed. Otherwise somebody else has written
//! to the file, or one of both is a copy, and the tail is left alone.
use crate::aof::commands::{CommandReader, Entry};
use crate::journal::stream::Stream;
use crate::journal::{Frame, Records};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

/// What a tail is written to: a part of a mapped file, or in tests plain memory.
pub trait Memory: Send {
    /// Puts these bytes at this place.
    fn put(&mut self, at: usize, bytes: &[u8]);
    /// Puts a word at a multiple of eight: whoever reads it reads what was put before as well.
    fn put_word(&mut self, at: usize, word: u64);
}

/// What the file begins with, and each lane.
pub const HEAD_BYTES: usize = 4096;
/// A ring is as large as all of them have room in this, in a power of two, but for these limits. Only what is
/// written to takes memory; the disk has to have room for all.
const RINGS_BYTES: usize = 32 << 20;
const RING_BYTES_MIN: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };
const RING_BYTES_MAX: usize = if cfg!(test) { 1 << 10 } else { 4 << 20 };
/// While the writer keeps up, a lane begins again from its first byte when it has come to this part of it.
const REUSED: u64 = 64;
/// So often a lane notes which record it has come to.
const MARKED: u64 = 1024;

const MAGIC: u64 = u64::from_le_bytes(*b"SARDTAIL");
const VERSION: u32 = 1;
const FIRST_AT: usize = 0;
const END_AT: usize = 8;
const SLOT_AT: usize = 48;
const SLOTS_AT: [usize; 2] = [64, 512];
const ENTRY_BYTES: usize = 16;
/// So many increments can be known that begin behind the present one.
const CUTS: usize = 8;
/// The numbers of a slot.
const SLOT_WORDS: usize = 5 + 2 * CUTS;
/// No database is selected.
const NO_DB: u64 = u64::MAX;

const _: () =
    assert!(SLOTS_AT[0] + SLOT_WORDS * 8 <= SLOTS_AT[1] && SLOTS_AT[1] + SLOT_WORDS * 8 <= HEAD_BYTES);

/// What tells a tail from one of another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Since when the machine runs: a random number that it chose then.
    pub boot: [u8; 16],
    /// When this very file was made. A copy was made at another time.
    pub made_ns: u64,
}

/// How far the increments are that the system has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of an increment, which is never 0.
    pub file: u64,
    /// How long it is.
    pub len: u64,
    /// All records below this are in it, or in files before it.
    pub next: u64,
    /// The database that its commands have selected.
    pub db: Option<u16>,
}

/// A slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    place: Place,
    stop: u64,
    /// Increments and the records that they begin with. 0: none.
    cuts: [(u64, u64); CUTS],
}

/// The first page, for whoever writes the increments.
pub struct Head<M> {
    memory: M,
    state: State,
    slot: usize,
}

impl<M: Memory> Head<M> {
    /// Begins a tail in memory that is all zero. It counts from the first [`Head::commit`] on.
    pub fn begin(mut memory: M, origin: Origin, lanes: usize) -> Head<M> {
        memory.put_word(8, u64::from(VERSION) | (lanes as u64) << 32);
        memory.put(16, &origin.boot);
        memory.put_word(32, origin.made_ns);
        memory.put_word(40, ring_bytes(lanes) as u64);
        memory.put_word(0, MAGIC);
        let place = Place { file: 0, len: 0, next: 0, db: None };
        Head { memory, state: State { place, stop: 0, cuts: [(0, 0); CUTS] }, slot: 0 }
    }

    /// The system has all records below `place.next`. Those below `exposed` may not be in the lanes.
    pub fn commit(&mut self, place: Place, exposed: u64) {
        self.state.place = place;
        self.state.stop = if exposed <= place.next { u64::MAX } else { self.state.stop.max(place.next) };
        self.write();
    }

    /// This record is not in its lane.
    pub fn stop_at(&mut self, number: u64) {
        self.state.stop = self.state.stop.min(number.max(self.state.place.next));
        self.write();
    }

    /// From this record on increment `file` is written to, as soon as the ones before are finished.
    pub fn note_cut(&mut self, file: u64, from: u64) {
        self.state.cuts[file as usize % CUTS] = (file, from);
        self.write();
    }

    /// Writes the slot that is not in force, and has it be.
    fn write(&mut self) {
        let State { place, stop, cuts } = self.state;
        let db = place.db.map_or(NO_DB, u64::from);
        let words = [place.file, place.len, place.next, db, stop];
        let words = words.into_iter().chain(cuts.into_iter().flat_map(|(file, from)| [file, from]));
        self.slot = 1 - self.slot;
        let bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
        self.memory.put(SLOTS_AT[self.slot], &bytes);
        self.memory.put_word(SLOT_AT, self.slot as u64);
    }
}

/// What an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept<'b> {
    /// One command for everybody, in this database.
    Words(u16, &'b [u8]),
    /// The frames of a record ([`crate::journal::record`]).
    Frames(&'b [u8]),
}

/// How large the ring of each of so many lanes is.
pub fn ring_bytes(lanes: usize) -> usize {
    let even = RINGS_BYTES / lanes.max(1);
    // The power of two below.
    (even / 2 + 1).next_power_of_two().clamp(RING_BYTES_MIN, RING_BYTES_MAX)
}

/// A lane, for whoever writes records.
pub struct Ring<M> {
    memory: M,
    ring_bytes: usize,
    /// All records below this number are in the increments.
    written: Arc<AtomicU64>,
    /// Where the oldest entry begins that is still needed, and where the next will.
    first: u64,
    end: u64,
    /// Behind the newest record.
    newest: u64,
    /// Now and then the number behind the newest record so far, and where its entry ends.
    marks: VecDeque<(u64, u64)>,
    marked: u64,
}

impl<M: Memory> Ring<M> {
    /// A lane in memory that is all zero, a page and so many bytes of a ring.
    pub fn begin(memory: M, ring_bytes: usize, written: Arc<AtomicU64>) -> Ring<M> {
        assert!(ring_bytes.is_power_of_two(), "positions count on beyond the end");
        let marks = VecDeque::new();
        Ring { memory, ring_bytes, written, first: 0, end: 0, newest: 0, marks, marked: 0 }
    }

    /// Keeps this record. False if there is no room: then it is exposed.
    #[inline]
    pub fn keep(&mut self, number: u64, kept: Kept<'_>) -> bool {
        let (db, shape, bytes) = match kept {
            Kept::Words(db, words) => (db, 0, words),
            Kept::Frames(frames) => (0, 1, frames),
        };
        let len = bytes.len().next_multiple_of(8) + ENTRY_BYTES;
        if self.end - self.first >= self.ring_bytes as u64 / REUSED {
            self.reuse();
        }
        if len > self.room_bytes() && !self.find_room(len) {
            return false;
        }
        let mut header = [0; ENTRY_BYTES];
        header[..8].copy_from_slice(&number.to_ne_bytes());
        header[8..12].copy_from_slice(&(bytes.len() as u32).to_ne_bytes());
        header[12..14].copy_from_slice(&db.to_ne_bytes());
        header[14] = shape;
        self.put(self.end, &header);
        self.put(self.end + ENTRY_BYTES as u64, bytes);
        self.end += len as u64;
        self.memory.put_word(END_AT, self.end);
        self.newest = self.newest.max(number + 1);
        if self.end - self.marked >= self.ring_bytes as u64 / MARKED {
            self.marks.push_back((self.newest, self.end));
            self.marked = self.end;
        }
        true
    }

    fn room_bytes(&self) -> usize {
        self.ring_bytes - (self.end - self.first) as usize
    }

    /// Begins again from the first byte, if nothing is needed any more of what the lane has.
    #[cold]
    fn reuse(&mut self) {
        if self.newest <= self.written.load(Acquire) {
            let next = self.end.next_multiple_of(self.ring_bytes as u64);
            self.marks.clear();
            (self.first, self.end, self.marked) = (next, next, next);
            // In between the lane reads as empty, because its end is before its beginning.
            self.memory.put_word(FIRST_AT, next);
            self.memory.put_word(END_AT, next);
        }
    }

    #[cold]
    fn find_room(&mut self, len: usize) -> bool {
        let written = self.written.load(Acquire);
        while let Some((_, end)) = self.marks.front().copied().filter(|(number, _)| *number <= written) {
            self.first = end;
            self.marks.pop_front();
        }
        self.memory.put_word(FIRST_AT, self.first);
        len <= self.room_bytes()
    }

    /// Puts bytes at a position, around the end of the ring.
    #[inline]
    fn put(&mut self, position: u64, bytes: &[u8]) {
        let at = position as usize & (self.ring_bytes - 1);
        let (behind, before) = bytes.split_at(bytes.len().min(self.ring_bytes - at));
        self.memory.put(HEAD_BYTES + at, behind);
        if !before.is_empty() {
            self.memory.put(HEAD_BYTES, before);
        }
    }
}

/// Tells the lanes that their entries below this number are needed no more.
pub fn note_written(written: &AtomicU64, next: u64) {
    written.store(next, Release);
}

/// What a process has left.
#[derive(Debug)]
pub struct Left {
    state: State,
    /// In the order of their numbers, from the first on that may be missing.
    entries: Vec<LeftEntry>,
}

#[derive(Debug)]
struct LeftEntry {
    number: u64,
    /// None: the bytes are frames.
    db: Option<u16>,
    bytes: Vec<u8>,
}

/// Which increment is to have what is left, and from where on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its place in the list.
    pub index: usize,
    /// What it had when it was last known that all was in it up to a record.
    pub len: u64,
    next: u64,
    db: Option<u16>,
}

/// What an increment lacks.
#[derive(Debug, PartialEq, Eq)]
pub enum Missing {
    Nothing,
    /// Of what stands behind [`Target::len`] so many bytes stay, and these follow.
    Some {
        stays: u64,
        bytes: Vec<u8>,
    },
    /// What stands there is something else.
    Other,
}

impl Left {
    /// Reads the file of a tail. None if it holds nothing that counts: it is not whole, or not of this time.
    /// An error says what is wrong with it.
    pub fn read(bytes: &[u8], origin: Origin) -> Result<Option<Left>, &'static str> {
        if word(bytes, 0) != Some(MAGIC) {
            return Ok(None);
        }
        let shape = word(bytes, 8).unwrap_or_default();
        let lanes = (shape >> 32) as usize;
        if shape as u32 != VERSION || bytes.get(16..32) != Some(&origin.boot[..]) {
            return Ok(None);
        }
        if word(bytes, 32) != Some(origin.made_ns) {
            return Err("it is a copy");
        }
        let ring_bytes = word(bytes, 40).and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_default();
        let lane_bytes = ring_bytes.checked_add(HEAD_BYTES).filter(|_| ring_bytes.is_power_of_two());
        let all_bytes = lane_bytes.and_then(|bytes| bytes.checked_mul(lanes)?.checked_add(HEAD_BYTES));
        let Some(lane_bytes) = lane_bytes.filter(|_| all_bytes == Some(bytes.len())) else {
            return Err("it has another length than it had");
        };
        let Some(state) = State::read(bytes)? else { return Ok(None) };
        let mut entries = Vec::new();
        for lane in bytes[HEAD_BYTES..].chunks_exact(lane_bytes) {
            read_lane(lane, &state, &mut entries)?;
        }
        entries.sort_by_key(|entry| entry.number);
        if entries.is_sorted_by(|one, other| one.number < other.number) {
            Ok(Some(Left { state, entries }))
        } else {
            Err("a number is there twice")
        }
    }

    /// Which of these increments is to have what is left: the one that was written to, or the next where that
    /// is not listed any more, or one behind it if that has something. Each with its number and its length.
    pub fn target(&self, increments: &[(u64, u64)]) -> Option<Target> {
        let State { place, cuts, .. } = &self.state;
        let first = increments.iter().position(|(file, _)| *file >= place.file)?;
        // Nothing is written to one before all that is before it is in the files before.
        let index = increments.iter().rposition(|(_, len)| *len > 0).unwrap_or(first).max(first);
        let (file, len) = increments[index];
        let target = if file == place.file {
            Target { index, len: place.len, next: place.next, db: place.db }
        } else {
            let (_, from) = cuts.iter().find(|(cut, _)| *cut == file)?;
            Target { index, len: 0, next: *from, db: None }
        };
        (len >= target.len).then_some(target)
    }

    /// What the increment lacks that has these bytes behind [`Target::len`].
    pub fn missing(&self, target: &Target, rest: &[u8]) -> Missing {
        let commands = self.commands(target);
        let mut at = 0;
        for (index, command) in commands.iter().enumerate() {
            // The time, which is told between commands.
            while rest.get(at) == Some(&b'#') {
                match rest[at..].iter().position(|byte| *byte == b'\n') {
                    Some(end) => at += end + 1,
                    None => return Missing::Some { stays: at as u64, bytes: commands[index..].concat() },
                }
            }
            let count = command.len().min(rest.len() - at);
            if rest[at..at + count] != command[..count] {
                return Missing::Other;
            }
            at += count;
            if count < command.len() {
                let bytes = [&command[count..], &commands[index + 1..].concat()].concat();
                return Missing::Some { stays: at as u64, bytes };
            }
        }
        Missing::Nothing
    }

    /// The records from the target's first on as they stand in a file, each by itself.
    fn commands(&self, target: &Target) -> Vec<Vec<u8>> {
        let mut stream = Stream::for_files_in(target.db);
        let entries = self.entries.iter().filter(|entry| entry.number >= target.next);
        let command = |entry: &LeftEntry| {
            let (mut records, mut out) = (Records::default(), Vec::new());
            match entry.db {
                Some(db) => records.add_words(entry.number, db, &entry.bytes),
                None => records.add_frames(entry.number, &entry.bytes),
            }
            records.run(0).iter().for_each(|run| stream.write(run, &mut out));
            out
        };
        entries.map(command).filter(|command| !command.is_empty()).collect()
    }
}

impl State {
    /// The slot in force; None if nothing was committed.
    fn read(bytes: &[u8]) -> Result<Option<State>, &'static str> {
        let slot = word(bytes, SLOT_AT).unwrap_or(u64::MAX);
        let start =
            *SLOTS_AT.get(usize::try_from(slot).unwrap_or(usize::MAX)).ok_or("it has no such slot")?;
        let at = |index: usize| word(bytes, start + 8 * index).unwrap_or_default();
        let db = match at(3) {
            NO_DB => None,
            db => Some(u16::try_from(db).map_err(|_| "there is no such database")?),
        };
        let place = Place { file: at(0), len: at(1), next: at(2), db };
        let cuts = std::array::from_fn(|cut| (at(5 + 2 * cut), at(6 + 2 * cut)));
        Ok((place.file != 0).then_some(State { place, stop: at(4), cuts }))
    }
}

/// Adds the entries of a lane that count.
fn read_lane(lane: &[u8], state: &State, entries: &mut Vec<LeftEntry>) -> Result<(), &'static str> {
    let (mut at, end) = (word(lane, FIRST_AT).unwrap_or(0), word(lane, END_AT).unwrap_or(0));
    let ring = &lane[HEAD_BYTES..];
    if end.saturating_sub(at) > ring.len() as u64 || at % 8 != 0 || end % 8 != 0 {
        return Err("a lane ends nowhere");
    }
    while at < end {
        let header = piece(ring, at, ENTRY_BYTES);
        let number = word(&header, 0).unwrap_or_default();
        let len = u32::from_ne_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let db = u16::from_ne_bytes([header[12], header[13]]);
        let next = at + (len.next_multiple_of(8) + ENTRY_BYTES) as u64;
        if next > end {
            return Err("an entry does not end");
        }
        if number >= state.place.next && number < state.stop {
            let bytes = piece(ring, at + ENTRY_BYTES as u64, len);
            let db = (header[14] == 0).then_some(db);
            let is_right = if db.is_some() { is_command(&bytes) } else { are_frames(&bytes) };
            if !is_right {
                return Err("an entry is no command");
            }
            entries.push(LeftEntry { number, db, bytes });
        }
        at = next;
    }
    Ok(())
}

/// Bytes at a position, around the end of the ring, which has at least so many.
fn piece(ring: &[u8], position: u64, len: usize) -> Vec<u8> {
    let at = position as usize & (ring.len() - 1);
    let behind = len.min(ring.len() - at);
    [&ring[at..at + behind], &ring[..len - behind]].concat()
}

fn is_command(bytes: &[u8]) -> bool {
    let mut reader = CommandReader::new(bytes);
    matches!(reader.next_entry(), Ok(Some(Entry::Command(_)))) && matches!(reader.next_entry(), Ok(None))
}

fn are_frames(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while !rest.is_empty() {
        match Frame::try_first(rest) {
            Some((frame, behind)) if is_command(frame.words) => rest = behind,
            _ => return false,
        }
    }
    true
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?;
    Some(u64::from_ne_bytes(std::array::from_fn(|index| bytes[index])))
}

#[cfg(test)]
#[path = "tail_tests.rs"]
mod tests;
