//! MULTI, five commands and EXEC, sent together as client libraries do, by fifty clients.
use super::{TEXT, Talk};
use crate::bench::client::append_request;
use crate::bench::crowd::{Crowd, Turn};
use base::random::Random;

/// Users whose keys are written.
const USERS: u64 = 10_000;
/// Requests of a transaction.
const PARTS: usize = 7;

struct Logins {
    crowd: Crowd,
    random: Random,
}

pub(super) fn connect(port: u16) -> Result<Box<dyn Talk>, String> {
    Ok(Box::new(Logins { crowd: Crowd::connect(port)?, random: Random::new(1) }))
}

impl Talk for Logins {
    fn take_turn(&mut self, count: usize, depth: usize) -> Result<usize, String> {
        let (mut part, mut user) = (0, 0);
        let mut write = |wire: &mut Vec<u8>| {
            if part % PARTS == 0 {
                user = self.random.below(USERS);
            }
            append(wire, part % PARTS, user);
            part += 1;
        };
        let mut turn = Turn { requests: count * PARTS, depth: depth * PARTS, write: &mut write };
        Ok(self.crowd.take_turn(&mut turn)? / PARTS)
    }
}

/// Appends a request of a transaction on this user's keys.
fn append(wire: &mut Vec<u8>, part: usize, user: u64) {
    let [session, profile, seen] = ["session", "profile", "seen"].map(|name| format!("{name}:{user}"));
    let (session, profile, seen) = (session.as_bytes(), profile.as_bytes(), seen.as_bytes());
    let request: &[&[u8]] = match part {
        0 => &[b"MULTI"],
        1 => &[b"SET", session, &TEXT],
        2 => &[b"GET", session],
        3 => &[b"HSET", profile, b"last", b"login"],
        4 => &[b"SADD", seen, b"today"],
        5 => &[b"EXPIRE", session, b"1800"],
        _ => &[b"EXEC"],
    };
    append_request(wire, request);
}
