//! The text of an error of the system, as clients and the log get it.
pub(crate) use disk::reason;
