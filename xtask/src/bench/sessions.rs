//! Server CPU of what happens between clients: PUBLISH to a thousand who listen, and PUBLISH where a thousand
//! patterns are listened by, of which one matches. The servers take turns, and a turn ends when every message
//! has arrived; what counts is the median over the turns, and the median of the ratios within rounds.
use super::Options;
use super::anysize::median;
use super::client::append_request;
use super::server::Server;
use std::io::{self, Read, Write};
use std::net::TcpStream;

const LISTENERS: usize = 1000;
const PATTERNS: usize = 1000;
const ROUNDS: usize = 40;
const DEPTHS: [usize; 2] = [1, 16];
const TEXT: [u8; 32] = [b'm'; 32];

struct Case {
    name: &'static str,
    channel: &'static str,
    /// How many clients listen, each with these words.
    listeners: usize,
    subscription: fn() -> Vec<String>,
    /// What each gets of a message before the channel's name.
    head: &'static [&'static str],
    /// Messages of a turn.
    messages: usize,
}

const CASES: [Case; 2] = [
    Case {
        name: "publish-1000",
        channel: "news",
        listeners: LISTENERS,
        subscription: || vec!["SUBSCRIBE".into(), "news".into()],
        head: &["message"],
        messages: 64,
    },
    Case {
        name: "publish-patterns",
        channel: "news.500.sport",
        listeners: 1,
        subscription: || {
            let patterns = (0..PATTERNS).map(|n| format!("news.{n}.*"));
            std::iter::once("PSUBSCRIBE".into()).chain(patterns).collect()
        },
        head: &["pmessage", "news.500.*"],
        messages: 8000,
    },
];

/// One server's clients.
struct Clients {
    publisher: TcpStream,
    listeners: Vec<TcpStream>,
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let servers: Result<Vec<Server>, String> =
        options.servers.iter().map(|spec| Server::start(spec, None)).collect();
    let servers = servers?;
    let is_wanted =
        |case: &&Case| options.names.is_empty() || options.names.iter().any(|name| name == case.name);
    for case in CASES.iter().filter(is_wanted) {
        for depth in DEPTHS {
            let rounds = options.rounds.unwrap_or(ROUNDS);
            compare(&servers, case, depth, rounds).map_err(|e| format!("bench: {}: {e}", case.name))?;
        }
    }
    Ok(())
}

fn compare(servers: &[Server], case: &Case, depth: usize, rounds: usize) -> io::Result<()> {
    let clients: io::Result<Vec<Clients>> = servers.iter().map(|s| Clients::connect(s.port, case)).collect();
    let mut clients = clients?;
    let mut times_us = vec![Vec::new(); servers.len()];
    for round in 0..=rounds {
        for at in 0..servers.len() {
            // The servers take turns in being first.
            let at = if round % 2 == 0 { at } else { servers.len() - 1 - at };
            let before = servers[at].cpu_us();
            clients[at].take_turn(case, depth)?;
            // The first round only warms the caches.
            if round > 0 {
                times_us[at].push((servers[at].cpu_us() - before) / case.messages as f64);
            }
        }
    }
    for (server, theirs) in servers.iter().zip(&times_us) {
        let mut ratios: Vec<f64> = times_us[0].iter().zip(theirs).map(|(ours, them)| ours / them).collect();
        let (time_us, ratio) = (median(&mut theirs.clone()), median(&mut ratios));
        let (name, server) = (case.name, &server.name);
        println!("{name:17} P={depth:<3} {server:12} {time_us:9.2} us a PUBLISH; sardine/it {ratio:.2}");
    }
    Ok(())
}

impl Clients {
    fn connect(port: u16, case: &Case) -> io::Result<Clients> {
        let connect = || -> io::Result<TcpStream> {
            let stream = TcpStream::connect(("127.0.0.1", port))?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let words = (case.subscription)();
        let kind = words[0].to_ascii_lowercase();
        let (mut wire, mut expected) = (Vec::new(), 0);
        append_request(&mut wire, &words.iter().map(String::as_bytes).collect::<Vec<_>>());
        for (index, name) in words[1..].iter().enumerate() {
            expected += message(&[&kind, name]).len() + format!(":{}\r\n", index + 1).len();
        }
        let mut listeners = Vec::new();
        for _ in 0..case.listeners {
            let mut listener = connect()?;
            listener.write_all(&wire)?;
            read(&mut listener, expected)?;
            listeners.push(listener);
        }
        Ok(Clients { publisher: connect()?, listeners })
    }

    /// Publishes a turn's messages and reads what everybody gets.
    fn take_turn(&mut self, case: &Case, depth: usize) -> io::Result<()> {
        let mut wire = Vec::new();
        for _ in 0..depth {
            append_request(&mut wire, &[b"PUBLISH", case.channel.as_bytes(), &TEXT]);
        }
        let text = String::from_utf8_lossy(&TEXT);
        let got = message(&[case.head, &[case.channel, &text]].concat()).len() * depth;
        let replies = format!(":{}\r\n", case.listeners).len() * depth;
        for _ in 0..case.messages / depth {
            self.publisher.write_all(&wire)?;
            read(&mut self.publisher, replies)?;
            self.listeners.iter_mut().try_for_each(|listener| read(listener, got))?;
        }
        Ok(())
    }
}

/// An array as it comes over the wire; one of a confirmation has its number behind these words, and as long a
/// header.
fn message(words: &[&str]) -> String {
    let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    "*3\r\n".to_owned() + &words.collect::<String>()
}

fn read(stream: &mut TcpStream, len: usize) -> io::Result<()> {
    io::copy(&mut stream.take(len as u64), &mut io::sink()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_as_long_as_the_server_sends_it() {
        assert_eq!(message(&["message", "c", "hi"]), "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n");
    }
}
