//! What the program allocates with: the arena for the sizes that leaves have, a general allocator for the
//! rest, all of it counted. Which general allocator is a feature of this crate.
//!
//! The C library's is the default: little is left for it, and an idle server takes some MB less than with
//! mimalloc, whose first pages are huge ones (`used_memory_rss` of INFO memory, right after the start).
//! jemalloc is told to give pages back soon (see `.cargo/config.toml`).
use pack::arena::Arena;
use pack::counted::Counted;

#[cfg(all(feature = "mimalloc", not(feature = "jemalloc")))]
use mimalloc::MiMalloc as General;
#[cfg(not(any(feature = "mimalloc", feature = "jemalloc")))]
use std::alloc::System as General;
#[cfg(feature = "jemalloc")]
use tikv_jemallocator::Jemalloc as General;

/// INFO's mem_allocator.
pub(crate) const NAME: &str = if cfg!(feature = "jemalloc") {
    "arena+jemalloc"
} else if cfg!(feature = "mimalloc") {
    "arena+mimalloc"
} else {
    "arena+libc"
};

#[global_allocator]
static HEAP: Counted<Arena<General>> = Counted(Arena(General));
