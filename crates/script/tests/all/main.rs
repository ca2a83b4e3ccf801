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
    let mut reply = Reply::new(protocol);
    let outcome = match machine.compile(body) {
        Ok(script) => machine.run(&script, [].into_iter(), [].into_iter(), host, &mut reply),
        Err(text) => {
            reply.error(text);
            Outcome::Failed { is_counted: false }
        }
    };
    (outcome, reply.out)
}
