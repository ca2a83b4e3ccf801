//! One of the two servers during a talk: what its connections hear.
use super::super::stream::Step;
use super::super::vocabulary::Vocabulary;
use super::together;
use crate::resp_client::{Address, RespClient, request};
use crate::resp_value::Value;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

/// How often something is looked for, [`MOMENT`] apart.
const PATIENCE: usize = 50_000;
const MOMENT: Duration = Duration::from_micros(100);
/// A word `id-of-N` of a request stands for the id that the server gave to connection N (CLIENT UNBLOCK).
pub(super) const ID_OF: &[u8] = b"id-of-";
/// Commands that may have to wait.
pub(super) const WAITING: [&str; 10] = [
    "blpop",
    "brpop",
    "blmove",
    "brpoplpush",
    "blmpop",
    "bzpopmin",
    "bzpopmax",
    "bzmpop",
    "xread",
    "xreadgroup",
];

/// What one request has caused.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    /// What arrived on each connection.
    pub(super) values: Vec<Vec<Value>>,
    /// The request is not answered yet.
    pub(super) waits: bool,
}

impl Heard {
    pub(super) fn nothing(connections: usize) -> Heard {
        Heard { values: vec![Vec::new(); connections], waits: false }
    }
}

/// The names that a restless server makes up for its own keys are not shorter.
const OTHER_NAME_BYTES: usize = 12;

pub(super) struct Side {
    address: Address,
    /// For questions of our own.
    control: RespClient,
    connections: Vec<Connection>,
}

struct Connection {
    client: RespClient,
    id: String,
    waits: bool,
    /// The server has closed it.
    is_closed: bool,
    /// Its last request was queued or began a transaction.
    is_in_transaction: bool,
    /// It is told of other keys too, which nobody means to hear. None: it is not.
    keys: Option<Arc<BTreeSet<Vec<u8>>>>,
}

impl Side {
    /// Empties the server, when all clients of the talk before have left.
    pub(super) fn begin(address: &Address, vocabulary: &Vocabulary, count: usize) -> io::Result<Side> {
        let mut control = RespClient::connect(address)?;
        for _ in 0..PATIENCE {
            if lines(&control.call(&["CLIENT", "LIST"])?) <= 1 {
                break;
            }
            sleep(MOMENT);
        }
        for (name, values) in &vocabulary.settings {
            control.call(&["CONFIG", "SET", name, values[0]])?;
        }
        control.call(&["CONFIG", "SET", super::draw::NOTIFIES, ""])?;
        control.call(&["FLUSHALL"])?;
        control.call(&["FUNCTION", "FLUSH"])?;
        control.call(&["ACL", "DELUSER", "ann", "bob", "eve"])?;
        let connections = (0..count).map(|_| Connection::open(address));
        let connections = connections.collect::<io::Result<_>>()?;
        Ok(Side { address: address.clone(), control, connections })
    }

    /// Drops what is told of any other keys.
    pub(super) fn hearing_only_of(mut self, keys: BTreeSet<Vec<u8>>) -> Side {
        let keys = Arc::new(keys);
        self.connections.iter_mut().for_each(|connection| connection.keys = Some(Arc::clone(&keys)));
        self
    }

    pub(super) fn waits(&self, connection: usize) -> bool {
        self.connections[connection].waits
    }

    /// Sends requests of one connection together; what each of them causes, from a server with one thread.
    pub(super) fn ask(&mut self, steps: &[Step]) -> io::Result<Vec<Heard>> {
        let heard = self.send_all(steps)?;
        self.take_rest(steps, heard)
    }

    /// The same; waits for as much on every connection as there has to be, and takes what is more.
    pub(super) fn ask_expecting(&mut self, steps: &[Step], expected: &[Heard]) -> io::Result<Vec<Heard>> {
        let mut heard = self.send_all(steps)?;
        if expected.last().is_some_and(|last| last.waits == heard.waits) {
            for at in 0..heard.values.len() {
                let count: usize = expected.iter().map(|part| part.values[at].len()).sum();
                let ends = |values: &Vec<Value>| values.last().is_some_and(is_end);
                let is_sent_away = expected.iter().any(|part| ends(&part.values[at]));
                while heard.values[at].len() < count || is_sent_away && !ends(&heard.values[at]) {
                    match self.connections[at].receive_in_time()? {
                        Some(value) => heard.values[at].push(value),
                        None => break,
                    }
                }
            }
        }
        self.take_rest(steps, heard)
    }

    fn take_rest(&mut self, steps: &[Step], mut heard: Heard) -> io::Result<Vec<Heard>> {
        self.control.call(&["PING"])?;
        self.take_all(&mut heard)?;
        let parts = match steps {
            [_] => vec![heard],
            _ => together::apart(steps, heard),
        };
        steps.iter().zip(&parts).for_each(|(step, part)| self.note(step, part));
        self.reopen()?;
        Ok(parts)
    }

    /// Whoever was sent away comes back as a new client.
    fn reopen(&mut self) -> io::Result<()> {
        for connection in self.connections.iter_mut().filter(|connection| connection.is_closed) {
            let keys = connection.keys.take();
            *connection = Connection { keys, ..Connection::open(&self.address)? };
        }
        Ok(())
    }

    fn send_all(&mut self, steps: &[Step]) -> io::Result<Heard> {
        if let [step] = steps {
            return self.send(step);
        }
        let connection = steps[0].connection;
        let requests = steps.iter().map(|step| step.request.iter().map(|word| self.with_id(word)));
        let wire: Vec<u8> = requests.flat_map(|words| request(&words.collect::<Vec<_>>())).collect();
        self.connections[connection].client.send_bytes(&wire)?;
        let mut heard = Heard::nothing(self.connections.len());
        let (last, before) = steps.split_last().expect("there are some");
        let values = &mut heard.values[connection];
        while together::answered(before, values) < before.len() {
            values.push(self.connections[connection].receive()?);
        }
        self.take_answer(last, |values| together::answered(steps, values) == steps.len(), &mut heard)?;
        Ok(heard)
    }

    /// Whether the connection speaks RESP3.
    pub(super) fn speaks_resp3(&mut self, connection: usize) -> io::Result<bool> {
        Ok(self.field(connection, "resp=")? == "3")
    }

    /// Sends a request, until its first answer has come or it waits.
    fn send(&mut self, step: &Step) -> io::Result<Heard> {
        let request: Vec<Vec<u8>> = step.request.iter().map(|word| self.with_id(word)).collect();
        let mut heard = Heard::nothing(self.connections.len());
        let values = &mut heard.values[step.connection];
        self.connections[step.connection].client.send(&request)?;
        if !WAITING.contains(&&*step.name()) {
            let client = &mut self.connections[step.connection];
            values.push(client.receive()?);
            // Redis answers when the database is empty, and tells a client that keeps copies before.
            while matches!(&*step.name(), "flushall" | "flushdb") && values.last().is_some_and(is_push) {
                values.push(client.receive()?);
            }
            return Ok(heard);
        }
        self.take_answer(step, |values| values.iter().any(|value| !is_push(value)), &mut heard)?;
        Ok(heard)
    }

    /// Takes what comes until this last request that was sent is answered, or waits.
    fn take_answer(
        &mut self,
        step: &Step,
        is_answered: impl Fn(&[Value]) -> bool,
        heard: &mut Heard,
    ) -> io::Result<()> {
        let may_wait = WAITING.contains(&&*step.name()) && !has_short_timeout(&step.request);
        for _ in 0..PATIENCE {
            while let Some(value) = self.connections[step.connection].try_receive()? {
                heard.values[step.connection].push(value);
            }
            if is_answered(&heard.values[step.connection]) {
                return Ok(());
            }
            if may_wait && self.is_blocked(step.connection)? {
                heard.waits = true;
                return Ok(());
            }
            sleep(MOMENT);
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    fn with_id(&self, word: &[u8]) -> Vec<u8> {
        let number = word.strip_prefix(ID_OF).and_then(base::text::parse_i64);
        let connection = number.and_then(|number| self.connections.get(usize::try_from(number).ok()?));
        connection.map_or(word.to_vec(), |connection| connection.id.clone().into_bytes())
    }

    fn is_blocked(&mut self, connection: usize) -> io::Result<bool> {
        Ok(self.field(connection, "flags=")?.contains('b'))
    }

    /// A field of CLIENT LIST.
    fn field(&mut self, connection: usize, name: &str) -> io::Result<String> {
        let told = self.control.call(&["CLIENT", "LIST", "ID", &self.connections[connection].id])?;
        let line = String::from_utf8_lossy(told.text().unwrap_or_default()).into_owned();
        Ok(line.split([' ', '\n']).find_map(|field| field.strip_prefix(name)).unwrap_or_default().to_owned())
    }

    fn take_all(&mut self, heard: &mut Heard) -> io::Result<()> {
        for (connection, values) in self.connections.iter_mut().zip(&mut heard.values) {
            while let Some(value) = connection.try_receive()? {
                values.push(value);
            }
        }
        Ok(())
    }

    fn note(&mut self, step: &Step, heard: &Heard) {
        for (at, connection) in self.connections.iter_mut().enumerate() {
            connection.waits &= heard.values[at].iter().all(is_push);
            if at == step.connection {
                connection.waits = heard.waits;
            }
        }
        let connection = &mut self.connections[step.connection];
        let answer = heard.values[step.connection].first();
        match &*step.name() {
            "multi" => connection.is_in_transaction = true,
            "exec" => connection.is_in_transaction = false,
            // With the wrong number of arguments they end nothing.
            "discard" | "reset" => connection.is_in_transaction &= answer.is_some_and(is_error),
            _ => {
                connection.is_in_transaction = matches!(answer, Some(Value::Line(b'+', text)) if text == b"QUEUED")
                    || connection.is_in_transaction;
            }
        }
    }

    /// What has been sent beyond what was taken: behind two PINGs where the connection can answer them.
    pub(super) fn ask_for_rest(&mut self) -> io::Result<Vec<Vec<Value>>> {
        let mut heard = Heard::nothing(self.connections.len());
        for (connection, values) in self.connections.iter_mut().zip(&mut heard.values) {
            if connection.waits || connection.is_in_transaction {
                continue;
            }
            for _ in 0..2 {
                connection.client.send(&["PING", "is it quiet?"])?;
                loop {
                    let value = connection.receive()?;
                    let is_error = matches!(value, Value::Line(b'-', _));
                    if is_error || value.lines().last().is_some_and(|line| line.ends_with("is it quiet?")) {
                        break;
                    }
                    values.push(value);
                }
            }
        }
        self.take_all(&mut heard)?;
        Ok(heard.values)
    }

    /// What TYPE says.
    pub(super) fn kind(&mut self, key: &[u8]) -> io::Result<String> {
        let told = self.control.call(&[b"TYPE", key])?;
        Ok(String::from_utf8_lossy(told.text().unwrap_or_default()).into_owned())
    }

    pub(super) fn digest(&mut self) -> io::Result<Value> {
        self.control.call(&["DEBUG", "DIGEST"])
    }
}

impl Connection {
    fn open(address: &Address) -> io::Result<Connection> {
        let mut client = RespClient::connect(address)?;
        let id = client.call(&["CLIENT", "ID"])?;
        let id = String::from_utf8_lossy(id.text().unwrap_or_default()).into_owned();
        Ok(Connection { client, id, waits: false, is_closed: false, is_in_transaction: false, keys: None })
    }

    fn is_of_other_key(&self, value: &Value) -> bool {
        let keys = self.keys.as_ref().zip(key_of_event(value));
        keys.is_some_and(|(keys, key)| key.len() >= OTHER_NAME_BYTES && !keys.contains(key))
    }

    fn receive(&mut self) -> io::Result<Value> {
        loop {
            let value = match self.client.receive() {
                Err(error) => return self.end(error),
                Ok(value) => value,
            };
            if !self.is_of_other_key(&value) {
                return Ok(value);
            }
        }
    }

    /// The end of the connection is the last that is heard on it.
    fn end(&mut self, error: io::Error) -> io::Result<Value> {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset if !self.is_closed => {
                self.is_closed = true;
                Ok(Value::Line(THE_END.0, THE_END.1.to_vec()))
            }
            _ => Err(error),
        }
    }

    fn try_receive(&mut self) -> io::Result<Option<Value>> {
        while !self.is_closed {
            match self.client.try_receive() {
                Err(error) => return self.end(error).map(Some),
                Ok(None) => break,
                Ok(Some(value)) if self.is_of_other_key(&value) => {}
                Ok(value) => return Ok(value),
            }
        }
        Ok(None)
    }

    fn receive_in_time(&mut self) -> io::Result<Option<Value>> {
        for _ in 0..PATIENCE {
            if let Some(value) = self.try_receive()? {
                return Ok(Some(value));
            }
            sleep(MOMENT);
        }
        Ok(None)
    }
}

fn lines(list: &Value) -> usize {
    list.text().unwrap_or_default().split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count()
}

pub(super) fn is_push(value: &Value) -> bool {
    matches!(value, Value::Aggregate(b'>', _))
}

/// Whether a timeout of the request is waited for as its answer.
fn has_short_timeout(request: &[Vec<u8>]) -> bool {
    use super::draw::{SHORT_MS, SHORT_SECONDS};
    let is_block = |word: &[u8]| word.eq_ignore_ascii_case(b"block");
    request.iter().any(|word| word == SHORT_SECONDS.as_bytes())
        || request.windows(2).any(|pair| is_block(&pair[0]) && pair[1] == SHORT_MS.as_bytes())
}

fn is_error(value: &Value) -> bool {
    matches!(value, Value::Line(b'-', _))
}

/// Stands for the end of a connection.
const THE_END: (u8, &[u8]) = (b'!', b"the end");

pub(super) fn is_end(value: &Value) -> bool {
    matches!(value, Value::Line(mark, _) if *mark == THE_END.0)
}

pub(super) fn is_null(value: &Value) -> bool {
    matches!(value, Value::Null(_) | Value::Line(b'_', _))
}

/// Whether one connection hears the same: in the same order, but for what Redis takes from hash tables, the
/// patterns that match a message and the channels that UNSUBSCRIBE without names leaves.
pub(super) fn are_alike(step: &Step, theirs: &[Value], ours: &[Value]) -> bool {
    theirs == ours || in_any_order(step, theirs) == in_any_order(step, ours)
}

/// Invalidations that were sent together name their keys in any order, and so do those of several prefixes.
fn is_invalidation(lines: &[String]) -> bool {
    lines.iter().any(|line| line.ends_with(" invalidate") || line.ends_with(" __redis__:invalidate"))
}

/// The key of a message of keyspace notifications.
fn key_of_event(value: &Value) -> Option<&[u8]> {
    let Value::Aggregate(_, parts) = value else { return None };
    let [kind, .., channel, message] = &parts[..] else { return None };
    let (channel, message) = (channel.text()?, message.text()?);
    if !matches!(kind.text()?, b"message" | b"pmessage") {
        return None;
    }
    if channel.starts_with(b"__keyevent@") {
        return Some(message);
    }
    let of_key = channel.strip_prefix(b"__keyspace@")?;
    let at = of_key.windows(3).position(|part| part == b"__:")?;
    Some(&of_key[at + 3..])
}

/// A message of keyspace notifications.
fn is_event(lines: &[String]) -> bool {
    lines.iter().any(|line| line.contains(" __keyspace@") || line.contains(" __keyevent@"))
}

fn in_any_order(step: &Step, values: &[Value]) -> Vec<Vec<String>> {
    if step.request.len() == 1 && step.name().ends_with("unsubscribe") {
        return names_and_counts(values);
    }
    let mut told: Vec<Vec<String>> = values.iter().map(Value::lines).collect();
    // Redis tells a client that empties a database of it before it answers (docs/differences.md).
    if matches!(&*step.name(), "flushall" | "flushdb") {
        told.sort();
    }
    // Behind it stands the id of the client that has gone, which is each server's own.
    let is_broken =
        |lines: &&mut Vec<String>| lines.iter().any(|line| line.ends_with(" tracking-redir-broken"));
    told.iter_mut().filter(is_broken).for_each(|lines| lines.truncate(2));
    let is_of_pattern = |lines: &Vec<String>| lines.get(1).is_some_and(|line| line.ends_with(" pmessage"));
    told.iter_mut().filter(|lines| is_invalidation(lines)).for_each(|lines| lines.sort());
    // Whether a client first hears of an event or of its copy goes by the command (docs/differences.md).
    let is_of_key = |lines: &[String]| is_invalidation(lines) || is_event(lines);
    told.chunk_by_mut(|a, b| is_of_key(a) && is_of_key(b))
        .for_each(|run| run.sort_by_key(|lines| is_event(lines)));
    told.chunk_by_mut(|a, b| is_invalidation(a) && is_invalidation(b)).for_each(<[_]>::sort);
    told.chunk_by_mut(|a, b| is_of_pattern(a) && is_of_pattern(b)).for_each(<[_]>::sort);
    told
}

/// The names of channels and the counts after each, apart: the counts go down whatever the order.
fn names_and_counts(values: &[Value]) -> Vec<Vec<String>> {
    let part = |at: usize| {
        let mut parts: Vec<String> = values
            .iter()
            .map(|value| match value {
                Value::Aggregate(_, parts) if at < parts.len() => parts[at].lines().join(" "),
                value => value.lines().join(" "),
            })
            .collect();
        parts.sort();
        parts
    };
    vec![part(0), part(1), part(2)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(texts: &[&str]) -> Vec<Value> {
        let word = |word: &str| Value::Blob(b'$', word.as_bytes().to_vec());
        texts.iter().map(|text| Value::Aggregate(b'*', text.split(' ').map(word).collect())).collect()
    }

    fn step(line: &str) -> Step {
        Step { connection: 0, request: line.split(' ').map(|word| word.as_bytes().to_vec()).collect() }
    }

    #[test]
    fn messages_keep_their_order_but_not_the_patterns_of_one() {
        let publish = step("PUBLISH c 1");
        let (a, b) =
            (values(&["pmessage c* c 1", "pmessage ? c 1"]), values(&["pmessage ? c 1", "pmessage c* c 1"]));
        assert!(are_alike(&publish, &a, &b));
        assert!(!are_alike(&publish, &a, &a[..1]));
        let (a, b) = (values(&["message c 1", "message c 2"]), values(&["message c 2", "message c 1"]));
        assert!(!are_alike(&publish, &a, &b));
    }

    #[test]
    fn leaving_all_channels_names_each_once() {
        let leave = step("UNSUBSCRIBE");
        let a = values(&["unsubscribe a 1", "unsubscribe b 0"]);
        assert!(are_alike(&leave, &a, &values(&["unsubscribe b 1", "unsubscribe a 0"])));
        assert!(!are_alike(&leave, &a, &values(&["unsubscribe b 1", "unsubscribe b 0"])));
        assert!(!are_alike(&step("UNSUBSCRIBE b a"), &a, &values(&["unsubscribe b 1", "unsubscribe a 0"])));
    }
}
