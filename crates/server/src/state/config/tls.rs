//! The settings of TLS: the rows of that topic. What they mean together is `net`'s to check: [`net::Tls`] is
//! made of all of them when they are put in force.
use super::setting::Change::Anytime;
use super::setting::{Kind, Setting};
use super::table::{bytes_of, field, path, row};
use net::AuthClients;

const AUTH_CLIENTS: [AuthClients; 3] = [AuthClients::No, AuthClients::Yes, AuthClients::Optional];
const INT_MAX: i64 = i32::MAX as i64;

/// A file or folder; empty is none.
macro_rules! file {
    ($field:ident) => {
        Kind::Text {
            get: |c| c.tls.$field.as_deref().map(bytes_of).unwrap_or_default(),
            set: |c, text| {
                c.tls.$field = (!text.is_empty()).then(|| path(text));
                Ok(())
            },
        }
    };
}

macro_rules! bytes {
    ($field:ident) => {
        Kind::Text {
            get: |c| c.tls.$field.clone(),
            set: |c, text| {
                c.tls.$field = text.to_vec();
                Ok(())
            },
        }
    };
}

macro_rules! text {
    ($field:ident) => {
        Kind::Text {
            get: |c| c.tls.$field.clone().into_bytes(),
            set: |c, text| {
                c.tls.$field = String::from_utf8_lossy(text).into_owned();
                Ok(())
            },
        }
    };
}

/// Whether TLS is spoken with replicas. There are none yet, but as in Redis it wants certificates.
pub(super) const WITH_REPLICAS: &str = "tls-replication";

/// Whether a change of the setting of this name has to be put in force as TLS.
pub(crate) fn is_of_tls(name: &str) -> bool {
    ROWS.iter().any(|row| row.name == name) || name == WITH_REPLICAS
}

pub(super) const ROWS: &[Setting] = &[
    row(
        "tls-port",
        Anytime,
        Kind::Int {
            min: 0,
            max: 65_535,
            get: |c| i64::from(c.tls_port),
            set: |c, n| {
                c.tls_port = n as u16;
                Ok(())
            },
        },
        "The TCP port for clients that speak TLS; 0 is none. It listens on the addresses of `bind`.",
        "Set it where requests cross a network that others can read, with `port 0` if nobody may come without TLS.",
    ),
    row(
        "tls-cert-file",
        Anytime,
        file!(cert_file),
        "The server's certificate, in PEM, with those that lead to its authority behind it. CONFIG SET reads the file \
         again, also under the same name; connections that are there keep what they began with.",
        "Set it with `tls-port`; set it again, together with `tls-key-file`, when the certificate was renewed.",
    ),
    row(
        "tls-key-file",
        Anytime,
        file!(key_file),
        "The private key of the certificate, in PEM.",
        "Set it with `tls-port`. Nobody but the server's user should be able to read the file.",
    ),
    row(
        "tls-key-file-pass",
        Anytime,
        bytes!(key_file_pass),
        "The password of an encrypted private key. Encrypted keys are not supported: one is refused, with the command \
         that decrypts it.",
        "There is no reason to: it is kept for old configuration files.",
    )
    .secret(),
    row(
        "tls-ca-cert-file",
        Anytime,
        file!(ca_cert_file),
        "The certificates of the authorities whose clients are let in, and to whose servers MIGRATE sends keys, in \
         PEM.",
        "Set it, or `tls-ca-cert-dir`, unless `tls-auth-clients` and `tls-cluster` are `no`.",
    ),
    row(
        "tls-ca-cert-dir",
        Anytime,
        file!(ca_cert_dir),
        "A folder with such certificates: all files in it are read, when the settings are put in force.",
        "Set it where authorities come and go as files.",
    ),
    row(
        "tls-cluster",
        Anytime,
        field!(bool tls_cluster),
        "Whether MIGRATE speaks TLS with the server that it sends keys to, whose certificate has to be of an authority \
         in `tls-ca-cert-file` or `tls-ca-cert-dir`.",
        "Turn it on where keys are sent across a network that others can read; the port to name is then the other \
         server's `tls-port`.",
    ),
    row(
        "tls-client-cert-file",
        Anytime,
        file!(client_cert_file),
        "The certificate that is shown to other servers, in PEM, where it is not that of `tls-cert-file`.",
        "Set it, with `tls-client-key-file`, where the server's certificate is for servers alone.",
    ),
    row(
        "tls-client-key-file",
        Anytime,
        file!(client_key_file),
        "The private key of that certificate, in PEM.",
        "Set it with `tls-client-cert-file`. Nobody but the server's user should be able to read the file.",
    ),
    row(
        "tls-client-key-file-pass",
        Anytime,
        bytes!(client_key_file_pass),
        "The password of that key, if it is encrypted, which is not supported.",
        "There is no reason to: it is kept for old configuration files.",
    )
    .secret(),
    row(
        "tls-auth-clients",
        Anytime,
        Kind::Word {
            words: &["no", "yes", "optional"],
            get: |c| AUTH_CLIENTS.iter().position(|a| *a == c.tls.auth_clients).unwrap_or(0),
            set: |c, n| {
                c.tls.auth_clients = AUTH_CLIENTS[n];
                Ok(())
            },
        },
        "Whether clients on `tls-port` have to show a certificate of an authority that is trusted; `optional` checks \
         one that is shown.",
        "Set it to `no` where passwords decide who may connect, and TLS only hides what is said.",
    ),
    row(
        "tls-protocols",
        Anytime,
        text!(protocols),
        "The versions of TLS that are spoken: `TLSv1.2`, `TLSv1.3`, or both in one word with a space. Empty is both.",
        "Set it to `TLSv1.3` where all clients speak it.",
    ),
    row(
        "tls-ciphers",
        Anytime,
        text!(ciphers),
        "The cipher suites of TLS 1.2, as a list of OpenSSL. Empty is all that there are: ECDHE with AES-GCM or \
         ChaCha20-Poly1305.",
        "Only where a rule says which are allowed.",
    ),
    row(
        "tls-ciphersuites",
        Anytime,
        text!(ciphersuites),
        "The cipher suites of TLS 1.3, with colons between. Empty is all that there are: `TLS_AES_256_GCM_SHA384`, \
         `TLS_CHACHA20_POLY1305_SHA256`, `TLS_AES_128_GCM_SHA256`.",
        "Only where a rule says which are allowed.",
    ),
    row(
        "tls-prefer-server-ciphers",
        Anytime,
        field!(bool tls.prefers_server_ciphers),
        "Take the suite that comes first in the server's list, not in the client's.",
        "Turn it on where clients put a slow suite first.",
    ),
    row(
        "tls-session-caching",
        Anytime,
        field!(bool tls.caches_sessions),
        "Let clients resume a session when they connect again, which spares both sides the expensive part of a \
         handshake.",
        "Turn it off where every connection must begin with keys of its own.",
    ),
    row(
        "tls-session-cache-size",
        Anytime,
        field!(int 0, INT_MAX, tls.session_cache_size as u32),
        "How many sessions are kept for that, each for one connection; 0 is 20480. The oldest goes first.",
        "Raise it where more clients than that come back again and again.",
    ),
    row(
        "tls-session-cache-timeout",
        Anytime,
        field!(int 0, INT_MAX, tls.session_cache_timeout_s as u32),
        "For how many seconds a session can be resumed.",
        "Raise it where clients come back after longer pauses.",
    ),
    row(
        "max-new-tls-connections-per-cycle",
        Anytime,
        field!(int 1, 1000, tls.handshakes_per_turn as u32),
        "How many handshakes a worker takes up in one turn of its event loop. Each takes up to half a millisecond of \
         its processor, in which its other clients wait.",
        "Raise it where many clients connect at once and may make others wait.",
    ),
];
