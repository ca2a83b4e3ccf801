//! Transfers between accounts whose keys lie on many shards, and snapshots of all accounts. A transfer reads
//! under WATCH and writes by EXEC, whose queue may have scripts in it, or is a script, which declares all of
//! its keys, some of them or none. It also increments a counter, whose answer is its place in the order of
//! all. Then nothing has to be searched:
//!
//! * places are 1, 2, 3 ... without a gap: EXEC and scripts run once or not at all, and a script that was
//!   taken back because it had reached for an undeclared key has left nothing;
//! * a transfer has read what the transfers before its place left: nothing came between;
//! * a snapshot shows the state at the place that it has read, or, where it does not read the counter, at one
//!   of the places that its times allow: EXEC and scripts are alone;
//! * what was answered before another was sent has the smaller place: the order is that of time.
use super::{Clock, Size};
use crate::resp_client::{Address, RespClient};
use crate::resp_value::Value;
use base::random::Random;
use std::io;
use std::sync::Barrier;
use std::thread::scope;

const ACCOUNTS: usize = 6;
const BEGINNING: i64 = 100;
const COUNTER: &str = "transfers";

/// A transfer that was executed.
#[derive(Clone, Debug)]
struct Transfer {
    sent: u64,
    answered: u64,
    place: usize,
    /// Accounts, what was read of each, and what was written.
    from: (usize, i64, i64),
    to: (usize, i64, i64),
}

#[derive(Clone, Debug)]
struct Snapshot {
    sent: u64,
    answered: u64,
    /// The counter, if it was read in the same transaction.
    place: Option<usize>,
    accounts: [i64; ACCOUNTS],
}

#[derive(Clone, Debug, Default)]
pub(super) struct History {
    transfers: Vec<Transfer>,
    snapshots: Vec<Snapshot>,
    aborted: usize,
}

/// How much was checked.
pub(super) struct Checked {
    pub(super) transactions: usize,
    pub(super) aborted: usize,
    pub(super) snapshots: usize,
}

fn account(number: usize) -> String {
    format!("account:{number}")
}

fn number(value: &Value) -> io::Result<i64> {
    let number = value.text().and_then(base::text::parse_i64);
    number.ok_or_else(|| io::Error::other(format!("no number: {}", value.lines().join(" "))))
}

/// All clients at once; afterwards one more snapshot.
pub(super) fn play(address: &Address, seed: u64, size: Size) -> io::Result<History> {
    let mut first = RespClient::connect(address)?;
    for number in 0..ACCOUNTS {
        first.call(&["SET", &account(number), &BEGINNING.to_string()])?;
    }
    first.call(&["SET", COUNTER, "0"])?;
    let (clock, start) = (Clock::default(), Barrier::new(size.clients));
    let parts = scope(|scope| {
        let clients: Vec<_> = (0..size.clients)
            .map(|number| {
                let (clock, start) = (&clock, &start);
                scope.spawn(move || {
                    let connected = RespClient::connect(address);
                    start.wait();
                    let random = Random::new(!seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                    Teller { client: connected?, clock, random, history: History::default() }
                        .work(size.requests)
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("it does not panic")).collect::<Vec<_>>()
    });
    let mut all = History::default();
    for part in parts {
        let part = part?;
        all.transfers.extend(part.transfers);
        all.snapshots.extend(part.snapshots);
        all.aborted += part.aborted;
    }
    let mut last = Teller { client: first, clock: &clock, random: Random::new(seed), history: all };
    last.look(true)?;
    Ok(last.history)
}

struct Teller<'t> {
    client: RespClient,
    clock: &'t Clock,
    random: Random,
    history: History,
}

impl Teller<'_> {
    fn work(mut self, count: usize) -> io::Result<History> {
        for _ in 0..count {
            match self.random.below(3) {
                0 => {
                    let with_counter = self.random.below(2) == 0;
                    self.look(with_counter)?;
                }
                _ => self.transfer()?,
            }
        }
        Ok(self.history)
    }

    /// Transfers between two accounts drawn at random. Where a watched key has changed, it tries again a few
    /// times and then gives up.
    fn transfer(&mut self) -> io::Result<()> {
        const TRIES: usize = 5;
        let from = self.random.below(ACCOUNTS as u64) as usize;
        let to = (from + 1 + self.random.below(ACCOUNTS as u64 - 1) as usize) % ACCOUNTS;
        let amount = 1 + self.random.below(20) as i64;
        if self.random.below(2) == 0 {
            let declared = self.random.below(4) as usize;
            return self.transfer_by_script(from, to, amount, declared);
        }
        for _ in 0..TRIES {
            if self.try_transfer(from, to, amount)? {
                return Ok(());
            }
            self.history.aborted += 1;
        }
        Ok(())
    }

    fn try_transfer(&mut self, from: usize, to: usize, amount: i64) -> io::Result<bool> {
        let sent = self.clock.tick();
        let (from_key, to_key) = (account(from), account(to));
        self.client.call(&["WATCH", &from_key, &to_key])?;
        let read = (
            number(&self.client.call(&["GET", &from_key])?)?,
            number(&self.client.call(&["GET", &to_key])?)?,
        );
        let written = (read.0 - amount, read.1 + amount);
        self.client.call(&["MULTI"])?;
        self.queue_write(&from_key, written.0)?;
        self.client.call(&["INCR", COUNTER])?;
        self.queue_write(&to_key, written.1)?;
        match self.client.call(&["EXEC"])? {
            Value::Null(_) => Ok(false),
            Value::Aggregate(_, parts) if parts.len() == 3 => {
                let (answered, place) = (self.clock.tick(), number(&parts[1])? as usize);
                let (from, to) = ((from, read.0, written.0), (to, read.1, written.1));
                self.history.transfers.push(Transfer { sent, answered, place, from, to });
                Ok(true)
            }
            other => Err(io::Error::other(format!("EXEC answers {}", other.lines().join(" ")))),
        }
    }

    /// Queues a write, which may be one of a script that declares its key, or does not.
    fn queue_write(&mut self, key: &str, value: i64) -> io::Result<()> {
        const SCRIPT: &str = "return redis.call('SET', KEYS[1] or ARGV[1], ARGV[#ARGV])";
        let value = value.to_string();
        let way = self.random.below(4) as usize;
        match way {
            0 | 1 => self.client.call(&["EVAL", SCRIPT, ["0", "1"][way], key, &value])?,
            _ => self.client.call(&["SET", key, &value])?,
        };
        Ok(())
    }

    /// A script that declares so many of its three keys. Its text differs by that, because a server may
    /// remember of a script whether it keeps to what it declares.
    fn transfer_by_script(&mut self, from: usize, to: usize, amount: i64, declared: usize) -> io::Result<()> {
        let script = format!(
            "local names = {{}} for i = 1, 3 do names[i] = KEYS[i] or ARGV[i] end \
             local from, to = redis.call('GET', names[1]), redis.call('GET', names[2]) \
             redis.call('SET', names[1], from - ARGV[4]) redis.call('SET', names[2], to + ARGV[4]) \
             return {{from, to, redis.call('INCR', names[3])}} -- {declared}"
        );
        let names = [account(from), account(to), COUNTER.to_string()];
        let (count, amount_text) = (declared.to_string(), amount.to_string());
        let mut request = vec!["EVAL", &script, &count];
        request.extend(names[..declared].iter().chain(&names).map(String::as_str));
        request.push(&amount_text);
        let sent = self.clock.tick();
        let reply = self.client.call(&request)?;
        let answered = self.clock.tick();
        let Value::Aggregate(_, parts) = &reply else {
            return Err(io::Error::other(format!("a script answers {}", reply.lines().join(" "))));
        };
        let [read_from, read_to, place] = [0, 1, 2].map(|at| number(&parts[at]));
        let (read_from, read_to, place) = (read_from?, read_to?, place? as usize);
        let (from, to) = ((from, read_from, read_from - amount), (to, read_to, read_to + amount));
        self.history.transfers.push(Transfer { sent, answered, place, from, to });
        Ok(())
    }

    fn look(&mut self, with_counter: bool) -> io::Result<()> {
        match self.random.below(2) {
            0 => self.look_by_script(with_counter),
            _ => self.look_by_exec(with_counter),
        }
    }

    fn look_by_script(&mut self, with_counter: bool) -> io::Result<()> {
        const SCRIPT: &str =
            "local all = {} for i = 1, #KEYS do all[i] = redis.call('GET', KEYS[i]) end return all";
        let mut keys: Vec<String> = (0..ACCOUNTS).map(account).collect();
        if with_counter {
            keys.insert(0, COUNTER.into());
        }
        let count = keys.len().to_string();
        let request: Vec<&str> =
            ["EVAL", SCRIPT, &count].into_iter().chain(keys.iter().map(String::as_str)).collect();
        let sent = self.clock.tick();
        let Value::Aggregate(_, parts) = self.client.call(&request)? else {
            return Err(io::Error::other("a script answers no array"));
        };
        self.note_snapshot(sent, &parts, with_counter)
    }

    fn look_by_exec(&mut self, with_counter: bool) -> io::Result<()> {
        let sent = self.clock.tick();
        self.client.call(&["MULTI"])?;
        if with_counter {
            self.client.call(&["GET", COUNTER])?;
        }
        for number in 0..ACCOUNTS {
            self.client.call(&["GET", &account(number)])?;
        }
        let Value::Aggregate(_, parts) = self.client.call(&["EXEC"])? else {
            return Err(io::Error::other("a snapshot is not executed"));
        };
        self.note_snapshot(sent, &parts, with_counter)
    }

    /// Notes what was answered just now.
    fn note_snapshot(&mut self, sent: u64, parts: &[Value], with_counter: bool) -> io::Result<()> {
        let answered = self.clock.tick();
        let numbers = parts.iter().map(number).collect::<io::Result<Vec<i64>>>()?;
        let (place, rest) = if with_counter { numbers.split_at(1) } else { numbers.split_at(0) };
        let accounts: [i64; ACCOUNTS] =
            rest.try_into().map_err(|_| io::Error::other("a snapshot has too little"))?;
        let place = place.first().map(|place| *place as usize);
        self.history.snapshots.push(Snapshot { sent, answered, place, accounts });
        Ok(())
    }
}

impl History {
    /// Whether all of it is explained by the order of the places.
    pub(super) fn check(mut self) -> Result<Checked, String> {
        self.transfers.sort_by_key(|transfer| transfer.place);
        let states = states(&self.transfers)?;
        check_times(&self.transfers)?;
        for snapshot in &self.snapshots {
            check_snapshot(snapshot, &states, &self.transfers)?;
        }
        let (transactions, snapshots) = (self.transfers.len(), self.snapshots.len());
        Ok(Checked { transactions, aborted: self.aborted, snapshots })
    }
}

/// The accounts after each place, from 0 on.
fn states(transfers: &[Transfer]) -> Result<Vec<[i64; ACCOUNTS]>, String> {
    let mut states = vec![[BEGINNING; ACCOUNTS]];
    for (at, transfer) in transfers.iter().enumerate() {
        if transfer.place != at + 1 {
            return Err(format!("place {} is missing or there twice: {transfer:?}", at + 1));
        }
        let mut state = states[at];
        for (account, read, written) in [transfer.from, transfer.to] {
            if state[account] != read {
                return Err(format!("account {account} held {} before {transfer:?}", state[account]));
            }
            state[account] = written;
        }
        states.push(state);
    }
    Ok(states)
}

/// No transfer was sent after one with a greater place was answered.
fn check_times(transfers: &[Transfer]) -> Result<(), String> {
    let mut soonest_answer = u64::MAX;
    for transfer in transfers.iter().rev() {
        if transfer.sent > soonest_answer {
            return Err(format!("it was sent after one of a later place was answered: {transfer:?}"));
        }
        soonest_answer = soonest_answer.min(transfer.answered);
    }
    Ok(())
}

fn check_snapshot(
    snapshot: &Snapshot,
    states: &[[i64; ACCOUNTS]],
    transfers: &[Transfer],
) -> Result<(), String> {
    // Places that were answered before it was sent are in it; those sent after its answer are not.
    let first = transfers.iter().filter(|one| one.answered < snapshot.sent).map(|one| one.place).max();
    let end = transfers.iter().filter(|one| one.sent > snapshot.answered).map(|one| one.place).min();
    let allowed = first.unwrap_or(0)..end.unwrap_or(states.len());
    let explains = |place: usize| allowed.contains(&place) && states.get(place) == Some(&snapshot.accounts);
    let is_explained = match snapshot.place {
        Some(place) => explains(place),
        None => allowed.clone().any(explains),
    };
    if is_explained {
        return Ok(());
    }
    let sum: i64 = snapshot.accounts.iter().sum();
    Err(format!("no place of {allowed:?} explains {snapshot:?}, whose sum is {sum}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two transfers of 10, one after the other, and a snapshot of each state.
    fn history() -> History {
        let transfer = |sent, place, from, to| Transfer { sent, answered: sent + 5, place, from, to };
        let mut accounts = [[BEGINNING; ACCOUNTS]; 3];
        (accounts[1][0], accounts[1][1]) = (90, 110);
        (accounts[2][0], accounts[2][1], accounts[2][2]) = (90, 100, 110);
        let snapshot = |sent, place, accounts| Snapshot { sent, answered: sent + 5, place, accounts };
        History {
            transfers: vec![
                transfer(20, 2, (1, 110, 100), (2, 100, 110)),
                transfer(10, 1, (0, 100, 90), (1, 100, 110)),
            ],
            snapshots: vec![
                snapshot(0, Some(0), accounts[0]),
                snapshot(16, None, accounts[1]),
                snapshot(12, None, accounts[0]),
                snapshot(26, Some(2), accounts[2]),
            ],
            aborted: 0,
        }
    }

    fn refused(change: impl Fn(&mut History)) -> String {
        let mut history = history();
        change(&mut history);
        history.check().err().expect("it is refused")
    }

    #[test]
    fn transfers_one_after_the_other_are_explained() {
        let checked = history().check().map_err(|why| panic!("{why}")).unwrap();
        assert_eq!((checked.transactions, checked.snapshots), (2, 4));
    }

    #[test]
    fn a_lost_update_is_refused() {
        // The second read account 1 before the first had written it.
        assert!(refused(|h| h.transfers[0].from = (1, 100, 90)).contains("held 110"));
    }

    #[test]
    fn a_transaction_that_ran_twice_or_not_at_all_is_refused() {
        assert!(refused(|h| h.transfers[0].place = 3).contains("place 2"));
        assert!(refused(|h| h.transfers[0].place = 1).contains("place: 1"));
    }

    #[test]
    fn a_snapshot_of_half_a_transfer_is_refused() {
        assert!(refused(|h| h.snapshots[2].accounts[0] = 90).contains("sum is 590"));
        assert!(refused(|h| h.snapshots[3].accounts[2] = 100).contains("sum is 590"));
    }

    #[test]
    fn a_snapshot_of_what_had_passed_or_was_not_yet_is_refused() {
        assert!(refused(|h| h.snapshots[1].accounts = [BEGINNING; ACCOUNTS]).contains("no place of 1..3"));
        assert!(refused(|h| h.snapshots[0].place = Some(1)).contains("no place"));
    }

    #[test]
    fn an_order_against_time_is_refused() {
        assert!(
            refused(|h| (h.transfers[1].sent, h.transfers[1].answered) = (40, 45)).contains("later place")
        );
    }
}
