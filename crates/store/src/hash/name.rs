//! OBJECT ENCODING's names for hashes.
use crate::entry::Shape;
use pack::pairs;

/// OBJECT ENCODING's name for a hash. It changes in this order only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HashName {
    Listpack,
    /// Some field had a deadline.
    ListpackEx,
    Hashtable,
}

impl HashName {
    pub(crate) fn text(self) -> &'static str {
        match self {
            HashName::Listpack => "listpack",
            HashName::ListpackEx => "listpackex",
            HashName::Hashtable => "hashtable",
        }
    }

    /// The name of a hash inside its entry: its flag says "hashtable".
    pub(crate) fn of_image(shape: Shape, image: &[u8]) -> HashName {
        match shape {
            _ if pairs::is_flagged(image) => HashName::Hashtable,
            Shape::TimedHash => HashName::ListpackEx,
            _ => HashName::Listpack,
        }
    }
}
