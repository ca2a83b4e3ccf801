//! What the rows of commands on keys of any type have in common: each row says only what is particular to it.
use crate::{Acl, Command, Doc, Group};

pub(super) const ROW: Command = Command { acl: Acl::KEYSPACE, doc: ABOUT, ..crate::table::ROW };
/// Of a row's documentation.
pub(super) const ABOUT: Doc = Doc { group: Group::Generic, ..Doc::NEW };
