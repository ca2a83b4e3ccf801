//! The command line: `sardine [file] [--name value ...] [-]`.
//!
//! Read by hand: `--name value value` with names from the table of settings, values that may begin with
//! dashes, and a bare `-`, all as Redis reads them, fit no argument parser. The few words that are not
//! settings stand alone. The tools have ordinary command lines behind their names (`sardine check FILE`),
//! which clap reads.
use crate::analyze::{Options, TlsOptions};
use crate::check::Repair;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use server::Source;
use std::path::PathBuf;

/// What the program is to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Serve(Source),
    /// Only reads the configuration and says what would come of it.
    Check(Source),
    Print(String),
    Dump(Document),
    /// Checks a dump file or an append-only file.
    CheckFile(PathBuf, Repair),
    /// Says what data consists of.
    Analyze(Options),
    /// Ends with this message: the words ask for something that the program does not do.
    Refuse(String),
}

/// What is generated from the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Document {
    Commands,
    Metrics,
    Settings,
    SampleFile,
}

/// The name under which the program was called decides first: it may stand where
/// redis-check-rdb or redis-check-aof stood.
pub(crate) fn task(name: &[u8], args: &[Vec<u8>]) -> Task {
    let called = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let words: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
    match (called, &words[..]) {
        (b"redis-check-rdb" | b"redis-check-aof", [b"-v" | b"--version", ..]) => {
            return Task::Print(version(called));
        }
        (b"redis-check-rdb" | b"redis-check-aof", _) => {
            return match tool(&[&[b"check".to_vec()], args].concat()) {
                Task::CheckFile(path, repair) => Task::CheckFile(path, as_of_redis(repair)),
                other => other,
            };
        }
        (b"redis-sentinel", _) => return Task::Refuse(NO_SENTINEL.into()),
        _ => {}
    }
    match words[..] {
        [b"--check-config"] => Task::Refuse("usage: sardine --check-config FILE [options]".into()),
        [b"--check-config", ..] => Task::Check(Source::from_args(&args[1..])),
        [b"--test-memory", ..] => Task::Refuse(NO_MEMORY_TEST.into()),
        [b"--check-system", ..] => {
            Task::Refuse("sardine does not check the system: nothing here forks".into())
        }
        _ if words.contains(&&b"--sentinel"[..]) => Task::Refuse(NO_SENTINEL.into()),
        [b"check" | b"analyze", ..] => tool(args),
        [b"-v" | b"--version", ..] => Task::Print(version(called)),
        [b"-h" | b"--help", ..] => Task::Print(HELP.into()),
        [b"--dump-docs", b"commands"] => Task::Dump(Document::Commands),
        [b"--dump-docs", b"metrics"] => Task::Dump(Document::Metrics),
        [b"--dump-docs", b"settings"] => Task::Dump(Document::Settings),
        [b"--dump-docs", b"sample"] => Task::Dump(Document::SampleFile),
        [b"--dump-docs", ..] => {
            Task::Refuse("usage: sardine --dump-docs commands|metrics|settings|sample".into())
        }
        _ => Task::Serve(Source::from_args(args)),
    }
}

/// What the words of a tool ask for.
fn tool(args: &[Vec<u8>]) -> Task {
    use std::os::unix::ffi::OsStringExt;
    let words = args.iter().map(|word| std::ffi::OsString::from_vec(word.clone()));
    let words = std::iter::once("sardine".into()).chain(words);
    let matches = match tools().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() => return Task::Refuse(error.to_string().trim_end().into()),
        Err(help) => return Task::Print(help.to_string()),
    };
    match matches.subcommand() {
        Some(("check", matches)) => Task::CheckFile(path(matches), repair(matches)),
        Some(("analyze", matches)) => Task::Analyze(options(matches)),
        _ => Task::Refuse(HELP.into()),
    }
}

/// Redis asks before it cuts off a broken end, and not before it goes back to a time.
fn as_of_redis(repair: Repair) -> Repair {
    Repair { goes_back_unasked: !repair.fixes, ..repair }
}

fn path(matches: &ArgMatches) -> PathBuf {
    matches.get_one::<PathBuf>("FILE").cloned().unwrap_or_default()
}

fn repair(matches: &ArgMatches) -> Repair {
    let until_s = matches.get_one("to-timestamp").copied();
    Repair { fixes: matches.get_flag("fix"), until_s, ..Repair::default() }
}

fn options(matches: &ArgMatches) -> Options {
    Options {
        source: matches.get_one::<String>("SOURCE").cloned().unwrap_or_default(),
        json: matches.get_flag("json"),
        html: matches.get_one::<PathBuf>("html").cloned(),
        rate: matches.get_one("rate").copied().unwrap_or(RATE),
        sample: matches.get_one("sample").copied().unwrap_or(1),
        databases: matches.get_one("databases").copied().unwrap_or(DATABASES),
        shard_bits: SHARD_BITS,
        tls: TlsOptions {
            authorities: matches.get_one("cacert").cloned(),
            certificate: matches.get_one("cert").cloned(),
            key: matches.get_one("key").cloned(),
        },
    }
}

/// Keys a second that are asked of a live server.
const RATE: u64 = 10_000;
/// What a server has by default.
const DATABASES: u16 = 16;
const SHARD_BITS: u32 = 8;

fn analyze_command() -> Command {
    let number = |name: &'static str, what: &'static str| {
        Arg::new(name).long(name).value_name(what).value_parser(value_parser!(u64).range(1..=1_000_000_000))
    };
    let databases = Arg::new("databases").long("databases").value_name("COUNT");
    let file = |name: &'static str| {
        Arg::new(name).long(name).value_name("FILE").value_parser(value_parser!(PathBuf))
    };
    Command::new("analyze")
        .about("Says what data consists of, and measures what it takes in Sardine by loading it.")
        .after_help(
            "A live server is read with SCAN, OBJECT, MEMORY USAGE, PTTL and DUMP. What it holds is loaded into \
             this process, which takes as much memory as it then says; --sample takes less.",
        )
        .arg(Arg::new("SOURCE").required(true).help(
            "A dump file, an append-only file or its manifest, or redis://[user:pass@]HOST[:PORT][/DB], rediss:// \
             with TLS",
        ))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Prints JSON"))
        .arg(
            Arg::new("html")
                .long("html")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Writes a page with a treemap, which needs nothing else"),
        )
        .arg(number("rate", "KEYS").help("Keys a second at most, of a live server (default 10000)"))
        .arg(number("sample", "N").help("Reads one key in N of a live server, and multiplies all that is added up"))
        .arg(
            databases
                .value_parser(value_parser!(u16).range(1..))
                .help("How many databases the keys may be in (default 16)"),
        )
        .arg(file("cacert").help("Who may have signed the certificate of a rediss:// server (PEM; else the system's)"))
        .arg(file("cert").help("The certificate that is shown to it, with --key"))
        .arg(file("key").help("The key of that"))
}

/// The tools, each behind the name of the program.
fn tools() -> Command {
    let file = Arg::new("FILE").required(true).value_parser(value_parser!(PathBuf));
    let check = Command::new("check")
        .about(
            "Checks a dump file (RDB): every value is decoded, and the checksum compared. Or an append-only file: \
             its manifest with all that it lists, or one of its files.",
        )
        .after_help("The exit status is 0 if the file is good, or was made so, and 1 if it is not.")
        .arg(file.help("A dump file, manifest or append-only file of any Redis, Valkey or Sardine"))
        .arg(
            Arg::new("fix")
                .long("fix")
                .action(ArgAction::SetTrue)
                .help("Cuts off what is wrong at the end of the last file of commands, when you have agreed"),
        )
        .arg(
            Arg::new("to-timestamp")
                .long("to-timestamp")
                .alias("truncate-to-timestamp")
                .value_name("SECONDS")
                .value_parser(value_parser!(i64))
                .help("Cuts off what was written later (files with aof-timestamp-enabled)"),
        );
    Command::new("sardine")
        .disable_help_subcommand(true)
        .subcommand_required(true)
        .subcommand(check)
        .subcommand(analyze_command())
}

/// One line, in the form that scripts take apart. They want to know what the server can do, so the first
/// number is the version of Redis that it behaves like, as in INFO; its own is at the end.
fn version(called: &[u8]) -> String {
    let program = match called {
        b"redis-server" => "Redis server",
        b"redis-check-rdb" => "redis-check-rdb",
        b"redis-check-aof" => "redis-check-aof",
        _ => "Sardine server",
    };
    format!(
        "{program} v={} sha=00000000:0 malloc={} bits={} build=0 sardine={}\n",
        server::REDIS_VERSION,
        crate::allocator::NAME,
        usize::BITS,
        env!("CARGO_PKG_VERSION")
    )
}

const NO_SENTINEL: &str = "sardine has no Sentinel mode";
const NO_MEMORY_TEST: &str =
    "sardine has no --test-memory: memory is tested with the machine to itself, as memtest86 or memtester do";

const HELP: &str = "\
Usage: sardine [/path/to/sardine.conf] [options] [-]
       sardine - (read the configuration from standard input)
       sardine -v or --version
       sardine -h or --help
       sardine --check-config FILE [options] (say what is wrong with it, or has no effect)
       sardine check FILE (check a dump file or an append-only file)
       sardine analyze FILE|redis[s]://HOST[:PORT] (what data consists of, and takes here)
       sardine --dump-docs commands|metrics|settings|sample

An option is a setting: `--name value`. docs/settings.md lists them all.

Examples:
       sardine (run the server with default settings)
       echo 'timeout 60' | sardine -
       sardine /etc/sardine/6379.conf
       sardine --port 7777
       sardine /etc/mysardine.conf --loglevel verbose -
";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Task {
        task(b"sardine", &args.iter().map(|a| a.as_bytes().to_vec()).collect::<Vec<_>>())
    }

    #[test]
    fn words_that_are_no_settings_stand_alone() {
        assert!(matches!(parse(&["-v"]), Task::Print(text) if text.starts_with("Sardine server v=8.")));
        assert!(matches!(parse(&["--help"]), Task::Print(text) if text.contains("--port 7777")));
        assert_eq!(parse(&["--dump-docs", "settings"]), Task::Dump(Document::Settings));
        assert!(matches!(parse(&["--dump-docs"]), Task::Refuse(_)));
        assert!(matches!(parse(&["--version", "2"]), Task::Print(_)));
        assert!(matches!(parse(&["--port", "1", "--version", "2"]), Task::Serve(_)));
        for refused in ["--test-memory", "--check-system", "--sentinel", "--check-config"] {
            assert!(matches!(parse(&[refused]), Task::Refuse(_)), "{refused}");
        }
    }

    #[test]
    fn a_tool_is_called_by_its_name_or_by_that_of_redis() {
        let checks = Task::CheckFile("a.rdb".into(), Repair::default());
        assert_eq!(parse(&["check", "a.rdb"]), checks);
        let unasked = Repair { goes_back_unasked: true, ..Repair::default() };
        let checked = task(b"/usr/bin/redis-check-rdb", &[b"a.rdb".to_vec()]);
        assert_eq!(checked, Task::CheckFile("a.rdb".into(), unasked));
        let repair = Repair { fixes: true, until_s: Some(5), ..Repair::default() };
        let words = ["--truncate-to-timestamp", "5", "--fix", "a"].map(|word| word.as_bytes().to_vec());
        assert_eq!(task(b"redis-check-aof", &words), Task::CheckFile("a".into(), repair));
        let goes_back = Repair { fixes: false, goes_back_unasked: true, ..repair };
        let words = [&words[..2], &words[3..]].concat();
        assert_eq!(task(b"redis-check-aof", &words), Task::CheckFile("a".into(), goes_back));
        let version = task(b"redis-check-aof", &[b"-v".to_vec()]);
        assert!(matches!(version, Task::Print(text) if text.starts_with("redis-check-aof v=8.")));
        assert!(matches!(task(b"redis-sentinel", &[]), Task::Refuse(_)));
        let version = task(b"/usr/bin/redis-server", &[b"--version".to_vec()]);
        assert!(matches!(version, Task::Print(text) if text.starts_with("Redis server v=8.")));
        assert!(matches!(parse(&["check"]), Task::Refuse(text) if text.contains("FILE")));
        for tool in ["check", "analyze"] {
            let usage = format!("Usage: sardine {tool} ");
            assert!(matches!(parse(&[tool, "--help"]), Task::Print(text) if text.contains(&usage)), "{tool}");
            assert!(matches!(parse(&[tool]), Task::Refuse(text) if text.contains(&usage)), "{tool}");
        }
    }

    #[test]
    fn everything_else_is_a_configuration() {
        let Task::Serve(source) = parse(&["/a.conf", "--port", "1", "-"]) else { panic!("not served") };
        assert_eq!(source.file.as_deref(), Some(std::path::Path::new("/a.conf")));
        assert!(source.reads_stdin);
        assert_eq!(source.options, b"port \"1\"");
    }
}
