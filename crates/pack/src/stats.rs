//! Where the bytes of a tree are.

/// Sums over the nodes of one tree, by kind. `used` is what is filled, `allocated` what the allocator gave (its
/// rounding included), both in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    pub nodes: u64,
    pub entries: u64,
    pub used_bytes: u64,
    pub allocated_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub inner: Kind,
    pub tagged: Kind,
    pub strings: Kind,
    pub ints: Kind,
    pub compressed: Kind,
    /// What the compressed leaves would take when opened.
    pub compressed_raw_bytes: u64,
    /// Values outside leaves (behind a pointer).
    pub outside: Kind,
    pub height: u32,
}
