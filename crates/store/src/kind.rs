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

/// Why the text of a string is not edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditError {
    WrongType,
    /// It is long and has another owner, a snapshot for instance, so it would be copied, and the view was
    /// told to leave that to another thread ([`crate::View::leave_copies`]). Nothing is changed.
    WouldCopy,
}

impl From<WrongType> for EditError {
    fn from(_: WrongType) -> EditError {
        EditError::WrongType
    }
}
