//! The certificates that are trusted: of authorities, and of whoever is one.
//!
//! `openssl req -x509` makes a certificate that signs itself and may sign others. Small set-ups use it for
//! all ends, as certificate and as authority. The library takes such a one for an authority only; here it is
//! also who it says, if it is among those that are trusted, byte for byte. That trusts nobody new: whoever
//! has its key can sign what is trusted anyway.
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use std::sync::Arc;

/// See the file's opener.
#[derive(Debug)]
pub(super) struct Authorities {
    pub(super) roots: Arc<RootCertStore>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Authorities {
    /// What can be read of these.
    pub(super) fn of(certificates: Vec<CertificateDer<'static>>) -> Authorities {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        Authorities { roots: Arc::new(roots), certificates }
    }

    /// `checked`, but that a certificate which is refused for being an authority is good if it is one of
    /// these. Its time has been looked at before that.
    pub(super) fn or_itself<V>(
        &self,
        certificate: &CertificateDer<'_>,
        checked: Result<V, Error>,
        good: V,
    ) -> Result<V, Error> {
        match checked {
            Err(error) if is_for_being_authority(&error) && self.certificates.contains(certificate) => {
                Ok(good)
            }
            checked => checked,
        }
    }
}

fn is_for_being_authority(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(OtherError(why))) = error else { return false };
    matches!(why.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// The same for the certificates that clients show.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    pub(super) authorities: Arc<Authorities>,
    pub(super) inner: Arc<dyn ClientCertVerifier>,
}

impl ClientCertVerifier for ClientVerifier {
    fn offer_client_auth(&self) -> bool {
        self.inner.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.inner.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let checked = self.inner.verify_client_cert(end_entity, intermediates, now);
        self.authorities.or_itself(end_entity, checked, ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
