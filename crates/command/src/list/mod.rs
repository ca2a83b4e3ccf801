//! The list family, but for its blocking forms.
mod pop;
mod push;
mod range;
mod row;
mod search;
mod transfer;

use crate::argument::is_word;
use crate::{Command, checked};
use store::End;

pub const COMMANDS: &[&Command] = checked(&[
    &range::LINDEX,
    &search::LINSERT,
    &range::LLEN,
    &transfer::LMOVE,
    &pop::LMPOP,
    &pop::LPOP,
    &search::LPOS,
    &push::LPUSH,
    &push::LPUSHX,
    &range::LRANGE,
    &search::LREM,
    &range::LSET,
    &range::LTRIM,
    &pop::RPOP,
    &transfer::RPOPLPUSH,
    &push::RPUSH,
    &push::RPUSHX,
]);

/// LEFT or RIGHT.
fn end_named(word: &[u8]) -> Option<End> {
    if is_word(word, "LEFT") {
        Some(End::Head)
    } else if is_word(word, "RIGHT") {
        Some(End::Tail)
    } else {
        None
    }
}
