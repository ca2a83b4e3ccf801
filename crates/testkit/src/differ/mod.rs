//! The differential runner: streams of random requests, drawn from the command table's own grammar, are sent
//! to a real redis-server and to Sardine, and every reply must be the same; after a stream so must be all
//! that it left in the keyspaces. A stream that fails is shrunk to its shortest form and told as a
//! transcript.
//!
//! `vocabulary` learns what both servers know, `focus`, `stream` and `request` draw from it with the pools of
//! `values`, `play` sends and compares by the rules of `compare`, `shrink` shortens, `report` prints.
//! Commands come from the tables by themselves; those that cannot be compared are in `excluded`, wanted
//! differences in `exceptions`, and Redis's own changes between its versions in `versions`, each with its
//! reason.
//!
//! `scripts` wraps them into scripts. `events` plays the same streams and compares what keyspace
//! notifications tell of them.
//! `journal` compares what the servers write of the streams into their journals.
//! `talk` has streams of another kind, in which several connections meet: transactions, clients that wait,
//! subscribers. `users` compares rules of users, and what these may do.
//!
//! A stream is named by its seed alone: whoever has seed and peer can play it again.
mod compare;
mod counters;
mod events;
mod exceptions;
mod excluded;
mod focus;
pub mod journal;
mod play;
pub mod raw;
mod report;
mod request;
mod scripts;
mod shrink;
mod stream;
mod talk;
pub mod users;
mod values;
mod versions;
mod vocabulary;

pub use events::{EventDifference, Heard};
pub use play::{Difference, Played};
pub use stream::Step;
pub use talk::{TalkDifference, Talked, Talks};
pub use vocabulary::Vocabulary;

use crate::resp_client::{Address, RespClient};
use play::Players;
use std::io;

/// Two servers that are compared. Both are emptied again and again.
pub struct Differ {
    ours: Address,
    theirs: Address,
    vocabulary: Vocabulary,
}

impl Differ {
    /// `groups` as [`Vocabulary::learn`] takes them.
    pub fn new(ours: Address, theirs: Address, groups: &[String]) -> io::Result<Differ> {
        let mut clients = (RespClient::connect(&ours)?, RespClient::connect(&theirs)?);
        let vocabulary = Vocabulary::learn(&mut clients.0, &mut clients.1, groups)?;
        Ok(Differ { ours, theirs, vocabulary })
    }

    /// What both servers know.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Empties both servers and plays the stream of this seed. An error is one of the connections, not a
    /// difference.
    pub fn play(&self, seed: u64) -> io::Result<Played> {
        let steps = stream::draw(seed, &self.vocabulary);
        self.players().play(&steps)
    }

    /// The shortest stream found that fails on the same command.
    pub fn shrink(&self, difference: &Difference) -> io::Result<Difference> {
        let subject = &difference.subject;
        let players = self.players();
        let mut best = difference.clone();
        shrink::shrink(difference.steps.clone(), &mut |candidate| {
            if !candidate.iter().all(|step| stream::may_send(&step.request, &self.vocabulary)) {
                return Ok(false);
            }
            let found = players.replay(candidate)?.filter(|found| found.subject == *subject);
            let fails = found.is_some();
            best = found.unwrap_or_else(|| best.clone());
            Ok(fails)
        })?;
        Ok(best)
    }

    fn players(&self) -> Players<'_> {
        Players { ours: self.ours.clone(), theirs: self.theirs.clone(), vocabulary: &self.vocabulary }
    }
}
