//! A mutex that another thread's panic does not close: what it keeps is whole at every moment, and a server
//! that has lost one thread goes on with the others.
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
