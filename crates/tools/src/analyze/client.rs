//! A client for the live server: requests in pipelines, replies in RESP2.
use crate::analyze::tls::{TlsOptions, secure};
use crate::analyze::url::Url;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A server that says nothing for longer is given up.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
/// Nothing that is asked for is nested deeper.
const DEPTH_MAX: usize = 4;

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

pub(crate) struct Client {
    stream: BufReader<Box<dyn Stream>>,
}

/// A reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Text(Vec<u8>),
    Int(i64),
    Null,
    Error(String),
    List(Vec<Reply>),
}

impl Reply {
    pub(crate) fn int(&self) -> Option<i64> {
        if let Reply::Int(number) = self { Some(*number) } else { None }
    }

    pub(crate) fn text(self) -> Option<Vec<u8>> {
        if let Reply::Text(text) = self { Some(text) } else { None }
    }
}

impl Client {
    pub(crate) fn connect(url: &Url, options: &TlsOptions) -> io::Result<Client> {
        let stream = TcpStream::connect((url.host.as_str(), url.port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let stream: Box<dyn Stream> = match url.is_secure {
            true => Box::new(secure(stream, &url.host, options).map_err(io::Error::other)?),
            false => Box::new(stream),
        };
        Ok(Client { stream: BufReader::new(stream) })
    }

    /// Sends one request and waits for its reply.
    pub(crate) fn call(&mut self, words: &[&[u8]]) -> io::Result<Reply> {
        self.send(&request(words))?;
        self.receive()
    }

    pub(crate) fn send(&mut self, wire: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(wire)?;
        self.stream.get_mut().flush()
    }

    pub(crate) fn receive(&mut self) -> io::Result<Reply> {
        self.receive_within(DEPTH_MAX)
    }

    fn receive_within(&mut self, depth: usize) -> io::Result<Reply> {
        let mut line = Vec::new();
        (&mut self.stream).take(64 << 10).read_until(b'\n', &mut line)?;
        let Some((mark, rest)) = line.strip_suffix(b"\r\n").and_then(|line| line.split_first()) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let text = String::from_utf8_lossy(rest).into_owned();
        let number = || text.parse::<i64>().map_err(|_| unexpected());
        Ok(match mark {
            b'+' => Reply::Text(rest.to_vec()),
            b'-' => Reply::Error(text),
            b':' => Reply::Int(number()?),
            b'$' => match u64::try_from(number()?) {
                Ok(len) => Reply::Text(self.bulk(len)?),
                Err(_) => Reply::Null,
            },
            b'*' if depth > 0 => match u64::try_from(number()?) {
                Ok(len) => {
                    Reply::List((0..len).map(|_| self.receive_within(depth - 1)).collect::<Result<_, _>>()?)
                }
                Err(_) => Reply::Null,
            },
            _ => return Err(unexpected()),
        })
    }

    /// Memory follows what arrives, not what is announced.
    fn bulk(&mut self, len: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        (&mut self.stream).take(len.saturating_add(2)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != len + 2 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.truncate(len as usize);
        Ok(bytes)
    }
}

fn unexpected() -> io::Error {
    io::Error::other("the reply is none of RESP2")
}

/// The bytes of a request.
pub(crate) fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut wire = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        wire.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        wire.extend_from_slice(word);
        wire.extend_from_slice(b"\r\n");
    }
    wire
}
