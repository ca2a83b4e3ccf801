//! A client that reads and writes bytes, and a server for it.
use base::Millis;
use net::EngineKind;
use server::{Allow, Clock, Config, Log, Running, SimulatedTime, Snapshots};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Long enough for the slowest machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two questions about something that the server does in its own time.
const PAUSE: Duration = Duration::from_millis(5);

/// Keys that nobody asks for are removed so long after their deadlines.
pub(crate) const REMOVED_AFTER: Duration = Duration::from_millis(5);

/// Every engine that this machine's kernel allows.
pub(crate) fn engines() -> Vec<EngineKind> {
    let kinds = [EngineKind::Epoll, EngineKind::Uring];
    kinds.into_iter().filter(|kind| net::open(*kind).is_ok()).collect()
}

pub(crate) fn config() -> Config {
    Config {
        bind: vec!["127.0.0.1".into()],
        port: 0,
        picks_port: true,
        worker_threads: 2,
        io_engine: EngineKind::Epoll,
        enable_debug_command: Allow::Local,
        // A test leaves no files.
        snapshots: Snapshots::never(),
        ..Config::default()
    }
}

pub(crate) fn start(config: Config) -> Running {
    server::start(config, Clock::real(), Log::silent()).expect("the server starts")
}

/// A server whose time stands until it is moved.
pub(crate) fn start_at_noon(config: Config) -> (Running, SimulatedTime) {
    let (clock, time) = Clock::simulated(Millis(NOON_MS));
    (server::start(config, clock, Log::silent()).expect("the server starts"), time)
}

/// When [`start_at_noon`] starts.
pub(crate) const NOON_MS: i64 = 1_800_000_000_000;

/// Anything that a client can be connected by.
pub(crate) trait Stream: Read + Write {
    fn finish(&mut self);
}

impl Stream for TcpStream {
    fn finish(&mut self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
}

impl Stream for std::os::unix::net::UnixStream {
    fn finish(&mut self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
}

pub(crate) struct Client<S = TcpStream> {
    stream: S,
}

impl Client {
    pub(crate) fn connect(server: &Running) -> Client {
        Client::to(server.addresses[0])
    }

    pub(crate) fn to(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream }
    }
}

impl Client {
    /// Whether something has come that was not read yet.
    pub(crate) fn has_received(&self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let found = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).unwrap();
        match found {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }
}

impl<S: Stream> Client<S> {
    pub(crate) fn over(stream: S) -> Client<S> {
        Client { stream }
    }

    pub(crate) fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends what may be cut short because the server closes.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    pub(crate) fn read(&mut self, len: usize) -> Vec<u8> {
        let mut got = vec![0; len];
        self.stream.read_exact(&mut got).unwrap();
        got
    }

    /// Reads as many bytes as are expected, and compares.
    pub(crate) fn expect(&mut self, expected: &str) {
        let mut got = vec![0; expected.len()];
        let mut len = 0;
        while len < got.len() {
            match self.stream.read(&mut got[len..]) {
                Ok(0) => break,
                Ok(n) => len += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&got[..len])),
            }
            if got[..len] != expected.as_bytes()[..len] {
                break;
            }
        }
        if got != expected.as_bytes() {
            panic!("{:?} is not {:?}", shown(&got[..len]), shown(expected.as_bytes()));
        }
    }

    /// Reads all until the connection ends, which may be by a reset.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        let _ = self.stream.read_to_end(&mut rest);
        String::from_utf8_lossy(&rest).into_owned()
    }

    pub(crate) fn expect_end(&mut self) {
        assert_eq!(self.rest(), "");
    }

    /// One request, whose reply must be this.
    pub(crate) fn check(&mut self, line: &str, expected: &str) {
        self.send(&request(&line.split(' ').collect::<Vec<_>>()));
        self.expect(expected);
    }

    /// The bulk string that a request answers with.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.send(&request(&line.split(' ').collect::<Vec<_>>()));
        self.bulk()
    }

    /// The next reply: the text of a bulk string, or a line as it came.
    pub(crate) fn bulk(&mut self) -> String {
        let mut header = Vec::new();
        while !header.ends_with(b"\r\n") {
            header.extend(self.read(1));
        }
        let header = String::from_utf8(header).unwrap();
        match header[1..].trim().parse() {
            Ok(len) if header.starts_with('$') => {
                let mut text = self.read(len + 2);
                text.truncate(len);
                String::from_utf8_lossy(&text).into_owned()
            }
            _ => header,
        }
    }

    /// The whole reply to a request, as it came.
    pub(crate) fn raw(&mut self, line: &str) -> String {
        self.send(&request(&line.split(' ').collect::<Vec<_>>()));
        self.raw_reply()
    }

    /// The next reply or push, as it came.
    pub(crate) fn raw_reply(&mut self) -> String {
        let mut got = Vec::new();
        self.read_reply(&mut got);
        String::from_utf8_lossy(&got).into_owned()
    }

    fn read_reply(&mut self, into: &mut Vec<u8>) {
        let start = into.len();
        while !into.ends_with(b"\r\n") || into.len() == start {
            into.extend(self.read(1));
        }
        let count = String::from_utf8_lossy(&into[start + 1..]).trim().parse().unwrap_or(0_usize);
        match into[start] {
            b'$' | b'=' if into[start + 1] != b'-' => into.extend(self.read(count + 2)),
            b'*' | b'~' | b'>' => (0..count).for_each(|_| self.read_reply(into)),
            b'%' => (0..count * 2).for_each(|_| self.read_reply(into)),
            _ => {}
        }
    }

    /// A field of INFO.
    pub(crate) fn info(&mut self, field: &str) -> String {
        let info = self.ask("INFO everything");
        let found = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        found.unwrap_or_else(|| panic!("INFO has no {field}: {info}")).to_owned()
    }

    /// Asks until the answer is this.
    pub(crate) fn wait_for(&mut self, line: &str, expected: &str) {
        let mut answer = String::new();
        for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
            answer = self.ask(line);
            if answer.trim() == expected {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        panic!("{line} still answers {answer:?}, not {expected:?}");
    }

    /// Asks until a field of INFO is this.
    pub(crate) fn wait_for_info(&mut self, field: &str, expected: &str) {
        let mut value = String::new();
        for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
            value = self.info(field);
            if value == expected {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        panic!("{field} is still {value:?}, not {expected:?}");
    }

    /// No more requests; replies are still read.
    pub(crate) fn finish(&mut self) {
        self.stream.finish();
    }
}

/// As much of a reply as the message of a failed test needs.
fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned()
}

/// A request in multibulk form.
pub(crate) fn request(args: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        out.extend_from_slice(format!("${}\r\n{arg}\r\n", arg.len()).as_bytes());
    }
    out
}

pub(crate) fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}
