//! Sorted sets: `api.rs` is a sorted set as commands see it, inside its entry or outside.
pub(crate) mod api;
