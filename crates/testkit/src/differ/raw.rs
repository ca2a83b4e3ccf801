//! Bytes as hostile or careless clients send them, to both servers on a connection of their own: what comes
//! back, byte for byte, and whether the connection was closed. Requests that are whole and right are the
//! other files' business; here lines have NULs, quotes that do not close, ends without a CR and words without
//! an end, mixed with multibulk requests that may be wrong.
use crate::resp_client::{Address, RespClient, request};
use crate::resp_value::Value;
use base::random::Random;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);
/// How often a server is asked whether it has read what was sent. Each question is a turn of its event loop.
const LOOKS_MAX: usize = 10_000;
/// How often it is looked at one that has read all and still has replies to send.
const SENDING_LOOKS_MAX: u32 = 1_000;

/// What a server made of the bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub replies: Vec<u8>,
    /// The server closed the connection before the client did.
    pub is_closed: bool,
}

/// A stream of bytes in the pieces in which it is sent.
pub fn stream(seed: u64) -> Vec<Vec<u8>> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::new();
    for _ in 0..=random.below(8) {
        part(&mut random, &mut bytes);
    }
    if random.below(3) == 0 {
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] = pick(&mut random, b"\0\n\r\"'\\ *$0x\xff");
    }
    let mut pieces = vec![bytes];
    for _ in 0..random.below(4) {
        let last = pieces.last_mut().expect("there is one from the beginning");
        let tail = last.split_off(random.below(last.len() as u64 + 1) as usize);
        pieces.push(tail);
    }
    pieces
}

fn part(random: &mut Random, out: &mut Vec<u8>) {
    match random.below(16) {
        0..=4 => line(random, out),
        5 => out.extend_from_slice(b"PING\r\n"),
        6 => out.extend_from_slice(b"\r\n \n\t\r\n\x0b\n"),
        7 => out.extend_from_slice(b"*2\r\n$4\r\nECHO\r\n$3\r\na\0b\r\n"),
        8 => out.extend_from_slice(b"*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n"),
        9 => out.extend_from_slice(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\n\r\n\r\nGET k\n"),
        10 => multibulk_nearly(random, out),
        11 if random.below(8) == 0 => long_line(random, out),
        12 if random.below(4) == 0 => out.extend_from_slice(b"host: localhost\r\nSET k stolen\r\n"),
        13 if random.below(4) == 0 => out.extend_from_slice(b"*1\r\n$4\r\npost\r\nSET k stolen\r\n"),
        _ => out.extend_from_slice(b"ECHO word\n"),
    }
}

/// Words, quotes and escapes in any order.
fn line(random: &mut Random, out: &mut Vec<u8>) {
    const BITS: [&[u8]; 24] = [
        b"\"", b"\"", b"'", b"'", b"\\", b"\\x41", b"\\xfF", b"\\xg0", b"\\x4", b"\\n", b"\\q", b"\\\"",
        b"\\'", b"a", b"bc", b"\x0b", b"\x0c", b"\r", b"\t", b"  ", b" ", b" ", b"\xa0", b"\x01",
    ];
    out.extend_from_slice(b"ECHO ");
    for _ in 0..random.below(8) {
        let bit = BITS[random.below(BITS.len() as u64) as usize];
        out.extend_from_slice(bit);
    }
    if random.below(40) == 0 {
        out.push(0);
    }
    out.extend_from_slice(if random.below(2) == 0 { b"\r\n" } else { b"\n" });
}

/// Well within the limit of 64 KB, or well beyond it: how much more than the limit is let pass depends on how
/// it arrives.
fn long_line(random: &mut Random, out: &mut Vec<u8>) {
    let len =
        if random.below(2) == 0 { 50_000 + random.below(14_000) } else { 500_000 + random.below(100_000) };
    out.extend_from_slice(b"ECHO ");
    out.resize(out.len() + len as usize, b'x');
    out.extend_from_slice(b"\r\n");
}

fn multibulk_nearly(random: &mut Random, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(b"*2\r\n$4\r\nECHO\r\n$5\r\nfishy\r\n");
    let at = start + random.below((out.len() - start) as u64) as usize;
    out[at] = pick(random, b"\0\n\r\"*$019-+ x");
}

fn pick(random: &mut Random, bytes: &[u8]) -> u8 {
    bytes[random.below(bytes.len() as u64) as usize]
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn connect(address: &Address) -> io::Result<Stream> {
        match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                Ok(Stream::Tcp(stream))
            }
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                Ok(Stream::Unix(stream))
            }
        }
    }

    fn both(&mut self) -> &mut dyn ReadWrite {
        match self {
            Stream::Tcp(stream) => stream,
            Stream::Unix(stream) => stream,
        }
    }

    /// An error says that the server has closed it.
    fn finish(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }
}

trait ReadWrite: Read + Write {}
impl<S: Read + Write> ReadWrite for S {}

/// Another connection to the same server, which must have one worker and no other clients.
pub struct Control {
    client: RespClient,
    /// What this server has been sent by all.
    sent: usize,
}

impl Control {
    /// Connects, and asks how much the server has been sent so far.
    pub fn connect(address: &Address) -> io::Result<Control> {
        let mut control = Control { client: RespClient::connect(address)?, sent: 0 };
        control.sent = control.received()?;
        Ok(control)
    }

    fn ask(&mut self, args: &[&str]) -> io::Result<Vec<u8>> {
        let wire = request(args);
        self.sent += wire.len();
        self.client.send_bytes(&wire)?;
        match self.client.receive()? {
            Value::Blob(_, text) => Ok(text),
            other => Err(io::Error::other(format!("{args:?} is answered with {other:?}"))),
        }
    }

    /// What the server has received, this question included.
    fn received(&mut self) -> io::Result<usize> {
        let info = String::from_utf8_lossy(&self.ask(&["INFO", "stats"])?).into_owned();
        let field = info.lines().find_map(|line| line.strip_prefix("total_net_input_bytes:"));
        field.and_then(|n| n.trim().parse().ok()).ok_or_else(|| io::Error::other(info.clone()))
    }

    /// Waits until the server has read all that it was sent; whether it has closed the connection. One that
    /// it closes stays until all replies are sent, so a server that has replies left is asked again, for a
    /// while: they may be more than a connection takes that is not read from.
    fn has_closed(&mut self, id: &str) -> io::Result<bool> {
        let mut looks_while_sending = 0;
        for _ in 0..LOOKS_MAX {
            let has_read = self.received()? == self.sent;
            // The list is asked for afterwards: the server may still have worked on the bytes in the turn in
            // which it read them.
            let line = self.ask(&["CLIENT", "LIST", "ID", id])?;
            if line.is_empty() {
                return Ok(true);
            }
            let has_sent = String::from_utf8_lossy(&line).contains(" omem=0 ");
            looks_while_sending += u32::from(has_read && !has_sent);
            if has_read && (has_sent || looks_while_sending == SENDING_LOOKS_MAX) {
                return Ok(false);
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

/// Sends the pieces over a new connection.
pub fn play(address: &Address, control: &mut Control, pieces: &[Vec<u8>]) -> io::Result<Outcome> {
    const HELLO: &[u8] = b"CLIENT ID\r\n";
    let mut stream = Stream::connect(address)?;
    stream.both().write_all(HELLO)?;
    let id = read_line(stream.both())?;
    control.sent += HELLO.len();
    let mut is_closed = false;
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        is_closed = is_closed || stream.both().write_all(piece).is_err();
        control.sent += piece.len();
        is_closed = is_closed || control.has_closed(&id)?;
    }
    // A server that has closed and was still sent something resets: that is the end as well.
    let _ = stream.finish();
    let mut replies = Vec::new();
    let _ = stream.both().read_to_end(&mut replies);
    if is_closed {
        // A server that closes the connection need not have read all.
        control.sent = 0;
        control.sent = control.received()?;
    }
    Ok(Outcome { replies, is_closed })
}

/// The number that the server answers.
fn read_line(stream: &mut dyn ReadWrite) -> io::Result<String> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while !line.ends_with(b"\r\n") {
        stream.read_exact(&mut byte)?;
        line.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&line).trim_start_matches(':').trim().to_owned())
}
