//! How connections begin, are answered and end.
use crate::client::{Client, bulk, config, engines, request, start};
use server::{Clock, Config, Log};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

#[test]
fn a_client_is_answered_by_every_engine() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..config() });
        let mut client = Client::connect(&server);
        client.check("PING", "+PONG\r\n");
        client.send(b"PING\r\nPING\r\n\r\n");
        client.expect("+PONG\r\n+PONG\r\n");
        server.stop();
        client.expect_end();
    }
}

#[test]
fn a_pipeline_is_answered_wherever_it_is_split() {
    let pipeline =
        [request(&["ECHO", "one"]), b"PING\r\n".to_vec(), request(&["ECHO", ""]), request(&["PING", "x"])]
            .concat();
    for io_engine in engines() {
        let server = start(Config { io_engine, ..config() });
        for split in 0..pipeline.len() {
            let mut client = Client::connect(&server);
            client.send(&pipeline[..split]);
            // A round trip on another connection: the first part has most likely been read.
            Client::connect(&server).check("PING", "+PONG\r\n");
            client.send(&pipeline[split..]);
            client.expect("$3\r\none\r\n+PONG\r\n$0\r\n\r\n$1\r\nx\r\n");
        }
    }
}

#[test]
fn a_client_that_ends_its_side_still_gets_its_replies() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.send(&[request(&["ECHO", "last words"]), b"*2\r\n$4\r\nECHO\r\n$9\r\nunfin".to_vec()].concat());
    client.finish();
    assert_eq!(client.rest(), bulk("last words"));
}

#[test]
fn quit_is_answered_and_what_follows_it_is_not() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.send(b"PING\r\nQUIT\r\nPING\r\n");
    assert_eq!(client.rest(), "+PONG\r\n+OK\r\n");
}

#[test]
fn what_is_no_request_is_answered_with_an_error_and_the_end() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.send(b"PING\r\n*1\r\n+PING\r\nPING\r\n");
    assert_eq!(client.rest(), "+PONG\r\n-ERR Protocol error: expected '$', got '+'\r\n");
    let mut other = Client::connect(&server);
    assert_eq!(other.info("total_error_replies"), "1");
    assert_eq!(other.info("errorstat_ERR"), "count=1");
}

#[test]
fn a_unix_socket_is_served_and_removed_at_the_end() {
    let path = std::env::temp_dir().join(format!("sardine-{}.sock", std::process::id()));
    for io_engine in engines() {
        let server = start(Config { unixsocket: Some(path.clone()), io_engine, ..config() });
        let mut client = Client::over(UnixStream::connect(&path).unwrap());
        client.check("PING", "+PONG\r\n");
        server.stop();
        assert!(!path.exists());
    }
}

#[test]
fn a_taken_port_is_named_and_nothing_is_left_behind() {
    let first = start(config());
    let port = first.addresses[0].port();
    let second = server::start(Config { port, picks_port: false, ..config() }, Clock::real(), Log::silent());
    let error = second.err().map(|error| error.to_string());
    assert_eq!(error, Some(format!("Failed listening on port {port} (tcp), aborting.")));
}

#[test]
fn a_server_can_listen_on_a_unix_socket_alone() {
    let path = PathBuf::from(format!("/tmp/sardine-alone-{}.sock", std::process::id()));
    let server = start(Config { unixsocket: Some(path.clone()), picks_port: false, ..config() });
    assert!(server.addresses.is_empty());
    Client::over(UnixStream::connect(&path).unwrap()).check("PING", "+PONG\r\n");
}

#[test]
fn a_killed_client_runs_nothing_more_and_the_others_stay() {
    let server = start(config());
    let mut killer = Client::connect(&server);
    let mut victims: Vec<Client> = (0..8).map(|_| Client::connect(&server)).collect();
    for victim in &mut victims {
        victim.send(&request(&["CLIENT", "ID"]));
        let id = String::from_utf8(victim.read(4)).unwrap();
        killer.check(&format!("CLIENT KILL ID {}", id[1..].trim()), ":1\r\n");
        victim.expect_end();
    }
    killer.check("PING", "+PONG\r\n");
    killer.check("CLIENT KILL ID 1000000", ":0\r\n");
}

#[test]
fn connections_are_spread_over_the_workers() {
    let server = start(Config { worker_threads: 4, ..config() });
    let mut clients: Vec<Client> = (0..40).map(|_| Client::connect(&server)).collect();
    clients.iter_mut().for_each(|client| client.check("PING", "+PONG\r\n"));
    assert_eq!(clients[0].info("connected_clients"), "40");
}

#[test]
fn reset_makes_a_connection_new_but_for_its_library() {
    let server = start(config());
    let mut client = Client::connect(&server);
    for line in
        ["CLIENT SETNAME me", "CLIENT NO-EVICT on", "CLIENT NO-TOUCH on", "CLIENT SETINFO lib-name lib"]
    {
        client.check(line, "+OK\r\n");
    }
    client.check("SELECT 3", "+OK\r\n");
    assert!(client.ask("CLIENT INFO").contains(" name=me age=0 idle=0 flags=eT db=3 "));
    client.send(b"CLIENT REPLY OFF\r\nPING\r\nRESET\r\n");
    client.expect("+RESET\r\n");
    let info = client.ask("CLIENT INFO");
    assert!(info.contains(" name= age=0 idle=0 flags=N db=0 "), "{info}");
    assert!(info.contains(" user=default redir=-1 resp=2 lib-name=lib "), "{info}");
}
