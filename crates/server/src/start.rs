//! From a configuration to a running server, and back.
use crate::shared::Shared;
use crate::{Clock, Config};
use std::net::SocketAddr;
use std::sync::Arc;

#[derive(Debug)]
pub struct StartError(pub String);

/// A running server. In-process servers of tests are made the same way as the binary's.
pub struct Running {
    /// Where it listens: ports chosen by the system are known here.
    pub addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
}

/// Ends a server from any thread.
#[derive(Clone)]
pub struct Stopper(Arc<Shared>);

impl Stopper {
    /// As SHUTDOWN NOSAVE would; `wait` returns `exit_status`.
    pub fn stop(&self, exit_status: i32) {
        self.0.stop(exit_status);
    }
}

impl Running {
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.shared))
    }
    /// Waits until SHUTDOWN or a signal has ended it; the exit status.
    pub fn wait(self) -> i32 {
        todo!()
    }
    /// Ends it as SHUTDOWN NOSAVE would, and waits.
    pub fn stop(self) {
        self.stopper().stop(0);
        self.wait();
    }
}

/// Binds, starts the workers and returns.
pub fn start(config: Config, clock: Clock) -> Result<Running, StartError> {
    let _ = (config, clock);
    todo!()
}
