//! Records transcripts from a server that runs, or compares them with it. It is emptied before each file.
//!
//! ```text
//! cargo run -p testkit --example transcript -- record  127.0.0.1:6379 tests/transcripts/string/set.txt ...
//! cargo run -p testkit --example transcript -- compare 127.0.0.1:6379 tests/transcripts/string/set.txt ...
//! ```
use clap::{Arg, Command, value_parser};
use resp::Protocol;
use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use testkit::socket_peer::SocketPeer;
use testkit::transcript::Transcript;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let matches = command_line().get_matches();
    let (mode, matches) = matches.subcommand().expect("it is required");
    let address: SocketAddr = *matches.get_one("ADDRESS").expect("it is required");
    let paths = matches.get_many::<PathBuf>("FILE").expect("it is required");
    let mut differences = 0;
    for path in paths {
        let transcript = Transcript::parse(&fs::read_to_string(path)?)
            .map_err(|e| format!("{}: line {}: {}", path.display(), e.line_number, e.reason))?;
        match mode {
            "record" => record(path, transcript, address)?,
            _ => differences += compare(path, &transcript, address)?,
        }
    }
    Ok(if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn command_line() -> Command {
    let mode = |name: &'static str, about: &'static str| {
        let address = Arg::new("ADDRESS").required(true).value_parser(value_parser!(SocketAddr));
        let files = Arg::new("FILE").required(true).num_args(1..).value_parser(value_parser!(PathBuf));
        Command::new(name).about(about).args([address, files])
    };
    Command::new("transcript").subcommand_required(true).arg_required_else_help(true).subcommands([
        mode("record", "Writes what the server answers into the files"),
        mode("compare", "Says where the server answers differently from the files"),
    ])
}

fn record(path: &Path, mut transcript: Transcript, address: SocketAddr) -> Result<(), Box<dyn Error>> {
    SocketPeer::connect(&address.into())?;
    let peer = || SocketPeer::connect(&address.into()).expect("the peer answered just now");
    transcript.record(|| Box::new(peer())).map_err(|wrong| format!("{}: {wrong}", path.display()))?;
    Ok(fs::write(path, transcript.to_string())?)
}

fn compare(path: &Path, transcript: &Transcript, address: SocketAddr) -> Result<usize, Box<dyn Error>> {
    let mut count = 0;
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        for mismatch in transcript.replay(&mut SocketPeer::connect(&address.into())?, protocol) {
            eprintln!("{} {protocol:?} {mismatch}", path.display());
            count += 1;
        }
    }
    Ok(count)
}
