//! Every error reply, with the exact text the peer sends. One named constructor each.
use std::borrow::Cow;
use store::WrongType;

/// An error reply, its code included, without the leading `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Cow<'static, str>);

impl Error {
    pub fn text(&self) -> &str {
        &self.0
    }
    /// For texts built where they are needed (`format!`), kept in this file's constructors wherever two places send them.
    pub fn custom(text: impl Into<Cow<'static, str>>) -> Error {
        Error(text.into())
    }
    pub fn wrong_type() -> Error {
        Error(Cow::Borrowed("WRONGTYPE Operation against a key holding the wrong kind of value"))
    }
    pub fn syntax() -> Error {
        Error(Cow::Borrowed("ERR syntax error"))
    }
    pub fn not_an_integer() -> Error {
        Error(Cow::Borrowed("ERR value is not an integer or out of range"))
    }
    /// `name` as the client's table name, lower case, subcommands as `client|kill`.
    pub fn wrong_arity(name: &str) -> Error {
        Error(Cow::Owned(format!("ERR wrong number of arguments for '{name}' command")))
    }
}

impl From<WrongType> for Error {
    fn from(_: WrongType) -> Error {
        Error::wrong_type()
    }
}
