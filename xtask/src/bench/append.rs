//! What the append-only file costs a SET: processor time of all the server's threads with `appendfsync
//! everysec` and without a file, at depths 16 and 100; with `always`, how many SETs fifty clients are
//! answered in a second, each of which waits for its reply (`clients.rs`: what the load takes of the machine,
//! the servers have not). The servers take turns, and medians of ratios within rounds count, as in `turns`.
//! The files lie in the target folder, so that the disk under it is measured.
use super::Options;
use super::anysize::median;
use super::clients::{Clients, Load};
use super::crowd::Crowd;
use super::server::{Server, Spec, pin_this};
use super::turns::{drawn, turn};
use crate::shell::{Outcome, target_folder};
use base::random::Random;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const ROUNDS: usize = 60;
const REQUESTS: usize = 4_000;
/// Words of `appendfsync`, and how many requests each client sends together.
const SETTINGS: [(&str, &[usize]); 2] = [("everysec", &[16, 100]), ("always", &[1])];
/// A turn of `always`.
const TURN: Duration = Duration::from_millis(100);

/// A server with its files in a folder that goes with it.
struct Case {
    server: Server,
    crowd: Crowd,
    clients: Clients,
    name: String,
    folder: PathBuf,
    cpu_us: Vec<f64>,
    wall_us: Vec<f64>,
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Case {
    /// Sends the requests of a turn; how many they were.
    fn send(&mut self, depth: usize, random: &mut Random) -> Result<usize, String> {
        if depth > 1 {
            return turn(&mut self.crowd, "set", (REQUESTS * depth.min(16), depth), random);
        }
        self.clients.run((Load::Full, TURN), &mut drawn("set", random)?, &mut || Ok(true))?;
        Ok(self.clients.take_times().count())
    }
}

/// Whether there is a setting of this name.
pub(super) fn knows(name: &str) -> bool {
    SETTINGS.iter().any(|(sync, _)| *sync == name)
}

pub(crate) fn run(options: &Options) -> Outcome {
    let rounds = options.rounds.unwrap_or(ROUNDS);
    for (sync, depths) in SETTINGS.into_iter().filter(|(sync, _)| options.wants(sync)) {
        for depth in depths {
            compare(options, sync, *depth, rounds)?;
        }
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn compare(options: &Options, sync: &str, depth: usize, rounds: usize) -> Outcome {
    let mut cases = Vec::new();
    for spec in &options.servers {
        for sync in ["", sync] {
            cases.push(start(spec, sync, cases.len(), options)?);
        }
    }
    if options.threads == 1 && sync != "always" {
        pin_this("1")?;
    }
    let mut random = Random::new(1);
    for round in 0..=rounds {
        for case in &mut cases {
            let (before_us, began) = (case.server.cpu_us(), Instant::now());
            let sent = case.send(depth, &mut random)? as f64;
            // The first round only warms the caches.
            if round > 0 {
                case.cpu_us.push((case.server.cpu_us() - before_us) / sent);
                case.wall_us.push(began.elapsed().as_secs_f64() * 1e6 / sent);
            }
        }
    }
    println!("SET, depth {depth}, appendfsync {sync}");
    let peer = &cases[cases.len() - 1];
    for case in &cases {
        let ratio = |own: &[f64], of: &[f64]| {
            median(&mut own.iter().zip(of).map(|(own, of)| own / of).collect::<Vec<f64>>())
        };
        println!(
            "  {:24} cpu {:6.2} us, x{:.3} of {}; {:8.0} a second, x{:.3}",
            case.name,
            median(&mut case.cpu_us.clone()),
            ratio(&case.cpu_us, &peer.cpu_us),
            peer.name,
            1e6 / median(&mut case.wall_us.clone()),
            ratio(&peer.wall_us, &case.wall_us),
        );
    }
    for pair in cases.chunks(2) {
        let ratios: Vec<f64> = pair[1].cpu_us.iter().zip(&pair[0].cpu_us).map(|(on, off)| on / off).collect();
        println!("  {:24} cpu x{:.3} of itself without a file", pair[1].name, median(&mut ratios.clone()));
    }
    Ok(())
}

fn start(spec: &Spec, sync: &str, number: usize, options: &Options) -> Result<Case, String> {
    let folder = target_folder().join("tmp").join(format!("bench-append-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("bench: {}: {error}", folder.display()))?;
    let dir = format!("--dir {}", folder.display());
    let (args, name) = match sync {
        "" => (dir, spec.name.clone()),
        sync => (
            format!("{dir} --appendonly yes --appendfsync {sync} --auto-aof-rewrite-percentage 0"),
            format!("{} {sync}", spec.name),
        ),
    };
    let core = (options.threads == 1 && sync != "always").then_some("0");
    let server = Server::start(&spec.with(&args), core)?;
    let (crowd, clients) = (Crowd::connect(server.port)?, Clients::connect(&server)?);
    Ok(Case { server, crowd, clients, name, folder, cpu_us: Vec::new(), wall_us: Vec::new() })
}
