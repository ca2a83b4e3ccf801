//! Active defragmentation: after deletions the data is moved together, so that RSS follows it down.
//!
//! ```text
//!   idle --too much lost--> closing --> moving --> reopening --> idle
//!             plan          extents     the data    what did not empty
//! ```
//!
//! One round chooses the extents that hold least, closes them, goes once through all the data and moves what
//! lies in them, and opens what did not empty. The extents that did are unmapped by the purge
//! (`background.rs`). What is lost is the arena's resident bytes less those in use.
//!
//! The thread that frees does it, in turns with pauses between, by the share of a processor that the settings
//! allow. A turn is made of steps that each hold one lock, of a shard or of the arena, for some
//! [`STEP_WANTED`]; the size of a step is learned from how long the last ones took. No lock is taken twice in
//! one turn, so a worker that happens to need it waits for one step at most. Steps are timed by the
//! thread's own processor time, which does not depend on how busy the machine is; pauses and whole rounds by
//! the clock.
use crate::state::config::Defrag as Settings;
use crate::state::defrag::{DefragStats, wanted_percent};
use crate::state::log::Log;
use crate::state::system::thread_time as processor_time;
use pack::arena::{self, Evacuation, Progress, Stubborn};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use store::{Keyspace, Mover, StepLimits};

/// How long a step should hold its lock.
const STEP_WANTED: Duration = Duration::from_micros(40);
/// After so much processor time no further step on a shard follows, and there is a pause.
const TURN: Duration = Duration::from_micros(500);
/// Bounds of a step's size, in blocks that are looked at.
const EFFORT_MIN: u64 = 16;
const EFFORT_MAX: u64 = 1024;
/// How many blocks of an extent one step visits when it closes or opens it.
const WALKED_BLOCKS: usize = 128;
/// After a round that emptied less than half of its extents, or a plan that was not worth a round, the next
/// one waits for `REST_MIN`; after each further one for twice as long, up to `REST_MAX` or so many times what
/// it has taken: what kept blocks where they are may be gone at any moment, and small data is soon gone
/// through.
const REST_MIN: Duration = Duration::from_secs(5);
const REST_MAX: Duration = Duration::from_secs(600);
const RESTS_PER_ROUND: u32 = 20;
/// Where one part in this many of what was in use is gone, the rest is over: the data is not what it was when
/// a round was not worth it.
const GONE_SHARE: usize = 8;
/// A round is worth its walk through all data if its extents hold at least one part in this many of the bytes
/// in use.
const GAIN_SHARE: usize = 32;

/// Where a round stands; see the picture above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Closing,
    Moving,
    Reopening,
}

/// Active defragmentation, and where it stands.
pub(crate) struct Defrag {
    phase: Phase,
    /// None while idle.
    evacuation: Option<Evacuation>,
    /// Extents that did not empty: the next round leaves them out.
    stubborn: Stubborn,
    /// Where the walk through the data stands, while moving.
    mover: Option<Mover>,
    /// How many blocks a step may look at.
    effort: u64,
    /// The longest step of this round, for the log.
    longest_step: Duration,
    /// The share of a processor that it may use. Within a round it only grows, so that a round does not slow
    /// down because it has freed much already.
    percent: u32,
    began: Instant,
    rests_until: Option<Instant>,
    rest: Duration,
    /// How many bytes were in use when it began to rest.
    used_at_rest: usize,
}

/// What a turn works on, and by which settings.
pub(crate) struct Surroundings<'s> {
    pub(crate) keyspace: &'s Keyspace,
    pub(crate) log: &'s Log,
    pub(crate) stats: &'s DefragStats,
    pub(crate) settings: Settings,
}

/// When to call [`Defrag::turn`] again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    At(Instant),
    /// When a worker asks for it.
    Asked,
}

impl Defrag {
    /// Nothing is under way.
    pub(crate) fn new() -> Defrag {
        Defrag {
            phase: Phase::Idle,
            evacuation: None,
            stubborn: Stubborn::default(),
            mover: None,
            effort: EFFORT_MIN,
            longest_step: Duration::ZERO,
            percent: 0,
            began: now(),
            rests_until: None,
            rest: REST_MIN,
            used_at_rest: 0,
        }
    }

    /// Takes one turn of the round, or begins one if it is due.
    pub(crate) fn turn(&mut self, around: &Surroundings<'_>) -> Next {
        let settings = &around.settings;
        let start = processor_time();
        if self.phase == Phase::Idle && !self.begin(settings) {
            return Next::Asked;
        }
        if !settings.is_on && self.phase != Phase::Reopening {
            self.enter(Phase::Reopening, around.keyspace);
        }
        self.percent = self.percent.max(wanted_percent(settings).unwrap_or(0)).clamp(1, 99);
        self.steps(around, start);
        self.tell_times(around.stats);
        if self.phase == Phase::Idle {
            return Next::Asked;
        }
        let worked = processor_time().saturating_sub(start);
        Next::At(now() + worked * (100 - self.percent) / self.percent)
    }

    /// Does one step; while data is moved as many as [`TURN`] allows, each on another shard.
    fn steps(&mut self, around: &Surroundings<'_>, start: Duration) {
        let mut before = start;
        for _ in 0..self.mover.as_ref().map_or(1, |mover| mover.shards_left().max(1)) {
            self.step(around);
            let after = processor_time();
            self.longest_step = self.longest_step.max(after.saturating_sub(before));
            if self.phase != Phase::Moving || after.saturating_sub(start) >= TURN {
                break;
            }
            self.learn(after.saturating_sub(before));
            before = after;
        }
    }

    /// Chooses the extents of a new round. Returns whether there is one.
    fn begin(&mut self, settings: &Settings) -> bool {
        let now = now();
        if self.rests_until.is_some_and(|until| now < until) {
            if !self.is_much_gone() {
                return false;
            }
            (self.rests_until, self.rest) = (None, REST_MIN);
        }
        let Some(percent) = wanted_percent(settings) else { return false };
        let Some(evacuation) = Evacuation::plan(&self.stubborn) else { return false };
        if evacuation.extent_bytes() < arena::usage().used_bytes / GAIN_SHARE {
            self.rest(now, Duration::ZERO);
            return false;
        }
        self.evacuation = Some(evacuation);
        (self.percent, self.began, self.longest_step) = (percent, now, Duration::ZERO);
        self.phase = Phase::Closing;
        true
    }

    /// Whether much was deleted since it began to rest.
    fn is_much_gone(&self) -> bool {
        arena::usage().used_bytes < self.used_at_rest - self.used_at_rest / GONE_SHARE
    }

    /// Waits for some time before the next round, which may choose any extent. `took` is what this one has
    /// taken.
    fn rest(&mut self, now: Instant, took: Duration) {
        self.used_at_rest = arena::usage().used_bytes;
        self.rest = self.rest.min((took * RESTS_PER_ROUND).clamp(REST_MIN, REST_MAX));
        self.rests_until = Some(now + self.rest);
        self.rest *= 2;
        self.stubborn.clear();
    }

    fn enter(&mut self, phase: Phase, keyspace: &Keyspace) {
        self.phase = phase;
        match phase {
            Phase::Moving => (self.mover, self.effort) = (Some(keyspace.mover()), EFFORT_MIN),
            Phase::Reopening => self.evacuation.iter_mut().for_each(Evacuation::rewind),
            Phase::Idle | Phase::Closing => {}
        }
    }

    /// Does a step under one lock: of a shard, or of the arena.
    fn step(&mut self, around: &Surroundings<'_>) {
        let Some(evacuation) = &mut self.evacuation else { return };
        match self.phase {
            Phase::Idle => {}
            Phase::Closing => {
                if evacuation.close(WALKED_BLOCKS) == Progress::Done {
                    self.enter(Phase::Moving, around.keyspace);
                }
            }
            Phase::Moving => self.move_some(around),
            Phase::Reopening => {
                if evacuation.reopen(WALKED_BLOCKS, &mut self.stubborn) == Progress::Done {
                    self.finish(around.log);
                }
            }
        }
    }

    /// Moves data of one shard.
    fn move_some(&mut self, around: &Surroundings<'_>) {
        let Some(mover) = &mut self.mover else { return };
        let limits = StepLimits { effort: self.effort, len_max: around.settings.max_scan_fields };
        let before = mover.stats;
        let progress = around.keyspace.relocate(mover, limits);
        around.stats.add(before, mover.stats);
        if progress == Progress::Done {
            self.enter(Phase::Reopening, around.keyspace);
        }
    }

    /// Makes the next step smaller or larger, by how long the last one took.
    fn learn(&mut self, took: Duration) {
        if took > STEP_WANTED * 2 {
            self.effort = (self.effort / 2).max(EFFORT_MIN);
        } else if took < STEP_WANTED {
            self.effort = (self.effort + self.effort / 8).min(EFFORT_MAX);
        }
    }

    /// Ends a round, and says in the log what it has done.
    fn finish(&mut self, log: &Log) {
        let Some(evacuation) = self.evacuation.take() else { return };
        let (chosen, left) = (evacuation.extents(), evacuation.left());
        let moved = self.mover.take().map_or(0, |mover| mover.stats.moves.moved);
        log.verbose(&format!(
            "Active defrag: {} of {chosen} extents emptied, {moved} blocks moved in {} ms, at most {} us at a time",
            chosen - left,
            self.began.elapsed().as_millis(),
            self.longest_step.as_micros()
        ));
        if left * 2 > chosen {
            self.rest(now(), self.began.elapsed());
        } else {
            self.rest = REST_MIN;
        }
        self.phase = Phase::Idle;
    }

    fn tell_times(&self, stats: &DefragStats) {
        let current_us = self.began.elapsed().as_micros() as u64;
        if self.phase == Phase::Idle {
            stats.running_percent.store(0, Relaxed);
            stats.current_us.store(0, Relaxed);
            stats.total_us.fetch_add(current_us, Relaxed);
        } else {
            stats.running_percent.store(u64::from(self.percent), Relaxed);
            stats.current_us.store(current_us, Relaxed);
        }
    }
}

/// How long it is until then; zero if that has passed.
pub(crate) fn until(time: Instant) -> Duration {
    time.saturating_duration_since(now())
}

/// The system's steady clock: pauses last as long as they should also in tests that move the server's clock.
#[allow(clippy::disallowed_methods, reason = "steps are timed to keep them short")]
fn now() -> Instant {
    Instant::now()
}
