//! The lock of a stripe. Tests under `cfg(shuttle)` have one whose scheduler chooses who goes on.

#[cfg(all(test, shuttle))]
pub(super) use shuttle::{
    sync::{Mutex, MutexGuard},
    thread,
};
#[cfg(not(all(test, shuttle)))]
pub(super) use std::sync::{Mutex, MutexGuard};
#[cfg(all(test, not(shuttle)))]
pub(super) use std::thread;
