//! Keys, elements and bytes, added up for the parts of a report.

/// The sum over some keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) keys: u64,
    /// Elements of collections; bytes of strings are not counted.
    pub(crate) elements: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, more: Tally) {
        self.keys += more.keys;
        self.elements += more.elements;
    }
}
