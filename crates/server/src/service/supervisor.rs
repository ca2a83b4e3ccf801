//! Tells the service manager that has started the server when it serves: systemd by a message over the socket
//! that `NOTIFY_SOCKET` names, upstart by stopping the process once.
//!
//! The messages are those of sd_notify(3): `READY=1` when the server serves, `STOPPING=1` when it ends. A
//! name that begins with `@` is one of Linux's abstract sockets.
use crate::state::config::Supervised;
use crate::state::log::Log;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The service manager that is told of the start and the end.
#[derive(Debug, PartialEq, Eq)]
pub enum Supervisor {
    Nobody,
    Upstart,
    /// Over this socket.
    Systemd(OsString),
}

impl Supervisor {
    /// The manager that `supervised` asks for and the environment names; the log says what was found.
    pub fn find(wanted: Supervised, log: &Log) -> Supervisor {
        let found = choose(wanted, std::env::var_os("NOTIFY_SOCKET"), std::env::var_os("UPSTART_JOB"));
        match (wanted, &found) {
            (Supervised::Systemd, Supervisor::Nobody) => {
                log.warning("systemd supervision requested, but NOTIFY_SOCKET not found!");
            }
            (Supervised::Upstart, Supervisor::Nobody) => {
                log.warning("upstart supervision requested, but UPSTART_JOB not found!");
            }
            (_, Supervisor::Systemd(_)) => log.notice("supervised by systemd, will signal readiness"),
            (_, Supervisor::Upstart) => log.notice("supervised by upstart, will stop to signal readiness"),
            _ => {}
        }
        found
    }

    /// Whether a service manager waits for the server, which then must not go to the background.
    pub fn is_somebody(wanted: Supervised) -> bool {
        let found = choose(wanted, std::env::var_os("NOTIFY_SOCKET"), std::env::var_os("UPSTART_JOB"));
        found != Supervisor::Nobody
    }

    /// What INFO's `process_supervised` says.
    pub fn name(&self) -> &'static str {
        match self {
            Supervisor::Nobody => "no",
            Supervisor::Upstart => "upstart",
            Supervisor::Systemd(_) => "systemd",
        }
    }

    /// Tells it that the server serves.
    pub fn ready(&self, log: &Log) {
        self.tell("STATUS=Ready to accept connections\nREADY=1\n", log);
        if *self == Supervisor::Upstart
            && let Err(error) = nix::sys::signal::raise(nix::sys::signal::Signal::SIGSTOP)
        {
            log.warning(&format!("upstart supervision error: {error}"));
        }
    }

    /// Tells it that the server ends.
    pub fn stopping(&self, log: &Log) {
        self.tell("STOPPING=1\n", log);
    }

    fn tell(&self, words: &str, log: &Log) {
        if let Supervisor::Systemd(socket) = self
            && let Err(error) = notify(socket, words)
        {
            log.warning(&format!("systemd supervision error: {error}"));
        }
    }
}

fn choose(wanted: Supervised, socket: Option<OsString>, job: Option<OsString>) -> Supervisor {
    let systemd = socket.filter(|s| !s.is_empty()).map(Supervisor::Systemd);
    let upstart = job.filter(|j| !j.is_empty()).map(|_| Supervisor::Upstart);
    let found = match wanted {
        Supervised::No => None,
        Supervised::Systemd => systemd,
        Supervised::Upstart => upstart,
        Supervised::Auto => upstart.or(systemd),
    };
    found.unwrap_or(Supervisor::Nobody)
}

/// Sends the message over the socket of this name.
fn notify(socket: &OsStr, words: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(words.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 256];
        let len = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..len].to_vec()).unwrap()
    }

    #[test]
    fn systemd_is_told_over_a_path_and_over_an_abstract_name() {
        let name = format!("sardine-notify-{}", std::process::id());
        let path = std::env::temp_dir().join(&name);
        let by_path = UnixDatagram::bind(&path).unwrap();
        let by_name =
            UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name.as_bytes()).unwrap()).unwrap();
        for (socket, address) in [(by_path, path.clone().into()), (by_name, format!("@{name}").into())] {
            let supervisor = Supervisor::Systemd(address);
            supervisor.ready(&Log::silent());
            supervisor.stopping(&Log::silent());
            assert_eq!(heard(&socket), "STATUS=Ready to accept connections\nREADY=1\n");
            assert_eq!(heard(&socket), "STOPPING=1\n");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn only_who_is_asked_for_and_there_is_told() {
        let (socket, job) = (Some(OsString::from("@s")), Some(OsString::from("j")));
        let systemd = || Supervisor::Systemd("@s".into());
        for (wanted, socket, job, found) in [
            (Supervised::No, socket.clone(), job.clone(), Supervisor::Nobody),
            (Supervised::Systemd, socket.clone(), None, systemd()),
            (Supervised::Systemd, None, job.clone(), Supervisor::Nobody),
            (Supervised::Upstart, socket.clone(), job.clone(), Supervisor::Upstart),
            (Supervised::Auto, socket.clone(), job, Supervisor::Upstart),
            (Supervised::Auto, socket, None, systemd()),
            (Supervised::Auto, Some(OsString::new()), None, Supervisor::Nobody),
        ] {
            assert_eq!(choose(wanted, socket, job), found, "{wanted:?}");
        }
    }
}
