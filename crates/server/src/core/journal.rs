//! The thread that puts the records of the journal in order and hands them to its readers
//! (`state/journal.rs`). It starts with the first reader.
use crate::core::server::Server;
use crate::state::gate::Alone;
use disk::journal::Reader;
use std::sync::{Arc, PoisonError};

/// This reader gets all records from here on. Returns its id. The caller holds all gates.
pub(crate) fn attach(server: &Server, alone: &Alone<'_>, reader: Box<dyn Reader>) -> std::io::Result<u64> {
    let mut thread = server.journal.thread.lock().unwrap_or_else(PoisonError::into_inner);
    if thread.is_none() {
        let journal = Arc::clone(&server.journal);
        let builder = std::thread::Builder::new().name("sardine-journal".into());
        *thread = Some(builder.spawn(move || journal.work())?);
    }
    Ok(server.journal.attach(alone, &server.keyspace, reader))
}
