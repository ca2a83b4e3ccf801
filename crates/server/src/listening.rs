//! Where the server listens: TCP on every address of `bind`, and the Unix socket.
//!
//! All workers accept from all listeners. CONFIG SET `port` and `bind` open what is new and keep what stays; if one of the
//! new ones cannot be had, nothing changes. Workers then take the new list over at their next turn, and what nobody
//! listens on any more is closed when the last of them has.
use crate::shared::{Letter, Shared};
use crate::{Bind, Config, Log, StartError};
use net::{Listener, Peer};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The listeners in force.
#[derive(Default)]
pub(crate) struct Listening(Mutex<Vec<Arc<Listener>>>);

impl Listening {
    pub(crate) fn new(listeners: Vec<Arc<Listener>>) -> Listening {
        Listening(Mutex::new(listeners))
    }

    pub(crate) fn all(&self) -> Vec<Arc<Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Of TCP, port 0 resolved.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.all().iter().filter_map(|listener| tcp_address(listener)).collect()
    }

    /// Lets go of them; Unix sockets are unlinked when the last owner does.
    pub(crate) fn clear(&self) {
        self.replace(Vec::new());
    }

    fn replace(&self, listeners: Vec<Arc<Listener>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = listeners;
    }
}

/// At the start.
pub(crate) fn open(config: &Config, log: &Log) -> Result<Vec<Arc<Listener>>, StartError> {
    let binds = config.bind_addresses().map_err(|e| StartError(e.0))?;
    let mut listeners = open_all(&binds, &[], config, log)
        .ok_or_else(|| StartError(format!("Failed listening on port {} (tcp), aborting.", config.port)))?;
    if let Some(path) = &config.unixsocket {
        let listener = Listener::unix(path, config.unixsocket_mode, config.tcp_backlog).map_err(|error| {
            log.warning(&format!("Failed opening Unix socket: bind: {error}"));
            StartError(format!("Failed listening on {} (unix), aborting.", path.display()))
        })?;
        listeners.push(Arc::new(listener));
    }
    Ok(listeners)
}

/// Listens where `next` says from now on; None, and nothing has changed, where that cannot be.
pub(crate) fn change(shared: &Shared, next: &Config) -> Option<()> {
    let present = shared.listening.all();
    let binds = next.bind_addresses().inspect_err(|e| shared.log.warning(&e.0)).ok()?;
    let mut listeners = open_all(&binds, &present, next, &shared.log)?;
    listeners.extend(present.into_iter().filter(|listener| tcp_address(listener).is_none()));
    shared.listening.replace(listeners);
    shared.posts.iter().for_each(|post| post.send(Letter::Listen));
    Some(())
}

/// One for each address, out of `present` where it is there already; None, said in the log, where one cannot be had.
fn open_all(
    binds: &[Bind],
    present: &[Arc<Listener>],
    config: &Config,
    log: &Log,
) -> Option<Vec<Arc<Listener>>> {
    let mut listeners = Vec::new();
    for bind in binds {
        if let Some(kept) = present.iter().find(|listener| tcp_address(listener) == Some(bind.address)) {
            listeners.push(Arc::clone(kept));
            continue;
        }
        match Listener::tcp(bind.address, config.tcp_backlog) {
            Ok(listener) => listeners.push(Arc::new(listener)),
            Err(error) if bind.is_optional && is_missing(&error) => {}
            Err(error) => {
                log.warning(&format!(
                    "Warning: Could not create server TCP listening socket {}: bind: {}",
                    shown(bind.address),
                    crate::config::reason(&error)
                ));
                return None;
            }
        }
    }
    Some(listeners)
}

/// `*:6379`, as the log of the peer has it.
fn shown(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(a) if a.ip().is_unspecified() => format!("*:{}", a.port()),
        SocketAddr::V6(a) if a.ip().is_unspecified() => format!("::*:{}", a.port()),
        other => other.to_string(),
    }
}

/// This machine does not have the address, or not its family.
fn is_missing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{AddrNotAvailable, Unsupported};
    const EAFNOSUPPORT: i32 = 97;
    matches!(error.kind(), AddrNotAvailable | Unsupported) || error.raw_os_error() == Some(EAFNOSUPPORT)
}

fn tcp_address(listener: &Listener) -> Option<SocketAddr> {
    match listener.local_addr() {
        Peer::Tcp { local, .. } => Some(local),
        Peer::Unix { .. } => None,
    }
}
