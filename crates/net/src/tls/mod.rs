//! TLS: what a connection with it is made of, without sockets. rustls does the protocol, with aws-lc-rs below
//! it.
//!
//! `Tls` is the settings put into force: keys, certificates, protocols. It is made as a whole from
//! [`TlsSettings`] or not at all, is shared by all engines, and is never changed: connections keep the one
//! with which they began. `credentials` reads its files, `ciphers` the names of cipher suites;
//! `session_cache` keeps the sessions that clients may resume. A [`session`] is one connection's side of the
//! protocol; `tls_engine`, beside this folder, moves the bytes. `client` connects to other servers, without
//! an engine.
//!
//! docs/decisions/tls.md has the figures that chose aws-lc-rs, and why the kernel does not do it.
mod authorities;
mod ciphers;
mod client;
mod credentials;
pub(crate) mod session;
mod session_cache;

pub use client::TlsStream;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{NoServerSessionStorage, ServerConfig};
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, SupportedProtocolVersion, version};
use std::path::PathBuf;
use std::sync::Arc;

/// The longest that a client may take for its handshake, in milliseconds.
pub(crate) const HANDSHAKE_MS: i64 = 10_000;

/// What the settings of TLS say; see each setting's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    /// What the key's file is encrypted with; empty where it is not.
    pub key_file_pass: Vec<u8>,
    /// The same for what is shown to other servers; else it is the server's own.
    pub client_cert_file: Option<PathBuf>,
    pub client_key_file: Option<PathBuf>,
    pub client_key_file_pass: Vec<u8>,
    pub ca_cert_file: Option<PathBuf>,
    pub ca_cert_dir: Option<PathBuf>,
    pub auth_clients: AuthClients,
    /// Whether other servers are spoken to, which need an authority that is trusted.
    pub connects: bool,
    /// The words of `tls-protocols`; empty is all that there are.
    pub protocols: String,
    /// OpenSSL's words for the cipher suites of TLS 1.2; empty is all that there are.
    pub ciphers: String,
    /// The names of those of TLS 1.3.
    pub ciphersuites: String,
    pub prefers_server_ciphers: bool,
    pub caches_sessions: bool,
    pub session_cache_size: u32,
    pub session_cache_timeout_s: u32,
    /// How many handshakes one engine takes up between two polls.
    pub handshakes_per_turn: u32,
}

/// Whether clients have to show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthClients {
    No,
    Yes,
    /// Clients need not show a certificate, but one that is shown has to be good.
    Optional,
}

impl Default for TlsSettings {
    fn default() -> TlsSettings {
        TlsSettings {
            cert_file: None,
            key_file: None,
            key_file_pass: Vec::new(),
            client_cert_file: None,
            client_key_file: None,
            client_key_file_pass: Vec::new(),
            ca_cert_file: None,
            ca_cert_dir: None,
            auth_clients: AuthClients::Yes,
            connects: false,
            protocols: String::new(),
            ciphers: String::new(),
            ciphersuites: String::new(),
            prefers_server_ciphers: false,
            caches_sessions: true,
            session_cache_size: 20 << 10,
            session_cache_timeout_s: 300,
            handshakes_per_turn: 1,
        }
    }
}

/// Settings of TLS in force. A clone shares them.
#[derive(Clone)]
pub struct Tls {
    pub(crate) config: Arc<ServerConfig>,
    /// For connections to other servers, if there are any.
    pub(crate) client: Option<Arc<ClientConfig>>,
    pub(crate) handshakes_per_turn: usize,
    pub(crate) handshake_ms: i64,
}

impl Tls {
    /// Reads all files that the settings name. An error is a sentence for the log.
    pub fn load(settings: &TlsSettings) -> Result<Tls, String> {
        let provider = Arc::new(CryptoProvider {
            cipher_suites: ciphers::chosen(&settings.ciphers, &settings.ciphersuites)?,
            ..aws_lc_rs::default_provider()
        });
        let versions = versions(&settings.protocols)?;
        let certified = credentials::certified(settings, &provider)?;
        let authorities = credentials::authorities(settings)?;
        let verifier = credentials::verifier(settings, &authorities, &provider)?;
        let client = match settings.connects {
            true => Some(client::config(settings, (&provider, &versions), authorities, certified.clone())?),
            false => None,
        };
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(|error| format!("Failed to configure ciphers: {error}"))?;
        let mut config = builder
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.ignore_client_order = settings.prefers_server_ciphers;
        config.session_storage = match settings.caches_sessions {
            true => Arc::new(session_cache::SessionCache::new(
                settings.session_cache_size,
                settings.session_cache_timeout_s,
            )),
            false => Arc::new(NoServerSessionStorage {}),
        };
        config.send_tls13_tickets = if settings.caches_sessions { 2 } else { 0 };
        Ok(Tls {
            config: Arc::new(config),
            client: client.map(Arc::new),
            handshakes_per_turn: settings.handshakes_per_turn.max(1) as usize,
            handshake_ms: HANDSHAKE_MS,
        })
    }
}

/// What `tls-protocols` names.
fn versions(words: &str) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let mut versions = Vec::new();
    for word in words.split(' ').filter(|word| !word.is_empty()) {
        versions.push(match word.to_ascii_lowercase().as_str() {
            "tlsv1.2" => &version::TLS12,
            "tlsv1.3" => &version::TLS13,
            "tlsv1" | "tlsv1.1" => {
                return Err(format!(
                    "Invalid tls-protocols specified: {word} is not supported. Use 'TLSv1.2', 'TLSv1.3' or both."
                ));
            }
            _ => return Err("Invalid tls-protocols specified. Use 'TLSv1.2', 'TLSv1.3' or both.".into()),
        });
    }
    Ok(if versions.is_empty() { vec![&version::TLS13, &version::TLS12] } else { versions })
}
