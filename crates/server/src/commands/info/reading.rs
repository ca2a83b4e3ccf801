//! What metrics are read from: the server, the time, and sums that several rows show. Such a sum is made once
//! for each INFO, when the first row asks for it, so that a section which does not show it does not pay for
//! it and rows of one answer agree.
use crate::commands::memory::Figures;
use crate::core::server::Server;
use crate::state::config::Config;
use base::Millis;
use std::cell::OnceCell;
use std::sync::Arc;
use store::ShardStats;

pub(super) struct Reading<'s> {
    pub(super) server: &'s Server,
    pub(super) now: Millis,
    pub(super) config: Arc<Config>,
    figures: OnceCell<Figures>,
    keyspace: OnceCell<ShardStats>,
}

impl<'s> Reading<'s> {
    pub(super) fn new(server: &'s Server, now: Millis) -> Reading<'s> {
        Reading { server, now, config: server.config(), figures: OnceCell::new(), keyspace: OnceCell::new() }
    }

    /// Where memory goes. It is summed up from the records of all clients, among others.
    pub(super) fn memory(&self) -> &Figures {
        self.figures.get_or_init(|| Figures::of(self.server))
    }

    /// What the shards have counted. Their locks are taken one after the other.
    pub(super) fn keyspace(&self) -> &ShardStats {
        self.keyspace.get_or_init(|| self.server.keyspace.stats())
    }
}
