//! Servers on a disk that fails, tears, forgets and reorders, and whose power fails: some seeds, the first of
//! which have found something (`testkit::kills::power`). For long `cargo xtask power 1000`.
use testkit::kills::power::{Report, run};

const SEEDS: u64 = 10;

#[test]
#[allow(clippy::disallowed_macros, reason = "a run tells its figures")]
fn whatever_a_failure_of_power_leaves_has_all_that_had_to_be_kept() {
    let mut report = Report::default();
    for seed in 0..SEEDS {
        if let Err(why) = run(seed, &mut report) {
            panic!("{why}");
        }
    }
    println!("{report}");
    assert!(report.failed_calls > 0 && report.acknowledged > 0);
}
