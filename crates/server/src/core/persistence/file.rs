//! A file that takes the place of another in one step, whatever happens while it is written: the process
//! killed, the machine stopped, the disk full.
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A new file beside the one that it will replace. It is removed where that does not happen.
pub(super) struct NewFile {
    path: PathBuf,
    pub(super) file: File,
    is_in_place: bool,
}

/// Each has a name of its own, so that several may be written at once.
static COUNT: AtomicU64 = AtomicU64::new(0);

impl NewFile {
    /// Makes one in this folder. Redis names such files alike, `temp-` and the process's number.
    pub(super) fn create(folder: &Path) -> io::Result<NewFile> {
        let number = COUNT.fetch_add(1, Relaxed);
        let path = folder.join(format!("temp-{}-{number}.rdb", std::process::id()));
        // A process that had this number before may have left one; a link is removed, not followed.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = File::options().write(true).create_new(true).mode(0o644).open(&path)?;
        Ok(NewFile { path, file, is_in_place: false })
    }

    /// Where the new file is, until it takes its place.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it, whose content is on the disk already, in the place of `target`, which is in the same folder,
    /// and waits until the disk knows the new name.
    pub(super) fn put_in_place(mut self, target: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, target)?;
        self.is_in_place = true;
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_in_place {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
