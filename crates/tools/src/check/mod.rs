//! `sardine check FILE`: is a dump file good, and what is in it? Append-only files are in `append`.
//!
//! Every value is loaded, as a server would load it, into a keyspace that is dropped after some megabytes of
//! the file: so the size of a file is no limit. A key that comes twice is found only within such a round.
//! Keys that have expired are decoded like the others.
mod append;

pub(crate) use append::{Part, Repair, Sort, parts_of, sort_of};

use crate::dump_file::{DumpFile, Round};
use crate::scratch;
use crate::tally::Tally;
use crate::told::{say, tell};
use base::Millis;
use server::Clock;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::ExitCode;
use store::{Deadline, Keyspace, Settings};

const ROUND_BYTES: u64 = 64 << 20;
/// Few shards and as many databases as there may be.
const SHARD_BITS: u32 = 2;
const DATABASES: u16 = u16::MAX;
/// No deadline that a server gives has passed by then, so every value is decoded.
const BEFORE_ALL: Millis = Millis(0);
/// Files have had a checksum since this version.
const VERSION_CHECKSUM: u16 = 5;

/// Checks a file of any kind and prints what is in it. Zero if it is good, or has been made so.
pub(crate) fn check(path: &Path, repair: Repair) -> ExitCode {
    // Who only looks is in nobody's way: a server that starts meanwhile needs the folder for itself.
    let claim = (repair.fixes || repair.until_s.is_some()).then(|| append::claim(path));
    if let Some(Err(why)) = claim {
        say!("{}: {why}. Nothing was changed.", path.display());
        return ExitCode::FAILURE;
    }
    match append::sort_of(path) {
        Ok(Sort::Manifest) => append::check_manifest(path, repair),
        Ok(Sort::Commands) => append::check_commands(path, 0, repair),
        Ok(Sort::Dump) => check_dump(path, repair),
        Err(error) => {
            say!("{}: {}", path.display(), base::reason::reason(&error));
            ExitCode::FAILURE
        }
    }
}

/// Checks a dump file, and the commands behind it if there are any, as in an append-only file of one part.
fn check_dump(path: &Path, repair: Repair) -> ExitCode {
    let shown = path.display();
    let mut file = match DumpFile::open(path) {
        Ok(file) => file,
        Err(why) => {
            say!("{shown}: {why}");
            return ExitCode::FAILURE;
        }
    };
    let mut contents = Contents::default();
    let failed = contents.read(&mut file);
    tell(format_args!("{}{contents}", Header(&file, path)));
    match failed {
        None => {
            let (at, len) = (file.at(), std::fs::metadata(path).map_or(0, |about| about.len()));
            say!("The file is good: {at} bytes, {}.", checksum(path, file.facts.version));
            if at < len { append::check_commands(path, at, repair) } else { ExitCode::SUCCESS }
        }
        Some(why) => {
            say!("The file is BROKEN: {why}. It was read up to byte {}.", file.at());
            if repair.fixes {
                say!("A dump file cannot be mended: --fix is for append-only files.");
            }
            ExitCode::FAILURE
        }
    }
}

/// The keys of a file.
#[derive(Default)]
struct Contents {
    kinds: BTreeMap<&'static str, Tally>,
    with_deadline: u64,
    expired: u64,
    empty: u64,
}

impl Contents {
    /// Reads all of it, or up to an error, which is returned in words.
    fn read(&mut self, file: &mut DumpFile) -> Option<String> {
        let now = Clock::real().now();
        loop {
            let keyspace = scratch::keyspace(SHARD_BITS, DATABASES);
            let loaded = file.load_round(&keyspace, BEFORE_ALL, ROUND_BYTES);
            self.add(&keyspace, file.settings(), now);
            self.empty = file.facts.counts.empty;
            match loaded {
                Ok(Round::More) => {}
                Ok(Round::Last) => return None,
                Err(error) => return Some(error.to_string()),
            }
        }
    }

    fn add(&mut self, keyspace: &Keyspace, settings: &Settings, now: Millis) {
        scratch::walk(keyspace, settings, BEFORE_ALL, &mut |found| {
            self.kinds.entry(found.info.kind.name()).or_default().add(found.tally());
            self.with_deadline += u64::from(found.deadline != Deadline::Never);
            self.expired += u64::from(found.deadline.is_past(now));
        });
    }
}

impl Display for Contents {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let keys: u64 = self.kinds.values().map(|tally| tally.keys).sum();
        writeln!(out, "keys: {keys}")?;
        writeln!(out, "  with a deadline: {} ({} have expired)", self.with_deadline, self.expired)?;
        if self.empty > 0 {
            writeln!(out, "  without elements, which loading leaves out: {}", self.empty)?;
        }
        for (kind, tally) in &self.kinds {
            match tally.elements {
                0 => writeln!(out, "  {kind}: {}", tally.keys)?,
                elements => writeln!(out, "  {kind}: {} with {elements} elements", tally.keys)?,
            }
        }
        Ok(())
    }
}

/// What the file says of itself.
struct Header<'h>(&'h DumpFile, &'h Path);

impl Display for Header<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let facts = &self.0.facts;
        writeln!(out, "{}: RDB version {}", self.1.display(), facts.version)?;
        for (name, text) in &facts.about {
            writeln!(out, "  {}: {}", name.escape_debug(), text.escape_debug())?;
        }
        if facts.functions > 0 {
            writeln!(out, "libraries of functions: {}", facts.functions)?;
        }
        for module in &facts.modules {
            writeln!(out, "data of module {module}, which cannot be loaded")?;
        }
        Ok(())
    }
}

/// What is to be said of the checksum of a file that is good.
fn checksum(path: &Path, version: u16) -> &'static str {
    let mut sum = [0; 8];
    let read = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::End(-8))?;
        file.read_exact(&mut sum)
    });
    match (version, read) {
        (..VERSION_CHECKSUM, _) => "of a version without checksum",
        (_, Ok(())) if sum == [0; 8] => "written without checksum",
        _ => "and its checksum is right",
    }
}
