//! Certificates for tests of TLS, made by the `openssl` program at the time of the test: nothing secret is
//! kept in the repository. `net` and `server`, which testkit is made of, have this file among their own
//! tests.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A folder with an authority (`ca.crt`), a server and a client that it has signed (`server.crt`,
/// `server.key`, `client.crt` ...), and more where they are asked for. Removed when dropped, or when the
/// process ends: those that many tests share are in a static, which is never dropped.
pub struct Certificates {
    folder: PathBuf,
    /// Waits for the end of its input, which ends with this process whatever ends that, and removes the
    /// folder.
    remover: Child,
}

impl Certificates {
    /// Makes them in a fresh folder of the system's folder for temporary files.
    ///
    /// # Panics
    ///
    /// Where there is no `openssl`.
    pub fn new(name: &str) -> Certificates {
        let folder = std::env::temp_dir().join(format!("sardine-tls-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for certificates");
        let mut remover = Command::new("sh");
        remover.args(["-c", "read -r end; rm -rf -- \"$0\""]).arg(&folder).stdin(Stdio::piped());
        let remover = remover.spawn().expect("a shell that removes them");
        let made = Certificates { folder, remover };
        made.make("ca", None);
        made.make("server", Some("ca"));
        made.make("client", Some("ca"));
        made
    }

    /// Makes a certificate of this name, signed by the key of `signer`. Without a signer it signs itself, and
    /// is an authority.
    pub fn make(&self, name: &str, signer: Option<&str>) {
        self.make_with(name, signer, &["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    }

    /// As [`Certificates::make`], with a key of RSA of 2,048 bits instead of P-256.
    pub fn make_rsa(&self, name: &str, signer: Option<&str>) {
        self.make_with(name, signer, &["rsa:2048"]);
    }

    fn make_with(&self, name: &str, signer: Option<&str>, key: &[&str]) {
        let is_authority = if signer.is_some() { "FALSE" } else { "TRUE" };
        let config = format!(
            "[req]\ndistinguished_name=dn\nx509_extensions=ext\nprompt=no\n[dn]\nCN={name}\n[ext]\n\
             basicConstraints=critical,CA:{is_authority}\nsubjectAltName=DNS:localhost,IP:127.0.0.1\n\
             subjectKeyIdentifier=hash\n"
        );
        fs::write(self.path("openssl.cnf"), config).expect("a configuration of openssl");
        let (cert, key_file) = (format!("{name}.crt"), format!("{name}.key"));
        let signer = signer.map(|signer| (format!("{signer}.crt"), format!("{signer}.key")));
        let mut args = vec!["req", "-x509", "-config", "openssl.cnf", "-nodes", "-days", "30", "-newkey"];
        args.extend(key);
        args.extend(["-keyout", &key_file, "-out", &cert]);
        if let Some((cert, key)) = &signer {
            args.extend(["-CA", cert, "-CAkey", key]);
        }
        self.openssl(&args);
    }

    /// Runs `openssl` in the folder.
    pub fn openssl(&self, args: &[&str]) {
        let done = Command::new("openssl").args(args).current_dir(&self.folder).output();
        let done = done.expect("openssl is installed (cargo xtask setup)");
        assert!(done.status.success(), "openssl {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// The path of a file of the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The path of a file of the folder, as text.
    pub fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        drop(self.remover.stdin.take());
        let _ = self.remover.wait();
    }
}
