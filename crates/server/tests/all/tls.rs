//! Clients that speak TLS: served as others are, by settings that are put in force as a whole, and shut out
//! where they should be.
use crate::certificates::Certificates;
use crate::client::{Client, Stream, bulk, config, engines, request, start};
use net::{AuthClients, TlsSettings};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use server::{Config, Running};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

static FILES: LazyLock<Certificates> = LazyLock::new(|| {
    let files = Certificates::new("server");
    files.make("renewed", Some("ca"));
    files.make("other", None);
    files
});

type Secure = StreamOwned<ClientConnection, TcpStream>;

impl Stream for Secure {
    fn finish(&mut self) {
        self.conn.send_close_notify();
        self.flush().unwrap();
        self.sock.shutdown(Shutdown::Write).unwrap();
    }
}

fn with_tls() -> Config {
    Config {
        picks_tls_port: true,
        tls: TlsSettings {
            cert_file: Some(FILES.path("server.crt")),
            key_file: Some(FILES.path("server.key")),
            auth_clients: AuthClients::No,
            ..TlsSettings::default()
        },
        ..config()
    }
}

fn secure(address: SocketAddr) -> Secure {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(FILES.path("ca.crt")).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let conn = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    StreamOwned::new(conn, socket)
}

fn client(server: &Running) -> Client<Secure> {
    Client::over(secure(server.tls_addresses[0]))
}

/// The certificate that the server shows, as the file of this name has it.
fn shows(stream: &Secure, name: &str) -> bool {
    let expected = CertificateDer::from_pem_file(FILES.path(name)).unwrap();
    stream.conn.peer_certificates().is_some_and(|chain| chain[0] == expected)
}

/// Waits for what the server does in its own time.
fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("it never came");
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn clients_with_tls_are_served_by_every_engine() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..with_tls() });
        let mut client = client(&server);
        client.check("PING", "+PONG\r\n");
        client.send(b"PING\r\nECHO hello\r\nPI");
        client.expect("+PONG\r\n$5\r\nhello\r\n");
        client.send(b"NG\r\n");
        client.expect("+PONG\r\n");
        let long = "x".repeat(5 << 20);
        client.send(&request(&["SET", "long", &long]));
        client.expect("+OK\r\n");
        client.send(&request(&["GET", "long"]));
        client.expect(&bulk(&long));
        client.send(b"ECHO last\r\nQUIT\r\nPING\r\n");
        assert_eq!(client.rest(), "$4\r\nlast\r\n+OK\r\n");
    }
}

#[test]
fn a_long_reply_is_written_as_it_is_read() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..with_tls() });
        let mut client = client(&server);
        let values: Vec<String> = (0..1000).map(|n| format!("element:{n:0>100}")).collect();
        let mut push = vec!["RPUSH", "list"];
        push.extend(values.iter().map(String::as_str));
        for round in 1..=40 {
            client.send(&request(&push));
            client.expect(&format!(":{}\r\n", round * 1000));
        }
        let expected: String = values.iter().map(|value| bulk(value)).collect::<String>().repeat(40);
        client.send(b"LRANGE list 0 -1\r\nPING\r\n");
        client.expect(&format!("*40000\r\n{expected}+PONG\r\n"));
    }
}

#[test]
fn a_client_that_ends_its_side_gets_its_replies_and_the_last_words() {
    let server = start(with_tls());
    let mut client = client(&server);
    client.send(b"ECHO reply\r\n");
    client.finish();
    // Reading to the end fails where the last words of TLS are missing.
    assert_eq!(client.rest(), "$5\r\nreply\r\n");
}

#[test]
fn both_ports_are_told_of() {
    let server = start(with_tls());
    let (plain, secure) = (server.addresses[0].port(), server.tls_addresses[0].port());
    let info = Client::connect(&server).ask("INFO server");
    assert!(info.contains(&format!("tcp_port:{plain}\r\n")), "{info}");
    assert!(info.contains(&format!("listener0:name=tcp,bind=127.0.0.1,port={plain}\r\n")), "{info}");
    assert!(info.contains(&format!("listener2:name=tls,bind=127.0.0.1,port={secure}\r\n")), "{info}");
    let only = start(Config { picks_port: false, ..with_tls() });
    let port = only.tls_addresses[0].port();
    assert!(only.addresses.is_empty());
    let info = client(&only).ask("INFO server");
    assert!(info.contains(&format!("tcp_port:{port}\r\n")), "{info}");
    assert!(!info.contains("listener0"), "{info}");
}

#[test]
fn settings_that_cannot_be_put_in_force_change_nothing() {
    let server = start(with_tls());
    let mut plain = Client::connect(&server);
    let (other_key, junk) = (FILES.text("renewed.key"), FILES.text("openssl.cnf"));
    let cases = [
        "tls-cert-file /nope".into(),
        format!("tls-cert-file {junk}"),
        format!("tls-key-file {other_key}"),
        format!("tls-key-file {junk}"),
        "tls-auth-clients yes".into(),
        "tls-ca-cert-file /nope tls-auth-clients optional".into(),
        "tls-protocols TLSv1.1".into(),
        "tls-protocols x".into(),
        "tls-ciphers zz".into(),
        "tls-ciphersuites zz".into(),
    ];
    let before = plain.raw("CONFIG GET tls*");
    for pairs in cases {
        let name = pairs.split(' ').next().unwrap();
        plain.check(
            &format!("CONFIG SET {pairs}"),
            &format!(
                "-ERR CONFIG SET failed (possibly related to argument '{name}') - Unable to update TLS \
                 configuration. Check server logs.\r\n"
            ),
        );
        assert_eq!(plain.raw("CONFIG GET tls*"), before, "{pairs}");
        client(&server).check("PING", "+PONG\r\n");
    }
    let good = format!("tls-cert-file {} tls-key-file {other_key}", FILES.text("renewed.crt"));
    plain.check(
        &format!("CONFIG SET {good} maxmemory x"),
        "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value\r\n",
    );
    let somebody = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = somebody.local_addr().unwrap().port();
    plain.check(
        &format!("CONFIG SET {good} tls-port {taken}"),
        "-ERR CONFIG SET failed (possibly related to argument 'tls-port') - Unable to listen on this port. Check \
         server logs.\r\n",
    );
    let mut stream = secure(server.tls_addresses[0]);
    stream.write_all(b"PING\r\n").unwrap();
    stream.read_exact(&mut [0; 7]).unwrap();
    assert!(shows(&stream, "server.crt"));
}

#[test]
fn the_port_opens_and_closes_while_the_server_runs() {
    for io_engine in engines() {
        let server = start(Config { io_engine, picks_tls_port: false, ..with_tls() });
        assert!(server.tls_addresses.is_empty());
        let mut plain = Client::connect(&server);
        let port = free_port();
        plain.check(&format!("CONFIG SET tls-port {port}"), "+OK\r\n");
        let address: SocketAddr = ([127, 0, 0, 1], port).into();
        let mut client = Client::over(secure(address));
        client.check("PING", "+PONG\r\n");
        plain.check("CONFIG SET tls-port 0", "+OK\r\n");
        client.check("PING", "+PONG\r\n");
        until(|| TcpStream::connect(address).is_err());
        // The same address, without TLS and with it again.
        client.check(&format!("CONFIG SET port {port}"), "+OK\r\n");
        Client::to(address).check("PING", "+PONG\r\n");
        client.check(&format!("CONFIG SET port 0 tls-port {port}"), "+OK\r\n");
        until(|| {
            let mut stream = secure(address);
            stream.write_all(b"PING\r\n").is_ok() && stream.read_exact(&mut [0; 7]).is_ok()
        });
    }
}

#[test]
fn tls_between_servers_asks_for_certificates_where_no_client_speaks_it() {
    let refused = |name: &str| {
        format!(
            "-ERR CONFIG SET failed (possibly related to argument '{name}') - Unable to update TLS \
             configuration. Check server logs.\r\n"
        )
    };
    for name in ["tls-replication", "tls-cluster"] {
        let server = start(config());
        let mut client = Client::connect(&server);
        client.check(&format!("CONFIG SET {name} yes"), &refused(name));
        client.check("CONFIG SET tls-cert-file /nope", "+OK\r\n");
        client.check(&format!("CONFIG SET {name} yes"), &refused(name));
        let server = start(Config { picks_tls_port: false, ..with_tls() });
        let mut client = Client::connect(&server);
        // Nobody is trusted.
        client.check(&format!("CONFIG SET {name} yes"), &refused(name));
        let authority = FILES.path("ca.crt");
        client.check(&format!("CONFIG SET tls-ca-cert-file {}", authority.display()), "+OK\r\n");
        client.check(&format!("CONFIG SET {name} yes"), "+OK\r\n");
        client.check("CONFIG SET tls-cert-file /nope", &refused("tls-cert-file"));
        client.check(&format!("CONFIG SET {name} no tls-cert-file /nope"), "+OK\r\n");
    }
}

/// The same path again, both files changed: no client is refused meanwhile, and who is there stays.
#[test]
fn certificates_are_read_again_under_load() {
    for io_engine in engines() {
        let (cert, key) = (FILES.path("live.crt"), FILES.path("live.key"));
        let install = |name: &str| {
            fs::copy(FILES.path(&format!("{name}.crt")), &cert).unwrap();
            fs::copy(FILES.path(&format!("{name}.key")), &key).unwrap();
        };
        install("server");
        let mut config = Config { io_engine, ..with_tls() };
        (config.tls.cert_file, config.tls.key_file) = (Some(cert.clone()), Some(key.clone()));
        let server = start(config);
        let address = server.tls_addresses[0];
        let mut old = Client::over(secure(address));
        old.check("PING", "+PONG\r\n");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                std::thread::Builder::new()
                    .spawn_scoped(scope, || {
                        while !is_over.load(Ordering::Relaxed) {
                            Client::over(secure(address)).check("ECHO busy", "$4\r\nbusy\r\n");
                        }
                    })
                    .unwrap();
            }
            let mut plain = Client::connect(&server);
            for round in 0..20 {
                let name = if round % 2 == 0 { "renewed" } else { "server" };
                install(name);
                plain.check(
                    &format!("CONFIG SET tls-cert-file {} tls-key-file {}", cert.display(), key.display()),
                    "+OK\r\n",
                );
                let mut stream = secure(address);
                stream.write_all(b"PING\r\n").unwrap();
                stream.read_exact(&mut [0; 7]).unwrap();
                assert!(shows(&stream, &format!("{name}.crt")));
                old.check("PING", "+PONG\r\n");
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_thousand_handshakes_that_stall_disturb_nobody() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..with_tls() });
        let address = server.tls_addresses[0];
        let stalled: Vec<TcpStream> = (0..1000)
            .map(|n| {
                let mut socket = TcpStream::connect(address).unwrap();
                socket.write_all(&b"\x16\x03\x01\x02\x00\x01\x00"[..n % 8]).unwrap();
                socket
            })
            .collect();
        let mut plain = Client::connect(&server);
        plain.wait_for_info("connected_clients", "1001");
        let mut client = client(&server);
        client.check("PING", "+PONG\r\n");
        let cycles = |plain: &mut Client| plain.info("eventloop_cycles").parse::<u64>().unwrap();
        let before = cycles(&mut plain);
        for _ in 0..100 {
            client.check("PING", "+PONG\r\n");
        }
        let turns = cycles(&mut plain) - before;
        assert!(turns < 2000, "{turns} turns for 100 requests: somebody spins");
        drop(stalled);
        plain.wait_for_info("connected_clients", "2");
        client.check("PING", "+PONG\r\n");
    }
}

#[test]
fn who_does_not_speak_tls_is_closed_and_counts_no_more() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..with_tls() });
        let mut plain = Client::connect(&server);
        for bytes in ["PING\r\n", "*1\r\n$4\r\nPING\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
            let mut client = Client::to(server.tls_addresses[0]);
            client.send(bytes.as_bytes());
            // An alert of TLS.
            let rest = client.rest();
            assert!(rest.is_empty() || rest.starts_with('\x15'), "{rest:?}");
        }
        plain.wait_for_info("connected_clients", "1");
        assert!(plain.ask("INFO commandstats").lines().all(|line| !line.starts_with("cmdstat_ping")));
    }
}

#[test]
fn one_client_too_many_is_closed() {
    let server = start(Config { maxclients: 2, ..with_tls() });
    let mut first = client(&server);
    first.check("PING", "+PONG\r\n");
    let mut second = client(&server);
    second.check("PING", "+PONG\r\n");
    let mut third = secure(server.tls_addresses[0]);
    assert!(third.write_all(b"PING\r\n").is_err() || third.read(&mut [0]).is_err());
    first.check("PING", "+PONG\r\n");
}

#[test]
fn what_tls_holds_counts_in_the_memory_of_its_client() {
    let server = start(with_tls());
    let mut plain = Client::connect(&server);
    let mut client = client(&server);
    let id = client.raw("CLIENT ID").trim_matches([':', '\r', '\n']).to_owned();
    let held = |plain: &mut Client| -> u64 {
        let line = plain.ask(&format!("CLIENT LIST ID {id}"));
        let field = line.split(' ').find_map(|field| field.strip_prefix("tot-mem=")).unwrap();
        field.parse().unwrap()
    };
    let idle = held(&mut plain);
    assert!(idle > 3 << 10, "{idle}");
    // A record of which the end is missing.
    let stream = client.stream();
    stream.conn.writer().write_all(&[b'x'; 10_000]).unwrap();
    let mut record = Vec::new();
    stream.conn.write_tls(&mut record).unwrap();
    stream.sock.write_all(&record[..9000]).unwrap();
    until(|| held(&mut plain) >= idle + 9000);
    stream.sock.write_all(&record[9000..]).unwrap();
    client.send(b"\r\n");
    until(|| held(&mut plain) < idle + 9000);
}

#[test]
fn a_server_without_what_tls_needs_does_not_start() {
    let broken: [fn(&mut TlsSettings); 4] = [
        |tls| tls.cert_file = None,
        |tls| tls.key_file = Some(FILES.path("renewed.key")),
        |tls| tls.auth_clients = AuthClients::Yes,
        |tls| tls.protocols = "TLSv1".into(),
    ];
    for change in broken {
        let mut config = with_tls();
        change(&mut config.tls);
        let started = server::start(config, server::Clock::real(), server::Log::silent());
        assert_eq!(started.err().unwrap().0, "Failed to configure TLS. Check logs for more info.");
    }
}

/// Keys that are sent to another server do not cross the network as plain text where they must not.
#[test]
fn keys_are_sent_with_tls_to_a_server_of_a_trusted_authority() {
    let authority = |config: Config, file: &str| {
        let tls = TlsSettings { ca_cert_file: Some(FILES.path(file)), ..config.tls };
        Config { tls, ..config }
    };
    for auth_clients in [AuthClients::No, AuthClients::Yes] {
        let strict = authority(with_tls(), "ca.crt");
        let target = start(Config { tls: TlsSettings { auth_clients, ..strict.tls }, ..with_tls() });
        let source = start(Config { tls_cluster: true, ..authority(with_tls(), "ca.crt") });
        let (mut here, mut there) = (Client::connect(&source), Client::connect(&target));
        let long = "x".repeat(1 << 20);
        here.send(&request(&["SET", "long", &long]));
        here.expect("+OK\r\n");
        here.check("SET short 1", "+OK\r\n");
        let (secure, plain) = (target.tls_addresses[0].port(), target.addresses[0].port());
        here.check(&format!("MIGRATE 127.0.0.1 {secure} long 0 20000"), "+OK\r\n");
        // By the connection that is kept.
        here.check(&format!("MIGRATE 127.0.0.1 +{secure} short 0 20000"), "+OK\r\n");
        here.check("EXISTS long short", ":0\r\n");
        there.send(b"GET long\r\n");
        there.expect(&bulk(&long));
        there.check("GET short", &bulk("1"));
        // Nothing goes there without TLS, and nothing by TLS any more when it is off.
        here.check("SET short 2", "+OK\r\n");
        let error = "-IOERR error or timeout connecting to the client\r\n";
        here.check(&format!("MIGRATE 127.0.0.1 {plain} short 0 500 REPLACE"), error);
        here.check("CONFIG SET tls-cluster no", "+OK\r\n");
        here.check(&format!("MIGRATE 127.0.0.1 {plain} short 0 20000 REPLACE"), "+OK\r\n");
        there.check("GET short", &bulk("2"));
    }
}

/// `openssl req -x509` makes one: it signs itself, and is an authority.
#[test]
fn one_certificate_may_serve_all_ends() {
    let file = |name: &str| Some(FILES.path(name));
    let tls = TlsSettings {
        cert_file: file("ca.crt"),
        key_file: file("ca.key"),
        ca_cert_file: file("ca.crt"),
        auth_clients: AuthClients::Yes,
        ..with_tls().tls
    };
    let [target, source] =
        [(); 2].map(|()| start(Config { tls_cluster: true, tls: tls.clone(), ..with_tls() }));
    let mut here = Client::connect(&source);
    here.check("SET a 1", "+OK\r\n");
    let port = target.tls_addresses[0].port();
    here.check(&format!("MIGRATE 127.0.0.1 {port} a 0 20000"), "+OK\r\n");
    Client::connect(&target).check("GET a", &bulk("1"));
}

#[test]
fn keys_are_not_sent_to_a_server_that_nobody_trusts() {
    let target = start(with_tls());
    let tls = TlsSettings { ca_cert_file: Some(FILES.path("other.crt")), ..with_tls().tls };
    let source = start(Config { tls_cluster: true, picks_tls_port: false, tls, ..config() });
    let mut here = Client::connect(&source);
    here.check("SET a 1", "+OK\r\n");
    let error = "-IOERR error or timeout connecting to the client\r\n";
    let port = target.tls_addresses[0].port();
    here.check(&format!("MIGRATE 127.0.0.1 {port} a 0 20000"), error);
    here.check("GET a", &bulk("1"));
    Client::connect(&target).check("EXISTS a", ":0\r\n");
    // A certificate for other servers has to be right as well, if its key is named.
    here.check(&format!("CONFIG SET tls-ca-cert-file {}", FILES.path("ca.crt").display()), "+OK\r\n");
    here.check("CONFIG SET tls-client-cert-file /nowhere", "+OK\r\n");
    for wrong in ["tls-client-key-file /nowhere", "tls-ca-cert-file \"\""] {
        let refused = here.ask(&format!("CONFIG SET {wrong}"));
        assert!(refused.starts_with("-ERR CONFIG SET failed"), "{refused}");
    }
    here.check(&format!("MIGRATE 127.0.0.1 {port} a 0 20000"), "+OK\r\n");
}
