//! Says how far a long measurement is: a line when a step begins, with its number and about how much time is left.
use std::time::Duration;

pub(crate) struct Progress {
    steps: usize,
    done: usize,
    started_ms: u128,
}

impl Progress {
    pub(crate) fn new(steps: usize) -> Progress {
        Progress { steps, done: 0, started_ms: now_ms() }
    }

    /// A step begins.
    pub(crate) fn step(&mut self, what: &str) {
        let spent = Duration::from_millis((now_ms() - self.started_ms) as u64);
        eprintln!("[{}/{}] {what}{}", self.done + 1, self.steps, left(spent, self.done, self.steps));
        self.done += 1;
    }
}

/// ", about 3 min left", once enough is known to say so.
fn left(spent: Duration, done: usize, steps: usize) -> String {
    if done == 0 || spent.as_secs() < 5 {
        return String::new();
    }
    let seconds = spent.as_secs() * (steps.saturating_sub(done)) as u64 / done as u64;
    match seconds {
        0..90 => format!(", about {seconds} s left"),
        _ => format!(", about {} min left", seconds.div_ceil(60)),
    }
}

#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now_ms() -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_what_was_done() {
        assert_eq!(left(Duration::from_secs(60), 1, 3), ", about 2 min left");
        assert_eq!(left(Duration::from_secs(10), 5, 10), ", about 10 s left");
        assert_eq!(left(Duration::from_secs(1), 5, 10), "");
    }
}
