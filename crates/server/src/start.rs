//! From a configuration to a running server, and back.
use crate::Config;
use std::net::SocketAddr;

#[derive(Debug)]
pub struct StartError(pub String);

/// A running server. In-process servers of tests are made the same way as the binary's.
pub struct Running {
    /// Where it listens: ports chosen by the system are known here.
    pub addresses: Vec<SocketAddr>,
}

impl Running {
    /// Waits until SHUTDOWN or a signal has ended it; the exit status.
    pub fn wait(self) -> i32 {
        todo!()
    }
    /// Ends it as SHUTDOWN NOSAVE would, and waits.
    pub fn stop(self) {
        todo!()
    }
}

/// Binds, starts the workers and returns.
pub fn start(config: Config) -> Result<Running, StartError> {
    let _ = config;
    todo!()
}
