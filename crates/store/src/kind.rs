//! The types of values, as TYPE names them, and the error of a command that meets another type than its own.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    String,
    List,
    Hash,
    Set,
    ZSet,
    Stream,
}

impl Kind {
    /// The name of the type that TYPE answers.
    pub fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::List => "list",
            Kind::Hash => "hash",
            Kind::ZSet => "zset",
            Kind::Set => "set",
            Kind::Stream => "stream",
        }
    }
}

/// The key holds a value of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType;
