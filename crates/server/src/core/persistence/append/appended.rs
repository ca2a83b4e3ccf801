//! The file that is appended to, as `disk::aof::increment` wants it.
use crate::state::disk::DiskFile;
use disk::aof::increment::Medium;
use std::io::{self, IoSlice, Write};

/// See the file's opener.
pub(super) struct Appended(pub(super) DiskFile);

impl Medium for Appended {
    fn append(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.disk().wait_while_stuck();
        self.0.write_vectored(pieces)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.disk().wait_while_stuck();
        self.0.sync()
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.0.cut(len)
    }
}
