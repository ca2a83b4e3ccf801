//! The service manager that has started the server, and the messages to systemd over the socket that
//! `NOTIFY_SOCKET` names.
//!
//! The messages are those of sd_notify(3): `READY=1` when the server serves, `STOPPING=1` when it ends, and
//! `STATUS=` with what it does meanwhile. `STOPPING=1` cannot be taken back: so it comes when all is saved
//! and the server does end. A name that begins with `@` is one of Linux's abstract sockets.
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Who is told of the start and the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supervisor {
    Nobody,
    Upstart,
    /// Over this socket.
    Systemd(OsString),
}

impl Supervisor {
    /// What INFO's `process_supervised` says.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Supervisor::Nobody => "no",
            Supervisor::Upstart => "upstart",
            Supervisor::Systemd(_) => "systemd",
        }
    }

    /// Sends a message, if it is one who takes messages.
    pub(crate) fn tell(&self, words: &str) -> io::Result<()> {
        match self {
            Supervisor::Systemd(socket) => notify(socket, words),
            Supervisor::Nobody | Supervisor::Upstart => Ok(()),
        }
    }
}

/// Sends the message over the socket of this name.
fn notify(socket: &OsStr, words: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(words.as_bytes(), &address).map(drop)
}
