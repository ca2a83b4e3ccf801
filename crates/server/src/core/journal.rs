//! The thread that puts the records of the journal in order and hands them to its readers
//! (`state/journal.rs`). It starts with the first reader.
use crate::core::server::Server;
use crate::state::gate::Alone;
use crate::state::journal::{AtRest, Place};
use disk::journal::Reader;
use std::sync::{Arc, PoisonError};

/// All gates, at a moment when nothing is handed to the readers: they may come and go. One may be waiting for
/// a disk that hangs. That is waited for outside the gates, and the next turn gives way for a while.
pub(crate) fn enter_at_rest(server: &Server) -> (Alone<'_>, AtRest<'_>) {
    let _wish = server.journal.wish_for_rest();
    loop {
        server.journal.await_turn();
        let all = server.enter_alone();
        // There is one all the same where somebody settles, or where it took long to get the gates.
        if let Some(rest) = server.journal.at_rest() {
            return (all, rest);
        }
    }
}

/// This reader gets all records from here on. Returns its id.
pub(crate) fn attach(
    server: &Server,
    at_rest: (&Alone<'_>, &mut AtRest<'_>),
    reader: Box<dyn Reader>,
) -> std::io::Result<u64> {
    let mut thread = server.journal.thread.lock().unwrap_or_else(PoisonError::into_inner);
    if thread.is_none() {
        let journal = Arc::clone(&server.journal);
        let builder = std::thread::Builder::new().name("sardine-journal".into());
        *thread = Some(builder.spawn(move || journal.work())?);
    }
    Ok(server.journal.attach(at_rest, &server.keyspace, (Place::Last, reader)))
}

/// This reader gets all records up to here, and has made sure of them when this returns: for that nobody
/// waits but the caller. `note` is called at the moment from which on nothing is recorded for it.
pub(crate) fn finish(server: &Server, reader: u64, note: impl FnOnce()) {
    let (all, mut rest) = enter_at_rest(server);
    server.journal.bound((&all, &mut rest), &server.keyspace, reader);
    note();
    drop((all, rest));
    server.journal.settle();
}
