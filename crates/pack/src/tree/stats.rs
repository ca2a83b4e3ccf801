//! Where the bytes of a tree are.

/// Sums over the nodes of one tree, by kind. `used` is what is filled, `allocated` what the allocator gave
/// (its rounding included), both in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    pub nodes: u64,
    pub entries: u64,
    pub used_bytes: u64,
    pub allocated_bytes: u64,
}

impl Kind {
    /// Counts one node.
    pub(crate) fn add(&mut self, entries: u64, used_bytes: usize, allocated_bytes: usize) {
        assert!(used_bytes <= allocated_bytes, "a node of {used_bytes} bytes in {allocated_bytes}");
        self.nodes += 1;
        self.entries += entries;
        self.used_bytes += used_bytes as u64;
        self.allocated_bytes += allocated_bytes as u64;
    }

    /// Adds the sums of another tree.
    pub fn merge(&mut self, other: &Kind) {
        self.nodes += other.nodes;
        self.entries += other.entries;
        self.used_bytes += other.used_bytes;
        self.allocated_bytes += other.allocated_bytes;
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub inner: Kind,
    pub tagged: Kind,
    pub strings: Kind,
    pub ints: Kind,
    pub compressed: Kind,
    /// Entries of streams, as they come and once their leaf is full.
    pub rows: Kind,
    pub columns: Kind,
    /// What consumers of streams have yet to acknowledge.
    pub records: Kind,
    /// Scores and members of sorted sets, and the index of members beside them.
    pub scored: Kind,
    pub placed: Kind,
    /// What the compressed leaves would take when opened.
    pub compressed_raw_bytes: u64,
    /// Values outside leaves (behind a pointer).
    pub outside: Kind,
    pub height: u32,
}

impl Stats {
    /// Adds the sums of another tree; the height is the greater one.
    pub fn merge(&mut self, other: &Stats) {
        self.inner.merge(&other.inner);
        self.tagged.merge(&other.tagged);
        self.strings.merge(&other.strings);
        self.ints.merge(&other.ints);
        self.compressed.merge(&other.compressed);
        self.rows.merge(&other.rows);
        self.columns.merge(&other.columns);
        self.records.merge(&other.records);
        self.scored.merge(&other.scored);
        self.placed.merge(&other.placed);
        self.compressed_raw_bytes += other.compressed_raw_bytes;
        self.outside.merge(&other.outside);
        self.height = self.height.max(other.height);
    }

    /// Everything allocated by the tree and its outside values' bodies.
    pub fn allocated_bytes(&self) -> u64 {
        let kinds = [
            &self.inner,
            &self.tagged,
            &self.strings,
            &self.ints,
            &self.compressed,
            &self.rows,
            &self.columns,
            &self.records,
            &self.scored,
            &self.placed,
            &self.outside,
        ];
        kinds.iter().map(|kind| kind.allocated_bytes).sum()
    }
}
