//! Reads a dump file, as `file.rs` shows it, and cuts it into batches of whole keys, found by passing over
//! their values. To pass over a value costs a fraction of what building it does, so one thread that reads
//! keeps several busy, which sort and load (`sort.rs`).
//!
//! A key that does not fit a batch is loaded here, as its bytes come: so memory never follows from what a
//! file announces. A key that comes twice is an error: the second finds the first.
use super::file::{HEADER_BYTES, Head, Part, VERSION_CHECKSUM, module_name, next_part, version};
use super::load::{Loaded, load};
use super::read::{LengthsMax, Reader};
use super::skip::{skip, skip_module};
use super::version::VERSION_MAX;
use crate::source::Broken;
use crate::source::{Slice, Source, Stream};
use base::Millis;
use base::hash::Hash;
use std::fmt;
use std::io::{self, Read};
use std::ops::{AddAssign, ControlFlow, Range};
use store::{Deadline, Keyspace, Settings, Usage};

/// So many bytes of a file are cut into a batch at once.
const BATCH_BYTES: usize = 512 << 10;

/// Whole keys of one database, in their bytes.
pub struct Batch {
    bytes: Vec<u8>,
    /// Where each of the keys ends.
    ends: Vec<u32>,
    /// At which byte of the file they begin.
    first: u64,
    version: u16,
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
    /// The bytes of a value are none that may stand there: its database and key, and where in its bytes.
    Value(u16, Vec<u8>, Broken),
    /// It is of a version that is not known.
    Version(u16),
    /// The checksum at its end, and that of its bytes.
    Checksum {
        told: u64,
        found: u64,
    },
    /// It has a key in a database that the server does not have.
    Database(u64),
    /// It has a key twice, or one that was there before it: the key and its database.
    Twice(u16, Vec<u8>),
    /// A library of functions that whoever runs them refuses, for this reason.
    Library(String),
    /// The caller did not want to go on.
    GivenUp,
}

impl LoadError {
    /// An error in the bytes of a value says whose they are.
    pub(super) fn in_value(self, db: u16, key: &[u8]) -> LoadError {
        match self {
            LoadError::Broken(broken) => LoadError::Value(db, key.to_vec(), broken),
            other => other,
        }
    }
}

/// What is wrong, for people. Names of keys are shown so that they cannot break a line of a log.
impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Io(error) => write!(f, "it cannot be read: {}", base::reason::reason(error)),
            LoadError::Broken(broken) => write!(f, "{} (at byte {})", broken.what, broken.at),
            LoadError::Value(db, key, broken) => {
                let (key, Broken { what, at }) = (key.escape_ascii(), broken);
                write!(f, "the value of '{key}' in database {db}: {what} (at byte {at} of that key)")
            }
            LoadError::Version(version) => write!(f, "Can't handle RDB format version {version}"),
            LoadError::Checksum { told, found } => {
                write!(f, "Wrong RDB checksum expected: ({told:x}) but got ({found:x})")
            }
            LoadError::Database(number) => {
                let enough = number.saturating_add(1);
                write!(
                    f,
                    "it has keys in database {number}, and there are not so many databases: \
                     `--databases {enough}` would do"
                )
            }
            LoadError::Twice(db, key) => {
                write!(f, "the key '{}' is in database {db} already", key.escape_ascii())
            }
            LoadError::Library(why) => write!(f, "Failed loading library, {why}"),
            LoadError::GivenUp => f.write_str("it was given up"),
        }
    }
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
    /// Reads the header of an input of `len` bytes. `checks` says whether the checksum at the end will be
    /// looked at.
    pub fn open(input: R, len: u64, settings: &Settings, checks: bool) -> Result<FileReader<R>, LoadError> {
        let lengths_max = LengthsMax::of_file(settings);
        let mut reader = Reader::new(Stream::new(input), 0, lengths_max);
        reader.source.ends_at(len);
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
        loop {
            self.reader.source.fill(BATCH_BYTES);
            let ends = self.whole_keys();
            if let Some(len) = ends.last().copied() {
                let first = self.at();
                let bytes = self.reader.source.take(u64::from(len))?.to_vec();
                return Ok(Piece::Batch(Batch { bytes, ends, first, version: self.version(), db: self.db }));
            }
            if let Some(piece) = self.next_other().map_err(|broken| failed(&mut self.reader, broken))?? {
                return Ok(piece);
            }
        }
    }

    /// Where the keys end that are there as a whole in the bytes that wait.
    fn whole_keys(&self) -> Vec<u32> {
        let waiting = self.reader.source.waiting();
        let waiting = &waiting[..waiting.len().min(BATCH_BYTES)];
        let mut reader = Reader::new(Slice::new(waiting), self.version(), self.lengths_max);
        let mut ends = Vec::with_capacity(BATCH_BYTES / 64);
        while let Ok(Part::Key(head)) = next_part(&mut reader)
            && reader.skip_string().and_then(|()| skip(head.kind, &mut reader)).is_ok()
        {
            ends.push(reader.source.at() as u32);
        }
        ends
    }

    /// Anything but keys that are there as a whole; None for what is of no interest.
    fn next_other(&mut self) -> Result<Result<Option<Piece>, LoadError>, Broken> {
        // A large key is looked at before anything is taken: it is left to `load_key`.
        let waiting = self.reader.source.waiting();
        let mut ahead = Reader::new(Slice::new(waiting), self.version(), self.lengths_max);
        if let Ok(Part::Key(_)) = next_part(&mut ahead) {
            return Ok(Ok(Some(Piece::Large)));
        }
        let piece = match next_part(&mut self.reader)? {
            Part::Key(_) => return self.reader.broken("the file ends too early"),
            Part::Database(number) => {
                self.db = number;
                return Ok(Ok(None));
            }
            Part::Skipped => return Ok(Ok(None)),
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
            Part::End => return Ok(self.end()?.map(Some)),
        };
        Ok(Ok(Some(piece)))
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
            Ok(Part::Key(head)) => self.load_value(&head, rules, counts),
            Ok(_) => Ok(()),
            Err(broken) => Err(LoadError::Broken(broken)),
        }
        .map_err(|error| match error {
            LoadError::Broken(broken) => failed(&mut self.reader, broken),
            other => other,
        })
    }
}

impl<R: Read> FileReader<R> {
    fn load_value(
        &mut self,
        head: &Head,
        rules: &LoadRules<'_>,
        counts: &mut LoadCounts,
    ) -> Result<(), LoadError> {
        let db = database(self.db, rules)?;
        let mut name = Vec::new();
        self.reader.element_into(&mut name)?;
        let hash = rules.keyspace.hash(&name);
        load_entry(&mut self.reader, (head, db, (&name, hash)), rules, Order::Any, counts)
    }
}

/// The error of the input, where there is one: that a file ends too early may be one.
fn failed<R>(reader: &mut Reader<Stream<R>>, broken: Broken) -> LoadError {
    reader.source.error.take().map_or(LoadError::Broken(broken), LoadError::Io)
}

impl Batch {
    /// A reader for parts of it.
    pub(super) fn reader(&self, rules: &LoadRules<'_>) -> Reader<Slice<'_>> {
        Reader::new(self.part(0..0), self.version, LengthsMax::of_file(rules.settings))
    }

    /// Its keys: each is a part, from what stands in front of it to the end of its value.
    pub(super) fn keys(&self) -> impl Iterator<Item = Range<usize>> {
        let ends = self.ends.iter().map(|end| *end as usize);
        std::iter::once(0).chain(ends.clone()).zip(ends).map(|(start, end)| start..end)
    }

    pub(super) fn part(&self, part: Range<usize>) -> Slice<'_> {
        Slice::part(&self.bytes[part.clone()], self.first + part.start as u64)
    }

    pub(super) fn bytes_of(&self, part: Range<usize>) -> &[u8] {
        &self.bytes[part]
    }

    /// The database that its keys belong to.
    pub(super) fn database(&self, rules: &LoadRules<'_>) -> Result<u16, LoadError> {
        database(self.db, rules)
    }
}

/// The database of this number, if there is one.
fn database(number: u64, rules: &LoadRules<'_>) -> Result<u16, LoadError> {
    let db = u16::try_from(number).ok().filter(|db| *db < rules.keyspace.databases());
    db.ok_or(LoadError::Database(number))
}

/// In which order keys come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Any,
    ByHash,
}

/// Loads a key, whose value comes next.
pub(super) fn load_entry(
    reader: &mut Reader<impl Source>,
    (head, db, (name, hash)): (&Head, u16, (&[u8], Hash)),
    rules: &LoadRules<'_>,
    order: Order,
    counts: &mut LoadCounts,
) -> Result<(), LoadError> {
    let LoadRules { keyspace, settings, now, .. } = *rules;
    if head.deadline.is_past(now) {
        counts.expired += 1;
        return Ok(skip(head.kind, reader)?);
    }
    let (mut view, key) = keyspace.lock_one_hashed(db, now, settings, name, hash);
    view.leave_no_trace();
    if order == Order::ByHash {
        view.expect_order();
    }
    if view.exists(&key) {
        if !rules.replaces {
            return Err(LoadError::Twice(db, name.to_vec()));
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
