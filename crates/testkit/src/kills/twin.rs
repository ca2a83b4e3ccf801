//! A server in this process that nobody kills. After a kill it runs what each client has asked for, unit
//! after unit, until it has what the killed server has again: that is how far the disk was. If it never has,
//! something is missing, torn, or was never asked for.
use super::client::Asked;
use super::unit::{BESIDE, Follow, GROUPED, LARGE_DB, LARGE_KEYS, LARGE_NAMES, NAMES, Request, Unit, words};
use crate::resp_client::{RespClient, request};
use crate::resp_value::Value;
use crate::scratch::Scratch;
use server::{Allow, Clock, Config, Log, Running, Snapshots};
use std::io;

/// So many units are run at once where nothing need be compared in between.
const AT_ONCE: usize = 64;
/// So many of the keys of very many are looked at, of those that were written to.
const LOOKED_AT: usize = 200;

pub(super) struct Twin {
    _server: Running,
    _folder: Scratch,
    /// One connection for each client, in its database.
    clients: Vec<RespClient>,
    is_large: bool,
}

impl Twin {
    pub(super) fn start(clients: usize, is_large: bool) -> Result<Twin, String> {
        let failed = |error: io::Error| format!("the twin: {error}");
        let folder = Scratch::new("twin").map_err(failed)?;
        let config = Config {
            bind: vec!["127.0.0.1".into()],
            port: 0,
            picks_port: true,
            worker_threads: 1,
            dir: folder.path().into(),
            enable_debug_command: Allow::Local,
            snapshots: Snapshots::never(),
            ..Config::default()
        };
        let server =
            server::start(config, Clock::real(), Log::silent()).map_err(|error| error.to_string())?;
        let connect = |client: usize| -> io::Result<RespClient> {
            let mut connection = RespClient::connect(&server.addresses[0].into())?;
            connection.call(&["SELECT", &client.to_string()])?;
            Ok(connection)
        };
        let clients = (0..clients).map(connect).collect::<io::Result<_>>().map_err(failed)?;
        Ok(Twin { _server: server, _folder: folder, clients, is_large })
    }

    /// Runs units of a client whose outcome is known.
    pub(super) fn run(&mut self, client: usize, units: &[Unit]) -> io::Result<()> {
        for units in units.chunks(AT_ONCE) {
            let (mut wire, mut count) = (Vec::new(), 0);
            for words in units.iter().flat_map(followed) {
                wire.extend(request(&words));
                count += 1;
            }
            self.clients[client].send_bytes(&wire)?;
            for _ in 0..count {
                self.clients[client].receive()?;
            }
        }
        Ok(())
    }

    /// Runs a unit whose reply may not have come.
    fn run_one(&mut self, client: usize, unit: &Unit, actual: &mut RespClient) -> io::Result<()> {
        let mut unit = unit.clone();
        if unit.reply.is_none() {
            unit.reply = self.guess(client, &unit.follow, actual)?;
        }
        self.run(client, &[unit])
    }

    /// What the reply was that was lost with the server, by what it has left; None if there is nothing of it.
    fn guess(
        &mut self,
        client: usize,
        follow: &Follow,
        actual: &mut RespClient,
    ) -> io::Result<Option<Value>> {
        let twin = &mut self.clients[client];
        actual.call(&["SELECT", &client.to_string()])?;
        let is_text = |value: &Value| value.text().is_some();
        match follow {
            Follow::Requests(_) => Ok(None),
            Follow::Pop(_) => {
                let len = twin.call(&["LLEN", "popped"])?.text().map(<[u8]>::to_vec).unwrap_or_default();
                let len = String::from_utf8_lossy(&len).into_owned();
                Ok(Some(actual.call(&["LINDEX", "popped", &len])?).filter(is_text))
            }
            Follow::Add(_) => {
                let last = |client: &mut RespClient| -> io::Result<Option<Value>> {
                    let told = client.call(&["XREVRANGE", "y0", "+", "-", "COUNT", "1"])?;
                    let Value::Aggregate(_, entries) = told else { return Ok(None) };
                    let Some(Value::Aggregate(_, parts)) = entries.into_iter().next() else {
                        return Ok(None);
                    };
                    Ok(parts.into_iter().next())
                };
                let (known, found) = (last(twin)?, last(actual)?);
                Ok(found.filter(|found| Some(found) != known.as_ref()))
            }
        }
    }

    /// Runs what a client has asked for until both have the same, which has to be after `least` units at
    /// least. Returns after how many: behind them there may be some that change nothing. An error says what
    /// differs.
    pub(super) fn follow(
        &mut self,
        client: usize,
        asked: &Asked,
        least: usize,
        actual: &mut RespClient,
    ) -> io::Result<Result<usize, String>> {
        let Asked { units, acknowledged, .. } = asked;
        let known = least.min(*acknowledged);
        self.run(client, &units[..known])?;
        for unit in &units[known..least] {
            self.run_one(client, unit, actual)?;
        }
        let theirs = look(actual, client, self.is_large)?;
        let mut closest: Option<(usize, Vec<String>)> = None;
        for at in least..=units.len() {
            let mut differences =
                differences(&theirs, &look(&mut self.clients[client], client, self.is_large)?);
            if differences.is_empty() {
                // A unit behind these may have changed a large value and not its length.
                match if self.is_large { self.compare_large(client, &units[..at], actual)? } else { None } {
                    None => return Ok(Ok(at)),
                    Some(difference) => differences.push(difference),
                }
            }
            if closest.as_ref().is_none_or(|(_, fewest)| differences.len() < fewest.len()) {
                closest = Some((at, differences));
            }
            if let Some(unit) = units.get(at) {
                self.run_one(client, unit, actual)?;
            }
        }
        let (at, differences) = closest.unwrap_or_default();
        Ok(Err(format!(
            "client {client}: after none of {least} to {} units ({acknowledged} acknowledged) is the data what is \
             there. Closest is {at}, with (there / expected)\n{}\nunits around it:\n{}",
            units.len(),
            differences.join("\n"),
            shown(units, at)
        )))
    }

    /// What differs in large values and in the keys of very many that were written to.
    fn compare_large(
        &mut self,
        client: usize,
        units: &[Unit],
        actual: &mut RespClient,
    ) -> io::Result<Option<String>> {
        let twin = &mut self.clients[client];
        let mut both = |words: &[&str]| -> io::Result<Option<String>> {
            let (there, expected) = (actual.call(words)?, twin.call(words)?);
            Ok((there != expected).then(|| format!("client {client}: {} differs", words.join(" "))))
        };
        let mut keys: Vec<&str> = units
            .iter()
            .flat_map(|unit| &unit.requests)
            .filter(|words| words.get(1).is_some_and(|key| key.starts_with("key:")))
            .map(|words| words[1].as_str())
            .collect();
        keys.drain(..keys.len().saturating_sub(LOOKED_AT));
        let digest: Vec<&str> = ["DEBUG", "DIGEST-VALUE"].into_iter().chain(LARGE_NAMES).collect();
        let get: Vec<&str> = ["MGET", "key:1", "key:2"].into_iter().chain(keys).collect();
        let (own, beside) = (client.to_string(), (client + BESIDE).to_string());
        let large = LARGE_DB.to_string();
        let asks: [&[&str]; 7] = [
            &["SELECT", &beside],
            &digest,
            &["SELECT", &large],
            &get,
            &["DBSIZE"],
            &["SELECT", &own],
            &digest,
        ];
        // All of them, so that both are in the client's own database afterwards.
        let found = asks.iter().map(|words| both(words)).collect::<io::Result<Vec<_>>>()?;
        Ok(found.into_iter().flatten().next())
    }

    /// Puts what `--large` begins with into the twin.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        fill_keys(&mut self.clients[0])
    }
}

/// Puts very many keys into a server, and goes back to database 0.
pub(super) fn fill_keys(client: &mut RespClient) -> io::Result<()> {
    client.call(&["SELECT", &LARGE_DB.to_string()])?;
    client.call(&["DEBUG", "POPULATE", &LARGE_KEYS.to_string(), "key", "100"])?;
    client.call(&["SELECT", "0"]).map(drop)
}

/// The requests by which a twin follows.
fn followed(unit: &Unit) -> Vec<Request> {
    let told =
        unit.reply.as_ref().and_then(Value::text).map(|text| String::from_utf8_lossy(text).into_owned());
    if unit.is_void() {
        return Vec::new();
    }
    let is_error = matches!(unit.reply, Some(Value::Line(b'-', _)));
    match (&unit.follow, told) {
        (Follow::Requests(requests), _) => requests.clone(),
        (Follow::Pop(set), Some(member)) if !is_error => {
            let [remove, push] = [["SREM", set], ["RPUSH", "popped"]];
            [remove, push]
                .map(|words| words.into_iter().map(String::from).chain([member.clone()]).collect())
                .into()
        }
        (Follow::Add(value), Some(id)) if !is_error => {
            vec![words(&format!("XADD y0 MAXLEN 50 {id} f {value}"))]
        }
        _ => Vec::new(),
    }
}

/// All that a client's databases hold, one line a question.
fn look(connection: &mut RespClient, client: usize, is_large: bool) -> io::Result<Vec<(String, Value)>> {
    let function = format!("FCALL f{client} 0");
    let mut lines = vec![function];
    for db in [client + BESIDE, client] {
        lines.push(format!("SELECT {db}"));
        lines.extend(NAMES.map(|name| format!("DEBUG DIGEST-VALUE {name}")));
        lines.extend(GROUPED.map(|name| format!("XINFO GROUPS {name}")));
        if is_large {
            let lengths = ["LLEN", "HLEN", "SCARD", "ZCARD", "XLEN"];
            lines.extend(LARGE_NAMES.iter().zip(lengths).map(|(name, length)| format!("{length} {name}")));
        }
    }
    let mut wire = Vec::new();
    lines.iter().for_each(|line| wire.extend(request(&words(line))));
    connection.send_bytes(&wire)?;
    lines.into_iter().map(|line| Ok((line, connection.receive()?))).collect()
}

fn differences(there: &[(String, Value)], expected: &[(String, Value)]) -> Vec<String> {
    let mut db = String::new();
    let mut found = Vec::new();
    for ((line, there), (_, expected)) in there.iter().zip(expected) {
        if line.starts_with("SELECT") {
            db.clone_from(line);
        }
        if there != expected {
            found.push(format!(
                "  {db} {line}: {} / {}",
                there.lines().join(" "),
                expected.lines().join(" ")
            ));
        }
    }
    found
}

fn shown(units: &[Unit], at: usize) -> String {
    let around = at.saturating_sub(6)..units.len().min(at + 6);
    let lines = around.map(|index| {
        let requests: Vec<String> = units[index].requests.iter().map(|words| words.join(" ")).collect();
        let reply = units[index].reply.as_ref().map(|reply| reply.lines().join(" "));
        format!("  {index}: {} -> {}", requests.join(" | "), reply.unwrap_or("no reply".into()))
    });
    lines.collect::<Vec<_>>().join("\n")
}
