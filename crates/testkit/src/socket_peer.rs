//! A server behind a socket as the peer of transcripts: a real one, or ours in this process, whose time may
//! be moved.
use crate::conversation::{Conversation, Heard};
use crate::resp_client::{Address, RespClient};
use crate::resp_value::Value;
use crate::transcript::{Peer, Version, parse_version};
use resp::Protocol;
use server::SimulatedTime;
use std::collections::BTreeMap;
use std::io;
use std::thread::sleep;
use std::time::Duration;

/// How many times the server is asked whether it has seen something, [`MOMENT`] apart.
const PATIENCE: usize = 20_000;
/// How many times it is asked whether other clients have left. Some may stay.
const LEAVING_PATIENCE: usize = 500;
const MOMENT: Duration = Duration::from_millis(1);
/// The words of the PINGs that ask whether a connection is quiet.
const MARKERS: [&str; 2] = ["(is it quiet?)", "(and is it still?)"];

pub struct SocketPeer {
    address: Address,
    /// For questions of our own, so that those of the transcript are undisturbed.
    side: RespClient,
    connections: BTreeMap<String, Connection>,
    version: Version,
    asks_ids: bool,
    /// The server's clock, if it can be moved; None where the server goes by the machine's.
    time: Option<SimulatedTime>,
}

struct Connection {
    client: RespClient,
    /// What CLIENT ID answered, in a transcript of several clients: with it the server can be asked on
    /// another connection what this one does.
    id: Option<String>,
    /// Its last request has not been answered.
    waits: bool,
}

impl Connection {
    /// The next value, but for what a monitor is told of questions of our own.
    fn receive_foreign(&mut self) -> io::Result<Value> {
        loop {
            let value = self.client.receive()?;
            if !is_told_of_marker(&value) {
                return Ok(value);
            }
        }
    }
}

impl SocketPeer {
    /// Connects, and empties the server.
    pub fn connect(address: &Address) -> io::Result<SocketPeer> {
        let mut side = RespClient::connect(address)?;
        side.call(&["FLUSHALL"])?;
        let version = info(&mut side, "server", "redis_version")?;
        let version = parse_version(&version).ok_or(io::ErrorKind::InvalidData)?;
        let (address, connections) = (address.clone(), BTreeMap::new());
        Ok(SocketPeer { address, side, connections, version, asks_ids: false, time: None })
    }

    /// Time passes by moving this clock of the server.
    pub fn with_time(self, time: SimulatedTime) -> SocketPeer {
        SocketPeer { time: Some(time), ..self }
    }

    fn connection(&mut self, name: &str, protocol: Protocol) -> io::Result<&mut Connection> {
        if !self.connections.contains_key(name) {
            let mut client = RespClient::connect(&self.address)?;
            if protocol == Protocol::Resp3 {
                client.call(&["HELLO", "3"])?;
            }
            let id =
                if self.asks_ids { client.call(&["CLIENT", "ID"])?.text().map(<[u8]>::to_vec) } else { None };
            let id = id.map(|id| String::from_utf8_lossy(&id).into_owned());
            let connection = Connection { client, id, waits: false };
            self.connections.insert(name.to_owned(), connection);
        }
        Ok(self.connections.get_mut(name).expect("it was put there just now"))
    }

    fn existing(&mut self, name: &str) -> &mut Connection {
        self.connections.get_mut(name).expect("the transcript has used this connection before")
    }

    /// The line of a client in CLIENT LIST; empty where it is not there.
    fn listed(&mut self, id: &str) -> io::Result<String> {
        let question = ["CLIENT", "LIST", "ID", id];
        let told = self.side.call(&question).or_else(|_| {
            // The transcript has had it killed.
            self.side = RespClient::connect(&self.address)?;
            self.side.call(&question)
        })?;
        Ok(String::from_utf8_lossy(told.text().unwrap_or_default()).into_owned())
    }

    fn client_count(&mut self) -> io::Result<usize> {
        let told = self.side.call(&["CLIENT", "LIST"])?;
        Ok(told
            .text()
            .unwrap_or_default()
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .count())
    }

    fn is_blocked(&mut self, id: &str) -> io::Result<bool> {
        let line = self.listed(id)?;
        let flags = line.split(' ').find_map(|field| field.strip_prefix("flags="));
        Ok(flags.is_some_and(|flags| flags.contains('b')))
    }

    fn try_wait(
        &mut self,
        name: &str,
        protocol: Protocol,
        args: &[Vec<u8>],
    ) -> io::Result<Result<(), Heard>> {
        let connection = self.connection(name, protocol)?;
        let id = connection.id.clone().ok_or_else(|| io::Error::other("CLIENT ID is not answered"))?;
        connection.client.send(args)?;
        connection.waits = true;
        for _ in 0..PATIENCE {
            if self.is_blocked(&id)? {
                return Ok(Ok(()));
            }
            if let Some(value) = self.existing(name).client.try_receive()? {
                self.existing(name).waits = false;
                return Ok(Err(Heard::Value(value)));
            }
            sleep(MOMENT);
        }
        Ok(Err(Heard::Nothing))
    }

    fn try_stay_quiet(&mut self, name: &str) -> io::Result<Result<(), Heard>> {
        while let Some(value) = self.existing(name).client.try_receive()? {
            if !is_told_of_marker(&value) {
                return Ok(Err(Heard::Value(value)));
            }
        }
        if self.existing(name).waits {
            let id = self.existing(name).id.clone().unwrap_or_default();
            let waits = self.is_blocked(&id)?;
            return Ok(if waits { Ok(()) } else { Err(Heard::NoLongerWaits) });
        }
        for marker in MARKERS {
            self.existing(name).client.send(&["PING", marker])?;
            let answer = self.existing(name).receive_foreign()?;
            match &answer {
                Value::Line(b'+', text) if text == b"QUEUED" => return Ok(Err(Heard::InTransaction)),
                Value::Line(b'-', _) => return Ok(Ok(())),
                answer if is_answer(answer, marker) => {}
                _ => return Ok(Err(Heard::Value(answer))),
            }
        }
        Ok(Ok(()))
    }

    fn try_close(&mut self, name: &str) -> io::Result<()> {
        let Some(connection) = self.connections.remove(name) else { return Ok(()) };
        drop(connection.client);
        let Some(id) = connection.id else { return Ok(()) };
        for _ in 0..PATIENCE {
            if self.listed(&id)?.is_empty() {
                return Ok(());
            }
            sleep(MOMENT);
        }
        Err(io::Error::other(format!("client {id} has left, and the server still lists it")))
    }
}

/// Whether it is the answer to PING with this word, also to a subscriber in RESP2.
fn is_answer(value: &Value, marker: &str) -> bool {
    match value {
        Value::Aggregate(b'*', parts) => parts.len() == 2 && is_answer(&parts[1], marker),
        value => value.text() == Some(marker.as_bytes()),
    }
}

/// Whether it is what a monitor is told of such a PING.
fn is_told_of_marker(value: &Value) -> bool {
    let Value::Line(b'+', text) = value else { return false };
    MARKERS.iter().any(|marker| text.windows(marker.len()).any(|part| part == marker.as_bytes()))
}

/// What an error of reading from a connection means to a transcript.
fn heard(error: &io::Error) -> Heard {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Heard::Nothing,
        _ => Heard::Closed,
    }
}

impl Conversation for SocketPeer {
    fn begin(&mut self) {
        self.asks_ids = true;
        // Clients of the transcript before this one may still be leaving.
        for _ in 0..LEAVING_PATIENCE {
            if self.client_count().is_ok_and(|count| count == 1) {
                break;
            }
            sleep(MOMENT);
        }
    }

    fn wait(&mut self, connection: &str, protocol: Protocol, args: &[Vec<u8>]) -> Result<(), Heard> {
        self.try_wait(connection, protocol, args).unwrap_or_else(|error| Err(heard(&error)))
    }

    fn receive(&mut self, connection: &str) -> Heard {
        let connection = self.existing(connection);
        match connection.receive_foreign() {
            Ok(value) => {
                connection.waits &= matches!(value, Value::Aggregate(b'>', _));
                Heard::Value(value)
            }
            Err(error) => heard(&error),
        }
    }

    fn stay_quiet(&mut self, connection: &str) -> Result<(), Heard> {
        self.try_stay_quiet(connection).unwrap_or_else(|error| Err(heard(&error)))
    }

    fn await_end(&mut self, connection: &str) -> Result<(), Heard> {
        match self.receive(connection) {
            Heard::Closed => {
                self.connections.remove(connection);
                Ok(())
            }
            heard => Err(heard),
        }
    }

    fn close(&mut self, connection: &str) {
        self.try_close(connection).expect("the server sees that a client has left");
    }

    fn finish(&mut self) -> Result<(), (String, Heard)> {
        let names: Vec<String> = self.connections.keys().cloned().collect();
        for name in &names {
            match self.stay_quiet(name) {
                // The last requests of a transcript may have been queued.
                Ok(()) | Err(Heard::InTransaction) => {}
                Err(heard) => return Err((name.clone(), heard)),
            }
        }
        names.iter().for_each(|name| self.close(name));
        Ok(())
    }
}

/// One field of INFO.
fn info(client: &mut RespClient, section: &str, field: &str) -> io::Result<String> {
    let reply = client.call(&["INFO", section])?;
    let text = String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned();
    let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.map(str::to_owned).ok_or_else(|| io::Error::other(format!("INFO {section} has no {field}")))
}

impl Peer for SocketPeer {
    fn call(&mut self, connection: &str, protocol: Protocol, args: &[Vec<u8>]) -> Value {
        let answer = self.connection(connection, protocol).and_then(|one| one.client.call(args));
        answer.unwrap_or_else(|error| {
            let words: Vec<String> = args.iter().map(|word| word.escape_ascii().to_string()).collect();
            panic!("the peer does not answer {} on {connection}: {error}", words.join(" "))
        })
    }

    fn advance(&mut self, ms: u64) {
        let by = Duration::from_millis(ms);
        match &self.time {
            Some(time) => time.advance(by),
            None => sleep(by),
        }
    }

    fn changes(&mut self) -> i64 {
        let changes =
            info(&mut self.side, "persistence", "rdb_changes_since_last_save").expect("the peer counts");
        changes.parse().expect("a count is a number")
    }

    fn version(&self) -> Version {
        self.version
    }

    fn conversation(&mut self) -> Option<&mut dyn Conversation> {
        Some(self)
    }
}
