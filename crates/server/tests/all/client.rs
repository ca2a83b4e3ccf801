//! A client that reads and writes bytes, and a server for it.
use server::{Clock, Config, Log, Running};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Long enough for the slowest machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

pub fn config() -> Config {
    Config {
        bind: vec!["127.0.0.1".into()],
        port: 0,
        picks_port: true,
        worker_threads: 2,
        io_engine: net::EngineKind::Epoll,
        ..Config::default()
    }
}

pub fn start(config: Config) -> Running {
    server::start(config, Clock::real(), Log::silent()).expect("the server starts")
}

pub struct Client {
    stream: TcpStream,
}

impl Client {
    pub fn connect(server: &Running) -> Client {
        Client::to(server.addresses[0])
    }

    pub fn to(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Reads as many bytes as are expected, and compares.
    pub fn expect(&mut self, expected: &str) {
        let mut got = vec![0; expected.len()];
        let mut len = 0;
        while len < got.len() {
            match self.stream.read(&mut got[len..]) {
                Ok(0) => break,
                Ok(n) => len += n,
                Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&got[..len])),
            }
            if got[..len] != expected.as_bytes()[..len] {
                break;
            }
        }
        assert_eq!(String::from_utf8_lossy(&got[..len]), expected);
    }

    pub fn expect_end(&mut self) {
        let mut rest = Vec::new();
        // A reset is an end too.
        let _ = self.stream.read_to_end(&mut rest);
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }

    /// One request, whose reply must be this.
    pub fn check(&mut self, line: &str, expected: &str) {
        self.send(&request(&line.split(' ').collect::<Vec<_>>()));
        self.expect(expected);
    }

    /// No more requests; replies are still read.
    pub fn finish(&mut self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }
}

/// A request in multibulk form.
pub fn request(args: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        out.extend_from_slice(format!("${}\r\n{arg}\r\n", arg.len()).as_bytes());
    }
    out
}

pub fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}
