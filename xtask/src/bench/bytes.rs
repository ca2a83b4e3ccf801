//! Bytes per element: RSS before and after a load, one fresh process for each server and case.

use super::Options;
use super::cases::{CASES, Case};
use super::server::{Server, Spec};
use std::time::Duration;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let names: Vec<&str> = options.servers.iter().map(|s| s.name.as_str()).collect();
    println!("{:24} {:>9} {:>9}  {}", "case", "elements", "payload", columns(&names));
    for case in CASES.iter().filter(|c| options.names.is_empty() || options.names.iter().any(|n| n == c.name))
    {
        let mut cells = Vec::new();
        let mut loaded = (0, 0);
        for spec in &options.servers {
            let (per_element, elements, payload) = measure(spec, case)?;
            cells.push(format!("{per_element:.2}"));
            loaded = (elements, payload);
        }
        let payload = loaded.1 as f64 / loaded.0 as f64;
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        println!("{:24} {:9} {:9.2}  {}", case.name, loaded.0, payload, columns(&cells));
    }
    Ok(())
}

fn columns(cells: &[&str]) -> String {
    cells.iter().map(|c| format!("{c:>12}")).collect()
}

/// (RSS bytes an element, elements, payload bytes)
fn measure(spec: &Spec, case: &Case) -> Result<(f64, u64, u64), String> {
    let server = Server::start(spec, None)?;
    let mut client = server.client()?;
    for (name, value) in case.settings {
        if client.call(&[b"CONFIG", b"SET", name.as_bytes(), value.as_bytes()]).is_err() {
            // A peer may lack a setting (our codecs): its figure is then that of its defaults, and says so.
            println!("  ({} has no setting {name})", server.name);
            client = server.client()?;
        }
    }
    std::thread::sleep(Duration::from_millis(300));
    let before = server.rss_bytes();
    let depth = if case.name.starts_with("list_blobs") { 64 } else { 256 };
    let (mut elements, mut payload) = (0, 0);
    (case.load)(&mut |args, count| {
        payload += args[2..].iter().map(|a| a.len() as u64).sum::<u64>();
        elements += count;
        client.pipe(args, depth)
    })?;
    client.flush()?;
    std::thread::sleep(Duration::from_millis(500));
    let grown = server.rss_bytes().saturating_sub(before);
    Ok((grown as f64 / elements as f64, elements, payload))
}
