//! `sardine check` of an append-only file: its manifest, or one of its files. Commands are read, not run:
//! their words are counted, and an end that a crash has cut off is found, which `--fix` removes.
use super::check_dump;
use crate::dump_file::MARKS;
use crate::tally::counted;
use crate::told::{say, tell};
use base::reason::reason;
use disk::aof::commands::{CommandError, CommandReader, Entry};
use disk::aof::manifest::Manifest;
use server::Clock;
use std::ffi::OsStr;
use std::fs::{File, TryLockError};
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
    /// Nobody is asked for that.
    pub(crate) goes_back_unasked: bool,
    /// Files follow this one, so nothing of it may be cut off.
    pub(crate) is_followed: bool,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Dump,
    Commands,
    Manifest,
}

/// A file that a manifest lists, and what it is.
pub(crate) struct Part {
    pub(crate) path: PathBuf,
    pub(crate) sort: Sort,
}

/// What this file is, by its beginning, and where that says nothing, by its name.
pub(crate) fn sort_of(path: &Path) -> io::Result<Sort> {
    let start = start_of(path)?;
    let is_named = |extension: &str| path.extension() == Some(OsStr::new(extension));
    Ok(match &start[..] {
        [b'f', b'i', b'l', b'e', b' '] => Sort::Manifest,
        _ if is_named("manifest") => Sort::Manifest,
        [b'*' | b'#', ..] => Sort::Commands,
        start if is_named("aof") && !MARKS.contains(&start) => Sort::Commands,
        _ => Sort::Dump,
    })
}

/// The bytes by which files of different sorts can be told apart.
fn start_of(path: &Path) -> io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut start = Vec::new();
    File::open(path)?.take(MARKS[0].len() as u64).read_to_end(&mut start)?;
    Ok(start)
}

/// The files that a manifest lists, in the order in which they are read. An increment is commands, whatever
/// it begins with; a base is a dump file, or commands too.
pub(crate) fn parts_of(path: &Path) -> Result<Vec<Part>, String> {
    let text = std::fs::read(path).map_err(|error| reason(&error))?;
    let manifest = Manifest::parse(&text).map_err(|error| format!("line {}: {}", error.line, error.what))?;
    let folder = folder_of(path);
    let place = |part: &disk::aof::manifest::Part| folder.join(OsStr::from_bytes(&part.name));
    let mut parts = Vec::new();
    if let Some(base) = &manifest.base {
        let path = place(base);
        let start = start_of(&path).map_err(|error| format!("{}: {}", path.display(), reason(&error)))?;
        let is_dump = MARKS.contains(&&start[..]) || base.name.ends_with(b".base.rdb");
        parts.push(Part { path, sort: if is_dump { Sort::Dump } else { Sort::Commands } });
    }
    parts.extend(manifest.increments.iter().map(|part| Part { path: place(part), sort: Sort::Commands }));
    Ok(parts)
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
    say!("{}: {}", path.display(), counted(parts.len() as u64, "file"));
    for (index, part) in parts.iter().enumerate() {
        // As when it is loaded: behind the last one there may be files to which nothing was written yet.
        let is_empty = |part: &Part| std::fs::metadata(&part.path).is_ok_and(|about| about.len() == 0);
        let is_followed = !parts[index + 1..].iter().all(is_empty);
        let repair = Repair { is_followed, ..repair };
        let status = match part.sort {
            Sort::Dump => check_dump(&part.path, repair),
            _ => check_commands(&part.path, 0, repair),
        };
        if status == ExitCode::FAILURE {
            return status;
        }
    }
    match look_at_tail(path, repair) {
        Ok(true) => {}
        Ok(false) => return ExitCode::FAILURE,
        Err(error) => {
            say!("{}: its tail cannot be left out: {}", path.display(), reason(&error));
            return ExitCode::FAILURE;
        }
    }
    say!("The append-only file is good.");
    ExitCode::SUCCESS
}

/// Keeps servers out of the folder of a file that may be cut, as long as what is returned lives: one that
/// appends there would go on behind the end that it knows. An error where one is there already.
pub(super) fn claim(path: &Path) -> Result<Option<File>, &'static str> {
    // Through a link: where the file is.
    let place = std::fs::canonicalize(path).unwrap_or(path.to_path_buf());
    let Ok(folder) = File::open(folder_of(&place)) else { return Ok(None) };
    match folder.try_lock() {
        Err(TryLockError::WouldBlock) => Err("a server, or another check, uses its folder"),
        // Some file systems have no locks, and their servers none either.
        Err(TryLockError::Error(_)) => Ok(None),
        Ok(()) => Ok(Some(folder)),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What a server that was killed had answered last may be in a file of its own, which the next start appends.
/// When that was is not known: who goes back in time can leave it out. False if nothing was changed for that.
fn look_at_tail(manifest: &Path, repair: Repair) -> io::Result<bool> {
    let tail = manifest.with_extension("tail");
    if !tail.is_file() {
        return Ok(true);
    }
    let shown = tail.display();
    if repair.until_s.is_none_or(|until_s| until_s >= Clock::real().now().0 / 1000) {
        say!(
            "{shown} is there: a server appends to these files, or was killed, and the next start appends what they"
        );
        say!("lack of what it had answered.");
        return Ok(true);
    }
    say!("{shown} has what a server may have answered later, before it was killed.");
    if !repair.goes_back_unasked && !is_confirmed("Leave it out?")? {
        say!("It was not: the next start appends what it has.");
        return Ok(false);
    }
    let named = |number: u32| manifest.with_extension(format!("tail.left-out-{number}"));
    let aside = (1..).map(named).find(|path| !path.exists()).expect("some number is free");
    std::fs::rename(&tail, &aside)?;
    say!("It is left out: it is {} now.", aside.display());
    Ok(true)
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
    /// It says when its commands were written.
    has_times: bool,
}

/// Checks the commands of a file from this byte on.
pub(super) fn check_commands(path: &Path, from: u64, repair: Repair) -> ExitCode {
    let shown = path.display();
    let scanned =
        scan(path, from, repair.until_s).and_then(|scan| Ok((scan, std::fs::metadata(path)?.len())));
    let (scan, len) = match scanned {
        Ok(scanned) => scanned,
        Err(error) => {
            say!("{shown}: cannot be read: {}", reason(&error));
            return ExitCode::FAILURE;
        }
    };
    say!("{shown}: {}, {}", counted(scan.commands, "command"), counted(len, "byte"));
    let Some(why) = &scan.why else {
        if repair.until_s.is_some() {
            let what =
                if scan.has_times { "It has nothing that was written later" } else { "It has no timestamps" };
            say!("{what}: nothing is cut.");
        }
        say!("The file is good.");
        return ExitCode::SUCCESS;
    };
    let good_bytes = scan.good_bytes;
    match scan.is_late {
        true => say!("{why}: from byte {good_bytes} on."),
        false => say!("The file is BROKEN: {why}. It is good up to byte {good_bytes}."),
    }
    if let Some(why) = never_cut(&scan, repair) {
        say!("{why} Nothing was changed.");
        return ExitCode::FAILURE;
    }
    if !repair.fixes && !scan.is_late {
        say!("`sardine check --fix` cuts it there.");
        return ExitCode::FAILURE;
    }
    let is_agreed = match scan.is_late && repair.goes_back_unasked {
        true => Ok(true),
        false => agrees(path, len, good_bytes),
    };
    match is_agreed.and_then(|is_agreed| if is_agreed { cut(path, good_bytes) } else { Ok(false) }) {
        Ok(true) => {
            say!("Cut to {good_bytes} bytes.");
            ExitCode::SUCCESS
        }
        Ok(false) => {
            say!("Nothing was changed.");
            ExitCode::FAILURE
        }
        Err(error) => {
            say!("{shown}: cannot be cut: {}", reason(&error));
            ExitCode::FAILURE
        }
    }
}

/// Why the end of a file is not cut off, whatever the user says: what follows would be run on other data than
/// it was made of, and a file of which nothing is left says nothing of the time before.
fn never_cut(scan: &Scan, repair: Repair) -> Option<&'static str> {
    match repair.is_followed {
        true if scan.is_late => Some(
            "Files follow that were written later still: to go back to that time, take them out of the manifest, and \
             check again.",
        ),
        true => Some("Only the end of the last file can be mended."),
        false if scan.is_late && scan.good_bytes == 0 => Some("It has nothing that was written before."),
        false => None,
    }
}

fn scan(path: &Path, from: u64, until_s: Option<i64>) -> io::Result<Scan> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut reader = CommandReader::new(file);
    let mut scan = Scan { commands: 0, good_bytes: from, why: None, is_late: false, has_times: false };
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
            Ok(Some(Entry::Time(_))) => {
                scan.has_times = true;
                continue;
            }
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
    is_confirmed("Continue?")
}

fn is_confirmed(question: &str) -> io::Result<bool> {
    tell(format_args!("{question} [y/N]: "));
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
