//! What the rows of commands on streams have in common: each row says only what is particular to it.
//! And the events that several of them publish.
use crate::{Acl, Command, Doc, Group};
use store::Event;

pub(super) const ROW: Command = Command { acl: Acl::STREAM, doc: ABOUT, ..crate::table::ROW };
/// Of a row's documentation.
pub(super) const ABOUT: Doc = Doc { group: Group::Stream, ..Doc::NEW };

pub(super) const XTRIM_EVENT: Event = Event::stream("xtrim").idle();
pub(super) const CONSUMER_CREATED: Event = Event::stream("xgroup-createconsumer").idle().of_groups();
