//! The book: what every process has said of every job, which jobs were in whose hands when somebody was
//! killed, and what the queue itself says in the end.
//!
//! A job may have one effect (`done`), and one more each time that it was in somebody's hands when he was
//! killed: a worker before the queue had noted the end of the job, or the server with a note that was not on
//! its disk yet. The queue completes a job once, whatever happens to workers and server.
use super::Report;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

/// What a server may forget of a job's end when it is killed: `everysec` promises a second or two, and a
/// sync may take long where the disk is slow.
const FORGOTTEN: Duration = Duration::from_secs(10);
/// A job that is begun so soon after may have been handed out before the server was killed, which has
/// forgotten it.
const AFTERMATH: Duration = Duration::from_secs(5);
/// How many complaints are shown.
const SHOWN: usize = 20;

#[derive(Default)]
struct Job {
    begun: u64,
    failed: u64,
    done: u64,
    /// How often it was in the hands of a process or server that was killed, or added twice.
    excuses: u64,
    /// What the queue says in the end: how often it has completed the job, and handed it out again.
    completed: u64,
    repeats: u64,
}

#[derive(Default)]
pub(super) struct Book {
    jobs: BTreeMap<String, Job>,
    /// Units that are in the queue, as the library has said.
    units: BTreeSet<u64>,
    /// Of each worker: the jobs that it was handed and whose end the queue has not noted.
    hands: BTreeMap<usize, BTreeSet<String>>,
    /// Jobs whose end was noted lately.
    kept: VecDeque<(Instant, String)>,
    complaints: Vec<String>,
    died_at: Option<Instant>,
    in_hand: u64,
    pub(super) begun: u64,
}

impl Book {
    /// Jobs that are in the queue.
    pub(super) fn added(&self) -> u64 {
        self.jobs.len() as u64
    }

    pub(super) fn complain(&mut self, text: String) {
        self.complaints.push(text);
    }

    /// Takes a line of a process; false where it is none of the book's.
    pub(super) fn take(&mut self, from: usize, text: &str, at: Instant) -> bool {
        let mut words = text.split(' ');
        let (word, id) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match word {
            "added" => {
                match id.parse() {
                    Ok(unit) => drop(self.units.insert(unit)),
                    Err(_) => self.complain(format!("an adder says {text:?}")),
                }
                words.for_each(|id| {
                    self.job(id);
                });
            }
            "again" => self.job(id).excuses += 1,
            "begin" => {
                self.begun += 1;
                let is_shaky = self.died_at.is_some_and(|died| at.duration_since(died) < AFTERMATH);
                let job = self.job(id);
                job.begun += 1;
                job.excuses += u64::from(is_shaky);
                self.hands.entry(from).or_default().insert(id.to_owned());
            }
            "taken" => drop(self.hands.entry(from).or_default().insert(id.to_owned())),
            "fail" => self.job(id).failed += 1,
            "done" => self.job(id).done += 1,
            "kept" => self.keep(from, id, at),
            "wrong" => self.complain(text.to_owned()),
            "job" => {
                let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
                let (completed, repeats) = (number(), number());
                if !self.jobs.contains_key(id) {
                    self.complain(format!("the queue knows {id}, which nobody has added"));
                }
                let job = self.job(id);
                (job.completed, job.repeats) = (completed, repeats);
            }
            _ => return false,
        }
        true
    }

    fn job(&mut self, id: &str) -> &mut Job {
        self.jobs.entry(id.to_owned()).or_default()
    }

    fn keep(&mut self, from: usize, id: &str, at: Instant) {
        if let Some(hand) = self.hands.get_mut(&from) {
            hand.remove(id);
        }
        while self.kept.front().is_some_and(|(kept, _)| at.duration_since(*kept) > FORGOTTEN) {
            self.kept.pop_front();
        }
        self.kept.push_back((at, id.to_owned()));
    }

    /// A worker is dead and everything that it has said is in the book: what it had in hand.
    pub(super) fn bury(&mut self, worker: usize) -> BTreeSet<String> {
        let hand = self.hands.remove(&worker).unwrap_or_default();
        self.in_hand += hand.len() as u64;
        self.excuse(&hand);
        hand
    }

    /// The server was killed: what workers have in hand, and what it has noted lately, may be handed out
    /// again.
    pub(super) fn server_died(&mut self, at: Instant) {
        self.died_at = Some(at);
        let in_hand: BTreeSet<String> = self.hands.values().flatten().cloned().collect();
        self.in_hand += in_hand.len() as u64;
        let noted: BTreeSet<String> = self.kept.iter().map(|(_, id)| id.clone()).collect();
        self.excuse(&in_hand.union(&noted).cloned().collect());
    }

    /// Each of these may have one more effect, and so may what comes after it in its unit.
    pub(super) fn excuse(&mut self, ids: &BTreeSet<String>) {
        for id in ids {
            self.job(id).excuses += 1;
            let parent = id.split_once('-').map(|(unit, _)| self.jobs.get_mut(unit));
            if let Some(Some(parent)) = parent {
                parent.excuses += 1;
            }
        }
    }

    /// Jobs that the queue has not completed as far as it has told, but for those that wait for another of
    /// them.
    pub(super) fn missing(&self) -> Vec<String> {
        let missing: BTreeSet<&String> =
            self.jobs.iter().filter(|(_, job)| job.completed == 0).map(|(id, _)| id).collect();
        let waits = |id: &str| {
            missing.iter().any(|other| other.strip_prefix(id).is_some_and(|rest| rest.starts_with('-')))
        };
        missing.iter().filter(|id| !waits(id)).map(|id| id.to_string()).collect()
    }

    /// The first unit that an adder has not acknowledged, and those behind it that it has.
    pub(super) fn position(&self) -> (u64, Vec<u64>) {
        let next = (0..).find(|unit| !self.units.contains(unit)).unwrap_or(0);
        (next, self.units.range(next..).copied().collect())
    }

    /// What is wrong so far, as one text.
    pub(super) fn complaints(&self) -> Option<String> {
        let shown = self.complaints.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n");
        let more = self.complaints.len().saturating_sub(SHOWN);
        match (self.complaints.len(), more) {
            (0, _) => None,
            (_, 0) => Some(shown),
            _ => Some(format!("{shown}\nand {more} more")),
        }
    }

    /// Looks at every job when the queue has told of all. The figures, or what is wrong.
    pub(super) fn close(&mut self, jobs: u64) -> Result<Report, String> {
        let mut report = Report { jobs: self.added(), in_hand: self.in_hand, ..Report::default() };
        let mut wrong = Vec::new();
        for (id, job) in &self.jobs {
            if job.completed != 1 {
                wrong.push(format!("{id} is completed {} times", job.completed));
            }
            if job.done == 0 {
                wrong.push(format!("{id} has no effect"));
            }
            let beyond = job.done.saturating_sub(1);
            if beyond <= job.excuses {
                report.explained += beyond;
            } else if beyond <= job.excuses + job.repeats {
                report.explained += job.excuses;
                report.silent += beyond - job.excuses;
            } else {
                let Job { begun, failed, done, excuses, repeats, .. } = job;
                wrong.push(format!(
                    "{id} has {done} effects: begun {begun} times, failed {failed}, in the hands of the killed \
                     {excuses}, handed out again {repeats}"
                ));
            }
        }
        if self.added() < jobs {
            wrong.push(format!("{} jobs were added, and not {jobs}", self.added()));
        }
        self.complaints.extend(wrong);
        self.complaints().map_or(Ok(report), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(lines: &[(usize, &str)]) -> Book {
        let mut book = Book::default();
        for (from, line) in lines {
            assert!(book.take(*from, line, super::super::now()), "{line}");
        }
        book
    }

    #[test]
    fn a_job_that_is_done_and_completed_once_is_right() {
        let lines = [(0, "added 0 a b"), (1, "begin a"), (1, "done a"), (1, "kept a"), (2, "begin b")];
        let mut right = book(&lines);
        right.take(2, "done b", super::super::now());
        for line in ["job a 1 0", "job b 1 0"] {
            right.take(3, line, super::super::now());
        }
        assert_eq!(right.close(2).map(|report| (report.jobs, report.explained)), Ok((2, 0)));
        assert!(right.close(3).is_err_and(|text| text.contains("2 jobs were added, and not 3")));
    }

    #[test]
    fn what_is_lost_or_completed_twice_is_told() {
        let lost = [(0, "added 0 a b"), (1, "begin a"), (1, "done a"), (1, "kept a"), (3, "job a 2 0")];
        let text = book(&lost).close(2).expect_err("b is lost and a completed twice");
        for part in ["a is completed 2 times", "b is completed 0 times", "b has no effect"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn an_effect_more_is_explained_by_a_kill_in_the_work_and_by_nothing_else() {
        let twice = [(0, "added 0 a"), (1, "begin a"), (1, "done a"), (2, "begin a"), (2, "done a")];
        let mut killed = book(&twice);
        killed.bury(1);
        killed.take(3, "job a 1 0", super::super::now());
        assert_eq!(killed.close(1).map(|report| (report.explained, report.in_hand)), Ok((1, 1)));
        let mut living = book(&twice);
        living.take(3, "job a 1 0", super::super::now());
        assert!(living.close(1).is_err_and(|text| text.starts_with("a has 2 effects")));
        let mut kept = book(&[(0, "added 0 a"), (1, "begin a"), (1, "done a"), (1, "kept a")]);
        kept.bury(1);
        kept.take(2, "done a", super::super::now());
        kept.take(3, "job a 1 0", super::super::now());
        assert!(kept.close(1).is_err(), "its end was noted before the worker was killed");
    }

    #[test]
    fn a_silent_worker_and_a_forgetful_server_are_told_apart() {
        let lines = [(0, "added 0 a"), (1, "begin a"), (1, "done a"), (1, "kept a"), (2, "begin a")];
        let mut silent = book(&lines);
        for line in ["done a", "job a 1 1"] {
            silent.take(2, line, super::super::now());
        }
        assert_eq!(silent.close(1).map(|report| (report.explained, report.silent)), Ok((0, 1)));
        let mut forgetful = book(&lines[..4]);
        forgetful.server_died(super::super::now());
        for line in ["done a", "job a 1 0"] {
            forgetful.take(2, line, super::super::now());
        }
        assert_eq!(forgetful.close(1).map(|report| (report.explained, report.silent)), Ok((1, 0)));
    }

    #[test]
    fn an_adder_begins_again_where_the_first_unit_is_missing() {
        let book = book(&[(0, "added 0 a"), (0, "added 1 b"), (0, "added 4 c"), (0, "added 3 d")]);
        assert_eq!(book.position(), (2, vec![3, 4]));
    }
}
