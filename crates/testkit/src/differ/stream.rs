//! A stream: requests on a few connections, drawn from one seed. The second connection speaks RESP3, in every
//! fourth stream all do, the others RESP2, until a HELLO in the stream says otherwise.
use super::focus::Focus;
use super::vocabulary::Vocabulary;
use super::{counters, exceptions, excluded, request, scripts, versions};
use base::random::Random;

/// Names of connections, as transcripts have them.
pub(super) const CONNECTIONS: [&str; 3] = ["A", "B", "C"];
const STEPS_MIN: u64 = 20;
const STEPS_MAX: u64 = 220;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The index of its connection.
    pub(super) connection: usize,
    pub(super) request: Vec<Vec<u8>>,
}

impl Step {
    /// The command, in lower case.
    pub(super) fn name(&self) -> String {
        self.request
            .first()
            .map(|word| String::from_utf8_lossy(word).to_ascii_lowercase())
            .unwrap_or_default()
    }
}

/// The stream of a seed: the same whenever both servers know the same commands.
pub(super) fn draw(seed: u64, vocabulary: &Vocabulary) -> Vec<Step> {
    let mut random = Random::new(seed);
    let focus = Focus::draw(&mut random, vocabulary);
    let hello = ["HELLO", "3"].map(|word| word.as_bytes().to_vec());
    let speaks_resp3 = if random.below(4) == 0 { 0..CONNECTIONS.len() } else { 1..2 };
    let mut steps: Vec<Step> =
        speaks_resp3.map(|connection| Step { connection, request: hello.to_vec() }).collect();
    let mut connection = 0;
    for _ in 0..STEPS_MIN + random.below(STEPS_MAX - STEPS_MIN) {
        if random.below(8) == 0 {
            connection = random.below(CONNECTIONS.len() as u64) as usize;
        }
        let request = request::any(&mut random, &focus);
        if may_send(&request, vocabulary) {
            steps.push(Step { connection, request });
        }
    }
    steps
}

/// Whether a stream may have this request: both servers are known to do the same with it.
pub(super) fn may_send(request: &[Vec<u8>], vocabulary: &Vocabulary) -> bool {
    let is_info = request.first().is_some_and(|word| word.eq_ignore_ascii_case(b"info"));
    if is_info {
        return counters::question().request == request;
    }
    let inner = scripts::inner(request);
    if inner.is_some_and(|inner| !may_send(inner, vocabulary)) {
        return false;
    }
    !excluded::forbid(request)
        && !exceptions::forbid(request)
        && !versions::forbid(request, vocabulary.version)
}
