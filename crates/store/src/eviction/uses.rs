//! What is known of when keys were used, or how often: one byte an entry (`pack::map`), and only under a
//! policy that asks for it, or once somebody has asked for a key's idle time ([`View::idle`]). Leaves get
//! their column of bytes when something is written to or read from them.
//!
//! Under an LFU policy the byte is Redis's counter: it begins at 5, rises with a probability that falls as it
//! rises, and falls by one in each `lfu-decay-time`. Under an LRU policy it is a code of the LRU clock
//! (`lru_clock.rs`), and 0 means "not used since uses are recorded". A use writes the byte under the lock
//! that the command holds anyway; `aging.rs` does the rest.
//!
//! A leaf that a clone shares is not copied for this: its entries keep their bytes, which are then out of
//! date. Only the choice of what to evict depends on them.
use crate::eviction::aging::Hand;
use crate::eviction::lru_clock::{CODES, UNKNOWN, micros};
use crate::{Eviction, Key, Keyspace, Policy, View};
use base::Millis;
use base::random::Random;
use std::sync::Mutex;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64};

/// What the bytes mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracking {
    Off,
    Recency,
    Frequency,
}

impl Policy {
    /// Whether this policy goes by when or how often keys were used.
    pub fn goes_by_uses(self) -> bool {
        self.tracking() != Tracking::Off
    }

    #[inline]
    pub(crate) fn tracking(self) -> Tracking {
        match self {
            Policy::AllkeysLru | Policy::VolatileLru => Tracking::Recency,
            Policy::AllkeysLfu | Policy::VolatileLfu => Tracking::Frequency,
            _ => Tracking::Off,
        }
    }
}

/// What OBJECT IDLETIME and FREQ answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// Nobody has asked for it.
    Untracked,
    IdleMs(i64),
    Frequency(u8),
}

/// The counter of a new key, so that it is not the first to go.
const FREQUENCY_AT_BIRTH: u8 = 5;

/// All that the threads share about uses.
pub(crate) struct Uses {
    /// The code of a key that is used now.
    now: AtomicU8,
    /// When each code began. For [`UNKNOWN`] it is when uses began to be recorded.
    began_us: Box<[AtomicI64; CODES]>,
    /// Whether somebody has asked for a key's idle time. Times of use are recorded from then on, under any
    /// policy.
    is_asked: AtomicBool,
    /// False where uses are certainly not tracked. A lookup tests this word and nothing else then.
    is_kept: AtomicBool,
    /// It is of a keyspace beside another one, which has the bytes of its keys.
    pub(crate) is_beside: bool,
    /// Evictions since the last tick of the LRU clock.
    pub(crate) evicted: AtomicU64,
    pub(crate) hand: Mutex<Hand>,
}

impl Uses {
    pub(crate) fn new() -> Uses {
        Uses {
            now: AtomicU8::new(UNKNOWN),
            began_us: Box::new([const { AtomicI64::new(0) }; CODES]),
            is_asked: AtomicBool::new(false),
            is_kept: AtomicBool::new(true),
            is_beside: false,
            evicted: AtomicU64::new(0),
            hand: Mutex::new(Hand::new()),
        }
    }

    /// Uses get this code from here on.
    pub(crate) fn begin(&self, code: u8, began_us: i64) {
        let began = |code: u8| &self.began_us[usize::from(code)];
        if began(UNKNOWN).load(Relaxed) == 0 {
            began(UNKNOWN).store(began_us, Relaxed);
        }
        began(code).store(began_us, Relaxed);
        self.now.store(code, Relaxed);
    }

    /// For how long a key with this code was not used.
    #[inline]
    pub(crate) fn idle_us(&self, code: u8, now: Millis) -> i64 {
        (micros(now) - self.began_us[usize::from(code)].load(Relaxed)).max(0)
    }

    /// The code of a key that is used now.
    pub(crate) fn now(&self) -> u8 {
        self.now.load(Relaxed)
    }

    /// A code that stands for a time in the past.
    pub(crate) fn note_began(&self, code: u8, began_us: i64) {
        self.began_us[usize::from(code)].store(began_us, Relaxed);
    }

    /// When this code began.
    #[inline]
    pub(crate) fn began_us(&self, code: u8) -> i64 {
        self.began_us[usize::from(code)].load(Relaxed)
    }

    /// What the bytes mean under this policy.
    #[inline]
    pub(crate) fn tracking(&self, policy: Policy) -> Tracking {
        match policy.tracking() {
            Tracking::Off if self.is_asked.load(Relaxed) => Tracking::Recency,
            tracking => tracking,
        }
    }

    /// Whether a use may have to be recorded. [`Uses::tracking`] says for certain.
    #[inline(always)]
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept.load(Relaxed)
    }

    /// Notes that this policy will be in force. Once a policy went by times of use they are recorded for
    /// good: without that, a key that was used under the next policy would later seem to have been idle for
    /// long.
    fn go_by(&self, policy: Policy) {
        if policy.tracking() == Tracking::Recency {
            self.is_asked.store(true, SeqCst);
        }
        self.is_kept.store(policy.tracking() != Tracking::Off, SeqCst);
        // A thread that asks meanwhile is either seen here, or sets `is_kept` after it was cleared.
        if self.is_asked.load(SeqCst) {
            self.is_kept.store(true, SeqCst);
        }
    }

    /// Those of a keyspace beside another one: no use is recorded.
    pub(crate) fn beside() -> Uses {
        Uses { is_kept: AtomicBool::new(false), is_beside: true, ..Uses::new() }
    }

    /// Times of use are asked for, and kept from `now` on if they were not before.
    fn ask(&self, now: Millis) {
        let began = &self.began_us[usize::from(UNKNOWN)];
        let _ = began.compare_exchange(0, micros(now), Relaxed, Relaxed);
        self.is_asked.store(true, SeqCst);
        self.is_kept.store(true, SeqCst);
    }

    /// What a use does to the byte of an entry, if anything.
    #[inline]
    pub(crate) fn touch(&self, eviction: &Eviction) -> Touch {
        if !self.is_kept() {
            return Touch::None;
        }
        match self.tracking(eviction.policy) {
            Tracking::Off => Touch::None,
            Tracking::Recency => Touch::Code(self.now.load(Relaxed)),
            Tracking::Frequency => Touch::Count { log_factor: eviction.lfu_log_factor },
        }
    }
}

/// What a use makes of an entry's byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    None,
    Code(u8),
    Count { log_factor: u32 },
}

impl Touch {
    /// The byte of a new entry.
    pub(crate) fn birth(self) -> Option<u8> {
        match self {
            Touch::None => None,
            Touch::Code(code) => Some(code),
            Touch::Count { .. } => Some(FREQUENCY_AT_BIRTH),
        }
    }

    #[inline]
    pub(crate) fn next(self, old: u8, random: &mut Random) -> u8 {
        match self {
            Touch::None => old,
            Touch::Code(code) => code,
            Touch::Count { log_factor } => {
                let above = u64::from(old.saturating_sub(FREQUENCY_AT_BIRTH));
                let is_counted = random.below(above * u64::from(log_factor) + 1) == 0;
                old.saturating_add(u8::from(is_counted))
            }
        }
    }
}

/// What a command has removed to put its result there (SUNIONSTORE, SORT ... STORE).
pub struct Replaced {
    pub existed: bool,
    /// What was recorded of its uses.
    byte: Option<u8>,
}

impl Keyspace {
    /// Tells which policy will be in force, before any command runs under it. Until the first call, uses are
    /// recorded if the settings of a command ask for it.
    pub fn go_by(&self, policy: Policy) {
        self.uses.go_by(policy);
    }
}

impl View<'_> {
    /// Whether the key exists; it counts as used, whatever [`View::leave_no_trace`] says.
    pub fn touch(&mut self, key: &Key<'_>) -> bool {
        let leaves_trace = self.set_trace(true);
        let exists = self.look_used(key).is_some();
        self.set_trace(leaves_trace);
        exists
    }

    /// Lookups of this view do not count as uses from here on (CLIENT NO-TOUCH).
    pub fn leave_no_trace(&mut self) {
        self.set_trace(false);
    }

    /// As [`View::usage`], for a client that asks for the idle time: from the first call on, times of use are
    /// recorded under any policy. A key that was not used since that call counts as used then, so no key
    /// seems idle for longer than it is.
    pub fn idle(&mut self, key: &Key<'_>) -> Option<Usage> {
        self.look(key)?;
        self.uses().ask(self.now());
        self.usage_of_present(key)
    }

    /// When or how often the key was used, without using it; None if it is not there.
    pub fn usage(&mut self, key: &Key<'_>) -> Option<Usage> {
        self.look(key)?;
        self.usage_of_present(key)
    }

    /// Records a use as it was elsewhere (RESTORE), where uses of this sort are recorded under the policy. In
    /// a keyspace beside it is only noted, for that of the key.
    pub fn set_usage(&mut self, key: &Key<'_>, usage: Usage) {
        if self.uses().is_beside {
            return self.aside.note_usage(key.bytes(), usage);
        }
        let (policy, now) = (self.settings().eviction.policy, self.clock());
        let byte = match (policy.tracking(), usage) {
            (Tracking::Frequency, Usage::Frequency(byte)) => byte,
            (Tracking::Recency | Tracking::Off, Usage::IdleMs(ms)) => {
                self.uses().ask(now);
                let used_us = micros(now).saturating_sub(ms.saturating_mul(1000));
                self.keyspace.recall_use(used_us, now)
            }
            _ => return,
        };
        let (db, ..) = self.shard_mut(key).db_to_use(key.db());
        if let Some(db) = db {
            db.map.find_used(key.hash, key.bytes(), |_| byte);
        }
    }

    /// Removes what is under the key, so that a result can be put there. That takes over what is recorded of
    /// the key's uses, with one more ([`View::note_stored`]).
    pub fn remove_for_result(&mut self, key: &Key<'_>) -> Replaced {
        let byte = match self.uses().is_kept() {
            true => self.map(key).and_then(|map| map.use_of(key.hash, key.bytes())),
            false => None,
        };
        Replaced { existed: self.remove(key), byte }
    }

    pub(crate) fn take_over_uses(&mut self, key: &Key<'_>, replaced: &Replaced) {
        let Some(byte) = replaced.byte.filter(|_| replaced.existed) else { return };
        let touch = match self.leaves_trace() {
            true => self.uses().touch(&self.settings().eviction),
            false => Touch::None,
        };
        let (db, _, random) = self.shard_mut(key).db_to_use(key.db());
        if let Some(db) = db {
            db.map.find_used(key.hash, key.bytes(), |_| touch.next(byte, random));
        }
    }

    fn usage_of_present(&mut self, key: &Key<'_>) -> Option<Usage> {
        let tracking = self.uses().tracking(self.settings().eviction.policy);
        let byte = self.map(key)?.use_of(key.hash, key.bytes())?;
        Some(match tracking {
            Tracking::Off => Usage::Untracked,
            Tracking::Recency => Usage::IdleMs(self.uses().idle_us(byte, self.now()) / 1000),
            Tracking::Frequency => Usage::Frequency(byte),
        })
    }
}
