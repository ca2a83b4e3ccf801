//! Events of keys, compared: a stream is played request by request, and after each all that keyspace
//! notifications have told must be the same, in the same order. Names of channels hold database, key and
//! event, so nothing of an event is left out.
//!
//! Both servers tell everything that there is (`KEA`, new keys, keys that were looked for in vain). A client
//! listens to all of it; behind every request a message is published that ends what this request has caused.
use super::Differ;
use super::compare::{self, Exchange};
use super::exceptions;
use super::report;
use super::stream::{self, CONNECTIONS, Step};
use crate::resp_client::{Address, RespClient};
use crate::resp_value::Value;
use std::fmt;
use std::io;

/// What a server tells of the events that one request has caused.
type Events = Vec<(String, String)>;

/// The first request whose events differ.
pub struct EventDifference {
    steps: Vec<Step>,
    answers: Vec<Value>,
    theirs: Events,
    ours: Events,
    /// The command that differs.
    pub subject: String,
}

impl fmt::Display for EventDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&report::transcript(&self.steps, &self.answers))?;
        for (who, events) in [("peer", &self.theirs), ("Sardine", &self.ours)] {
            writeln!(f, "# {who}:")?;
            for (channel, message) in events {
                writeln!(f, "#     {channel} {message}")?;
            }
        }
        Ok(())
    }
}

/// What became of a stream.
#[derive(Default)]
pub struct Heard {
    /// How many events both have told alike.
    pub event_count: usize,
    pub difference: Option<EventDifference>,
}

impl Differ {
    /// Empties both servers, plays the stream of this seed, and compares what they tell of it.
    pub fn play_events(&self, seed: u64) -> io::Result<Heard> {
        let steps = stream::draw(seed, self.vocabulary());
        let mut heard = Heard::default();
        heard.difference = self.first_difference(&steps, &mut heard.event_count)?;
        Ok(heard)
    }

    /// The shortest stream found whose last request causes other events.
    pub fn shrink_events(&self, difference: EventDifference) -> io::Result<EventDifference> {
        let mut best = difference;
        super::shrink::shrink(best.steps.clone(), &mut |candidate| {
            if !candidate.iter().all(|step| stream::may_send(&step.request, self.vocabulary())) {
                return Ok(false);
            }
            let found = self.first_difference(candidate, &mut 0)?;
            let found = found.filter(|found| found.subject == best.subject);
            let fails = found.is_some();
            if let Some(found) = found {
                best = found;
            }
            Ok(fails)
        })?;
        Ok(best)
    }

    /// Plays these steps up to the first one whose events differ, or whose answers do: that is for others to
    /// tell.
    fn first_difference(&self, steps: &[Step], count: &mut usize) -> io::Result<Option<EventDifference>> {
        let mut theirs = Side::begin(&self.theirs)?;
        let mut ours = Side::begin(&self.ours)?;
        let mut answers = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let (answer, their_events) = theirs.play(step)?;
            let (own_answer, own_events) = ours.play(step)?;
            answers.push(answer.clone());
            let name = compare::full_name(&step.request, self.vocabulary());
            if !agree(&name, &their_events, &own_events) {
                return Ok(Some(EventDifference {
                    steps: steps[..=at].to_vec(),
                    answers,
                    theirs: their_events,
                    ours: own_events,
                    subject: name,
                }));
            }
            *count += own_events.len();
            let history = &steps[..at];
            let exchange =
                Exchange { name, request: &step.request, theirs: &answer, ours: &own_answer, history };
            let is_over = answer != own_answer && exceptions::ends(&exchange);
            if is_over || !compare::agree(&exchange, self.vocabulary()) {
                return Ok(None);
            }
        }
        Ok(None)
    }
}

/// Whether these are the same events. SORT meets the members of a set, and what it makes of them, in the
/// order of the set, which is each server's own.
fn agree(name: &str, theirs: &Events, ours: &Events) -> bool {
    let sorted = |events: &Events| {
        let mut events = events.clone();
        events.sort();
        events
    };
    theirs == ours || name.starts_with("sort") && sorted(theirs) == sorted(ours)
}

/// One of the two servers.
struct Side {
    connections: Vec<RespClient>,
    listener: RespClient,
    publisher: RespClient,
}

const MARK: &str = "__key-mark__";

impl Side {
    fn begin(address: &Address) -> io::Result<Side> {
        let mut publisher = RespClient::connect(address)?;
        publisher.call(&["FLUSHALL"])?;
        publisher.call(&["CONFIG", "SET", "notify-keyspace-events", "KEAmn"])?;
        let mut listener = RespClient::connect(address)?;
        listener.call(&["PSUBSCRIBE", "__key*"])?;
        let connections = CONNECTIONS.iter().map(|_| RespClient::connect(address));
        Ok(Side { connections: connections.collect::<io::Result<Vec<RespClient>>>()?, listener, publisher })
    }

    /// The answer to a request, and the events that it has caused.
    fn play(&mut self, step: &Step) -> io::Result<(Value, Events)> {
        let answer = self.connections[step.connection].call(&step.request)?;
        self.publisher.call(&["PUBLISH", MARK, ""])?;
        let mut events = Vec::new();
        loop {
            let Value::Aggregate(_, words) = self.listener.receive()? else {
                return Err(io::Error::other("no message"));
            };
            let word = |at: usize| -> String {
                let text = words.get(at).and_then(Value::text).unwrap_or_default();
                text.escape_ascii().to_string()
            };
            if word(2) == MARK {
                return Ok((answer, events));
            }
            events.push((word(2), word(3)));
        }
    }
}
