//! TLS to the live server (`rediss://`), with the words of redis-cli: `--cacert` names the authorities that
//! may have signed its certificate, else those of the system are asked; `--cert` and `--key` show who asks.
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{CertificateError, ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fmt::Display;
use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A server without TLS takes what begins a handshake for half a request, and waits for the rest.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// What the command line says of TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsOptions {
    pub(crate) authorities: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

/// Where systems keep the authorities that they trust, in one file: Debian, Red Hat, SUSE, Alpine.
const SYSTEMS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// A connection on which what is sent is encrypted.
pub(crate) type Secure = StreamOwned<ClientConnection, TcpStream>;

/// Shakes hands over this connection. An error says what is wrong.
pub(crate) fn secure(stream: TcpStream, host: &str, options: &TlsOptions) -> Result<Secure, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    let builder = builder.with_root_certificates(authorities(options)?);
    let config = match (&options.certificate, &options.key) {
        (Some(certificate), Some(key)) => {
            let key = PrivateKeyDer::from_pem_file(key).map_err(of_file(key))?;
            builder.with_client_auth_cert(certificates(certificate)?, key).map_err(of_file(certificate))?
        }
        (None, None) => builder.with_no_client_auth(),
        _ => return Err("--cert and --key go together".into()),
    };
    let name = ServerName::try_from(host.to_owned()).map_err(|error| format!("{host}: {error}"))?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())?;
    let mut secure = StreamOwned::new(connection, stream);
    // So that what is wrong with a certificate is said now, and not of the first request.
    let usual = secure.sock.read_timeout().map_err(|error| error.to_string())?;
    secure.sock.set_read_timeout(Some(HANDSHAKE_TIMEOUT)).map_err(|error| error.to_string())?;
    secure.conn.complete_io(&mut secure.sock).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => {
            format!("no answer to TLS for {} seconds: does it speak TLS?", HANDSHAKE_TIMEOUT.as_secs())
        }
        _ => told(&error),
    })?;
    secure.sock.set_read_timeout(usual).map_err(|error| error.to_string())?;
    Ok(secure)
}

/// What went wrong in a handshake, in words.
fn told(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(why)) => {
            format!("the certificate of the server {}", refused(why))
        }
        _ => base::reason::reason(error),
    }
}

/// Why a certificate is not taken. The library has no words for the rarer reasons but their names.
fn refused(why: &CertificateError) -> String {
    use CertificateError::*;
    match why {
        Expired | ExpiredContext { .. } => "has expired".into(),
        NotValidYet | NotValidYetContext { .. } => "is not valid yet".into(),
        NotValidForName | NotValidForNameContext { .. } => "is not for this name".into(),
        UnknownIssuer => "is signed by nobody who is known (--cacert names who may have signed it)".into(),
        other => {
            let text = format!("{other:?}");
            match text.trim_end_matches(')').rsplit('(').next() {
                Some("CaUsedAsEndEntity") => "is that of an authority".into(),
                name => format!("is refused: {}", name.unwrap_or_default()),
            }
        }
    }
}

fn of_file<E: Display>(path: &Path) -> impl Fn(E) -> String {
    move |error| format!("{}: {error}", path.display())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_file_iter(path).map_err(of_file(path))?;
    all.collect::<Result<_, _>>().map_err(of_file(path))
}

/// Those who may have signed the server's certificate.
fn authorities(options: &TlsOptions) -> Result<RootCertStore, String> {
    let system = || SYSTEMS.iter().map(PathBuf::from).find(|path| path.is_file());
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let path = options.authorities.clone().or(named).or_else(system);
    let path = path.ok_or("no file of authorities on this system: name one with --cacert")?;
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(certificates(&path)?);
    if added == 0 { Err(format!("{}: no certificate in it", path.display())) } else { Ok(store) }
}
