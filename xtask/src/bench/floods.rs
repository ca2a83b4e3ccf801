//! One request beside a flood: four clients that send one SET at a time, while many others keep the server
//! busy, and how long each of the four waits for its replies.
//!
//! | case | what the many do |
//! |---|---|
//! | `pipelines` | send 1,000 SETs, read all replies, send again |
//! | `long-pipelines` | the same with 20,000 |
//! | `transactions` | as `pipelines`, with a MULTI and an EXEC around every 100 |
//! | `unread` | send SETs and never read a reply |
//! | `slow-readers` | send 1,000 SETs and read 4 KB of the replies every 20 ms |
//! | `monitors` | watch with MONITOR and read, while 50 others are as in `pipelines` |
//!
//! The server has one processor, clients the other; those who flood have the lower priority there, so that
//! the four wait for the server and not for them. Beside the waits stand how many requests the server ran
//! and its resident memory at the end.

use super::Options;
use super::client::append_request;
use super::crowd::connected;
use super::server::{Server, Spec, pin_this};
use super::stalls::summary;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const CASES: [&str; 6] =
    ["pipelines", "long-pipelines", "transactions", "unread", "slow-readers", "monitors"];
/// How many flood, where `--keys` does not say.
const MANY: u64 = 1_000;
/// How many send pipelines while others watch.
const WATCHED: usize = 50;
const QUIET: usize = 4;
const SECONDS: f64 = 10.0;
/// The flood has begun by then.
const BEFORE: Duration = Duration::from_secs(2);
const DEPTH: usize = 1_000;
const LONG_DEPTH: usize = 20_000;
const TRANSACTION: usize = 100;
const READ_BYTES: usize = 64 << 10;
const SLOW_BYTES: usize = 4 << 10;
const SLOW_PAUSE: Duration = Duration::from_millis(20);
/// How long the flood waits for news before it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

/// Whether there is a case of this name.
pub(super) fn knows(name: &str) -> bool {
    CASES.contains(&name)
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    pin_this("1")?;
    for case in CASES.iter().filter(|case| options.wants(case)) {
        for spec in &options.servers {
            println!("{case:14} {}", measure(spec, case, options)?);
        }
    }
    Ok(())
}

/// One case on one server: a line of its figures.
fn measure(spec: &Spec, case: &str, options: &Options) -> Result<String, String> {
    let server = Server::start(spec, Some("0"))?;
    let many = if options.is_quick { 20 } else { options.keys.unwrap_or(MANY) as usize };
    let time =
        Duration::from_secs_f64(options.seconds.unwrap_or(if options.is_quick { 0.5 } else { SECONDS }));
    let flood = Flood::connect(server.port, case, many).map_err(|e| format!("bench: a client: {e}"))?;
    let is_over = AtomicBool::new(false);
    let (waits, requests) = std::thread::scope(|scope| {
        let flood = scope.spawn(|| flood.run(&is_over));
        std::thread::sleep(if options.is_quick { Duration::ZERO } else { BEFORE });
        let measured = waits(&server, time);
        is_over.store(true, Relaxed);
        let ran = flood.join().map_err(|_| "bench: the flood failed".to_string())?;
        ran.map_err(|e| format!("bench: a client: {e}")).and(measured)
    })?;
    let rss_mb = server.rss_bytes() >> 20;
    let waits = summary(waits);
    Ok(format!("{:10} {waits}; {requests:.0} requests a second, RSS {rss_mb} MB", server.name))
}

/// The waits of all quiet clients in microseconds, and how many requests a second the server ran meanwhile.
fn waits(server: &Server, time: Duration) -> Result<(Vec<u64>, f64), String> {
    let mut clients: Vec<_> = (0..QUIET).map(|_| server.client()).collect::<Result<_, _>>()?;
    let mut teller = server.client()?;
    let mut count = || -> Result<f64, String> {
        teller.info("stats", "total_commands_processed")?.parse().map_err(|_| "bench: no number".to_string())
    };
    #[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    let (start, before) = (Instant::now(), count()?);
    let waits: Result<Vec<Vec<u64>>, String> = std::thread::scope(|scope| {
        let quiet: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                scope.spawn(move || -> Result<Vec<u64>, String> {
                    let mut waits = Vec::new();
                    #[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
                    while start.elapsed() < time {
                        let sent = Instant::now();
                        client.call(&[b"SET", b"quiet", b"value"])?;
                        waits.push(sent.elapsed().as_micros() as u64);
                    }
                    Ok(waits)
                })
            })
            .collect();
        quiet.into_iter().map(|one| one.join().map_err(|_| "bench: a client failed".to_string())?).collect()
    });
    let ran = count()? - before;
    Ok((waits?.concat(), ran / start.elapsed().as_secs_f64()))
}

/// How a member reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// All, and sends again when it has the replies to what it has sent.
    Replies,
    /// All, and sends nothing more.
    All,
    Slowly,
    Never,
}

struct Flood {
    poll: Poll,
    members: Vec<Member>,
}

struct Member {
    stream: TcpStream,
    reads: Reads,
    /// What it sends at a time, how much of that has been sent, and how many bytes the replies have.
    requests: Arc<[u8]>,
    sent: usize,
    reply_bytes: usize,
    /// Bytes of replies to come.
    awaited: usize,
}

impl Flood {
    fn connect(port: u16, case: &str, many: usize) -> std::io::Result<Flood> {
        let poll = Poll::new()?;
        let kinds: Vec<Reads> = match case {
            "monitors" => [vec![Reads::All; many], vec![Reads::Replies; WATCHED]].concat(),
            "unread" => vec![Reads::Never; many],
            "slow-readers" => vec![Reads::Slowly; many],
            _ => vec![Reads::Replies; many],
        };
        let (mut members, mut made) = (Vec::new(), BTreeMap::new());
        for (number, reads) in kinds.into_iter().enumerate() {
            let mut stream = connected(port)?;
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(&mut stream, Token(number), interest)?;
            let (requests, reply_bytes) =
                made.entry(reads == Reads::All).or_insert_with(|| requests(case, reads)).clone();
            members.push(Member { stream, reads, requests, sent: 0, reply_bytes, awaited: reply_bytes });
        }
        Ok(Flood { poll, members })
    }

    /// Floods until it is over.
    fn run(mut self, is_over: &AtomicBool) -> std::io::Result<()> {
        have_low_priority();
        let mut events = Events::with_capacity(self.members.len());
        let mut room = vec![0; READ_BYTES];
        for member in &mut self.members {
            member.write()?;
        }
        #[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
        let mut last = Instant::now();
        while !is_over.load(Relaxed) {
            self.poll.poll(&mut events, Some(LOOK))?;
            for event in &events {
                let member = &mut self.members[event.token().0];
                if matches!(member.reads, Reads::Replies | Reads::All) {
                    member.read(&mut room)?;
                }
                member.write()?;
            }
            if last.elapsed() >= SLOW_PAUSE {
                last += last.elapsed();
                for member in self.members.iter_mut().filter(|member| member.reads == Reads::Slowly) {
                    member.read_some(&mut room[..SLOW_BYTES])?;
                    member.write()?;
                }
            }
        }
        Ok(())
    }
}

impl Member {
    /// Sends as much as the kernel takes; those who await no replies begin anew when all is sent.
    fn write(&mut self) -> std::io::Result<()> {
        while self.sent < self.requests.len() {
            match self.stream.write(&self.requests[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
            if self.sent == self.requests.len() && self.reads == Reads::Never {
                self.sent = 0;
            }
        }
        Ok(())
    }

    /// Reads all that has come.
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<()> {
        while self.read_some(room)? {}
        Ok(())
    }

    /// Reads once. Whether something had come.
    fn read_some(&mut self, room: &mut [u8]) -> std::io::Result<bool> {
        let count = match self.stream.read(room) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(e),
        };
        if self.reads != Reads::All {
            self.awaited = self.awaited.checked_sub(count).ok_or(ErrorKind::InvalidData)?;
            if self.awaited == 0 {
                (self.sent, self.awaited) = (0, self.reply_bytes);
                self.write()?;
            }
        }
        Ok(true)
    }
}

/// What a member sends at a time, and how long the replies are.
fn requests(case: &str, reads: Reads) -> (Arc<[u8]>, usize) {
    let (mut out, mut reply_bytes) = (Vec::new(), 0);
    let mut add = |args: &[&[u8]], reply: usize| {
        append_request(&mut out, args);
        reply_bytes += reply;
    };
    let (ok, queued) = ("+OK\r\n".len(), "+QUEUED\r\n".len());
    let in_transactions = case == "transactions";
    if reads == Reads::All {
        add(&[b"MONITOR"], ok);
        return (out.into(), reply_bytes);
    }
    for at in 0..if case == "long-pipelines" { LONG_DEPTH } else { DEPTH } {
        if in_transactions && at % TRANSACTION == 0 {
            add(&[b"MULTI"], ok);
        }
        let key = format!("key:{at}");
        add(&[b"SET", key.as_bytes(), b"value"], if in_transactions { queued + ok } else { ok });
        if in_transactions && at % TRANSACTION == TRANSACTION - 1 {
            add(&[b"EXEC"], format!("*{TRANSACTION}\r\n").len());
        }
    }
    (out.into(), reply_bytes)
}

/// The calling thread gives way to the quiet clients.
fn have_low_priority() {
    let thread = std::fs::read_link("/proc/thread-self").ok();
    let id = thread.as_deref().and_then(|path| path.file_name()?.to_str());
    if let Some(id) = id {
        let _ = Command::new("renice").args(["-n", "10", "-p", id]).stdout(Stdio::null()).status();
    }
}
