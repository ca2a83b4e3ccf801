//! What the rows of commands on hashes have in common: each row says only what is particular to it.
//! And the events that several of them publish.
use crate::{Acl, Command, Doc, Group};
use store::Event;

pub(super) const ROW: Command = Command { acl: Acl::HASH, doc: ABOUT, ..crate::table::ROW };
/// Of a row's documentation.
pub(super) const ABOUT: Doc = Doc { group: Group::Hash, ..Doc::NEW };

pub(super) const HSET_EVENT: Event = Event::hash("hset");
pub(super) const HDEL_EVENT: Event = Event::hash("hdel");
pub(super) const HEXPIRE_EVENT: Event = Event::hash("hexpire");
pub(super) const HPERSIST_EVENT: Event = Event::hash("hpersist");
