//! What is known of all clients, and the look at what is there after a start: it must be what they have asked
//! for, up to a unit of each that is not before the last one that had to be kept.
use super::client::Asked;
use super::twin::Twin;
use super::unit::{ACCOUNTS, BESIDE, Drawer, MARKS, PASSING, SHARED_DB, Unit};
use crate::resp_client::RespClient;
use crate::resp_value::Value;
use base::random::Random;
use std::io;
use std::thread::sleep;
use std::time::Duration;

pub(super) const CLIENTS: usize = 4;
/// How often whoever waits for keys to pass looks.
const LOOKS_MAX: usize = 10_000;

/// See the file's opener.
pub(super) struct Book {
    pub(super) twin: Twin,
    pub(super) drawers: Vec<Drawer>,
    /// The number of the next unit of each client.
    pub(super) numbers: [u64; CLIENTS],
    /// So many marks were there at the last look.
    marks: usize,
}

impl Book {
    /// Nothing is asked for yet.
    pub(super) fn begin(seed: u64, is_large: bool, disk_fails: bool) -> Result<Book, String> {
        let mut random = Random::new(seed);
        let drawer = |client| Drawer { client, random: Random::new(random.next_u64()), is_large, disk_fails };
        let drawers = (0..CLIENTS).map(drawer).collect();
        Ok(Book { twin: Twin::start(CLIENTS, is_large)?, drawers, numbers: [0; CLIENTS], marks: 0 })
    }

    /// Compares what is there with what was asked for. Returns how many units of
    /// each client are there.
    pub(super) fn look(
        &mut self,
        all: &[Asked],
        actual: &mut RespClient,
    ) -> Result<[usize; CLIENTS], String> {
        let failed = |error: io::Error| format!("looking: {error}");
        let marks = marks_from(actual, self.marks).map_err(failed)?;
        let hints = self.hints(all, &marks)?;
        wait_for_passing(actual)?;
        let mut found = [0; CLIENTS];
        for (client, asked) in all.iter().enumerate() {
            let least = asked.on_disk.max(hints[client]);
            found[client] = self.twin.follow(client, asked, least, actual).map_err(failed)??;
            self.numbers[client] += found[client] as u64;
        }
        self.marks += marks.len();
        let sum = sum_of_accounts(actual).map_err(failed)?;
        if sum != 0 { Err(format!("a transfer was torn: the accounts have {sum}")) } else { Ok(found) }
    }

    /// How many units of each client are there for certain, by the marks; which are in the order in which
    /// they were acknowledged.
    fn hints(&self, all: &[Asked], marks: &[(usize, u64)]) -> Result<[usize; CLIENTS], String> {
        let mut hints = [0; CLIENTS];
        for (place, (client, number)) in marks.iter().enumerate() {
            let index = number.checked_sub(self.numbers[*client]).map(|index| index as usize);
            let units = &all[*client].units;
            let unit = index.and_then(|index| units.get(index)).filter(|unit| unit.is_mark());
            let (Some(index), Some(unit)) = (index, unit) else {
                return Err(format!("mark {number} of client {client} is there and should not be"));
            };
            if units[hints[*client]..index].iter().any(Unit::is_mark) {
                return Err(format!("a mark of client {client} before {number} is missing"));
            }
            hints[*client] = index + 1;
            let place = format!(":{}", self.marks + place + 1);
            if let Some(reply) = &unit.reply
                && reply.lines().iter().all(|line| line.trim() != place)
            {
                return Err(format!(
                    "mark {number} of client {client} is at {place}, and not where it was told"
                ));
            }
        }
        Ok(hints)
    }
}

/// The marks behind the first `known`: the client and the number of each.
fn marks_from(actual: &mut RespClient, known: usize) -> io::Result<Vec<(usize, u64)>> {
    actual.call(&["SELECT", &SHARED_DB.to_string()])?;
    let told = actual.call(&["LRANGE", MARKS, &known.to_string(), "-1"])?;
    let Value::Aggregate(_, marks) = told else { return Err(io::Error::other("LRANGE gives no list")) };
    let parsed = marks.iter().map(|mark| {
        let text = String::from_utf8_lossy(mark.text().unwrap_or_default()).into_owned();
        let (client, number) = text.split_once(':')?;
        Some((client.parse().ok().filter(|client| *client < CLIENTS)?, number.parse().ok()?))
    });
    parsed.collect::<Option<Vec<_>>>().ok_or_else(|| io::Error::other("a mark is none"))
}

/// Keys that pass have to be gone a moment later.
fn wait_for_passing(actual: &mut RespClient) -> Result<(), String> {
    for db in (0..CLIENTS).flat_map(|client| [client, client + BESIDE]) {
        wait_for_passing_in(db, actual).map_err(|error| format!("looking: {error}"))??;
    }
    Ok(())
}

fn wait_for_passing_in(db: usize, actual: &mut RespClient) -> io::Result<Result<(), String>> {
    let exists: Vec<&str> = ["EXISTS"].into_iter().chain(PASSING).collect();
    for _ in 0..LOOKS_MAX {
        actual.call(&["SELECT", &db.to_string()])?;
        match actual.call(&exists)? {
            Value::Line(b':', count) if count == b"0" => return Ok(Ok(())),
            Value::Line(b':', _) => sleep(Duration::from_millis(1)),
            other => return Err(io::Error::other(format!("EXISTS gives {}", other.lines().join(" ")))),
        }
    }
    let mut all = Vec::new();
    for line in ["TIME", "PEXPIRETIME gone0", "PEXPIRETIME gone1", "HGETALL hgone"].into_iter().chain([
        "HPEXPIRETIME hgone FIELDS 1 f",
        "DEBUG OBJECT hgone",
        "INFO keyspace",
        "INFO stats",
    ]) {
        let told = actual.call(&line.split(' ').collect::<Vec<_>>())?;
        all.push(format!("{line}: {}", told.lines().join(" ")));
    }
    Ok(Err(format!("keys of database {db} that should pass do not:\n{}", all.join("\n"))))
}

fn sum_of_accounts(actual: &mut RespClient) -> io::Result<i64> {
    actual.call(&["SELECT", &SHARED_DB.to_string()])?;
    let told = actual.call(&["HVALS", ACCOUNTS])?;
    let Value::Aggregate(_, amounts) = told else { return Err(io::Error::other("HVALS gives no list")) };
    let amount = |value: &Value| value.text().and_then(base::text::parse_i64).unwrap_or(i64::MAX);
    Ok(amounts.iter().map(amount).fold(0, i64::saturating_add))
}
