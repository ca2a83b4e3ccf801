//! TLS in force: the keys and certificates with which connections begin, to `tls-port` and to other servers.
//! CONFIG SET replaces them as a whole; connections that are there keep what they began with.
use super::config::Config;
use super::log::Log;
use net::Tls;
use std::sync::{Mutex, PoisonError};

pub(crate) struct TlsInForce(Mutex<Option<Tls>>);

impl TlsInForce {
    /// The TLS with which the server starts; None where nobody speaks it.
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

/// Makes the TLS of a configuration; None where nobody speaks it. Where that fails the log says why.
pub(crate) fn load(config: &Config, log: &Log) -> Result<Option<Tls>, ()> {
    if !config.needs_tls() {
        return Ok(None);
    }
    Tls::load(&config.tls_settings()).map(Some).map_err(|why| log.warning(&why))
}
