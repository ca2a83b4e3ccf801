//! LATENCY GRAPH: the samples of an event as columns of characters, the newest on the right, as Redis draws
//! them.
//!
//! ```text
//!   #       a column has four rows of three steps: `_`, `o`, `#`, and `|` where it goes on upwards
//!   |
//! o |
//! |_|_
//!
//! 2110      how long ago, read downwards
//! 0500
//! ssss
//! ```
use crate::state::latency::{Sample, Series};
use std::fmt::Write;

const COLUMNS: usize = 80;
const ROWS: usize = 4;
const STEPS: [char; 3] = ['_', 'o', '#'];

/// The picture of one event's samples. `now_s` is the wall clock, from which their ages are counted.
pub(super) fn draw(event: &str, series: &Series, now_s: i64) -> String {
    let samples: Vec<Sample> = series.samples.iter().copied().collect();
    let least = samples.iter().map(|s| s.ms).min().unwrap_or(0);
    let most = samples.iter().map(|s| s.ms).max().unwrap_or(0);
    let worst = series.worst_ms;
    let mut text = format!(
        "{event} - high {most} ms, low {least} ms (all time high {worst} ms)\n{}\n",
        "-".repeat(COLUMNS)
    );
    for part in samples.chunks(COLUMNS) {
        draw_columns(part, least, most, &mut text);
        draw_ages(part, now_s, &mut text);
    }
    text
}

/// One column for each sample, its height between the least and the most.
fn draw_columns(samples: &[Sample], least: u64, most: u64, text: &mut String) {
    let steps = (ROWS * STEPS.len()) as u64;
    // The height of a column in steps. Its first step is there even for the least sample, so the two highest
    // share one.
    let height = |s: &Sample| ((s.ms - least) * steps / (most - least).max(1)).min(steps - 1) as usize;
    for row in (0..ROWS).rev() {
        let cell = |sample: &Sample| match height(sample).checked_sub(row * STEPS.len()) {
            None => ' ',
            Some(above) => STEPS.get(above).copied().unwrap_or('|'),
        };
        text.extend(samples.iter().map(cell));
        text.push('\n');
    }
    text.extend(samples.iter().map(|_| ' '));
    text.push('\n');
}

/// How long ago each sample was, to be read downwards.
fn draw_ages(samples: &[Sample], now_s: i64, text: &mut String) {
    let ages: Vec<Vec<char>> = samples.iter().map(|s| age(now_s - s.time_s).chars().collect()).collect();
    for row in 0..ages.iter().map(Vec::len).max().unwrap_or(0) {
        text.extend(ages.iter().map(|age| age.get(row).copied().unwrap_or(' ')));
        text.push('\n');
    }
}

/// An age in the largest unit of which it has at least one: "59s", "59m", "23h", "9d".
fn age(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let mut text = String::new();
    let (count, unit) = match seconds {
        0..60 => (seconds, 's'),
        60..3_600 => (seconds / 60, 'm'),
        3_600..86_400 => (seconds / 3_600, 'h'),
        _ => (seconds / 86_400, 'd'),
    };
    let _ = write!(text, "{count}{unit}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Redis 8.0.2 drew of these samples.
    const DRAWN: &str = "     #    _   \n  _  |#   |   \n  |_ ||  o|  #\n_o||_||#_||o_|\n              \n\
                         11111198765432\n765420ssssssss\nssssss        \n";

    #[test]
    fn columns_grow_by_thirds_of_a_row_and_ages_stand_below() {
        let mut series = Series::new();
        let samples = [2, 9, 33, 20, 5, 60, 41, 12, 3, 25, 50, 11, 5, 30];
        let ages = [17, 16, 15, 14, 12, 10, 9, 8, 7, 6, 5, 4, 3, 2];
        for (ms, age) in samples.into_iter().zip(ages) {
            series.add(Sample { time_s: 100 - age, ms });
        }
        let title = "command - high 60 ms, low 2 ms (all time high 60 ms)";
        let drawn = draw("command", &series, 100);
        assert_eq!(drawn, format!("{title}\n{}\n{DRAWN}", "-".repeat(80)), "{drawn}");
    }

    #[test]
    fn ages_have_units_as_they_grow() {
        for (seconds, text) in [(-3, "0s"), (59, "59s"), (60, "1m"), (3_600, "1h"), (86_400 * 9, "9d")] {
            assert_eq!(age(seconds), text);
        }
    }

    #[test]
    fn more_samples_than_columns_take_a_second_line() {
        let mut series = Series::new();
        (0..100).for_each(|time_s| series.add(Sample { time_s, ms: time_s as u64 }));
        assert_eq!(draw("e", &series, 100).lines().count(), 2 + 2 * 5 + 3 + 3);
    }
}
