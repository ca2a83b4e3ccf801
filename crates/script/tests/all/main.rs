//! The interpreter as the server uses it, with a server in a few lines behind it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod attacks;
mod functions;
mod host;
mod random;
mod recorded;

use host::Toy;
use resp::{Protocol, Reply};
use script::{Machine, Outcome};

/// Compiles and runs a script.
fn run_in(machine: &Machine, body: &[u8], protocol: Protocol, host: &mut Toy) -> (Outcome, Vec<u8>) {
    run_all(machine, body, protocol, &mut [host]).remove(0)
}

/// Compiles a script and runs it once for each host. From the second time on it may be another function.
fn run_all(
    machine: &Machine,
    body: &[u8],
    protocol: Protocol,
    hosts: &mut [&mut Toy],
) -> Vec<(Outcome, Vec<u8>)> {
    let script = machine.compile(body);
    let run = |host: &mut &mut Toy| {
        let mut reply = Reply::new(protocol);
        let outcome = match &script {
            Ok(script) => machine.run(script, [].into_iter(), [].into_iter(), *host, &mut reply),
            Err(text) => {
                reply.error(text);
                Outcome::Failed { is_counted: false }
            }
        };
        (outcome, reply.out)
    };
    hosts.iter_mut().map(run).collect()
}
