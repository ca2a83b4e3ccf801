//! What scripts have left in the interpreters of a thread: garbage, which Lua's own collector goes on with
//! only while scripts run, and interpreters whose scripts or libraries have all gone. Whoever has time looks
//! after it: the thread of scripts when nothing waits for it, a worker ten times a second. When much has gone
//! its pages go back to the system too.
use super::super::Executor;
use crate::state::clock::Stopwatch;
use script::Machine;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// For so long at a time garbage is collected: a script, or a client, may come meanwhile.
const BUDGET: Duration = Duration::from_micros(300);
/// A step takes some ten microseconds.
const STEPS_AT_ONCE: usize = 8;
/// Pages are given back when the interpreters of a thread have become so much smaller.
const MUCH_BYTES: u64 = 4 << 20;

impl Executor<'_> {
    /// Whether scripts have left something that should go, though none runs.
    pub(crate) fn has_leftovers(&self) -> bool {
        let scripts = &self.server.scripts;
        self.interpreter.as_ref().is_some_and(|its| its.is_stale(&scripts.cache) || its.machine.has_garbage())
            || self
                .functions
                .as_ref()
                .is_some_and(|its| its.is_stale(&scripts.libraries) || its.machine.has_garbage())
    }

    /// Whether it has to go before another script runs.
    pub(crate) fn has_too_much_left(&self) -> bool {
        let has = |machine: &Machine| machine.has_garbage() && machine.is_nearly_full();
        self.interpreter.as_ref().is_some_and(|its| has(&its.machine))
            || self.functions.as_ref().is_some_and(|its| has(&its.machine))
    }

    /// Lets some of it go. Returns whether there is more.
    pub(crate) fn clear_leftovers(&mut self) -> bool {
        let scripts = &self.server.scripts;
        self.interpreters_bytes_max = self.interpreters_bytes_max.max(self.interpreters_bytes());
        if self.interpreter.as_ref().is_some_and(|interpreter| interpreter.is_stale(&scripts.cache)) {
            self.interpreter = None;
            self.counters.interpreter_bytes.store(0, Relaxed);
        }
        self.forget_libraries();
        if let Some(interpreter) = self.interpreter.as_ref().filter(|its| its.machine.has_garbage()) {
            collect_for_a_moment(&interpreter.machine);
            self.counters.interpreter_bytes.store(interpreter.used_bytes(), Relaxed);
        }
        if let Some(interpreter) = self.functions.as_ref().filter(|its| its.machine.has_garbage()) {
            collect_for_a_moment(&interpreter.machine);
            self.note_functions();
        }
        let has_more = self.has_leftovers();
        if !has_more {
            self.give_pages_back();
        }
        has_more
    }

    fn interpreters_bytes(&self) -> u64 {
        let scripts = self.interpreter.as_ref().map_or(0, |its| its.machine.used_bytes());
        let functions = self.functions.as_ref().map_or(0, |its| its.machine.used_bytes());
        (scripts + functions) as u64
    }

    fn give_pages_back(&mut self) {
        let bytes = self.interpreters_bytes();
        if self.interpreters_bytes_max > bytes + MUCH_BYTES {
            self.interpreters_bytes_max = bytes;
            pack::arena::give_up_passing();
            self.server.background.trim();
        }
    }

    /// Ends the interpreter of functions of this thread if all that it holds has gone.
    fn forget_libraries(&mut self) {
        let libraries = &self.server.scripts.libraries;
        if self.functions.as_ref().is_some_and(|interpreter| interpreter.is_stale(libraries)) {
            self.functions = None;
            self.note_functions();
        }
    }
}

fn collect_for_a_moment(machine: &Machine) {
    let began = Stopwatch::start();
    while machine.has_garbage() && u128::from(began.elapsed_ns()) < BUDGET.as_nanos() {
        (0..STEPS_AT_ONCE).for_each(|_| machine.collect_some());
    }
}
