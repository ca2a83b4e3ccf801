//! Starts from an append-only file, beside the peers': processor time a key, and how long it takes. The cases
//! are those of `snapshots`, a command for each key.
//!
//! | form | the file |
//! |---|---|
//! | `commands` | one increment: what the requests have come to that made the keys |
//! | `base` | what BGREWRITEAOF makes of it: a base in the form of a dump file, and an empty increment |
use super::Options;
use super::server::{Server, Spec};
use super::snapshots::{CASES, Folder, KEYS, PAUSE, fill, start_loaded};
use crate::shell::Outcome;

const FORMS: [&str; 2] = ["commands", "base"];

pub(crate) fn run(options: &Options) -> Outcome {
    let keys = options.keys.unwrap_or(KEYS);
    println!("{keys} keys; CPU in microseconds per key, beside it as a fraction of the last server's");
    for case in CASES.iter().filter(|case| options.wants(case)) {
        let mut runs = Vec::new();
        for spec in &options.servers {
            let folder = Folder::new()?;
            let args = "--appendonly yes --appendfsync no --auto-aof-rewrite-percentage 0";
            runs.push(measure(&spec.with(&format!("{args} --dir {}", folder.0.display())), case, keys)?);
        }
        for (number, form) in FORMS.iter().enumerate() {
            for (spec, starts) in options.servers.iter().zip(&runs) {
                let (start, last) = (&starts[number], &runs[runs.len() - 1][number]);
                println!(
                    "{case:8} {form:8} {:9} load {:6.3} ({:.2}), {:6.2} s ({:.2})",
                    spec.name,
                    start.cpu_us / keys as f64,
                    start.cpu_us / last.cpu_us,
                    start.seconds,
                    start.seconds / last.seconds
                );
            }
        }
    }
    Ok(())
}

struct Start {
    cpu_us: f64,
    seconds: f64,
}

/// A start from each of the forms.
fn measure(spec: &Spec, case: &str, keys: u64) -> Result<[Start; 2], String> {
    // A server that begins an append-only file is loading for a moment.
    let (server, _) = start_loaded(spec)?;
    fill(&mut server.client()?, case, keys)?;
    end(server)?;
    let (server, commands) = start(spec, keys)?;
    let mut client = server.client()?;
    client.call(&[b"BGREWRITEAOF"])?;
    while client.info("persistence", "aof_rewrite_in_progress")? == "1"
        || client.info("persistence", "aof_rewrite_scheduled")? == "1"
    {
        std::thread::sleep(PAUSE);
    }
    end(server)?;
    let (_, base) = start(spec, keys)?;
    Ok([commands, base])
}

fn start(spec: &Spec, keys: u64) -> Result<(Server, Start), String> {
    let (server, seconds) = start_loaded(spec)?;
    let cpu_us = server.whole_cpu_us();
    let loaded = server.client()?.call_int(&[b"DBSIZE"])?;
    if loaded != keys as i64 {
        return Err(format!("bench: {} has loaded {loaded} keys of {keys}", server.name));
    }
    Ok((server, Start { cpu_us, seconds }))
}

/// Ends it by itself, so that all is in its file.
fn end(mut server: Server) -> Outcome {
    // The connection is closed instead of an answer.
    let _ = server.client()?.call(&[b"SHUTDOWN", b"NOSAVE"]);
    server.wait()
}
