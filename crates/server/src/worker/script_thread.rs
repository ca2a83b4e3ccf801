//! The thread of scripts: it runs requests that run scripts, one after the other, each with the session of
//! its client (`core/lent.rs`). It is started with the first of them.
//!
//! Workers do not run scripts themselves, because one may take for ever: then they answer their clients with
//! BUSY, and take SCRIPT KILL.
use crate::core::dispatch::{Executor, WroteAll};
use crate::core::error;
use crate::core::lent::{Back, Ender, Lent, Returned};
use crate::core::server::Server;
use crate::state::lending::{Lending, Threads};
use std::sync::Arc;
use std::thread::Builder;

/// Lua's own stack is on the heap, but its parser and its patterns recurse on this one.
const STACK_BYTES: usize = 8 << 20;

/// See the file's opener. All workers of a server share it.
pub(crate) struct ScriptThread(Lending<ScriptJob>);

struct ScriptJob {
    lent: Box<Lent>,
    back: Back,
}

impl Default for ScriptThread {
    fn default() -> ScriptThread {
        ScriptThread(Lending::new(1))
    }
}

impl ScriptThread {
    /// Gives a session to the thread.
    pub(super) fn lend(self: &Arc<Self>, server: &Server, lent: Box<Lent>, returned: &Returned) {
        if self.0.put(ScriptJob { lent, back: returned.way_back() }) == Threads::Enough {
            return;
        }
        let (owner, this) = (server.shared(), Arc::clone(self));
        let work = move || {
            let _ender = Ender(&owner);
            this.run(&owner);
        };
        if let Err(why) = Builder::new().name("sardine-script".into()).stack_size(STACK_BYTES).spawn(work)
            && let Some(ScriptJob { mut lent, back }) = self.0.not_started()
        {
            server.log.warning(&format!("No thread for scripts: {why}"));
            lent.done = Err(error::no_thread(&why));
            back.give(server, lent);
        }
    }

    /// Gives up what waits, and ends the thread when its script has ended.
    pub(crate) fn end(&self) {
        self.0.end();
    }

    /// Scripts or libraries have gone: the thread looks after what they have left.
    pub(super) fn poke(&self) {
        self.0.poke();
    }

    fn run(&self, server: &Server) {
        let mut executor = Executor::for_scripts(server);
        while let Some(ScriptJob { mut lent, back }) = self.0.next_or(&mut || executor.clear_leftovers()) {
            executor.set_now(server.clock.moment(executor.moment()));
            let start = executor.meter().read();
            let passed_by = lent.passed_by();
            let Lent { session, request, reply, .. } = &mut *lent;
            let request = (request.args(), request.wire_bytes());
            let (done, WroteAll(has_muted)) = executor.run_lent(session, request, passed_by, reply);
            lent.is_mute &= !has_muted;
            lent.done = done;
            lent.ticks = executor.meter().read().since(start);
            back.give(server, lent);
            // Here, where nobody waits at a gate for it.
            while executor.has_too_much_left() {
                executor.clear_leftovers();
            }
        }
    }
}
