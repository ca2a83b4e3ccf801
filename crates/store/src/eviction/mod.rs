//! Which key goes when memory is short, and what is known of how keys are used.
//!
//! | file | what it holds |
//! |---|---|
//! | `policy.rs` | the policies |
//! | `choose.rs` | a key chosen from leaves at random |
//! | `rare.rs` | the same where few keys may go |
//! | `pool.rs` | those that were met then and not taken |
//! | `beside.rs` | a key chosen from the leaf that is about to be written |
//! | `uses.rs` | when or how often a key was used, in a byte |
//! | `lru_clock.rs` | LRU: which byte stands for which time |
//! | `aging.rs` | the walk over all leaves that keeps those bytes true |
pub(crate) mod aging;
pub(crate) mod beside;
#[cfg(test)]
mod beside_tests;
pub(crate) mod choose;
#[cfg(test)]
mod choose_tests;
pub(crate) mod lru_clock;
pub(crate) mod policy;
pub(crate) mod pool;
pub(crate) mod rare;
pub(crate) mod uses;
#[cfg(test)]
mod uses_tests;
