//! How long a client's PING takes, and how long it is until the last of four thousand has a message that is
//! published meanwhile.
use super::{connect, failed, publish, read};
use crate::bench::server::Server;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub(super) const NAME: &str = "publish-waits";
const LISTENERS: usize = 4000;
const PAUSE: Duration = Duration::from_micros(200);

pub(super) fn measure(server: &Server, rounds: usize) -> Result<(), String> {
    let mut channel = publish::listeners(server.port, LISTENERS)?;
    let is_over = AtomicBool::new(false);
    let (last_us, ping_us) = std::thread::scope(|scope| {
        let pinging = scope.spawn(|| ping_until(server.port, &is_over));
        let last_us: io::Result<Vec<u128>> = (0..rounds)
            .map(|_| {
                let start = now();
                channel.publish(1)?;
                Ok(start.elapsed().as_micros())
            })
            .collect();
        is_over.store(true, Relaxed);
        let ping_us = pinging.join().map_err(|_| "bench: the client that pings has ended")?;
        Ok::<_, String>((last_us.map_err(|e| failed(&e))?, ping_us.map_err(|e| failed(&e))?))
    })?;
    let [last, ping] = [spread(last_us), spread(ping_us)];
    println!("{NAME:17} {:12} PING {ping}; until all have a message {last}", server.name);
    Ok(())
}

/// How long each of many took, in microseconds.
fn ping_until(port: u16, is_over: &AtomicBool) -> io::Result<Vec<u128>> {
    let (mut client, mut times_us) = (connect(port)?, Vec::new());
    while !is_over.load(Relaxed) {
        let start = now();
        client.write_all(b"PING\r\n")?;
        read(&mut client, b"+PONG\r\n".len())?;
        times_us.push(start.elapsed().as_micros());
        std::thread::sleep(PAUSE);
    }
    Ok(times_us)
}

#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> Instant {
    Instant::now()
}

fn spread(mut times_us: Vec<u128>) -> String {
    times_us.sort_unstable();
    let at = |percent: usize| times_us[(times_us.len() - 1) * percent / 100];
    format!("p50 {} us, p99 {} us, at most {} us", at(50), at(99), at(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_by_their_ranks() {
        assert_eq!(spread((0..=100).rev().collect()), "p50 50 us, p99 99 us, at most 100 us");
    }
}
