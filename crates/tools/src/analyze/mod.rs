//! `sardine analyze FILE|redis[s]://HOST`: what data consists of, and what it would take in Sardine. The file
//! may be a dump file, an append-only file of one part, or the manifest of one of several.
//!
//! The data is loaded into a keyspace as a server would hold it, and what that allocates is counted: the
//! figure is measured, not estimated. So the tool takes as much memory as it says; `--sample` reads a part of
//! a live server and multiplies all that it adds up. What keys take is less than all together, because there
//! are nodes above the leaves, and wheels of deadlines beside them.
mod client;
mod json;
mod live;
mod prefix;
mod report;
mod text;
mod tls;
mod url;

use crate::check::{Part, Sort, parts_of, sort_of};
use crate::dump_file::{DumpFile, Facts, Round};
use crate::replay::Replay;
use crate::scratch;
use crate::tally::counted;
use crate::told::{say, tell};
use base::Millis;
use base::reason::reason;
use report::Report;
use server::Clock;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::{BEFORE_ALL, Keyspace, Settings};
pub(crate) use tls::TlsOptions;
use url::Url;

/// So much of a file is sorted at once, as when a server loads it.
const ROUND_BYTES: u64 = 1 << 30;

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) source: String,
    pub(crate) json: bool,
    pub(crate) html: Option<PathBuf>,
    /// Keys a second that are asked of a live server at most.
    pub(crate) rate: u64,
    /// One key in so many is read from a live server.
    pub(crate) sample: u64,
    pub(crate) databases: u16,
    /// As a server has by default.
    pub(crate) shard_bits: u32,
    pub(crate) tls: TlsOptions,
}

pub(crate) fn analyze(options: &Options) -> ExitCode {
    let mut report = Report::default();
    (report.source, report.sample) = (options.source.clone(), 1);
    let done = match Url::parse(&options.source) {
        Some(url) => {
            report.source = format!("{}:{}", url.host, url.port);
            report.sample = options.sample;
            live::read(&url, options, &mut report)
        }
        None if options.source.contains("://") => {
            // It may hold a password.
            report.source = "The address cannot be read".into();
            Err("it is to be redis://[user:password@]HOST[:PORT][/DATABASE], or rediss:// with TLS".into())
        }
        None => read_file(Path::new(&options.source), options, &mut report),
    };
    if let Err(why) = done {
        eprintln!("{}: {why}", report.source);
        return ExitCode::FAILURE;
    }
    let written = options.html.as_ref().map(|path| std::fs::write(path, json::page(&report)));
    match options.json {
        true => say!("{}", json::of(&report)),
        false => tell(format_args!("{}", text::of(&report))),
    }
    match written {
        Some(Err(error)) => {
            eprintln!("The page cannot be written: {}", reason(&error));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Loads all of a file, counts what that takes, and then looks at each key.
fn read_file(path: &Path, options: &Options, report: &mut Report) -> Result<(), String> {
    let now = Clock::real().now();
    let keyspace = scratch::keyspace(options.shard_bits, options.databases);
    let before = pack::counted::thread_bytes();
    let mut replay = Replay::new(&keyspace);
    let facts = match sort_of(path).map_err(|error| reason(&error))? {
        Sort::Manifest => {
            let mut facts = Facts::default();
            for Part { path, sort } in parts_of(path)? {
                let of_part = read_part((&path, sort), &keyspace, BEFORE_ALL, &mut replay)?;
                facts = if of_part.version > 0 { of_part } else { facts };
            }
            facts
        }
        Sort::Dump => read_part((path, Sort::Dump), &keyspace, now, &mut replay)?,
        Sort::Commands => read_part((path, Sort::Commands), &keyspace, BEFORE_ALL, &mut replay)?,
    };
    let settings = Settings::default();
    report.sardine_bytes = (pack::counted::thread_bytes() - before).max(0) as u64;
    report.expired = facts.counts.expired;
    report.source_bytes = facts.text("used-mem").and_then(|bytes| bytes.parse().ok());
    let writer = [("redis", "redis-ver"), ("valkey", "valkey-ver")];
    let writer = writer.iter().find_map(|(name, field)| Some(format!("{name} {}", facts.text(field)?)));
    let writer = writer.unwrap_or("unknown".into());
    report.writer = match (facts.version, replay.count) {
        (0, count) => counted(count, "command"),
        (version, 0) => format!("{writer}, RDB version {version}"),
        (version, count) => format!("{writer}, RDB version {version}, and {}", counted(count, "command")),
    };
    scratch::walk(&keyspace, &settings, now, &mut |found| report.add(found, now, None));
    report.looked_at = report.total.keys;
    Ok(())
}

/// Loads a dump file, with the commands behind it, or a file of commands. Keys of a dump file whose deadline
/// has passed by `now` are left out. What a crash has left half is left out too, and said.
fn read_part(
    (path, sort): (&Path, Sort),
    keyspace: &Keyspace,
    now: Millis,
    replay: &mut Replay<'_>,
) -> Result<Facts, String> {
    let (mut from, mut facts) = (0, Facts::default());
    if sort == Sort::Dump {
        let mut file = DumpFile::open(path)?;
        let shown = |error: disk::rdb::LoadError| error.to_string();
        while file.load_round(keyspace, now, ROUND_BYTES).map_err(shown)? == Round::More {}
        from = file.at();
        facts = file.into_facts();
    }
    let len =
        std::fs::metadata(path).map_err(|error| format!("{}: {}", path.display(), reason(&error)))?.len();
    if from < len
        && let Some(why) = replay.run_file(path, from)?
    {
        eprintln!("{}: {why}: what is behind that is left out", path.display());
    }
    Ok(facts)
}
