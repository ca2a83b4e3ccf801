//! Which stripe: all of the arena's, and the one that each thread allocates from. A block is freed in the
//! stripe that it came from, which its extent tells.

use super::directory::STRIPES;
use super::stripe::Stripe;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) static STRIPE: [Stripe; STRIPES] = numbered();

const fn numbered() -> [Stripe; STRIPES] {
    let mut stripes = [const { Stripe::new(STRIPES) }; STRIPES];
    let mut number = 0;
    while number < STRIPES {
        stripes[number].set_number(number);
        number += 1;
    }
    stripes
}

/// The stripe that this thread allocates from, dealt in turn.
pub(super) fn own_stripe() -> &'static Stripe {
    static DEALT: AtomicUsize = AtomicUsize::new(0);
    let index = own_stripe_cell(|own| {
        if own.get() == usize::MAX {
            own.set(DEALT.fetch_add(1, Ordering::Relaxed) % STRIPES);
        }
        own.get()
    });
    &STRIPE[index]
}

/// The number of this thread's stripe; `usize::MAX` before the first is dealt.
pub(super) fn own_stripe_cell<R>(look: impl FnOnce(&Cell<usize>) -> R) -> R {
    thread_local!(static OWN: Cell<usize> = const { Cell::new(usize::MAX) });
    OWN.with(look)
}
