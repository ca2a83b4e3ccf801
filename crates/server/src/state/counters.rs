//! What a worker counts on the path of every request: plain cells that only it writes, summed by whoever
//! asks.
//!
//! The cells are atomics only so that others may read them: their one writer adds with a load and a store, no
//! locked instruction.
use crate::state::histogram::{Histogram, Latencies};
use net::{Meter, Scale};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A counter with one writer. It wraps around, so it goes down when a negative number is added, in two's
/// complement.
#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Adds a number, by a load and a store. Only the thread that owns the counter may call this: of two
    /// additions at the same time one would be lost.
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }
    /// The number as it is now; any thread may ask.
    pub(crate) fn load(&self) -> u64 {
        self.0.load(Relaxed)
    }
    /// CONFIG RESETSTAT. If the owner adds at the same moment, the counter may keep its former value.
    pub(crate) fn reset(&self) {
        self.0.store(0, Relaxed);
    }
}

/// What one worker counts of one command.
#[derive(Default)]
pub(crate) struct CommandCounts {
    pub(crate) calls: Count,
    /// How long its calls took, in ticks of the processor's counter.
    pub(crate) ticks: Count,
    /// How many calls were refused before they ran (arity, authentication).
    pub(crate) rejected: Count,
    /// How many calls ran and answered with an error.
    pub(crate) failed: Count,
    /// The calls by how long they took; made when the first call is tracked (`latency-tracking`).
    histogram: OnceLock<Box<Histogram>>,
}

impl CommandCounts {
    /// Counts a call that took so many ticks, in the histogram too if calls are tracked; the scale turns
    /// ticks into the histogram's units. Only the owner calls this.
    #[inline]
    pub(crate) fn count(&self, ticks: u64, tracked: Option<Scale>) {
        self.calls.add(1);
        self.ticks.add(ticks);
        if let Some(scale) = tracked {
            self.histogram.get_or_init(|| Box::new(Histogram::new())).record(scale.units(ticks));
        }
    }

    /// A call that was counted with `before` ticks took `now` in the end, because its reply was written piece
    /// by piece. Only its place in the histogram is changed here.
    pub(crate) fn correct(&self, (before, now): (u64, u64), tracked: Option<Scale>) {
        if let (Some(scale), Some(histogram)) = (tracked, self.histogram.get()) {
            histogram.correct(scale.units(before), scale.units(now));
        }
    }

    fn reset(&self) {
        for count in [&self.calls, &self.ticks, &self.rejected, &self.failed] {
            count.reset();
        }
        if let Some(histogram) = self.histogram.get() {
            histogram.reset();
        }
    }
}

/// What all workers have counted of one command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandSum {
    pub(crate) calls: u64,
    pub(crate) time_ns: u64,
    pub(crate) rejected: u64,
    pub(crate) failed: u64,
}

/// What one worker counts. Aligned, so that no two workers write to one cache line.
#[repr(align(128))]
pub(crate) struct Counters {
    /// By `Row::number`.
    pub(crate) commands: Box<[CommandCounts]>,
    pub(crate) bytes_in: Count,
    pub(crate) bytes_out: Count,
    /// Memory for unfinished requests and unread replies of all its clients; it goes up and down.
    pub(crate) client_bytes: Count,
    /// Memory for what its clients have beside buffers, which `maxmemory` counts: what they have queued since
    /// MULTI, keys that they watch or wait for, subscriptions, prefixes, names. It goes up and down.
    pub(crate) state_bytes: Count,
    /// The largest of the buffers since somebody took them: 0 is put in their place ten times a second.
    pub(crate) input_peak: AtomicU64,
    pub(crate) output_peak: AtomicU64,
    /// Memory into which batches are received, parsed and answered.
    pub(crate) batch_bytes: AtomicU64,
    /// Memory that the worker's engine keeps for what is sent next.
    pub(crate) spare_bytes: Arc<AtomicUsize>,
    /// Memory of the interpreter of scripts.
    pub(crate) interpreter_bytes: AtomicU64,
    /// The same for its interpreter of functions.
    pub(crate) functions_bytes: AtomicU64,
    /// The client whose turn it is or was last, for a crash report; noted once a turn.
    pub(crate) serving: AtomicU64,
    /// Receives that brought something, and times that replies were handed on to be sent.
    pub(crate) reads: Count,
    pub(crate) writes: Count,
    /// Turns of the event loop, and the ticks that they took without the time that they waited for events.
    pub(crate) turns: Count,
    pub(crate) turn_ticks: Count,
    /// Clients whose command waits until a certain time.
    pub(crate) timed_waits: AtomicU64,
    /// How long it took to remove keys past their deadlines, and how often that stopped before it was done.
    pub(crate) expire_ns: Count,
    pub(crate) expire_stops: Count,
    /// Replies that were errors, by their code ("ERR", "WRONGTYPE").
    errors: Mutex<BTreeMap<String, u64>>,
}

/// Each worker counts this many codes apart and all others as one, so that a client cannot fill the memory
/// with codes.
const CODES_MAX: usize = 128;
/// A first word that is longer is no code.
const CODE_BYTES_MAX: usize = 30;

/// The code of an error: its first word, if that is short and something follows, else ERR, as in Redis.
/// Scripts write errors as they like, so what would end a line of INFO or part it is replaced.
fn code_of(text: &[u8]) -> Cow<'_, str> {
    let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let end = text.iter().rposition(|byte| !is_line_end(byte)).map_or(0, |last| last + 1);
    let word_end = text[..end].iter().position(|byte| *byte == b' ' || is_line_end(byte));
    let Some(word_end) = word_end.filter(|end| *end <= CODE_BYTES_MAX) else { return "ERR".into() };
    let code = String::from_utf8_lossy(&text[..word_end]);
    if code.contains(['#', ':']) { code.replace(['#', ':'], "_").into() } else { code }
}

impl Counters {
    /// All zero, for `rows` commands.
    pub(crate) fn new(rows: usize) -> Counters {
        Counters {
            commands: (0..rows).map(|_| CommandCounts::default()).collect(),
            bytes_in: Count::default(),
            bytes_out: Count::default(),
            client_bytes: Count::default(),
            state_bytes: Count::default(),
            input_peak: AtomicU64::new(0),
            output_peak: AtomicU64::new(0),
            batch_bytes: AtomicU64::new(0),
            spare_bytes: Arc::default(),
            interpreter_bytes: AtomicU64::new(0),
            functions_bytes: AtomicU64::new(0),
            serving: AtomicU64::new(0),
            reads: Count::default(),
            writes: Count::default(),
            turns: Count::default(),
            turn_ticks: Count::default(),
            timed_waits: AtomicU64::new(0),
            expire_ns: Count::default(),
            expire_stops: Count::default(),
            errors: Mutex::default(),
        }
    }

    /// Counts an error reply by its code. `text` is the error without the leading `-`. It takes a lock, which
    /// only whoever asks for INFO shares.
    pub(crate) fn count_error(&self, text: &[u8]) {
        let code = &*code_of(text);
        let mut errors = self.errors();
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
            return;
        }
        let code = if errors.len() < CODES_MAX { code } else { "OTHER" };
        *errors.entry(code.to_owned()).or_default() += 1;
    }

    fn errors(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reset(&self) {
        self.commands.iter().for_each(CommandCounts::reset);
        let counts = [&self.bytes_in, &self.bytes_out, &self.reads, &self.writes, &self.turns];
        counts
            .into_iter()
            .chain([&self.turn_ticks, &self.expire_ns, &self.expire_stops])
            .for_each(Count::reset);
        self.errors().clear();
    }
}

/// The counters of all workers, by worker. Sums are made when somebody asks.
pub(crate) struct AllCounters(pub(crate) Box<[Counters]>);

impl AllCounters {
    /// For so many threads that run commands, and so many commands.
    pub(crate) fn new(executors: usize, rows: usize) -> AllCounters {
        AllCounters((0..executors).map(|_| Counters::new(rows)).collect())
    }

    /// The same; what each worker's engine keeps for what is sent next is found there.
    pub(crate) fn with_spare(mut self, spare: impl Iterator<Item = Arc<AtomicUsize>>) -> AllCounters {
        self.0.iter_mut().zip(spare).for_each(|(counters, bytes)| counters.spare_bytes = bytes);
        self
    }

    /// What all workers have counted of the command with this `Row::number`.
    pub(crate) fn command(&self, number: usize) -> CommandSum {
        let (mut sum, mut ticks) = (CommandSum::default(), 0);
        for c in self.0.iter().map(|w| &w.commands[number]) {
            sum.calls += c.calls.load();
            ticks += c.ticks.load();
            sum.rejected += c.rejected.load();
            sum.failed += c.failed.load();
        }
        CommandSum { time_ns: Meter::new().ns(ticks), ..sum }
    }

    /// How long the calls of a command took; None if no call was tracked.
    pub(crate) fn latencies(&self, number: usize) -> Option<Latencies> {
        let mut all = Latencies::new();
        for c in self.0.iter().map(|w| &w.commands[number]) {
            if let Some(histogram) = c.histogram.get() {
                all.add(histogram);
            }
        }
        (all.calls() > 0).then_some(all)
    }

    /// All calls of all commands: total_commands_processed.
    pub(crate) fn commands(&self) -> u64 {
        self.0.iter().flat_map(|w| &w.commands).map(|c| c.calls.load()).sum()
    }

    /// One of the counters, over all workers. What a client takes may be added by one of them and taken away
    /// by another, so that one of them alone may be below zero.
    pub(crate) fn sum(&self, of: fn(&Counters) -> &Count) -> u64 {
        self.0.iter().map(|worker| of(worker).load()).fold(0, u64::wrapping_add)
    }

    /// How long all commands took together.
    pub(crate) fn command_time_ns(&self) -> u64 {
        let ticks = self.0.iter().flat_map(|w| &w.commands).map(|c| c.ticks.load()).sum();
        Meter::new().ns(ticks)
    }

    /// How long the turns of all event loops took together.
    pub(crate) fn turn_time_ns(&self) -> u64 {
        Meter::new().ns(self.sum(|worker| &worker.turn_ticks))
    }

    /// total_net_input_bytes
    pub(crate) fn bytes_in(&self) -> u64 {
        self.sum(|worker| &worker.bytes_in)
    }

    /// total_net_output_bytes
    pub(crate) fn bytes_out(&self) -> u64 {
        self.sum(|worker| &worker.bytes_out)
    }

    /// Memory in buffers of clients and of event loops, which `maxmemory` does not count.
    pub(crate) fn buffer_bytes(&self) -> u64 {
        let bytes_of = |counters: &Counters| {
            let loops = counters.batch_bytes.load(Relaxed) + counters.spare_bytes.load(Relaxed) as u64;
            counters.client_bytes.load().wrapping_add(loops)
        };
        self.0.iter().map(bytes_of).fold(0, u64::wrapping_add)
    }

    /// Error replies by code, for INFO errorstats; the sum of the counts is total_error_replies.
    pub(crate) fn errors(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for worker in &self.0 {
            for (code, count) in worker.errors().iter() {
                *all.entry(code.clone()).or_default() += count;
            }
        }
        all
    }

    /// CONFIG RESETSTAT
    pub(crate) fn reset(&self) {
        self.0.iter().for_each(Counters::reset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_replies_are_counted_by_code_over_all_workers() {
        let all = AllCounters([Counters::new(1), Counters::new(1)].into());
        all.0[0].count_error(b"ERR syntax error");
        all.0[1].count_error(b"ERR unknown command");
        all.0[1].count_error(b"WRONGTYPE no");
        assert_eq!(
            all.errors().into_iter().collect::<Vec<_>>(),
            [("ERR".into(), 2), ("WRONGTYPE".into(), 1)]
        );
        all.reset();
        assert!(all.errors().is_empty());
    }

    #[test]
    fn what_one_worker_has_added_another_may_take_away() {
        let all = AllCounters([Counters::new(1), Counters::new(1)].into());
        all.0[0].client_bytes.add(8);
        all.0[1].client_bytes.add(5_u64.wrapping_neg());
        assert_eq!((all.sum(|worker| &worker.client_bytes), all.buffer_bytes()), (3, 3));
    }

    #[test]
    fn the_code_of_an_error_is_one_short_word_before_others_whatever_a_script_writes() {
        let long = "x".repeat(CODE_BYTES_MAX);
        for (text, code) in [
            ("MINE x", "MINE"),
            ("MINE\r\nx", "MINE"),
            ("MINE", "ERR"),
            ("MINE\r\n", "ERR"),
            ("", "ERR"),
            ("\r\nfake:1 x\r\n", ""),
            (" x", ""),
            ("a:b#c x", "a_b_c"),
            (&format!("{long} x"), &long),
            (&format!("{long}x x"), "ERR"),
        ] {
            assert_eq!(code_of(text.as_bytes()), code, "{text:?}");
        }
    }

    fn tracked() -> Option<Scale> {
        Some(Meter::new().scale(crate::state::histogram::UNIT_NS))
    }

    #[test]
    fn calls_and_their_times_are_summed_over_all_workers() {
        let all = AllCounters([Counters::new(1), Counters::new(1)].into());
        all.0[0].commands[0].count(200, tracked());
        all.0[1].commands[0].count(300, tracked());
        let time_ns = Meter::new().ns(500);
        assert_eq!(all.command(0), CommandSum { calls: 2, time_ns, rejected: 0, failed: 0 });
        assert_eq!(all.latencies(0).unwrap().calls(), 2);
    }

    #[test]
    fn what_is_not_tracked_is_no_latency() {
        let all = AllCounters([Counters::new(1), Counters::new(1)].into());
        all.0[0].commands[0].count(100, None);
        all.0[1].commands[0].count(100, tracked());
        assert_eq!(all.latencies(0).unwrap().calls(), 1);
        all.reset();
        assert!(all.latencies(0).is_none());
        all.0[0].commands[0].count(100, None);
        assert!(all.latencies(0).is_none());
    }

    #[test]
    fn codes_beyond_the_limit_are_counted_together() {
        let counters = Counters::new(0);
        for i in 0..CODES_MAX + 5 {
            counters.count_error(format!("E{i} x").as_bytes());
        }
        assert_eq!(counters.errors().get("OTHER"), Some(&5));
    }
}
