//! The disk, as the server uses it: whatever changes a file or a folder of the data goes through here. So
//! tests can make any of these calls fail (`DEBUG DISK`), or follow all of them and know what a failure of
//! power would leave ([`DiskWatch`]). Where nobody does, that costs a load for each call of the system.
use crate::state::lock::lock;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use std::fs::{DirBuilder, File};
use std::io::{self, IoSlice, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// How the disk behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// It takes a part of what is written, and then no more.
    Full,
    /// It takes nothing.
    Broken,
    /// It takes what is written, and cannot put it where it lasts.
    Forgetful,
    /// Whoever appends to a file waits until this changes. Snapshots are written.
    Stuck,
    /// Whoever waits until the disk has what was appended waits until this changes. It is taken.
    Slow,
    /// Somebody looks over its shoulder.
    Watched,
}

/// All of them, by the word for each.
pub(crate) const FAULTS: [(&str, Fault); 6] = [
    ("OK", Fault::None),
    ("FULL", Fault::Full),
    ("BROKEN", Fault::Broken),
    ("FORGETFUL", Fault::Forgetful),
    ("STUCK", Fault::Stuck),
    ("SLOW", Fault::Slow),
];

/// What the system says of them.
const ENOSPC: i32 = 28;
const EIO: i32 = 5;
/// How often whoever is stuck looks.
const STUCK_LOOK: Duration = Duration::from_millis(1);

/// What is done to a file or a folder.
#[derive(Clone, Copy, Debug)]
pub enum DiskAct<'a> {
    /// A new, empty file is made.
    Create(&'a Path),
    /// Bytes are written at the end of a file.
    Write(&'a Path, &'a [u8]),
    /// Returns when the disk has what was written.
    Sync(&'a Path),
    /// A file is made so long, which is not longer than it is.
    Cut(&'a Path, u64),
    /// The first takes the name of the second, whose file goes if there is one.
    Rename(&'a Path, &'a Path),
    Remove(&'a Path),
    MakeFolder(&'a Path),
    /// Returns when the disk has the names in a folder.
    SyncFolder(&'a Path),
}

/// A test that follows what the server does to its disk, and has it fail.
pub trait DiskWatch: Send + Sync {
    /// Before it is done. An error is what the server gets instead; else so many bytes of a write are taken.
    fn before(&self, act: DiskAct<'_>) -> io::Result<usize>;
    /// It was done, with so many bytes.
    fn after(&self, act: DiskAct<'_>);
}

/// How the disk behaves now.
#[derive(Default)]
pub(crate) struct Disk {
    fault: AtomicU8,
    watch: OnceLock<Arc<dyn DiskWatch>>,
    /// Files that are being written and have no place yet.
    unfinished: Mutex<Vec<PathBuf>>,
    /// Unfinished files that could not be removed.
    left: Mutex<Vec<PathBuf>>,
}

impl Disk {
    pub(crate) fn set(&self, fault: Fault) {
        self.fault.store(fault as u8, Relaxed);
    }

    /// From here on this one follows what is done.
    pub(crate) fn watch(&self, watch: Arc<dyn DiskWatch>) {
        if self.watch.set(watch).is_ok() {
            self.set(Fault::Watched);
        }
    }

    fn fault(&self) -> Fault {
        let now = self.fault.load(Relaxed);
        let known = FAULTS.into_iter().find(|(_, fault)| *fault as u8 == now).map(|(_, fault)| fault);
        known.unwrap_or(if now == Fault::Watched as u8 { Fault::Watched } else { Fault::None })
    }

    /// Before something is done: how many bytes of a write are taken.
    #[inline]
    fn before(&self, act: DiskAct<'_>) -> io::Result<usize> {
        match (self.fault.load(Relaxed), act) {
            (0, DiskAct::Write(_, bytes)) => Ok(bytes.len()),
            (0, _) => Ok(0),
            _ => self.before_failing(act),
        }
    }

    #[cold]
    fn before_failing(&self, act: DiskAct<'_>) -> io::Result<usize> {
        let failed = |code| Err(io::Error::from_raw_os_error(code));
        match (self.fault(), act) {
            (Fault::Watched, _) => self.watch.get().map_or(Ok(0), |watch| watch.before(act)),
            (Fault::Full, DiskAct::Write(_, bytes)) if bytes.len() > 1 => Ok(bytes.len() / 2),
            (Fault::Full, DiskAct::Write(..)) => failed(ENOSPC),
            (Fault::Broken, DiskAct::Write(..) | DiskAct::Sync(_)) => failed(EIO),
            (Fault::Forgetful, DiskAct::Sync(_)) => failed(EIO),
            (_, DiskAct::Write(_, bytes)) => Ok(bytes.len()),
            _ => Ok(0),
        }
    }

    /// Something was done.
    #[inline]
    fn after(&self, act: DiskAct<'_>) {
        if self.fault.load(Relaxed) == Fault::Watched as u8
            && let Some(watch) = self.watch.get()
        {
            watch.after(act);
        }
    }

    fn act<T>(&self, act: DiskAct<'_>, done: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.before(act)?;
        let done = done()?;
        self.after(act);
        Ok(done)
    }

    /// Makes a new file. One of that name is an error.
    pub(crate) fn create(self: &Arc<Self>, path: PathBuf) -> io::Result<DiskFile> {
        let create = || File::options().append(true).create_new(true).mode(0o644).open(&path);
        let file = self.act(DiskAct::Create(&path), create)?;
        Ok(DiskFile { file, path, disk: Arc::clone(self) })
    }

    /// Makes a new file whose content is written through memory, of which the disk as it is here learns
    /// nothing.
    pub(crate) fn create_to_map(&self, path: &Path) -> io::Result<File> {
        let create = || File::options().read(true).write(true).create_new(true).mode(0o644).open(path);
        self.act(DiskAct::Create(path), create)
    }

    /// Opens a file to go on with it.
    pub(crate) fn open(self: &Arc<Self>, path: PathBuf) -> io::Result<DiskFile> {
        let file = File::options().append(true).open(&path)?;
        Ok(DiskFile { file, path, disk: Arc::clone(self) })
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.act(DiskAct::Rename(from, to), || std::fs::rename(from, to))
    }

    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        self.act(DiskAct::Remove(path), || std::fs::remove_file(path))
    }

    pub(crate) fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.act(DiskAct::MakeFolder(path), || DirBuilder::new().mode(0o755).create(path))
    }

    /// Waits until the disk knows the names in a folder.
    pub(crate) fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.act(DiskAct::SyncFolder(path), || File::open(path)?.sync_all())
    }

    /// A file is made that has no place until it is finished.
    pub(crate) fn note_unfinished(&self, path: PathBuf) {
        lock(&self.unfinished).push(path);
    }

    /// It has got its place, or is no longer wanted.
    pub(crate) fn forget_unfinished(&self, path: &Path) {
        lock(&self.unfinished).retain(|other| other != path);
    }

    /// Removes all of those: the process ends without waiting for whoever writes them.
    pub(crate) fn remove_unfinished(&self) {
        lock(&self.unfinished).iter().for_each(|path| drop(std::fs::remove_file(path)));
    }

    /// An unfinished file could not be removed.
    pub(crate) fn note_left(&self, path: PathBuf) {
        lock(&self.left).push(path);
    }

    /// All of those, for whoever tries again.
    pub(crate) fn take_left(&self) -> Vec<PathBuf> {
        std::mem::take(&mut *lock(&self.left))
    }

    /// Before something is appended.
    pub(crate) fn wait_while_stuck(&self) {
        self.wait_while(&[Fault::Stuck]);
    }

    /// Before what was appended is put on the disk.
    pub(crate) fn wait_while_slow(&self) {
        self.wait_while(&[Fault::Stuck, Fault::Slow]);
    }

    fn wait_while(&self, faults: &[Fault]) {
        while faults.contains(&self.fault()) {
            std::thread::park_timeout(STUCK_LOOK);
        }
    }
}

/// A file that is written, always at its end.
pub(crate) struct DiskFile {
    file: File,
    /// As it was when it was opened.
    path: PathBuf,
    disk: Arc<Disk>,
}

impl DiskFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn disk(&self) -> &Arc<Disk> {
        &self.disk
    }

    /// The same file, opened once more: what fails here is told to whoever uses the other one as well.
    pub(crate) fn again(&self) -> io::Result<DiskFile> {
        // By its descriptor, since its path may be that of another file by now.
        let file = File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?;
        Ok(DiskFile { file, path: self.path.clone(), disk: Arc::clone(&self.disk) })
    }

    /// Waits until the disk has what was written.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.disk.act(DiskAct::Sync(&self.path), || self.file.sync_data())
    }

    /// What the disk has of it need not be in memory.
    pub(crate) fn leave_memory(&self) {
        leave_memory(&self.file);
    }

    /// Makes it so long, which is not longer than it is.
    pub(crate) fn cut(&self, len: u64) -> io::Result<()> {
        self.disk.act(DiskAct::Cut(&self.path, len), || self.file.set_len(len))
    }
}

/// What the disk has of this file need not be in memory: nobody reads it before the next start, and the
/// system would keep it in the place of something else, and count it as this process's where that has a
/// limit.
pub(crate) fn leave_memory(file: &File) {
    // Where the system does not take advice, it makes room by itself.
    let _ = posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
}

impl Write for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.disk.before(DiskAct::Write(&self.path, bytes))?;
        let len = self.file.write(&bytes[..len])?;
        self.disk.after(DiskAct::Write(&self.path, &bytes[..len]));
        Ok(len)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.disk.fault.load(Relaxed) {
            0 => self.file.write_vectored(pieces),
            // Whoever follows what is done is shown one piece.
            _ => self.write(&pieces.iter().flat_map(|piece| piece.iter().copied()).collect::<Vec<u8>>()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
