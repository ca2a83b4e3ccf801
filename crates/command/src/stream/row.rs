//! What the rows of commands on streams have in common: each row says only what is particular to it.
use crate::{Acl, Command, Doc, Group};

pub(super) const ROW: Command = Command { acl: Acl::STREAM, doc: ABOUT, ..crate::table::ROW };
/// Of a row's documentation.
pub(super) const ABOUT: Doc = Doc { group: Group::Stream, ..Doc::NEW };
