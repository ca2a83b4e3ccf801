//! `cargo xtask bench`: the commands behind every figure that the project quotes. Each starts the servers itself, on
//! loopback, ends them, and compares with real peers in the same run.
//!
//! | name | what it shows |
//! |---|---|
//! | `bytes [case ...]` | RSS per element of each data set, one fresh process a case |
//! | `speed [test ...]` | throughput and server CPU per request by redis-benchmark, interleaved |
//! | `depth` | LINDEX, LPOP and RPOP against the length of the list |
//! | `expiry` | how late keys vanish when a million of them expire |
//! | `stalls` | the histogram of command times while many keys are loaded, flushed and loaded again |
//!
//! `--peer NAME=COMMAND` adds a server ("{port}" in the command is replaced), `--keys N` scales a case, `--sardine PATH`
//! takes a binary that is there already instead of a release build.

mod bytes;
mod cases;
mod client;
mod depth;
mod expiry;
mod server;
mod speed;
mod stalls;

use server::Spec;
use std::path::PathBuf;

/// What the command line says.
pub(crate) struct Options {
    /// Sardine first, then the peers.
    pub(crate) servers: Vec<Spec>,
    /// Cases or tests, all where empty.
    pub(crate) names: Vec<String>,
    /// Keys or elements, where a benchmark can be scaled.
    pub(crate) keys: Option<u64>,
    /// Worker threads of Sardine, and I/O threads of the peer.
    pub(crate) threads: usize,
    /// More arguments for Sardine.
    pub(crate) sardine_args: String,
}

/// Runs the benchmark that `args` names; the first word is its name.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let Some((name, rest)) = args.split_first() else {
        return Err("bench: name one of bytes, speed, depth, expiry, stalls".into());
    };
    let options = parse(rest)?;
    match *name {
        "bytes" => bytes::run(&options),
        "speed" => speed::run(&options),
        "depth" => depth::run(&options),
        "expiry" => expiry::run(&options),
        "stalls" => stalls::run(&options),
        other => Err(format!("bench: no benchmark is called '{other}'")),
    }
}

fn parse(args: &[&str]) -> Result<Options, String> {
    let mut options = Options {
        servers: Vec::new(),
        names: Vec::new(),
        keys: None,
        threads: 1,
        sardine_args: String::new(),
    };
    let (mut peers, mut program) = (Vec::new(), None);
    let mut args = args.iter().copied();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("bench: {arg} wants a value"));
        match arg {
            "--peer" => peers.push(Spec::named(value()?)?),
            "--sardine" => program = Some(PathBuf::from(value()?)),
            "--keys" => options.keys = Some(number(value()?)?),
            "--threads" => options.threads = number(value()?)? as usize,
            "--sardine-args" => options.sardine_args = value()?.to_string(),
            flag if flag.starts_with("--") => return Err(format!("bench: no option is called {flag}")),
            name => options.names.push(name.to_string()),
        }
    }
    let program = program.map_or_else(server::built, Ok)?;
    options.servers.push(Spec::sardine(&program, options.threads, &options.sardine_args)?);
    if peers.is_empty() {
        peers.extend(Spec::installed_peer(options.threads));
    }
    options.servers.append(&mut peers);
    Ok(options)
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("bench: '{text}' is not a number"))
}
