//! The locks behind whole-keyspace work: one for each worker, on its own cache line.
//!
//! A worker holds the read side of its own gate while it executes a batch; nobody else touches that line, so
//! it costs two uncontended atomic operations a batch. A worker that needs all others to stand still lets go
//! of its own read side and takes the write side of all gates, in ascending order: so two such workers cannot
//! wait for each other.
//!
//! Those who want to be alone are so in the order in which they came, and whoever has waited to run a batch
//! meanwhile comes in before the next of them: so workers that run one script after the other, each of which
//! takes all gates, starve nobody.
//!
//! ```text
//! open ---- enter_alone ---> closed ---- dropped ---> open
//!                              |            ^
//!                              |\-- leave_ajar: who waits, or comes, enters as Entered::Ajar, and touches
//!                              |    no data (a script runs for long: clients are answered with BUSY)
//!                              \--- expect_end: who comes waits for a moment (it was told to end), and then
//!                                   enters so as well
//! ```
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst, fence};
use std::sync::{
    Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};
use std::time::Duration;

/// Who comes waits for whoever is alone, if somebody is.
const SHUT: u8 = 0;
/// Whoever is alone has let the others in.
const AJAR: u8 = 1;
/// It did, but is about to end: who comes waits for that, though not for longer than [`END_MAX`].
const ENDING: u8 = 2;

/// A script hears within milliseconds that it is to end, unless it is in one long call of a library.
const END_MAX: Duration = Duration::from_millis(50);

/// 128 bytes: two cache lines, because processors fetch lines in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Gate(RwLock<()>);

/// All gates are held: nobody else runs commands.
pub(crate) struct Alone<'g> {
    gates: &'g Gates,
    held: Vec<RwLockWriteGuard<'g, ()>>,
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.gates.state.store(SHUT, SeqCst);
        self.held.clear();
        let mut queue = self.gates.queue();
        queue.is_taken = false;
        queue.first_in = queue.entering;
        drop(queue);
        self.gates.wake();
    }
}

/// Who is alone has left the gates ajar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShutOut;

/// How a worker has come in.
pub(crate) enum Entered<'g> {
    /// Nobody runs alone while it holds this.
    Inside(RwLockReadGuard<'g, ()>),
    /// Somebody does, and has let others in who do not touch the data.
    Ajar,
}

/// One for each worker.
pub(crate) struct Gates {
    gates: Box<[Gate]>,
    /// What who comes finds while somebody is alone: [`SHUT`], [`AJAR`], [`ENDING`].
    state: AtomicU8,
    /// How many wait to enter or to be alone, and what wakes them.
    waiting: AtomicUsize,
    changed: Condvar,
    queue: Mutex<Queue>,
}

/// Who is alone, and who waits.
#[derive(Default)]
struct Queue {
    /// Somebody is alone, or about to be.
    is_taken: bool,
    /// Those who wait to be alone have numbers; they come in this order.
    waiting: VecDeque<u64>,
    number: u64,
    /// How many wait to enter.
    entering: usize,
    /// How many of them have waited since somebody was alone last: they come in before the next.
    first_in: usize,
}

impl Queue {
    /// Somebody wants to be alone. Returns the number of that.
    fn join(&mut self) -> u64 {
        self.number += 1;
        self.waiting.push_back(self.number);
        self.number
    }

    /// Whether this one may be alone now.
    fn take(&mut self, number: u64) -> bool {
        let is_next = !self.is_taken && self.first_in == 0 && self.waiting.front() == Some(&number);
        if is_next {
            self.waiting.pop_front();
            self.is_taken = true;
        }
        is_next
    }
}

impl Gates {
    /// Gates for this many workers, which nobody holds.
    pub(crate) fn new(workers: usize) -> Gates {
        Gates {
            gates: (0..workers).map(|_| Gate::default()).collect(),
            state: AtomicU8::new(SHUT),
            waiting: AtomicUsize::new(0),
            changed: Condvar::new(),
            queue: Mutex::default(),
        }
    }

    /// This worker runs commands until the guard is dropped. None while somebody runs alone.
    #[inline]
    pub(crate) fn try_enter(&self, worker: usize) -> Option<RwLockReadGuard<'_, ()>> {
        match self.gates[worker].0.try_read() {
            Ok(inside) => Some(inside),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The same, but it waits while somebody runs alone, unless that has left the gates ajar.
    #[inline(never)]
    pub(crate) fn wait_to_enter(&self, worker: usize) -> Entered<'_> {
        self.wait_until(
            |queue| queue.entering += 1,
            |queue, ()| {
                let entered = match self.try_enter(worker) {
                    Some(inside) => Entered::Inside(inside),
                    None if self.lets_in() => Entered::Ajar,
                    None => return None,
                };
                queue.entering -= 1;
                if queue.first_in > 0 {
                    queue.first_in -= 1;
                    if queue.first_in == 0 {
                        self.changed.notify_all();
                    }
                }
                Some(entered)
            },
        )
    }

    /// Waits until `look` finds something. The lock is held from each look until the sleep begins, and
    /// whoever opens the gates or leaves them ajar takes the lock afterwards, so no change is missed. One
    /// that does not see who waits has opened the gates before the first look.
    fn wait_until<N: Copy, R>(
        &self,
        join: impl FnOnce(&mut Queue) -> N,
        mut look: impl FnMut(&mut Queue, N) -> Option<R>,
    ) -> R {
        self.waiting.fetch_add(1, SeqCst);
        fence(SeqCst);
        let mut queue = self.queue();
        let place = join(&mut queue);
        let found = loop {
            if let Some(found) = look(&mut queue, place) {
                break found;
            }
            queue = self.sleep(queue);
        };
        drop(queue);
        self.waiting.fetch_sub(1, SeqCst);
        found
    }

    /// Sleeps until something has changed. Where an end is awaited that does not come, the gates are ajar
    /// again.
    fn sleep<'q>(&self, queue: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
        if self.state.load(SeqCst) != ENDING {
            return self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let slept = self.changed.wait_timeout(queue, END_MAX);
        let (queue, timeout) = slept.unwrap_or_else(PoisonError::into_inner);
        let is_late = timeout.timed_out();
        if is_late && self.state.compare_exchange(ENDING, AJAR, SeqCst, SeqCst).is_ok() {
            self.changed.notify_all();
        }
        queue
    }

    /// Nobody else runs commands until the guards are dropped. It waits until every worker has finished its
    /// batch, and for as long as somebody else is alone: for threads that serve no clients. The caller must
    /// hold no gate.
    pub(crate) fn enter_alone(&self) -> Alone<'_> {
        self.wait_until(Queue::join, |queue, number| queue.take(number).then_some(()));
        self.take_all()
    }

    /// The same for a worker, which must not wait for the end of a script that runs for long.
    pub(crate) fn try_enter_alone(&self) -> Result<Alone<'_>, ShutOut> {
        self.wait_until(Queue::join, |queue, number| match queue.take(number) {
            true => Some(Ok(())),
            false if self.lets_in() => {
                queue.waiting.retain(|other| *other != number);
                Some(Err(ShutOut))
            }
            false => None,
        })?;
        Ok(self.take_all())
    }

    /// The caller has set [`Queue::is_taken`].
    fn take_all(&self) -> Alone<'_> {
        let held = self.gates.iter().map(|gate| gate.0.write().unwrap_or_else(PoisonError::into_inner));
        Alone { gates: self, held: held.collect() }
    }

    /// Lets others in, who touch no data, until whoever is alone has ended. Only who is alone calls this.
    pub(crate) fn leave_ajar(&self) {
        self.state.store(AJAR, SeqCst);
        self.wake();
    }

    /// Whoever is alone and has left the gates ajar is about to end: those who come from here on wait for
    /// that, but no longer than for a moment.
    pub(crate) fn expect_end(&self) {
        let _ = self.state.compare_exchange(AJAR, ENDING, SeqCst, SeqCst);
    }

    /// Whether somebody is alone and has let others in, whether or not it is about to end: a load.
    #[inline]
    pub(crate) fn is_ajar(&self) -> bool {
        self.state.load(SeqCst) != SHUT
    }

    fn lets_in(&self) -> bool {
        self.state.load(SeqCst) == AJAR
    }

    fn wake(&self) {
        fence(SeqCst);
        if self.waiting.load(SeqCst) > 0 {
            drop(self.queue());
            self.changed.notify_all();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    /// As a worker does.
    fn enter(gates: &Gates, worker: usize) -> Entered<'_> {
        gates.try_enter(worker).map_or_else(|| gates.wait_to_enter(worker), Entered::Inside)
    }

    fn is_inside(entered: &Entered<'_>) -> bool {
        matches!(entered, Entered::Inside(_))
    }

    #[test]
    fn who_waits_comes_in_when_the_gates_open() {
        let gates = Gates::new(2);
        let alone = gates.enter_alone();
        std::thread::scope(|scope| {
            let entering = scope.spawn(|| is_inside(&enter(&gates, 1)));
            while gates.waiting.load(SeqCst) == 0 {
                std::thread::yield_now();
            }
            drop(alone);
            assert!(entering.join().unwrap());
        });
    }

    #[test]
    fn gates_that_are_left_ajar_let_others_in_until_they_open() {
        let gates = Gates::new(1);
        let alone = gates.enter_alone();
        std::thread::scope(|scope| {
            let entering = scope.spawn(|| is_inside(&enter(&gates, 0)));
            let alone = scope.spawn(|| gates.try_enter_alone().is_err());
            while gates.waiting.load(SeqCst) < 2 {
                std::thread::yield_now();
            }
            gates.leave_ajar();
            assert!(!entering.join().unwrap() && alone.join().unwrap());
        });
        assert_eq!(gates.try_enter_alone().err(), Some(ShutOut));
        assert!(!is_inside(&enter(&gates, 0)));
        drop(alone);
        assert!(is_inside(&enter(&gates, 0)) && !gates.is_ajar());
    }

    #[test]
    fn an_end_that_is_expected_is_waited_for_but_not_for_ever() {
        let gates = Gates::new(1);
        gates.expect_end();
        assert!(!gates.is_ajar(), "nobody is alone");
        let alone = gates.enter_alone();
        gates.leave_ajar();
        gates.expect_end();
        std::thread::scope(|scope| {
            let entering = scope.spawn(|| is_inside(&enter(&gates, 0)));
            while gates.waiting.load(SeqCst) == 0 {
                std::thread::yield_now();
            }
            drop(alone);
            // The end has come, or the time was over before.
            let _ = entering.join().unwrap();
        });
        assert!(is_inside(&enter(&gates, 0)));
        let alone = gates.enter_alone();
        gates.leave_ajar();
        gates.expect_end();
        assert!(!is_inside(&enter(&gates, 0)), "it does not end");
        assert_eq!(gates.try_enter_alone().err(), Some(ShutOut));
        drop(alone);
        assert!(is_inside(&enter(&gates, 0)));
    }

    #[test]
    fn who_has_waited_longest_is_alone_next_and_whoever_waits_to_enter_comes_before() {
        let gates = Gates::new(3);
        let order = Mutex::new(Vec::new());
        let first = gates.enter_alone();
        let wait_for = |count| {
            while gates.waiting.load(SeqCst) < count || {
                let queue = gates.queue();
                queue.waiting.len() + queue.entering < count
            } {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            for number in 1..=3 {
                let (gates, order) = (&gates, &order);
                scope.spawn(move || {
                    let alone = gates.enter_alone();
                    order.lock().unwrap().push(number);
                    drop(alone);
                });
                wait_for(number);
            }
            scope.spawn(|| {
                let inside = enter(&gates, 0);
                assert!(is_inside(&inside));
                order.lock().unwrap().push(0);
            });
            wait_for(4);
            drop(first);
        });
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
        assert_eq!(gates.waiting.load(SeqCst), 0);
    }

    /// Who is inside and who is alone, as they say themselves.
    #[derive(Default)]
    struct Data {
        inside: AtomicUsize,
        alone: AtomicUsize,
    }

    impl Data {
        fn enter(&self, gates: &Gates, worker: usize, random: &mut Random) {
            let entered = enter(gates, worker);
            if !is_inside(&entered) {
                return;
            }
            self.inside.fetch_add(1, SeqCst);
            pause(random);
            assert_eq!(self.alone.load(SeqCst), 0, "somebody is alone beside who is inside");
            self.inside.fetch_sub(1, SeqCst);
        }

        fn be_alone(&self, alone: Alone<'_>, random: &mut Random) {
            assert_eq!(self.alone.fetch_add(1, SeqCst), 0, "two are alone");
            pause(random);
            if random.below(3) == 0 {
                alone.gates.leave_ajar();
                pause(random);
                if random.below(2) == 0 {
                    alone.gates.expect_end();
                    pause(random);
                }
            }
            assert_eq!(self.inside.load(SeqCst), 0, "somebody is inside beside who is alone");
            self.alone.fetch_sub(1, SeqCst);
        }
    }

    fn pause(random: &mut Random) {
        (0..random.below(4)).for_each(|_| std::thread::yield_now());
    }

    #[test]
    fn nobody_is_inside_beside_who_is_alone_in_whatever_order_all_come() {
        const WORKERS: usize = 3;
        for seed in 0..20 {
            let (gates, data) = (Gates::new(WORKERS), Data::default());
            std::thread::scope(|scope| {
                for thread in 0..WORKERS + 2 {
                    let (gates, data) = (&gates, &data);
                    let mut random = Random::new(seed << 8 | thread as u64);
                    scope.spawn(move || {
                        for _ in 0..150 {
                            let wants_all = thread >= WORKERS || random.below(4) == 0;
                            match (wants_all, thread < WORKERS) {
                                (false, _) => data.enter(gates, thread, &mut random),
                                (true, false) => data.be_alone(gates.enter_alone(), &mut random),
                                (true, true) => {
                                    if let Ok(alone) = gates.try_enter_alone() {
                                        data.be_alone(alone, &mut random);
                                    }
                                }
                            }
                        }
                    });
                }
            });
            let queue = gates.queue();
            assert!(queue.waiting.is_empty() && queue.entering == 0 && !queue.is_taken, "seed {seed}");
            assert_eq!(gates.waiting.load(SeqCst), 0, "seed {seed}");
        }
    }

    #[test]
    fn many_threads_come_and_go_and_none_is_forgotten() {
        let (gates, inside) = (Gates::new(2), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for worker in 0..2 {
                let (gates, inside) = (&gates, &inside);
                scope.spawn(move || {
                    for _ in 0..2_000 {
                        let entered = enter(gates, worker);
                        inside.fetch_add(usize::from(is_inside(&entered)), SeqCst);
                        inside.fetch_sub(usize::from(is_inside(&entered)), SeqCst);
                    }
                });
                scope.spawn(move || {
                    for round in 0..500 {
                        let alone = gates.enter_alone();
                        assert_eq!(inside.load(SeqCst), 0);
                        if round % 3 == 0 {
                            gates.leave_ajar();
                        }
                        drop(alone);
                    }
                });
            }
        });
    }
}
