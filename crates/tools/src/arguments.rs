//! The command line: `sardine [file] [--name value ...] [-]`.
//!
//! Read by hand: `--name value value` with names from the table of settings, values that may begin with
//! dashes, and a bare `-`, all as Redis reads them, fit no argument parser. The few words that are not
//! settings stand alone.
use server::Source;

/// What the program is to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Serve(Source),
    /// Only reads the configuration and says what would come of it.
    Check(Source),
    Print(String),
    Dump(Document),
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

pub(crate) fn task(args: &[Vec<u8>]) -> Task {
    let words: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
    match words[..] {
        [b"--check-config"] => Task::Refuse("usage: sardine --check-config FILE [options]".into()),
        [b"--check-config", ..] => Task::Check(Source::from_args(&args[1..])),
        [b"--test-memory", ..] => Task::Refuse(NO_MEMORY_TEST.into()),
        [b"--check-system", ..] => {
            Task::Refuse("sardine does not check the system: nothing here forks".into())
        }
        _ if words.contains(&&b"--sentinel"[..]) => Task::Refuse("sardine has no Sentinel mode".into()),
        [b"-v" | b"--version", ..] => Task::Print(version()),
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

/// One line, in the form that scripts take apart.
fn version() -> String {
    format!(
        "Sardine server v={} sha=00000000:0 malloc={} bits={} build=0\n",
        env!("CARGO_PKG_VERSION"),
        crate::allocator::NAME,
        usize::BITS
    )
}

const NO_MEMORY_TEST: &str =
    "sardine has no --test-memory: memory is tested with the machine to itself, as memtest86 or memtester do";

const HELP: &str = "\
Usage: sardine [/path/to/sardine.conf] [options] [-]
       sardine - (read the configuration from standard input)
       sardine -v or --version
       sardine -h or --help
       sardine --check-config FILE [options] (say what is wrong with it, or has no effect)
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
        task(&args.iter().map(|a| a.as_bytes().to_vec()).collect::<Vec<_>>())
    }

    #[test]
    fn words_that_are_no_settings_stand_alone() {
        assert!(matches!(parse(&["-v"]), Task::Print(text) if text.starts_with("Sardine server v=")));
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
    fn everything_else_is_a_configuration() {
        let Task::Serve(source) = parse(&["/a.conf", "--port", "1", "-"]) else { panic!("not served") };
        assert_eq!(source.file.as_deref(), Some(std::path::Path::new("/a.conf")));
        assert!(source.reads_stdin);
        assert_eq!(source.options, b"port \"1\"");
    }
}
