//! Listening sockets. One `Listener` is shared by the engines of all workers: each waits on it, one of them
//! gets each connection. Accepted sockets stay in blocking mode, because every call on them says
//! `MSG_DONTWAIT` itself and io_uring only waits on behalf of sockets that are not O_NONBLOCK. The listening
//! socket's own mode is set by the kind of engine that waits on it (epoll: non-blocking; io_uring: blocking),
//! so one listener serves one kind.
use crate::{Accepted, Peer};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::fs::{self, Permissions};
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A bound, listening socket; shared by the engines of all workers.
pub struct Listener {
    socket: Socket,
    address: Peer,
    /// The socket file's device and inode: only the file that was made here is unlinked.
    file: Option<(u64, u64)>,
    /// Who connects speaks TLS.
    is_secure: bool,
}

impl Listener {
    /// Listens on a TCP address; `backlog` is `tcp-backlog`. An IPv6 socket takes no IPv4 connections.
    pub fn tcp(address: SocketAddr, backlog: u32) -> io::Result<Listener> {
        Listener::bound(address, backlog, |_| Ok(()))
    }

    /// As [`Listener::tcp`], but listeners that [`Listener::share`] their address may still hold this one, or
    /// one that overlaps with it (`*` with any other).
    pub fn tcp_beside(address: SocketAddr, backlog: u32) -> io::Result<Listener> {
        let alone = Listener::tcp(address, backlog);
        if !alone.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::AddrInUse) {
            return alone;
        }
        let beside = Listener::bound(address, backlog, |socket| socket.set_reuse_port(true))?;
        beside.share(false)?;
        Ok(beside)
    }

    /// Nobody gets in by this listener any more, though engines still hold it: who waits to be accepted is
    /// turned away, and [`Listener::tcp`] may have the address at once.
    pub fn stop(&self) {
        // The kernel refuses this only to a socket that does not listen.
        let _ = self.socket.shutdown(Shutdown::Read);
    }

    /// Sets whether [`Listener::tcp_beside`] may bind this address while this listener still listens.
    pub fn share(&self, is_leaving: bool) -> io::Result<()> {
        self.socket.set_reuse_port(is_leaving)
    }

    /// Binds and listens, after `prepare` has set the options that must be there before.
    fn bound(
        address: SocketAddr,
        backlog: u32,
        prepare: impl FnOnce(&Socket) -> io::Result<()>,
    ) -> io::Result<Listener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.set_reuse_address(true)?;
        prepare(&socket)?;
        socket.bind(&SockAddr::from(address))?;
        socket.listen(clamped(backlog))?;
        let local = as_inet(&socket.local_addr()?)?;
        Ok(Listener { socket, address: Peer::Tcp { peer: local, local }, file: None, is_secure: false })
    }

    /// Replaces a stale socket file, and an empty file, as programs make one to have a name of their own;
    /// `mode` as `unixsocketperm`. Unlinked on drop.
    ///
    /// Any other file, or a socket that another process still serves, is left alone: `AddrInUse`.
    pub fn unix(path: &Path, mode: Option<u32>, backlog: u32) -> io::Result<Listener> {
        remove_stale(path)?;
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&SockAddr::unix(path)?)?;
        // Before `listen`: nobody can connect while the permissions are still those of the umask.
        if let Some(mode) = mode {
            fs::set_permissions(path, Permissions::from_mode(mode))?;
        }
        let made = fs::symlink_metadata(path)?;
        socket.listen(clamped(backlog))?;
        let address = Peer::Unix { path: PathBuf::from(path) };
        Ok(Listener { socket, address, file: Some((made.dev(), made.ino())), is_secure: false })
    }

    /// This listener, for clients that speak TLS.
    pub fn secure(mut self) -> Listener {
        self.is_secure = true;
        self
    }

    /// Whether it is for clients that speak TLS.
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Where it listens, with the port that the system chose; of TCP both sides are the local address.
    pub fn local_addr(&self) -> Peer {
        self.address.clone()
    }

    /// What the engine watches or accepts from.
    pub(crate) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Sets the listening socket's own mode, as the kind of engine wants it.
    pub(crate) fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket.set_nonblocking(nonblocking)
    }

    /// One waiting connection; `WouldBlock` when there is none.
    pub(crate) fn accept(&self) -> io::Result<Accepted> {
        let (socket, from) = self.socket.accept()?;
        self.with_peer(socket, &from)
    }

    /// A connection that the kernel has accepted from this listener without saying whose it is.
    pub(crate) fn described(&self, fd: OwnedFd) -> io::Result<Accepted> {
        let socket = Socket::from(fd);
        let from = socket.peer_addr()?;
        self.with_peer(socket, &from)
    }

    /// A connected socket with both its addresses.
    fn with_peer(&self, socket: Socket, from: &SockAddr) -> io::Result<Accepted> {
        let peer = match &self.address {
            Peer::Tcp { .. } => Peer::Tcp { peer: as_inet(from)?, local: as_inet(&socket.local_addr()?)? },
            Peer::Unix { path } => Peer::Unix { path: path.clone() },
        };
        Ok(Accepted { fd: OwnedFd::from(socket), peer, is_secure: self.is_secure })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let (Some(made), Peer::Unix { path }) = (self.file, &self.address) else { return };
        if fs::symlink_metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == made) {
            // Nothing is left to do about a file that cannot be removed: the next start replaces it.
            let _ = fs::remove_file(path);
        }
    }
}

/// The backlog as the system takes it.
fn clamped(backlog: u32) -> i32 {
    i32::try_from(backlog).unwrap_or(i32::MAX)
}

/// The address of an IPv4 or IPv6 socket.
fn as_inet(address: &SockAddr) -> io::Result<SocketAddr> {
    address.as_socket().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not an IP address"))
}

/// Removes an empty file, and a socket file on which nobody listens any more. A server that hangs with a full
/// backlog still listens: connecting to it fails at once, with another error than that of a dead file.
fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(there) = fs::symlink_metadata(path) else { return Ok(()) };
    if there.is_file() && there.len() == 0 {
        return fs::remove_file(path);
    }
    if there.is_file() {
        let why = format!("{} is a file that holds something, and is left as it is", path.display());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, why));
    }
    if !there.file_type().is_socket() {
        return Ok(());
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    let tried = socket.connect(&SockAddr::unix(path)?);
    if tried.is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused) {
        fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn fresh_path() -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        std::env::temp_dir().join(format!("sardine-listener-{}-{number}.sock", std::process::id()))
    }

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_chosen_port_is_reported_and_reached() {
        let listener = Listener::tcp((Ipv4Addr::LOCALHOST, 0).into(), 16).unwrap();
        let Peer::Tcp { local, .. } = listener.local_addr() else { panic!("not TCP") };
        assert_ne!(local.port(), 0);
        let client = TcpStream::connect(local).unwrap();
        let Peer::Tcp { peer, local: here } = listener.accept().unwrap().peer else { panic!("not TCP") };
        assert_eq!((peer, here), (client.local_addr().unwrap(), local));
    }

    #[test]
    fn the_same_port_serves_ipv4_and_ipv6_listeners() {
        let Ok(v6) = Listener::tcp((Ipv6Addr::UNSPECIFIED, 0).into(), 16) else { return };
        let Peer::Tcp { local, .. } = v6.local_addr() else { panic!("not TCP") };
        Listener::tcp((Ipv4Addr::UNSPECIFIED, local.port()).into(), 16).unwrap();
    }

    #[test]
    fn a_port_in_use_is_an_error() {
        let first = Listener::tcp((Ipv4Addr::LOCALHOST, 0).into(), 16).unwrap();
        let Peer::Tcp { local, .. } = first.local_addr() else { panic!("not TCP") };
        let second = Listener::tcp(local, 16).err().unwrap();
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_unix_socket_has_its_mode_and_is_unlinked_on_drop() {
        let path = fresh_path();
        let listener = Listener::unix(&path, Some(0o700), 16).unwrap();
        assert_eq!(mode_of(&path), 0o700);
        UnixStream::connect(&path).unwrap();
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn a_stale_socket_file_is_replaced_and_a_live_one_is_not() {
        let path = fresh_path();
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let listener = Listener::unix(&path, None, 16).unwrap();
        assert_eq!(Listener::unix(&path, None, 16).err().unwrap().kind(), io::ErrorKind::AddrInUse);
        UnixStream::connect(&path).unwrap();
        drop(listener);
    }

    #[test]
    fn an_empty_file_is_replaced_and_one_that_holds_something_is_not() {
        let path = fresh_path();
        fs::write(&path, "").unwrap();
        drop(Listener::unix(&path, None, 16).unwrap());
        assert!(!path.exists());
        fs::write(&path, "notes").unwrap();
        assert_eq!(Listener::unix(&path, None, 16).err().unwrap().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(fs::read(&path).unwrap(), b"notes");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn an_owner_that_hangs_is_not_waited_for() {
        let path = fresh_path();
        let owner = Listener::unix(&path, None, 0).unwrap();
        // The kernel takes some connections for an owner that accepts nobody. Connecting does not wait.
        let mut waiting = Vec::new();
        loop {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            if socket.connect(&SockAddr::unix(&path).unwrap()).is_err() {
                break;
            }
            waiting.push(socket);
        }
        assert_eq!(Listener::unix(&path, None, 16).err().unwrap().kind(), io::ErrorKind::AddrInUse);
        assert!(path.exists());
        drop(owner);
    }

    #[test]
    fn an_address_is_had_beside_one_that_leaves_and_no_other() {
        let first = Listener::tcp((Ipv4Addr::LOCALHOST, 0).into(), 16).unwrap();
        let Peer::Tcp { local, .. } = first.local_addr() else { panic!("not TCP") };
        assert!(Listener::tcp_beside(local, 16).is_err());
        first.share(true).unwrap();
        assert!(Listener::tcp(local, 16).is_err());
        let second = Listener::tcp_beside(local, 16).unwrap();
        drop(first);
        assert!(Listener::tcp(local, 16).is_err());
        TcpStream::connect(local).unwrap();
        second.accept().unwrap();
    }

    #[test]
    fn nobody_gets_in_by_a_listener_that_was_stopped() {
        let first = Listener::tcp((Ipv4Addr::LOCALHOST, 0).into(), 16).unwrap();
        let Peer::Tcp { local, .. } = first.local_addr() else { panic!("not TCP") };
        let mut early = TcpStream::connect(local).unwrap();
        first.stop();
        assert!(TcpStream::connect(local).is_err() && first.accept().is_err());
        assert!(std::io::Read::read(&mut early, &mut [0]).is_err(), "who waited is told");
        let second = Listener::tcp(local, 16).unwrap();
        first.stop();
        TcpStream::connect(local).unwrap();
        second.accept().unwrap();
    }

    #[test]
    fn a_file_that_is_no_socket_is_left_alone() {
        let path = fresh_path();
        fs::write(&path, "precious").unwrap();
        assert!(Listener::unix(&path, None, 16).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_socket_file_that_someone_else_made_meanwhile_survives_the_drop() {
        let path = fresh_path();
        let listener = Listener::unix(&path, None, 16).unwrap();
        // Holding the old inode until the new file exists keeps its number from being used again.
        let moved = path.with_extension("old");
        fs::rename(&path, &moved).unwrap();
        let other = Listener::unix(&path, None, 16).unwrap();
        drop(listener);
        assert!(path.exists());
        drop(other);
        fs::remove_file(&moved).unwrap();
    }
}
