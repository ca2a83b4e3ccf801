//! One suite over both engines. A test is a function of a `Rig`, which holds an engine and what it has told
//! so far; `on_every_engine!` runs it on each kind, and says so where the kernel refuses io_uring. Clients
//! are plain std sockets. Nothing is timed: waits end when what they wait for has come, or after a generous
//! limit that fails.
#[path = "../../../testkit/src/certificates.rs"]
#[allow(dead_code, unreachable_pub, reason = "testkit uses all of it")]
pub(crate) mod certificates;
mod engine;
mod hostile;
mod tls;
mod well_behaved;

use crate::{Accepted, CloseWhen, ConnId, Engine, EngineKind, Event, Listener, Peer, Received, Wait, open};
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Defines a test a line; each runs the function of that name with each kind of engine.
macro_rules! on_every_engine {
    ($($name:ident)*) => {
        mod epoll { $(#[test] fn $name() { crate::tests::with_rig(crate::EngineKind::Epoll, super::$name); })* }
        mod uring { $(#[test] fn $name() { crate::tests::with_rig(crate::EngineKind::Uring, super::$name); })* }
    };
}
pub(crate) use on_every_engine;

#[allow(clippy::disallowed_macros, reason = "a test that does not run says so")]
pub(crate) fn with_rig(kind: EngineKind, test: fn(Rig)) {
    match open(kind) {
        Ok(opened) => test(Rig::new(opened.engine)),
        Err(e) if kind == EngineKind::Uring => println!("skipped: no io_uring here: {e}"),
        Err(e) => panic!("no engine: {e}"),
    }
}

/// Long enough for anything that will happen at all, on a busy machine too, and where TCP sends something
/// again: the kernel waits twice as long after every try that fails.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// An engine that listens on loopback, and what it has told.
pub(crate) struct Rig {
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) address: SocketAddr,
    pub(crate) accepted: VecDeque<Accepted>,
    pub(crate) refused: Vec<std::io::Error>,
    pub(crate) drained: Vec<ConnId>,
    pub(crate) gone: Vec<ConnId>,
    pub(crate) readable: Vec<ConnId>,
    pub(crate) woken: usize,
    pub(crate) unsecured: Vec<(ConnId, String)>,
    /// What every connection has sent us, and whether it has ended.
    pub(crate) inbox: BTreeMap<ConnId, Inbox>,
    /// How much one `receive` may take.
    pub(crate) receive_limit: usize,
}

#[derive(Default)]
pub(crate) struct Inbox {
    pub(crate) bytes: Vec<u8>,
    pub(crate) has_ended: bool,
}

impl Rig {
    fn new(mut engine: Box<dyn Engine>) -> Rig {
        let listener = Listener::tcp((Ipv4Addr::LOCALHOST, 0).into(), 1024).unwrap();
        let Peer::Tcp { local: address, .. } = listener.local_addr() else { panic!("not TCP") };
        engine.listen(Arc::new(listener)).unwrap();
        Rig {
            engine,
            address,
            accepted: VecDeque::new(),
            refused: Vec::new(),
            drained: Vec::new(),
            gone: Vec::new(),
            readable: Vec::new(),
            woken: 0,
            unsecured: Vec::new(),
            inbox: BTreeMap::new(),
            receive_limit: 16 << 10,
        }
    }

    /// One poll, whose events are sorted into the rig's fields; nothing is received. Returns how many events
    /// came.
    pub(crate) fn poll(&mut self, timeout: Duration) -> usize {
        let mut events = Vec::new();
        self.engine.poll(Wait::at_most(timeout), &mut events).unwrap();
        let count = events.len();
        for event in events {
            match event {
                Event::Accepted(accepted) => self.accepted.push_back(accepted),
                Event::Refused(error) => self.refused.push(error),
                Event::Readable(id) => self.readable.push(id),
                Event::Drained(id) => self.drained.push(id),
                Event::Gone(id) => self.gone.push(id),
                Event::Unsecured(id, error) => self.unsecured.push((id, error.to_string())),
                Event::Woken => self.woken += 1,
            }
        }
        count
    }

    /// Receives once for every `Readable` told.
    pub(crate) fn receive_all(&mut self) {
        for id in std::mem::take(&mut self.readable) {
            let inbox = self.inbox.entry(id).or_default();
            match self.engine.receive(id, &mut inbox.bytes, self.receive_limit) {
                Received::Bytes(n) => assert!((1..=self.receive_limit).contains(&n)),
                Received::End => inbox.has_ended = true,
                Received::Empty | Received::Failed(_) => {}
            }
        }
    }

    /// Polls and receives until `done` holds.
    pub(crate) fn until(&mut self, what: &str, mut done: impl FnMut(&mut Rig) -> bool) {
        let wait = Duration::from_millis(20);
        let mut idle_polls = 0;
        while !done(self) {
            assert!(wait * idle_polls < LIMIT, "{what} never came");
            idle_polls += u32::from(self.poll(wait) == 0);
            self.receive_all();
        }
    }

    /// Polls and receives a few times, for what must not come.
    pub(crate) fn settle(&mut self) {
        for _ in 0..5 {
            self.poll(Duration::from_millis(4));
            self.receive_all();
        }
    }

    /// A client, and its connection here.
    pub(crate) fn connect(&mut self) -> (TcpStream, ConnId) {
        let client = TcpStream::connect(self.address).unwrap();
        client.set_read_timeout(Some(LIMIT)).unwrap();
        client.set_write_timeout(Some(LIMIT)).unwrap();
        self.until("the connection", |rig| !rig.accepted.is_empty());
        let accepted = self.accepted.pop_front().unwrap();
        let id = self.engine.adopt(accepted).unwrap();
        (client, id)
    }

    pub(crate) fn send(&mut self, id: ConnId, data: &[u8]) {
        let mut data = data.to_vec();
        self.engine.send(id, &mut data);
        assert!(data.is_empty());
    }

    /// What a client reads, while the engine goes on.
    pub(crate) fn replied(&mut self, client: &mut TcpStream, len: usize) -> Vec<u8> {
        let (mut reply, mut have) = (vec![0; len], 0);
        client.set_nonblocking(true).unwrap();
        self.until("the reply", |_| {
            have += client.read(&mut reply[have..]).unwrap_or(0);
            have == len
        });
        client.set_nonblocking(false).unwrap();
        reply
    }

    pub(crate) fn received(&self, id: ConnId) -> &[u8] {
        self.inbox.get(&id).map_or(&[], |inbox| &inbox.bytes)
    }

    pub(crate) fn has_ended(&self, id: ConnId) -> bool {
        self.inbox.get(&id).is_some_and(|inbox| inbox.has_ended)
    }

    pub(crate) fn until_received(&mut self, id: ConnId, bytes: &[u8]) {
        self.until("the request", |rig| rig.received(id).len() >= bytes.len());
        assert!(self.received(id) == bytes);
    }

    pub(crate) fn until_gone(&mut self, id: ConnId) {
        self.until("Gone", |rig| rig.gone.contains(&id));
    }

    pub(crate) fn close(&mut self, id: ConnId, when: CloseWhen) {
        self.engine.close(id, when);
    }
}

/// What the kernel knows of the connections of a port: state, queues, timers and how often it has sent again.
/// For messages of tests that wait in vain.
pub(crate) fn kernel_table(port: u16) -> String {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let port = format!(":{port:04X} ");
    let rows = table.lines().enumerate().filter(|(i, row)| *i == 0 || row.contains(&port));
    rows.map(|(_, row)| format!("\n{row}")).collect()
}

/// Bytes that no two positions near each other share, so that a lost or doubled piece shows.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| (i ^ i >> 8 ^ i >> 16) as u8).collect()
}
