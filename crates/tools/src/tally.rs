//! Keys, elements and bytes, added up for the parts of a report.

/// The sum over some keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) keys: u64,
    /// Elements of collections; bytes of strings are not counted.
    pub(crate) elements: u64,
    /// What they take in Sardine.
    pub(crate) bytes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, more: Tally) {
        self.keys += more.keys;
        self.elements += more.elements;
        self.bytes += more.bytes;
    }

    /// What it would be of so many times as many keys.
    pub(crate) fn multiply(&mut self, factor: u64) {
        for sum in [&mut self.keys, &mut self.elements, &mut self.bytes] {
            *sum = sum.saturating_mul(factor);
        }
    }
}

/// So many of a thing: `1 file`, `2 files`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// A number of bytes as people read it: `1.5 MiB`.
pub(crate) fn shown_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut amount = bytes as f64;
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && amount < 100.0);
    format!("{amount:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_with_the_unit_that_keeps_them_short() {
        let shown = [0, 1023, 1536, 200 << 20, 3 << 40].map(shown_bytes);
        assert_eq!(shown, ["0 B", "1023 B", "1.5 KiB", "200 MiB", "3.0 TiB"]);
    }
}
