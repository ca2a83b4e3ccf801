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
//! entry  number | word: length in its low half, then 16 bits of database, 16 of shape | words, or frames
//!        | up to 7 bytes
//! ```
//!
//! All numbers are as the machine has them: no other machine reads the file, nor the same one after it has
//! started again, when nobody knows which pages the disk has.
//!
//! An entry is written while the shards of its record are locked, before the record can be seen or answered.
//! So among the entries that a killed process leaves a number may be missing, if its thread was at that
//! moment about to write it; nothing that is there can depend on that record, and nobody was answered.
//!
//! A record that finds no room is *exposed*: its reply waits until it is in the file ([`Head::commit`]), and
//! so do the replies to all later records from the number on that is taken once every thread can know of it.
//! These may depend on it, and are not read ([`Head::stop_at`]). Those in between do not, and may have been
//! answered.
//!
//! Where more numbers are missing than there can be such threads, and nothing is exposed, the file is a copy
//! that was taken while the process ran, each lane at another moment.
//!
//! No whole command of the file is written over because of this: what stands there behind `len` has to be
//! what the entries say, or the beginning of that, which is completed. What is cut off is an exposed record,
//! or a time, that does not end. Otherwise somebody else has written to the file, or one of both is a copy,
//! and the tail is left alone.
use crate::aof::commands::{CommandError, CommandReader, Entry};
use crate::checksum::checksum;
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
    /// Where in memory this place is.
    fn address(&self, at: usize) -> *const u8;
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
const SLOTS_AT: [usize; 2] = [64, 1024];
const ENTRY_BYTES: usize = 16;
/// What the bytes of an entry are.
const WORDS: u64 = 0;
const FRAMES: u64 = 1;
/// So many increments can be known that begin behind the present one.
const CUTS: usize = 32;
/// The numbers of a slot.
const SLOT_WORDS: usize = 5 + 2 * CUTS;
const SLOT_BYTES: usize = SLOT_WORDS * 8;
/// There are at most so many threads that write for each lane. One that is killed has numbered one record at
/// most that it has not put down.
const GAPS_A_LANE: u64 = 4;
/// No database is selected.
const NO_DB: u64 = u64::MAX;

const _: () =
    assert!(SLOTS_AT[0] + SLOT_BYTES + 8 <= SLOTS_AT[1] && SLOTS_AT[1] + SLOT_BYTES + 8 <= HEAD_BYTES);

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

    /// A record is not in its lane. From this number on nobody is answered before that is written.
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
        let mut bytes = [0; SLOT_BYTES + 8];
        bytes.chunks_exact_mut(8).zip(words).for_each(|(at, word)| at.copy_from_slice(&word.to_ne_bytes()));
        let sum = checksum(&bytes[..SLOT_BYTES]);
        bytes[SLOT_BYTES..].copy_from_slice(&sum.to_ne_bytes());
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
    /// An entry that would end behind this position has the lane look whether there is room.
    look_at: u64,
}

impl<M: Memory> Ring<M> {
    /// A lane in memory that is all zero, a page and so many bytes of a ring.
    pub fn begin(memory: M, ring_bytes: usize, written: Arc<AtomicU64>) -> Ring<M> {
        assert!(ring_bytes.is_power_of_two(), "positions count on beyond the end");
        let marks = VecDeque::new();
        Ring { memory, ring_bytes, written, first: 0, end: 0, newest: 0, marks, look_at: 0 }
    }

    /// Keeps this record. False if there is no room: then it is exposed.
    #[inline]
    pub fn keep(&mut self, number: u64, kept: Kept<'_>) -> bool {
        let (db, shape, bytes) = match kept {
            Kept::Words(db, words) => (db, WORDS, words),
            Kept::Frames(frames) => (0, FRAMES, frames),
        };
        let len = (bytes.len().next_multiple_of(8) + ENTRY_BYTES) as u64;
        if self.end + len > self.look_at && !self.look(len) {
            return false;
        }
        // Whole words, which the processor has at hand; each lies on one side of the ring's end.
        let about = bytes.len() as u64 | u64::from(db) << 32 | shape << 48;
        let mask = self.ring_bytes - 1;
        let at = self.end as usize & mask;
        self.memory.put_word(HEAD_BYTES + at, number);
        self.memory.put_word(HEAD_BYTES + ((at + 8) & mask), about);
        if at + ENTRY_BYTES + bytes.len() <= self.ring_bytes {
            self.memory.put(HEAD_BYTES + at + ENTRY_BYTES, bytes);
        } else {
            self.put_around(self.end + ENTRY_BYTES as u64, bytes);
        }
        self.end += len;
        self.memory.put_word(END_AT, self.end);
        self.newest = self.newest.max(number + 1);
        true
    }

    /// Where in memory what comes behind so many more bytes will be written.
    #[inline]
    pub fn address_behind(&self, bytes: usize) -> *const u8 {
        self.memory.address(HEAD_BYTES + ((self.end as usize + bytes) & (self.ring_bytes - 1)))
    }

    /// Now and then: notes where the lane has come to, and what is needed no more. Returns whether there is
    /// room for an entry of this length.
    #[cold]
    fn look(&mut self, len: u64) -> bool {
        let (written, ring_bytes) = (self.written.load(Acquire), self.ring_bytes as u64);
        if self.newest <= written && self.end - self.first >= ring_bytes / REUSED {
            self.begin_again();
        } else {
            if self.marks.back().map_or(self.first, |(_, end)| *end) < self.end {
                self.marks.push_back((self.newest, self.end));
            }
            while let Some((_, end)) = self.marks.pop_front_if(|(number, _)| *number <= written) {
                self.first = end;
            }
            self.memory.put_word(FIRST_AT, self.first);
        }
        let limit = self.first + ring_bytes;
        self.look_at = limit.min(self.end + (ring_bytes / MARKED).max(len));
        self.end + len <= limit
    }

    /// Begins again from the first byte, because nothing is needed any more of what the lane has.
    fn begin_again(&mut self) {
        let next = self.end.next_multiple_of(self.ring_bytes as u64);
        self.marks.clear();
        (self.first, self.end) = (next, next);
        // In between the lane reads as empty, because its end is before its beginning.
        self.memory.put_word(FIRST_AT, next);
        self.memory.put_word(END_AT, next);
    }

    /// Puts bytes at a position, around the end of the ring.
    #[cold]
    fn put_around(&mut self, position: u64, bytes: &[u8]) {
        let at = position as usize & (self.ring_bytes - 1);
        let (behind, before) = bytes.split_at(bytes.len().min(self.ring_bytes - at));
        self.memory.put(HEAD_BYTES + at, behind);
        self.memory.put(HEAD_BYTES, before);
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
    /// Reads the file of a tail. None if it was never begun. An error says why it is not to be used.
    pub fn read(bytes: &[u8], origin: Origin) -> Result<Option<Left>, &'static str> {
        match word(bytes, 0).unwrap_or(0) {
            MAGIC => {}
            0 => return Ok(None),
            _ => return Err("it is something else"),
        }
        let shape = word(bytes, 8).unwrap_or_default();
        let lanes = (shape >> 32) as usize;
        if shape as u32 != VERSION {
            return Err("it is of another version");
        }
        if bytes.get(16..32) != Some(&origin.boot[..]) {
            return Err("the machine has started anew since");
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
        if !entries.is_sorted_by(|one, other| one.number < other.number) {
            return Err("a number is there twice");
        }
        let left = Left { state, entries };
        if left.lacks() > GAPS_A_LANE * lanes as u64 {
            return Err("it lacks records, like a copy that was taken while the server ran");
        }
        Ok(Some(left))
    }

    /// How many records are missing that were not exposed.
    fn lacks(&self) -> u64 {
        let Some(last) = self.entries.last().filter(|_| self.state.stop == u64::MAX) else { return 0 };
        let before_last = self.entries.len() as u64 - 1;
        last.number - self.state.place.next - before_last
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
        let mut stream = Stream::for_files_in(target.db);
        let (mut at, mut next, mut has_gap) = (0, target.next, false);
        let first = self.entries.partition_point(|entry| entry.number < target.next);
        for (index, entry) in self.entries.iter().enumerate().skip(first) {
            // Records between were exposed: they may stand in the file, and nobody was answered.
            has_gap |= std::mem::replace(&mut next, entry.number + 1) != entry.number;
            match entry.find(&mut stream, (rest, at), has_gap) {
                Found::Nowhere => {}
                Found::Ends(end) => (at, has_gap) = (end, false),
                Found::Missing(stays, mut bytes) => {
                    self.entries[index + 1..].iter().for_each(|entry| entry.write(&mut stream, &mut bytes));
                    return Missing::Some { stays: stays as u64, bytes };
                }
                Found::Other => return Missing::Other,
            }
        }
        Missing::Nothing
    }
}

/// Where a record is in what stands in a file.
enum Found {
    /// It is for replicas alone.
    Nowhere,
    /// It ends here.
    Ends(usize),
    /// So much stays of what stands there, and these bytes follow.
    Missing(usize, Vec<u8>),
    Other,
}

impl LeftEntry {
    /// Appends the record as it stands in a file.
    fn write(&self, stream: &mut Stream, out: &mut Vec<u8>) {
        let mut records = Records::default();
        match self.db {
            Some(db) => records.add_words(self.number, db, &self.bytes),
            None => records.add_frames(self.number, &self.bytes),
        }
        records.run(0).iter().for_each(|run| stream.write(run, out));
    }

    /// Looks for it at this place, and behind other commands if those may stand there.
    fn find(&self, stream: &mut Stream, (rest, mut at): (&[u8], usize), has_gap: bool) -> Found {
        loop {
            let (mut behind, mut command) = (stream.clone(), Vec::new());
            self.write(&mut behind, &mut command);
            if command.is_empty() {
                return Found::Nowhere;
            }
            // The time, which is told between commands.
            while rest.get(at) == Some(&b'#') {
                match rest[at..].iter().position(|byte| *byte == b'\n') {
                    Some(end) => at += end + 1,
                    None => return self.is_missing(stream, at),
                }
            }
            let count = command.len().min(rest.len() - at);
            if rest[at..at + count] == command[..count] {
                *stream = behind;
                return match count < command.len() {
                    true => Found::Missing(at + count, command.split_off(count)),
                    false => Found::Ends(at + count),
                };
            }
            match pass_one(&rest[at..], stream).filter(|_| has_gap) {
                Some(0) => return self.is_missing(stream, at),
                Some(bytes) => at += bytes,
                None => return Found::Other,
            }
        }
    }

    /// What stands from here on is no whole command.
    fn is_missing(&self, stream: &mut Stream, at: usize) -> Found {
        let mut command = Vec::new();
        self.write(stream, &mut command);
        Found::Missing(at, command)
    }
}

/// How long the command is, or the transaction, that these bytes begin with, which `stream` takes note of. 0
/// if it does not end, None if it is none.
fn pass_one(bytes: &[u8], stream: &mut Stream) -> Option<usize> {
    let (mut reader, mut behind) = (CommandReader::new(bytes), stream.clone());
    loop {
        match reader.next_entry() {
            Ok(Some(Entry::Command(words))) => behind.note(words),
            // A transaction has begun.
            Ok(None) | Err(CommandError::Truncated(_)) => return Some(0),
            _ => return None,
        }
        if !reader.is_in_transaction() {
            *stream = behind;
            return Some(reader.good_bytes() as usize);
        }
    }
}

impl State {
    /// The slot in force; None if nothing was committed.
    fn read(bytes: &[u8]) -> Result<Option<State>, &'static str> {
        let slot = word(bytes, SLOT_AT).unwrap_or(u64::MAX);
        let start =
            *SLOTS_AT.get(usize::try_from(slot).unwrap_or(usize::MAX)).ok_or("it has no such slot")?;
        let at = |index: usize| word(bytes, start + 8 * index).unwrap_or_default();
        if at(0) == 0 {
            return Ok(None);
        }
        if at(SLOT_WORDS) != checksum(bytes.get(start..start + SLOT_BYTES).unwrap_or_default()) {
            return Err("what it says of the files is damaged");
        }
        let db = match at(3) {
            NO_DB => None,
            db => Some(u16::try_from(db).map_err(|_| "there is no such database")?),
        };
        let place = Place { file: at(0), len: at(1), next: at(2), db };
        let cuts = std::array::from_fn(|cut| (at(5 + 2 * cut), at(6 + 2 * cut)));
        Ok(Some(State { place, stop: at(4), cuts }))
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
        let (number, about) = (word(&header, 0).unwrap_or_default(), word(&header, 8).unwrap_or_default());
        let (len, db, shape) = (about as u32 as usize, (about >> 32) as u16, about >> 48);
        let len_bytes = (len.next_multiple_of(8) + ENTRY_BYTES) as u64;
        let next = at.checked_add(len_bytes).filter(|next| *next <= end).ok_or("an entry does not end")?;
        if number >= state.place.next && number < state.stop {
            let bytes = piece(ring, at + ENTRY_BYTES as u64, len);
            let db = (shape == WORDS).then_some(db);
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
