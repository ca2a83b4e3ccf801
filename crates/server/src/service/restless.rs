//! Restless mode, for tests: a thread does all the time, at random, what a server otherwise does rarely and
//! by itself.
//!
//! | what | how |
//! |---|---|
//! | defragmentation | extents are chosen by lot, closed, emptied, opened again, in steps of random length |
//! | leaves, nodes, values | move with it, those of the clients and those of the shadow (`store::Shadow`) |
//! | purging, huge pages | a few free blocks, or one page, at a time |
//! | keys | come, split leaves, expire, are evicted and go under the lock of a shard (`store::Transients`) |
//! | eviction, expiry, uses | in the shadow, by every policy, while its clock jumps |
//! | messages | workers listen anew, wake for nothing, hear of clients that are gone |
//! | connections | each goes to a worker drawn at random |
//!
//! What clients see stays the same, so every test of the server can run like this. `DEBUG RESTLESS seed`
//! begins it and `DEBUG RESTLESS OFF` ends it; `SARDINE_RESTLESS` in the environment begins it with the
//! server. All choices follow from the seed, which the log shows; when each is made depends on how the
//! threads are scheduled.
//!
//! `state/restless.rs` knows whether it is on and what it has done. Its memory, a few megabytes, counts as
//! the server's own, which `maxmemory` is compared with.
use crate::core::mailbox::Message;
use crate::core::server::Server;
use crate::core::session::Unblock;
use crate::state::restless::Started;
use base::random::Random;
use pack::arena::{self, Evacuation, Progress, Stubborn};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;
use store::{Mover, Shadow, StepLimits, Transients};

/// The environment variable: a seed, or any other word for a random one.
const VARIABLE: &str = "SARDINE_RESTLESS";

/// Lets the mode begin with this server.
pub(crate) fn serve(server: &Arc<Server>) {
    let weak = Arc::downgrade(server);
    server.restless.set_starter(move |seed, is_over| start(&weak, seed, is_over));
}

fn start(weak: &Weak<Server>, seed: u64, is_over: Arc<AtomicBool>) -> Started {
    let Some(server) = weak.upgrade() else { return Ok(None) };
    server.log.warning(&format!("Restless mode, for tests, with seed {seed}"));
    let run = move || {
        let mut thread = RestlessThread::new(&server, seed);
        while !is_over.load(Relaxed) && !server.is_stopping() {
            thread.act_once();
        }
    };
    std::thread::Builder::new().name("sardine-restless".into()).spawn(run).map(Some)
}

/// The seed that the environment asks for; None where it does not.
pub(crate) fn seed_of_environment(server: &Server) -> Option<u64> {
    let value = std::env::var(VARIABLE).ok()?;
    Some(value.parse().unwrap_or(server.random_seed))
}

fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Relaxed);
}

/// What the thread works with.
struct RestlessThread<'s> {
    server: &'s Server,
    random: Random,
    /// Keys of its own among those of the clients, which come and go under the lock of a shard.
    transients: Transients,
    /// A keyspace of its own, for what would change the clients' data.
    shadow: Shadow,
    moving: Moving,
    stubborn: Stubborn,
}

/// How far a round of defragmentation has come.
enum Moving {
    Idle,
    Closing(Evacuation),
    /// What is left of the clients' data, and of the shadow's.
    Through(Evacuation, Mover, Mover),
    Reopening(Evacuation),
}

impl<'s> RestlessThread<'s> {
    fn new(server: &'s Server, seed: u64) -> RestlessThread<'s> {
        let mut random = Random::new(seed);
        RestlessThread {
            server,
            transients: Transients::new(random.next_u64()),
            shadow: Shadow::new(random.next_u64()),
            random,
            moving: Moving::Idle,
            stubborn: Stubborn::default(),
        }
    }

    /// Does one thing, and then pauses for a moment.
    fn act_once(&mut self) {
        let counts = &self.server.restless.counts();
        match self.random.below(100) {
            0..25 => {
                drop(self.transients.visit(&self.server.keyspace, &self.server.config().store));
                count(&counts.visits, 1);
            }
            25..45 => {
                drop(self.shadow.churn());
                count(&counts.churns, 1);
            }
            45..75 => (0..1 + self.random.below(40)).for_each(|_| self.move_some()),
            75..90 => count(&counts.purged, arena::purge(1 + self.random.below(8) as usize) as u64),
            90 => count(&counts.united, arena::unite(1) as u64),
            _ => self.send_a_message(),
        }
        match self.random.below(8) {
            0..4 => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(self.random.below(300))),
        }
    }

    /// A step of the evacuation, or the first of the next one.
    fn move_some(&mut self) {
        let blocks = 1 + self.random.below(200) as usize;
        let limits = StepLimits { effort: 1 + self.random.below(200), len_max: 1 + self.random.below(500) };
        self.moving = match std::mem::replace(&mut self.moving, Moving::Idle) {
            Moving::Idle => {
                let one_in = 1 + self.random.below(4);
                Evacuation::by_lot(&mut self.random, one_in).map_or(Moving::Idle, Moving::Closing)
            }
            Moving::Closing(mut evacuation) => match evacuation.close(blocks) {
                Progress::More => Moving::Closing(evacuation),
                Progress::Done => {
                    let movers = (self.server.keyspace.mover(), self.shadow.keyspace().mover());
                    Moving::Through(evacuation, movers.0, movers.1)
                }
            },
            Moving::Through(mut evacuation, mut ours, mut shadows) => {
                let first = self.server.keyspace.relocate(&mut ours, limits);
                let second = self.shadow.keyspace().relocate(&mut shadows, limits);
                if (first, second) == (Progress::Done, Progress::Done) {
                    let counts = &self.server.restless.counts();
                    count(&counts.rounds, 1);
                    count(&counts.moved, ours.stats.moves.moved + shadows.stats.moves.moved);
                    evacuation.rewind();
                    Moving::Reopening(evacuation)
                } else {
                    Moving::Through(evacuation, ours, shadows)
                }
            }
            Moving::Reopening(mut evacuation) => match evacuation.reopen(blocks, &mut self.stubborn) {
                Progress::More => Moving::Reopening(evacuation),
                Progress::Done => {
                    self.stubborn.clear();
                    Moving::Idle
                }
            },
        };
    }

    /// Sends one of the workers a message that changes nothing: it is about a client that is not there.
    fn send_a_message(&mut self) {
        let mailboxes = &self.server.mailboxes;
        let mailbox = &mailboxes[self.random.below(mailboxes.len() as u64) as usize];
        match self.random.below(5) {
            0 => mailbox.send(Message::Listen),
            1 => mailbox.send(Message::Killed(u64::MAX)),
            2 => mailbox.send(Message::Unblocked(u64::MAX, Unblock::Timeout)),
            3 => mailbox.send(Message::Feed(Arc::from(&b""[..]), 1)),
            _ => mailbox.wake(),
        }
        count(&self.server.restless.counts().messages, 1);
    }
}
