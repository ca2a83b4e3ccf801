//! TLS over every engine, with rustls as the client: bytes of any split either way, ends and failures at
//! every moment, handshakes that stall.
use super::certificates::Certificates;
use super::{LIMIT, Rig, on_every_engine, pattern};
use crate::tls_engine::SESSION_BYTES;
use crate::{AuthClients, CloseWhen, ConnId, Tls, TlsSettings};
use base::random::Random;
use rustls::crypto::aws_lc_rs;
use rustls::crypto::cipher::{MessageEncrypter, OutboundChunks, OutboundPlainMessage};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, ConnectionTrafficSecrets, ContentType, HandshakeKind};
use rustls::{ProtocolVersion, RootCertStore, SupportedCipherSuite, SupportedProtocolVersion, version};
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

on_every_engine! {
    requests_and_replies_arrive_in_every_version
    what_is_asked_for_is_not_exceeded_whatever_the_split
    large_transfers_reach_either_side
    what_comes_with_the_last_words_of_a_handshake_is_told
    plain_connections_are_served_beside
    the_end_of_a_peer_is_told_behind_its_bytes
    a_peer_that_has_ended_gets_its_reply
    what_is_owed_and_the_last_words_are_sent_before_a_close
    what_is_sent_before_the_handshake_is_done_waits_for_it
    a_close_at_once_sends_close_notify
    what_waits_for_its_turn_is_encrypted_in_its_place_and_offered_before_a_close
    clients_show_certificates_as_they_have_to
    sessions_are_resumed_where_they_are_kept
    garbage_ends_a_handshake_and_is_said
    a_record_that_was_changed_ends_the_connection_behind_what_came_before
    a_message_in_pieces_leaves_sending_alone
    a_peer_that_goes_in_the_handshake_is_told_of
    a_handshake_that_stalls_is_ended
    a_handshake_that_waits_for_its_turn_has_its_time_again
    those_who_come_and_go_take_no_turns
    who_has_left_behind_its_hello_is_not_answered
    who_was_answered_goes_on_before_those_who_begin
    a_handshake_that_is_done_is_not
    handshakes_have_turns
    idle_connections_hold_nothing
    a_pause_holds_back_what_is_there_already
    pausing_after_readable_keeps_what_is_there_already
    random_sizes_and_closes_lose_nothing
    changed_handshakes_end_and_harm_nobody
    new_keys_without_end_are_refused
}

static FILES: LazyLock<Certificates> = LazyLock::new(|| {
    let files = Certificates::new("net");
    files.make("stranger", None);
    files.make("over", None);
    files.openssl(&["x509", "-in", "over.crt", "-signkey", "over.key", "-days", "-1", "-out", "over.crt"]);
    files
});

fn settings() -> TlsSettings {
    TlsSettings {
        cert_file: Some(FILES.path("server.crt")),
        key_file: Some(FILES.path("server.key")),
        ca_cert_file: Some(FILES.path("ca.crt")),
        auth_clients: AuthClients::No,
        ..TlsSettings::default()
    }
}

fn tls() -> Tls {
    Tls::load(&settings()).unwrap()
}

fn client_config(certificate: Option<&str>, versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(FILES.path("ca.crt")).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots);
    match certificate {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let chain = vec![CertificateDer::from_pem_file(FILES.path(&format!("{name}.crt"))).unwrap()];
            let key = PrivateKeyDer::from_pem_file(FILES.path(&format!("{name}.key"))).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    }
}

/// A client whose socket never blocks.
struct Client {
    conn: ClientConnection,
    socket: TcpStream,
    got: Vec<u8>,
    has_ended: bool,
    error: Option<String>,
}

impl Client {
    fn over(socket: TcpStream, config: &Arc<ClientConfig>) -> Client {
        socket.set_nonblocking(true).unwrap();
        let conn = ClientConnection::new(Arc::clone(config), "localhost".try_into().unwrap()).unwrap();
        Client { conn, socket, got: Vec::new(), has_ended: false, error: None }
    }

    /// Sends and receives what can be sent and received now.
    fn go_on(&mut self) {
        while self.conn.wants_write() && self.conn.write_tls(&mut self.socket).is_ok() {}
        loop {
            match self.conn.read_tls(&mut self.socket) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            match self.conn.process_new_packets() {
                Ok(state) => {
                    let start = self.got.len();
                    self.got.resize(start + state.plaintext_bytes_to_read(), 0);
                    self.conn.reader().read_exact(&mut self.got[start..]).unwrap();
                    self.has_ended |= state.peer_has_closed();
                }
                Err(error) => self.error = Some(error.to_string()),
            }
        }
        while self.conn.wants_write() && self.conn.write_tls(&mut self.socket).is_ok() {}
    }

    fn write(&mut self, bytes: &[u8]) {
        self.conn.writer().write_all(bytes).unwrap();
        self.go_on();
    }
}

impl Rig {
    fn connect_raw(&mut self, tls: &Tls) -> (TcpStream, ConnId) {
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        self.until("the connection", |rig| !rig.accepted.is_empty());
        let accepted = self.accepted.pop_front().unwrap();
        (socket, self.engine.adopt_with(accepted, tls).unwrap())
    }

    fn connect_with(&mut self, tls: &Tls, config: &Arc<ClientConfig>) -> (Client, ConnId) {
        let (socket, id) = self.connect_raw(tls);
        (Client::over(socket, config), id)
    }

    fn with_handshake(&mut self, tls: &Tls) -> (Client, ConnId) {
        let (mut client, id) = self.connect_with(tls, &Arc::new(client_config(None, rustls::ALL_VERSIONS)));
        self.until_handshake_done(&mut client);
        (client, id)
    }

    fn until_handshake_done(&mut self, client: &mut Client) {
        self.until("the handshake", |_| {
            client.go_on();
            !client.conn.is_handshaking()
        });
    }

    fn until_got(&mut self, client: &mut Client, bytes: &[u8]) {
        self.until("the reply", |_| {
            client.go_on();
            client.got.len() >= bytes.len()
        });
        assert!(client.got == bytes);
        client.got.clear();
    }
}

fn requests_and_replies_arrive_in_every_version(mut rig: Rig) {
    for version in [&version::TLS12, &version::TLS13] {
        let (mut client, id) = rig.connect_with(&tls(), &Arc::new(client_config(None, &[version])));
        for round in 0..50 {
            client.write(format!("ping {round}").as_bytes());
            rig.inbox.clear();
            rig.until("the request", |rig| {
                client.go_on();
                !rig.received(id).is_empty()
            });
            assert_eq!(rig.received(id), format!("ping {round}").as_bytes());
            rig.send(id, b"pong");
            rig.until_got(&mut client, b"pong");
        }
        assert_eq!(client.conn.protocol_version(), Some(version.version));
        assert_eq!(rig.engine.unsent_bytes(id), 0);
    }
}

/// The rig checks that no `receive` brings more than it asks for.
fn what_is_asked_for_is_not_exceeded_whatever_the_split(mut rig: Rig) {
    let tls = tls();
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let (mut client, id) = rig.with_handshake(&tls);
        let sent = pattern(120_000);
        let mut rest = &sent[..];
        rig.receive_limit = 1 + random.below(20_000) as usize;
        while !rest.is_empty() {
            let n = (1 + random.below(30_000) as usize).min(rest.len());
            client.write(&rest[..n]);
            rest = &rest[n..];
            if random.below(2) == 0 {
                rig.poll(Duration::ZERO);
                rig.receive_all();
            }
        }
        rig.until("all of it", |rig| {
            client.go_on();
            rig.received(id).len() >= sent.len()
        });
        assert!(rig.received(id) == sent, "seed {seed}");
        assert_eq!(rig.engine.tls_bytes(id), SESSION_BYTES);
    }
}

fn large_transfers_reach_either_side(mut rig: Rig) {
    let (mut client, id) = rig.with_handshake(&tls());
    let (up, down) = (pattern(6 << 20), pattern(9 << 20));
    rig.send(id, &down);
    let mut rest = &up[..];
    rig.until("both", |rig| {
        if !rest.is_empty() && !client.conn.wants_write() {
            let n = rest.len().min(50_000);
            client.write(&rest[..n]);
            rest = &rest[n..];
        }
        client.go_on();
        rig.received(id).len() == up.len() && client.got.len() == down.len()
    });
    assert!(rig.received(id) == up && client.got == down);
}

fn what_comes_with_the_last_words_of_a_handshake_is_told(mut rig: Rig) {
    let (mut client, id) = rig.connect_with(&tls(), &Arc::new(client_config(None, &[&version::TLS13])));
    // rustls keeps it until it may be sent, and then sends it behind its last message.
    client.conn.writer().write_all(b"SET k v").unwrap();
    rig.until("the request", |rig| {
        client.go_on();
        rig.received(id) == b"SET k v"
    });
}

fn plain_connections_are_served_beside(mut rig: Rig) {
    let (mut secure, secure_id) = rig.with_handshake(&tls());
    let (mut plain, plain_id) = rig.connect();
    for _ in 0..20 {
        rig.inbox.clear();
        secure.write(b"by TLS");
        plain.write_all(b"plain").unwrap();
        rig.until("both", |rig| rig.received(secure_id).len() == 6 && rig.received(plain_id).len() == 5);
        rig.send(plain_id, b"to plain");
        rig.send(secure_id, b"to TLS");
        assert_eq!(rig.replied(&mut plain, 8), b"to plain");
        rig.until_got(&mut secure, b"to TLS");
    }
    rig.close(secure_id, CloseWhen::Now);
    rig.until_gone(secure_id);
    plain.write_all(b"still").unwrap();
    rig.until("the last", |rig| rig.received(plain_id).ends_with(b"still"));
}

fn the_end_of_a_peer_is_told_behind_its_bytes(mut rig: Rig) {
    for shuts_down in [false, true] {
        let (mut client, id) = rig.with_handshake(&tls());
        client.conn.writer().write_all(b"the last").unwrap();
        client.conn.send_close_notify();
        client.go_on();
        if shuts_down {
            client.socket.shutdown(Shutdown::Write).unwrap();
        }
        rig.until("the end", |rig| rig.has_ended(id));
        assert_eq!(rig.received(id), b"the last");
        rig.settle();
        assert!(!rig.gone.contains(&id));
    }
    let (mut client, id) = rig.with_handshake(&tls());
    client.write(b"no goodbye");
    drop(client);
    rig.until("the end", |rig| rig.has_ended(id) || rig.gone.contains(&id));
    assert_eq!(rig.received(id), b"no goodbye");
}

fn a_peer_that_has_ended_gets_its_reply(mut rig: Rig) {
    let (mut client, id) = rig.with_handshake(&tls());
    client.conn.writer().write_all(b"GET k").unwrap();
    client.conn.send_close_notify();
    client.go_on();
    rig.until("the end", |rig| rig.has_ended(id));
    rig.send(id, b"v");
    rig.close(id, CloseWhen::Flushed);
    rig.until_gone(id);
    rig.until_got(&mut client, b"v");
    assert!(client.has_ended);
    // It goes on sending: nobody hears it, and nothing spins.
    let _ = client.socket.write_all(&pattern(1000));
}

fn what_is_owed_and_the_last_words_are_sent_before_a_close(mut rig: Rig) {
    let (mut client, id) = rig.with_handshake(&tls());
    let owed = pattern(3 << 20);
    rig.send(id, &owed);
    rig.close(id, CloseWhen::Flushed);
    rig.until("the last words", |_| {
        client.go_on();
        client.has_ended
    });
    assert!(client.got == owed);
    rig.until_gone(id);
}

fn what_is_sent_before_the_handshake_is_done_waits_for_it(mut rig: Rig) {
    let (mut client, id) = rig.connect_with(&tls(), &Arc::new(client_config(None, rustls::ALL_VERSIONS)));
    rig.send(id, b"-DENIED you are not wanted\r\n");
    assert_eq!(rig.engine.unsent_bytes(id), 28);
    rig.close(id, CloseWhen::Flushed);
    rig.until_got(&mut client, b"-DENIED you are not wanted\r\n");
    rig.until_gone(id);
    client.go_on();
    assert!(client.has_ended);
}

fn a_close_at_once_sends_close_notify(mut rig: Rig) {
    let (mut client, id) = rig.with_handshake(&tls());
    rig.settle();
    rig.close(id, CloseWhen::Now);
    rig.until_gone(id);
    rig.until("the last words", |_| {
        client.go_on();
        client.has_ended
    });
}

fn what_waits_for_its_turn_is_encrypted_in_its_place_and_offered_before_a_close(mut rig: Rig) {
    let tls = tls();
    let mut clients: Vec<_> = (0..30).map(|_| rig.with_handshake(&tls)).collect();
    rig.settle();
    for (at, (_, id)) in clients.iter().enumerate() {
        rig.engine.send_in_turn(*id, &mut b"message ".to_vec());
        if at % 3 == 0 {
            rig.send(*id, b"reply ");
        }
        rig.engine.send_in_turn(*id, &mut b"another".to_vec());
    }
    for (_, id) in clients.iter().skip(20) {
        rig.close(*id, CloseWhen::Now);
    }
    for (at, (client, _)) in clients.iter_mut().enumerate() {
        let all: &[u8] = if at % 3 == 0 { b"message reply another" } else { b"message another" };
        rig.until_got(client, all);
        if at >= 20 {
            rig.until("the last words", |_| {
                client.go_on();
                client.has_ended
            });
        }
    }
    assert_eq!(rig.engine.in_turn_bytes(), 0);
}

fn clients_show_certificates_as_they_have_to(mut rig: Rig) {
    // An authority is also who it says, if it is trusted; one whose time is over is not.
    let cases = [
        (AuthClients::Yes, Some("ca"), true),
        (AuthClients::Optional, Some("ca"), true),
        (AuthClients::Yes, Some("over"), false),
        (AuthClients::No, None, true),
        (AuthClients::No, Some("stranger"), true),
        (AuthClients::Yes, None, false),
        (AuthClients::Yes, Some("client"), true),
        (AuthClients::Yes, Some("stranger"), false),
        (AuthClients::Optional, None, true),
        (AuthClients::Optional, Some("client"), true),
        (AuthClients::Optional, Some("stranger"), false),
    ];
    for (auth_clients, certificate, is_let_in) in cases {
        for version in [&version::TLS12, &version::TLS13] {
            let ca_cert_file = certificate.filter(|name| *name == "over").map(|_| FILES.path("over.crt"));
            let ca_cert_file = ca_cert_file.or(settings().ca_cert_file);
            let tls = Tls::load(&TlsSettings { auth_clients, ca_cert_file, ..settings() }).unwrap();
            let (mut client, id) = rig.connect_with(&tls, &Arc::new(client_config(certificate, &[version])));
            client.conn.writer().write_all(b"hello").unwrap();
            rig.until("a decision", |rig| {
                client.go_on();
                rig.received(id) == b"hello" || rig.gone.contains(&id)
            });
            assert_eq!(!rig.gone.contains(&id), is_let_in, "{auth_clients:?} {certificate:?}");
            if !is_let_in {
                assert_eq!(rig.unsecured.pop().unwrap().0, id);
                rig.until("the alert", |_| {
                    client.go_on();
                    client.error.is_some()
                });
                let alert = client.error.unwrap();
                assert!(alert.contains("ertificate") || alert.contains("UnknownCA"), "{alert}");
            }
        }
    }
}

fn sessions_are_resumed_where_they_are_kept(mut rig: Rig) {
    for caches_sessions in [true, false] {
        for version in [&version::TLS12, &version::TLS13] {
            let tls = Tls::load(&TlsSettings { caches_sessions, ..settings() }).unwrap();
            let config = Arc::new(client_config(None, &[version]));
            let mut kinds = Vec::new();
            for _ in 0..2 {
                let (mut client, id) = rig.connect_with(&tls, &config);
                client.conn.writer().write_all(b"x").unwrap();
                rig.until("the request", |rig| {
                    client.go_on();
                    rig.received(id) == b"x"
                });
                rig.send(id, b"y");
                rig.until_got(&mut client, b"y");
                kinds.push(client.conn.handshake_kind().unwrap());
            }
            let second = if caches_sessions { HandshakeKind::Resumed } else { HandshakeKind::Full };
            assert_eq!(kinds, [HandshakeKind::Full, second], "{version:?}");
        }
    }
}

fn garbage_ends_a_handshake_and_is_said(mut rig: Rig) {
    let tls = tls();
    let mut random = Random::new(1);
    let mut noise = || (0..300).map(|_| random.below(256) as u8).collect::<Vec<u8>>();
    let mut too_long = vec![22, 3, 1, 0xff, 0xff];
    too_long.resize(70_000, 1);
    let cases = [
        b"PING\r\n".to_vec(),
        b"*1\r\n$4\r\nPING\r\n".to_vec(),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        b"\x15\x03\x01\x00\x02\x02\x28".to_vec(),
        b"\x16\x03\x01\x00\x05\x01\xff\xff\xff\xff".to_vec(),
        too_long,
        noise(),
        noise(),
        noise(),
    ];
    for bytes in cases {
        let (mut socket, id) = rig.connect_raw(&tls);
        let _ = socket.write_all(&bytes);
        let _ = socket.shutdown(Shutdown::Write);
        rig.until_gone(id);
        assert_eq!(rig.unsecured.pop().map(|(id, _)| id), Some(id), "{:?}", &bytes[..5]);
        assert!(rig.received(id).is_empty());
    }
}

fn a_record_that_was_changed_ends_the_connection_behind_what_came_before(mut rig: Rig) {
    let (mut client, id) = rig.with_handshake(&tls());
    rig.settle();
    client.conn.writer().write_all(b"good").unwrap();
    client.conn.writer().write_all(b"bad").unwrap();
    let mut bytes = Vec::new();
    while client.conn.wants_write() {
        client.conn.write_tls(&mut bytes).unwrap();
    }
    *bytes.last_mut().unwrap() ^= 1;
    client.socket.write_all(&bytes).unwrap();
    rig.until_gone(id);
    assert_eq!(rig.received(id), b"good");
    rig.until("the alert", |_| {
        client.go_on();
        client.error.is_some()
    });
    assert!(client.error.unwrap().contains("BadRecordMac"));
    assert!(rig.unsecured.is_empty(), "its handshake was done");
}

/// A message of the handshake (new keys) of which a part has come lies where rustls expects it, also when
/// something is sent before the rest comes.
fn a_message_in_pieces_leaves_sending_alone(mut rig: Rig) {
    let mut config = client_config(None, &[&version::TLS13]);
    config.enable_secret_extraction = true;
    let (mut client, id) = rig.connect_with(&tls(), &Arc::new(config));
    rig.until_handshake_done(&mut client);
    let Client { conn, mut socket, .. } = client;
    let (mut encrypter, mut seq) = encrypter_of(conn);
    let mut send = |piece: &[u8]| {
        let message = OutboundPlainMessage {
            typ: ContentType::Handshake,
            version: ProtocolVersion::TLSv1_2,
            payload: OutboundChunks::Single(piece),
        };
        socket.write_all(&encrypter.encrypt(message, seq).unwrap().encode()).unwrap();
        seq += 1;
    };
    for piece in [&[24][..], &[0], &[0, 1]] {
        send(piece);
        rig.until("a part", |rig| rig.engine.tls_bytes(id) > SESSION_BYTES);
        rig.settle();
        rig.send(id, b"in between");
        rig.settle();
    }
    send(&[1]);
    rig.until("all of it", |rig| rig.engine.tls_bytes(id) == SESSION_BYTES);
    rig.send(id, b"behind it");
    rig.close(id, CloseWhen::Flushed);
    rig.until_gone(id);
}

/// What encrypts as this client would, and the number of its next record.
fn encrypter_of(conn: ClientConnection) -> (Box<dyn MessageEncrypter>, u64) {
    let Some(SupportedCipherSuite::Tls13(suite)) = conn.negotiated_cipher_suite() else { panic!("TLS 1.3") };
    let (seq, secrets) = conn.dangerous_extract_secrets().unwrap().tx;
    let ConnectionTrafficSecrets::Aes256Gcm { key, iv } = secrets else { panic!("the first suite") };
    (suite.aead_alg.encrypter(key, iv), seq)
}

fn a_peer_that_goes_in_the_handshake_is_told_of(mut rig: Rig) {
    let tls = tls();
    let config = Arc::new(client_config(None, rustls::ALL_VERSIONS));
    let mut hello = Vec::new();
    let mut conn = ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap();
    conn.write_tls(&mut hello).unwrap();
    for resets in [false, true] {
        for len in [0, 1, 4, 5, 6, hello.len() - 1, hello.len()] {
            let (mut socket, id) = rig.connect_raw(&tls);
            socket.write_all(&hello[..len]).unwrap();
            rig.settle();
            if resets {
                SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
            }
            drop(socket);
            rig.until_gone(id);
            assert_eq!(rig.unsecured.pop().map(|(id, _)| id), Some(id), "{len} of {}", hello.len());
        }
    }
}

fn a_handshake_that_stalls_is_ended(mut rig: Rig) {
    let tls = Tls { handshake_ms: 20, ..tls() };
    let mut sockets = Vec::new();
    for round in 0..100 {
        let (mut socket, id) = rig.connect_raw(&tls);
        socket.write_all(&b"\x16\x03\x01\x02\x00\x01"[..round % 6]).unwrap();
        sockets.push((socket, id));
    }
    rig.until("every Gone", |rig| rig.gone.len() == sockets.len());
    assert_eq!(rig.unsecured.len(), sockets.len());
    assert!(rig.unsecured.iter().all(|(_, why)| why == "timed out"), "{:?}", rig.unsecured[0]);
}

fn a_handshake_that_waits_for_its_turn_has_its_time_again(mut rig: Rig) {
    let tls = Tls { handshake_ms: 100, handshakes_per_turn: 1, ..tls() };
    let config = Arc::new(client_config(None, &[&version::TLS13]));
    let sockets: Vec<_> = (0..3).map(|_| TcpStream::connect(rig.address).unwrap()).collect();
    rig.until("the connections", |rig| rig.accepted.len() == 3);
    let mut clients: Vec<_> = sockets.into_iter().map(|socket| Client::over(socket, &config)).collect();
    clients.iter_mut().for_each(Client::go_on);
    let due = crate::now().0 + 100;
    for accepted in std::mem::take(&mut rig.accepted) {
        rig.engine.adopt_with(accepted, &tls).unwrap();
    }
    // One is taken up. The others are overdue when the next poll comes.
    rig.poll(Duration::from_millis(50));
    while crate::now().0 <= due {
        std::hint::spin_loop();
    }
    let mut answered = [false; 2];
    rig.until("the answers", |_| {
        for (client, answered) in clients[1..].iter().zip(&mut answered) {
            *answered |= client.socket.peek(&mut [0]).is_ok_and(|count| count > 0);
        }
        answered == [true; 2]
    });
}

fn those_who_come_and_go_take_no_turns(mut rig: Rig) {
    let tls = Tls { handshakes_per_turn: 1, ..tls() };
    let mut gone: Vec<_> = (0..50).map(|_| rig.connect_raw(&tls)).collect();
    for (socket, _) in &mut gone {
        socket.write_all(b"\x16").unwrap();
    }
    let config = Arc::new(client_config(None, &[&version::TLS13]));
    let (mut client, id) = rig.connect_with(&tls, &config);
    client.go_on();
    // Closed by their side of the engine, as by `maxclients` or a command.
    gone.iter().for_each(|(_, id)| rig.engine.close(*id, CloseWhen::Now));
    let has_answer = |socket: &TcpStream| socket.peek(&mut [0]).is_ok();
    let mut polls = 0;
    rig.until("the answer", |_| {
        polls += 1;
        has_answer(&client.socket)
    });
    assert!(polls < 25, "{polls} polls for {id:?}");
}

fn who_has_left_behind_its_hello_is_not_answered(mut rig: Rig) {
    let tls = tls();
    let config = Arc::new(client_config(None, &[&version::TLS13]));
    let socket = TcpStream::connect(rig.address).unwrap();
    let mut client = Client::over(socket, &config);
    client.go_on();
    client.socket.shutdown(Shutdown::Write).unwrap();
    rig.until("the connection", |rig| !rig.accepted.is_empty());
    let accepted = rig.accepted.pop_front().unwrap();
    let id = rig.engine.adopt_with(accepted, &tls).unwrap();
    rig.until_gone(id);
    assert_eq!(rig.unsecured.len(), 1);
    client.socket.set_nonblocking(false).unwrap();
    let mut answer = Vec::new();
    let _ = client.socket.read_to_end(&mut answer);
    assert_eq!(answer, b"");
}

fn who_was_answered_goes_on_before_those_who_begin(mut rig: Rig) {
    const OTHERS: usize = 40;
    let tls = Tls { handshakes_per_turn: 1, ..tls() };
    let config = Arc::new(client_config(None, &[&version::TLS13]));
    let (mut client, id) = rig.connect_with(&tls, &config);
    client.go_on();
    rig.until("the answer", |_| client.socket.peek(&mut [0]).is_ok());
    let mut others: Vec<_> =
        (0..OTHERS).map(|_| Client::over(TcpStream::connect(rig.address).unwrap(), &config)).collect();
    rig.until("the connections", |rig| rig.accepted.len() == OTHERS);
    for accepted in std::mem::take(&mut rig.accepted) {
        rig.engine.adopt_with(accepted, &tls).unwrap();
    }
    others.iter_mut().for_each(Client::go_on);
    rig.poll(Duration::from_millis(50));
    client.go_on();
    client.write(b"here");
    let mut polls = 0;
    rig.until("the request", |rig| {
        polls += 1;
        rig.received(id) == b"here"
    });
    assert!(polls < OTHERS / 2, "{polls} polls");
}

fn a_handshake_that_is_done_is_not(mut rig: Rig) {
    let tls = Tls { handshake_ms: 200, ..tls() };
    let config = Arc::new(client_config(None, rustls::ALL_VERSIONS));
    // On a machine so slow that none is done in time there would be nothing to see.
    let mut done = Vec::new();
    for _ in 0..20 {
        let (mut client, id) = rig.connect_with(&tls, &config);
        rig.until("a decision", |rig| {
            client.go_on();
            !client.conn.is_handshaking() || rig.gone.contains(&id)
        });
        rig.settle();
        if !rig.gone.contains(&id) {
            done.push((client, id));
        }
        if done.len() == 3 {
            break;
        }
    }
    // The time of one that says nothing is over after theirs.
    let (_silent, id) = rig.connect_with(&tls, &config);
    rig.until_gone(id);
    for (client, id) in &mut done {
        client.write(b"here");
        rig.until_received(*id, b"here");
    }
}

fn handshakes_have_turns(mut rig: Rig) {
    let tls = Tls { handshakes_per_turn: 2, ..tls() };
    let config = Arc::new(client_config(None, &[&version::TLS13]));
    let mut clients: Vec<_> = (0..9).map(|_| rig.connect_with(&tls, &config)).collect();
    clients.iter_mut().for_each(|(client, _)| client.go_on());
    // All of them wait; each poll takes up two.
    let has_answer = |socket: &TcpStream| socket.peek(&mut [0]).is_ok();
    let mut answered = 0;
    rig.until("every answer", |_| {
        let now = clients.iter().filter(|(client, _)| has_answer(&client.socket)).count();
        assert!(now <= answered + 2, "{now} after {answered}");
        answered = now;
        now == clients.len()
    });
    for (client, _) in &mut clients {
        rig.until_handshake_done(client);
    }
}

fn idle_connections_hold_nothing(mut rig: Rig) {
    let (mut client, id) = rig.with_handshake(&tls());
    assert_eq!(rig.engine.tls_bytes(id), SESSION_BYTES);
    client.conn.writer().write_all(&pattern(10_000)).unwrap();
    let mut bytes = Vec::new();
    client.conn.write_tls(&mut bytes).unwrap();
    client.socket.write_all(&bytes[..4000]).unwrap();
    rig.until("a part", |rig| rig.engine.tls_bytes(id) >= SESSION_BYTES + 4000);
    assert!(rig.received(id).is_empty() && rig.engine.tls_bytes(id) < SESSION_BYTES + 5000);
    client.socket.write_all(&bytes[4000..]).unwrap();
    rig.until_received(id, &pattern(10_000));
    assert_eq!(rig.engine.tls_bytes(id), SESSION_BYTES);
}

fn a_pause_holds_back_what_is_there_already(mut rig: Rig) {
    let (mut client, id) = rig.with_handshake(&tls());
    rig.receive_limit = 100;
    client.write(&pattern(1000));
    rig.until("a part", |rig| rig.received(id).len() == 100);
    rig.engine.pause(id);
    rig.settle();
    assert_eq!(rig.received(id).len(), 100);
    rig.engine.resume(id);
    rig.until_received(id, &pattern(1000));
}

/// Whoever serves it is told, and pauses instead of receiving: told again after the pause.
fn pausing_after_readable_keeps_what_is_there_already(mut rig: Rig) {
    let (mut client, id) = rig.with_handshake(&tls());
    rig.receive_limit = 100;
    client.conn.writer().write_all(&pattern(1000)).unwrap();
    client.conn.send_close_notify();
    client.go_on();
    rig.until("a part", |rig| rig.received(id).len() == 100);
    for part in 2..=10 {
        while rig.readable.is_empty() {
            rig.poll(LIMIT);
        }
        rig.readable.clear();
        rig.engine.pause(id);
        rig.poll(Duration::ZERO);
        assert!(rig.readable.is_empty());
        rig.engine.resume(id);
        rig.until("the next part", |rig| rig.received(id).len() == part * 100);
    }
    rig.engine.pause(id);
    rig.poll(Duration::ZERO);
    rig.engine.resume(id);
    rig.until("the end", |rig| rig.has_ended(id));
}

fn random_sizes_and_closes_lose_nothing(mut rig: Rig) {
    let tls = tls();
    for seed in 0..3 {
        let mut random = Random::new(seed);
        for _ in 0..15 {
            let (mut client, id) = rig.with_handshake(&tls);
            let (mut sent, mut expected) = (Vec::new(), Vec::new());
            rig.receive_limit = 1 + random.below(70_000) as usize;
            for _ in 0..random.below(30) {
                let max = if random.below(8) == 0 { 60_000 } else { 300 };
                let data = pattern(1 + random.below(max) as usize);
                match random.below(4) {
                    0 | 1 => {
                        client.write(&data);
                        sent.extend_from_slice(&data);
                    }
                    2 => {
                        rig.send(id, &data);
                        expected.extend_from_slice(&data);
                    }
                    _ => {
                        rig.poll(Duration::ZERO);
                        rig.receive_all();
                        client.go_on();
                    }
                }
            }
            rig.until("every request", |rig| {
                client.go_on();
                rig.received(id).len() == sent.len()
            });
            rig.close(id, CloseWhen::Flushed);
            rig.until("the end", |_| {
                client.go_on();
                client.has_ended
            });
            assert!(rig.received(id) == sent && client.got == expected, "seed {seed}");
            rig.until_gone(id);
        }
    }
}

/// What an honest client sends until its first request, with some bytes changed, added or left out: the
/// server does not panic, takes nothing for a request that is none, and lets go of the connection.
fn changed_handshakes_end_and_harm_nobody(mut rig: Rig) {
    let tls = tls();
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let version = if random.below(2) == 0 { &version::TLS12 } else { &version::TLS13 };
        let (socket, id) = rig.connect_raw(&tls);
        let mut client = Client::over(socket, &Arc::new(client_config(None, &[version])));
        client.conn.writer().write_all(b"SET k v").unwrap();
        let spoilt_flight = random.below(2);
        for flight in 0..2 {
            let mut bytes = Vec::new();
            while client.conn.wants_write() {
                client.conn.write_tls(&mut bytes).unwrap();
            }
            if flight == spoilt_flight && !bytes.is_empty() {
                for _ in 0..=random.below(4) {
                    let at = random.below(bytes.len() as u64) as usize;
                    match random.below(3) {
                        0 => bytes[at] ^= 1 << random.below(8),
                        1 => bytes.insert(at, random.below(256) as u8),
                        _ => drop(bytes.drain(at..bytes.len().min(at + 1 + random.below(9) as usize))),
                    }
                    if bytes.is_empty() {
                        break;
                    }
                }
            }
            let _ = client.socket.write_all(&bytes);
            rig.settle();
            let _ = client.conn.read_tls(&mut client.socket);
            let _ = client.conn.process_new_packets();
        }
        let _ = client.socket.shutdown(Shutdown::Write);
        rig.until("the end", |rig| rig.gone.contains(&id) || rig.has_ended(id));
        assert!(b"SET k v".starts_with(rig.received(id)), "seed {seed}");
        rig.close(id, CloseWhen::Now);
        rig.until_gone(id);
        rig.gone.clear();
    }
    let (mut client, id) = rig.with_handshake(&tls);
    client.write(b"still served");
    rig.until("the request", |rig| rig.received(id).ends_with(b"still served"));
}

/// New keys again and again, with nothing between: a limit of rustls ends the connection.
fn new_keys_without_end_are_refused(mut rig: Rig) {
    let config = client_config(None, &[&version::TLS13]);
    let (mut client, id) = rig.connect_with(&tls(), &Arc::new(config));
    rig.until_handshake_done(&mut client);
    for _ in 0..100 {
        if client.conn.refresh_traffic_keys().is_err() {
            break;
        }
        client.go_on();
        rig.poll(Duration::ZERO);
        rig.receive_all();
    }
    rig.until_gone(id);
    assert!(rig.received(id).is_empty());
}
