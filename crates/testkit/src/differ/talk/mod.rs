//! Talks: random streams in which several connections meet. Transactions whose watched keys others write,
//! clients that block until another pushes, subscribers who hear what others publish. Both servers get the
//! same requests in one total order, and what every connection hears after each of them must be the same.
//!
//! ```text
//! send the request on its connection to the peer
//! wait until it is answered or the peer lists the client as blocked
//! ask the peer PING on a side connection: all that the request has caused is written by then
//! take what has arrived on every connection                        -> what must be heard
//! send it to Sardine, and wait for just that on every connection; then nothing more may be there
//! ```
//!
//! Requests of one connection that follow each other are sent together where it speaks RESP3 (`together`).
//! A connection that waits sends nothing until it is answered: its steps are left out. One that has left, or
//! was killed, comes back as a new client. What Sardine sends too much may show a step later, on another
//! worker's turn; the last look asks every connection PING twice. Timeouts are none or so short that they are
//! waited for as an answer.
mod draw;
mod report;
mod side;
mod together;

pub use report::TalkDifference;

use super::compare::{self, Exchange};
use super::exceptions;
use super::scripts;
use super::shrink;
use super::stream::Step;
use super::vocabulary::{Vocabulary, commands};
use crate::resp_client::{Address, RespClient};
use crate::resp_value::Value;
use side::{Heard, Side};
use std::collections::{BTreeSet, VecDeque};
use std::io;

/// Two servers that are compared by talks. Both are emptied again and again.
pub struct Talks {
    ours: Address,
    theirs: Address,
    vocabulary: Vocabulary,
    /// Commands that both know, those too that streams of single requests leave out.
    known: BTreeSet<String>,
    connections: usize,
    /// Sardine has keys of its own.
    has_other_keys: bool,
}

/// A talk that was played.
#[derive(Debug, Default)]
pub struct Talked {
    pub request_count: usize,
    /// Values that arrived without a request of their connection.
    pub unasked_count: usize,
    /// Transactions that were executed, and those that a watched key stopped.
    pub transaction_count: usize,
    pub aborted_count: usize,
    /// Requests that had to wait.
    pub blocked_count: usize,
    pub difference: Option<TalkDifference>,
}

impl Talks {
    /// `groups` as [`Vocabulary::learn`] takes them, for what is said besides.
    pub fn new(ours: Address, theirs: Address, groups: &[String], connections: usize) -> io::Result<Talks> {
        let mut clients = (RespClient::connect(&ours)?, RespClient::connect(&theirs)?);
        let vocabulary = Vocabulary::learn(&mut clients.0, &mut clients.1, groups)?;
        let (our_known, their_known) = (commands(&mut clients.0)?, commands(&mut clients.1)?);
        let mut known: BTreeSet<String> = our_known.intersection(&their_known).cloned().collect();
        if clients.0.call(&["CONFIG", "SET", draw::NOTIFIES, "KEA"])?.text() == Some(b"OK") {
            known.insert(draw::NOTIFIES.to_owned());
        }
        Ok(Talks { ours, theirs, vocabulary, known, connections, has_other_keys: false })
    }

    /// Does not mind what Sardine tells of keys that no request has named: a restless server tells of its own
    /// keys too.
    pub fn with_other_keys(mut self) -> Talks {
        self.has_other_keys = true;
        self
    }

    /// Whether both servers have this command: talks without it test less.
    pub fn knows(&self, name: &str) -> bool {
        self.known.contains(name)
    }

    /// Empties both servers and plays the talk of this seed. An error is one of the peer, not a difference.
    pub fn play(&self, seed: u64) -> io::Result<Talked> {
        self.play_steps(&draw::draw(seed, &self.vocabulary, &self.known, self.connections))
    }

    /// The shortest talk found that fails on the same command.
    pub fn shrink(&self, difference: &TalkDifference) -> io::Result<TalkDifference> {
        let mut best = difference.clone();
        shrink::shrink(difference.steps.clone(), &mut |candidate| {
            if !candidate.iter().all(|step| draw::may_say(step, &self.vocabulary)) {
                return Ok(false);
            }
            let found = self.play_steps(candidate)?.difference;
            let found = found.filter(|found| found.subject == difference.subject);
            let fails = found.is_some();
            best = found.unwrap_or_else(|| best.clone());
            Ok(fails)
        })?;
        Ok(best)
    }

    fn play_steps(&self, steps: &[Step]) -> io::Result<Talked> {
        let theirs = Side::begin(&self.theirs, &self.vocabulary, self.connections)?;
        let ours = match Side::begin(&self.ours, &self.vocabulary, self.connections) {
            Ok(ours) if self.has_other_keys => ours.hearing_only_of(words(steps)),
            Ok(ours) => ours,
            Err(error) => {
                let difference = Some(TalkDifference::silence(&error));
                return Ok(Talked { difference, ..Talked::default() });
            }
        };
        let mut talk = Talk {
            vocabulary: &self.vocabulary,
            theirs,
            ours,
            queues: vec![VecDeque::new(); self.connections],
            talked: Talked::default(),
            steps: Vec::new(),
            heard: Vec::new(),
            is_over: false,
        };
        talk.talked.difference = talk.play(steps)?;
        Ok(talk.talked)
    }
}

/// All words of these requests, and what scripts name that none of them does: every key is among them.
fn words(steps: &[Step]) -> BTreeSet<Vec<u8>> {
    let in_scripts = scripts::NAMED.map(|key| key.as_bytes().to_vec());
    steps.iter().flat_map(|step| step.request.iter().cloned()).chain(in_scripts).collect()
}

struct Talk<'t> {
    vocabulary: &'t Vocabulary,
    theirs: Side,
    ours: Side,
    /// What each connection has queued in its transaction.
    queues: Vec<VecDeque<Vec<Vec<u8>>>>,
    talked: Talked,
    steps: Vec<Step>,
    /// What the peer sent after each of the steps.
    heard: Vec<Heard>,
    /// A wanted difference has left the servers with different data, so nothing is compared any more.
    is_over: bool,
}

impl Talk<'_> {
    fn play(&mut self, steps: &[Step]) -> io::Result<Option<TalkDifference>> {
        let mut left = steps;
        while let Some(step) = left.first() {
            if self.is_over {
                break;
            }
            let (together, rest) = left.split_at(self.count_together(left)?);
            left = rest;
            if !self.theirs.waits(step.connection)
                && let Some(difference) = self.play_together(together)?
            {
                return Ok(Some(difference));
            }
        }
        if self.is_over { Ok(None) } else { self.look_at_the_end() }
    }

    /// How many of the next steps are sent together.
    fn count_together(&mut self, steps: &[Step]) -> io::Result<usize> {
        let count = together::count(steps);
        // Clients are told of prefixes, and in the place of others, when a turn ends; where that is, is each
        // server's own.
        let is_told_late =
            |word: &Vec<u8>| [&b"BCAST"[..], b"REDIRECT"].iter().any(|late| word.eq_ignore_ascii_case(late));
        let tells_at_ends_of_turns = || {
            let mut all = self.steps.iter().chain(&steps[..count]);
            all.any(|step| step.request.iter().any(is_told_late))
        };
        let is_alone = count == 1
            || self.theirs.waits(steps[0].connection)
            || tells_at_ends_of_turns()
            || !self.theirs.speaks_resp3(steps[0].connection)?;
        Ok(if is_alone { 1 } else { count })
    }

    fn play_together(&mut self, steps: &[Step]) -> io::Result<Option<TalkDifference>> {
        let is_in_other_order = self.may_have_lost_its_place();
        let theirs = self.theirs.ask(steps).map_err(|error| self.blame(&error, &steps[0]))?;
        let ours = self.ours.ask_expecting(steps, &theirs);
        for (at, (step, theirs)) in steps.iter().zip(&theirs).enumerate() {
            let ours = match &ours {
                Ok(parts) => Ok(parts[at].clone()),
                Err(error) => Err(error.to_string()),
            };
            let difference = self.judge((step, theirs, ours), is_in_other_order)?;
            if difference.is_some() || self.is_over {
                return Ok(difference);
            }
        }
        Ok(None)
    }

    /// Whether a step had other consequences than at the peer.
    fn judge(
        &mut self,
        (step, theirs, ours): (&Step, &Heard, Result<Heard, String>),
        is_in_other_order: bool,
    ) -> io::Result<Option<TalkDifference>> {
        self.talked.request_count += 1;
        self.talked.blocked_count += usize::from(theirs.waits);
        let on_others = theirs.values.iter().enumerate().filter(|(at, _)| *at != step.connection);
        self.talked.unasked_count += on_others.map(|(_, values)| values.len()).sum::<usize>();
        self.steps.push(step.clone());
        self.heard.push(theirs.clone());
        let difference = match ours {
            Ok(ours) => match self.compare(step, theirs, &ours) {
                Some(_) if is_in_other_order || self.is_any_left_waiting()? => {
                    self.is_over = true;
                    None
                }
                at => at.map(|at| self.difference(Some(at), Ok(ours))),
            },
            Err(error) => Some(self.difference(None, Err(error))),
        };
        self.is_over |= self.remembers_more(step, theirs);
        self.note_queue(step, theirs);
        Ok(difference)
    }

    /// Whether only one of the servers may remember a key of this request: of a read that is refused for its
    /// arguments (docs/differences.md).
    fn remembers_more(&self, step: &Step, theirs: &Heard) -> bool {
        let finds_otherwise = ["xread", "zunion", "zinter", "zdiff", "sintercard"];
        let reads = |request: &Vec<Vec<u8>>| {
            let name = String::from_utf8_lossy(&request[0]).to_ascii_lowercase();
            finds_otherwise.iter().any(|begin| name.starts_with(begin))
        };
        let may_refuse = reads(&step.request) || self.queues[step.connection].iter().any(reads);
        let is_error = |value: &Value| value.lines().iter().any(|line| line.contains("-ERR"));
        may_refuse && theirs.values[step.connection].iter().any(is_error) && self.is_tracking()
    }

    /// Whether some connection may track keys.
    fn is_tracking(&self) -> bool {
        self.steps.iter().any(|step| step.request.get(1).is_some_and(|word| word == b"TRACKING"))
    }

    /// Whether several clients wait for entries of a group, of which one waits for more than one stream:
    /// where the peer has tried that one in vain, it has lost its place (docs/differences.md).
    fn may_have_lost_its_place(&self) -> bool {
        let waiting: Vec<&Step> = (0..self.queues.len())
            .filter(|connection| self.theirs.waits(*connection))
            .filter_map(|connection| self.steps.iter().rfind(|step| step.connection == connection))
            .filter(|step| step.name() == "xreadgroup")
            .collect();
        let is_of_several = |step: &&Step| step.request.ends_with(&[b">".to_vec(), b">".to_vec()]);
        waiting.len() > 1 && waiting.iter().any(is_of_several)
    }

    /// Whether the peer lets some client wait for a key that has what it waits for; another may wait for what
    /// that one would do.
    fn is_any_left_waiting(&mut self) -> io::Result<bool> {
        for connection in 0..self.queues.len() {
            if self.is_left_waiting(connection)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the peer lets this client wait for a key that has what it waits for. It does where the key's
    /// old value was overwritten (docs/differences.md); Sardine serves it.
    fn is_left_waiting(&mut self, connection: usize) -> io::Result<bool> {
        let Some(waits) = self.steps.iter().rfind(|step| step.connection == connection) else {
            return Ok(false);
        };
        let kind = if waits.name().starts_with("bz") { "zset" } else { "list" };
        if !self.theirs.waits(connection) || waits.name().starts_with('x') {
            return Ok(false);
        }
        for key in &waits.request[1..] {
            if self.theirs.kind(key)? == kind {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The error for a step that the peer does not answer, with all that led to it.
    fn blame(&self, error: &io::Error, step: &Step) -> io::Error {
        let difference = TalkDifference {
            steps: [&self.steps[..], std::slice::from_ref(step)].concat(),
            heard: [&self.heard[..], &[Heard::nothing(self.queues.len())]].concat(),
            ours: Err("it is the peer that does not answer".to_owned()),
            subject: "the peer".to_owned(),
        };
        io::Error::other(format!("{error}\n{difference}"))
    }

    /// The first connection that hears something else.
    fn compare(&mut self, step: &Step, theirs: &Heard, ours: &Heard) -> Option<usize> {
        if theirs.waits != ours.waits {
            return Some(step.connection);
        }
        (0..theirs.values.len()).find(|at| {
            let (mut expected, mut got) = (&theirs.values[*at][..], &ours.values[*at][..]);
            // Whoever is killed may hear what the same step has told before, or not.
            let are_ends = [expected, got].iter().all(|values| values.last().is_some_and(side::is_end));
            if side::are_alike(step, expected, got) || are_ends && *at != step.connection {
                return false;
            }
            if *at == step.connection
                && let ([reply, others @ ..], [our_reply, our_others @ ..]) = (expected, got)
            {
                if !self.agree(step, reply, our_reply) {
                    return true;
                }
                (expected, got) = (others, our_others);
            }
            !side::are_alike(step, expected, got)
        })
    }

    /// Whether two direct replies agree; those to EXEC, if all that was queued is answered alike.
    fn agree(&mut self, step: &Step, theirs: &Value, ours: &Value) -> bool {
        if side::are_alike(step, std::slice::from_ref(theirs), std::slice::from_ref(ours)) {
            return true;
        }
        let queue = std::mem::take(&mut self.queues[step.connection]);
        if step.name() == "exec"
            && let (Value::Aggregate(_, theirs), Value::Aggregate(_, ours)) = (theirs, ours)
        {
            let are_as_many = theirs.len() == queue.len() && ours.len() == queue.len();
            let mut parts = theirs.iter().zip(ours).zip(&queue);
            return are_as_many
                && parts.all(|((theirs, ours), request)| self.agree_on(request, theirs, ours));
        }
        self.queues[step.connection] = queue;
        self.agree_on(&step.request, theirs, ours)
    }

    fn agree_on(&mut self, request: &[Vec<u8>], theirs: &Value, ours: &Value) -> bool {
        let request = scripts::inner(request).unwrap_or(request);
        let name = compare::full_name(request, self.vocabulary);
        let history = self.steps.split_last().map_or(&[][..], |(_, history)| history);
        let exchange = Exchange { name, request, theirs, ours, history };
        let ends = theirs != ours && exceptions::ends(&exchange);
        let agrees = compare::agree(&exchange, self.vocabulary);
        self.is_over |= ends;
        agrees
    }

    fn note_queue(&mut self, step: &Step, theirs: &Heard) {
        let name = step.name();
        for (queue, values) in self.queues.iter_mut().zip(&theirs.values) {
            if values.last().is_some_and(side::is_end) {
                queue.clear();
            }
        }
        let queue = &mut self.queues[step.connection];
        match theirs.values[step.connection].first() {
            Some(Value::Line(b'+', text)) if text == b"QUEUED" => queue.push_back(step.request.clone()),
            Some(answer) if name == "exec" => {
                queue.clear();
                let is_executed = matches!(answer, Value::Aggregate(..));
                self.talked.transaction_count += usize::from(is_executed);
                self.talked.aborted_count += usize::from(side::is_null(answer));
            }
            Some(Value::Line(b'+', _)) if matches!(&*name, "discard" | "multi" | "reset") => queue.clear(),
            _ => {}
        }
    }

    fn difference(&self, connection: Option<usize>, ours: Result<Heard, String>) -> TalkDifference {
        let step = self.steps.last().expect("one was played");
        let name = compare::full_name(&step.request, self.vocabulary);
        let is_other = connection.is_some_and(|connection| connection != step.connection);
        TalkDifference {
            subject: if is_other { format!("{name}, heard by others") } else { name },
            steps: self.steps.clone(),
            heard: self.heard.clone(),
            ours: ours.map(|heard| heard.values),
        }
    }

    /// Nothing may have been sent that was not taken, and both must hold the same data.
    fn look_at_the_end(&mut self) -> io::Result<Option<TalkDifference>> {
        let end = |ours, subject: &str, talk: &Talk<'_>| TalkDifference {
            subject: subject.to_owned(),
            steps: talk.steps.clone(),
            heard: talk.heard.clone(),
            ours,
        };
        let rest = self.ours.ask_for_rest();
        match rest {
            Err(error) => return Ok(Some(end(Err(error.to_string()), "the end", self))),
            Ok(rest) if rest.iter().any(|values| !values.is_empty()) => {
                return Ok(Some(end(Ok(rest), "sent too much", self)));
            }
            Ok(_) => {}
        }
        let (theirs, ours) = (self.theirs.digest()?, self.ours.digest());
        match ours {
            Ok(ours) if ours == theirs => Ok(None),
            Ok(ours) => {
                let told = format!("{} and not {}", ours.lines().join(" "), theirs.lines().join(" "));
                Ok(Some(end(Err(format!("DEBUG DIGEST answers {told}")), "what is left", self)))
            }
            Err(error) => Ok(Some(end(Err(error.to_string()), "what is left", self))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_only_scripts_name_are_heard_of() {
        let heard_of = words(&[]);
        assert!(scripts::NAMED.iter().all(|key| heard_of.contains(key.as_bytes())));
    }
}
