//! Transcripts: what a client sends and what a real server answered, as text that people read and review. The
//! format is described in tests/transcripts/README.md. A transcript is recorded against a peer and replayed
//! against anything that can answer requests: the store with its commands, a server in this process, another
//! peer.
use crate::resp_value::Value;
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
    /// Of Redis; a step that needs a newer one is not played.
    fn version(&self) -> Version;
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
    /// The lines of the reply; of RESP3's only where it differs by more than its null.
    expected: Vec<String>,
    expected_resp3: Option<Vec<String>>,
}

#[derive(Clone, Debug)]
enum Action {
    Call { connection: String, text: String, args: Vec<Vec<u8>> },
    Advance(u64),
    Changes,
}

/// How near a reply must come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tolerance {
    Exact,
    /// Up to the order of elements.
    Unordered,
    /// Integers up to this.
    Within(i64),
    /// The type of the reply.
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
            in_resp3: false,
        };
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            reader.take(line, line_number).map_err(|reason| FormatError { line_number, reason })?;
        }
        reader.transcript.tail = reader.before;
        Ok(reader.transcript)
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
        mismatches
    }

    /// Plays every step to a peer in both protocols and keeps its replies, where they differ from the
    /// expected ones.
    pub fn record(&mut self, mut peer: impl FnMut() -> Box<dyn Peer>) {
        let mut steps = self.steps.clone();
        self.play(&mut *peer(), Protocol::Resp2, &mut |step, actual| {
            if !steps[step].accepts(&steps[step].expected, &actual) {
                steps[step].expected = actual;
            }
        });
        self.play(&mut *peer(), Protocol::Resp3, &mut |step, actual| {
            let step = &mut steps[step];
            if step.accepts(&with_resp3_nulls(&step.expected), &actual) {
                step.expected_resp3 = None;
            } else if !step.expected_resp3.as_ref().is_some_and(|known| step.accepts(known, &actual)) {
                step.expected_resp3 = Some(actual);
            }
        });
        self.steps = steps;
    }

    fn play(&self, peer: &mut dyn Peer, protocol: Protocol, answered: &mut dyn FnMut(usize, Vec<String>)) {
        let mut changes = peer.changes();
        for (index, step) in self.steps.iter().enumerate() {
            if step.since > peer.version() {
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
                    let mut value = peer.call(connection, protocol, args);
                    if step.tolerance == Tolerance::Unordered {
                        value.sort();
                    }
                    answered(index, value.lines());
                }
            }
        }
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
            (Protocol::Resp2, _) => self.expected.clone(),
            (Protocol::Resp3, Some(lines)) => lines.clone(),
            (Protocol::Resp3, None) => with_resp3_nulls(&self.expected),
        }
    }

    fn accepts(&self, expected: &[String], actual: &[String]) -> bool {
        match self.tolerance {
            Tolerance::Exact | Tolerance::Unordered => expected == actual,
            Tolerance::Within(distance) => {
                expected.len() == actual.len()
                    && expected.iter().zip(actual).all(|(e, a)| is_near(e, a, distance))
            }
            Tolerance::Shape => mark(expected).is_some() && mark(expected) == mark(actual),
        }
    }

    fn mismatch(&self, expected: Vec<String>, actual: Vec<String>) -> Mismatch {
        let request = match &self.action {
            Action::Call { text, .. } => text.clone(),
            Action::Advance(ms) => format!("advance {ms}ms"),
            Action::Changes => "changes".to_owned(),
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
            let args = split(text)?;
            let action = Action::Call { connection: self.connection.clone(), text: text.to_owned(), args };
            self.push(action, line_number);
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
        transcript.record(|| Box::new(Counter));
        assert_eq!(transcript.to_string(), TEXT.replace(":2\n\n", ":2\n"));
    }

    #[test]
    fn nonsense_is_refused_with_its_line() {
        for (text, line) in [(":1\n", 1), ("\nfoo\n", 2), ("> \"a\n", 1), ("advance 10\n", 1)] {
            assert_eq!(Transcript::parse(text).unwrap_err().line_number, line, "{text:?}");
        }
    }
}
