//! A file that takes the place of another in one step, whatever happens while it is written: the process
//! killed, the machine stopped, the disk full.
//!
//! Whoever writes such a file keeps a lock on it, which the kernel lets go of with the process. So a file
//! that a killed process has left can be told from one that another server is writing in the same folder, and
//! the next start removes it ([`remove_left`]). Process numbers would not tell: two containers that share a
//! folder may both be number 1.
use crate::state::disk::{Disk, DiskFile};
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A new file beside the one that it will replace. It is removed where that does not happen.
pub(super) struct NewFile {
    pub(super) file: DiskFile,
    is_in_place: bool,
}

/// Each has a name of its own, so that several may be written at once.
static COUNT: AtomicU64 = AtomicU64::new(0);

impl NewFile {
    /// Makes one in this folder. Redis names such files alike, `temp-` and the process's number.
    pub(super) fn create(disk: &Arc<Disk>, folder: &Path) -> io::Result<NewFile> {
        // A disk that has failed may work again.
        disk.take_left().into_iter().for_each(|path| clear_up(disk, path));
        loop {
            let number = COUNT.fetch_add(1, Relaxed);
            let path = folder.join(format!("temp-{}-{number}.rdb", std::process::id()));
            let file = match disk.create(path) {
                // Left by another process of this number, or being written by it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            disk.note_unfinished(file.path().into());
            let new = NewFile { file, is_in_place: false };
            if keep(new.file.file())? {
                return Ok(new);
            }
        }
    }

    /// Where the new file is, until it takes its place.
    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Puts it, whose content is on the disk already, in the place of `target`, which is in the same folder,
    /// and waits until the disk knows the new name.
    pub(super) fn put_in_place(mut self, target: &Path) -> io::Result<()> {
        let disk = self.file.disk();
        disk.rename(self.file.path(), target)?;
        self.is_in_place = true;
        disk.sync_folder(folder_of(target))
    }
}

/// The folder that something is in.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Drop for NewFile {
    fn drop(&mut self) {
        self.file.disk().forget_unfinished(self.file.path());
        if !self.is_in_place {
            // It would be in its own way.
            let _ = self.file.file().unlock();
            clear_up(self.file.disk(), self.file.path().into());
        }
    }
}

/// Removes an unfinished file, now or when the next one is made.
fn clear_up(disk: &Disk, path: PathBuf) {
    match remove_if_left(disk, &path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => disk.note_left(path),
        _ => {}
    }
}

/// Locks a file that was just made. False if a server that starts has taken it for one that was left, and
/// removes it.
fn keep(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(false),
        // A file system without locks: nobody else gets one there either, so nobody removes the file.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file.metadata()?.nlink() > 0),
    }
}

/// Removes the new files of processes that were killed while they wrote. Returns how many there were. What
/// cannot be removed stays, and does no harm.
pub(crate) fn remove_left(disk: &Disk, folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| is_of_new_file(path) && remove_if_left(disk, path).is_ok()).count()
}

/// `temp-`, two numbers, `.rdb`. Names that Redis gives have one number.
fn is_of_new_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let numbers = name.and_then(|name| name.strip_prefix("temp-")?.strip_suffix(".rdb")?.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(process, count)| is_number(process) && is_number(count))
}

fn remove_if_left(disk: &Disk, path: &Path) -> io::Result<()> {
    // Whoever opened a pipe would wait for ever.
    if !std::fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let file = File::open(path)?;
    file.try_lock()?;
    disk.remove(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_has_left_is_removed_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("sardine-left-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut kept = vec!["dump.rdb", "temp-1.rdb", "temp-1-.rdb", "temp-1-2.aof", "temp-a-2.rdb"];
        for name in kept.iter().chain(&["temp-1-2.rdb", "temp-77-0.rdb"]) {
            std::fs::write(folder.join(name), "left").unwrap();
        }
        std::fs::create_dir(folder.join("temp-2-2.rdb")).unwrap();
        kept.push("temp-2-2.rdb");
        let written = NewFile::create(&Arc::default(), &folder).unwrap();
        assert_eq!(remove_left(&Disk::default(), &folder), 2);
        assert!(kept.iter().all(|name| folder.join(name).exists()) && written.path().exists());
        written.put_in_place(&folder.join("dump.rdb")).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), kept.len());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn files_are_made_while_others_take_them_for_left_ones() {
        let folder = std::env::temp_dir().join(format!("sardine-race-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::thread::scope(|scope| {
            let maker = scope.spawn(|| {
                for _ in 0..200 {
                    NewFile::create(&Arc::default(), &folder)
                        .unwrap()
                        .put_in_place(&folder.join("dump.rdb"))
                        .unwrap();
                }
            });
            while !maker.is_finished() {
                remove_left(&Disk::default(), &folder);
            }
        });
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
