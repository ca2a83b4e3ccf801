//! Fifty clients of one server that stay connected: each sends, waits for all its replies, and sends again.
//! One thread, one event loop, which registers each socket anew for each direction: what redis-benchmark
//! does, at its cost, so that the server meets the same pattern of arrivals. Between turns the connections
//! are idle.
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};

pub(crate) const CLIENTS: usize = 50;
const READ_BYTES: usize = 16 << 10;

pub(crate) struct Crowd {
    poll: Poll,
    events: Events,
    members: Vec<Member>,
    /// What was read last.
    buffer: Vec<u8>,
}

struct Member {
    stream: TcpStream,
    /// Requests, and how much of them has been sent.
    outbox: Vec<u8>,
    sent: usize,
    /// What of the replies has not been counted.
    inbox: Vec<u8>,
    /// Replies to come.
    awaited: usize,
}

/// What is sent in a turn.
pub(crate) struct Turn<'t> {
    pub(crate) requests: usize,
    /// Requests that a client sends together.
    pub(crate) depth: usize,
    /// Appends one request.
    pub(crate) write: &'t mut dyn FnMut(&mut Vec<u8>),
}

impl Crowd {
    pub(crate) fn connect(port: u16) -> Result<Crowd, String> {
        Crowd::of(CLIENTS, port)
    }

    pub(crate) fn of(clients: usize, port: u16) -> Result<Crowd, String> {
        let member = |_| -> std::io::Result<Member> {
            let stream = connected(port)?;
            Ok(Member { stream, outbox: Vec::new(), sent: 0, inbox: Vec::new(), awaited: 0 })
        };
        let members: std::io::Result<Vec<Member>> = (0..clients).map(member).collect();
        let poll = Poll::new().map_err(|e| failed(&e))?;
        let (events, members) = (Events::with_capacity(clients), members.map_err(|e| failed(&e))?);
        Ok(Crowd { poll, events, members, buffer: vec![0; READ_BYTES] })
    }

    /// Sends so many requests, and comes back when all are answered; how many they were, in whole pipelines.
    pub(crate) fn take_turn(&mut self, turn: &mut Turn<'_>) -> Result<usize, String> {
        self.try_turn(turn).map_err(|e| failed(&e))
    }

    fn try_turn(&mut self, turn: &mut Turn<'_>) -> std::io::Result<usize> {
        let (mut sent, mut busy) = (0, 0);
        for index in 0..self.members.len() {
            if sent < turn.requests {
                self.listen(index, Interest::WRITABLE)?;
                (sent, busy) = (sent + turn.depth, busy + 1);
            }
        }
        while busy > 0 {
            self.poll.poll(&mut self.events, None)?;
            let ready: Vec<(usize, bool)> =
                self.events.iter().map(|event| (event.token().0, event.is_writable())).collect();
            for (index, is_writable) in ready {
                if is_writable {
                    self.send(index, turn)?;
                } else if self.members[index].is_answered(&mut self.buffer)? {
                    self.poll.registry().deregister(&mut self.members[index].stream)?;
                    busy -= 1;
                    if sent < turn.requests {
                        self.listen(index, Interest::WRITABLE)?;
                        (sent, busy) = (sent + turn.depth, busy + 1);
                    }
                }
            }
        }
        Ok(sent)
    }

    fn listen(&mut self, index: usize, interest: Interest) -> std::io::Result<()> {
        self.poll.registry().register(&mut self.members[index].stream, Token(index), interest)
    }

    fn send(&mut self, index: usize, turn: &mut Turn<'_>) -> std::io::Result<()> {
        let member = &mut self.members[index];
        if member.outbox.is_empty() {
            (0..turn.depth).for_each(|_| (turn.write)(&mut member.outbox));
            member.awaited = turn.depth;
        }
        match member.stream.write(&member.outbox[member.sent..]) {
            Ok(count) => member.sent += count,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
        if member.sent == member.outbox.len() {
            member.outbox.clear();
            member.sent = 0;
            self.poll.registry().deregister(&mut member.stream)?;
            self.listen(index, Interest::READABLE)?;
        }
        Ok(())
    }
}

impl Member {
    /// Reads what has come; whether nothing more is to come.
    fn is_answered(&mut self, buffer: &mut [u8]) -> std::io::Result<bool> {
        loop {
            let count = match self.stream.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(e),
            };
            self.inbox.extend_from_slice(&buffer[..count]);
            let (replies, read) = whole_replies(&self.inbox)?;
            self.inbox.drain(..read);
            self.awaited = self.awaited.checked_sub(replies).ok_or(ErrorKind::InvalidData)?;
            if self.awaited == 0 {
                return Ok(true);
            }
        }
    }
}

/// A client for an event loop. It waits until it is connected, which mio's own would not.
pub(super) fn connected(port: u16) -> std::io::Result<TcpStream> {
    let stream = std::net::TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(TcpStream::from_std(stream))
}

/// How many replies `bytes` begins with, and how long they are together. Errors end the run.
pub(super) fn whole_replies(bytes: &[u8]) -> std::io::Result<(usize, usize)> {
    let (mut count, mut at) = (0, 0);
    while let Some(len) = whole_reply(&bytes[at..])? {
        (count, at) = (count + 1, at + len);
    }
    Ok((count, at))
}

/// How long the reply is that `bytes` begins with; None where the end of it is missing.
fn whole_reply(bytes: &[u8]) -> std::io::Result<Option<usize>> {
    // Parts to come, of arrays within arrays too.
    let (mut parts, mut at) = (1, 0);
    while parts > 0 {
        let Some(line) = bytes[at..].iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes[at + 1..at + line]);
        // A missing value has a length of -1 and no body.
        let len = text.trim_end().parse::<usize>().unwrap_or(0);
        let is_missing = text.starts_with('-');
        let body = match bytes[at] {
            b'+' | b':' => 0,
            b'$' if is_missing => 0,
            b'$' => len + 2,
            b'*' => {
                parts += len;
                0
            }
            _ => return Err(std::io::Error::other(format!("{}{text}", char::from(bytes[at])))),
        };
        (parts, at) = (parts - 1, at + line + 1 + body);
        if at > bytes.len() {
            return Ok(None);
        }
    }
    Ok(Some(at))
}

fn failed(error: &std::io::Error) -> String {
    format!("bench: a client: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_counted_when_they_are_whole() {
        let bytes = b"+OK\r\n:12\r\n$3\r\na\nb\r\n$-1\r\n$0\r\n\r\n$4\r\nab";
        assert_eq!(whole_replies(bytes).unwrap(), (5, bytes.len() - 6));
        assert_eq!(whole_replies(b"").unwrap(), (0, 0));
        assert_eq!(whole_replies(b"$3\r").unwrap(), (0, 0));
    }

    #[test]
    fn arrays_are_whole_when_all_their_parts_are() {
        let bytes = b"*2\r\n$1\r\na\r\n*2\r\n:1\r\n*0\r\n*-1\r\n*1\r\n";
        assert_eq!(whole_replies(bytes).unwrap(), (2, bytes.len() - 4));
        (0..bytes.len() - 10)
            .for_each(|len| assert_eq!(whole_replies(&bytes[..len]).unwrap(), (0, 0), "{len}"));
    }

    #[test]
    fn an_error_is_told() {
        assert!(whole_replies(b"-ERR no\r\n").unwrap_err().to_string().contains("ERR no"));
    }
}
