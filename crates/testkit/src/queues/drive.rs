//! One run: starts the processes, takes what they say, kills where the seed says so, and looks at every job
//! when the queue has done them all.
//!
//! A worker is killed some milliseconds after it has said that it holds a job for that, so every run has jobs
//! in the hands of the killed. Other processes, the adder too, are killed when so many jobs have begun, in
//! whatever they are doing.
use super::book::Book;
use super::process::{Line, Process};
use super::program::{Program, Role, Task};
use super::replay::{COUNT_COMPLETED, Calls, MARK, listen};
use super::server::Server;
use super::{Caution, Options, Report, now};
use crate::scratch::Scratch;
use base::random::Random;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

const MOMENT: Duration = Duration::from_millis(50);
/// How often the queue is asked how far it is.
const ASK_EVERY: Duration = Duration::from_millis(250);
/// How long nothing moves before somebody does something about it, and at most.
const NUDGED_AFTER: Duration = Duration::from_secs(3);
const NUDGED_AFTER_MAX: Duration = Duration::from_secs(30);
/// A run in which nothing moves for so long has failed.
const PATIENCE: Duration = Duration::from_secs(300);
/// A worker that holds a job is killed within so many milliseconds.
const HELD_MS_MAX: u64 = 30;
/// No unit is held: there are fewer.
const NEVER: u64 = u32::MAX as u64;
const NOTES_MAX: usize = 10;

/// Runs it; what it came to, or what is wrong.
pub fn run(options: &Options) -> Result<Report, String> {
    let mut run = Run::start(options)?;
    let told = run.launch_workers().and_then(|()| run.play()).and_then(|()| run.account());
    told.map_err(|error| run.explain(&error))
}

/// Runs it with nobody killed, the workers started when everything is added. The server's processor time for
/// adding and for the rest, in microseconds a job.
pub(super) fn run_in_phases(options: &Options) -> Result<[f64; 2], String> {
    let mut run = Run::start(options)?;
    let told = run.measure_phases();
    told.map_err(|error| run.explain(&error))
}

/// Runs it likewise; the calls of scripts of both phases, and how many jobs were completed.
#[allow(clippy::disallowed_methods, reason = "somebody listens while the queue runs")]
pub(super) fn record_phases(options: &Options) -> Result<(Calls, String), String> {
    let server = Server::start(&options.server, false)?;
    let broken = |error: std::io::Error| format!("who listens to the server: {error}");
    let mut monitor = server.connect().map_err(broken)?;
    monitor.call(&["MONITOR"]).map_err(broken)?;
    let listener = std::thread::spawn(move || listen(monitor));
    let mut run = Run::on(server, options)?;
    let told = run.play_marked();
    told.map_err(|error| run.explain(&error))?;
    let completed = run.server.ask(&COUNT_COMPLETED)?;
    let calls = listener.join().map_err(|_| "who listens to the server panicked".to_owned())?;
    Ok((calls.map_err(broken)?, completed))
}

struct Run<'o> {
    options: &'o Options,
    server: Server,
    folder: Scratch,
    book: Book,
    processes: BTreeMap<usize, Process>,
    started: usize,
    lines: (Sender<Line>, Receiver<Line>),
    chance: Random,
    begun_at: Instant,
    moved_at: Instant,
    /// How many jobs have begun where somebody is killed, and how many are added where the server is; both in
    /// descending order.
    kill_points: Vec<u64>,
    crash_points: Vec<u64>,
    /// Workers that hold a job, and when they are killed for it.
    doomed: Vec<(Instant, usize)>,
    /// A worker was killed because nothing moves. asynq looks for tasks without an owner every minute, and
    /// when a worker begins; one that had just been handed out is in nobody's hands as far as the book knows.
    /// A worker of Celery may take nothing more after it had lost its server, until somebody starts it anew.
    is_nudged: bool,
    nudged_at: Instant,
    /// How long nothing may move before the next is killed for it.
    patience: Duration,
    /// Jobs that Celery has dropped.
    dropped: u64,
    /// Of workers, adders and the server.
    kills: [u64; 3],
    is_paused: bool,
    is_all_added: bool,
    is_accounted: bool,
    status: Status,
    notes: Vec<String>,
}

/// What the queue has said last.
#[derive(Default)]
struct Status {
    is_asked: bool,
    done: u64,
    left: u64,
    text: String,
    /// It was said when everything had been added and nobody was missing.
    is_last: bool,
}

impl Run<'_> {
    fn start(options: &Options) -> Result<Run<'_>, String> {
        Run::on(Server::start(&options.server, options.crashes > 0)?, options)
    }

    fn on(server: Server, options: &Options) -> Result<Run<'_>, String> {
        let folder = Scratch::new("queues").map_err(|error| format!("a folder for the run: {error}"))?;
        options.program.prepare(folder.path())?;
        let mut chance = Random::new(options.seed);
        let mut points = |count: u64| {
            let mut points: Vec<u64> = (0..count).map(|_| chance.below(options.jobs.max(1))).collect();
            points.sort_unstable_by(|a, b| b.cmp(a));
            points
        };
        let (kill_points, crash_points) = (points(options.kills / 2), points(options.crashes));
        let mut run = Run {
            options,
            server,
            folder,
            book: Book::default(),
            processes: BTreeMap::new(),
            started: 0,
            lines: channel(),
            chance,
            begun_at: now(),
            moved_at: now(),
            kill_points,
            crash_points,
            doomed: Vec::new(),
            is_nudged: false,
            nudged_at: now(),
            patience: if options.is_hasty { NUDGED_AFTER } else { NUDGED_AFTER * 5 },
            dropped: 0,
            kills: [0; 3],
            is_paused: false,
            is_all_added: false,
            is_accounted: false,
            status: Status::default(),
            notes: Vec::new(),
        };
        run.launch(Role::Watch)?;
        run.launch(Role::Add)?;
        Ok(run)
    }

    fn launch_workers(&mut self) -> Result<(), String> {
        (0..self.options.workers).try_for_each(|_| self.launch(Role::Work))
    }

    fn launch(&mut self, role: Role) -> Result<(), String> {
        let Options { program, seed, jobs, kills, is_hasty, .. } = *self.options;
        let (next, done) = self.book.position();
        let hold = jobs.checked_div(kills).map_or(NEVER, |hold| hold.max(1));
        let (server, folder) = (&self.server, self.folder.path());
        let task = Task { program, server, seed, jobs, is_hasty, hold, folder };
        let (command, number) = (task.command(role, next, &done), self.started);
        let process = Process::start(command, role, number, self.lines.0.clone(), self.folder.path());
        let process = process.map_err(|error| format!("a process of {}: {error}", program.name()))?;
        self.started += 1;
        self.processes.insert(number, process);
        Ok(())
    }

    /// Until everything was added and is done.
    fn play(&mut self) -> Result<(), String> {
        let mut asked = now();
        while !self.is_finished() {
            self.take_for(MOMENT)?;
            self.harm()?;
            if now().duration_since(asked) >= ASK_EVERY && !self.status.is_asked {
                self.status.is_asked = true;
                self.tell(Role::Watch, "status");
                asked = now();
            }
            if now().duration_since(self.moved_at) > PATIENCE {
                return Err(format!("nothing moves: {}", self.status.text));
            }
        }
        Ok(())
    }

    /// Until everything was added, by nobody but who adds.
    fn play_adding(&mut self) -> Result<(), String> {
        while !self.is_all_added {
            self.take_for(MOMENT)?;
        }
        Ok(())
    }

    /// Until everything is done.
    fn play_working(&mut self) -> Result<(), String> {
        self.launch_workers()?;
        self.play()
    }

    /// Tells who listens to the server when a phase has ended.
    fn play_marked(&mut self) -> Result<(), String> {
        self.play_adding()?;
        self.server.ask(&MARK)?;
        self.play_working()?;
        self.server.ask(&MARK).map(drop)
    }

    fn measure_phases(&mut self) -> Result<[f64; 2], String> {
        let before_us = self.server.cpu_us();
        self.play_adding()?;
        let added_us = self.server.cpu_us();
        self.play_working()?;
        let done_us = self.server.cpu_us();
        let jobs = self.account()?.jobs as f64;
        Ok([(added_us - before_us) / jobs, (done_us - added_us) / jobs])
    }

    fn is_finished(&self) -> bool {
        let Status { is_last, left, done, .. } = self.status;
        is_last && left == 0 && done >= self.book.added()
    }

    /// Takes what was said, and waits for it so long.
    fn take_for(&mut self, wait: Duration) -> Result<(), String> {
        match self.lines.1.recv_timeout(wait) {
            Ok(line) => self.take(line),
            Err(RecvTimeoutError::Timeout) => self.server.check(),
            Err(RecvTimeoutError::Disconnected) => Err("nobody speaks any more".to_owned()),
        }
    }

    /// Takes what has been said already.
    fn take_all(&mut self) -> Result<(), String> {
        while let Ok(line) = self.lines.1.try_recv() {
            self.take(line)?;
        }
        Ok(())
    }

    fn take(&mut self, line: Line) -> Result<(), String> {
        let Some(text) = line.text else { return self.ended(line.from) };
        let at = now();
        let mut words = text.split(' ');
        match words.next().unwrap_or_default() {
            "status" => return self.take_status(&text),
            "paused" => self.is_paused = true,
            "all" => self.is_all_added = true,
            "revived" => return self.launch(Role::Work),
            "resent" => {}
            "accounted" if self.is_finished() => self.is_accounted = true,
            "accounted" => return self.resend(),
            "note" => {
                self.notes.push(text);
                let beyond = self.notes.len().saturating_sub(NOTES_MAX);
                self.notes.drain(..beyond);
            }
            word => {
                // What the queue tells of a job is no progress.
                if word != "job" {
                    self.moved_at = at;
                }
                if !self.book.take(line.from, &text, at) {
                    self.book.complain(format!("a process says {text:?}"));
                }
                if text.starts_with("begin ") && text.ends_with(" hold") {
                    let wait = Duration::from_millis(self.chance.below(HELD_MS_MAX));
                    self.doomed.push((at + wait, line.from));
                }
            }
        }
        Ok(())
    }

    fn take_status(&mut self, text: &str) -> Result<(), String> {
        let mut numbers = text.split(' ').skip(1).map(|word| word.parse::<u64>());
        let mut number = || numbers.next().and_then(Result::ok);
        let (Some(done), Some(left), Some(failed)) = (number(), number(), number()) else {
            return Err(format!("a watcher says {text:?}"));
        };
        if (done, left) != (self.status.done, self.status.left) {
            self.moved_at = now();
        }
        match self.options.program {
            Program::Asynq if self.options.is_hasty && left > 0 => self.nudge(),
            Program::Celery if self.options.crashes > 0 && left > 0 => self.nudge(),
            Program::Celery if self.is_all_added && left == 0 && done < self.book.added() => {
                self.look_for_dropped();
            }
            _ => {}
        }
        let is_last = self.is_all_added && self.crash_points.is_empty();
        self.status = Status { is_asked: false, done, left, text: text.to_owned(), is_last };
        // A task of Celery may fail because its server was away; it is sent again as one that was dropped.
        let may_fail = self.options.program == Program::Celery && self.options.crashes > 0;
        if failed == 0 || may_fail { Ok(()) } else { Err(format!("jobs have failed: {text}")) }
    }

    /// Asks Celery which jobs it has completed, where it has none left and that are not all.
    fn look_for_dropped(&mut self) {
        let since = now().duration_since(self.moved_at.max(self.nudged_at));
        if since > NUDGED_AFTER {
            self.nudged_at = now();
            self.tell(Role::Watch, "account");
        }
    }

    /// Sends jobs again that Celery has dropped: it takes a message off the queue in one step and notes it as
    /// unacknowledged in the next. One for each worker that was killed, or lost its server, may be between.
    fn resend(&mut self) -> Result<(), String> {
        let lost = self.book.missing();
        if lost.is_empty() {
            return Ok(());
        }
        let [workers, _, servers] = self.kills;
        self.dropped += lost.len() as u64;
        if self.dropped > workers + servers * self.options.workers as u64 {
            return Err(format!("jobs are lost: {}", lost.join(" ")));
        }
        self.book.excuse(&lost.iter().cloned().collect());
        self.tell(Role::Add, &format!("resend {}", lost.join(" ")));
        Ok(())
    }

    /// Kills the oldest worker where nothing has moved for a while, and waits longer before the next: one
    /// that begins on a slow machine must come to its work.
    fn nudge(&mut self) {
        let since = now().duration_since(self.moved_at.max(self.nudged_at));
        let mut workers = self.processes.iter().filter(|(_, process)| process.role == Role::Work);
        let oldest = workers.find(|(_, process)| !process.is_killed).map(|(number, _)| *number);
        if let Some(number) = oldest.filter(|_| since > self.patience) {
            self.is_nudged = true;
            self.nudged_at = now();
            self.patience = (self.patience * 2).min(NUDGED_AFTER_MAX);
            self.kill(number);
        }
    }

    /// A process has ended, and everything that it had said was taken.
    fn ended(&mut self, number: usize) -> Result<(), String> {
        let Some(mut process) = self.processes.remove(&number) else { return Ok(()) };
        let (role, was_killed) = (process.role, process.is_killed);
        if !was_killed {
            process.kill();
            return Err(format!("a process ended by itself, {role:?}: {}", process.complaints()));
        }
        let hand = self.book.bury(number);
        if role == Role::Work && self.options.is_hasty {
            // Its successor looks for what has no owner when it begins, so it begins when the leases are
            // gone.
            let ids = if std::mem::take(&mut self.is_nudged) {
                "*".to_owned()
            } else {
                Vec::from_iter(hand).join(" ")
            };
            self.tell(Role::Watch, &format!("revive {ids}"));
            return Ok(());
        }
        self.launch(role)
    }

    fn tell(&mut self, role: Role, word: &str) {
        let its = self.processes.values_mut().filter(|process| process.role == role && !process.is_killed);
        its.for_each(|process| process.tell(word));
    }

    fn kill(&mut self, number: usize) {
        let Some(process) = self.processes.get_mut(&number).filter(|process| !process.is_killed) else {
            return;
        };
        process.kill();
        self.kills[usize::from(process.role == Role::Add)] += 1;
    }

    /// Kills somebody, or the server, where a point is reached.
    fn harm(&mut self) -> Result<(), String> {
        let due = |(when, _): &(Instant, usize)| *when <= now();
        while let Some(at) = self.doomed.iter().position(due) {
            let (_, number) = self.doomed.swap_remove(at);
            self.kill(number);
        }
        if self.kill_points.last().is_some_and(|point| self.book.begun >= *point) {
            self.kill_points.pop();
            let living = self.processes.iter().filter(|(_, process)| !process.is_killed);
            let candidates: Vec<usize> = living
                .filter(|(_, process)| process.role != Role::Watch)
                .map(|(number, _)| *number)
                .collect();
            if !candidates.is_empty() {
                let which = self.chance.below(candidates.len() as u64) as usize;
                self.kill(candidates[which]);
            }
        }
        if self.crash_points.last().is_some_and(|point| self.book.added() >= *point) {
            self.crash_points.pop();
            self.crash_server()?;
        }
        Ok(())
    }

    /// Lets nothing be added until the server has certainly kept what was, kills it and starts it again.
    fn crash_server(&mut self) -> Result<(), String> {
        self.is_paused = false;
        self.tell(Role::Add, "pause");
        let patience = now() + PATIENCE;
        while !self.is_paused && !self.is_all_added {
            self.take_for(MOMENT)?;
            if now() > patience {
                return Err("an adder does not pause".to_owned());
            }
            // One that was killed before it could hear of it has a successor, who has not been told.
            self.tell(Role::Add, "pause");
        }
        match self.options.caution {
            Caution::Ask => self.server.wait_for_disk()?,
            Caution::Wait(wait) => {
                let end = now() + wait;
                while now() < end {
                    self.take_for(MOMENT.min(end.saturating_duration_since(now())))?;
                }
            }
        }
        self.server.kill();
        // What was said before is in the book before it is excused.
        self.take_all()?;
        self.book.server_died(now());
        self.server.launch_again()?;
        self.kills[2] += 1;
        self.status.is_asked = false;
        self.tell(Role::Add, "go");
        Ok(())
    }

    /// Asks the queue for every job, and closes the book.
    fn account(&mut self) -> Result<Report, String> {
        let (seconds, cpu_us) = (now().duration_since(self.begun_at).as_secs_f64(), self.server.cpu_us());
        self.tell(Role::Watch, "account");
        let patience = now() + PATIENCE;
        while !self.is_accounted {
            self.take_for(MOMENT)?;
            if now() > patience {
                return Err("the watcher does not tell of the jobs".to_owned());
            }
        }
        let report = self.book.close(self.options.jobs)?;
        let [worker_kills, adder_kills, server_kills] = self.kills;
        if self.options.kills > 0 && report.in_hand == 0 {
            return Err("nobody was killed in his work".to_owned());
        }
        let cpu_us_per_job = cpu_us / report.jobs as f64;
        let dropped = self.dropped;
        Ok(Report { dropped, worker_kills, adder_kills, server_kills, seconds, cpu_us_per_job, ..report })
    }

    /// What somebody needs who has to find out why it failed.
    fn explain(&self, error: &str) -> String {
        let Options { program, name, jobs, seed, .. } = self.options;
        let mut text = format!("{} on {name}, {jobs} jobs, seed {seed}: {error}", program.name());
        if let Some(complaints) = self.book.complaints().filter(|complaints| !error.contains(complaints)) {
            text.push_str(&format!("\n{complaints}"));
        }
        text.push_str(&format!("\nkilled: {:?}; {}; {:?}", self.kills, self.status.text, self.notes));
        for process in self.processes.values() {
            text.push_str(&format!("\n{:?}: {}", process.role, process.complaints()));
        }
        text.push_str(&format!("\nthe server's log ends with\n{}", self.server.log()));
        text
    }
}
