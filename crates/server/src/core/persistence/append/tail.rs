//! The tail's file: `appendonly.aof.tail` beside the files that it belongs to. It begins when the append-only
//! file is on, and is removed when that is turned off or the server ends by itself. What a killed server has
//! left is appended to its increment by the next start, before anything is loaded (`disk::aof::tail`).
//!
//! Where it cannot be made, the log says so, and a server that is killed loses what it answered last.
use super::files::{folder, is_at, length, open_increment, os, tail_path};
use crate::core::server::Server;
use crate::state::append_only::{Files, Phase};
use crate::state::config::{Config, reason};
use crate::state::disk::Disk;
use crate::state::lock::lock;
use crate::state::tail::{Present, file_bytes};
use disk::aof::manifest::Manifest;
use disk::aof::tail::{Left, Missing, Origin, Target};
use nix::sys::statvfs::statvfs;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// Which start of the machine this is, as the system tells it.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// No tail is longer: 256 threads and one lane more have 1 MB each.
const FILE_BYTES_MAX: u64 = 512 << 20;

/// Makes a new tail in this folder. None if that cannot be done, which the log is told once.
pub(super) fn make(server: &Server, config: &Config, folder: &Path) -> Option<Present> {
    let path = tail_path(folder, config);
    told(server, try_to_make(&server.persistence.disk, &path, server.journal.tail.lanes()))
}

/// The tail, if it could be made; else the log is told why, once.
fn told(server: &Server, begun: io::Result<Present>) -> Option<Present> {
    let is_news = server.journal.tail.note_missed(begun.is_err());
    if let Some(error) = begun.as_ref().err().filter(|_| is_news) {
        server.log.warning(&format!(
            "Can't make the tail of the append-only file: {}. A server that is killed loses what it answered last, \
             until that can be done",
            reason(error)
        ));
    }
    begun.ok()
}

fn try_to_make(disk: &Disk, path: &Path, lanes: usize) -> io::Result<Present> {
    remove_at(disk, path)?;
    let file = disk.create_to_map(path)?;
    let begun = origin(&file).and_then(|origin| Present::begin((path, &file), origin, lanes));
    if begun.is_err() {
        let _ = disk.remove(path);
    }
    begun
}

/// Removes the tail beside these files, which is not needed any more.
pub(super) fn remove(server: &Server, config: &Config, files: &Files) {
    if let Some(folder) = own_folder(files) {
        // What cannot be removed does no harm: the files have all that is in it.
        let _ = remove_at(&server.persistence.disk, &tail_path(folder, config));
    }
}

fn remove_at(disk: &Disk, path: &Path) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What this file is known by.
fn origin(file: &File) -> io::Result<Origin> {
    let text = std::fs::read_to_string(BOOT_ID)?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let boot = u128::from_str_radix(&digits, 16).map_err(io::Error::other)?.to_ne_bytes();
    Ok(Origin { boot, made_ns: made_ns(&file.metadata()?) })
}

/// When it was made. File systems that do not keep that have at least another number for each file.
fn made_ns(about: &Metadata) -> u64 {
    let made = about.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    made.map_or(about.ino(), |made| made.as_nanos() as u64)
}

/// Appends what a killed server has answered and not written. An error is for the log, and ends the start.
pub(super) fn complete(server: &Server, config: &Config, manifest: &Manifest) -> Result<(), String> {
    let folder = folder(config);
    let path = tail_path(&folder, config);
    let fatal = |error: io::Error| format!("Fatal error: can't read {}: {}", path.display(), reason(&error));
    let ignored = |why: &str| {
        let text = format!("The tail of the append-only file, {}, is not used: {why}", path.display());
        server.log.warning(&text);
        Ok(())
    };
    match std::fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(fatal(error)),
        Ok(about) if about.is_file() && about.len() <= FILE_BYTES_MAX => {}
        Ok(_) => return ignored("it is not a regular file of a tail's length"),
    }
    let mut file = File::open(&path).map_err(fatal)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(fatal)?;
    // Where the machine does not tell, nothing was begun either.
    let Ok(origin) = origin(&file) else { return Ok(()) };
    let left = match Left::read(&bytes, origin) {
        Ok(Some(left)) => left,
        Ok(None) => return Ok(()),
        Err(why) => return ignored(why),
    };
    let part_length = |part| length(&folder, part).map(|len| (part.number, len));
    let increments = manifest.increments.iter().map(part_length).collect::<Result<Vec<_>, String>>()?;
    let Some(target) = left.target(&increments) else {
        return ignored("it does not belong to the files that are listed");
    };
    match append_missing(&server.persistence.disk, &folder, (manifest, &left, &target)) {
        Ok(Some(0)) => Ok(()),
        Ok(Some(count)) => {
            let text =
                format!("A killed server had answered and not written {count} bytes of the append-only file");
            server.log.notice(&format!("{text}: they are appended"));
            Ok(())
        }
        Ok(None) => ignored("somebody else has written to the last file"),
        Err(error) => {
            let (why, path) = (reason(&error), path.display());
            let text = "can't append to the append-only file what was answered before";
            Err(format!("Fatal error: {text}: {why}. It is kept in {path} until that can be done. Exiting."))
        }
    }
}

/// How many bytes the increment lacked, and has now; None if it is not the one that the tail knows.
fn append_missing(
    disk: &Arc<Disk>,
    folder: &Path,
    (manifest, left, target): (&Manifest, &Left, &Target),
) -> io::Result<Option<usize>> {
    let part = &manifest.increments[target.index];
    let (mut file, mut rest) = (File::open(folder.join(os(&part.name)))?, Vec::new());
    file.seek(SeekFrom::Start(target.len))?;
    file.read_to_end(&mut rest)?;
    match left.missing(target, &rest) {
        Missing::Nothing => Ok(Some(0)),
        Missing::Other => Ok(None),
        Missing::Some { stays, bytes } => {
            let mut file = open_increment(disk, folder, part)?;
            if stays < rest.len() as u64 {
                file.cut(target.len + stays)?;
            }
            file.write_all(&bytes)?;
            file.sync()?;
            Ok(Some(bytes.len()))
        }
    }
}

/// The append-only file is on: what is answered is kept from here on.
pub(super) fn begin(server: &Server, config: &Config) {
    let folder = lock(&server.append.files).folder.clone();
    put_in_force(server, make(server, config, &folder));
}

/// Somebody has removed the tail, or it can be written no more, or there was no room for it. Where another
/// cannot be made the folder may have got another name, and it is there still.
pub(super) fn begin_anew(server: &Server, config: &Config) {
    let folder = own_folder(&lock(&server.append.files)).map(Path::to_path_buf);
    let Some(folder) = folder.filter(|_| !server.journal.tail.is_in_force()) else { return };
    let tail = match look_for_room(server, &folder) {
        Ok(()) => make(server, config, &folder),
        Err(error) => told(server, Err(error)),
    };
    if let Some(tail) = tail {
        put_in_force(server, Some(tail));
        server.log.notice("The append-only file has a new tail");
    }
}

/// The folder of the files, unless what has its name now is another one, with the tail of another server.
fn own_folder(files: &Files) -> Option<&Path> {
    let is_own = files.claim.as_ref().is_some_and(|claim| is_at(claim, &files.folder));
    is_own.then_some(&files.folder)
}

/// An error where the disk has no room for two tails: while one is being made, what is appended must not meet
/// a full disk.
fn look_for_room(server: &Server, folder: &Path) -> io::Result<()> {
    let about = statvfs(folder)?;
    let room_bytes = about.blocks_available().saturating_mul(about.fragment_size());
    // A file system may not tell how large it is.
    if about.blocks() > 0 && room_bytes / 2 < file_bytes(server.journal.tail.lanes()) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    Ok(())
}

fn put_in_force(server: &Server, tail: Option<Present>) {
    let all = server.enter_alone();
    server.journal.set_tail(&all, tail);
    // The writer may be about to go on with other increments.
    for (from, number) in server.append.cuts() {
        server.journal.tail.note_cut(number, from);
    }
    drop(all);
    // What was taken before is in no lane.
    server.journal.look_again();
}

/// The same where there is none that can be written to. When this returns the tail counts, unless the disk
/// fails.
pub(super) fn begin_if_needed(server: &Server, config: &Config) {
    if !server.journal.tail.is_in_force() {
        begin(server, config);
        server.journal.settle();
    }
}

/// The server has ended by itself, and its files have everything; but where the disk has failed, the tail
/// stays, and the log says what is where.
pub(crate) fn forget(server: &Server) {
    let (config, folder) = (server.config(), lock(&server.append.files).folder.clone());
    if server.append.has_failed() {
        if server.append.phase() != Phase::Off {
            tell_what_lacks(server, &tail_path(&folder, &config));
        }
    } else if server.journal.tail.is_there() {
        server.journal.set_tail(&server.enter_alone(), None);
        remove(server, &config, &lock(&server.append.files));
    }
}

/// The server ends while its disk fails: tells whoever reads the log where the last answers are.
fn tell_what_lacks(server: &Server, path: &Path) {
    let kept = match server.journal.tail.is_in_force() {
        true => format!(
            "it is kept in {}, from which the next start takes it: leave that file where it is",
            path.display()
        ),
        false => "no other file has it".into(),
    };
    server.log.warning(&format!("The append-only file may lack what was answered last; {kept}."));
}
