//! Failures of power by hand: `cargo xtask power SEEDS` calls this.
use clap::{Arg, Command, value_parser};
use std::process::ExitCode;
use testkit::kills::power::{Report, run};

fn main() -> ExitCode {
    let number = |name: &'static str| Arg::new(name).long(name).value_parser(value_parser!(u64));
    let matches = Command::new("power")
        .args([
            number("seeds").default_value("100").help("How many"),
            number("seed").default_value("0").help("The first of them"),
        ])
        .get_matches();
    let number = |name: &str| *matches.get_one::<u64>(name).expect("it has a default");
    let (first, mut report, mut found) = (number("seed"), Report::default(), 0);
    for seed in first..first + number("seeds") {
        if let Err(why) = run(seed, &mut report) {
            eprintln!("{why}\n");
            found += 1;
        }
    }
    eprintln!("{report}; {found} seeds have found something");
    if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
