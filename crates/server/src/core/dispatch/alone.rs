//! Changes of the data by a thread that is no worker's, while nothing else runs. What follows from them is as
//! if a worker's client had asked for them: they are recorded, and told to those who wait, watch and listen.
use super::Executor;
use crate::core::server::Server;
use crate::state::clock::Moment;
use resp::Args;

/// All gates are held, and what is done is recorded in the place of a worker, which does not run.
pub(crate) struct RunsAlone<'e, 's>(&'e mut Executor<'s>);

/// Calls `work` while all gates are held.
pub(crate) fn run_alone<R>(
    server: &Server,
    worker: usize,
    work: impl FnOnce(&mut RunsAlone<'_, '_>) -> R,
) -> R {
    let all = server.enter_alone();
    let result = run_under_gates(server, worker, |executor| work(&mut RunsAlone(executor)));
    drop(all);
    // This thread is no worker's: all are told.
    server.mailboxes.announce(usize::MAX);
    result
}

/// Calls `work` in the place of this worker. The caller holds all gates.
pub(super) fn run_under_gates<R>(
    server: &Server,
    worker: usize,
    work: impl FnOnce(&mut Executor<'_>) -> R,
) -> R {
    let mut executor = Executor::new(server, worker);
    executor.set_now(server.clock.moment(Moment::NONE));
    executor.is_alone = true;
    executor.recorder.look_for_once(&server.journal);
    let result = work(&mut executor);
    if server.key_events.waiters.is_ready() {
        executor.serve_ready();
    }
    if server.key_events.tracking.is_unsettled() {
        executor.settle();
    }
    executor.recorder.publish(&server.journal);
    result
}

impl RunsAlone<'_, '_> {
    /// Deletes these keys, which have gone to another server. Returns the record that tells of it, plus one;
    /// 0 where nobody reads the journal.
    pub(crate) fn delete(&mut self, db: u16, names: &[&[u8]]) -> u64 {
        let Executor { server, recorder, config, now, .. } = &*self.0;
        let hashed = names.iter().map(|name| (*name, server.keyspace.hash(name)));
        let (mut view, keys) = server.keyspace.lock(db, now.wall, &config.store, hashed);
        let mut recording = recorder.begin(&server.journal, db, &view);
        for key in keys.iter() {
            let was_there = view.remove(key);
            view.changed(key, u64::from(was_there), store::Event::DEL);
            if let Some(recording) = recording.as_mut().filter(|_| was_there) {
                recording.effects().say_moved(key.bytes());
            }
        }
        if let Some(recording) = recording {
            recorder.end(recording, &server.journal, &mut view, &Args::new(&[], &[]));
        }
        self.0.let_go(view);
        self.0.end_of_records()
    }
}
