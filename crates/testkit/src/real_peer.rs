//! A server that somebody else runs, as the peer of transcripts: recorded from, and compared with.
use crate::resp_client::RespClient;
use crate::resp_value::Value;
use crate::transcript::{Peer, Version, parse_version};
use resp::Protocol;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::Duration;

pub struct RealPeer {
    address: SocketAddr,
    /// For questions of our own, so that those of the transcript are undisturbed.
    side: RespClient,
    connections: BTreeMap<String, RespClient>,
    version: Version,
}

impl RealPeer {
    /// Connects, and empties the server.
    pub fn connect(address: SocketAddr) -> io::Result<RealPeer> {
        let mut side = RespClient::connect(address)?;
        side.call(&["FLUSHALL"])?;
        let version = info(&mut side, "server", "redis_version")?;
        let version = parse_version(&version).ok_or(io::ErrorKind::InvalidData)?;
        Ok(RealPeer { address, side, connections: BTreeMap::new(), version })
    }

    fn try_call(&mut self, connection: &str, protocol: Protocol, args: &[Vec<u8>]) -> io::Result<Value> {
        if !self.connections.contains_key(connection) {
            let mut client = RespClient::connect(self.address)?;
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

impl Peer for RealPeer {
    fn call(&mut self, connection: &str, protocol: Protocol, args: &[Vec<u8>]) -> Value {
        self.try_call(connection, protocol, args).expect("the peer answers")
    }

    fn advance(&mut self, ms: u64) {
        sleep(Duration::from_millis(ms));
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
