//! A name that is kept: one of up to 22 bytes, as most are, lies in the value itself, which takes 24; a
//! longer one has an allocation of its own.
use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// So many bytes lie in the value.
pub const INLINE_MAX: usize = 22;

/// See the file's opener.
#[derive(Clone)]
pub struct Name(Place);

#[derive(Clone)]
enum Place {
    Inline { len: u8, bytes: [u8; INLINE_MAX] },
    Boxed(Box<[u8]>),
}

const _: () = assert!(size_of::<Name>() == 24);

impl From<&[u8]> for Name {
    #[inline]
    fn from(name: &[u8]) -> Name {
        if name.len() > INLINE_MAX {
            return Name(Place::Boxed(name.into()));
        }
        let mut bytes = [0; INLINE_MAX];
        bytes[..name.len()].copy_from_slice(name);
        Name(Place::Inline { len: name.len() as u8, bytes })
    }
}

impl Deref for Name {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Place::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Place::Boxed(name) => name,
        }
    }
}

/// A table with names as keys is asked for bytes.
impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        **self == **other
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Map;

    #[test]
    fn names_of_every_length_are_their_bytes_and_found_by_them() {
        let bytes: Vec<u8> = (0..60).collect();
        let mut map: Map<Name, usize> = Map::default();
        for len in 0..=bytes.len() {
            let name = Name::from(&bytes[..len]);
            assert_eq!(*name, bytes[..len]);
            assert_eq!(*name.clone(), bytes[..len]);
            map.insert(name, len);
        }
        for len in 0..=bytes.len() {
            assert_eq!(map.get(&bytes[..len]), Some(&len));
        }
    }
}
