//! The file that is appended to, as `disk::aof::increment` wants it, on a disk that fails where tests want
//! it to.
use crate::state::faults::Faults;
use disk::aof::increment::Medium;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// See the file's opener.
pub(super) struct DiskFile {
    pub(super) file: File,
    pub(super) faults: Arc<Faults>,
}

impl Medium for DiskFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.faults.wait_while_stuck();
        let len = self.faults.before_write(bytes.len())?;
        self.file.append(&bytes[..len])
    }

    fn sync(&mut self) -> io::Result<()> {
        self.faults.wait_while_stuck();
        self.faults.before_sync()?;
        self.file.sync()
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.file.cut(len)
    }
}
