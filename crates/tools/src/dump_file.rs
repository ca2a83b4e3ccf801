//! Dump files as the tools read them: with one thread, in rounds, into a keyspace that the caller brings.
use base::Millis;
use disk::rdb::{FileReader, LoadCounts, LoadError, LoadRules, Piece, Sorted, Sorter};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use store::{Keyspace, Settings};

/// What dump files begin with, those of Redis and those of Valkey 9.
pub(crate) const MARKS: [&[u8]; 2] = [b"REDIS", b"VALKE"];

/// A dump file, and what was found in it so far.
pub(crate) struct DumpFile {
    reader: FileReader<File>,
    settings: Settings,
    bar: ProgressBar,
    pub(crate) facts: Facts,
}

/// What a file says besides its keys.
#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) version: u16,
    /// What the writer says of itself, by name.
    pub(crate) about: Vec<(String, String)>,
    /// How many libraries of functions there are.
    pub(crate) functions: u64,
    /// Modules that keep something beside the keys.
    pub(crate) modules: Vec<String>,
    pub(crate) counts: LoadCounts,
}

impl Facts {
    /// What the file says under this name.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.about.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
    }
}

/// Whether a round was the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    More,
    Last,
}

impl DumpFile {
    /// Opens a file and reads its header. An error says in words why that cannot be done.
    pub(crate) fn open(path: &Path) -> Result<DumpFile, String> {
        let about = std::fs::metadata(path)
            .map_err(|error| format!("cannot be read: {}", base::reason::reason(&error)))?;
        if !about.is_file() {
            return Err("is not a regular file".into());
        }
        let mut file =
            File::open(path).map_err(|error| format!("cannot be read: {}", base::reason::reason(&error)))?;
        refuse_others(&mut file)?;
        let settings = Settings::default();
        let reader =
            FileReader::open(file, about.len(), &settings, true).map_err(|error| error.to_string())?;
        let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes}, {eta} left");
        let bar = ProgressBar::new(about.len()).with_style(style.unwrap_or(ProgressStyle::default_bar()));
        let facts = Facts { version: reader.version(), ..Facts::default() };
        Ok(DumpFile { reader, settings, bar, facts })
    }

    /// Gives back what reading has taken, but for what was found.
    pub(crate) fn into_facts(mut self) -> Facts {
        std::mem::take(&mut self.facts)
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Up to which byte the file was read.
    pub(crate) fn at(&self) -> u64 {
        self.reader.at()
    }

    /// Loads about so many bytes of the file. Keys whose deadline has passed by `now` are only counted. What
    /// was read before an error is loaded nevertheless.
    pub(crate) fn load_round(
        &mut self,
        keyspace: &Keyspace,
        now: Millis,
        bytes_max: u64,
    ) -> Result<Round, LoadError> {
        let settings = self.settings.clone();
        let go_on = || ControlFlow::Continue(());
        let rules = LoadRules { keyspace, settings: &settings, now, replaces: false, go_on: &go_on };
        let sorted = Sorted::new(keyspace.shards(), self.facts.version);
        let mut sorter = Sorter::new(&sorted);
        let read = self.read(&mut sorter, &rules, bytes_max);
        sorter.finish();
        for shard in 0..sorted.shards() {
            // A value that is wrong lies before the place at which reading stopped.
            sorted.load(shard, &rules, &mut self.facts.counts)?;
        }
        read
    }

    fn read(
        &mut self,
        sorter: &mut Sorter<'_>,
        rules: &LoadRules<'_>,
        bytes_max: u64,
    ) -> Result<Round, LoadError> {
        let end = self.reader.at().saturating_add(bytes_max);
        let facts = &mut self.facts;
        while self.reader.at() < end {
            match self.reader.next_piece()? {
                Piece::Batch(batch) => sorter.sort(&batch, rules, &mut facts.counts)?,
                Piece::Large => self.reader.load_key(rules, &mut facts.counts)?,
                Piece::About(name, text) => {
                    let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
                    facts.about.push((shown(&name), shown(&text)));
                }
                Piece::Function(_) => facts.functions += 1,
                Piece::Module(name) => facts.modules.push(name),
                Piece::End => {
                    self.bar.finish_and_clear();
                    return Ok(Round::Last);
                }
            }
            self.bar.set_position(self.reader.at());
        }
        Ok(Round::More)
    }
}

impl Drop for DumpFile {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// An append-only file is named as what it is, since it is often what is at hand, and so is what is neither.
fn refuse_others(file: &mut File) -> Result<(), String> {
    use std::io::Seek;
    let mut start = Vec::new();
    file.take(5)
        .read_to_end(&mut start)
        .map_err(|error| format!("cannot be read: {}", base::reason::reason(&error)))?;
    file.rewind().map_err(|error| format!("cannot be read: {}", base::reason::reason(&error)))?;
    match &start[..] {
        [b'*', b'0'..=b'9', ..] | b"#TS:1" | b"file " => {
            Err("is an append-only file or its manifest; only dump files (RDB) say what data consists of"
                .into())
        }
        start if !MARKS.iter().any(|mark| mark.starts_with(start)) => {
            Err("is neither a dump file nor an append-only file".into())
        }
        _ => Ok(()),
    }
}
