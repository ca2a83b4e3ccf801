//! A server behind a socket as the peer of transcripts: a real one, or ours in this process, whose time may
//! be moved.
use crate::resp_client::{Address, RespClient};
use crate::resp_value::Value;
use crate::transcript::{Peer, Version, parse_version};
use resp::Protocol;
use server::SimulatedTime;
use std::collections::BTreeMap;
use std::io;
use std::thread::sleep;
use std::time::Duration;

pub struct SocketPeer {
    address: Address,
    /// For questions of our own, so that those of the transcript are undisturbed.
    side: RespClient,
    connections: BTreeMap<String, RespClient>,
    version: Version,
    /// None where its time is the machine's, which nobody moves.
    time: Option<SimulatedTime>,
}

impl SocketPeer {
    /// Connects, and empties the server.
    pub fn connect(address: &Address) -> io::Result<SocketPeer> {
        let mut side = RespClient::connect(address)?;
        side.call(&["FLUSHALL"])?;
        let version = info(&mut side, "server", "redis_version")?;
        let version = parse_version(&version).ok_or(io::ErrorKind::InvalidData)?;
        Ok(SocketPeer { address: address.clone(), side, connections: BTreeMap::new(), version, time: None })
    }

    /// Time passes by moving this clock of the server.
    pub fn with_time(self, time: SimulatedTime) -> SocketPeer {
        SocketPeer { time: Some(time), ..self }
    }

    fn try_call(&mut self, connection: &str, protocol: Protocol, args: &[Vec<u8>]) -> io::Result<Value> {
        if !self.connections.contains_key(connection) {
            let mut client = RespClient::connect(&self.address)?;
            if protocol == Protocol::Resp3 {
                client.call(&["HELLO", "3"])?;
            }
            self.connections.insert(connection.to_owned(), client);
        }
        let client = self.connections.get_mut(connection).expect("it was put there just now");
        client.call(args)
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
        self.try_call(connection, protocol, args).expect("the peer answers")
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
}
