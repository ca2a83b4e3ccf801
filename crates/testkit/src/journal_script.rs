//! A conversation of several clients with two servers, whose journals are compared: transactions, and clients
//! that wait for a key, which random streams of single requests do not have.
use crate::differ::journal::agree;
use crate::journal::{AofFile, Effect, Tap, effects};
use crate::redis_server::RedisServer;
use crate::resp_client::{Address, RespClient};
use server::Running;
use std::collections::BTreeMap;
use std::io;

/// `A SET k v` sends a request of client A and waits for the reply; `A~ BLPOP k 0` waits until it is blocked;
/// `A!` waits for the reply to that.
pub fn compare(script: &str, ours: &Running, theirs: &RedisServer) -> io::Result<Vec<String>> {
    let (tap, mut file) = (Tap::open(ours)?, AofFile::of(theirs)?);
    let mut sides = [Side::new(ours.addresses[0].into())?, Side::new(theirs.address())?];
    file.take()?;
    let mut selected = (u16::MAX, u16::MAX);
    let mut differences = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        for side in &mut sides {
            side.say(line)?;
        }
        let one = effects(&tap.take(ours), &mut selected.0);
        let other = effects(&file.take()?, &mut selected.1);
        if !agree(&one, &other) {
            differences.push(format!("{line}\nours:   {}\ntheirs: {}", shown(&one), shown(&other)));
        }
    }
    tap.close(ours);
    Ok(differences)
}

struct Side {
    address: Address,
    admin: RespClient,
    clients: BTreeMap<String, RespClient>,
    blocked: usize,
}

impl Side {
    fn new(address: Address) -> io::Result<Side> {
        let admin = RespClient::connect(&address)?;
        Ok(Side { address, admin, clients: BTreeMap::new(), blocked: 0 })
    }

    fn say(&mut self, line: &str) -> io::Result<()> {
        let (name, request) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = request.split(' ').collect();
        let client = self.clients.entry(name.trim_end_matches(['~', '!']).to_owned());
        let client = match client {
            std::collections::btree_map::Entry::Occupied(client) => client.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(RespClient::connect(&self.address)?)
            }
        };
        if name.ends_with('!') {
            self.blocked -= 1;
            return client.receive().map(drop);
        }
        client.send(&words)?;
        if !name.ends_with('~') {
            return client.receive().map(drop);
        }
        self.blocked += 1;
        let expected = format!("blocked_clients:{}", self.blocked);
        const QUESTIONS_MAX: usize = 1_000_000;
        for _ in 0..QUESTIONS_MAX {
            let told = self.admin.call(&["INFO", "clients"])?;
            let told = String::from_utf8_lossy(told.text().unwrap_or_default()).into_owned();
            if told.lines().any(|line| line == expected) {
                return Ok(());
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

/// Effects on one line.
pub fn shown(effects: &[Effect]) -> String {
    let shown = |(db, words): &Effect| {
        let words: Vec<String> = words.iter().map(|word| word.escape_ascii().to_string()).collect();
        format!("{db}> {}", words.join(" "))
    };
    effects.iter().map(shown).collect::<Vec<_>>().join("; ")
}
