//! `oom-score-adj`: how readily the kernel ends this process when memory runs out. More is more readily; the
//! process may always raise its own score, and lower it only with privileges.
use crate::state::config::{Config, OomScore};
use std::io;
use std::sync::OnceLock;

const FILE: &str = "/proc/self/oom_score_adj";

/// Gives the kernel the score that `next` asks for. Where `next` and the setting in force both leave the
/// score alone nothing is read or written.
pub(crate) fn adjust(present: OomScore, next: &Config) -> io::Result<()> {
    if present == OomScore::No && next.oom_score == OomScore::No {
        return Ok(());
    }
    let score = score(next, at_start()?);
    std::fs::write(FILE, score.to_string())
}

/// The score that a configuration asks for. The first value of `oom-score-adj-values` is a primary's; there
/// are no replicas and no children that save a snapshot.
fn score(config: &Config, at_start: i32) -> i32 {
    let value = config.oom_score_values[0];
    match config.oom_score {
        OomScore::No => at_start,
        OomScore::Relative => (at_start + value).clamp(-1000, 1000),
        OomScore::Absolute => value.clamp(-1000, 1000),
    }
}

/// The score with which the process was started, read once.
fn at_start() -> io::Result<i32> {
    static SCORE: OnceLock<i32> = OnceLock::new();
    if let Some(score) = SCORE.get() {
        return Ok(*score);
    }
    let text = std::fs::read_to_string(FILE)?;
    let score = text.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok(*SCORE.get_or_init(|| score))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_is_relative_to_the_start_or_absolute() {
        let with =
            |oom_score, value| Config { oom_score, oom_score_values: [value, 200, 800], ..Config::default() };
        assert_eq!(score(&with(OomScore::No, 5), 7), 7);
        assert_eq!(score(&with(OomScore::Relative, 5), 7), 12);
        assert_eq!(score(&with(OomScore::Absolute, 5), 7), 5);
        assert_eq!(score(&with(OomScore::Absolute, 2000), 7), 1000);
    }
}
