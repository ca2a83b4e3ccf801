//! A client for tests: sends requests, reads whole replies, keeps them as bytes. Waits at most some seconds for one.
use crate::resp_value::Value;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);

pub struct RespClient {
    stream: TcpStream,
    /// What has arrived and not been taken.
    pending: Vec<u8>,
}

impl RespClient {
    pub fn connect(address: impl ToSocketAddrs) -> io::Result<RespClient> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(RespClient { stream, pending: Vec::new() })
    }

    /// Sends one request and waits for its reply.
    pub fn call(&mut self, args: &[impl AsRef<[u8]>]) -> io::Result<Value> {
        self.send(args)?;
        self.receive()
    }

    pub fn send(&mut self, args: &[impl AsRef<[u8]>]) -> io::Result<()> {
        self.stream.write_all(&request(args))
    }

    /// The next reply, pushes included.
    pub fn receive(&mut self) -> io::Result<Value> {
        loop {
            if let Some((value, len)) = Value::parse(&self.pending)? {
                self.pending.drain(..len);
                return Ok(value);
            }
            let mut chunk = [0; 16 * 1024];
            match self.stream.read(&mut chunk)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                len => self.pending.extend_from_slice(&chunk[..len]),
            }
        }
    }
}

/// A request as it goes over the wire.
pub fn request(args: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut wire = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        wire.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        wire.extend_from_slice(arg);
        wire.extend_from_slice(b"\r\n");
    }
    wire
}
