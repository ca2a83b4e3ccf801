//! `syslog-enabled`: the log goes to the system's log as well, a datagram a line in the form of RFC 3164.
//!
//! ```text
//! <133>Nov 21 14:33:43 redis[8610]: Ready to accept connections tcp
//! ```
//!
//! The number is facility * 8 + severity. The daemon reads from a Unix socket; when it is not there, or was
//! restarted, lines are lost until it is back, as with syslog(3).
use super::config::{Facility, LogLevel};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// Where the daemon listens.
pub(crate) const SOCKET: &str = "/dev/log";

/// A connection to the system's log, made when the first line is sent.
pub(crate) struct Syslog {
    path: PathBuf,
    facility: Facility,
    ident: Vec<u8>,
    socket: Option<UnixDatagram>,
}

impl Syslog {
    /// Nothing is sent yet, so this cannot fail.
    pub(crate) fn new(path: &Path, facility: Facility, ident: &[u8]) -> Syslog {
        Syslog { path: path.to_path_buf(), facility, ident: ident.to_vec(), socket: None }
    }

    /// Sends one line; where that fails it connects anew and tries once more. `time` is "Nov 21 14:33:43",
    /// the day padded with a space.
    pub(crate) fn send(&mut self, level: LogLevel, time: &str, message: &[u8]) {
        let mut line = format!("<{}>{time} ", u32::from(self.facility.0) * 8 + severity(level)).into_bytes();
        line.extend_from_slice(&self.ident);
        line.extend_from_slice(format!("[{}]: ", std::process::id()).as_bytes());
        line.extend_from_slice(message);
        if self.socket.as_ref().is_some_and(|socket| socket.send(&line).is_ok()) {
            return;
        }
        self.socket = connect(&self.path);
        if let Some(socket) = &self.socket {
            let _ = socket.send(&line);
        }
    }
}

/// A socket that never waits: a daemon that does not read must not stop the server.
fn connect(path: &Path) -> Option<UnixDatagram> {
    let socket = UnixDatagram::unbound().ok()?;
    socket.connect(path).ok()?;
    socket.set_nonblocking(true).ok()?;
    Some(socket)
}

/// The protocol's number for a level.
fn severity(level: LogLevel) -> u32 {
    match level {
        LogLevel::Debug => 7,
        LogLevel::Verbose => 6,
        LogLevel::Notice => 5,
        LogLevel::Warning | LogLevel::Nothing => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_datagram_and_a_daemon_may_come_and_go() {
        let path = std::env::temp_dir().join(format!("sardine-syslog-{}", std::process::id()));
        let mut syslog = Syslog::new(&path, Facility(16), b"redis");
        let mut heard = |message: &str| {
            let daemon = UnixDatagram::bind(&path).unwrap();
            syslog.send(LogLevel::Notice, "Nov 21 14:33:43", message.as_bytes());
            let mut bytes = [0; 256];
            let len = daemon.recv(&mut bytes).unwrap();
            std::fs::remove_file(&path).unwrap();
            String::from_utf8(bytes[..len].to_vec()).unwrap()
        };
        let pid = std::process::id();
        assert_eq!(heard("one"), format!("<133>Nov 21 14:33:43 redis[{pid}]: one"));
        assert_eq!(heard("two"), format!("<133>Nov 21 14:33:43 redis[{pid}]: two"));
        syslog.send(LogLevel::Warning, "Nov 21 14:33:43", b"to nobody");
    }
}
