//! What the rows of commands on sorted sets have in common: each row says only what is particular to it.
use crate::{Acl, Command, Doc, Group};

pub(super) const ROW: Command = Command { acl: Acl::SORTEDSET, doc: ABOUT, ..crate::table::ROW };
/// Of a row's documentation.
pub(super) const ABOUT: Doc = Doc { group: Group::SortedSet, ..Doc::NEW };
