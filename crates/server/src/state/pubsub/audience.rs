//! Which of one worker's connections listen to what, and since which subscription.
use super::space::give_room_back;
use super::{Name, Topic};
use base::hash::Map;
use net::ConnId;
use std::collections::BTreeMap;

/// One worker's connections that listen.
#[derive(Default)]
pub(super) struct Audience {
    channels: Map<Name, Listeners>,
    patterns: Map<Name, Listeners>,
    shards: Map<Name, Listeners>,
}

/// Connections, each with the number of its subscription.
enum Listeners {
    /// Most channels have one listener.
    One(ConnId, u64),
    /// A tree, so that each of ten thousand can leave quickly.
    Many(BTreeMap<ConnId, u64>),
}

impl Audience {
    /// This connection listens.
    pub(super) fn add(&mut self, topic: Topic, name: &Name, conn: ConnId, number: u64) {
        let table = self.table(topic);
        match table.get_mut(name) {
            None => {
                table.insert(Name::clone(name), Listeners::One(conn, number));
            }
            Some(listeners) => listeners.add(conn, number),
        }
    }

    /// This connection listens no more.
    pub(super) fn remove(&mut self, topic: Topic, name: &Name, conn: ConnId) {
        let table = self.table(topic);
        let is_last = match table.get_mut(name) {
            None => false,
            Some(Listeners::One(only, _)) => *only == conn,
            Some(Listeners::Many(all)) => {
                all.remove(&conn);
                all.is_empty()
            }
        };
        if is_last {
            table.remove(name);
            give_room_back(table);
        }
    }

    /// Appends those who listen by a subscription up to `last`.
    pub(super) fn find(&mut self, topic: Topic, name: &Name, last: u64, into: &mut Vec<ConnId>) {
        match self.table(topic).get(name) {
            None => {}
            Some(Listeners::One(conn, number)) => into.extend((*number <= last).then_some(*conn)),
            Some(Listeners::Many(all)) => {
                into.extend(all.iter().filter(|(_, number)| **number <= last).map(|(conn, _)| *conn));
            }
        }
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

impl Listeners {
    fn add(&mut self, conn: ConnId, number: u64) {
        match self {
            Listeners::One(other, before) => {
                *self = Listeners::Many(BTreeMap::from([(*other, *before), (conn, number)]));
            }
            Listeners::Many(all) => {
                all.insert(conn, number);
            }
        }
    }
}
