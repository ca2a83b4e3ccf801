//! The files of an append-only file, and the manifest that says which of them count.
//!
//! The manifest is replaced in one step, so a crash at any moment leaves the old list or the new one. Files
//! are made before they are listed, and removed after they are not: what a crash may leave is a file that
//! nobody lists, and the next one of that name takes its place; or one that had no name of its own yet, which
//! goes when the folder is claimed.
use super::super::file::{NewFile, folder_of, remove_left};
use crate::core::server::Server;
use crate::state::append_only::Files;
use crate::state::config::{Config, reason};
use crate::state::disk::{Disk, DiskFile};
use disk::aof::manifest::{Manifest, Part};
use nix::unistd::{AccessFlags, access};
use std::ffi::OsStr;
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A manifest is not longer than this.
const MANIFEST_BYTES_MAX: u64 = 16 << 20;

/// The folder of the files.
pub(super) fn folder(config: &Config) -> PathBuf {
    config.dir.join(&config.append.folder)
}

/// Makes the folder if it is not there, and tries whether files can be made in it. An error says why there
/// can be no append-only file.
pub(crate) fn prepare(server: &Server, config: &Config) -> io::Result<()> {
    prepare_at(&server.persistence.disk, &folder(config))
}

/// Whether the file can begin, or begin anew, as far as that can be told without waiting for the disk.
pub(crate) fn can_begin(config: &Config) -> io::Result<()> {
    let folder = folder(config);
    let place = match std::fs::metadata(&folder) {
        Ok(about) if about.is_dir() => &folder,
        Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
        // It is made then.
        Err(error) if error.kind() == io::ErrorKind::NotFound => folder_of(&folder),
        Err(error) => return Err(error),
    };
    Ok(access(place, AccessFlags::W_OK | AccessFlags::X_OK)?)
}

fn prepare_at(disk: &Arc<Disk>, folder: &Path) -> io::Result<()> {
    match disk.make_folder(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // It may have been made by a server that has not come to this.
    disk.sync_folder(folder_of(folder))?;
    NewFile::create(disk, folder).map(drop)
}

/// Keeps this folder for this server, as long as the file lives that is returned: two that append to the same
/// file would ruin it. The kernel forgets it with the process. CONFIG SET dir does not move the folder, so
/// its path is returned too, as it is for everybody.
pub(super) fn claim_at(disk: &Arc<Disk>, folder: &Path) -> io::Result<(File, PathBuf)> {
    prepare_at(disk, folder)?;
    let path = std::fs::canonicalize(folder)?;
    let folder = File::open(&path)?;
    match folder.try_lock() {
        Ok(()) => {
            remove_left(disk, &path);
            Ok((folder, path))
        }
        Err(TryLockError::WouldBlock) => Err(io::Error::other("another server uses the folder")),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether what was claimed is at this path still. Where that cannot be found out it is.
pub(super) fn is_at(claim: &File, path: &Path) -> bool {
    let place = |about: Metadata| (about.dev(), about.ino());
    let (claimed, there) = (claim.metadata().map(place), std::fs::metadata(path).map(place));
    match (claimed, there) {
        (Ok(claimed), Ok(there)) => claimed == there,
        (_, Err(error)) => error.kind() != io::ErrorKind::NotFound,
        (Err(_), Ok(_)) => true,
    }
}

/// The name of a file: `appendonly.aof.3.incr.aof`.
fn name(config: &Config, rest: &str) -> Vec<u8> {
    let mut name = config.append.file_name.as_os_str().as_bytes().to_vec();
    name.extend_from_slice(rest.as_bytes());
    name
}

pub(super) fn manifest_path(folder: &Path, config: &Config) -> PathBuf {
    folder.join(os(&name(config, ".manifest")))
}

/// What was answered and is in no file yet.
pub(super) fn tail_path(folder: &Path, config: &Config) -> PathBuf {
    folder.join(os(&name(config, ".tail")))
}

/// The file in which all was before Redis 7.
pub(super) fn single_file(config: &Config) -> PathBuf {
    config.dir.join(&config.append.file_name)
}

pub(super) fn os(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

/// The next base.
pub(super) fn next_base(config: &Config, files: &Files) -> Part {
    let form = if config.append.begins_with_dump { "rdb" } else { "aof" };
    let last = files.manifest.base.as_ref().map_or(0, |base| base.number);
    next_part(files, last, |number| name(config, &format!(".{number}.base.{form}")))
}

/// The next increment.
pub(super) fn next_increment(config: &Config, files: &Files) -> Part {
    let last = files.manifest.increments.last().map_or(0, |last| last.number);
    next_part(files, last, |number| name(config, &format!(".{number}.incr.aof")))
}

/// The next after this number whose name is not that of a file that is listed, or may be: it would be written
/// over.
fn next_part(files: &Files, last: u64, name: impl Fn(u64) -> Vec<u8>) -> Part {
    let mut number = last.saturating_add(1);
    while files.manifest.parts().chain(&files.tried).any(|part| part.name == name(number)) {
        number += 1;
    }
    Part { name: name(number), number }
}

/// Reads the manifest; None if there is none. An error is for the log.
pub(super) fn read_manifest(path: &Path) -> Result<Option<Manifest>, String> {
    let fatal = |why: &dyn std::fmt::Display| format!("Fatal error: cannot read {}: {why}", path.display());
    let about = match std::fs::metadata(path) {
        // A link to nothing was meant to lead to a list, on a disk that is not there now for instance.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => return Ok(None),
        Err(error) => return Err(fatal(&reason(&error))),
        Ok(about) => about,
    };
    if !about.is_file() || about.len() > MANIFEST_BYTES_MAX {
        return Err(fatal(&"it is not a regular file of a manifest's length"));
    }
    let text = std::fs::read(path).map_err(|error| fatal(&reason(&error)))?;
    Manifest::parse(&text).map(Some).map_err(|error| fatal(&format!("line {}: {}", error.line, error.what)))
}

/// Where there is no manifest files that one may have listed get other names, before new ones take theirs:
/// somebody may have lost the list, or copied it not yet. Returns the new names. `known` are left of
/// failures.
pub(super) fn set_aside(
    disk: &Disk,
    (folder, config): (&Path, &Config),
    known: &[Part],
) -> io::Result<Vec<PathBuf>> {
    let mut renamed = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().as_bytes();
        let is_known = known.iter().any(|part| part.name == name);
        // A server that was killed before it had written its first list has left an empty file.
        let is_empty = std::fs::symlink_metadata(&path)?.len() == 0;
        if is_known || is_empty || !is_of_part(name, config) {
            continue;
        }
        let other =
            |number: u64| path.with_file_name(os(&[name, format!(".unlisted-{number}").as_bytes()].concat()));
        let target = (1..).map(other).find(|target| std::fs::symlink_metadata(target).is_err());
        let target = target.expect("a folder has fewer files");
        disk.rename(&path, &target)?;
        renamed.push(target);
    }
    if !renamed.is_empty() {
        disk.sync_folder(folder)?;
    }
    Ok(renamed)
}

/// Whether a file has the name of a base or an increment.
fn is_of_part(name: &[u8], config: &Config) -> bool {
    let rest = name.strip_prefix(config.append.file_name.as_os_str().as_bytes());
    let Some(rest) = rest.and_then(|rest| rest.strip_prefix(b".")) else { return false };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && [&b".base.rdb"[..], b".base.aof", b".incr.aof"].contains(&&rest[digits..])
}

/// What to log of that.
pub(super) fn told_aside(paths: &[PathBuf]) -> Option<String> {
    let names: Vec<_> = paths.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    let text = "There is no list of the append-only file's files. Those that it may have named are kept as";
    (!names.is_empty()).then(|| format!("{text}: {}", names.join(", ")))
}

/// Puts this manifest in the place of the old one, and waits until the disk has it.
pub(super) fn write_manifest(
    disk: &Arc<Disk>,
    (folder, config): (&Path, &Config),
    manifest: &Manifest,
) -> io::Result<()> {
    let mut new = NewFile::create(disk, folder)?;
    new.file.write_all(&manifest.text())?;
    new.file.sync()?;
    new.put_in_place(&manifest_path(folder, config))
}

/// Makes a new, empty file for an increment. A file of that name that is there was left by a crash.
pub(super) fn create_increment(disk: &Arc<Disk>, folder: &Path, part: &Part) -> io::Result<DiskFile> {
    let path = folder.join(os(&part.name));
    match disk.remove(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = disk.create(path)?;
    disk.sync_folder(folder)?;
    Ok(file)
}

/// Opens a file of commands to go on with it.
pub(super) fn open_increment(disk: &Arc<Disk>, folder: &Path, part: &Part) -> io::Result<DiskFile> {
    disk.open(folder.join(os(&part.name)))
}

/// Removes files that do not count any more. Returns those that cannot be removed, which do no harm.
pub(super) fn remove(disk: &Disk, folder: &Path, parts: &[Part]) -> Vec<Part> {
    let is_left = |part: &&Part| {
        let removed = disk.remove(&folder.join(os(&part.name)));
        removed.is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
    };
    parts.iter().filter(is_left).cloned().collect()
}

/// How long a listed file is. An error is for the log.
pub(super) fn length(folder: &Path, part: &Part) -> Result<u64, String> {
    let path = folder.join(os(&part.name));
    let fatal = |why: &dyn std::fmt::Display| format!("Fatal error: {}: {why}", path.display());
    let about = std::fs::metadata(&path).map_err(|error| fatal(&reason(&error)))?;
    if !about.is_file() {
        return Err(fatal(&"it is not a regular file"));
    }
    Ok(about.len())
}

/// The append-only file of before Redis 7 becomes the base of one of several files. It is listed before it is
/// moved: a start after a crash in between finds it where it was ([`move_single`]).
pub(super) fn take_over_single(disk: &Arc<Disk>, config: &Config) -> io::Result<Manifest> {
    let part = Part { name: config.append.file_name.as_os_str().as_bytes().to_vec(), number: 1 };
    let manifest = Manifest { base: Some(part), ..Manifest::default() };
    prepare_at(disk, &folder(config))?;
    write_manifest(disk, (&folder(config), config), &manifest)?;
    move_single(disk, config, &manifest)?;
    Ok(manifest)
}

/// Moves that file into the folder, if it is listed and not there.
pub(super) fn move_single(disk: &Disk, config: &Config, manifest: &Manifest) -> io::Result<()> {
    let target = folder(config).join(&config.append.file_name);
    let single = config.append.file_name.as_os_str().as_bytes();
    let is_listed = manifest.base.as_ref().is_some_and(|base| base.name == single);
    if !is_listed || target.try_exists()? || !single_file(config).try_exists()? {
        return Ok(());
    }
    disk.rename(&single_file(config), &target)?;
    disk.sync_folder(&folder(config))?;
    disk.sync_folder(&config.dir)
}

/// The name as it is shown.
pub(super) fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
