//! The journals of the same streams: after each request, what Sardine's journal says of it must be what a
//! real redis-server has written into its append-only file, word for word.
//!
//! Times may differ by the seconds for which a stream runs. What else may differ is in [`is_wanted`], each
//! with its reason. And a journal that is replayed into an empty server must make the same data.
use super::report;
use super::stream::{self, CONNECTIONS, Step};
use super::vocabulary::Vocabulary;
use crate::journal::{AofFile, Effect, Tap, effects};
use crate::journal_script::shown;
use crate::resp_client::{Address, RespClient};
use crate::resp_value::Value;
use server::Running;
use std::io;

/// A server in this process, and a real one, whose journals are compared.
pub struct Journals<'s> {
    server: &'s Running,
    theirs: Address,
    vocabulary: Vocabulary,
    tap: Tap,
    file: AofFile,
    /// The databases that the two journals have selected.
    selected: (u16, u16),
}

/// What came of one stream.
#[derive(Debug, Default)]
pub struct JournalPlayed {
    pub request_count: usize,
    pub effect_count: usize,
    /// The first request whose effects differ, with those, and the command.
    pub difference: Option<(String, String)>,
    /// All of Sardine's journal, for a replay.
    pub journal: Vec<u8>,
    /// The stream changes settings: they decide how values are kept, and are in no journal.
    pub has_settings: bool,
}

/// Two times of one stream may lie so far apart.
const TOLERANCE_MS: i64 = 60_000;
/// A number from here on is a time in milliseconds.
const TIME_MS: i64 = 1_500_000_000_000;

impl<'s> Journals<'s> {
    /// The real server was started with [`AofFile::ARGUMENTS`].
    pub fn new(
        server: &'s Running,
        (theirs, file): (Address, AofFile),
        groups: &[String],
    ) -> io::Result<Journals<'s>> {
        let mut clients = (RespClient::connect(&server.addresses[0].into())?, RespClient::connect(&theirs)?);
        let vocabulary = Vocabulary::learn(&mut clients.0, &mut clients.1, groups)?;
        let tap = Tap::open(server)?;
        Ok(Journals { server, theirs, vocabulary, tap, file, selected: (0, 0) })
    }

    /// Empties both servers and plays the stream of this seed.
    pub fn play(&mut self, seed: u64) -> io::Result<JournalPlayed> {
        let steps = stream::draw(seed, &self.vocabulary);
        let ours = self.server.addresses[0].into();
        let mut sides = (Side::begin(&ours, &self.vocabulary)?, Side::begin(&self.theirs, &self.vocabulary)?);
        self.effects()?;
        let mut played = JournalPlayed { journal: select(self.selected.0), ..JournalPlayed::default() };
        let mut answers = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            answers.push(sides.1.connections[step.connection].call(&step.request)?);
            sides.0.connections[step.connection].call(&step.request)?;
            let (ours, theirs, bytes) = self.effects()?;
            played.journal.extend(bytes);
            played.request_count += 1;
            played.has_settings |= step.name() == "config";
            played.effect_count += theirs.len();
            if !agree(&ours, &theirs) && !is_wanted(step, &ours, &theirs) {
                let story = report::transcript(&steps[..=index], &answers);
                let told = format!("{story}theirs: {}\nours:   {}", shown(&theirs), shown(&ours));
                played.difference = Some((step.name(), told));
                break;
            }
        }
        Ok(played)
    }

    /// What this server, into which the journal was replayed, holds otherwise than Sardine: what Sardine has,
    /// and what the server has.
    pub fn missing_in(&self, replica: &Running) -> io::Result<Vec<(String, String)>> {
        let (all, copied) = (data(&self.server.addresses[0].into())?, data(&replica.addresses[0].into())?);
        let differ = |pair: &(String, String)| pair.0 != pair.1;
        Ok(all
            .into_iter()
            .zip(copied.into_iter().chain(std::iter::repeat(String::new())))
            .filter(differ)
            .collect())
    }

    /// What both have written since this was called last, and Sardine's as bytes.
    fn effects(&mut self) -> io::Result<(Vec<Effect>, Vec<Effect>, Vec<u8>)> {
        let bytes = self.tap.take(self.server);
        let ours = effects(&bytes, &mut self.selected.0);
        let theirs = effects(&self.file.take()?, &mut self.selected.1);
        Ok((ours, theirs, bytes))
    }
}

fn select(db: u16) -> Vec<u8> {
    crate::resp_client::request(&["SELECT", &db.to_string()])
}

struct Side {
    connections: Vec<RespClient>,
}

impl Side {
    fn begin(address: &Address, vocabulary: &Vocabulary) -> io::Result<Side> {
        vocabulary.begin(address)?;
        let connections = CONNECTIONS.iter().map(|_| RespClient::connect(address));
        Ok(Side { connections: connections.collect::<io::Result<_>>()? })
    }
}

/// All data of a server as text: its digest, and the deadline of every key.
pub fn data(address: &Address) -> io::Result<Vec<String>> {
    let mut client = RespClient::connect(address)?;
    let mut told = client.call(&["DEBUG", "DIGEST"])?.lines();
    for db in 0..16 {
        client.call(&["SELECT", &db.to_string()])?;
        let Value::Aggregate(_, keys) = client.call(&["KEYS", "*"])? else { continue };
        let mut keys: Vec<&[u8]> = keys.iter().filter_map(Value::text).collect();
        keys.sort_unstable();
        for key in keys {
            let digest = client.call(&[&b"DEBUG"[..], b"DIGEST-VALUE", key])?;
            let deadline = client.call(&[b"PEXPIRETIME", key])?;
            let facts = [digest.lines(), deadline.lines()].concat();
            told.push(format!("{db} {}: {}", key.escape_ascii(), facts.join(" ")));
        }
    }
    Ok(told)
}

/// Sends a journal to a server as its only client, and waits until all has run. Returns the errors.
pub fn replay(address: &Address, journal: &[u8]) -> io::Result<Vec<String>> {
    let mut client = RespClient::connect(address)?;
    let mut errors = Vec::new();
    let mut rest = journal;
    while !rest.is_empty() {
        let before = rest;
        let words = crate::journal::next_request(&mut rest).expect("a journal holds whole commands");
        client.send_bytes(&before[..before.len() - rest.len()])?;
        let answer = client.receive()?;
        let is_error = |value: &Value| matches!(value, Value::Line(b'-', _));
        let has_error = match &answer {
            Value::Aggregate(_, parts) => parts.iter().any(is_error),
            answer => is_error(answer),
        };
        if has_error {
            errors.push(format!("{}: {}", shown(&[(0, words)]), answer.lines().join(" ")));
        }
    }
    Ok(errors)
}

/// Whether these are the same effects, but for times that are near each other.
pub fn agree(ours: &[Effect], theirs: &[Effect]) -> bool {
    let is_time = |word: &[u8]| base::text::parse_i64(word).filter(|number| *number > TIME_MS);
    let is_alike = |(ours, theirs): (&Vec<u8>, &Vec<u8>)| {
        ours == theirs
            || is_time(ours)
                .zip(is_time(theirs))
                .is_some_and(|(ours, theirs)| ours.abs_diff(theirs) < TOLERANCE_MS as u64)
    };
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|((our_db, ours), (their_db, theirs))| {
            our_db == their_db && ours.len() == theirs.len() && ours.iter().zip(theirs).all(is_alike)
        })
}

/// Wanted differences, each with its reason.
fn is_wanted(step: &Step, ours: &[Effect], theirs: &[Effect]) -> bool {
    leaves_out_limit(step, ours, theirs)
        || names_new_consumers(step, ours, theirs)
        || keeps_a_deadline(ours, theirs)
}

/// Redis does not say that a command has created a consumer which was then given nothing, so that the copy
/// lacks it.
fn names_new_consumers(step: &Step, ours: &[Effect], theirs: &[Effect]) -> bool {
    let is_new = |(_, words): &Effect| words[0] == b"XGROUP" && words[1] == b"CREATECONSUMER";
    // What is left alone needs no MULTI and EXEC.
    let is_bracket = |(_, words): &Effect| words.len() == 1 && (words[0] == b"MULTI" || words[0] == b"EXEC");
    let rest = |effects: &[Effect]| -> Vec<Effect> {
        effects.iter().filter(|effect| !is_new(effect) && !is_bracket(effect)).cloned().collect()
    };
    matches!(&*step.name(), "xreadgroup" | "xclaim" | "xautoclaim") && agree(&rest(ours), &rest(theirs))
}

/// Redis 8.0.2 says HINCRBYFLOAT as HSET, which takes the field's deadline away in the copy.
fn keeps_a_deadline(ours: &[Effect], theirs: &[Effect]) -> bool {
    let plain = |(db, words): &Effect| {
        let is_kept = words[0] == b"HSETEX" && words[2] == b"KEEPTTL" && words.len() == 7;
        let key_and_pair = || vec![b"HSET".to_vec(), words[1].clone(), words[5].clone(), words[6].clone()];
        (*db, if is_kept { key_and_pair() } else { words.clone() })
    };
    agree(&ours.iter().map(plain).collect::<Vec<_>>(), theirs)
}

/// Redis leaves LIMIT where it has written `=` for `~`, which no client may send, so that a file could not be
/// sent to a server as it is.
fn leaves_out_limit(step: &Step, ours: &[Effect], theirs: &[Effect]) -> bool {
    let mut theirs = theirs.to_vec();
    for (_, words) in &mut theirs {
        while let Some(at) = words.iter().position(|word| word.eq_ignore_ascii_case(b"limit")) {
            words.drain(at..at + 2);
        }
    }
    matches!(&*step.name(), "xadd" | "xtrim") && agree(ours, &theirs)
}
