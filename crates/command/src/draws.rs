//! Random elements of a hash, set or sorted set with repetition, which a negative count asks for (HRANDFIELD,
//! SRANDMEMBER, ZRANDMEMBER). A count of minus a billion takes a few bytes to ask for and minutes to answer.
//!
//! The command makes the first draws itself. What is left is drawn as the client reads, from a snapshot of
//! the value, so the shard is free meanwhile and memory holds one piece of the reply (`resp::Remainder`). All
//! draws are from the value at the command's moment.
use crate::Call;
use base::random::Random;
use resp::{Enough, Remainder, Reply};
use std::ops::ControlFlow;
use store::{Key, Snapshot, ValueRef};

/// A command makes so many draws itself, unless these fill a piece of the reply before.
const DRAWS_AT_ONCE: u64 = 1000;

/// Makes the first of `count` draws, and returns how many are left.
pub(crate) fn begin(count: u64, reply: &mut Reply, mut draw: impl FnMut(&mut Reply)) -> u64 {
    let mut left = count;
    while left > 0 && count - left < DRAWS_AT_ONCE && !reply.is_due() {
        draw(reply);
        left -= 1;
    }
    left
}

/// Leaves `left` draws for later. `held_bytes` is how many bytes `draw` has allocated.
pub(crate) fn leave<F>(
    call: &mut Call<'_, '_>,
    key: &Key<'_>,
    (left, random): (u64, Random),
    held_bytes: usize,
    draw: F,
) where
    F: FnMut(ValueRef<'_>, &mut Random, &mut Reply) + Send + 'static,
{
    if left == 0 || call.reply.is_full() {
        return;
    }
    if let Some(value) = call.view.snapshot(key) {
        let bytes = size_of::<Draws<F>>() + held_bytes + value.bytes();
        call.reply.leave(Box::new(Draws { value, left, random, bytes, draw }));
    }
}

struct Draws<F> {
    value: Snapshot,
    left: u64,
    random: Random,
    bytes: usize,
    draw: F,
}

impl<F> Remainder for Draws<F>
where
    F: FnMut(ValueRef<'_>, &mut Random, &mut Reply) + Send,
{
    fn write(&mut self, reply: &mut Reply, enough: Enough) -> ControlFlow<()> {
        for _ in 0..self.left.min(enough.elements.max(1)) {
            (self.draw)(self.value.value(), &mut self.random, reply);
            self.left -= 1;
            if reply.out.len() >= enough.bytes || reply.is_full() {
                break;
            }
        }
        if self.left == 0 || reply.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn burden_bytes(&self) -> u64 {
        self.value.burden_bytes()
    }
}
