//! What the rows of commands on lists have in common: each row says only what is particular to it.
//! And the events that several of them publish.
use crate::{Acl, Command, Doc, Group};
use store::{End, Event};

pub(super) const ROW: Command = Command { acl: Acl::LIST, doc: ABOUT, ..crate::table::ROW };
/// Of a row's documentation.
pub(super) const ABOUT: Doc = Doc { group: Group::List, ..Doc::NEW };

/// What is published of a list that got elements at this end, and of one that lost some there.
pub(super) fn pushed_event(end: End) -> Event {
    Event::list(if end == End::Head { "lpush" } else { "rpush" })
}

pub(super) fn popped_event(end: End) -> Event {
    Event::list(if end == End::Head { "lpop" } else { "rpop" }).idle()
}
