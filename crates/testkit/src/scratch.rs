//! A folder for a test's files and sockets, gone when it is dropped.
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub struct Scratch(PathBuf);

impl Scratch {
    /// `name` is for people who find it after a crash. Paths of sockets may be 107 bytes long: keep it short.
    pub fn new(name: &str) -> io::Result<Scratch> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("sardine-{}-{number}-{name}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Scratch(path))
    }

    /// Leaves what is in it where it is found after this has gone, and says where.
    pub fn keep(&self) -> PathBuf {
        let kept = self.0.with_extension("kept");
        let _ = std::fs::rename(&self.0, &kept);
        kept
    }

    /// Where the folder is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
