//! Which of one worker's connections listen to what, and since which subscription.
use super::few::Few;
use super::space::give_room_back;
use super::{Name, Topic};
use base::hash::Map;
use net::ConnId;

/// One worker's connections that listen.
#[derive(Default)]
pub(super) struct Audience {
    channels: Map<Name, Listeners>,
    patterns: Map<Name, Listeners>,
    shards: Map<Name, Listeners>,
}

/// Connections, each with the number of its subscription.
type Listeners = Few<ConnId, u64>;

impl Audience {
    /// This connection listens.
    pub(super) fn add(&mut self, topic: Topic, name: &Name, conn: ConnId, number: u64) {
        self.table(topic).entry(Name::clone(name)).or_default().insert(conn, number);
    }

    /// This connection listens no more.
    pub(super) fn remove(&mut self, topic: Topic, name: &Name, conn: ConnId) {
        let table = self.table(topic);
        let Some(listeners) = table.get_mut(name) else { return };
        listeners.remove(conn);
        if listeners.is_empty() {
            table.remove(name);
            give_room_back(table);
        }
    }

    /// Appends those who listen by a subscription up to `last`.
    pub(super) fn find(&mut self, topic: Topic, name: &Name, last: u64, into: &mut Vec<ConnId>) {
        let all = self.table(topic).get(name).into_iter().flat_map(Listeners::iter);
        into.extend(all.filter(|(_, number)| **number <= last).map(|(conn, _)| conn));
    }

    /// Whether nobody listens to anything.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.patterns.is_empty() && self.shards.is_empty()
    }

    fn table(&mut self, topic: Topic) -> &mut Map<Name, Listeners> {
        match topic {
            Topic::Channel => &mut self.channels,
            Topic::Pattern => &mut self.patterns,
            Topic::Shard => &mut self.shards,
        }
    }
}
