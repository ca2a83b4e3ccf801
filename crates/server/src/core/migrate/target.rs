//! The server that keys are sent to: AUTH, SELECT and RESTORE over a connection, and what it answers.
use crate::state::moving::{Line, Socket};
use disk::parcel::{Taken, append_database, append_login, append_value};
use net::Tls;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// So much is written at a time, each within the timeout.
const PIECE_BYTES: usize = 64 << 10;
/// A longer line is no answer.
const LINE_BYTES_MAX: u64 = 16 << 10;

/// Which server, and how it is spoken to.
pub(crate) struct Target {
    /// Host and port.
    pub(crate) name: (Vec<u8>, Vec<u8>),
    pub(crate) db: i64,
    pub(crate) timeout: Duration,
    /// AUTH: a password, or a name and a password.
    pub(crate) auth: Vec<Vec<u8>>,
    pub(crate) replaces: bool,
}

/// What is sent of a key.
pub(crate) struct Parcel<'p> {
    pub(crate) key: &'p [u8],
    pub(crate) ttl_ms: i64,
    pub(crate) payload: Vec<u8>,
}

/// What has failed, in the words of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Connecting,
    Writing,
    Reading,
}

/// Why the target could not be spoken to.
pub(crate) struct Failure {
    pub(crate) step: Step,
    /// It took too long: a new connection would not help.
    pub(crate) is_timeout: bool,
}

impl Failure {
    fn new(step: Step, error: &io::Error) -> Failure {
        let is_timeout = matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock);
        Failure { step, is_timeout }
    }
}

/// What the target has answered to AUTH, SELECT and the keys: an error, if it is one.
pub(crate) type Answer = Option<String>;

impl Target {
    /// Connects. As Redis does it without waiting, a port that nobody listens on shows with the first write.
    pub(crate) fn connect(&self) -> Result<Socket, Failure> {
        Ok(Socket::new(self.name.clone(), Line::Plain(self.reach()?)))
    }

    /// Connects with TLS. Whatever fails, fails at once.
    pub(crate) fn connect_with(&self, tls: Option<Tls>) -> Result<Socket, Failure> {
        let failed = |is_timeout: bool| Failure { step: Step::Connecting, is_timeout };
        let tls = tls.ok_or(failed(false))?;
        let stream = self.reach().map_err(|failure| failed(failure.is_timeout))?;
        let secured = self.limit(&stream).and_then(|()| tls.connect(stream));
        let secured = secured.map_err(|error| Failure::new(Step::Connecting, &error))?;
        Ok(Socket::new(self.name.clone(), Line::Secure(Box::new(secured))))
    }

    fn reach(&self) -> Result<TcpStream, Failure> {
        let failed = |step: Step| move |error: io::Error| Failure::new(step, &error);
        let host = String::from_utf8_lossy(&self.name.0);
        let addresses = (host.as_ref(), self.port()).to_socket_addrs().map_err(failed(Step::Connecting))?;
        let mut last = Failure { step: Step::Connecting, is_timeout: false };
        for address in addresses {
            match TcpStream::connect_timeout(&address, self.timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true).map_err(failed(Step::Connecting))?;
                    return Ok(stream);
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    last = Failure { step: Step::Connecting, is_timeout: true };
                }
                Err(error) => last = Failure::new(Step::Writing, &error),
            }
        }
        Err(last)
    }

    /// What stands before anything that is no digit, as a port.
    fn port(&self) -> u16 {
        let text = self.name.1.trim_ascii_start();
        let digits = text.strip_prefix(b"+").unwrap_or(text).iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0u16, |port, digit| port.wrapping_mul(10).wrapping_add(u16::from(digit - b'0')))
    }

    /// Sends what comes before the keys. Returns how many answers that will have.
    pub(crate) fn greet(&self, socket: &mut Socket) -> Result<usize, Failure> {
        self.limit(socket.line.socket()).map_err(|error| Failure::new(Step::Writing, &error))?;
        let mut text = Vec::new();
        let mut answers = 0;
        if !self.auth.is_empty() {
            append_login(&mut text, &self.auth);
            answers += 1;
        }
        if socket.db != Some(self.db) {
            append_database(&mut text, self.db);
            answers += 1;
        }
        write(socket, &text)?;
        Ok(answers)
    }

    fn limit(&self, socket: &TcpStream) -> io::Result<()> {
        let limit = Some(self.timeout);
        socket.set_write_timeout(limit).and_then(|()| socket.set_read_timeout(limit))
    }

    /// Sends a key.
    pub(crate) fn send(&self, socket: &mut Socket, parcel: &Parcel<'_>) -> Result<(), Failure> {
        let when = if self.replaces { Taken::Always } else { Taken::IfAbsent };
        let mut text = Vec::with_capacity(parcel.payload.len() + parcel.key.len() + 100);
        append_value(&mut text, parcel.key, parcel.ttl_ms, &parcel.payload, when);
        write(socket, &text)
    }
}

/// Reads the answers, one after the other.
pub(crate) struct Answers<'s>(BufReader<&'s mut Line>);

impl<'s> Answers<'s> {
    pub(crate) fn of(socket: &'s mut Socket) -> Answers<'s> {
        Answers(BufReader::new(&mut socket.line))
    }

    pub(crate) fn next(&mut self) -> Result<Answer, Failure> {
        let mut line = Vec::new();
        let read = io::Read::take(&mut self.0, LINE_BYTES_MAX).read_until(b'\n', &mut line);
        read.map_err(|error| Failure::new(Step::Reading, &error))?;
        let line = line.strip_suffix(b"\n").ok_or(Failure { step: Step::Reading, is_timeout: false })?;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Ok(line.strip_prefix(b"-").map(|text| String::from_utf8_lossy(text).into_owned()))
    }
}

fn write(socket: &mut Socket, text: &[u8]) -> Result<(), Failure> {
    let written = text.chunks(PIECE_BYTES).try_for_each(|piece| socket.line.write_all(piece));
    written.and_then(|()| socket.line.flush()).map_err(|error| Failure::new(Step::Writing, &error))
}
