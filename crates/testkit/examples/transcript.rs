//! Records transcripts from a server that runs, or compares them with it. It is emptied before each file.
//!
//! ```text
//! cargo run -p testkit --example transcript -- record  127.0.0.1:6379 tests/transcripts/string/set.txt ...
//! cargo run -p testkit --example transcript -- compare 127.0.0.1:6379 tests/transcripts/string/set.txt ...
//! ```
use resp::Protocol;
use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};
use testkit::socket_peer::SocketPeer;
use testkit::transcript::Transcript;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [mode, address, paths @ ..] = &args[..] else { return Err("record|compare ADDRESS FILE...".into()) };
    let address: SocketAddr = address.parse()?;
    let mut differences = 0;
    for path in paths.iter().map(Path::new) {
        let transcript = Transcript::parse(&fs::read_to_string(path)?)
            .map_err(|e| format!("{}: line {}: {}", path.display(), e.line_number, e.reason))?;
        match mode.as_str() {
            "record" => record(path, transcript, address)?,
            "compare" => differences += compare(path, &transcript, address)?,
            _ => return Err(format!("no mode {mode}").into()),
        }
    }
    Ok(if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn record(path: &Path, mut transcript: Transcript, address: SocketAddr) -> Result<(), Box<dyn Error>> {
    SocketPeer::connect(&address.into())?;
    transcript.record(|| Box::new(SocketPeer::connect(&address.into()).expect("the peer answered just now")));
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
