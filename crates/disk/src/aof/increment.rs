//! The end of an append-only file: commands are gathered, written, and put on the disk.
//!
//! ```text
//!           synced            written            gathered
//! file      |.................|                              what the disk has for sure | what it was given
//! memory    [ kept ...........| not written ..............]
//! ```
//!
//! A disk may be full, or fail, and work again later. What it has taken of a write that failed is cut off
//! before the next attempt, so the file never has half of a command in its middle. A sync that fails may have
//! lost anything that was written since the last one, and the next may succeed nevertheless: so what was
//! written is kept until it is synced ([`Keep::UntilSynced`]), and after such a failure it is written again.
//! Where that would be too much, the caller is told that a part of the file may be missing
//! ([`Increment::is_doubtful`]): it has to be written anew from the data.
//!
//! Where nothing is kept another thread may wait for the disk, while more is written.
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Write};

/// What is written to: a file, or in tests a disk that fails.
pub trait Medium: Send {
    /// Writes these pieces at the end, one behind the other; returns how many of their bytes it took.
    fn append(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Returns when all that was written is on the disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Makes the file so long, which is not longer than it is.
    fn cut(&mut self, len: u64) -> io::Result<()>;
}

/// A file that is open for appending.
impl Medium for File {
    fn append(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write_vectored(pieces)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
}

/// For how long what was written is kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Nothing,
    UntilSynced,
}

/// See the file's opener.
pub struct Increment<M> {
    medium: M,
    keep: Keep,
    /// What is kept, and behind it what is not written.
    bytes: Vec<u8>,
    /// So many of `bytes` are written.
    written: usize,
    /// How long the file is, up to what was written as a whole.
    len: u64,
    /// A write has failed, and may have left something behind `len`.
    has_tail: bool,
    is_unsynced: bool,
    /// Some of that was written since the last sync began.
    has_newer: bool,
    /// Some of what waits to be synced is not kept: it was written when that was not asked for.
    has_unkept: bool,
    is_doubtful: bool,
}

/// The size of the system's larger units of a file in memory.
const BLOCK_BYTES: u64 = 64 << 10;
/// The most that is written at a time: the system takes many times as long for each byte of two megabytes.
const WRITE_BYTES_MAX: usize = 512 << 10;
/// And in so many pieces.
const WRITE_PIECES_MAX: usize = 64;
/// Room for so much is kept.
const ROOM_BYTES_KEPT: usize = 4 << 20;

impl<M: Medium> Increment<M> {
    /// Goes on with a file of this length.
    pub fn new(medium: M, len: u64, keep: Keep) -> Increment<M> {
        Increment {
            medium,
            keep,
            bytes: Vec::new(),
            written: 0,
            len,
            has_tail: false,
            is_unsynced: false,
            has_newer: false,
            has_unkept: false,
            is_doubtful: false,
        }
    }

    /// Where the next commands are appended to.
    pub fn gather(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// How many bytes are gathered and not written.
    pub fn gathered_bytes(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// What the buffer takes in which commands are gathered, or kept until they are synced.
    pub fn room_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// How long the file is, but for what is gathered.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing was ever written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether something was written that no sync has confirmed.
    pub fn is_unsynced(&self) -> bool {
        self.is_unsynced
    }

    /// Whether a part of the file may be missing, because a sync has failed and not all that was written was
    /// kept. What is behind a gap cannot be read either, so this never changes back.
    pub fn is_doubtful(&self) -> bool {
        self.is_doubtful
    }

    /// From here on what is written is kept for so long.
    pub fn keep(&mut self, keep: Keep) {
        self.keep = keep;
        self.forget_written();
    }

    /// Writes what is gathered up to the last multiple of [`BLOCK_BYTES`] in the file, if that is ahead: the
    /// system takes such a write at two thirds of the time of others. The rest is to be written before long.
    /// After an error all is still gathered.
    pub fn write_blocks(&mut self) -> io::Result<()> {
        let rest = (self.len + self.gathered_bytes() as u64) % BLOCK_BYTES;
        let end = (self.bytes.len() as u64).saturating_sub(rest) as usize;
        if end > self.written { self.write_to(end, &[], 0) } else { Ok(()) }
    }

    /// Gathers these pieces behind what is gathered, and writes all whole blocks, as
    /// [`Increment::write_blocks`] does. What is written at once is not copied before, unless it is kept or
    /// consists of small pieces. After an error all is gathered.
    pub fn write_behind(&mut self, pieces: &[&[u8]]) -> io::Result<()> {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let rest = ((self.len + (self.gathered_bytes() + bytes) as u64) % BLOCK_BYTES) as usize;
        let are_small = bytes < pieces.len() * (WRITE_BYTES_MAX / WRITE_PIECES_MAX);
        let is_copied = self.keep != Keep::Nothing || bytes <= rest || are_small;
        let done = if is_copied { Ok(()) } else { self.write_to(self.bytes.len(), pieces, bytes - rest) };
        // What the file does not have.
        let mut passed = if is_copied || done.is_err() { 0 } else { bytes - rest };
        for piece in pieces {
            let skipped = passed.min(piece.len());
            self.bytes.extend_from_slice(&piece[skipped..]);
            passed -= skipped;
        }
        if is_copied { self.write_blocks() } else { done }
    }

    /// Writes all that is gathered. After an error it is still gathered, but for what was written before.
    pub fn write(&mut self) -> io::Result<()> {
        self.write_to(self.bytes.len(), &[], 0)
    }

    /// Writes what is gathered up to `end`, and so many bytes of these pieces behind it. After an error none
    /// of that counts as written.
    fn write_to(&mut self, end: usize, pieces: &[&[u8]], count: usize) -> io::Result<()> {
        if self.has_tail {
            self.medium.cut(self.len)?;
            self.has_tail = false;
        }
        let all = [&[&self.bytes[self.written..end]], pieces].concat();
        let total = end - self.written + count;
        if let Err(error) = append_all(&mut self.medium, &all, total) {
            // Whoever reads the file meanwhile is to see whole commands, if that is possible.
            self.has_tail = self.medium.cut(self.len).is_err();
            return Err(error);
        }
        self.is_unsynced |= total > 0;
        self.has_newer |= total > 0;
        self.len += total as u64;
        self.written = end;
        self.forget_written();
        Ok(())
    }

    /// Returns when all that was written is on the disk. After an error what is kept is to be written again.
    pub fn sync(&mut self) -> io::Result<()> {
        if !self.is_unsynced {
            return Ok(());
        }
        let done = self.medium.sync();
        if done.is_ok() {
            (self.is_unsynced, self.has_newer, self.has_unkept) = (false, false, false);
            self.forget_synced();
        } else {
            self.is_doubtful |= self.has_unkept;
            self.len -= self.written as u64;
            self.has_tail |= self.written > 0;
            self.written = 0;
        }
        done
    }

    /// What is written to, for whoever puts it on the disk while more is written
    /// ([`Increment::note_sync_begun`]).
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// Somebody else is about to put on the disk what is written so far. More may be written meanwhile.
    pub fn note_sync_begun(&mut self) {
        self.has_newer = false;
    }

    /// He has, or could not. What is kept is on the disk only after [`Increment::sync`].
    pub fn note_sync_ended(&mut self, is_done: bool) {
        match (is_done, self.keep) {
            (true, Keep::Nothing) => {
                self.is_unsynced &= self.has_newer;
                self.has_unkept = self.is_unsynced;
            }
            (true, Keep::UntilSynced) => {}
            (false, _) => self.is_doubtful |= self.has_unkept,
        }
    }

    fn forget_written(&mut self) {
        if self.keep == Keep::Nothing || !self.is_unsynced {
            self.has_unkept |= self.is_unsynced;
            self.forget_synced();
        }
    }

    /// What is written is needed no more.
    fn forget_synced(&mut self) {
        self.bytes.drain(..self.written);
        self.written = 0;
        if self.bytes.is_empty() && self.bytes.capacity() > ROOM_BYTES_KEPT {
            self.bytes = Vec::new();
        }
    }
}

/// Writes so many bytes of these pieces, which have at least as many.
fn append_all(medium: &mut impl Medium, mut pieces: &[&[u8]], mut left: usize) -> io::Result<()> {
    // How much of the first piece is written.
    let mut skipped = 0;
    while left > 0 {
        let (mut slices, mut room) = ([IoSlice::new(&[]); WRITE_PIECES_MAX], left.min(WRITE_BYTES_MAX));
        let mut from = skipped;
        for (slice, piece) in slices.iter_mut().zip(pieces) {
            let len = room.min(piece.len() - from);
            *slice = IoSlice::new(&piece[from..from + len]);
            (room, from) = (room - len, 0);
        }
        let count = slices.len().min(pieces.len());
        let mut taken = match medium.append(&slices[..count]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(taken) => taken,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        left -= taken;
        while let [first, behind @ ..] = pieces
            && taken >= first.len() - skipped
        {
            taken -= first.len() - skipped;
            (pieces, skipped) = (behind, 0);
        }
        skipped += taken;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;
    use std::sync::{Arc, Mutex};

    /// A disk that takes a part, fails, and loses what was not synced, by a seed.
    #[derive(Clone)]
    struct Disk(Arc<Mutex<State>>);

    struct State {
        /// What the processes of the machine see.
        seen: Vec<u8>,
        /// What is there after a failure of power, at least.
        safe: Vec<u8>,
        random: Random,
        /// One operation of so many fails; 0: none.
        fails_of: u64,
    }

    impl State {
        fn fails(&mut self) -> bool {
            self.fails_of > 0 && self.random.below(self.fails_of) == 0
        }
    }

    fn broken<T>() -> io::Result<T> {
        Err(io::Error::other("the disk has failed"))
    }

    impl Medium for Disk {
        fn append(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
            let bytes = &pieces.iter().flat_map(|piece| piece.iter().copied()).collect::<Vec<u8>>()[..];
            let mut state = self.0.lock().unwrap();
            if state.fails() {
                // It may take some of it all the same.
                let part = state.random.below(bytes.len() as u64 + 1) as usize;
                let is_told = part > 0 && state.random.below(2) == 0;
                state.seen.extend_from_slice(&bytes[..part]);
                return if is_told { Ok(part) } else { broken() };
            }
            state.seen.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn sync(&mut self) -> io::Result<()> {
            let mut state = self.0.lock().unwrap();
            if state.fails() {
                // What was not on the disk is gone, and the next sync will not say so: here it reads as
                // zeros, as it may after a failure.
                let from = state.safe.len().min(state.seen.len());
                state.seen[from..].fill(0);
                return broken();
            }
            state.safe = state.seen.clone();
            Ok(())
        }

        fn cut(&mut self, len: u64) -> io::Result<()> {
            let mut state = self.0.lock().unwrap();
            if state.fails() {
                return broken();
            }
            assert!(len <= state.seen.len() as u64, "the file is cut, not made longer");
            state.seen.truncate(len as usize);
            let safe = state.safe.len().min(len as usize);
            state.safe.truncate(safe);
            Ok(())
        }
    }

    #[test]
    fn whatever_the_disk_does_what_was_synced_is_there_and_nothing_is_torn() {
        for seed in 0..1000 {
            let random = Random::new(seed);
            let state = State { seen: Vec::new(), safe: Vec::new(), random, fails_of: 3 };
            let disk = Disk(Arc::new(Mutex::new(state)));
            let mut increment = Increment::new(disk.clone(), 0, Keep::UntilSynced);
            let (mut all, mut promised) = (Vec::new(), 0);
            for number in 0..60u32 {
                let command = format!("<{number}>");
                increment.gather().extend_from_slice(command.as_bytes());
                all.extend_from_slice(command.as_bytes());
                if number % 3 == 0 {
                    let _ = increment.write_blocks();
                }
                if increment.write().is_ok() && increment.sync().is_ok() {
                    promised = all.len();
                }
                let state = disk.0.lock().unwrap();
                assert!(state.safe.len() >= promised, "seed {seed}: {promised} bytes were promised");
                assert_eq!(state.safe[..promised], all[..promised], "seed {seed}");
            }
            disk.0.lock().unwrap().fails_of = 0;
            increment.write().unwrap();
            increment.sync().unwrap();
            assert_eq!(disk.0.lock().unwrap().seen, all, "seed {seed}: nothing is missing, torn or doubled");
            assert_eq!((increment.len(), increment.gathered_bytes()), (all.len() as u64, 0));
            assert!(!increment.is_doubtful() && increment.bytes.is_empty());
        }
    }

    #[test]
    fn whole_blocks_are_written_and_the_rest_with_them_or_later() {
        let random = Random::new(1);
        let state = State { seen: Vec::new(), safe: Vec::new(), random, fails_of: 0 };
        let disk = Disk(Arc::new(Mutex::new(state)));
        for keep in [Keep::Nothing, Keep::UntilSynced] {
            disk.0.lock().unwrap().seen.clear();
            let mut increment = Increment::new(disk.clone(), 0, keep);
            let mut all = Vec::new();
            for (bytes, written) in
                [(10, 0), (BLOCK_BYTES, BLOCK_BYTES), (2 * BLOCK_BYTES - 9, 3 * BLOCK_BYTES)]
            {
                let more: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
                increment.gather().extend_from_slice(&more);
                all.extend_from_slice(&more);
                increment.write_blocks().unwrap();
                assert_eq!(
                    (increment.len(), increment.gathered_bytes() as u64),
                    (written, all.len() as u64 - written)
                );
                assert!(disk.0.lock().unwrap().seen == all[..written as usize]);
            }
            increment.write().unwrap();
            increment.sync().unwrap();
            assert!(disk.0.lock().unwrap().seen == all && increment.gathered_bytes() == 0);
        }
    }

    #[test]
    fn what_is_written_from_where_it_lies_is_all_there_in_its_order_whatever_the_disk_does() {
        let piece_bytes_max = 3 * BLOCK_BYTES;
        for seed in 0..60 {
            let (mut random, mut counts) = (Random::new(seed), Random::new(seed + 1000));
            let state = State { seen: Vec::new(), safe: Vec::new(), random: Random::new(seed), fails_of: 4 };
            let disk = Disk(Arc::new(Mutex::new(state)));
            let keep = if seed % 3 == 0 { Keep::UntilSynced } else { Keep::Nothing };
            let mut increment = Increment::new(disk.clone(), 0, keep);
            let mut all: Vec<u8> = Vec::new();
            for _ in 0..12 {
                let mut more = |len_max: u64| {
                    let len = random.below(len_max) as usize;
                    let bytes: Vec<u8> = (all.len()..all.len() + len).map(|at| (at % 251) as u8).collect();
                    all.extend_from_slice(&bytes);
                    bytes
                };
                increment.gather().extend_from_slice(&more(1000));
                // Of many small pieces, or few large ones, or one that is empty.
                let count = [1, 3, 70][counts.below(3) as usize];
                let pieces: Vec<Vec<u8>> = (0..count).map(|_| more(piece_bytes_max / count)).collect();
                let done = increment.write_behind(&pieces.iter().map(Vec::as_slice).collect::<Vec<_>>());
                assert_eq!(increment.len() + increment.gathered_bytes() as u64, all.len() as u64);
                if done.is_ok() {
                    assert!((increment.gathered_bytes() as u64) < BLOCK_BYTES, "whole blocks are written");
                }
                // What was seen of a write that failed may be there still.
                let seen = disk.0.lock().unwrap().seen.clone();
                let len = increment.len() as usize;
                assert!(seen[..len] == all[..len] && (done.is_err() || seen.len() == len), "seed {seed}");
            }
            disk.0.lock().unwrap().fails_of = 0;
            increment.write().unwrap();
            increment.sync().unwrap();
            assert!(disk.0.lock().unwrap().seen == all, "seed {seed}: nothing is missing, torn or doubled");
            assert!(!increment.is_doubtful());
        }
    }

    #[test]
    fn a_full_disk_is_written_to_again_when_there_is_room() {
        let random = Random::new(1);
        let disk =
            Disk(Arc::new(Mutex::new(State { seen: Vec::new(), safe: Vec::new(), random, fails_of: 1 })));
        let mut increment = Increment::new(disk.clone(), 0, Keep::Nothing);
        increment.gather().extend_from_slice(b"some commands");
        for _ in 0..20 {
            assert!(increment.write().is_err());
            assert_eq!((increment.len(), increment.gathered_bytes()), (0, 13));
        }
        disk.0.lock().unwrap().fails_of = 0;
        increment.write().unwrap();
        assert_eq!(disk.0.lock().unwrap().seen, b"some commands");
        disk.0.lock().unwrap().fails_of = 1;
        assert!(increment.sync().is_err() && increment.is_doubtful(), "nothing is kept to be written again");
    }

    #[test]
    fn a_sync_by_somebody_else_confirms_what_was_written_before_it_began() {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let state = State { seen: Vec::new(), safe: Vec::new(), random: Random::new(seed), fails_of: 6 };
            let disk = Disk(Arc::new(Mutex::new(state)));
            let mut increment = Increment::new(disk.clone(), 0, Keep::Nothing);
            // How much it is said to have put on the disk, and of the sync that is under way how much.
            let (mut promised, mut begun) = (0, None);
            for _ in 0..80 {
                increment.gather().extend_from_slice(b"a command ");
                let is_written = increment.write().is_ok();
                match (begun, random.below(4)) {
                    (None, 0) if is_written => {
                        begun = Some(increment.len());
                        increment.note_sync_begun();
                    }
                    (Some(len), 1) => {
                        // His own descriptor and ours are both told of what fails.
                        let is_done = increment.medium().clone().sync().is_ok();
                        increment.note_sync_ended(is_done);
                        promised = if is_done { len } else { promised };
                        begun = None;
                    }
                    (_, 2) if increment.sync().is_ok() => promised = increment.len(),
                    _ => {}
                }
                let state = disk.0.lock().unwrap();
                let is_there = state.safe.iter().filter(|byte| **byte != 0).count() as u64 >= promised;
                assert!(is_there || increment.is_doubtful(), "seed {seed}: {promised} bytes were promised");
                assert!(increment.is_unsynced() || state.safe.len() as u64 >= increment.len(), "seed {seed}");
            }
        }
    }

    #[test]
    fn a_gap_is_noticed_that_a_failing_disk_leaves_after_more_is_kept_than_before() {
        for (before, after) in [(Keep::Nothing, Keep::UntilSynced), (Keep::UntilSynced, Keep::Nothing)] {
            let random = Random::new(1);
            let state = State { seen: Vec::new(), safe: Vec::new(), random, fails_of: 0 };
            let disk = Disk(Arc::new(Mutex::new(state)));
            let mut increment = Increment::new(disk.clone(), 0, before);
            increment.gather().extend_from_slice(b"before");
            increment.write().unwrap();
            increment.keep(after);
            increment.gather().extend_from_slice(b"after");
            increment.write().unwrap();
            disk.0.lock().unwrap().fails_of = 1;
            assert!(increment.sync().is_err());
            disk.0.lock().unwrap().fails_of = 0;
            increment.write().unwrap();
            increment.sync().unwrap();
            assert!(disk.0.lock().unwrap().seen.starts_with(&[0; 6]), "the disk has lost what was not kept");
            assert!(increment.is_doubtful(), "{before:?}");
        }
    }
}
