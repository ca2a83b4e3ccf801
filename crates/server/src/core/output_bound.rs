//! How much a client may be owed: a bound on its replies while they are made.
//!
//! The bound is the least of the hard limit of `client-output-buffer-limit`, `maxmemory-clients`, and,
//! because both are unlimited unless somebody sets them, half of the memory that the machine has free: a
//! reply that takes all of it would end the process, not the client. What already waits unsent counts.
//! `worker/output.rs` ends those who pass it.
use super::server::Server;
use super::session::ClientRecord;
use crate::state::config::{Config, OutputLimit, OutputLimits};
use crate::state::system::free_bytes;
use std::hint::cold_path;
use std::sync::atomic::Ordering::Relaxed;

/// What a client may be owed however little memory is free, so that a crowded machine serves small replies.
const OUTPUT_BYTES_MIN: u64 = 64 << 20;

/// A client with less than this unsent is not compared with output limits, unless one of them is smaller.
const LOOK_BYTES: usize = 64 << 10;

/// Which bound a client has passed: the log says it, and each has a counter of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    /// `client-output-buffer-limit`
    Output,
    /// `maxmemory-clients`
    Clients,
    /// Free memory.
    Machine,
}

/// The bounds that settings make; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct OutputBound {
    /// The hard limits of `client-output-buffer-limit`: of clients that listen to channels, and of others.
    hard_pubsub_bytes: u64,
    hard_bytes: u64,
    clients_bytes: u64,
    look_bytes: usize,
    /// A setting limits what a client that does not listen may be owed: at all, or for longer than a while.
    is_limited: bool,
}

impl OutputBound {
    /// The bounds that this configuration makes.
    pub(crate) fn of(config: &Config) -> OutputBound {
        let OutputLimit { hard_bytes, soft_bytes, .. } = config.client_output_buffer.normal;
        let clients_bytes = config.maxmemory_clients.limit_for_clients(config.maxmemory_bytes);
        OutputBound {
            hard_pubsub_bytes: config.client_output_buffer.pubsub.hard_bytes,
            hard_bytes,
            clients_bytes,
            look_bytes: look_bytes(&config.client_output_buffer),
            is_limited: hard_bytes | soft_bytes | clients_bytes != 0,
        }
    }

    /// Whether a setting makes a bound at all for clients that do not listen.
    #[inline]
    pub(crate) fn is_set(self) -> bool {
        self.hard_bytes | self.clients_bytes != 0
    }

    /// Whether no setting limits what a client that does not listen may be owed, not even for a while.
    #[inline]
    pub(crate) fn is_unlimited(self) -> bool {
        !self.is_limited
    }

    /// The fewest unsent bytes that may change something for a client.
    #[inline]
    pub(crate) fn look_bytes(self) -> usize {
        self.look_bytes
    }

    /// How many bytes of replies may be made for a client now. `unsent_bytes` is called only where a setting
    /// makes a bound: without one, what waits unsent is judged after the next poll, which is early enough.
    #[inline]
    pub(crate) fn room_bytes(
        self,
        server: &Server,
        (record, is_subscribed): (&ClientRecord, bool),
        unsent_bytes: impl FnOnce() -> usize,
    ) -> usize {
        if !self.is_set() && !is_subscribed {
            return server.output_bytes_max.load(Relaxed) as usize;
        }
        cold_path();
        (self.least(server, record).0 as usize).saturating_sub(unsent_bytes())
    }

    /// The bound that holds for this client, in bytes, and what makes it.
    #[cold]
    pub(crate) fn least(self, server: &Server, record: &ClientRecord) -> (u64, Excess) {
        let mut least = (server.output_bytes_max.load(Relaxed), Excess::Machine);
        if self.clients_bytes > 0 && self.clients_bytes < least.0 && !record.details().is_spared {
            least = (self.clients_bytes, Excess::Clients);
        }
        let hard_bytes = if record.is_subscribed() { self.hard_pubsub_bytes } else { self.hard_bytes };
        if hard_bytes > 0 && hard_bytes <= least.0 {
            least = (hard_bytes, Excess::Output);
        }
        least
    }
}

fn look_bytes(limits: &OutputLimits) -> usize {
    let limits =
        [limits.normal, limits.pubsub].into_iter().flat_map(|limit| [limit.hard_bytes, limit.soft_bytes]);
    limits.filter(|bytes| *bytes > 0).fold(LOOK_BYTES, |least, bytes| least.min(bytes as usize))
}

/// The bound where no setting makes one: half of the memory that is free, so that two clients at once do not
/// end the process. It reads files of the system, so it is called about once a second.
pub(crate) fn output_bytes_max() -> u64 {
    free_bytes().map_or(u64::MAX, |free| (free / 2).max(OUTPUT_BYTES_MIN))
}
