//! `sardine`: the server. It is the process that was started; standard output carries its log.
#![allow(clippy::disallowed_macros)] // The one program: it prints.
mod allocator;
mod arguments;

use arguments::{Document, Task};
use server::{Clock, Config, Log, Signals, Source};
use std::process::ExitCode;

fn main() -> ExitCode {
    use std::os::unix::ffi::OsStringExt;
    let args: Vec<Vec<u8>> = std::env::args_os().skip(1).map(OsStringExt::into_vec).collect();
    match arguments::task(&args) {
        Task::Print(text) => print(&text),
        Task::Dump(document) => print(&text_of(document)),
        Task::Refuse(text) => fail(&text),
        Task::Check(source) => check(&source),
        Task::Serve(source) => serve(&source),
    }
}

/// Zero if a server would start with this configuration, as far as its text says.
fn check(source: &Source) -> ExitCode {
    let config = match source.load(&mut std::io::stdin()) {
        Ok(config) => config,
        Err(error) => return fail(&error.0),
    };
    let mut lines = config.warnings();
    let idle = config.without_effect();
    if !idle.is_empty() {
        lines.push("Accepted without effect:".into());
        lines.extend(idle);
    }
    lines.push("The configuration is good.\n".into());
    print(&lines.join("\n"))
}

/// Whoever has read enough may close the pipe.
fn print(text: &str) -> ExitCode {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn text_of(document: Document) -> String {
    match document {
        Document::Commands => server::command_reference(),
        Document::Settings => server::settings_reference(),
        Document::SampleFile => server::sample_file(),
    }
}

fn fail(text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::FAILURE
}

fn serve(source: &Source) -> ExitCode {
    // First of all, so that every thread there will ever be inherits it.
    let signals = match Signals::block() {
        Ok(signals) => signals,
        Err(error) => return fail(&format!("Cannot block signals: {error}")),
    };
    let mut config = match source.load(&mut std::io::stdin()) {
        Ok(config) => config,
        Err(error) => return fail(&error.0),
    };
    config.allocator = allocator::NAME;
    let log = match Log::open(&config, Clock::real()) {
        Ok(log) => log,
        Err(error) => return fail(&format!("Can't open the log file: {error}")),
    };
    introduce(&config, &log);
    server::make_room(&mut config, &log);
    // Why it does not start is in the log.
    let Ok(running) = server::start(config, Clock::real(), log) else { return ExitCode::FAILURE };
    if let Err(error) = signals.end(running.stopper()) {
        return fail(&format!("Cannot wait for signals: {error}"));
    }
    match u8::try_from(running.wait()) {
        Ok(status) => ExitCode::from(status),
        Err(_) => ExitCode::FAILURE,
    }
}

/// The first lines of the log.
fn introduce(config: &Config, log: &Log) {
    let (version, bits, pid) = (env!("CARGO_PKG_VERSION"), usize::BITS, std::process::id());
    log.notice("oO0OoO0OoO0Oo Sardine is starting oO0OoO0OoO0Oo");
    log.notice(&format!("Sardine version={version}, bits={bits}, just started, PID: {pid}"));
    match &config.file {
        Some(_) => log.notice("Configuration loaded"),
        None => {
            log.notice("No config file: every setting that the command line does not name has its default")
        }
    }
    log.enter_service();
    config.warnings().iter().for_each(|line| log.warning(line));
    let workers = config.worker_threads;
    log.notice(&format!("Running mode=standalone, port={}, worker-threads={workers}.", config.port));
}
