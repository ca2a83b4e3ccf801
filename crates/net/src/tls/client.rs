//! TLS towards another server (`tls-cluster`), for a thread that may wait: this side shows a certificate if
//! it is asked for one, and the other's has to be of an authority that is trusted. Which name it has does
//! not matter, as in Redis: servers are named by their addresses.
use super::authorities::Authorities;
use super::{Tls, TlsSettings, credentials};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned,
    SupportedProtocolVersion,
};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

/// A connection to another server.
pub struct TlsStream(StreamOwned<ClientConnection, TcpStream>);

impl TlsStream {
    /// What it goes through.
    pub fn socket(&self) -> &TcpStream {
        &self.0.sock
    }
}

impl Read for TlsStream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

impl Write for TlsStream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Tls {
    /// Begins TLS with the server at the other end, and waits for it as long as the socket's timeouts allow.
    pub fn connect(&self, mut socket: TcpStream) -> io::Result<TlsStream> {
        let name = ServerName::IpAddress(socket.peer_addr()?.ip().into());
        let config = self.client.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let connection = ClientConnection::new(Arc::clone(config), name);
        let mut connection = connection.map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        Ok(TlsStream(StreamOwned::new(connection, socket)))
    }
}

/// `certified` is shown where the settings name no other certificate for this.
pub(super) fn config(
    settings: &TlsSettings,
    (provider, versions): (&Arc<CryptoProvider>, &[&'static SupportedProtocolVersion]),
    authorities: Arc<Authorities>,
    certified: CertifiedKey,
) -> Result<ClientConfig, String> {
    let certified = credentials::certified_client(settings, provider)?.unwrap_or(certified);
    let verifier = AnyName { authorities, algorithms: provider.signature_verification_algorithms };
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(versions)
        .map_err(|error| format!("Failed to configure ciphers: {error}"))?;
    let mut config = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// Trusts every server whose certificate is of one of these authorities.
#[derive(Debug)]
struct AnyName {
    authorities: Arc<Authorities>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let (roots, algorithms) = (&self.authorities.roots, self.algorithms.all);
        let checked =
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms);
        self.authorities.or_itself(end_entity, checked, ())?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
