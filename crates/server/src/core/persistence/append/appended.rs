//! The file that is appended to, as `disk::aof::increment` wants it.
use crate::state::disk::DiskFile;
use disk::aof::increment::Medium;
use std::io::{self, IoSlice, Write};

/// See the file's opener.
pub(super) struct Appended(pub(super) DiskFile);

impl Appended {
    /// The same file, for another thread to wait for the disk.
    pub(super) fn again(&self) -> io::Result<Appended> {
        self.0.again().map(Appended)
    }

    /// Waits until the disk has what was appended.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.disk().wait_while_slow();
        self.0.sync()
    }
}

impl Medium for Appended {
    fn append(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.disk().wait_while_stuck();
        self.0.write_vectored(pieces)
    }

    fn sync(&mut self) -> io::Result<()> {
        Appended::sync(self)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.0.cut(len)
    }
}
