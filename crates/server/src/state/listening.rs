//! Where the server listens: TCP on every address of `bind`, with and without TLS, and the Unix socket.
//!
//! All workers accept from all listeners. CONFIG SET `port` and `bind` open what is new and keep what stays;
//! if one of the new ones cannot be had, nothing changes. Until then an address that overlaps with one that
//! is to go (`127.0.0.1` where it was `*`) is listened on beside it. What goes is stopped before CONFIG SET
//! is answered: nobody gets in by it any more, and its address is free. Workers take the new list over at
//! their next turn; a listener that is in it no longer is closed when the last worker has let go of it.
use crate::state::config::{Bind, Binds, Config, reason};
use crate::state::log::Log;
use crate::state::start_error::StartError;
use net::{Listener, Peer};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The listeners in force.
#[derive(Default)]
pub(crate) struct Listening(Mutex<Vec<Arc<Listener>>>);

impl Listening {
    /// The listeners with which the server starts.
    pub(crate) fn new(listeners: Vec<Arc<Listener>>) -> Listening {
        Listening(Mutex::new(listeners))
    }

    /// Those in force, which every worker accepts from.
    pub(crate) fn all(&self) -> Vec<Arc<Listener>> {
        self.list().clone()
    }

    /// The TCP addresses of those in force for clients without TLS. Where the system has chosen a port, it is
    /// known here.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.all().iter().filter(|l| !l.is_secure()).filter_map(|l| tcp_address(l)).collect()
    }

    /// The TCP addresses of those in force for clients with TLS.
    pub(crate) fn tls_addresses(&self) -> Vec<SocketAddr> {
        self.all().iter().filter(|l| l.is_secure()).filter_map(|l| tcp_address(l)).collect()
    }

    /// Lets go of all listeners. A Unix socket is unlinked when its last owner lets go of it.
    pub(crate) fn clear(&self) {
        self.list().clear();
    }

    /// Listens where `next` says from now on; `binds` are the addresses that its words mean. None where that
    /// is not possible: nothing has changed then. The caller tells the workers.
    pub(crate) fn change(&self, next: &Config, binds: &Binds, log: &Log) -> Option<()> {
        let binds = binds.at(next).inspect_err(|why| log.warning(why)).ok()?;
        let mut list = self.list();
        let (unix, tcp): (Vec<_>, Vec<_>) = list.iter().cloned().partition(|l| tcp_address(l).is_none());
        let is_wanted = |listener: &&Arc<Listener>| binds.iter().any(|bind| is_at(listener, bind));
        let going = || tcp.iter().filter(|listener| !is_wanted(listener));
        // Where a listener cannot share its address, opening the one beside it fails, and the log says so.
        let share = |is_leaving: bool| drop(going().try_for_each(|listener| listener.share(is_leaving)));
        share(true);
        let listen = if tcp.is_empty() { Listener::tcp } else { Listener::tcp_beside };
        let Ok(mut listeners) = open_all((&binds, listen), &tcp, next, log) else {
            share(false);
            return None;
        };
        going().for_each(|listener| listener.stop());
        listeners.extend(unix);
        *list = listeners;
        Some(())
    }

    fn list(&self) -> MutexGuard<'_, Vec<Arc<Listener>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the listeners of the configuration with which the server starts; or says why it cannot start.
pub(crate) fn open(config: &Config, log: &Log) -> Result<Vec<Arc<Listener>>, StartError> {
    let failed = |is_secure: bool| {
        let (port, kind) = if is_secure { (config.tls_port, "tls") } else { (config.port, "tcp") };
        StartError(format!("Failed listening on port {port} ({kind}), aborting."))
    };
    let binds = Binds::look_up(config).at(config).inspect_err(|why| log.warning(why));
    let binds = binds.map_err(|_| failed(config.port == 0 && !config.picks_port))?;
    let mut listeners =
        open_all((&binds, listen_at_start), &[], config, log).map_err(|bind| failed(bind.is_secure))?;
    if let Some(path) = &config.unixsocket {
        let listener = Listener::unix(path, config.unixsocket_mode, config.tcp_backlog).map_err(|error| {
            log.warning(&format!("Failed opening Unix socket: bind: {}", reason(&error)));
            StartError(format!("Failed listening on {} (unix), aborting.", path.display()))
        })?;
        listeners.push(Arc::new(listener));
    }
    match listeners.is_empty() {
        true => Err(StartError("Configured to not listen anywhere, exiting.".into())),
        false => Ok(listeners),
    }
}

/// Makes the listener of an address, with this `tcp-backlog`.
type Listen = fn(SocketAddr, u32) -> io::Result<Listener>;

/// A listener for each address, taken from `former` where it has one, else made by `listen`; or the first
/// address that cannot be listened on, for which the log has the reason.
fn open_all(
    (binds, listen): (&[Bind], Listen),
    former: &[Arc<Listener>],
    config: &Config,
    log: &Log,
) -> Result<Vec<Arc<Listener>>, Bind> {
    let mut listeners: Vec<Arc<Listener>> = Vec::new();
    for bind in binds {
        let at = |listener: &&Arc<Listener>| is_at(listener, bind);
        let made = |listener: Listener| Arc::new(if bind.is_secure { listener.secure() } else { listener });
        let is_taken = listeners.iter().filter_map(|l| tcp_address(l)).any(|a| overlap(a, bind.address));
        let opened = match former.iter().find(at) {
            // An address twice, or beside all addresses: the second cannot be had, as in Redis.
            _ if is_taken => Err(io::Error::from_raw_os_error(EADDRINUSE)),
            Some(kept) => Ok(Arc::clone(kept)),
            None => listen(bind.address, config.tcp_backlog).map(made),
        };
        match opened {
            Ok(listener) => listeners.push(listener),
            Err(error) => {
                log.warning(&format!(
                    "Warning: Could not create server TCP listening socket {}: bind: {}",
                    shown(bind.address),
                    reason(&error)
                ));
                if !bind.is_optional || !is_missing(&error) {
                    return Err(*bind);
                }
            }
        }
    }
    Ok(listeners)
}

/// A server that was killed a moment ago may have the address still: the kernel takes some milliseconds to
/// let go of what an io_uring holds. Nobody is served yet, so there is time to wait for that.
fn listen_at_start(address: SocketAddr, backlog: u32) -> io::Result<Listener> {
    for _ in 0..TRIES {
        match Listener::tcp(address, backlog) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => std::thread::sleep(TRY_EVERY),
            opened => return opened,
        }
    }
    Listener::tcp(address, backlog)
}

/// An address as the log of Redis has it: `*:6379`.
fn shown(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(a) if a.ip().is_unspecified() => format!("*:{}", a.port()),
        SocketAddr::V6(a) if a.ip().is_unspecified() => format!("::*:{}", a.port()),
        other => other.to_string(),
    }
}

const EADDRINUSE: i32 = 98;
/// So often, and so soon again, a server that starts asks for an address that somebody has.
const TRIES: u32 = 100;
const TRY_EVERY: Duration = Duration::from_millis(2);

/// Whether there are connections that either of two listeners at these addresses could accept.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let (x, y) = (a.ip(), b.ip());
    let is_same = x == y || (x.is_ipv4() == y.is_ipv4() && (x.is_unspecified() || y.is_unspecified()));
    is_same && a.port() == b.port()
}

/// Whether listening failed because this machine does not have the address, or not its family.
fn is_missing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{AddrNotAvailable, Unsupported};
    const EAFNOSUPPORT: i32 = 97;
    matches!(error.kind(), AddrNotAvailable | Unsupported) || error.raw_os_error() == Some(EAFNOSUPPORT)
}

/// Whether a listener has this address, with TLS or without as asked for.
fn is_at(listener: &Listener, bind: &Bind) -> bool {
    tcp_address(listener) == Some(bind.address) && listener.is_secure() == bind.is_secure
}

fn tcp_address(listener: &Listener) -> Option<SocketAddr> {
    match listener.local_addr() {
        Peer::Tcp { local, .. } => Some(local),
        Peer::Unix { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_of_a_family_overlap_with_each_of_it() {
        for (a, b, expected) in [
            ("127.0.0.1:1", "127.0.0.1:1", true),
            ("127.0.0.1:1", "127.0.0.1:2", false),
            ("127.0.0.1:1", "127.0.0.2:1", false),
            ("0.0.0.0:1", "127.0.0.2:1", true),
            ("[::1]:1", "[::]:1", true),
            ("0.0.0.0:1", "[::]:1", false),
            ("127.0.0.1:1", "[::]:1", false),
        ] {
            let (a, b) = (a.parse().unwrap(), b.parse().unwrap());
            assert_eq!((overlap(a, b), overlap(b, a)), (expected, expected), "{a} {b}");
        }
    }
}
