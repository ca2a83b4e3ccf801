//! The names of fields that have expired, for whoever records what happens to keys.

/// Takes the names of fields that expire; None where nobody wants them.
pub(crate) type Names = Option<Vec<Box<[u8]>>>;
