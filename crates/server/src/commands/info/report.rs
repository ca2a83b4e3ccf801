//! The text of INFO as it grows: `# Title`, then `name:value` lines, an empty line between sections.
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

    pub(super) fn field(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.0, "{name}:{value}\r\n");
    }

    /// Fields that share one value.
    pub(super) fn fields(&mut self, names: &[&str], value: impl Display) {
        for name in names {
            self.field(name, &value);
        }
    }

    /// `name` in bytes, and `name_human` as people read it.
    pub(super) fn bytes(&mut self, name: &str, bytes: u64) {
        self.field(name, bytes);
        self.field(&format!("{name}_human"), human(bytes));
    }
}

/// "694.25K"
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
