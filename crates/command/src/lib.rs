//! The command table's types and every data command. A command is a `const` value beside the function it
//! names; its family's table lists it. The crate knows no sessions, sockets or locks: a command sees its view
//! of the keyspace, its arguments and its reply.
mod argument;
mod big;
mod call;
mod cursor;
mod draws;
mod effects;
mod error;
mod flags;
mod help;
mod keyspec;
mod lifetime;
mod long_double;
mod request_keys;
mod secret;
mod table;
#[cfg(test)]
mod table_tests;
mod wait;
mod walk;
mod work;

pub mod bits;
pub mod geo;
pub mod hash;
pub mod hyperloglog;
pub mod keys;
pub mod list;
pub mod set;
pub mod stream;
pub mod string;
pub mod zset;

pub use call::{Call, WholeCall};
pub use effects::{Effects, Words};
pub use error::Error;
pub use flags::{Acl, Flags, Group};
pub use help::help_header;
pub use keyspec::{Access, Begin, Find, KeySpec};
pub use request_keys::{FixedKeys, KeyUse, KeyUses, key_positions, key_uses};
pub use secret::{has_secrets, secrets};
pub use table::{
    Arg, ArgKind, Arity, Command, DataRun, Deprecated, Doc, Done, KeysOrAll, Long, LongWhole, Parts, Scope,
    Secret, checked,
};
pub use wait::Wait;
pub use work::LONG_STEPS;

/// The tables of all data families; the server adds its own.
pub const FAMILIES: &[&[&Command<DataRun>]] = &[
    string::COMMANDS,
    bits::COMMANDS,
    geo::COMMANDS,
    hyperloglog::COMMANDS,
    list::COMMANDS,
    set::COMMANDS,
    hash::COMMANDS,
    stream::COMMANDS,
    keys::COMMANDS,
    zset::COMMANDS,
];
