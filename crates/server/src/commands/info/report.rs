//! The text of INFO as it grows: `# Title`, then `name:value` lines, an empty line between sections.
use super::metric::{Line, Metric, Read};
use super::reading::Reading;
use std::fmt::{Display, Write};

pub(super) struct Report(String);

impl Report {
    pub(super) fn new() -> Report {
        Report(String::new())
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    pub(super) fn section(&mut self, title: &str) {
        if !self.0.is_empty() {
            self.0.push_str("\r\n");
        }
        let _ = write!(self.0, "# {title}\r\n");
    }

    /// Reads a metric and writes its field, or those of its family.
    pub(super) fn metric(&mut self, metric: &Metric, reading: &Reading<'_>) {
        if metric.is_shown.is_some_and(|is_shown| !is_shown(reading)) {
            return;
        }
        match metric.read {
            Read::One(read) => {
                let value = read(reading);
                self.field(metric.name, &value);
                if let (true, super::metric::Value::Uint(bytes)) = (metric.is_human_too, value) {
                    self.field(format_args!("{}_human", metric.name), human(bytes));
                }
            }
            Read::Each { read, .. } => {
                for line in read(reading) {
                    self.line(metric.name, &line);
                }
            }
        }
    }

    fn line(&mut self, name: &str, line: &Line) {
        let _ = write!(self.0, "{name}{}:", line.label);
        for (index, (cell, value)) in line.cells.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let _ = write!(self.0, "{comma}{cell}={value}");
        }
        self.0.push_str("\r\n");
    }

    fn field(&mut self, name: impl Display, value: impl Display) {
        let _ = write!(self.0, "{name}:{value}\r\n");
    }
}

/// A number of bytes as people read it: "694.25K".
pub(crate) fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let power = (bytes.ilog2() / 10).min(UNITS.len() as u32);
    let unit = UNITS[power as usize - 1];
    format!("{:.2}{unit}", bytes as f64 / (1u64 << (10 * power)) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_the_largest_unit_that_fits() {
        for (bytes, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.00K"),
            (710_912, "694.25K"),
            (13_910_016, "13.27M"),
            (25_276_514_304, "23.54G"),
        ] {
            assert_eq!(human(bytes), text);
        }
    }

    #[test]
    fn an_empty_line_stands_between_sections() {
        let mut report = Report::new();
        report.section("A");
        report.field("x", 1);
        report.section("B");
        assert_eq!(report.text(), "# A\r\nx:1\r\n\r\n# B\r\n");
    }
}
