//! One connection's state. The part that other workers may read or poke (CLIENT LIST, CLIENT KILL) is its
//! record.
use crate::state::config::Config;
use crate::state::counters::{Count, Counters};
use base::Millis;
use std::hint::cold_path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const CACHE_LINE: usize = 64;

/// What any worker may see of a connection: registered in `Server::clients` while it lives. What its worker
/// writes for every batch stands first, on one cache line.
#[repr(C, align(64))]
pub(crate) struct ClientRecord {
    pub(crate) id: u64,
    pub(crate) last_active_ms: AtomicI64,
    pub(crate) commands: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) query_buffer_bytes: AtomicU64,
    pub(crate) output_buffer_bytes: AtomicU64,
    /// `Row::number` of the last command that began; [`ClientRecord::NO_COMMAND`] before the first.
    pub(crate) last_row: AtomicU32,
    /// Set by CLIENT KILL, which then wakes the worker: the worker closes the connection at its next turn.
    pub(crate) is_killed: AtomicBool,
    /// Its next request has to wait: INFO counts it among `blocked_clients`.
    pub(crate) is_parked: AtomicBool,
    /// Its command waits to be answered. Who takes it away answers.
    pub(crate) is_waiting: AtomicBool,
    pub(crate) peer: net::Peer,
    /// The fd's number, for CLIENT LIST.
    pub(crate) fd: i32,
    pub(crate) worker: usize,
    pub(crate) created_ms: i64,
    /// Of `query_buffer_bytes`: what has arrived and has not run, and what is known of a request that is not
    /// whole.
    pub(crate) query_len_bytes: AtomicU64,
    pub(crate) query_parsed_bytes: AtomicU64,
    /// What changes rarely, behind a lock.
    pub(crate) details: Mutex<ClientDetails>,
}

/// What a connection keeps of requests that have not run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueryBuffer {
    pub(crate) len_bytes: usize,
    pub(crate) room_bytes: usize,
    pub(crate) parsed_bytes: usize,
}

const _: () = assert!(std::mem::offset_of!(ClientRecord, peer) == CACHE_LINE);

impl ClientRecord {
    pub(crate) const NO_COMMAND: u32 = u32::MAX;

    /// The addresses as CLIENT LIST shows them and KILL compares them: the client's and ours.
    pub(crate) fn addresses(&self) -> (String, String) {
        match &self.peer {
            net::Peer::Tcp { peer, local } => (peer.to_string(), local.to_string()),
            net::Peer::Unix { path } => {
                let text = format!("{}:0", path.display());
                (text.clone(), text)
            }
        }
    }

    /// Whether the client is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        match &self.peer {
            net::Peer::Unix { .. } => true,
            net::Peer::Tcp { peer, .. } => peer.ip().to_canonical().is_loopback(),
        }
    }

    /// So much is kept of requests that have not run. `counters` are those of its worker, which calls this.
    pub(crate) fn note_query_buffer(&self, query: QueryBuffer, counters: &Counters) {
        let bytes = (query.room_bytes + query.parsed_bytes) as u64;
        let before = self.query_buffer_bytes.load(Relaxed);
        if bytes != 0 || before != 0 {
            cold_path();
            note_buffer(&self.query_buffer_bytes, bytes, &counters.client_bytes, &counters.input_peak);
            self.query_len_bytes.store(query.len_bytes as u64, Relaxed);
            self.query_parsed_bytes.store(query.parsed_bytes as u64, Relaxed);
        }
    }

    /// So much waits for the client to read it.
    pub(crate) fn note_output_buffer(&self, bytes: usize, counters: &Counters) {
        note_buffer(&self.output_buffer_bytes, bytes as u64, &counters.client_bytes, &counters.output_peak);
    }

    pub(crate) fn details(&self) -> MutexGuard<'_, ClientDetails> {
        self.details.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note_buffer(cell: &AtomicU64, bytes: u64, sum: &Count, peak: &AtomicU64) {
    let before = cell.load(Relaxed);
    if before != bytes {
        cell.store(bytes, Relaxed);
        sum.add(bytes.wrapping_sub(before));
        if bytes > peak.load(Relaxed) {
            peak.store(bytes, Relaxed);
        }
    }
}

/// The rarely changing part of a record.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientDetails {
    pub(crate) name: Vec<u8>,
    pub(crate) lib_name: Vec<u8>,
    pub(crate) lib_ver: Vec<u8>,
    pub(crate) user: String,
    pub(crate) db: u16,
    pub(crate) is_resp3: bool,
    /// MONITOR
    pub(crate) is_monitor: bool,
    /// CLIENT NO-EVICT
    pub(crate) is_spared: bool,
    /// CLIENT NO-TOUCH
    pub(crate) is_touchless: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(crate) enum After {
    /// The next request runs.
    Next,
    /// It runs at the connection's next turn: others come first, or it has to be parsed anew.
    Yield,
    /// The command itself runs then: there is no memory for it at this moment.
    Retry,
    /// None runs until this command is answered (`blocking.rs`).
    Wait,
    /// QUIT, a protocol error, CLIENT KILL of itself: close once the replies have left.
    Close,
    /// It is no client (`attack.rs`): close at once.
    Abort,
}

/// The worker's own part. The protocol is the reply's: HELLO changes it there and the worker keeps it.
pub(crate) struct Session {
    pub(crate) record: Arc<ClientRecord>,
    pub(crate) db: u16,
    /// Whether the client has said who it is, or came while nobody had to; see [`Session::must_log_in`].
    pub(crate) is_authenticated: bool,
    /// What is to happen after the command that ran last. One word, for everything that stops a batch.
    pub(crate) after: After,
    /// The command that this client waits for, with [`After::Wait`].
    pub(crate) waiting: Option<Box<Waiting>>,
    /// CLIENT REPLY: after each command dispatch drops what it wrote if this does not answer, and moves on to
    /// `next`.
    pub(crate) reply_mode: ReplyMode,
    /// Whether keys that this client looks at count as used: CLIENT NO-TOUCH says no.
    pub(crate) leaves_trace: bool,
}

impl Session {
    /// Whether the client has to say who it is before it may do anything. Those who are connected when the
    /// password is taken away are served, and asked again when there is a new one.
    pub(crate) fn must_log_in(&self, config: &Config) -> bool {
        !self.is_authenticated && config.needs_password()
    }
}

/// A command that waits.
pub(crate) struct Waiting {
    /// None: for ever.
    pub(crate) until: Option<Millis>,
    /// What it answers when its time is over.
    pub(crate) late_reply: Vec<u8>,
    /// CLIENT REPLY wants no answer, whatever ends the waiting.
    pub(crate) is_mute: bool,
}

/// What a waiting that somebody else ends is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unblock {
    /// As if its time were over.
    Timeout,
    Error,
}

/// CLIENT REPLY: which replies the client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum ReplyMode {
    #[default]
    On,
    Off,
    /// All but this command's and the next one's.
    SkipNext,
    /// All but this command's.
    Skip,
}

impl ReplyMode {
    /// Whether the command that just ran is answered.
    pub(crate) fn answers(self) -> bool {
        self == ReplyMode::On
    }

    /// The mode for the next command.
    pub(crate) fn next(self) -> ReplyMode {
        match self {
            ReplyMode::SkipNext => ReplyMode::Skip,
            ReplyMode::Skip => ReplyMode::On,
            same => same,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_mutes_itself_and_the_next_command() {
        let mut mode = ReplyMode::SkipNext;
        let mut answered = Vec::new();
        for _ in 0..3 {
            answered.push(mode.answers());
            mode = mode.next();
        }
        assert_eq!(answered, [false, false, true]);
        assert_eq!(ReplyMode::Off.next(), ReplyMode::Off);
    }
}
