//! A function that a library has registered.
use crate::flags::Flags;
use lua::Kept;
use std::collections::BTreeSet;

/// A function of a library.
pub struct Registered {
    pub(crate) name: String,
    pub(crate) description: Option<Vec<u8>>,
    pub(crate) flags: Flags,
    pub(crate) callback: Kept,
}

/// What a library that is loading has registered so far.
#[derive(Default)]
pub(crate) struct Loading {
    pub(crate) functions: Vec<Registered>,
    pub(crate) names: BTreeSet<String>,
}

impl Registered {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn description(&self) -> Option<&[u8]> {
        self.description.as_deref()
    }

    pub fn flags(&self) -> Flags {
        self.flags
    }
}
