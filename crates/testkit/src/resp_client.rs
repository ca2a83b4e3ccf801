//! A client for tests: sends requests, reads whole replies, keeps them as bytes. Waits at most some seconds
//! for one.
use crate::resp_value::Value;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);

/// Where a server listens.
#[derive(Clone, Debug)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::Tcp(address)
    }
}

trait Stream: Read + Write + Send {
    fn set_nonblocking(&self, is_nonblocking: bool) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn set_nonblocking(&self, is_nonblocking: bool) -> io::Result<()> {
        TcpStream::set_nonblocking(self, is_nonblocking)
    }
}

impl Stream for UnixStream {
    fn set_nonblocking(&self, is_nonblocking: bool) -> io::Result<()> {
        UnixStream::set_nonblocking(self, is_nonblocking)
    }
}

pub struct RespClient {
    stream: Box<dyn Stream>,
    /// What has arrived and not been taken.
    pending: Vec<u8>,
}

impl RespClient {
    /// Connects, in RESP2, and gives up on an answer after a while.
    pub fn connect(address: &Address) -> io::Result<RespClient> {
        let stream: Box<dyn Stream> = match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                Box::new(stream)
            }
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                Box::new(stream)
            }
        };
        Ok(RespClient { stream, pending: Vec::new() })
    }

    /// Sends one request and waits for its reply.
    pub fn call(&mut self, args: &[impl AsRef<[u8]>]) -> io::Result<Value> {
        self.send(args)?;
        self.receive()
    }

    /// Sends a request and does not wait for its answer.
    pub fn send(&mut self, args: &[impl AsRef<[u8]>]) -> io::Result<()> {
        self.send_bytes(&request(args))
    }

    /// Sends bytes as they are: several requests at once, or none that is whole.
    pub fn send_bytes(&mut self, wire: &[u8]) -> io::Result<()> {
        self.stream.write_all(wire)
    }

    /// The next reply if it has arrived as a whole, pushes included.
    pub fn try_receive(&mut self) -> io::Result<Option<Value>> {
        self.stream.set_nonblocking(true)?;
        let received = self.receive();
        self.stream.set_nonblocking(false)?;
        match received {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The next reply, pushes included.
    pub fn receive(&mut self) -> io::Result<Value> {
        loop {
            if let Some((value, len)) = Value::parse(&self.pending)? {
                self.pending.drain(..len);
                return Ok(value);
            }
            let mut chunk = [0; 16 * 1024];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) => self.pending.extend_from_slice(&chunk[..len]),
                // The kernel interrupts the thread that has opened an io_uring when it takes the ring down.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
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
