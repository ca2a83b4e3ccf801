//! TLS in force: the keys and certificates with which connections to `tls-port` begin. CONFIG SET replaces
//! them as a whole; connections that are there keep what they began with.
use super::config::Config;
use super::log::Log;
use net::Tls;
use std::sync::{Mutex, PoisonError};

pub(crate) struct TlsInForce(Mutex<Option<Tls>>);

impl TlsInForce {
    /// The TLS with which the server starts; None where nobody can connect with TLS.
    pub(crate) fn new(tls: Option<Tls>) -> TlsInForce {
        TlsInForce(Mutex::new(tls))
    }

    /// For a connection that begins now.
    pub(crate) fn current(&self) -> Option<Tls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts another in force, and returns the one before.
    pub(crate) fn replace(&self, next: Option<Tls>) -> Option<Tls> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), next)
    }
}

/// Makes the TLS of a configuration; None where it lets nobody connect with TLS. Where that fails the log
/// says why, and it fails too where TLS would be spoken with other servers only.
pub(crate) fn load(config: &Config, log: &Log) -> Result<Option<Tls>, ()> {
    if !config.needs_tls() {
        return Ok(None);
    }
    let tls = Tls::load(&config.tls).map_err(|why| log.warning(&why))?;
    Ok(config.uses_tls().then_some(tls))
}
