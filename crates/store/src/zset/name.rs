//! OBJECT ENCODING's names for sorted sets, and what they depend on.
use crate::entry::Shape;

/// When the name changes: `zset-max-listpack-entries` and `-value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZSetLimits {
    pub listpack_entries: u64,
    pub listpack_value_bytes: u64,
}

impl Default for ZSetLimits {
    fn default() -> ZSetLimits {
        ZSetLimits { listpack_entries: 128, listpack_value_bytes: 64 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Listpack,
    Skiplist,
}

impl Encoding {
    pub(super) fn shape(self) -> Shape {
        match self {
            Encoding::Listpack => Shape::ZSetListpack,
            Encoding::Skiplist => Shape::ZSetSkiplist,
        }
    }

    /// The name once this member has come to `len` others.
    pub(super) fn with(self, member: &[u8], len: u64, limits: &ZSetLimits) -> Encoding {
        let is_long = member.len() as u64 > limits.listpack_value_bytes;
        if is_long || len + 1 > limits.listpack_entries { Encoding::Skiplist } else { self }
    }

    /// A score as Redis would keep it: in a listpack a zero becomes the integer 0, which has no sign.
    pub(super) fn kept(self, score: f64) -> f64 {
        if self == Encoding::Listpack { score + 0.0 } else { score }
    }
}
