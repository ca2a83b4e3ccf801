//! The list family, but for its blocking forms.
mod pop;
mod push;
mod range;
mod search;
mod transfer;

use crate::argument::is_word;
use crate::{Command, checked};
use base::Item;
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

/// An element to look for: its text is read as a number once, not once for each element of the list.
struct Needle<'a> {
    text: &'a [u8],
    number: Option<i64>,
}

impl<'a> Needle<'a> {
    fn new(text: &'a [u8]) -> Needle<'a> {
        Needle { text, number: base::text::parse_i64(text) }
    }

    fn is(&self, item: Item<'_>) -> bool {
        match item {
            Item::Bytes(bytes) => bytes == self.text,
            Item::Int(n) => self.number == Some(n),
        }
    }
}
