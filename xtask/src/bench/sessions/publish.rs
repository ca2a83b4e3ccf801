//! PUBLISH of a short text to a thousand clients of one channel, and to one client of a thousand patterns.
//! The next one is published when all have got the one before, or, as a stream, when the server has answered.
use super::audience::Audience;
use super::{TEXT, Talk, array, connect, failed, read};
use crate::bench::client::append_request;
use std::io::{self, Write};
use std::net::TcpStream;

const LISTENERS: usize = 1000;
const PATTERNS: usize = 1000;

pub(super) struct Channel {
    publisher: TcpStream,
    audience: Audience,
    name: &'static str,
    /// What each of the audience gets of one text, and the publisher's reply.
    message: String,
    reply: String,
}

pub(super) fn to_many(port: u16) -> Result<Box<dyn Talk>, String> {
    Ok(Box::new(listeners(port, LISTENERS)?))
}

pub(super) fn stream_to_many(port: u16) -> Result<Box<dyn Talk>, String> {
    Ok(Box::new(Stream(listeners(port, LISTENERS)?)))
}

/// Clients that listen to one channel.
pub(super) fn listeners(port: u16, count: usize) -> Result<Channel, String> {
    let words = ["SUBSCRIBE".into(), "news".into()];
    open(port, count, &words, &["message", "news"]).map_err(|e| failed(&e))
}

pub(super) fn by_pattern(port: u16) -> Result<Box<dyn Talk>, String> {
    let patterns = (0..PATTERNS).map(|n| format!("news.{n}.*"));
    let words: Vec<String> = std::iter::once("PSUBSCRIBE".into()).chain(patterns).collect();
    let head = ["pmessage", "news.500.*", "news.500.sport"];
    Ok(Box::new(open(port, 1, &words, &head).map_err(|e| failed(&e))?))
}

/// Clients that listen, each by these words. `head` is what comes before the text, the channel's name last.
fn open(port: u16, count: usize, words: &[String], head: &[&'static str]) -> io::Result<Channel> {
    let mut wire = Vec::new();
    append_request(&mut wire, &words.iter().map(String::as_bytes).collect::<Vec<_>>());
    let confirmed = |(index, name): (usize, &String)| {
        array(&[&words[0], name]).len() + format!(":{}\r\n", index + 1).len()
    };
    let expected = words[1..].iter().enumerate().map(confirmed).sum();
    let listener = |_| {
        let mut listener = connect(port)?;
        listener.write_all(&wire)?;
        read(&mut listener, expected)?;
        Ok(listener)
    };
    let listeners: io::Result<Vec<TcpStream>> = (0..count).map(listener).collect();
    let text = String::from_utf8_lossy(&TEXT);
    Ok(Channel {
        publisher: connect(port)?,
        audience: Audience::new(listeners?)?,
        name: head[head.len() - 1],
        message: array(&[head, &[&text]].concat()),
        reply: format!(":{count}\r\n"),
    })
}

impl Talk for Channel {
    fn take_turn(&mut self, count: usize, depth: usize) -> Result<usize, String> {
        for _ in 0..count / depth {
            self.publish(depth).map_err(|e| failed(&e))?;
        }
        Ok(count / depth * depth)
    }
}

/// A publisher that waits for replies only, while its audience reads.
struct Stream(Channel);

impl Talk for Stream {
    fn take_turn(&mut self, count: usize, depth: usize) -> Result<usize, String> {
        let count = count / depth * depth;
        let Channel { publisher, audience, name, message, reply } = &mut self.0;
        let wire = requests(name, depth);
        let bytes = message.len() * count * audience.members.len();
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| audience.read(bytes, |_, _| Ok(())));
            for _ in 0..count / depth {
                publisher.write_all(&wire).map_err(|e| failed(&e))?;
                read(publisher, reply.len() * depth).map_err(|e| failed(&e))?;
            }
            let read = reading.join().map_err(|_| "bench: the clients that listen have ended")?;
            read.map_err(|e| failed(&e)).map(|()| count)
        })
    }
}

fn requests(channel: &str, depth: usize) -> Vec<u8> {
    let mut wire = Vec::new();
    for _ in 0..depth {
        append_request(&mut wire, &[b"PUBLISH", channel.as_bytes(), &TEXT]);
    }
    wire
}

impl Channel {
    /// Comes back when all have got what was published.
    pub(super) fn publish(&mut self, depth: usize) -> io::Result<()> {
        self.publisher.write_all(&requests(self.name, depth))?;
        let bytes = self.message.len() * depth * self.audience.members.len();
        self.audience.read(bytes, |_, _| Ok(()))?;
        read(&mut self.publisher, self.reply.len() * depth)
    }
}
