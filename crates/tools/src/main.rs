//! The program `sardine`: reads its command line, then serves, runs a tool, or prints what it was asked for.
//! The process that was started becomes the server, unless `daemonize` is on; its log goes to standard output
//! where `logfile` is empty.
#![allow(clippy::disallowed_macros, reason = "the one program: it prints")]
mod allocator;
mod analyze;
mod arguments;
mod check;
mod detach;
mod dump_file;
mod replay;
mod scratch;
mod tally;
mod told;

use arguments::{Document, Task};
use server::{Clock, Config, Log, PidFile, Signals, Source, Supervisor};
use std::io::Read;
use std::process::ExitCode;

fn main() -> ExitCode {
    use std::os::unix::ffi::OsStringExt;
    let args: Vec<Vec<u8>> = std::env::args_os().map(OsStringExt::into_vec).collect();
    let (name, args) = args.split_first().map_or((&[][..], &[][..]), |(name, args)| (&name[..], args));
    match arguments::task(name, args) {
        Task::Print(text) => print(&text),
        Task::Dump(document) => print(&text_of(document)),
        Task::Refuse(text) => fail(&text),
        Task::Check(source) => check(&source),
        Task::Analyze(options) => told::ended(analyze::analyze(&options)),
        Task::CheckFile(path, repair) => told::ended(check::check(&path, repair)),
        Task::Serve(source) => serve(&source),
    }
}

/// Reads a configuration and prints what it says. Zero if a server would start with it, as far as that can be
/// told before it opens anything to write.
fn check(source: &Source) -> ExitCode {
    let config = match source.load_or_tell_all(&mut std::io::stdin()) {
        Ok(config) => config,
        Err(errors) => {
            return fail(&errors.iter().map(|error| error.0.as_str()).collect::<Vec<_>>().join("\n"));
        }
    };
    if let Err(error) = server::examine(&config) {
        return fail(&error.0);
    }
    let mut lines = config.warnings();
    let idle = config.without_effect();
    if !idle.is_empty() {
        lines.push("Accepted without effect:".into());
        lines.extend(idle);
    }
    lines.push("The configuration is good.\n".into());
    print(&lines.join("\n"))
}

/// A reader that has read enough may close the pipe; that is no error.
fn print(text: &str) -> ExitCode {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn text_of(document: Document) -> String {
    match document {
        Document::Commands => server::command_reference(),
        Document::Metrics => server::metrics_reference(),
        Document::Settings => server::settings_reference(),
        Document::SampleFile => server::sample_file(),
    }
}

fn fail(text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::FAILURE
}

fn serve(source: &Source) -> ExitCode {
    // Before any thread is started, so that all of them inherit it.
    let signals = match Signals::block() {
        Ok(signals) => signals,
        Err(error) => return fail(&format!("Cannot block signals: {}", base::reason::reason(&error))),
    };
    let folder = std::env::current_dir().unwrap_or_default();
    let mut stdin = Vec::new();
    let mut config = match source.load(&mut Kept { kept: &mut stdin }) {
        Ok(config) => config,
        Err(error) => return fail(&error.0),
    };
    config.allocator = allocator::NAME;
    // In the foreground still: a process in the background could tell nobody that it has no log.
    let log = match Log::open(&config, Clock::real()) {
        Ok(log) => log,
        Err(error) => return fail(&error.0),
    };
    let goes_to_background = config.daemonize && !Supervisor::is_somebody(config.supervised);
    if goes_to_background && !detach::is_detached() {
        return match detach::start_again(&folder, &stdin) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("Cannot go to the background: {}", base::reason::reason(&error))),
        };
    }
    if goes_to_background {
        detach::settle();
    }
    server::report_crashes();
    run(config, log, signals)
}

/// Standard input, remembered for the process in the background.
struct Kept<'a> {
    kept: &'a mut Vec<u8>,
}

impl Read for Kept<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = std::io::stdin().read(buffer)?;
        self.kept.extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}

/// Serves until something ends it.
fn run(mut config: Config, log: Log, signals: Signals) -> ExitCode {
    let supervisor = Supervisor::find(config.supervised, &log);
    config.supervisor = supervisor.clone();
    introduce(&config, &log);
    let is_background = config.daemonize && supervisor == Supervisor::Nobody;
    let pid_path = config.pidfile.clone();
    if let Err(error) = server::make_room(&mut config, &log) {
        log.warning(&error.0);
        return ExitCode::FAILURE;
    }
    server::map_code();
    // Only once the port is bound: until then the file may belong to another server that has the port.
    let mut pid_file = PidFile::default();
    let is_bound = |log: &Log| pid_file = PidFile::write(pid_path.as_deref(), is_background, log);
    // The log says why it does not start.
    let Ok(running) = server::start_when(config, Clock::real(), log, is_bound) else {
        pid_file.remove(&Log::silent());
        return ExitCode::FAILURE;
    };
    if let Err(error) = signals.end(running.stopper()) {
        pid_file.remove(running.log());
        return fail(&format!("Cannot wait for signals: {}", base::reason::reason(&error)));
    }
    supervisor.loading(running.log());
    if running.load().is_err() {
        pid_file.remove(running.log());
        return ExitCode::FAILURE;
    }
    supervisor.ready(running.log());
    let status = running.wait_then(|log| {
        supervisor.stopping(log);
        pid_file.remove(log);
    });
    u8::try_from(status).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// The first lines of the log.
fn introduce(config: &Config, log: &Log) {
    let (version, bits, pid) = (env!("CARGO_PKG_VERSION"), usize::BITS, std::process::id());
    log.notice("oO0OoO0OoO0Oo Sardine is starting oO0OoO0OoO0Oo");
    log.notice(&format!("Sardine version={version}, bits={bits}, just started, PID: {pid}"));
    match &config.file {
        Some(_) => log.notice("Configuration loaded"),
        None => log.notice(
            "No config file: what the command line and the standard input do not name has its default",
        ),
    }
    log.enter_service();
    config.warnings().iter().for_each(|line| log.warning(line));
    let workers = config.worker_threads;
    log.notice(&format!("Running mode=standalone, port={}, worker-threads={workers}.", config.port));
}
