//! Loads a dump file, as `file.rs` shows it, with any number of threads.
//!
//! ```text
//! one thread:  file --> chunks --> batches of whole keys, found by passing over their values
//! the others:  batch --> for each key: lock its shard, build its value
//! ```
//!
//! To pass over a value costs a fraction of what building it does, so one reader keeps several loaders busy.
//! A key that does not fit a chunk is loaded by the reader itself, as its bytes come: so memory never follows
//! from what a file announces. Keys are those of one file, so no two loaders have the same one, unless the
//! file is broken: that is noticed, because the second finds the first.
use super::file::{HEADER_BYTES, Head, Part, VERSION_CHECKSUM, module_name, next_part, version};
use super::load::{Loaded, load};
use super::read::{LengthsMax, Reader};
use super::skip::{skip, skip_module};
use super::source::Broken;
use super::source::{Slice, Source, Stream};
use super::version::VERSION_MAX;
use base::Millis;
use std::io::{self, Read};
use std::ops::{AddAssign, ControlFlow};
use store::{Deadline, Keyspace, Settings, Usage};

/// So many bytes of a file are cut into a batch at once.
const BATCH_BYTES: usize = 512 << 10;

/// Whole keys of a file, in their bytes.
pub struct Batch {
    bytes: Vec<u8>,
    /// At which byte of the file they begin.
    first: u64,
    version: u16,
    /// The database that the first of them belongs to.
    db: u64,
}

impl Batch {
    /// How many bytes of the file it is.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// What comes next in a file.
pub enum Piece {
    Batch(Batch),
    /// A key that is too large for a batch: [`FileReader::load_key`] loads it.
    Large,
    /// Something that the writer tells of itself: a name and a text.
    About(Vec<u8>, Vec<u8>),
    /// A library of functions.
    Function(Vec<u8>),
    /// What a module of this name keeps beside the keys was passed over.
    Module(String),
    /// The end, and a checksum that is right, or none.
    End,
}

/// Why a file cannot be loaded.
#[derive(Debug)]
pub enum LoadError {
    Io(io::Error),
    /// Its bytes are none that may stand there.
    Broken(Broken),
    /// It is of a version that is not known.
    Version(u16),
    /// The checksum at its end, and that of its bytes.
    Checksum {
        told: u64,
        found: u64,
    },
    /// It has a key in a database that the server does not have.
    Database(u64),
    /// It has a key twice: the key and its database.
    Twice(u16, Vec<u8>),
    /// The caller did not want to go on.
    GivenUp,
}

impl From<Broken> for LoadError {
    fn from(broken: Broken) -> LoadError {
        LoadError::Broken(broken)
    }
}

/// How the keys of a file are loaded.
#[derive(Clone, Copy)]
pub struct LoadRules<'r> {
    pub keyspace: &'r Keyspace,
    pub settings: &'r Settings,
    /// Keys whose deadline has passed by then are left out.
    pub now: Millis,
    /// Whether a key that is there already is replaced. Otherwise it is an error.
    pub replaces: bool,
    /// Is called after every key; breaks off to give the load up.
    pub go_on: &'r (dyn Fn() -> ControlFlow<()> + Sync),
}

/// What became of the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadCounts {
    pub loaded: u64,
    /// Left out because their deadline had passed.
    pub expired: u64,
    /// Left out because they had no elements.
    pub empty: u64,
}

impl AddAssign for LoadCounts {
    fn add_assign(&mut self, more: LoadCounts) {
        self.loaded += more.loaded;
        self.expired += more.expired;
        self.empty += more.empty;
    }
}

/// Reads a file from its beginning to its end.
pub struct FileReader<R> {
    reader: Reader<Stream<R>>,
    db: u64,
    lengths_max: LengthsMax,
}

impl<R: Read> FileReader<R> {
    /// Reads the header. `checks` says whether the checksum at the end will be looked at.
    pub fn open(input: R, settings: &Settings, checks: bool) -> Result<FileReader<R>, LoadError> {
        let lengths_max = LengthsMax::of(settings);
        let mut reader = Reader::new(Stream::new(input), 0, lengths_max);
        let header = reader.array::<HEADER_BYTES>();
        let header = header.map_err(|broken| failed(&mut reader, broken))?;
        let version = version(&header).ok_or(Broken { what: "the file is no dump file", at: 0 })?;
        if version == 0 || version > VERSION_MAX {
            return Err(LoadError::Version(version));
        }
        reader.version = version;
        if !checks || version < VERSION_CHECKSUM {
            reader.source.stop_summing();
        }
        Ok(FileReader { reader, db: 0, lengths_max })
    }

    /// The version of the file.
    pub fn version(&self) -> u16 {
        self.reader.version
    }

    /// How many bytes were read and passed on.
    pub fn at(&self) -> u64 {
        self.reader.source.at()
    }

    /// What comes next. After [`Piece::Large`] the caller has to load that key.
    pub fn next_piece(&mut self) -> Result<Piece, LoadError> {
        self.reader.source.fill(BATCH_BYTES);
        let (len, db) = self.whole_keys();
        if len > 0 {
            let first = self.at();
            let bytes = self.reader.source.take(len as u64)?.to_vec();
            let batch = Batch { bytes, first, version: self.version(), db: self.db };
            self.db = db;
            return Ok(Piece::Batch(batch));
        }
        self.next_other().map_err(|broken| failed(&mut self.reader, broken))?
    }

    /// How many of the bytes that wait are whole keys, and the database that the one behind them belongs to.
    fn whole_keys(&self) -> (usize, u64) {
        let waiting = self.reader.source.waiting();
        let mut reader = Reader::new(Slice::new(waiting), self.version(), self.lengths_max);
        let (mut end, mut db) = (0, self.db);
        while let Ok(found) = pass_over(&mut reader) {
            match found {
                Passed::Whole => {}
                Passed::Database(number) => db = number,
                Passed::Other => break,
            }
            end = reader.source.at() as usize;
        }
        (end, db)
    }

    fn next_other(&mut self) -> Result<Result<Piece, LoadError>, Broken> {
        // The byte is looked at before anything is taken: a large key is left to `load_key`.
        self.reader.source.fill(1);
        let mut ahead =
            Reader::new(Slice::new(self.reader.source.waiting()), self.version(), self.lengths_max);
        if let Ok(Part::Key(_)) = next_part(&mut ahead) {
            return Ok(Ok(Piece::Large));
        }
        let piece = match next_part(&mut self.reader)? {
            Part::Key(_) | Part::Database(_) | Part::Skipped => {
                return self.reader.broken("the file ends too early");
            }
            Part::About => {
                let name = self.reader.string()?.to_vec();
                Piece::About(name, self.reader.string()?.to_vec())
            }
            Part::Function => Piece::Function(self.reader.string()?.to_vec()),
            Part::Module(id) => {
                // A mark and the moment at which the module wrote it.
                self.reader.length()?;
                self.reader.length()?;
                skip_module(&mut self.reader)?;
                Piece::Module(module_name(id))
            }
            Part::End => return self.end(),
        };
        Ok(Ok(piece))
    }

    fn end(&mut self) -> Result<Result<Piece, LoadError>, Broken> {
        if self.version() < VERSION_CHECKSUM {
            return Ok(Ok(Piece::End));
        }
        let found = self.reader.source.sum();
        let told = u64::from_le_bytes(self.reader.array()?);
        match found {
            Some(found) if told != 0 && told != found => Ok(Err(LoadError::Checksum { told, found })),
            _ => Ok(Ok(Piece::End)),
        }
    }

    /// Loads the key that [`Piece::Large`] has announced.
    pub fn load_key(&mut self, rules: &LoadRules<'_>, counts: &mut LoadCounts) -> Result<(), LoadError> {
        match next_part(&mut self.reader) {
            Ok(Part::Key(head)) => load_entry(&mut self.reader, (head, self.db), rules, counts),
            Ok(_) => Ok(()),
            Err(broken) => Err(LoadError::Broken(broken)),
        }
        .map_err(|error| match error {
            LoadError::Broken(broken) => failed(&mut self.reader, broken),
            other => other,
        })
    }
}

/// The error of the input, where there is one: that a file ends too early may be one.
fn failed<R>(reader: &mut Reader<Stream<R>>, broken: Broken) -> LoadError {
    reader.source.error.take().map_or(LoadError::Broken(broken), LoadError::Io)
}

enum Passed {
    /// A key, or something of no interest.
    Whole,
    Database(u64),
    Other,
}

fn pass_over(reader: &mut Reader<Slice<'_>>) -> Result<Passed, Broken> {
    Ok(match next_part(reader)? {
        Part::Key(head) => {
            reader.skip_string()?;
            skip(head.kind, reader)?;
            Passed::Whole
        }
        Part::Database(number) => Passed::Database(number),
        Part::Skipped => Passed::Whole,
        Part::About | Part::Function | Part::Module(_) | Part::End => Passed::Other,
    })
}

impl Batch {
    /// Loads all of its keys.
    pub fn load(&self, rules: &LoadRules<'_>, counts: &mut LoadCounts) -> Result<(), LoadError> {
        let source = Slice::part(&self.bytes, self.first);
        let mut reader = Reader::new(source, self.version, LengthsMax::of(rules.settings));
        let (end, mut db) = (self.first + self.bytes.len() as u64, self.db);
        while reader.source.at() < end {
            match next_part(&mut reader)? {
                Part::Key(head) => load_entry(&mut reader, (head, db), rules, counts)?,
                Part::Database(number) => db = number,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Loads a key, whose name and value come next.
fn load_entry(
    reader: &mut Reader<impl Source>,
    (head, db): (Head, u64),
    rules: &LoadRules<'_>,
    counts: &mut LoadCounts,
) -> Result<(), LoadError> {
    let mut name = Vec::new();
    reader.element_into(&mut name)?;
    let LoadRules { keyspace, settings, now, .. } = *rules;
    let db = u16::try_from(db).ok().filter(|db| *db < keyspace.databases()).ok_or(LoadError::Database(db))?;
    if head.deadline.is_past(now) {
        counts.expired += 1;
        return Ok(skip(head.kind, reader)?);
    }
    let (mut view, key) = keyspace.lock_one(db, now, settings, &name);
    view.leave_no_trace();
    if view.exists(&key) {
        if !rules.replaces {
            return Err(LoadError::Twice(db, name.clone()));
        }
        view.remove(&key);
    }
    match load(&mut view, &key, head.kind, reader)? {
        Loaded::Nothing => counts.empty += 1,
        Loaded::Value => {
            counts.loaded += 1;
            if head.deadline != Deadline::Never {
                view.set_deadline(&key, head.deadline);
            }
            if head.usage != Usage::Untracked && settings.eviction.policy.goes_by_uses() {
                view.set_usage(&key, head.usage);
            }
        }
    }
    // Nobody is told of keys that were there when they were saved.
    view.conceal_creation();
    if (rules.go_on)().is_break() { Err(LoadError::GivenUp) } else { Ok(()) }
}
