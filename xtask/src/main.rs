//! The project's scripts, all of them: `cargo xtask COMMAND`. `cargo xtask help` lists them; each is
//! explained in the file of its name.
#![allow(clippy::disallowed_macros, reason = "a script prints")]
mod arena;
mod bench;
mod clients;
mod differ;
mod docs;
mod fuzz;
mod histories;
mod kills;
mod peers;
mod power;
mod queues;
mod sanitize;
mod setup;
mod shell;
mod soak;
mod test;
mod tidy;

use clap::Command;
use std::process::ExitCode;

fn command_line() -> Command {
    let command = |name: &'static str, about: &'static str| Command::new(name).about(about);
    let test = "Runs all that a change has to pass: installs what the tests need, then formatting, clippy, tidy and \
                every test";
    Command::new("xtask")
        .bin_name("cargo xtask")
        .about("The project's scripts")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            command("test", test),
            command("setup", "Installs what the tests need; `test` begins with it"),
            command("tidy", "Checks the rules that a machine can check, and prints figures of style"),
            command("docs", "Writes the generated documents anew"),
            bench::command(),
            differ::command(),
            soak::command(),
            histories::command(),
            kills::command(),
            power::command(),
            clients::command(),
            queues::command(),
            command("peers", "Unpacks the servers to compare with into target/peers"),
            fuzz::command(),
            arena::command(),
            command(
                "asan",
                "Runs the tests of pack, net and restless servers under AddressSanitizer, on nightly",
            ),
            command("valgrind", "Runs the tests of the packed structures under valgrind, with fewer cases"),
        ])
}

fn main() -> ExitCode {
    let matches = command_line().get_matches();
    let result = match matches.subcommand() {
        Some(("test", _)) => test::run(),
        Some(("setup", _)) => setup::run(),
        Some(("tidy", _)) => tidy::run(),
        Some(("docs", _)) => docs::run(),
        Some(("bench", matches)) => bench::run(matches),
        Some(("differ", matches)) => differ::run(matches),
        Some(("soak", matches)) => soak::run(matches),
        Some(("histories", matches)) => histories::run(matches),
        Some(("kills", matches)) => kills::run(matches),
        Some(("power", matches)) => power::run(matches),
        Some(("clients", matches)) => clients::run(matches),
        Some(("queues", matches)) => queues::run(matches),
        Some(("peers", _)) => peers::run(),
        Some(("fuzz", matches)) => fuzz::run(matches),
        Some(("arena", matches)) => arena::run(matches),
        Some(("asan", _)) => sanitize::asan(),
        Some(("valgrind", _)) => sanitize::valgrind(),
        _ => Err("a command has no function".to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            if !message.is_empty() {
                eprintln!("xtask: {message}");
            }
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a command line, if anything.
    fn error(line: &str) -> Option<clap::error::ErrorKind> {
        // What stands in quotes is one word.
        let parts = line.split(['"', '\'']).enumerate();
        let words = parts.flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        });
        let words = std::iter::once("xtask").chain(words);
        command_line().try_get_matches_from(words).err().map(|error| error.kind())
    }

    #[test]
    fn the_definition_has_no_contradictions() {
        command_line().debug_assert();
    }

    #[test]
    fn command_lines_of_the_documents_are_understood() {
        let lines = [
            "test",
            "bench",
            "bench --keys 4096 --quick",
            "bench anysize hash --keys 16777216",
            "bench ops sinter sunion --sardine a/b --peer redis=r",
            "bench --sardine-args --requirepass bytes set_words",
            "bench eviction allkeys-lru --threads 2",
            "bench shrink 60 --gb 0.5",
            "bench matrix pgo --full",
            "bench hiccups --seconds 3",
            "differ --checked --restless 7",
            "differ --groups list --help",
            "differ --connections 4 --requests 1000000",
            "differ --journal --streams 10000 --storms 100",
            "soak 0.5 --seed 1",
            "soak 10 --crowd 1000",
            "histories 10 --clients 8",
            "kills",
            "kills --kills 10000 --keep everysec --large",
            "power 1000 --seed 7",
            "clients --jobs 100000",
            "clients --redis",
            "queues",
            "queues bullmq --jobs 1000 --append-only",
            "queues --peer valkey=v/valkey-server asynq --redis",
            "queues --cpu --rounds 9",
            "fuzz all 60",
            "fuzz keep",
            "arena 30",
        ];
        lines.iter().for_each(|line| assert_eq!(error(line), None, "{line}"));
    }

    /// Whatever the documents quote as a whole, without places for other words.
    #[test]
    fn command_lines_that_the_documents_quote_are_understood() {
        let root = shell::root();
        let folders = [root.clone(), root.join("docs"), root.join("docs/decisions")];
        let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
        let pages =
            files.map(|file| file.unwrap().path()).filter(|path| path.extension() == Some("md".as_ref()));
        let texts: Vec<String> = pages.map(|path| std::fs::read_to_string(path).unwrap()).collect();
        let quoted = |text: &str| -> Vec<String> {
            let spans = text.split("`cargo xtask ").skip(1).filter_map(|rest| rest.split('`').next());
            spans.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        let lines: Vec<String> = texts.iter().flat_map(|text| quoted(text)).collect();
        assert!(lines.len() > 80, "{}", lines.len());
        let is_whole = |line: &&String| !line.contains("...") && !line.contains(char::is_uppercase);
        let is_wrong = |line: &&String| {
            use clap::error::ErrorKind::{DisplayHelp, MissingRequiredArgument};
            // A bare name stands for the command.
            error(line).is_some_and(|kind| ![DisplayHelp, MissingRequiredArgument].contains(&kind))
        };
        let wrong: Vec<&String> = lines.iter().filter(is_whole).filter(is_wrong).collect();
        assert_eq!(wrong, Vec::<&String>::new());
    }

    #[test]
    fn other_command_lines_are_refused() {
        let lines = [
            "",
            "tests",
            "tidy x",
            "soak",
            "soak long",
            "fuzz all",
            "fuzz all soon",
            "arena",
            "bench nothing",
        ];
        lines.iter().for_each(|line| assert!(error(line).is_some(), "{line}"));
        let lines =
            ["bench speed --rounds 0", "bench speed --seconds -1", "bench speed --fast", "bench depth x"];
        lines.iter().for_each(|line| assert!(error(line).is_some(), "{line}"));
    }

    #[test]
    fn no_benchmark_takes_a_name_that_it_does_not_know() {
        let bench = bench::command();
        let takes_names =
            |bench: &&Command| bench.get_arguments().any(|argument| argument.get_id() == "names");
        let names: Vec<&str> = bench.get_subcommands().filter(takes_names).map(Command::get_name).collect();
        assert!(names.len() > 20, "{names:?}");
        names.iter().for_each(|name| assert!(error(&format!("bench {name} nonsense")).is_some(), "{name}"));
        let lines = [
            "bench load lrange_600 set",
            "bench bytes hash_one_10k sets_of_8_uuids",
            "bench curves words",
            "bench matrix release",
            "bench speed lrange_100 mset",
            "bench turns incr",
            "bench tls connect",
            "bench ops sunion",
            "bench shrink 60 90",
            "bench eviction scan volatile-ttl",
            "bench sessions publish-waits exec-5",
            "bench long-strings 10k mset get-4m",
            "bench full-cache reads",
            "bench snapshots zsets",
            "bench replay short",
            "bench saving paced full",
            "bench scripts loop workers-function",
            "bench append everysec always",
            "bench replies LRANGE",
            "bench long-commands SUNIONSTORE KEYS",
            "bench instructions hset-small set",
        ];
        lines.iter().for_each(|line| assert_eq!(error(line), None, "{line}"));
    }

    #[test]
    fn every_command_and_benchmark_has_help() {
        use clap::error::ErrorKind::DisplayHelp;
        for line in
            ["--help", "help", "bench -h", "bench help", "bench turns --help", "soak --help", "fuzz --help"]
        {
            assert_eq!(error(line), Some(DisplayHelp), "{line}");
        }
    }
}
