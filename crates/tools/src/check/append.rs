//! `sardine check` of an append-only file: its manifest, or one of its files. Commands are read, not run:
//! their words are counted, and an end that a crash has cut off is found, which `--fix` removes.
use super::check_dump;
use crate::told::{say, tell};
use disk::aof::commands::{CommandError, CommandReader, Entry};
use disk::aof::manifest::Manifest;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What is to be done beside looking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repair {
    /// What is wrong at the end of the last file is cut off, once the user has said yes.
    pub(crate) fixes: bool,
    /// So is what was written after this second of the Unix time.
    pub(crate) until_s: Option<i64>,
}

/// What a file begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Dump,
    Commands,
    Manifest,
}

/// What this file is, by its beginning.
pub(crate) fn sort_of(path: &Path) -> io::Result<Sort> {
    let about = std::fs::metadata(path)?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut start = Vec::new();
    File::open(path)?.take(5).read_to_end(&mut start)?;
    let is_manifest = start.starts_with(b"file ") || path.extension() == Some(OsStr::new("manifest"));
    Ok(match &start[..] {
        _ if is_manifest => Sort::Manifest,
        [b'*' | b'#', ..] => Sort::Commands,
        [] if path.extension() == Some(OsStr::new("aof")) => Sort::Commands,
        _ => Sort::Dump,
    })
}

/// The files that a manifest lists, in the order in which they are read.
pub(crate) fn parts_of(path: &Path) -> Result<Vec<PathBuf>, String> {
    let text = std::fs::read(path).map_err(|error| error.to_string())?;
    let manifest = Manifest::parse(&text).map_err(|error| format!("line {}: {}", error.line, error.what))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let parts = manifest.base.iter().chain(&manifest.increments);
    Ok(parts.map(|part| folder.join(OsStr::from_bytes(&part.name))).collect())
}

/// Checks all files that a manifest lists.
pub(super) fn check_manifest(path: &Path, repair: Repair) -> ExitCode {
    let parts = match parts_of(path) {
        Ok(parts) => parts,
        Err(why) => {
            say!("{}: the manifest is BROKEN: {why}", path.display());
            return ExitCode::FAILURE;
        }
    };
    say!("{}: {} files", path.display(), parts.len());
    for (index, part) in parts.iter().enumerate() {
        // As when it is loaded: behind it there may be files to which nothing was written yet.
        let is_last =
            parts[index + 1..].iter().all(|part| std::fs::metadata(part).is_ok_and(|about| about.len() == 0));
        let repair = if is_last { repair } else { Repair::default() };
        if check_part(part, repair) == ExitCode::FAILURE {
            if !is_last {
                say!("Only the end of the last file can be mended.");
            }
            return ExitCode::FAILURE;
        }
    }
    say!("The append-only file is good.");
    ExitCode::SUCCESS
}

/// Checks a file that a manifest lists.
fn check_part(path: &Path, repair: Repair) -> ExitCode {
    match sort_of(path) {
        Ok(Sort::Dump) => check_dump(path, repair),
        Ok(_) => check_commands(path, 0, repair),
        Err(error) => {
            say!("{}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

/// What a file of commands consists of.
struct Scan {
    commands: u64,
    /// Up to where it consists of whole commands and transactions, not later than it was asked for.
    good_bytes: u64,
    /// Why it does not go on behind that; None where it ends there.
    why: Option<String>,
    /// The rest was written later than it was asked for.
    is_late: bool,
}

/// Checks the commands of a file from this byte on.
pub(super) fn check_commands(path: &Path, from: u64, repair: Repair) -> ExitCode {
    let shown = path.display();
    let scanned =
        scan(path, from, repair.until_s).and_then(|scan| Ok((scan, std::fs::metadata(path)?.len())));
    let (scan, len) = match scanned {
        Ok(scanned) => scanned,
        Err(error) => {
            say!("{shown}: cannot be read: {error}");
            return ExitCode::FAILURE;
        }
    };
    say!("{shown}: {} commands, {len} bytes", scan.commands);
    let Some(why) = scan.why else {
        say!("The file is good.");
        return ExitCode::SUCCESS;
    };
    let good_bytes = scan.good_bytes;
    match scan.is_late {
        true => say!("{why}: from byte {good_bytes} on."),
        false => say!("The file is BROKEN: {why}. It is good up to byte {good_bytes}."),
    }
    if !repair.fixes && !scan.is_late {
        say!("`sardine check --fix` cuts it there.");
        return ExitCode::FAILURE;
    }
    match agrees(path, len, good_bytes)
        .and_then(|agrees| if agrees { cut(path, good_bytes) } else { Ok(false) })
    {
        Ok(true) => {
            say!("Cut to {good_bytes} bytes.");
            ExitCode::SUCCESS
        }
        Ok(false) => {
            say!("Nothing was changed.");
            ExitCode::FAILURE
        }
        Err(error) => {
            say!("{shown}: cannot be cut: {error}");
            ExitCode::FAILURE
        }
    }
}

fn scan(path: &Path, from: u64, until_s: Option<i64>) -> io::Result<Scan> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut reader = CommandReader::new(file);
    let mut scan = Scan { commands: 0, good_bytes: from, why: None, is_late: false };
    loop {
        let before = reader.good_bytes();
        let why = match reader.next_entry() {
            Ok(Some(Entry::Command(_))) => {
                scan.commands += 1;
                continue;
            }
            Ok(Some(Entry::Time(time_s))) if until_s.is_some_and(|until_s| time_s > until_s) => {
                scan.is_late = true;
                scan.good_bytes = from + before;
                scan.why = Some(format!("It was written at {time_s} and later"));
                return Ok(scan);
            }
            Ok(Some(Entry::Time(_))) => continue,
            Ok(None) => None,
            Err(CommandError::Io(error)) => return Err(error),
            Err(CommandError::Truncated(broken) | CommandError::Broken(broken)) => {
                Some(format!("{} (at byte {})", broken.what, from + broken.at))
            }
        };
        let is_open = reader.is_in_transaction();
        scan.good_bytes = from + reader.good_bytes();
        scan.why = why.or(is_open.then(|| "a transaction has no end".to_string()));
        return Ok(scan);
    }
}

/// Asks whether a file is to be cut.
fn agrees(path: &Path, len: u64, good_bytes: u64) -> io::Result<bool> {
    let lost = len - good_bytes;
    say!("This will shrink {} from {len} bytes, by {lost}, to {good_bytes}.", path.display());
    tell(format_args!("Continue? [y/N]: "));
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim_start().starts_with(['y', 'Y']))
}

fn cut(path: &Path, len: u64) -> io::Result<bool> {
    let file = File::options().write(true).open(path)?;
    file.set_len(len)?;
    file.sync_all()?;
    Ok(true)
}
