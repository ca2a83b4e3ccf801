//! Elements that fifty clients push to a list while others wait for them (BLPOP), who ask again at once. More
//! wait than are pushed together, so hardly anybody finds an element that is there.
use super::audience::Audience;
use super::{TEXT, Talk, array, connect as connect_one, failed};
use crate::bench::client::{Client, append_request};
use crate::bench::crowd::{Crowd, Turn};
use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;

const WAITING: usize = 1024;
const LIST: &str = "jobs";

struct Queue {
    pushers: Crowd,
    poppers: Audience,
    request: Vec<u8>,
    /// What a client gets that has waited.
    reply: String,
}

pub(super) fn connect(port: u16) -> Result<Box<dyn Talk>, String> {
    let mut request = Vec::new();
    append_request(&mut request, &[b"BLPOP", LIST.as_bytes(), b"0"]);
    let poppers = poppers(port, &request).map_err(|e| failed(&e))?;
    let reply = array(&[LIST, &String::from_utf8_lossy(&TEXT)]);
    Ok(Box::new(Queue { pushers: Crowd::connect(port)?, poppers, request, reply }))
}

/// Clients that wait.
fn poppers(port: u16, request: &[u8]) -> io::Result<Audience> {
    let popper = |_| {
        let mut stream = connect_one(port)?;
        stream.write_all(request)?;
        Ok(stream)
    };
    let poppers: io::Result<Vec<TcpStream>> = (0..WAITING).map(popper).collect();
    let poppers = Audience::new(poppers?)?;
    let mut client = Client::connect(port)?;
    while client.info("clients", "blocked_clients").map_err(io::Error::other)? != WAITING.to_string() {}
    Ok(poppers)
}

impl Talk for Queue {
    fn take_turn(&mut self, count: usize, depth: usize) -> Result<usize, String> {
        let mut write = |wire: &mut Vec<u8>| append_request(wire, &[b"LPUSH", LIST.as_bytes(), &TEXT]);
        let Queue { pushers, poppers, request, reply } = self;
        // Whole pipelines are sent, so there may be more than were asked for.
        let count = count.next_multiple_of(depth);
        std::thread::scope(|scope| {
            let popping = scope.spawn(|| {
                poppers.read(reply.len() * count, |popper, bytes| match bytes == reply.len() {
                    true => popper.write_all(request),
                    false => Err(ErrorKind::InvalidData.into()),
                })
            });
            let pushed = pushers.take_turn(&mut Turn { requests: count, depth, write: &mut write })?;
            let popped = popping.join().map_err(|_| "bench: the clients that wait have ended")?;
            popped.map_err(|e| failed(&e))?;
            Ok(pushed)
        })
    }
}
