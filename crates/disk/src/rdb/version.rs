//! The versions of the format.

/// The version that is written where nobody asks for another: redis-server 7.0 reads it, and all later ones.
pub const VERSION_WRITTEN: u16 = 10;
/// The newest version that is written.
pub const VERSION_WRITTEN_MAX: u16 = 12;
/// The version in which fields of hashes have deadlines.
pub(super) const VERSION_TIMED_FIELDS: u16 = 12;
/// The versions that Valkey counts for itself begin here.
pub(super) const VERSION_VALKEY: u16 = 80;
/// The newest version that is read.
pub const VERSION_MAX: u16 = 80;
