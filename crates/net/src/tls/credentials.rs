//! The files of TLS: the server's certificate and key, and the authorities whose clients are let in. All of
//! them are PEM. Errors are lines for the log, in the words of Redis up to the colon.
use super::authorities::{Authorities, ClientVerifier};
use super::{AuthClients, TlsSettings};
use base::reason::reason;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The server's certificate with those that sign it, and its key.
pub(super) fn certified(settings: &TlsSettings, provider: &CryptoProvider) -> Result<CertifiedKey, String> {
    let cert_file = settings.cert_file.as_deref().ok_or("No tls-cert-file configured!")?;
    let key_file = settings.key_file.as_deref().ok_or("No tls-key-file configured!")?;
    load(cert_file, (key_file, &settings.key_file_pass), provider)
}

/// The same for what is shown to other servers, if that is something else.
pub(super) fn certified_client(
    settings: &TlsSettings,
    provider: &CryptoProvider,
) -> Result<Option<CertifiedKey>, String> {
    // As in Redis one without the other is as good as none.
    let files = settings.client_cert_file.as_deref().zip(settings.client_key_file.as_deref());
    let load = |(cert_file, key_file)| load(cert_file, (key_file, &settings.client_key_file_pass), provider);
    files.map(load).transpose()
}

fn load(
    cert_file: &Path,
    (key_file, password): (&Path, &[u8]),
    provider: &CryptoProvider,
) -> Result<CertifiedKey, String> {
    let no_cert = |why: &str| format!("Failed to load certificate: {}: {why}", cert_file.display());
    let no_key = |why: &str| format!("Failed to load private key: {}: {why}", key_file.display());
    let chain = certificates(cert_file).map_err(|why| no_cert(&why))?;
    let key = key(key_file, password).map_err(|why| no_key(&why))?;
    let key = provider.key_provider.load_private_key(key).map_err(|error| no_key(&error.to_string()))?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(certified),
        Err(Error::InconsistentKeys(_)) => Err(no_key("it is not the key of the certificate")),
        // rustls cannot look into a certificate of X.509 version 1, as `openssl x509 -req` made them for
        // long. Clients may accept it all the same.
        Err(_) if holds_key(&certified) => Ok(certified),
        Err(error) => Err(no_cert(&error.to_string())),
    }
}

/// Whether the certificate has the key's public half in it, as it is encoded.
fn holds_key(certified: &CertifiedKey) -> bool {
    let (Ok(certificate), Some(key)) = (certified.end_entity_cert(), certified.key.public_key()) else {
        return false;
    };
    certificate.windows(key.len()).any(|window| window == key.as_ref())
}

/// The authorities that are trusted.
pub(super) fn authorities(settings: &TlsSettings) -> Result<Arc<Authorities>, String> {
    let files = authority_files(settings)?;
    let needs_some = settings.connects || settings.auth_clients != AuthClients::No;
    if needs_some && files.is_empty() && settings.ca_cert_dir.is_none() {
        return Err("Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-cluster, \
                    tls-replication or tls-auth-clients are enabled!"
            .into());
    }
    let mut trusted = Vec::new();
    for file in files {
        let is_named = settings.ca_cert_file.as_ref() == Some(&file);
        match certificates(&file) {
            Ok(all) => trusted.extend(all),
            Err(why) if is_named => return Err(no_authority(&file, &why)),
            // A folder may hold other things.
            Err(_) => {}
        }
    }
    Ok(Arc::new(Authorities::of(trusted)))
}

/// What decides about the certificates of clients.
pub(super) fn verifier(
    settings: &TlsSettings,
    authorities: &Arc<Authorities>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let roots = Arc::clone(&authorities.roots);
    let builder = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider));
    let built = match settings.auth_clients {
        AuthClients::No => return Ok(WebPkiClientVerifier::no_client_auth()),
        AuthClients::Optional => builder.allow_unauthenticated().build(),
        AuthClients::Yes => builder.build(),
    };
    let inner =
        built.map_err(|error| format!("Failed to configure CA certificate(s) file/directory: {error}"))?;
    Ok(Arc::new(ClientVerifier { authorities: Arc::clone(authorities), inner }))
}

/// The files in which certificates of authorities are looked for.
fn authority_files(settings: &TlsSettings) -> Result<Vec<PathBuf>, String> {
    let mut files: Vec<PathBuf> = settings.ca_cert_file.iter().cloned().collect();
    if let Some(folder) = &settings.ca_cert_dir {
        let entries = fs::read_dir(folder).map_err(|error| no_authority(folder, &reason(&error)))?;
        let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        found.retain(|path| path.is_file());
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

fn no_authority(path: &Path, why: &str) -> String {
    format!("Failed to configure CA certificate(s) file/directory: {}: {why}", path.display())
}

/// All certificates of a file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = fs::read(path).map_err(|error| reason(&error))?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match all {
        Ok(all) if all.is_empty() => Err("there is no certificate in it".into()),
        Ok(all) => Ok(all),
        Err(error) => Err(error.to_string()),
    }
}

/// The private key of a file.
fn key(path: &Path, _password: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    let text = fs::read(path).map_err(|error| reason(&error))?;
    if is_encrypted(&text) {
        return Err(
            "it is encrypted, and encrypted keys are not supported: keep it decrypted, in a file that \
                    only the server's user may read (openssl pkey -in KEY -out DECRYPTED)"
                .into(),
        );
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => "there is no private key in it".into(),
        error => error.to_string(),
    })
}

fn is_encrypted(pem: &[u8]) -> bool {
    let has = |word: &[u8]| pem.windows(word.len()).any(|window| window == word);
    has(b"BEGIN ENCRYPTED PRIVATE KEY") || has(b"Proc-Type: 4,ENCRYPTED")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tls;
    use crate::tests::certificates::Certificates;

    fn load(files: &Certificates, cert: &str, key: &str) -> Result<Tls, String> {
        let settings = TlsSettings {
            cert_file: Some(files.path(cert)),
            key_file: Some(files.path(key)),
            auth_clients: AuthClients::No,
            ..TlsSettings::default()
        };
        Tls::load(&settings)
    }

    #[test]
    fn a_certificate_of_version_1_goes_with_its_key_and_no_other() {
        let files = Certificates::new("version-1");
        let request = ["req", "-new", "-key", "server.key", "-subj", "/CN=old", "-out", "old.csr"];
        files.openssl(&request);
        files.openssl(&["x509", "-req", "-in", "old.csr", "-signkey", "server.key", "-out", "old.crt"]);
        assert!(load(&files, "old.crt", "server.key").is_ok());
        let refused = load(&files, "old.crt", "client.key").err().unwrap();
        assert!(refused.starts_with("Failed to load "), "{refused}");
    }

    #[test]
    fn keys_of_every_form_are_read_and_encrypted_ones_refused_with_a_way_out() {
        let files = Certificates::new("keys");
        files.make_rsa("rsa", Some("ca"));
        files.openssl(&["ec", "-in", "server.key", "-out", "sec1.key"]);
        files.openssl(&["rsa", "-in", "rsa.key", "-traditional", "-out", "pkcs1.key"]);
        for (cert, key) in
            [("server.crt", "server.key"), ("server.crt", "sec1.key"), ("rsa.crt", "pkcs1.key")]
        {
            assert!(load(&files, cert, key).is_ok(), "{key}");
        }
        let secret = ["-passout", "pass:secret"];
        files.openssl(&[&["ec", "-in", "server.key", "-aes256", "-out", "old.key"][..], &secret].concat());
        files.openssl(&[&["pkcs8", "-topk8", "-in", "server.key", "-out", "new.key"][..], &secret].concat());
        for key in ["old.key", "new.key"] {
            let refused = load(&files, "server.crt", key).err().unwrap();
            assert!(refused.contains("encrypted keys are not supported"), "{refused}");
        }
    }

    #[test]
    fn a_file_of_authorities_has_to_be_one_whoever_is_asked_for_certificates() {
        let files = Certificates::new("authorities");
        let loaded = |file: &str, auth_clients| {
            Tls::load(&TlsSettings {
                cert_file: Some(files.path("server.crt")),
                key_file: Some(files.path("server.key")),
                ca_cert_file: Some(files.path(file)),
                auth_clients,
                ..TlsSettings::default()
            })
        };
        for auth_clients in [AuthClients::No, AuthClients::Optional, AuthClients::Yes] {
            assert!(loaded("ca.crt", auth_clients).is_ok());
            for file in ["nowhere", "server.key"] {
                let refused = loaded(file, auth_clients).err().unwrap();
                assert!(refused.starts_with("Failed to configure CA certificate(s)"), "{refused}");
            }
        }
    }

    #[test]
    fn a_folder_of_authorities_may_hold_other_things() {
        let files = Certificates::new("folder");
        let settings = |folder: &str| TlsSettings {
            cert_file: Some(files.path("server.crt")),
            key_file: Some(files.path("server.key")),
            ca_cert_dir: Some(files.path(folder)),
            ..TlsSettings::default()
        };
        assert!(Tls::load(&settings(".")).is_ok());
        let refused = Tls::load(&settings("nowhere")).err().unwrap();
        assert!(refused.starts_with("Failed to configure CA certificate(s) file/directory: "), "{refused}");
        fs::create_dir(files.path("empty")).unwrap();
        assert!(Tls::load(&settings("empty")).is_err());
    }
}
