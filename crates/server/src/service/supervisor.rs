//! Finds out which service manager has started the server, and tells it when the server serves and when it
//! ends: systemd by messages, upstart by stopping the process once.
use crate::state::config::Supervised;
use crate::state::log::Log;
use crate::state::system::supervisor::Supervisor;
use std::ffi::OsString;

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

    /// Tells it that the server loads its data.
    pub fn loading(&self, log: &Log) {
        self.told("STATUS=Sardine is loading...\n", log);
    }

    /// Tells it that the server serves.
    pub fn ready(&self, log: &Log) {
        self.told("STATUS=Ready to accept connections\nREADY=1\n", log);
        if *self == Supervisor::Upstart
            && let Err(error) = nix::sys::signal::raise(nix::sys::signal::Signal::SIGSTOP)
        {
            log.warning(&format!("upstart supervision error: {error}"));
        }
    }

    /// Tells it that the server ends.
    pub fn stopping(&self, log: &Log) {
        self.told("STOPPING=1\n", log);
    }

    fn told(&self, words: &str, log: &Log) {
        if let Err(error) = self.tell(words) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

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
