//! Transcripts: what a client sends and what a real server answered, as text that people read and review. The
//! format is described in tests/transcripts/README.md. A transcript is recorded against a peer and replayed
//! against anything that can answer requests: the store with its commands, a server in this process, another
//! peer.
use crate::conversation::{Conversation, Heard};
use crate::resp_value::Value;
use crate::shape;
use resp::Protocol;
use std::fmt;

/// Something that a transcript can be played to.
pub trait Peer {
    /// The reply to a request on the connection of that name, which comes into being with its first request
    /// and speaks `protocol`.
    fn call(&mut self, connection: &str, protocol: Protocol, args: &[Vec<u8>]) -> Value;
    /// Lets so much time pass.
    fn advance(&mut self, ms: u64);
    /// `rdb_changes_since_last_save`, from any beginning on.
    fn changes(&mut self) -> i64;
    /// The version of Redis that the peer is, or behaves like. Steps that need a newer one are not played.
    fn version(&self) -> Version;
    /// The peer as one that several clients talk to at once; None where it answers one request after the
    /// other and nothing else.
    fn conversation(&mut self) -> Option<&mut dyn Conversation> {
        None
    }
}

pub type Version = (u32, u32);

/// Whom the expected replies come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Redis,
    Valkey,
    /// Written by hand: no peer has the command.
    Sardine,
}

#[derive(Clone, Debug)]
pub struct Transcript {
    pub source: Source,
    steps: Vec<Step>,
    /// What stands after the last step.
    tail: Vec<String>,
}

#[derive(Clone, Debug)]
struct Step {
    /// Comments, blank lines and directives before it, as they stand.
    before: Vec<String>,
    line_number: usize,
    action: Action,
    tolerance: Tolerance,
    since: Version,
    /// The only protocol in which it is played.
    only: Option<Protocol>,
    /// The lines of the reply; of RESP3's only where it differs by more than its null. A push (`>`) is an
    /// array in RESP2.
    expected: Vec<String>,
    expected_resp3: Option<Vec<String>>,
}

#[derive(Clone, Debug)]
enum Action {
    Call {
        connection: String,
        text: String,
        args: Vec<Vec<u8>>,
    },
    Advance(u64),
    Changes,
    /// A request that is not answered now.
    Wait {
        connection: String,
        text: String,
        args: Vec<Vec<u8>>,
    },
    /// Something arrives: an answer that had to wait, or what was not asked for.
    Receive(String),
    StayQuiet(String),
    Close(String),
    /// The server closes it.
    AwaitEnd(String),
}

impl Action {
    /// Whether it needs a peer that several clients talk to at once.
    fn is_of_conversation(&self) -> bool {
        !matches!(self, Action::Call { .. } | Action::Advance(_) | Action::Changes)
    }

    /// A request that is not answered now.
    fn waiting(self) -> Action {
        match self {
            Action::Call { connection, text, args } => Action::Wait { connection, text, args },
            other => other,
        }
    }

    /// Whether lines of a value follow it.
    fn has_answer(&self) -> bool {
        matches!(self, Action::Call { .. } | Action::Changes | Action::Receive(_))
    }
}

/// How near a reply must come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tolerance {
    Exact,
    /// The same but for the order of elements.
    Unordered,
    /// Integers may differ by so much.
    Within(i64),
    /// Only the types have to be the same, and the keys of maps.
    Shape,
}

/// A reply that is not the expected one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub line_number: usize,
    pub request: String,
    pub expected: Vec<String>,
    pub actual: Vec<String>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}\n  expected: ", self.line_number, self.request)?;
        write!(
            f,
            "{}\n  answered: {}",
            self.expected.join("\n            "),
            self.actual.join("\n            ")
        )
    }
}

/// What is wrong with a transcript's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError {
    pub line_number: usize,
    pub reason: String,
}

/// The state of parsing: what the directives so far say of the next step.
struct Reader {
    transcript: Transcript,
    connection: String,
    before: Vec<String>,
    tolerance: Tolerance,
    since: Version,
    only: Option<Protocol>,
    /// The next request is not answered now.
    waits: bool,
    in_resp3: bool,
}

impl Transcript {
    /// The steps of a transcript, or the first line that is none (`tests/transcripts/README.md` has the
    /// format).
    pub fn parse(text: &str) -> Result<Transcript, FormatError> {
        let mut reader = Reader {
            transcript: Transcript { source: Source::Redis, steps: Vec::new(), tail: Vec::new() },
            connection: "A".to_owned(),
            before: Vec::new(),
            tolerance: Tolerance::Exact,
            since: (0, 0),
            only: None,
            waits: false,
            in_resp3: false,
        };
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            reader.take(line, line_number).map_err(|reason| FormatError { line_number, reason })?;
        }
        reader.transcript.tail = reader.before;
        Ok(reader.transcript)
    }

    /// Whether it needs a peer that several clients talk to at once.
    pub fn is_conversation(&self) -> bool {
        self.steps.iter().any(|step| step.action.is_of_conversation())
    }

    /// Plays every step to `peer` and compares the replies.
    pub fn replay(&self, peer: &mut dyn Peer, protocol: Protocol) -> Vec<Mismatch> {
        let mut mismatches = Vec::new();
        self.play(peer, protocol, &mut |step, actual| {
            let expected = self.steps[step].expected(protocol);
            if !self.steps[step].accepts(&expected, &actual) {
                mismatches.push(self.steps[step].mismatch(expected, actual));
            }
        });
        mismatches.extend(self.finish(peer));
        mismatches
    }

    /// Plays every step to a peer in both protocols and keeps its replies, where they differ from the
    /// expected ones.
    pub fn record(&mut self, mut peer: impl FnMut() -> Box<dyn Peer>) -> Result<(), Mismatch> {
        let mut steps = self.steps.clone();
        let mut first = peer();
        self.play(&mut *first, Protocol::Resp2, &mut |step, actual| {
            let step = &mut steps[step];
            if !step.accepts(&step.expected(Protocol::Resp2), &actual) {
                step.expected = actual;
            }
        });
        self.finish(&mut *first).map_or(Ok(()), Err)?;
        drop(first);
        let mut second = peer();
        self.play(&mut *second, Protocol::Resp3, &mut |step, actual| steps[step].record_resp3(actual));
        self.finish(&mut *second).map_or(Ok(()), Err)?;
        if let Some(step) = steps.iter().find(|step| !step.is_recordable()) {
            return Err(step.mismatch(Vec::new(), step.expected.clone()));
        }
        self.steps = steps;
        Ok(())
    }

    fn play(&self, peer: &mut dyn Peer, protocol: Protocol, answered: &mut dyn FnMut(usize, Vec<String>)) {
        if let Some(peer) = peer.conversation().filter(|_| self.is_conversation()) {
            peer.begin();
        }
        let mut changes = peer.changes();
        for (index, step) in self.steps.iter().enumerate() {
            if step.since > peer.version() || step.only.is_some_and(|only| only != protocol) {
                continue;
            }
            match &step.action {
                Action::Advance(ms) => peer.advance(*ms),
                Action::Changes => {
                    let now = peer.changes();
                    answered(index, vec![format!(":{}", now - changes)]);
                    changes = now;
                }
                Action::Call { connection, args, .. } => {
                    answered(index, step.lines(peer.call(connection, protocol, args)));
                }
                action => {
                    let peer = peer.conversation().expect("such a transcript is not played to this peer");
                    match converse(peer, protocol, action) {
                        Ok(()) => answered(index, Vec::new()),
                        Err(Heard::Value(value)) => answered(index, step.lines(value)),
                        Err(heard) => return answered(index, heard.lines()),
                    }
                }
            }
        }
    }

    /// Nothing may be left unread on any connection at the end; a transcript of requests and replies alone
    /// cannot leave any.
    fn finish(&self, peer: &mut dyn Peer) -> Option<Mismatch> {
        let peer = peer.conversation().filter(|_| self.is_conversation())?;
        let (connection, heard) = peer.finish().err()?;
        let line_number = self.steps.last().map_or(0, |step| step.line_number);
        let request = format!("the end, on connection {connection}");
        Some(Mismatch { line_number, request, expected: Vec::new(), actual: heard.lines() })
    }
}

/// One step of several clients. What was heard is the error, also where something was to be heard.
fn converse(peer: &mut dyn Conversation, protocol: Protocol, action: &Action) -> Result<(), Heard> {
    match action {
        Action::Wait { connection, args, .. } => peer.wait(connection, protocol, args),
        Action::Receive(connection) => Err(peer.receive(connection)),
        Action::StayQuiet(connection) => peer.stay_quiet(connection),
        Action::AwaitEnd(connection) => peer.await_end(connection),
        Action::Close(connection) => {
            peer.close(connection);
            Ok(())
        }
        Action::Call { .. } | Action::Advance(_) | Action::Changes => Ok(()),
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            for line in step.before.iter().chain(&step.expected) {
                writeln!(f, "{line}")?;
            }
            if let Some(lines) = &step.expected_resp3 {
                f.write_str("resp3\n")?;
                lines.iter().try_for_each(|line| writeln!(f, "{line}"))?;
            }
        }
        self.tail.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl Step {
    fn expected(&self, protocol: Protocol) -> Vec<String> {
        match (protocol, &self.expected_resp3) {
            (Protocol::Resp2, _) => with_mark(&self.expected, '>', "*"),
            (Protocol::Resp3, Some(lines)) => lines.clone(),
            (Protocol::Resp3, None) => with_resp3_nulls(&self.expected),
        }
    }

    /// The lines of a reply to it, sorted where no order is promised.
    fn lines(&self, mut value: Value) -> Vec<String> {
        if self.tolerance == Tolerance::Unordered {
            value.sort();
        }
        value.lines()
    }

    /// Keeps what RESP3 answers where it is not what follows from RESP2's lines.
    fn record_resp3(&mut self, actual: Vec<String>) {
        let pushed = with_mark(&self.expected, '*', ">");
        if self.only == Some(Protocol::Resp3) {
            if !self.accepts(&self.expected(Protocol::Resp3), &actual) {
                self.expected = actual;
            }
        } else if self.accepts(&with_resp3_nulls(&self.expected), &actual) {
            self.expected_resp3 = None;
        } else if mark(&actual) == Some('>') && self.accepts(&with_resp3_nulls(&pushed), &actual) {
            (self.expected, self.expected_resp3) = (pushed, None);
        } else if !self.expected_resp3.as_ref().is_some_and(|known| self.accepts(known, &actual)) {
            self.expected_resp3 = Some(actual);
        }
    }

    /// Whether the lines that were recorded may follow it: words in brackets say what went wrong.
    fn is_recordable(&self) -> bool {
        let lines = || self.expected.iter().chain(self.expected_resp3.iter().flatten());
        let is_word = |line: &String| line.starts_with('(') && line.ends_with(')');
        (self.action.has_answer() || lines().next().is_none()) && !lines().any(is_word)
    }

    fn accepts(&self, expected: &[String], actual: &[String]) -> bool {
        match self.tolerance {
            Tolerance::Exact | Tolerance::Unordered => expected == actual,
            Tolerance::Within(distance) => {
                expected.len() == actual.len()
                    && expected.iter().zip(actual).all(|(e, a)| is_near(e, a, distance))
            }
            Tolerance::Shape => shape::is_same(expected, actual),
        }
    }

    fn mismatch(&self, expected: Vec<String>, actual: Vec<String>) -> Mismatch {
        let request = match &self.action {
            Action::Call { text, .. } => text.clone(),
            Action::Wait { text, .. } => format!("{text} (which waits)"),
            Action::Advance(ms) => format!("advance {ms}ms"),
            Action::Changes => "changes".to_owned(),
            Action::Receive(connection) => format!("{connection} gets"),
            Action::StayQuiet(connection) => format!("{connection} is quiet"),
            Action::Close(connection) => format!("close {connection}"),
            Action::AwaitEnd(connection) => format!("{connection} is closed"),
        };
        Mismatch { line_number: self.line_number, request, expected, actual }
    }
}

fn mark(lines: &[String]) -> Option<char> {
    lines.first().and_then(|line| line.chars().next())
}

fn is_near(expected: &str, actual: &str, distance: i64) -> bool {
    let number = |line: &str| line.trim_start().strip_prefix(':').and_then(|n| n.parse::<i64>().ok());
    match (number(expected), number(actual)) {
        (Some(e), Some(a)) => e.abs_diff(a) <= distance.unsigned_abs(),
        _ => expected == actual,
    }
}

/// Lines whose first mark is another one.
fn with_mark(lines: &[String], from: char, to: &str) -> Vec<String> {
    let mut lines = lines.to_vec();
    if let Some(rest) = lines.first().and_then(|line| line.strip_prefix(from)) {
        lines[0] = format!("{to}{rest}");
    }
    lines
}

/// RESP2's nulls as RESP3 sends them.
fn with_resp3_nulls(lines: &[String]) -> Vec<String> {
    let null = |line: &String| match line.trim_start() {
        "$-1" | "*-1" => format!("{}_", &line[..line.len() - 3]),
        _ => line.clone(),
    };
    lines.iter().map(null).collect()
}

impl Reader {
    fn take(&mut self, line: &str, line_number: usize) -> Result<(), String> {
        if let Some(text) = line.strip_prefix("> ") {
            self.before.push(line.to_owned());
            let (connection, text, args) = (self.connection.clone(), text.to_owned(), split(text)?);
            let waits = std::mem::take(&mut self.waits);
            let call = Action::Call { connection, text, args };
            self.push(if waits { call.waiting() } else { call }, line_number);
            return Ok(());
        }
        if line.trim().is_empty()
            || line.starts_with('#') && !line.starts_with("#t") && !line.starts_with("#f")
        {
            self.before.push(line.to_owned());
            return Ok(());
        }
        if line.starts_with(|c: char| c.is_ascii_lowercase()) {
            return self.take_directive(line, line_number);
        }
        let step = self.transcript.steps.last_mut().ok_or("a reply before the first request")?;
        if !step.action.has_answer() {
            return Err("a reply where there is none".to_owned());
        }
        match (self.in_resp3, &mut step.expected_resp3) {
            (true, Some(lines)) => lines.push(line.to_owned()),
            _ => step.expected.push(line.to_owned()),
        }
        Ok(())
    }

    fn push(&mut self, action: Action, line_number: usize) {
        let step = Step {
            before: std::mem::take(&mut self.before),
            line_number,
            action,
            tolerance: std::mem::replace(&mut self.tolerance, Tolerance::Exact),
            since: std::mem::take(&mut self.since),
            only: self.only.take(),
            expected: Vec::new(),
            expected_resp3: None,
        };
        self.transcript.steps.push(step);
        self.in_resp3 = false;
    }

    fn take_directive(&mut self, line: &str, line_number: usize) -> Result<(), String> {
        let (word, value) = line.split_once(' ').unwrap_or((line, ""));
        if word == "resp3" {
            let step = self.transcript.steps.last_mut().ok_or("resp3 before the first request")?;
            step.expected_resp3 = Some(Vec::new());
            self.in_resp3 = true;
            return Ok(());
        }
        self.before.push(line.to_owned());
        match word {
            "conn" => self.connection = value.to_owned(),
            "unordered" => self.tolerance = Tolerance::Unordered,
            "shape" => self.tolerance = Tolerance::Shape,
            "within" => self.tolerance = Tolerance::Within(value.parse().map_err(|_| "within what?")?),
            "since" => self.since = parse_version(value).ok_or("since which version?")?,
            "source" => self.transcript.source = parse_source(value)?,
            "in" => self.only = Some(parse_protocol(value)?),
            "waits" => self.waits = true,
            "gets" => self.push(Action::Receive(self.connection.clone()), line_number),
            "quiet" => self.push(Action::StayQuiet(self.connection.clone()), line_number),
            "close" => self.push(Action::Close(self.connection.clone()), line_number),
            "closed" => self.push(Action::AwaitEnd(self.connection.clone()), line_number),
            "changes" => self.push(Action::Changes, line_number),
            "advance" => {
                let ms =
                    value.strip_suffix("ms").and_then(|n| n.parse().ok()).ok_or("advance by how many ms?")?;
                self.push(Action::Advance(ms), line_number);
            }
            _ => return Err(format!("unknown directive {word}")),
        }
        Ok(())
    }
}

/// "8.0", "8.0.2": the first two numbers.
pub fn parse_version(text: &str) -> Option<Version> {
    let mut numbers = text.split('.').map(|n| n.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn parse_protocol(text: &str) -> Result<Protocol, String> {
    match text {
        "resp2" => Ok(Protocol::Resp2),
        "resp3" => Ok(Protocol::Resp3),
        _ => Err(format!("no protocol {text}")),
    }
}

fn parse_source(text: &str) -> Result<Source, String> {
    match text {
        "redis" => Ok(Source::Redis),
        "valkey" => Ok(Source::Valkey),
        "sardine" => Ok(Source::Sardine),
        _ => Err(format!("no source {text}")),
    }
}

/// The arguments of a request line: an inline request, as the server itself splits it.
fn split(text: &str) -> Result<Vec<Vec<u8>>, String> {
    let mut line = text.as_bytes().to_vec();
    let mut spans = Vec::new();
    resp::split_line(&mut line, &mut spans).map_err(|error| format!("{error:?}"))?;
    Ok(spans.iter().map(|span| line[span.start..][..span.len].to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every request with its number of arguments.
    struct Counter;
    impl Peer for Counter {
        fn call(&mut self, _: &str, _: Protocol, args: &[Vec<u8>]) -> Value {
            Value::Line(b':', args.len().to_string().into_bytes())
        }
        fn advance(&mut self, _: u64) {}
        fn changes(&mut self) -> i64 {
            0
        }
        fn version(&self) -> Version {
            (7, 0)
        }
    }

    const TEXT: &str =
        "# A comment.\n> GET a\n:2\n\nwithin 1\n> PING\n:2\nsince 8.0\n> NEW\n+OK\nchanges\n:0\n";

    #[test]
    fn a_transcript_is_written_as_it_was_read() {
        assert_eq!(Transcript::parse(TEXT).unwrap().to_string(), TEXT);
    }

    #[test]
    fn replies_that_differ_are_told_with_their_line() {
        let text = TEXT.replace(":2\n\n", ":3\n\n");
        let mismatches = Transcript::parse(&text).unwrap().replay(&mut Counter, Protocol::Resp2);
        assert_eq!(mismatches.len(), 1);
        assert_eq!((mismatches[0].line_number, mismatches[0].request.as_str()), (2, "GET a"));
        assert_eq!((&mismatches[0].expected[0][..], &mismatches[0].actual[0][..]), (":3", ":2"));
    }

    #[test]
    fn recording_replaces_only_what_is_not_accepted() {
        let mut transcript = Transcript::parse(&TEXT.replace(":2\n\n", "")).unwrap();
        transcript.record(|| Box::new(Counter)).unwrap();
        assert_eq!(transcript.to_string(), TEXT.replace(":2\n\n", ":2\n"));
    }

    #[test]
    fn nonsense_is_refused_with_its_line() {
        for (text, line) in
            [(":1\n", 1), ("\nfoo\n", 2), ("> \"a\n", 1), ("advance 10\n", 1), ("quiet\n:1\n", 2)]
        {
            assert_eq!(Transcript::parse(text).unwrap_err().line_number, line, "{text:?}");
        }
    }
}
