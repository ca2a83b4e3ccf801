//! What TLS costs a server: processor time of GET and SET by clients that speak it and stay connected, and of
//! a connection with its handshake, the servers taking turns. The load is redis-benchmark with `--tls`, the
//! certificate (P-256) is made for the run, and all agree on TLS 1.3 with AES-256-GCM.
//!
//! A run begins with 50 handshakes, a few thousandths of what is measured.
use super::Options;
use super::server::{Server, Spec, free_port};
use crate::shell::target;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const DEPTHS: [u32; 2] = [1, 16];
const ROUNDS: usize = 5;
/// Requests of a run at depth 1; at others so many times more.
const REQUESTS: u64 = 40_000;
const REQUESTS_GROW: u64 = 4;
const CONNECTIONS: u64 = 4_000;

/// A server and its port for TLS.
struct Secure {
    server: Server,
    port: u16,
}

/// What redis-benchmark does in a run.
struct Case {
    name: &'static str,
    args: &'static [&'static str],
    depth: u32,
    requests: u64,
}

/// Whether there is a case of this name.
pub(super) fn knows(name: &str) -> bool {
    ["set", "get", "connect"].contains(&name)
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let folder = target("bench-tls");
    let certificate = certificate(&folder)?;
    let servers: Result<Vec<Secure>, String> =
        options.servers.iter().map(|spec| start(spec, &folder)).collect();
    let servers = servers?;
    let mut cases = Vec::new();
    for depth in DEPTHS {
        let requests = if depth == 1 { REQUESTS } else { REQUESTS * REQUESTS_GROW };
        cases.push(Case { name: "set", args: &["-t", "set"], depth, requests });
        cases.push(Case { name: "get", args: &["-t", "get"], depth, requests });
    }
    cases.push(Case {
        name: "connect",
        args: &["-t", "ping_mbulk", "-k", "0"],
        depth: 1,
        requests: CONNECTIONS,
    });
    for case in cases.iter().filter(|case| options.wants(case.name)) {
        compare(&servers, case, &certificate, options.rounds.unwrap_or(ROUNDS))?;
    }
    Ok(())
}

/// A key and the certificate that it has signed for itself, in this folder; the certificate's path.
fn certificate(folder: &Path) -> Result<PathBuf, String> {
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \
                 -keyout key.pem -out cert.pem";
    let made = Command::new("openssl")
        .args(words.split_whitespace())
        .current_dir(folder)
        .stderr(Stdio::null())
        .status();
    match made.is_ok_and(|status| status.success()) {
        true => Ok(folder.join("cert.pem")),
        false => Err("bench: openssl makes no certificate".into()),
    }
}

fn start(spec: &Spec, folder: &Path) -> Result<Secure, String> {
    let port = free_port()?;
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let args = format!(
        "--tls-port {port} --tls-auth-clients no --tls-cert-file {} --tls-key-file {}",
        cert.display(),
        key.display()
    );
    Ok(Secure { server: Server::start(&spec.with(&args), Some("0"))?, port })
}

fn compare(servers: &[Secure], case: &Case, certificate: &Path, rounds: usize) -> Result<(), String> {
    for secure in servers {
        load(secure, &Case { name: "fill", args: &["-t", "set"], depth: 16, requests: 50_000 }, certificate)?;
    }
    let mut times_us = vec![Vec::new(); servers.len()];
    for round in 0..rounds {
        for at in 0..servers.len() {
            // The servers take turns in being first.
            let at = if round % 2 == 0 { at } else { servers.len() - 1 - at };
            let before = servers[at].server.cpu_us();
            load(&servers[at], case, certificate)?;
            times_us[at].push((servers[at].server.cpu_us() - before) / case.requests as f64);
        }
    }
    // Behind each peer stands what the first server takes of its time.
    let first = &times_us[0];
    let cells = servers.iter().zip(&times_us).map(|(secure, times)| {
        let part = median(first.iter().zip(times).map(|(first, time)| first / time).collect());
        format!("{} {:6.2}us (x{part:.2})", secure.server.name, median(times.clone()))
    });
    println!("{:8} P={:<3} {}", case.name, case.depth, cells.collect::<Vec<_>>().join(" | "));
    Ok(())
}

fn load(secure: &Secure, case: &Case, certificate: &Path) -> Result<(), String> {
    let numbers = [secure.port.to_string(), case.requests.to_string(), case.depth.to_string()];
    let [port, requests, depth] = numbers.each_ref().map(String::as_str);
    let done = Command::new("taskset")
        .args(["-c", "1", "redis-benchmark", "-p", port, "-n", requests, "-P", depth, "-c", "50", "-d", "64"])
        .args(["-r", "1000000", "--csv", "--tls", "--cacert"])
        .arg(certificate)
        .args(case.args)
        .output()
        .map_err(|e| format!("bench: redis-benchmark: {e}"))?;
    let said = String::from_utf8_lossy(&done.stdout);
    match done.status.success() && said.contains('"') {
        true => Ok(()),
        false => Err(format!("bench: redis-benchmark said: {said}{}", String::from_utf8_lossy(&done.stderr))),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
