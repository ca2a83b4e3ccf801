//! What the program allocates with: the arena for the sizes that leaves have, a general allocator for the rest, all of it
//! counted. Which general allocator is a feature of this crate.
//!
//! Freed memory must go back to the system soon: mimalloc returns pages 10 ms after their last use; jemalloc is told to
//! by `_RJEM_MALLOC_CONF` or at build time (see `.cargo/config.toml`), with a thread of its own to do it.
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
