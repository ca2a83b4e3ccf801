//! What the rows of commands on HyperLogLogs have in common: each row says only what is particular to it.
//! And the events that several of them publish.
use crate::{Acl, Command, Doc, Group};
use store::Event;

pub(super) const ROW: Command = Command { acl: Acl::HYPERLOGLOG, doc: ABOUT, ..crate::table::ROW };
/// Of a row's documentation.
pub(super) const ABOUT: Doc = Doc { group: Group::Hyperloglog, ..Doc::NEW };

pub(super) const PFADD_EVENT: Event = Event::string("pfadd");
