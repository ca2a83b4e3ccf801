//! What TLS costs beside sockets: a full handshake on the server's side, with P-256 and with RSA, and a
//! record of several sizes decrypted and encrypted. The best of several rounds, on one thread, in memory.
//!
//! `cargo run --release -p net --example tls_bench`
#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_macros, reason = "it measures")]
#[allow(dead_code, unreachable_pub, reason = "testkit uses all of it")]
#[path = "../../testkit/src/certificates.rs"]
mod certificates;

use certificates::Certificates;
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const HANDSHAKES: u32 = 100;
const RECORDS: u32 = 5000;

/// Goes on with one side as far as it can: what has come is in `from`, what it says goes to `to`.
macro_rules! go_on {
    ($conn:expr, $from:expr, $to:expr) => {
        loop {
            let UnbufferedStatus { discard, state } = $conn.process_tls_records($from);
            let mut is_blocked = false;
            match state.unwrap() {
                ConnectionState::EncodeTlsData(mut record) => {
                    let Err(EncodeError::InsufficientSize(size)) = record.encode(&mut []) else { panic!() };
                    let start = $to.len();
                    $to.resize(start + size.required_size, 0);
                    record.encode(&mut $to[start..]).unwrap();
                }
                ConnectionState::TransmitTlsData(told) => told.done(),
                ConnectionState::ReadTraffic(mut traffic) => while traffic.next_record().is_some() {},
                _ => is_blocked = true,
            }
            $from.drain(..discard);
            if is_blocked {
                break;
            }
        }
    };
}

macro_rules! seal {
    ($conn:expr, $data:expr, $to:expr) => {{
        let ConnectionState::WriteTraffic(mut traffic) = $conn.process_tls_records(&mut []).state.unwrap()
        else {
            panic!("it is blocked")
        };
        $to.resize($data.len() + 256, 0);
        let written = traffic.encrypt($data, $to).unwrap();
        $to.truncate(written);
    }};
}

type Pair = (UnbufferedClientConnection, UnbufferedServerConnection);

/// A handshake; what the server's side of it took is added to `time`.
fn greet(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>, time: &mut Duration) -> Pair {
    let mut client =
        UnbufferedClientConnection::new(Arc::clone(client), "localhost".try_into().unwrap()).unwrap();
    let mut server = UnbufferedServerConnection::new(Arc::clone(server)).unwrap();
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        go_on!(client, &mut to_client, &mut to_server);
        let start = Instant::now();
        go_on!(server, &mut to_server, &mut to_client);
        *time += start.elapsed();
    }
    (client, server)
}

fn best(mut round: impl FnMut() -> Duration) -> Duration {
    (0..ROUNDS).map(|_| round()).min().unwrap()
}

fn records((client, server): &mut Pair, size: usize) -> (Duration, Duration) {
    let (data, mut wire, mut back) = (vec![7; size], Vec::new(), Vec::new());
    let mut times = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let (mut opening, mut sealing) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..RECORDS {
            seal!(client, &data, &mut wire);
            let start = Instant::now();
            go_on!(server, &mut wire, &mut back);
            opening += start.elapsed();
            let start = Instant::now();
            seal!(server, &data, &mut back);
            sealing += start.elapsed();
            back.clear();
        }
        times = (times.0.min(opening / RECORDS), times.1.min(sealing / RECORDS));
    }
    times
}

fn main() {
    let files = Certificates::new("bench");
    files.make_rsa("rsa", Some("ca"));
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(files.path("ca.crt")).unwrap()).unwrap();
    let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.resumption = Resumption::disabled();
    let client = Arc::new(client);
    for name in ["server", "rsa"] {
        let chain = vec![CertificateDer::from_pem_file(files.path(&format!("{name}.crt"))).unwrap()];
        let key = PrivateKeyDer::from_pem_file(files.path(&format!("{name}.key"))).unwrap();
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let server = Arc::new(server);
        let time = best(|| {
            let mut time = Duration::ZERO;
            (0..HANDSHAKES).for_each(|_| drop(greet(&client, &server, &mut time)));
            time / HANDSHAKES
        });
        println!("a handshake with the certificate {name}: {time:?}");
        if name == "server" {
            let mut unused = Duration::ZERO;
            for size in [30, 500, 16_000] {
                let (opening, sealing) = records(&mut greet(&client, &server, &mut unused), size);
                println!("a record of {size} bytes: decrypted in {opening:?}, encrypted in {sealing:?}");
            }
        }
    }
}
