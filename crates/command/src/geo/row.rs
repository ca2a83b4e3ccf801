//! What the rows of commands on points have in common: each row says only what is particular to it.
use crate::{Acl, Command, Doc, Group};

pub(super) const ROW: Command = Command { acl: Acl::GEO, doc: ABOUT, ..crate::table::ROW };
/// Of a row's documentation.
pub(super) const ABOUT: Doc = Doc { group: Group::Geo, ..Doc::NEW };
