//! Clients that keep copies of values are told when these are out of date.
//!
//! ```text
//! RESP3                                    >2 "invalidate" [key ...]
//! RESP2, told in place of another          *3 "message" "__redis__:invalidate" [key ...], if it listens
//! the client to be told has gone, RESP3    >2 "tracking-redir-broken" :its id
//! ```
//!
//! The array is null where everything is to be forgotten. A client that can be told nothing in its protocol
//! is told nothing.
use super::Worker;
use crate::core::mailbox::Message;
use crate::core::tracking::{Invalidation, TrackingFlags};
use resp::{Protocol, Reply};
use std::sync::Arc;

impl Worker<'_> {
    /// Tells clients of this worker, or whoever is to be told in their place.
    pub(super) fn invalidate(&mut self, invalidation: &Invalidation) {
        if invalidation.target != 0 {
            return self.invalidate_target(invalidation);
        }
        for client in &invalidation.clients {
            let Some(id) = self.ids.get(client).copied() else { continue };
            let Some(connection) = self.table.at(id) else { continue };
            let (protocol, record) = (connection.protocol, Arc::clone(&connection.session.record));
            // It may have switched tracking off meanwhile.
            let Some(tracker) = record.tracker.get() else { continue };
            let Some(redirect) = tracker.redirect() else { continue };
            let keys = invalidation.keys_or_null(|| protocol);
            if redirect == 0 {
                if protocol == Protocol::Resp3 {
                    self.push(id, &push_of(&keys));
                }
                continue;
            }
            let worker = self.server.clients().get(&redirect).map(|other| other.worker);
            match worker {
                Some(worker) if worker == self.index => self.invalidate_instead(redirect, &keys),
                Some(worker) => self.server.mailboxes[worker].send(Message::Redirected(redirect, keys)),
                None => {
                    tracker.set_flags(tracker.flags().with(TrackingFlags::BROKEN));
                    if protocol == Protocol::Resp3 {
                        self.push(id, &broken(redirect));
                    }
                }
            }
        }
    }

    /// Tells a client of this worker what each of these others track.
    fn invalidate_target(&mut self, invalidation: &Invalidation) {
        let Invalidation { keys, clients, target } = invalidation;
        // One that was killed is no client any more, though its connection may not have ended yet.
        let is_client = self.server.clients().contains_key(target);
        if is_client && self.ids.contains_key(target) {
            for client in clients {
                let keys = invalidation.keys_or_null(|| self.protocol_of(*client));
                self.invalidate_instead(*target, &keys);
            }
            return;
        }
        // It is another's, or has gone. The workers of those who track find out.
        for client in clients {
            let worker = self.server.clients().get(client).map(|client| client.worker);
            let Some(worker) = worker else { continue };
            let invalidation = Invalidation { keys: keys.clone(), clients: vec![*client], target: 0 };
            self.server.mailboxes[worker].send(Message::Invalidated(invalidation));
        }
    }

    /// The protocol of a client, which may be of another worker; RESP2 where it has left.
    fn protocol_of(&self, client: u64) -> Protocol {
        let record = self.server.clients().get(&client).cloned();
        match record.is_some_and(|record| record.details().is_resp3) {
            true => Protocol::Resp3,
            false => Protocol::Resp2,
        }
    }

    /// Tells a client what is meant for another.
    pub(super) fn invalidate_instead(&mut self, client: u64, keys: &[u8]) {
        let Some(id) = self.ids.get(&client).copied() else { return };
        let Some(connection) = self.table.at(id) else { return };
        if connection.protocol == Protocol::Resp3 {
            self.push(id, &push_of(keys));
        } else if connection.session.record.is_subscribed() {
            let mut reply = Reply::new(Protocol::Resp2);
            reply.array(3);
            reply.bulk(b"message");
            reply.bulk(b"__redis__:invalidate");
            reply.append(keys);
            self.push(id, &reply.out);
        }
    }
}

fn push_of(keys: &[u8]) -> Vec<u8> {
    let mut reply = Reply::new(Protocol::Resp3);
    reply.push(2);
    reply.bulk(b"invalidate");
    reply.append(keys);
    reply.out
}

fn broken(redirect: u64) -> Vec<u8> {
    let mut reply = Reply::new(Protocol::Resp3);
    reply.push(2);
    reply.bulk(b"tracking-redir-broken");
    reply.int(redirect as i64);
    reply.out
}
