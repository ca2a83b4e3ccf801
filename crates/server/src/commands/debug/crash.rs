//! DEBUG PANIC, ASSERT and SEGFAULT: the faults that a test asks for.
use crate::core::call::ServerCall;
use crate::core::crash_report::report;
use command::{Done, Error};

/// DEBUG PANIC [ALLOCATOR]: a panic; with ALLOCATOR it happens while a lock of the arena is held.
pub(super) fn panic(call: &mut ServerCall<'_>) -> Done {
    match call.args.iter_from(2).next() {
        None => panic!("DEBUG PANIC called"),
        Some(word) if word.eq_ignore_ascii_case(b"allocator") => pack::arena::panic_under_lock(),
        Some(_) => Err(Error::syntax()),
    }
}

/// DEBUG ASSERT: an assertion that fails.
pub(super) fn assert(_: &mut ServerCall<'_>) -> Done {
    let one_equals_two = std::hint::black_box(1) == 2;
    assert!(one_equals_two, "DEBUG ASSERT called");
    Ok(())
}

/// DEBUG SEGFAULT: a fault in memory. The report is written first, because no handler can write one.
pub(super) fn segfault(call: &mut ServerCall<'_>) -> Done {
    use nix::sys::signal::{Signal, raise};
    let worker = call.session.record.worker;
    report(call.server, Some(worker), "by signal 11, which DEBUG SEGFAULT raises");
    // Rust's own handler, which looks for stacks that have run over, steps aside at the first signal.
    while raise(Signal::SIGSEGV).is_ok() {}
    std::process::abort()
}
