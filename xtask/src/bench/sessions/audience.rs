//! Clients that are sent something at times that the server chooses: one thread and one event loop for all of
//! them, as in a program that serves many of its own users. Whoever reads one connection after another would
//! be woken once for each by a server that sends in the same order, and once in all by one that does not.
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::io::{self, ErrorKind, Read};

const READ_BYTES: usize = 16 << 10;

pub(super) struct Audience {
    poll: Poll,
    events: Events,
    pub(super) members: Vec<TcpStream>,
    /// What was read last.
    buffer: Vec<u8>,
}

impl Audience {
    /// Of connections to which everything has come that was asked for.
    pub(super) fn new(members: Vec<std::net::TcpStream>) -> io::Result<Audience> {
        let poll = Poll::new()?;
        let events = Events::with_capacity(members.len());
        let member = |(index, stream): (usize, std::net::TcpStream)| {
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry().register(&mut stream, Token(index), Interest::READABLE)?;
            Ok(stream)
        };
        let members: io::Result<Vec<TcpStream>> = members.into_iter().enumerate().map(member).collect();
        Ok(Audience { poll, events, members: members?, buffer: vec![0; READ_BYTES] })
    }

    /// Reads until so many bytes have come to all of them together. Each that something came to is named with
    /// how many bytes that was.
    pub(super) fn read(
        &mut self,
        bytes: usize,
        mut came: impl FnMut(&mut TcpStream, usize) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            self.poll.poll(&mut self.events, None)?;
            for event in &self.events {
                let member = &mut self.members[event.token().0];
                let read = read_all(member, &mut self.buffer)?;
                left = left.checked_sub(read).ok_or(ErrorKind::InvalidData)?;
                if read > 0 {
                    came(member, read)?;
                }
            }
        }
        Ok(())
    }
}

/// Reads all that has come.
fn read_all(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    let mut sum = 0;
    loop {
        match stream.read(buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => sum += read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(sum),
            Err(error) => return Err(error),
        }
    }
}
