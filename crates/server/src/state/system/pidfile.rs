//! `pidfile`: a file with the process's number, there before anybody is served and until the server ends. It
//! comes with its content in one step, so whoever waits for it never reads it half written; where the folder
//! takes no new files, it is written in place.
use crate::state::config::{Config, reason, replace};
use crate::state::log::Log;
use std::path::{Path, PathBuf};

/// Where it is if the server goes to the background and no setting names one.
const USUAL: &str = "/var/run/redis.pid";

/// The file that was written, if one was.
#[derive(Debug, Default)]
pub struct PidFile(Option<PathBuf>);

impl PidFile {
    /// Writes it if `path` names one, or the server `is_background`. A server that cannot write it runs all
    /// the same.
    pub fn write(path: Option<&Path>, is_background: bool, log: &Log) -> PidFile {
        let Some(path) = path.or(is_background.then_some(Path::new(USUAL))) else { return PidFile(None) };
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let text = format!("{}\n", std::process::id());
        match put(&path, text.as_bytes()) {
            Ok(()) => PidFile(Some(path)),
            Err(error) => {
                log.warning(&format!("Failed to write PID file: {}", reason(&error)));
                PidFile(None)
            }
        }
    }

    /// Removes the file when a server in the background crashes.
    pub(crate) fn forget(config: &Config) {
        if config.daemonize {
            let _ = std::fs::remove_file(config.pidfile.as_deref().unwrap_or(Path::new(USUAL)));
        }
    }

    /// Removes the file, when the server ends.
    pub fn remove(self, log: &Log) {
        if let Some(path) = self.0 {
            log.notice("Removing the pid file.");
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Puts the text where readers find all of it or the file that was there before.
fn put(path: &Path, text: &[u8]) -> std::io::Result<()> {
    // A device such as /dev/null, or a pipe, is written to and stays what it is.
    let is_replaceable = std::fs::metadata(path).map_or(true, |there| there.is_file());
    if is_replaceable && replace(path, text).is_ok() {
        return Ok(());
    }
    std::fs::write(path, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_while_the_server_runs_and_a_place_that_is_none_is_no_error() {
        let path = std::env::temp_dir().join(format!("sardine-pid-{}", std::process::id()));
        let log = Log::silent();
        let file = PidFile::write(Some(&path), false, &log);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        file.remove(&log);
        assert!(!path.exists());
        PidFile::write(Some(Path::new("/no/such/place")), true, &log).remove(&log);
        assert!(PidFile::write(None, false, &log).0.is_none());
        PidFile::write(Some(Path::new("/dev/null")), true, &log);
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file(), "a device stays one");
    }

    /// Whoever has the old file open goes on reading the old file, whole.
    #[test]
    fn it_takes_the_place_of_an_old_one_in_one_step() {
        use std::io::Read;
        let path = std::env::temp_dir().join(format!("sardine-pid-old-{}", std::process::id()));
        std::fs::write(&path, "12345\n").unwrap();
        let mut old = std::fs::File::open(&path).unwrap();
        let log = Log::silent();
        let file = PidFile::write(Some(&path), false, &log);
        let mut text = String::new();
        old.read_to_string(&mut text).unwrap();
        assert_eq!(text, "12345\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        file.remove(&log);
    }
}
