//! What a queue's scripts cost by themselves: BullMQ runs once while a client listens with MONITOR, and the
//! scripts that it called are then sent to several servers in that order, one and sixteen together, without
//! the library, its waiting and its thousand small packets.
//!
//! ```text
//! processes of BullMQ -> a server -> MONITOR: calls of scripts; adding up to a mark, working behind it
//!                        all servers in turns <- the same calls, from one connection
//! ```
//!
//! What other commands do in between is left out, but for what a queue notes of itself in a hash: the scripts
//! are given their times, and go by what scripts before them have written. Every job has to be completed on
//! each server, or the figures would be of something else.
use super::Options;
use super::cpu::median;
use super::drive::record_phases;
use super::server::Server;
use crate::resp_client::{RespClient, request};
use std::io;

/// So many are sent together.
const DEPTHS: [usize; 2] = [1, 16];
const PHASES: [&str; 2] = ["adding", "working"];
/// How many jobs the queue of `tests/queues/bullmq.mjs` has completed.
pub(super) const COUNT_COMPLETED: [&str; 2] = ["ZCARD", "bull:sardine:completed"];
/// Says to who listens that a phase has ended.
pub(super) const MARK: [&str; 2] = ["ECHO", "harness:end-of-phase"];

/// The calls of both phases, as they go over the wire.
pub(super) type Calls = [Vec<Vec<u8>>; 2];

/// Medians of what a call of a script costs, on one server.
#[derive(Clone, Debug)]
pub struct Scripts {
    pub phase: &'static str,
    pub depth: usize,
    /// In microseconds.
    pub cpu_us: f64,
    /// The first server's part of that, within rounds.
    pub share: f64,
}

/// Records them on the last of these servers and measures all; the figures of each.
pub fn replay(
    servers: &[(String, Vec<String>)],
    options: &Options,
    rounds: usize,
    mut tell: impl FnMut(&str),
) -> Result<Vec<(String, Vec<Scripts>)>, String> {
    let Some((name, words)) = servers.last() else { return Ok(Vec::new()) };
    let recorded_on = Options { server: words.clone(), kills: 0, crashes: 0, ..options.clone() };
    let (calls, completed) = record_phases(&recorded_on)?;
    let counts = calls.each_ref().map(Vec::len);
    tell(&format!("recorded on {name}: {} calls of scripts that add, {} that work", counts[0], counts[1]));
    let mut subjects =
        servers.iter().map(|(_, words)| Subject::start(words)).collect::<Result<Vec<_>, _>>()?;
    // The first round is not counted.
    for round in 0..=rounds {
        for (place, depth) in DEPTHS.into_iter().enumerate() {
            for (subject, (name, _)) in subjects.iter_mut().zip(servers) {
                let cpu_us = subject.play(&calls, depth, &completed);
                let cpu_us = cpu_us.map_err(|error| format!("{name}: {error}"))?;
                if round > 0 {
                    subject.cpu_us[place].push(cpu_us);
                }
            }
        }
    }
    let figures = subjects.iter().map(|subject| subject.figures(&subjects[0]));
    Ok(servers.iter().map(|(name, _)| name.clone()).zip(figures).collect())
}

/// A server that is measured.
struct Subject {
    server: Server,
    client: RespClient,
    /// By depth and round: of a call, in both phases.
    cpu_us: [Vec<[f64; 2]>; 2],
}

impl Subject {
    fn start(words: &[String]) -> Result<Subject, String> {
        let server = Server::start(words, false)?;
        let client = server.connect().map_err(|error| format!("a connection: {error}"))?;
        Ok(Subject { server, client, cpu_us: Default::default() })
    }

    fn play(&mut self, calls: &Calls, depth: usize, jobs: &str) -> Result<[f64; 2], String> {
        let broken = |error: io::Error| format!("a call of a script: {error}");
        for cleaner in [["FLUSHALL", "SYNC"], ["SCRIPT", "FLUSH"]] {
            self.client.call(&cleaner).map_err(broken)?;
        }
        let mut cpu_us = [0.0; 2];
        for (calls, cpu_us) in calls.iter().zip(&mut cpu_us) {
            let before_us = self.server.cpu_us();
            calls.chunks(depth).try_for_each(|together| self.send(together)).map_err(broken)?;
            *cpu_us = (self.server.cpu_us() - before_us) / calls.len().max(1) as f64;
        }
        let completed = self.client.call(&COUNT_COMPLETED).map_err(broken)?;
        match completed.text() == Some(jobs.as_bytes()) {
            true => Ok(cpu_us),
            false => Err(format!("{:?} of {jobs} jobs were completed", completed.lines())),
        }
    }

    fn send(&mut self, together: &[Vec<u8>]) -> io::Result<()> {
        self.client.send_bytes(&together.concat())?;
        together.iter().try_for_each(|_| self.client.receive().map(drop))
    }

    fn figures(&self, first: &Subject) -> Vec<Scripts> {
        let of = |place: usize, phase: usize| {
            let its: Vec<f64> = self.cpu_us[place].iter().map(|both| both[phase]).collect();
            let shares =
                first.cpu_us[place].iter().map(|both| both[phase]).zip(&its).map(|(one, it)| one / it);
            let share = median(&shares.collect::<Vec<_>>());
            Scripts { phase: PHASES[phase], depth: DEPTHS[place], cpu_us: median(&its), share }
        };
        (0..PHASES.len())
            .flat_map(|phase| (0..DEPTHS.len()).map(move |place| (place, phase)))
            .map(|(place, phase)| of(place, phase))
            .collect()
    }
}

/// Listens until two phases have ended.
pub(super) fn listen(mut monitor: RespClient) -> io::Result<Calls> {
    let (mut calls, mut phase) = (Calls::default(), 0);
    while let Some(its) = calls.get_mut(phase) {
        match words_of(monitor.receive()?.text().unwrap_or_default()) {
            Some(words) if words.iter().map(Vec::as_slice).eq(MARK.map(str::as_bytes)) => phase += 1,
            Some(words) if is_kept(&words) => its.push(request(&words)),
            _ => {}
        }
    }
    Ok(calls)
}

/// The words of a line of MONITOR, if a client has sent them: `1700000000.1 [0 127.0.0.1:5000] "GET" "k"`
fn words_of(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let end = line.windows(2).position(|pair| pair == b"] ")?;
    let (about, words) = line.split_at(end + 2);
    if about.ends_with(b" lua] ") { None } else { base::quotes::words(words) }
}

/// Scripts, and what a queue notes of itself.
fn is_kept(words: &[Vec<u8>]) -> bool {
    let is = |name: &&str| words.first().is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    ["EVAL", "EVALSHA", "HSET"].iter().any(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_monitor_gives_the_words_that_a_client_has_sent() {
        let line = br#"1700000000.123456 [0 127.0.0.1:5000] "EVALSHA" "ab]" "\x00\"\n" "x y""#;
        let words = words_of(line).unwrap();
        assert_eq!(words, [&b"EVALSHA"[..], b"ab]", b"\0\"\n", b"x y"]);
        assert!(is_kept(&words));
        assert_eq!(words_of(br#"1700000000.123456 [0 lua] "EVALSHA" "ab""#), None);
        assert_eq!(words_of(b"OK"), None);
        assert!(!is_kept(&[b"BZPOPMIN".to_vec()]));
    }
}
