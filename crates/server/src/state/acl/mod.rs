//! Users, and what each of them may do.
//!
//! A [`User`] has passwords and one *selector* or more. A [`Selector`] says which commands may run, on which
//! keys, with which channels. A request is allowed if one selector alone allows all of it: its command, every
//! key with what the command does to it, every channel. The first selector, the root, is made by the rules
//! that stand by themselves, each further one by rules in parentheses:
//!
//! ```text
//! ACL SETUSER bob on >secret ~cache:* +@read -keys (%R~stock:* +get)
//!                 |  |       |        |             a second selector: GET of keys stock:*
//!                 |  |       |        commands, by category, less one
//!                 |  |       keys that the root may read and write
//!                 |  a password, of which the SHA-256 digest is kept
//!                 the user can log in
//! ```
//!
//! Rules are applied from left to right, each to what those before it have made (`user`, `selector`,
//! `commands`). They come from ACL SETUSER, from lines `user` of the configuration, or from the file that
//! `aclfile` names (`file`); what ACL LIST and ACL SAVE write is read back as the same user. Names of
//! commands and categories are those of the `catalog`, which is made from the rows of all commands and from
//! the table of those that only Redis has (`absent`).
//!
//! **How workers know.** All users together are one value that never changes, [`Users`]. A change makes the
//! next one and puts it in the place of the present one as a whole ([`Accounts`]); all of an ACL SETUSER
//! happens or nothing. Every worker keeps the users that it goes by. It compares their version behind its
//! gate, when all that it is about to run has arrived, and the worker that made the change waits until all
//! batches that had begun before are done. So when the reply to an ACL SETUSER is sent nothing runs by the
//! old rules any more. No request takes a lock.
//!
//! A session that may do everything, which is what the `default` user may until somebody restricts it, is not
//! looked at at all (`core/modes.rs`).
//!
//! **What was refused** is kept in the `log` for ACL LOG.
pub(crate) mod absent;
mod accounts;
mod catalog;
mod commands;
pub(crate) mod file;
pub(crate) mod log;
mod password;
mod rule;
mod selector;
#[cfg(test)]
mod tests;
mod user;

pub(crate) use accounts::{Accounts, DEFAULT_USER, Users};
pub(crate) use catalog::{Catalog, Known, category};
pub(crate) use password::Passwords;
pub(crate) use rule::{Rules, has_spaces};
pub(crate) use selector::{ChannelUse, Denied, KeyUse, Reason, Selector, Wanted};
pub(crate) use user::User;
