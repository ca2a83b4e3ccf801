//! Entering and leaving the worker's gate, before and after a batch; and being alone.
use super::Executor;
use crate::core::error;
use crate::state::gate::{Alone, Entered};
use crate::state::pause::Held;
use command::Error;
use net::Tick;
use std::hint::cold_path;
use std::sync::RwLockReadGuard;

impl<'s> Executor<'s> {
    /// Enters the worker's gate, before the first command of a batch. It waits while another worker runs a
    /// command alone, but not for the end of a script that runs for long: see [`Executor::is_shut_out`].
    pub(crate) fn begin(&mut self) {
        (self.inside, self.is_shut_out) = match self.server.gates.try_enter(self.worker) {
            Some(inside) => (Some(inside), false),
            None => {
                cold_path();
                self.wait_to_enter()
            }
        };
        // Also where the gate was left in the middle of a turn.
        self.is_guarded |= self.is_shut_out || self.server.moving.is_any();
        self.recorder.look(&self.server.journal);
        // The requests that are about to run have arrived before this, so none was sent after a change of
        // users or settings that is missed here. Whoever has made one waits until all who came in before have
        // left, so no worker goes on by the old ones when its reply is sent: no key is evicted by a limit
        // that is not in force any more. What runs in parts, or on another thread, ends as it has begun.
        self.refresh_users();
        self.refresh_config();
        if !self.is_shut_out {
            self.heed_policy();
        }
        // Behind the gate: CLIENT PAUSE runs alone, so none that begins after it can miss it. So does
        // SHUTDOWN: nothing runs after the data was saved for the last time.
        self.held = self.held_now();
    }

    /// The worker's gate, when whoever is alone has opened or left it. That may take as long as a script
    /// runs: what waits here runs in the time of afterwards.
    #[inline(never)]
    fn wait_to_enter(&mut self) -> (Option<RwLockReadGuard<'s, ()>>, bool) {
        let entered = self.server.gates.wait_to_enter(self.worker);
        self.look_at_clock();
        self.memory_limit.count_again();
        match entered {
            Entered::Inside(inside) => (Some(inside), false),
            Entered::Ajar => (None, true),
        }
    }

    fn held_now(&self) -> Held {
        match self.server.pause.word() {
            _ if self.server.is_stopping() => Held::Everything,
            0 => Held::Nothing,
            _ => self.look_at_pause(),
        }
    }

    /// Between `begin` and `end`: a script that runs for long has all gates, and the data must be left alone.
    /// Clients are answered with BUSY.
    pub(crate) fn is_shut_out(&self) -> bool {
        self.is_shut_out
    }

    /// What CLIENT PAUSE holds back now. Whoever sees first that the pause is over lets expiry go on, if it
    /// is inside its gate: then no pause can begin meanwhile, because that takes all gates.
    #[cold]
    fn look_at_pause(&self) -> Held {
        let held = self.server.pause.held(self.now.steady);
        if held == Held::Nothing && !self.is_shut_out {
            self.server.end_pause();
        }
        held
    }

    /// Between batches: ends a pause whose time is over, even if no client sends anything.
    pub(crate) fn end_pause(&mut self) {
        if self.server.pause.end().is_some_and(|end| end <= self.now.steady) {
            self.begin();
            self.end();
        }
    }

    /// Leaves the worker's gate, after the last command of a batch, and hands on what MONITOR shows of it.
    pub(crate) fn end(&mut self) {
        if self.server.key_events.waiters.is_ready() && !self.is_shut_out {
            self.serve_ready();
        }
        if self.server.key_events.tracking.is_unsettled() {
            cold_path();
            self.settle();
        }
        self.recorder.publish(&self.server.journal);
        (self.inside, self.is_shut_out, self.kept_gates) = (None, false, None);
        if !self.feed.is_empty() {
            self.feed.send(self.server);
        }
        self.mailboxes.announce(self.worker);
    }

    /// Runs `work` outside the worker's gate: commands that need all gates may run on other workers
    /// meanwhile. Where all gates are taken they stay so.
    #[cold]
    pub(super) fn outside<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        if self.is_alone {
            return work(self);
        }
        self.end();
        let result = work(self);
        self.begin();
        result
    }

    /// Runs `work` while no other worker executes anything. It waits until every worker has finished its
    /// batch. An error where that is not possible now (`error::put_off`).
    #[cold]
    pub(super) fn alone<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> Result<R, Error> {
        if self.is_alone {
            return Ok(work(self));
        }
        let gates = self.take_gates()?;
        let result = self.with_gates(work);
        drop(gates);
        self.begin();
        Ok(result)
    }

    /// What other workers are doing is done when it returns, but for a request that runs in parts.
    #[cold]
    pub(super) fn let_others_finish(&mut self) {
        if self.is_alone || self.kept_gates.is_some() {
            return;
        }
        self.end();
        // While a script runs for long they do nothing.
        drop(self.server.gates.try_enter_alone());
        self.begin();
    }

    /// The same for a script, behind which others may come: the gates stay taken until a turn or a script
    /// begins a millisecond later, or until the batch ends. To hand them to another worker costs as much as
    /// many a script. What comes in between runs under them too: whoever gave them back in the middle of a
    /// request might come in again beside a script that runs for long.
    #[cold]
    pub(super) fn alone_for_script<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> Result<R, Error> {
        if self.is_alone {
            return Ok(work(self));
        }
        let gates = self.take_gates()?;
        let result = self.with_gates(work);
        self.kept_gates = Some(gates);
        Ok(result)
    }

    /// All gates, which may be those that were kept.
    fn take_gates(&mut self) -> Result<KeptGates<'s>, Error> {
        self.let_others_in();
        if let Some(kept) = self.kept_gates.take() {
            return Ok(kept);
        }
        self.end();
        // Who had them before may have been CLIENT PAUSE, SHUTDOWN or ACL, or a script that runs for long:
        // then whether the request may run is to be looked at again.
        let gates = self.server.try_enter_alone();
        self.look_at_clock();
        match gates {
            Ok(gates) if self.is_as_before() => Ok(KeptGates { _gates: gates, since: self.meter.read() }),
            gates => {
                drop(gates);
                self.begin();
                Err(error::put_off())
            }
        }
    }

    /// Whether what may run is what it was when the worker entered its gate.
    fn is_as_before(&self) -> bool {
        let held = self.held_now();
        (held == self.held || held == Held::Nothing) && self.server.accounts.version() == self.users_version
    }

    fn with_gates<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        self.is_alone = true;
        self.recorder.look(&self.server.journal);
        let result = work(self);
        self.recorder.publish(&self.server.journal);
        self.is_alone = false;
        result
    }

    /// Gives the gates back that were kept behind a script, if there are any and they were taken long enough
    /// ago, and enters the own one again. Only before it is looked whether a request may run.
    #[inline]
    pub(super) fn let_others_in(&mut self) {
        if self.kept_gates.is_some() {
            cold_path();
            self.give_gates_back();
        }
    }

    #[inline(never)]
    fn give_gates_back(&mut self) {
        let now = self.meter.read();
        if self.kept_gates.as_ref().is_some_and(|kept| now.since(kept.since) >= self.turn_ticks) {
            // What has run under them is published first, as at the end of a batch: whoever holds all gates
            // finds nothing of it left.
            self.end();
            self.begin();
        }
    }
}

/// All gates, which a worker keeps for the next script.
pub(super) struct KeptGates<'g> {
    _gates: Alone<'g>,
    since: Tick,
}
