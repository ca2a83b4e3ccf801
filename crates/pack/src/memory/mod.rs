//! Memory: the arena that leaves are allocated from (`arena/`), how a request is rounded for it (`alloc.rs`),
//! what of it is in use (`counted.rs`), and the two things that lie in it and are counted by those who hold
//! them: blocks of bytes (`block.rs`) and values outside a leaf (`shared.rs`), by the one protocol of
//! `refs.rs`; `twins.rs` notes which of them are kept for a moment only, `apart.rs` lends a part of a block.
//! Knows no leaf and no tree.
pub(crate) mod alloc;
pub mod apart;
pub mod arena;
pub(crate) mod block;
pub(crate) mod buffer;
pub mod counted;
pub(crate) mod prefetch;
pub(crate) mod refs;
#[cfg(test)]
mod refs_interleavings;
pub(crate) mod shared;
pub(crate) mod twins;

/// What `refs.rs` counts with. The check of its interleavings compiles that file over loom's atomics instead.
mod atomic {
    pub(super) use std::sync::atomic::{AtomicU32, Ordering, fence};
}
