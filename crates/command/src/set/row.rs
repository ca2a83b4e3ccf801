//! What the rows of commands on sets have in common: each row says only what is particular to it.
//! And the events that several of them publish.
use crate::{Acl, Command, Doc, Group};
use store::Event;

pub(super) const ROW: Command = Command { acl: Acl::SET, doc: ABOUT, ..crate::table::ROW };
/// Of a row's documentation.
pub(super) const ABOUT: Doc = Doc { group: Group::Set, ..Doc::NEW };

pub(super) const SADD_EVENT: Event = Event::set("sadd");
pub(super) const SREM_EVENT: Event = Event::set("srem");
pub(super) const SPOP_EVENT: Event = Event::set("spop");
