//! Kills by hand: `cargo xtask kills` builds Sardine and calls this with `--sardine PROGRAM`.
use clap::{Arg, ArgAction, Command, value_parser};
use std::process::ExitCode;
use testkit::kills::{Keep, Options, run};

fn main() -> ExitCode {
    let options = options();
    eprintln!("seed {}", options.seed);
    match run(&options) {
        Ok(report) => {
            eprintln!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Options {
    let option = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let number = |name: &'static str| option(name, "N").value_parser(value_parser!(u64));
    let matches = Command::new("kills")
        .args([
            option("sardine", "PROGRAM").required(true).help("The server under test"),
            option("keep", "WHAT")
                .default_value("always")
                .value_parser(Keep::ALL.map(|(name, _)| name))
                .help("appendfsync, or a dump file alone"),
            number("kills").default_value("200"),
            number("workers").default_value("2"),
            number("seed").help("Of clients and kills, instead of a new one"),
            Arg::new("large")
                .long("large")
                .action(ArgAction::SetTrue)
                .help("With very many keys and elements"),
        ])
        .get_matches();
    let keep = matches.get_one::<String>("keep").and_then(|name| Keep::ALL.iter().find(|row| row.0 == name));
    let number = |name: &str| matches.get_one::<u64>(name).copied();
    Options {
        server: matches.get_many("sardine").expect("it is required").cloned().collect(),
        kills: number("kills").expect("it has a default"),
        keep: keep.expect("it is one of these").1,
        workers: number("workers").expect("it has a default") as usize,
        seed: number("seed").unwrap_or_else(|| u64::from(std::process::id())),
        is_large: matches.get_flag("large"),
    }
}
