//! Playing a stream to both servers, from empty keyspaces on, and finding the first answers that differ:
//! those of the stream, then those of questions about all that is left in the keyspaces.
//!
//! Requests in a row on one connection go out together, so that batches are tested as well as requests.
use super::compare::{self, Exchange};
use super::counters::{self, Counters};
use super::exceptions;
use super::report;
use super::scripts;
use super::stream::{CONNECTIONS, Step};
use super::vocabulary::Vocabulary;
use crate::resp_client::{Address, RespClient, request};
use crate::resp_value::Value;
use std::io;
use std::slice::from_ref;

/// How many bytes are sent before answers are read: less than sockets buffer, so that neither side waits for
/// the other to read.
const BATCH_BYTES_MAX: usize = 64 * 1024;
const DATABASES: usize = 16;

/// The first answers that differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// What led to it, the last step included.
    pub(super) steps: Vec<Step>,
    pub(super) theirs: Answer,
    pub(super) ours: Answer,
    /// The answers of the peer to all steps.
    pub(super) answers: Vec<Value>,
    /// The command that differs: differences of one are told once.
    pub subject: String,
}

/// A stream that was played.
#[derive(Debug, Default)]
pub struct Played {
    pub request_count: usize,
    /// Answers of the peer that were errors: a stream that is mostly wrong tests little.
    pub error_count: usize,
    pub difference: Option<Difference>,
}

/// What a server has answered, or why it has not: it is gone, or has sent nothing for a long time.
pub(super) type Answer = Result<Value, String>;

/// Both servers, and the commands and settings that may be sent to them.
pub(super) struct Players<'p> {
    pub(super) ours: Address,
    pub(super) theirs: Address,
    pub(super) vocabulary: &'p Vocabulary,
}

impl Players<'_> {
    /// Plays a stream from empty keyspaces on, and compares all that is left afterwards. An error means that
    /// the peer or the machine has failed; where Sardine fails that is a difference.
    pub(super) fn play(&self, steps: &[Step]) -> io::Result<Played> {
        let mut game = match Game::begin(self) {
            Ok(game) => game,
            Err(failure) => return Ok(Played { difference: failure.outcome(steps)?, ..Played::default() }),
        };
        let difference = game.play(steps)?;
        let (request_count, error_count) = (game.steps.len(), game.error_count());
        let difference = if difference.is_none() { game.compare_what_is_left()? } else { difference };
        Ok(Played { request_count, error_count, difference })
    }

    /// Plays these steps and asks nothing afterwards: the last of them may be such questions already.
    pub(super) fn replay(&self, steps: &[Step]) -> io::Result<Option<Difference>> {
        match Game::begin(self) {
            Ok(mut game) => game.play(steps),
            Err(failure) => failure.outcome(steps),
        }
    }
}

/// The difference that it is when Sardine does not answer.
fn silence(steps: &[Step], answers: &[Value], error: &io::Error) -> Difference {
    let nothing = Value::Line(b'+', b"...".to_vec());
    Difference {
        steps: steps.to_vec(),
        theirs: Ok(answers.last().cloned().unwrap_or(nothing)),
        ours: Err(error.to_string()),
        answers: answers.to_vec(),
        subject: "no answer".to_owned(),
    }
}

/// Steps in a row that share a connection, and are not too much to be sent at once.
fn batches(steps: &[Step]) -> Vec<&[Step]> {
    let mut batches = Vec::new();
    for run in steps.chunk_by(|a, b| a.connection == b.connection) {
        let (mut start, mut bytes) = (0, 0);
        for (index, step) in run.iter().enumerate() {
            let len: usize = step.request.iter().map(|word| word.len() + 16).sum();
            if bytes + len > BATCH_BYTES_MAX && index > start {
                batches.push(&run[start..index]);
                (start, bytes) = (index, 0);
            }
            bytes += len;
        }
        batches.push(&run[start..]);
    }
    batches
}

/// Which of the two could not be emptied.
enum Failure {
    Ours(io::Error),
    Theirs(io::Error),
}

impl Failure {
    fn outcome(self, steps: &[Step]) -> io::Result<Option<Difference>> {
        match self {
            Failure::Theirs(error) => Err(error),
            Failure::Ours(error) => Ok(Some(silence(steps, &[], &error))),
        }
    }
}

/// One of the two servers while a stream is played.
struct Side {
    connections: Vec<RespClient>,
    /// What it had counted when the stream began.
    base: Counters,
}

impl Side {
    /// Empties it and sets its settings back.
    fn begin(address: &Address, vocabulary: &Vocabulary) -> io::Result<Side> {
        let mut first = vocabulary.begin(address)?;
        let base = Counters::of(&first.call(&counters::question().request)?);
        let connections = CONNECTIONS.iter().map(|_| RespClient::connect(address));
        Ok(Side { connections: connections.collect::<io::Result<Vec<RespClient>>>()?, base })
    }

    fn send(&mut self, connection: usize, wire: &[u8]) -> io::Result<()> {
        self.connections[connection].send_bytes(wire)
    }

    /// The answer to the next step of those that were sent.
    fn answer(&mut self, step: &Step) -> io::Result<Value> {
        let answer = self.connections[step.connection].receive()?;
        Ok(counters::counted(step, answer, &self.base))
    }
}

struct Game<'p> {
    vocabulary: &'p Vocabulary,
    ours: Side,
    theirs: Side,
    steps: Vec<Step>,
    answers: Vec<Value>,
    /// A wanted difference has left the servers with different data, so nothing is compared any more.
    is_over: bool,
}

impl<'p> Game<'p> {
    fn begin(players: &Players<'p>) -> Result<Game<'p>, Failure> {
        Ok(Game {
            vocabulary: players.vocabulary,
            theirs: Side::begin(&players.theirs, players.vocabulary).map_err(Failure::Theirs)?,
            ours: Side::begin(&players.ours, players.vocabulary).map_err(Failure::Ours)?,
            steps: Vec::new(),
            answers: Vec::new(),
            is_over: false,
        })
    }

    fn error_count(&self) -> usize {
        self.answers.iter().filter(|answer| matches!(answer, Value::Line(b'-', _))).count()
    }

    fn play(&mut self, steps: &[Step]) -> io::Result<Option<Difference>> {
        for batch in batches(steps) {
            if let Some(difference) = self.play_batch(batch)? {
                return Ok(Some(difference));
            }
        }
        Ok(None)
    }

    fn play_batch(&mut self, batch: &[Step]) -> io::Result<Option<Difference>> {
        let connection = batch[0].connection;
        let wire: Vec<u8> = batch.iter().flat_map(|step| request(&step.request)).collect();
        self.theirs.send(connection, &wire)?;
        let sent = self.ours.send(connection, &wire);
        for step in batch {
            let theirs = self.theirs.answer(step).map_err(|error| self.blame(&error, step))?;
            let ours = sent.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()));
            let ours = ours.and_then(|()| self.ours.answer(step));
            self.steps.push(step.clone());
            self.answers.push(theirs.clone());
            match ours {
                Err(error) => return Ok(Some(silence(&self.steps, &self.answers, &error))),
                Ok(ours) if !self.agree(&theirs, &ours) => return Ok(Some(self.difference(theirs, ours))),
                Ok(_) => {}
            }
        }
        Ok(None)
    }

    /// The error for a step that the peer does not answer, with all that led to it.
    fn blame(&self, error: &io::Error, step: &Step) -> io::Error {
        let (steps, last) =
            (report::transcript(&self.steps, &self.answers), report::transcript(from_ref(step), &[]));
        io::Error::other(format!("the peer does not answer ({error}) the last of\n{steps}{last}"))
    }

    /// Whether the two answers to the last step agree, or differ in a way that is wanted; those to EXEC, if
    /// all that was queued is answered so.
    fn agree(&mut self, theirs: &Value, ours: &Value) -> bool {
        if self.is_over {
            return true;
        }
        let Some((step, history)) = self.steps.split_last() else { return true };
        let mut is_over = false;
        let mut agree_on = |request: &[Vec<u8>], theirs: &Value, ours: &Value| {
            let request = scripts::inner(request).unwrap_or(request);
            let name = compare::full_name(request, self.vocabulary);
            let exchange = Exchange { name, request, theirs, ours, history };
            is_over |= theirs != ours && exceptions::ends(&exchange);
            compare::agree(&exchange, self.vocabulary)
        };
        let agrees = match (&*step.name(), theirs, ours) {
            ("exec", Value::Aggregate(_, theirs), Value::Aggregate(_, ours)) => {
                let queue = queued(history, &self.answers, step.connection);
                let are_as_many = theirs.len() == queue.len() && ours.len() == queue.len();
                let mut parts = theirs.iter().zip(ours).zip(queue);
                are_as_many && parts.all(|((theirs, ours), request)| agree_on(request, theirs, ours))
            }
            _ => agree_on(&step.request, theirs, ours),
        };
        self.is_over = is_over;
        agrees
    }

    fn difference(&self, theirs: Value, ours: Value) -> Difference {
        let last = self.steps.last().map(|step| compare::full_name(&step.request, self.vocabulary));
        // A difference in what was counted is named for the counters that differ.
        let counted = counters::differing(&theirs, &ours).join(", ");
        let is_question = self.steps.last().is_some_and(|step| *step == counters::question());
        Difference {
            steps: self.steps.clone(),
            theirs: Ok(theirs),
            ours: Ok(ours),
            answers: self.answers.clone(),
            subject: if is_question { counted } else { last.unwrap_or_default() },
        }
    }

    fn compare_what_is_left(&mut self) -> io::Result<Option<Difference>> {
        if self.is_over {
            return Ok(None);
        }
        // The stream may have ended inside a transaction.
        self.ask(counters::question().connection, &[&["RESET"]])?;
        match self.play_batch(&[counters::question()])? {
            Some(difference) => Ok(Some(difference)),
            None => {
                self.forget(1);
                self.compare_keyspaces()
            }
        }
    }

    /// Asks both for every key of every database: its type, its encoding, its deadline, its value.
    fn compare_keyspaces(&mut self) -> io::Result<Option<Difference>> {
        let connection = 0;
        for db in 0..DATABASES {
            let index = db.to_string();
            if let Some(difference) = self.ask(connection, &[&["SELECT", &index], &["KEYS", "*"]])? {
                return Ok(Some(difference));
            }
            let keys = self.last_keys();
            if let Some(difference) = self.compare_keys(connection, &keys)? {
                return Ok(Some(difference));
            }
            if keys.is_empty() {
                self.forget(2);
            }
        }
        Ok(None)
    }

    /// The elements of the last answer, which lists keys.
    fn last_keys(&self) -> Vec<Vec<u8>> {
        match self.answers.last() {
            Some(Value::Aggregate(_, keys)) => {
                keys.iter().filter_map(|key| key.text().map(<[u8]>::to_vec)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn compare_keys(&mut self, connection: usize, keys: &[Vec<u8>]) -> io::Result<Option<Difference>> {
        for key in keys {
            let facts: [&[&[u8]]; 3] =
                [&[b"OBJECT", b"ENCODING", key], &[b"PEXPIRETIME", key], &[b"TYPE", key]];
            if let Some(difference) = self.ask(connection, &facts)? {
                return Ok(Some(difference));
            }
            let kind = self.answers.last().and_then(Value::text).unwrap_or_default().to_vec();
            if let Some(difference) = self.ask(connection, &[&content(&kind, key)])? {
                return Ok(Some(difference));
            }
            self.forget(4);
        }
        Ok(None)
    }

    fn ask(
        &mut self,
        connection: usize,
        questions: &[&[impl AsRef<[u8]>]],
    ) -> io::Result<Option<Difference>> {
        let step = |question: &&[_]| Step { connection, request: words(question) };
        let steps: Vec<Step> = questions.iter().map(step).collect();
        self.play_batch(&steps)
    }

    /// Drops the last steps, questions that both servers answered alike: they are no part of what leads to a
    /// difference.
    fn forget(&mut self, count: usize) {
        self.steps.truncate(self.steps.len() - count);
        self.answers.truncate(self.answers.len() - count);
    }
}

/// What a connection has queued since its last MULTI.
fn queued<'s>(history: &'s [Step], answers: &[Value], connection: usize) -> Vec<&'s [Vec<u8>]> {
    let own = history.iter().zip(answers).rev().filter(|(step, _)| step.connection == connection);
    let is = |answer: &Value, text: &[u8]| matches!(answer, Value::Line(b'+', line) if line == text);
    let since_multi = own.take_while(|(step, answer)| step.name() != "multi" || !is(answer, b"OK"));
    let queued = since_multi.filter(|(_, answer)| is(answer, b"QUEUED"));
    let mut queue: Vec<&[Vec<u8>]> = queued.map(|(step, _)| &step.request[..]).collect();
    queue.reverse();
    queue
}

fn words(question: &[impl AsRef<[u8]>]) -> Vec<Vec<u8>> {
    question.iter().map(|word| word.as_ref().to_vec()).collect()
}

/// The request that answers all of a value.
fn content<'k>(kind: &[u8], key: &'k [u8]) -> Vec<&'k [u8]> {
    match kind {
        b"list" => vec![b"LRANGE", key, b"0", b"-1"],
        b"hash" => vec![b"HGETALL", key],
        b"set" => vec![b"SMEMBERS", key],
        b"zset" => vec![b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"],
        b"stream" => vec![b"XRANGE", key, b"-", b"+"],
        _ => vec![b"GET", key],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(connection: usize, len: usize) -> Step {
        Step { connection, request: vec![vec![b'x'; len]] }
    }

    #[test]
    fn what_exec_runs_is_what_its_connection_has_queued_since_multi() {
        let line = |text: &str| Value::Line(b'+', text.as_bytes().to_vec());
        let named = |connection, word: &str| Step { connection, request: vec![word.as_bytes().to_vec()] };
        let steps = ["GET", "MULTI", "HELLO", "MULTI", "PING"].map(|word| named(0, word));
        let steps = [&steps[..3], &[named(1, "DEL")], &steps[3..]].concat();
        let answers = ["QUEUED", "OK", "QUEUED", "QUEUED", "ERR", "QUEUED"].map(line);
        let queue: Vec<&[u8]> = queued(&steps, &answers, 0).iter().map(|request| &request[0][..]).collect();
        assert_eq!(queue, [&b"HELLO"[..], b"PING"]);
    }

    #[test]
    fn a_batch_is_a_run_on_one_connection_that_sockets_can_buffer() {
        let steps = [step(0, 1), step(0, 1), step(1, 1), step(0, 40_000), step(0, 40_000), step(0, 1)];
        let lens: Vec<usize> = batches(&steps).iter().map(|batch| batch.len()).collect();
        assert_eq!(lens, [2, 1, 1, 2]);
    }
}
