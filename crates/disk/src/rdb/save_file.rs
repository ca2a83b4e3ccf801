//! Writes a dump file, as `file.rs` shows it, from frozen data.
//!
//! Nothing is held but what is gathered for the next write, so a collection of any size takes no memory.
use super::file::{header, mark};
use super::functions::save_library;
use super::save::{Form, save};
use super::version::VERSION_TIMED_FIELDS;
use super::write::{Sink, Writer};
use crate::checksum::Sum;
use base::Millis;
use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use store::{Deadline, Frozen, FrozenDb, FrozenEntry, Settings, Usage};

/// Where a dump file is written to.
pub trait Output: Write {
    /// Waits until what was written is on the disk.
    fn sync(&mut self) -> io::Result<()>;
}

impl Output for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// How a file is written.
#[derive(Clone, Copy, Debug)]
pub struct FileForm {
    pub form: Form,
    /// Whether it ends with a checksum (`rdbchecksum`).
    pub has_checksum: bool,
    /// Whether it is synced every few megabytes (`rdb-save-incremental-fsync`), so that the last sync does
    /// not wait for all of it.
    pub syncs: bool,
}

/// What a file tells of its writer.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Names and texts.
    pub texts: Vec<(&'static str, String)>,
    /// The codes of libraries of functions.
    pub functions: Vec<Arc<[u8]>>,
}

/// Why there is no file.
#[derive(Debug)]
pub enum SaveError {
    Io(io::Error),
    /// The caller did not want to go on.
    GivenUp,
}

/// What was done when whoever wants a file is asked whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A key is written.
    Key,
    /// Some keys that are written were let go of.
    Freed,
}

/// Asked whether to go on.
pub type GoOn<'g> = &'g mut dyn FnMut(Step) -> ControlFlow<()>;

/// After so many bytes the file is synced.
const SYNC_BYTES: u64 = 4 << 20;

/// Writes the file, and waits until it is on the disk. Returns how many bytes it has. `go_on` is called for
/// every key, and while what is written is let go of.
pub fn save_file(
    frozen: Frozen,
    output: &mut dyn Output,
    (about, settings, form): (&About, &Settings, FileForm),
    go_on: GoOn<'_>,
) -> Result<u64, SaveError> {
    let version = match frozen.has_timed_hashes {
        true => form.form.version.max(VERSION_TIMED_FIELDS),
        false => form.form.version,
    };
    let mut disk = Disk::new(output, form.syncs);
    disk.sum = form.has_checksum.then(Sum::new);
    let mut gathered = Vec::new();
    let mut writer = Writer::into_sink(&mut gathered, &mut disk, Form { version, ..form.form });
    save_head(&mut writer, about, version);
    let done = frozen.into_dbs().try_for_each(|db| save_db(&mut writer, db, settings, go_on));
    writer.bytes(&[mark::END]);
    writer.drain();
    disk.finish_with_sum(done)
}

/// What is written to, and what is known of it.
pub(crate) struct Disk<'o> {
    output: &'o mut dyn Output,
    sum: Option<Sum>,
    written: u64,
    /// So many of these bytes were synced.
    synced: u64,
    syncs: bool,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
}

impl Sink for Disk<'_> {
    fn take(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        if self.error.is_none()
            && let Err(error) = self.write(bytes)
        {
            self.error = Some(error);
        }
        if self.error.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<'o> Disk<'o> {
    /// Writes to this, and syncs it every few megabytes if `syncs`.
    pub(crate) fn new(output: &'o mut dyn Output, syncs: bool) -> Disk<'o> {
        Disk { output, sum: None, written: 0, synced: 0, syncs, error: None }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.write_all(bytes)?;
        self.written += bytes.len() as u64;
        if let Some(sum) = &mut self.sum {
            sum.add(bytes);
        }
        if self.syncs && self.written - self.synced >= SYNC_BYTES {
            self.synced = self.written;
            self.output.sync()?;
        }
        Ok(())
    }

    fn finish_with_sum(mut self, done: ControlFlow<()>) -> Result<u64, SaveError> {
        let sum = self.sum.take().map_or(0, |sum| sum.value());
        if done.is_continue() {
            let _ = self.take(&sum.to_le_bytes());
        }
        self.finish(done)
    }

    /// All is written, if it was `done`: waits until it is on the disk. Returns how many bytes there are.
    pub(crate) fn finish(self, done: ControlFlow<()>) -> Result<u64, SaveError> {
        if let Some(error) = self.error {
            return Err(SaveError::Io(error));
        }
        if done.is_break() {
            return Err(SaveError::GivenUp);
        }
        self.output.flush().and_then(|()| self.output.sync()).map_err(SaveError::Io)?;
        Ok(self.written)
    }
}

fn save_head(writer: &mut Writer<'_>, about: &About, version: u16) {
    writer.bytes(header(version).as_bytes());
    for (name, text) in &about.texts {
        writer.bytes(&[mark::ABOUT]);
        writer.string(name.as_bytes());
        writer.string(text.as_bytes());
    }
    about.functions.iter().for_each(|code| save_library(writer, code));
}

fn save_db(writer: &mut Writer<'_>, db: FrozenDb, settings: &Settings, go_on: GoOn<'_>) -> ControlFlow<()> {
    writer.bytes(&[mark::DATABASE]);
    writer.length(u64::from(db.number));
    writer.bytes(&[mark::SIZES]);
    writer.length(db.keys);
    writer.length(db.volatile_keys);
    visit(db, go_on, &mut |entry| {
        save_entry(writer, entry, settings);
        if writer.is_broken() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}

/// Has all keys of a database written, and lets go of each shard's when they are.
pub(crate) fn visit(
    db: FrozenDb,
    go_on: GoOn<'_>,
    save: &mut dyn FnMut(&FrozenEntry<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    db.into_shards().try_for_each(|shard| {
        shard.visit(&mut |entry| {
            save(&entry)?;
            go_on(Step::Key)
        })?;
        shard.let_go(&mut || {
            // A snapshot that is given up is let go of all the same.
            let _ = go_on(Step::Freed);
        });
        ControlFlow::Continue(())
    })
}

fn save_entry(writer: &mut Writer<'_>, entry: &FrozenEntry<'_>, settings: &Settings) {
    if entry.value.is_over() {
        return;
    }
    if let Deadline::At(Millis(at)) = entry.deadline {
        writer.bytes(&[mark::DEADLINE_MS]);
        writer.millis(at);
    }
    match entry.usage {
        Usage::Untracked => {}
        Usage::IdleMs(idle) => {
            writer.bytes(&[mark::IDLE]);
            writer.length((idle / 1000) as u64);
        }
        Usage::Frequency(counter) => writer.bytes(&[mark::FREQUENCY, counter]),
    }
    writer.begin_key(entry.key);
    save(writer, entry.value, settings);
}
