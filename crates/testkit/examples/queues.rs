//! The job queues by hand: `cargo xtask queues` builds Sardine and calls this with `--server NAME=COMMAND`.
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::process::ExitCode;
use std::time::Duration;
use testkit::queues::{Caution, Options, Program, measure, replay, run};

/// What `appendfsync everysec` may lose, and as much again.
const CAUTION: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let matches = command_line().get_matches();
    let result = match () {
        () if matches.get_flag("cpu") => cpu(&matches),
        () if matches.get_flag("scripts") => scripts(&matches),
        () => drive(&matches),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn command_line() -> Command {
    let option = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let number = |name: &'static str| option(name, "N").value_parser(value_parser!(u64));
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    Command::new("queues").args([
        Arg::new("PROGRAM")
            .num_args(0..)
            .value_parser(Program::ALL.map(Program::name))
            .help("Else all three"),
        option("server", "NAME=COMMAND")
            .required(true)
            .action(ArgAction::Append)
            .value_parser(named)
            .help("A server under test, without address and folder; may be repeated"),
        number("jobs").help("Instead of 100000 for BullMQ and 10000 for the others"),
        number("seed").help("Of jobs and kills, instead of a new one"),
        number("workers").default_value("4"),
        number("kills")
            .help("Workers killed with a job in their hands, instead of one for 1000 jobs, or 200"),
        number("rounds").default_value("5").help("Of --cpu and --scripts"),
        flag("append-only").help("With an append-only file, and the server killed too"),
        number("crashes").default_value("3").help("How often the server is killed with --append-only"),
        flag("hasty").help("What the killed have leased is let go at once"),
        flag("cpu").help("What BullMQ costs the servers, with nobody killed"),
        flag("scripts").help("What its scripts cost them by themselves"),
    ])
}

/// `NAME=COMMAND`
fn named(text: &str) -> Result<(String, Vec<String>), String> {
    let (name, command) = text.split_once('=').ok_or("it wants NAME=COMMAND")?;
    Ok((name.to_owned(), command.split_whitespace().map(String::from).collect()))
}

fn servers(matches: &ArgMatches) -> Vec<(String, Vec<String>)> {
    matches.get_many("server").into_iter().flatten().cloned().collect()
}

fn options(matches: &ArgMatches, program: Program, jobs: u64) -> Options {
    let number = |name: &str| matches.get_one::<u64>(name).copied();
    let jobs = number("jobs").unwrap_or(jobs);
    let kills = number("kills").unwrap_or_else(|| (jobs / 1000).clamp(8, 200));
    let crashes = number("crashes").filter(|_| matches.get_flag("append-only"));
    Options {
        program,
        name: String::new(),
        server: Vec::new(),
        jobs,
        seed: number("seed").unwrap_or_else(|| u64::from(std::process::id())),
        workers: number("workers").map_or(4, |workers| workers as usize),
        kills,
        crashes: crashes.unwrap_or(0),
        caution: Caution::Wait(CAUTION),
        is_hasty: matches.get_flag("hasty"),
    }
}

fn drive(matches: &ArgMatches) -> Result<(), String> {
    let named = matches.get_many::<String>("PROGRAM").into_iter().flatten();
    let mut programs: Vec<Program> = named.filter_map(|name| Program::named(name)).collect();
    if programs.is_empty() {
        programs.extend(Program::ALL);
    }
    for program in programs {
        if !program.is_there() {
            return Err(format!("{} is missing: run cargo xtask setup", program.name()));
        }
        let jobs = if program == Program::BullMq { 100_000 } else { 10_000 };
        for (name, server) in servers(matches) {
            let options = Options { name, server, ..options(matches, program, jobs) };
            eprintln!("{} on {}, seed {} ...", program.name(), options.name, options.seed);
            let report = run(&options)?;
            eprintln!("{} on {}: {report}", program.name(), options.name);
        }
    }
    Ok(())
}

fn cpu(matches: &ArgMatches) -> Result<(), String> {
    let rounds = matches.get_one::<u64>("rounds").copied().unwrap_or(1);
    let options = options(matches, Program::BullMq, 20_000);
    let measured = measure(&servers(matches), &options, rounds, |line| eprintln!("{line}"))?;
    let Some(first) = measured.first().map(|first| first.medians()) else { return Ok(()) };
    eprintln!("medians of {rounds} rounds of {} jobs, and the first server's share of them:", options.jobs);
    for its in &measured {
        let [add_us, work_us] = its.medians();
        let [add, work, both] =
            [first[0] / add_us, first[1] / work_us, (first[0] + first[1]) / (add_us + work_us)];
        eprintln!(
            "{:10} add {add_us:6.1} us (x{add:.2})  work {work_us:6.1} us (x{work:.2})  both x{both:.2}",
            its.name
        );
    }
    Ok(())
}

fn scripts(matches: &ArgMatches) -> Result<(), String> {
    let rounds = matches.get_one::<u64>("rounds").copied().unwrap_or(1);
    let options = options(matches, Program::BullMq, 5_000);
    let replayed = replay(&servers(matches), &options, rounds as usize, |line| eprintln!("{line}"))?;
    eprintln!("medians of {rounds} rounds of {} jobs, and the first server's share of them:", options.jobs);
    for (name, figures) in replayed {
        for its in figures {
            let how = format!("{}, {} together", its.phase, its.depth);
            eprintln!("{name:10} {how:22} {:6.1} us a script (x{:.2})", its.cpu_us, its.share);
        }
    }
    Ok(())
}
