//! Fifty connections of one thread, each with one request under way, and how long each request took. It costs
//! the machine as little as a client can: a socket is registered once, and read once for a reply. `crowd.rs`
//! sends pipelines, at the cost of redis-benchmark.
use super::crowd::{CLIENTS, whole_replies};
use super::server::Server;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(1);
const REQUESTS_A_TICK: usize = 20;
/// A part of a run, of which the p99 is kept.
const WINDOW: Duration = Duration::from_millis(250);
/// How often a run is asked whether it goes on.
const SAMPLE: Duration = Duration::from_millis(10);

/// Which requests are due.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    /// Twenty in every millisecond, whether those before are answered or not.
    Paced,
    /// One for each connection, as soon as the one before is answered.
    Full,
}

/// The connections, and one thread that serves them all.
pub(super) struct Clients {
    poll: Poll,
    members: Vec<Member>,
    /// Those who wait for no reply.
    free: Vec<usize>,
    /// Requests that are due and not sent, because nobody is free.
    due: VecDeque<Instant>,
    times_us: Vec<u32>,
    /// The p99 of each whole [`WINDOW`].
    window_p99s_us: Vec<u32>,
    /// How long requests were sent.
    pub(super) took_s: f64,
    request: Vec<u8>,
}

struct Member {
    stream: TcpStream,
    inbox: Vec<u8>,
    /// When the request was due that it waits for.
    since: Instant,
}

#[allow(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn now() -> Instant {
    Instant::now()
}

impl Clients {
    pub(super) fn connect(server: &Server) -> Result<Clients, String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
        let poll = Poll::new().map_err(|e| failed(&e))?;
        let member = |index| -> std::io::Result<Member> {
            let stream = std::net::TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry().register(&mut stream, Token(index), Interest::READABLE)?;
            Ok(Member { stream, inbox: Vec::new(), since: now() })
        };
        let members: std::io::Result<Vec<Member>> = (0..CLIENTS).map(member).collect();
        Ok(Clients {
            members: members.map_err(|e| failed(&e))?,
            poll,
            free: (0..CLIENTS).collect(),
            due: VecDeque::new(),
            times_us: Vec::new(),
            window_p99s_us: Vec::new(),
            took_s: 0.0,
            request: Vec::new(),
        })
    }

    /// Sends what is due for so long, or until `goes_on` says no; then waits for the last replies. `write`
    /// appends a request.
    pub(super) fn run(
        &mut self,
        (load, time): (Load, Duration),
        write: &mut dyn FnMut(&mut Vec<u8>),
        goes_on: &mut dyn FnMut() -> Result<bool, String>,
    ) -> Result<(), String> {
        let began = now();
        let (mut tick, mut sample) = (began, began);
        let (mut window, mut window_at) = (began, self.times_us.len());
        let mut events = Events::with_capacity(CLIENTS);
        loop {
            let at = now();
            if at.duration_since(began) >= time {
                break;
            }
            if at >= sample {
                if !goes_on()? {
                    break;
                }
                sample = at + SAMPLE;
            }
            if at.duration_since(window) >= WINDOW {
                let p99 = Times::of(self.times_us[window_at..].to_vec()).at(0.99);
                self.window_p99s_us.push(p99);
                (window, window_at) = (at, self.times_us.len());
            }
            match load {
                Load::Full => self.due.extend(self.free.iter().map(|_| at)),
                Load::Paced => {
                    // That this thread looks late is not the server's doing.
                    while tick <= at {
                        self.due.extend([at; REQUESTS_A_TICK]);
                        tick += TICK;
                    }
                }
            }
            self.send_due(write).map_err(|e| failed(&e))?;
            let pause = if load == Load::Paced { tick.saturating_duration_since(now()) } else { SAMPLE };
            self.receive(&mut events, pause).map_err(|e| failed(&e))?;
        }
        self.took_s += began.elapsed().as_secs_f64();
        while !self.due.is_empty() || self.free.len() < CLIENTS {
            self.send_due(write).map_err(|e| failed(&e))?;
            self.receive(&mut events, SAMPLE).map_err(|e| failed(&e))?;
        }
        Ok(())
    }

    /// What was measured since this was called last.
    pub(super) fn take_times(&mut self) -> Times {
        let window_p99s_us = std::mem::take(&mut self.window_p99s_us);
        let took_s = std::mem::take(&mut self.took_s);
        Times { took_s, window_p99s_us, ..Times::of(std::mem::take(&mut self.times_us)) }
    }

    fn send_due(&mut self, write: &mut dyn FnMut(&mut Vec<u8>)) -> std::io::Result<()> {
        while let Some(index) = self.free.last().copied()
            && let Some(due) = self.due.pop_front()
        {
            self.free.pop();
            self.request.clear();
            write(&mut self.request);
            let member = &mut self.members[index];
            member.since = due;
            // A request is far shorter than the room that a socket has.
            member.stream.write_all(&self.request)?;
        }
        Ok(())
    }

    fn receive(&mut self, events: &mut Events, pause: Duration) -> std::io::Result<()> {
        self.poll.poll(events, Some(pause))?;
        for event in &*events {
            let member = &mut self.members[event.token().0];
            if member.is_answered()? {
                self.times_us.push(member.since.elapsed().as_micros().min(u128::from(u32::MAX)) as u32);
                self.free.push(event.token().0);
            }
        }
        Ok(())
    }
}

impl Member {
    /// Reads what has come; whether that is a whole reply.
    fn is_answered(&mut self) -> std::io::Result<bool> {
        let mut buffer = [0; 4096];
        loop {
            let count = match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(e),
            };
            self.inbox.extend_from_slice(&buffer[..count]);
            if whole_replies(&self.inbox)?.0 > 0 {
                self.inbox.clear();
                return Ok(true);
            }
        }
    }
}

/// How long requests took, in ascending order.
#[derive(Default)]
pub(super) struct Times {
    us: Vec<u32>,
    /// In the order of their windows.
    window_p99s_us: Vec<u32>,
    pub(super) took_s: f64,
}

impl Times {
    fn of(mut us: Vec<u32>) -> Times {
        us.sort_unstable();
        Times { us, ..Times::default() }
    }

    /// These too.
    pub(super) fn add(&mut self, more: Times) {
        self.us.extend(more.us);
        self.us.sort();
        self.window_p99s_us.extend(more.window_p99s_us);
        self.took_s += more.took_s;
    }

    /// The p99 below which that of this part of all quarter seconds is.
    pub(super) fn window_p99(&self, part: f64) -> u32 {
        Times::of(self.window_p99s_us.clone()).at(part)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.us.len()
    }

    /// Requests in a second.
    pub(super) fn rate(&self) -> f64 {
        self.us.len() as f64 / self.took_s
    }

    /// The time of which this part of all is shorter.
    pub(super) fn at(&self, part: f64) -> u32 {
        self.us.get((self.us.len().max(1) as f64 * part) as usize).or(self.us.last()).copied().unwrap_or(0)
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [p50, p99, p999, max] = [0.5, 0.99, 0.999, 1.0].map(|part| self.at(part));
        write!(f, "{:6.0} a second; p50 {p50} us, p99 {p99}, p99.9 {p999}, max {max}", self.rate())
    }
}

fn failed(error: &std::io::Error) -> String {
    format!("bench: a client: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_by_parts_of_all() {
        let times = Times { took_s: 2.0, ..Times::of((1..=1000).rev().collect()) };
        assert_eq!([0.5, 0.99, 0.999, 1.0].map(|part| times.at(part)), [501, 991, 1000, 1000]);
        assert_eq!(times.to_string(), "   500 a second; p50 501 us, p99 991, p99.9 1000, max 1000");
        assert_eq!(Times::default().at(0.99), 0);
    }
}
