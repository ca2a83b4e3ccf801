//! The commands on lists, but for those that wait (BLPOP and its like), which are not there yet.
//!
//! A list is a tree of packed blocks, ordered by rank, whose nodes count what is below them (`store::List`):
//! either end and any index are found in the same few steps. Searches by value go through the elements one by
//! one.
//!
//! | file | what it holds |
//! |---|---|
//! | `push.rs`, `pop.rs` | elements added and taken at either end; LMPOP |
//! | `range.rs` | elements by index: LINDEX, LLEN, LRANGE, LSET, LTRIM |
//! | `search.rs` | elements by value: LPOS, LREM, LINSERT |
//! | `transfer.rs` | LMOVE, RPOPLPUSH |
//! | `row.rs` | what the rows have in common |
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
    &transfer::BLMOVE,
    &pop::BLMPOP,
    &pop::BLPOP,
    &pop::BRPOP,
    &transfer::BRPOPLPUSH,
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

/// The end that LEFT or RIGHT names; None for any other word.
fn end_named(word: &[u8]) -> Option<End> {
    if is_word(word, "LEFT") {
        Some(End::Head)
    } else if is_word(word, "RIGHT") {
        Some(End::Tail)
    } else {
        None
    }
}
