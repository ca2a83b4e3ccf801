//! Asking for memory ahead of its use.

/// Asks for the cache line at `address`, which need not be valid.
#[inline(always)]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, and SSE is part of x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Asks for the cache line at `address`, which need not be valid, to write to it.
#[inline(always)]
pub fn prefetch_to_write(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults and changes nothing. Processors without this one take it for a NOP.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// So many bytes are asked for one line after the other by whoever goes over them anyway.
const WALK_BYTES_MIN: usize = 320;

/// Asks for all of the bytes that a walk is about to go over, if they are many. A walk that has to read a
/// length to know where the next one is waits for each cache line, because it cannot ask for two at a time.
#[inline(always)]
pub(crate) fn prefetch_walk(bytes: &[u8]) {
    if bytes.len() >= WALK_BYTES_MIN {
        prefetch_all(bytes);
    }
}

#[inline(never)]
fn prefetch_all(bytes: &[u8]) {
    bytes.iter().step_by(64).for_each(|byte| prefetch(byte));
}

/// Asks for all cache lines of a value that will soon be looked at.
#[inline(always)]
pub fn prefetch_value<T>(value: &T) {
    let first = (&raw const *value).cast::<u8>();
    for offset in (0..size_of::<T>()).step_by(64) {
        prefetch(first.wrapping_add(offset));
    }
}
