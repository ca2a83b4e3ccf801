//! What eviction goes by: `maxmemory-policy` and the settings beside it.

/// `maxmemory-policy`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    VolatileLru,
    VolatileLfu,
    VolatileRandom,
    VolatileTtl,
    AllkeysLru,
    AllkeysLfu,
    AllkeysRandom,
    NoEviction,
}

/// What eviction goes by; a part of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eviction {
    pub policy: Policy,
    /// `maxmemory-samples`
    pub samples: u32,
    pub lfu_log_factor: u32,
    /// Minutes until a counter falls by one; 0: never.
    pub lfu_decay_min: u32,
}

impl Default for Eviction {
    fn default() -> Eviction {
        Eviction { policy: Policy::NoEviction, samples: 5, lfu_log_factor: 10, lfu_decay_min: 1 }
    }
}

impl Policy {
    /// In the order in which Redis names them, [`Policy::NoEviction`] last.
    pub const ALL: [Policy; 8] = [
        Policy::VolatileLru,
        Policy::VolatileLfu,
        Policy::VolatileRandom,
        Policy::VolatileTtl,
        Policy::AllkeysLru,
        Policy::AllkeysLfu,
        Policy::AllkeysRandom,
        Policy::NoEviction,
    ];
    /// The policies under which keys are evicted.
    pub(crate) const EVICTING: &[Policy] = Policy::ALL.split_at(Policy::ALL.len() - 1).0;

    /// As `maxmemory-policy` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::VolatileLru => "volatile-lru",
            Policy::VolatileLfu => "volatile-lfu",
            Policy::VolatileRandom => "volatile-random",
            Policy::VolatileTtl => "volatile-ttl",
            Policy::AllkeysLru => "allkeys-lru",
            Policy::AllkeysLfu => "allkeys-lfu",
            Policy::AllkeysRandom => "allkeys-random",
            Policy::NoEviction => "noeviction",
        }
    }

    /// Whether only keys with a deadline may go.
    pub(crate) fn is_volatile(self) -> bool {
        use Policy::{VolatileLfu, VolatileLru, VolatileRandom, VolatileTtl};
        matches!(self, VolatileLru | VolatileLfu | VolatileRandom | VolatileTtl)
    }
}
