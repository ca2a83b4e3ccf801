//! What workers lend to other threads, so that no client of theirs waits for it: a queue, and a few threads,
//! which are started when they are needed and stay.
//!
//! ```text
//! worker --- put ---> queue --- next ---> a thread carries it out, and sends it back to its worker
//! ```
//!
//! A client has one thing lent at most, because its further requests wait for it. So the queue is no longer
//! than there are clients.
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// For how long threads are waited for at the end. What takes longer ends with the process.
const END_WAIT: Duration = Duration::from_secs(1);

/// What a thread is given to do.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// See the file's opener.
pub(crate) struct Lending<T> {
    queue: Mutex<Queue<T>>,
    /// The queue is no longer empty, or held, or all is over.
    is_changed: Condvar,
    /// A thread has ended.
    has_ended: Condvar,
    threads_max: usize,
}

struct Queue<T> {
    waiting: VecDeque<T>,
    /// How many threads there are, and how many of them have nothing to do.
    threads: usize,
    idle: usize,
    /// Nothing is taken out (tests).
    is_held: bool,
    is_over: bool,
}

/// Whether a thread has to be started for what was put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    Enough,
    /// The caller starts one, which it has counted already, or takes it back with [`Lending::not_started`].
    OneMore,
}

impl<T> Lending<T> {
    /// With at most so many threads.
    pub(crate) fn new(threads_max: usize) -> Lending<T> {
        let queue = Queue { waiting: VecDeque::new(), threads: 0, idle: 0, is_held: false, is_over: false };
        Lending {
            queue: Mutex::new(queue),
            is_changed: Condvar::new(),
            has_ended: Condvar::new(),
            threads_max,
        }
    }

    /// Lends something.
    pub(crate) fn put(&self, lent: T) -> Threads {
        let mut queue = self.queue();
        queue.waiting.push_back(lent);
        if queue.idle >= queue.waiting.len() || queue.threads == self.threads_max {
            self.is_changed.notify_one();
            return Threads::Enough;
        }
        queue.threads += 1;
        Threads::OneMore
    }

    /// A thread that was to be started could not be. If there is no other, the caller has to carry out what
    /// it has lent last by itself.
    pub(crate) fn not_started(&self) -> Option<T> {
        let mut queue = self.queue();
        queue.threads -= 1;
        if queue.threads == 0 { queue.waiting.pop_back() } else { None }
    }

    /// What a thread is to do next, waited for; None when it is to end.
    pub(crate) fn next(&self) -> Option<T> {
        self.next_or(&mut || false)
    }

    /// The same. While nothing waits `spare` is called, which takes some microseconds, until it says that
    /// there is nothing to do; and again after [`Lending::poke`].
    pub(crate) fn next_or(&self, spare: &mut dyn FnMut() -> bool) -> Option<T> {
        let (mut queue, mut has_spare) = (self.queue(), true);
        loop {
            if queue.is_over {
                queue.threads -= 1;
                self.has_ended.notify_all();
                return None;
            }
            if !queue.is_held
                && let Some(lent) = queue.waiting.pop_front()
            {
                return Some(lent);
            }
            if std::mem::take(&mut has_spare) {
                drop(queue);
                has_spare = spare();
                queue = self.queue();
                if has_spare || !queue.waiting.is_empty() || queue.is_over {
                    continue;
                }
            }
            queue.idle += 1;
            queue = self.is_changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
            has_spare = true;
        }
    }

    /// There may be something to do for threads that have nothing else to do.
    pub(crate) fn poke(&self) {
        // Whoever holds the lock may be about to sleep, after it had looked.
        drop(self.queue());
        self.is_changed.notify_all();
    }

    /// Holds back whatever is lent from here on, or no longer.
    pub(crate) fn hold(&self, is_held: bool) {
        self.queue().is_held = is_held;
        self.is_changed.notify_all();
    }

    /// How much waits in the queue.
    pub(crate) fn waiting(&self) -> usize {
        self.queue().waiting.len()
    }

    /// Gives up what waits, and ends the threads when they have done what they are at.
    pub(crate) fn end(&self) {
        let mut queue = self.queue();
        queue.is_over = true;
        let given_up = std::mem::take(&mut queue.waiting);
        self.is_changed.notify_all();
        let goes_on = |queue: &mut Queue<T>| queue.threads > 0;
        let waited = self.has_ended.wait_timeout_while(queue, END_WAIT, goes_on);
        drop(waited);
        drop(given_up);
    }

    fn queue(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn threads_are_started_while_none_is_idle_and_no_more_than_allowed() {
        let lending = Lending::new(2);
        assert_eq!(lending.put(1), Threads::OneMore);
        assert_eq!(lending.put(2), Threads::OneMore);
        assert_eq!(lending.put(3), Threads::Enough);
        assert_eq!((lending.next(), lending.next(), lending.next()), (Some(1), Some(2), Some(3)));
    }

    #[test]
    fn what_cannot_be_carried_out_elsewhere_comes_back() {
        let lending = Lending::new(1);
        assert_eq!(lending.put(1), Threads::OneMore);
        assert_eq!(lending.not_started(), Some(1));
        assert_eq!(lending.put(2), Threads::OneMore);
        assert_eq!(lending.next(), Some(2));
    }

    #[test]
    fn what_is_held_waits_and_the_end_waits_for_threads() {
        let lending = Lending::new(1);
        lending.hold(true);
        assert_eq!(lending.put(7), Threads::OneMore);
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| std::iter::from_fn(|| lending.next()).collect::<Vec<_>>());
            assert_eq!(lending.waiting(), 1);
            lending.hold(false);
            while lending.waiting() > 0 {
                std::thread::yield_now();
            }
            lending.end();
            assert_eq!(thread.join().unwrap(), [7]);
        });
    }
}
