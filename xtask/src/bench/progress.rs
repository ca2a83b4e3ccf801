//! How far a long measurement is. On a terminal a bar says so; elsewhere, in a log above all, every step has
//! a line when it begins. The bar is drawn when a step begins and not in between: what is measured has the
//! processors to itself.
use indicatif::{HumanDuration, ProgressBar, ProgressFinish, ProgressStyle};

/// Steps done, a bar, the step that runs, and how long the others will take.
const TEMPLATE: &str = "[{pos}/{len}] {bar:30} {msg}, about {eta} left";

pub(crate) struct Progress {
    bar: ProgressBar,
    is_begun: bool,
}

impl Progress {
    pub(crate) fn new(steps: usize) -> Progress {
        Progress::over(ProgressBar::new(steps as u64))
    }

    fn over(bar: ProgressBar) -> Progress {
        let style = ProgressStyle::with_template(TEMPLATE).expect("it is a constant that the tests draw");
        Progress { bar: bar.with_style(style).with_finish(ProgressFinish::AndClear), is_begun: false }
    }

    /// A step begins; the one before it is done.
    pub(crate) fn step(&mut self, what: &str) {
        self.bar.inc(u64::from(self.is_begun));
        self.is_begun = true;
        self.bar.set_message(what.to_string());
        if self.bar.is_hidden() {
            eprintln!("{}", self.line(what));
        }
    }

    /// Prints a line of results, above the bar if there is one.
    pub(crate) fn print(&self, line: &str) {
        self.bar.suspend(|| println!("{line}"));
    }

    fn line(&self, what: &str) -> String {
        let (done, steps) = (self.bar.position(), self.bar.length().unwrap_or_default());
        let left = self.bar.eta();
        let left = match left.is_zero() {
            true => String::new(),
            false => format!(", about {} left", HumanDuration(left)),
        };
        format!("[{}/{steps}] {what}{left}", done + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_counted_when_the_next_begins() {
        let mut progress = Progress::over(ProgressBar::hidden());
        progress.bar.set_length(3);
        progress.step("a");
        assert_eq!((progress.bar.position(), progress.line("a").as_str()), (0, "[1/3] a"));
        progress.step("b");
        assert_eq!(progress.bar.position(), 1);
        assert!(progress.line("b").starts_with("[2/3] b"));
    }
}
