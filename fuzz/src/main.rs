//! One program for all fuzzers: `SARDINE_FUZZ` names the function of `testkit::fuzz` that libFuzzer feeds.
#![no_main]
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use testkit::fuzz::{TARGETS, Target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("SARDINE_FUZZ").expect("SARDINE_FUZZ names a target");
    let found = TARGETS.iter().find(|(target, _)| *target == name);
    found.expect("SARDINE_FUZZ names a target that there is").1
});

fuzz_target!(|data: &[u8]| (*TARGET)(data));
