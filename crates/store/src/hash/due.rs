//! When fields of a hash fall due, whether the hash lies inside its entry or outside.
use crate::entry::{Meta, Shape};
use crate::expiry::notes::NO_DEADLINE;
use crate::hash::image::image_due;
use crate::value::Value;

/// When the first field of a hash falls due, as a note; `NO_DEADLINE` for any other value.
#[inline]
pub(crate) fn fields_due(meta: Meta, payload: &[u8], outside: Option<&Value>) -> u64 {
    match (meta.shape(), outside) {
        (Shape::TimedHash, _) => image_due(meta.value(payload)),
        (Shape::HashTree, Some(Value::Hash(tree))) => tree.due().unwrap_or(NO_DEADLINE),
        _ => NO_DEADLINE,
    }
}
