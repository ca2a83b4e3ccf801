//! Every fuzzer for some seconds, without nightly: the kept corpus, and random changes of it, on the build
//! with checks. For longer, led by coverage: `cargo xtask fuzz all SECONDS`.
use base::random::Random;
use pack::arena::Arena;
use pack::counted::Counted;
use std::panic::{AssertUnwindSafe, catch_unwind};
use testkit::fuzz::{TARGETS, Target, change, corpus};

/// As in the program: leaves lie in the arena.
#[global_allocator]
static HEAP: Counted<Arena<std::alloc::System>> = Counted(Arena(std::alloc::System));

/// Bytes of changed inputs that each target gets: a second or two.
const BYTES: usize = 1_000_000;
/// An input costs as much as so many bytes, however short it is.
const INPUT_COST: usize = 200;
const SEED: u64 = 1;

#[test]
fn every_target_keeps_inputs_and_takes_those_and_changes_of_them() {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    std::thread::scope(|scope| {
        for part in 0..threads {
            scope.spawn(move || {
                TARGETS.iter().skip(part).step_by(threads).for_each(|(name, run)| fuzz(name, *run))
            });
        }
    });
}

fn fuzz(name: &str, run: Target) {
    let kept = corpus(name).expect("a corpus that can be read");
    assert!(!kept.is_empty(), "{name} keeps no inputs");
    kept.iter().for_each(|input| try_input(name, run, input));
    let mut random = Random::new(SEED);
    let mut bytes = 0;
    while bytes < BYTES {
        let mut pick = || &kept[random.below(kept.len() as u64) as usize][..];
        let (input, other) = (pick(), pick());
        let input = change(input, other, &mut random);
        bytes += input.len() + INPUT_COST;
        try_input(name, run, &input);
    }
}

/// A panic tells the input as a line of the corpus.
fn try_input(name: &str, run: Target, input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| run(input))).is_err() {
        let line: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!("{name} fails on the input\n{line}");
    }
}
