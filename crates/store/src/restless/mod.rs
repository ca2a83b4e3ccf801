//! Restlessness for tests: data that comes and goes by every path that data can take, at random, without a
//! client seeing it.
//!
//! Two kinds of work, because no command's answer may change:
//!
//! * **Transients** are keys of every type in the clients' own trees. They come and go while the lock of
//!   their shard is held: leaves split and merge, notes and timing wheels change, values are copied, renamed,
//!   expire, are evicted, and before anybody looks all is as it was. Their deadlines lie in the first
//!   milliseconds of 1970, so whatever expires or evicts by deadline meets them before any key of a client,
//!   and expires none of those: its clock says 1970 too.
//! * **The shadow** (`shadow.rs`) is a keyspace that no command names. It is there for what chooses its
//!   keys by itself and so cannot be let loose on the clients' data: eviction by every policy, the hand that
//!   keeps uses true, flushes, clocks that jump.
//!
//! Both assert what must hold. A transient that is lost, or a key of a client that goes with them, stops the
//! process.
mod shadow;
mod values;

use crate::keyspace::ears::Teller;
use crate::keyspace::guards::Guards;
use crate::keyspace::shard::Shard;
use crate::{Deadline, Garbage, Key, Keyspace, Settings, View};
use base::Millis;
use base::random::Random;
use pack::map::Entry;
pub use shadow::Shadow;
use values::Made;

/// The times to which the wheel is turned back for transients, and at which they are made, fall due, and are
/// found to be due. Afterwards it is turned forward again for the clients' keys.
const BEFORE: Millis = Millis(0);
const BEGINNING: Millis = Millis(5);
const DEADLINE: Millis = Millis(10);
const AFTERWARDS: Millis = Millis(11);

/// How many transients come at once: a few, or so many that leaves split.
const CROWDS: [u64; 4] = [1, 4, 20, 120];

/// Brings transients into shards, all of them decided by a seed.
pub struct Transients {
    random: Random,
}

/// How the transients of one visit leave.
#[derive(Clone, Copy)]
enum Exit {
    Removed,
    /// Looked up past their deadline.
    Buried,
    /// Swept by the wheel.
    Swept,
    /// Evicted by the nearest deadline.
    EvictedSoonest,
    /// Evicted under a policy that goes by uses.
    Evicted,
}

const EXITS: [Exit; 5] = [Exit::Removed, Exit::Buried, Exit::Swept, Exit::EvictedSoonest, Exit::Evicted];

impl Transients {
    /// Transients that are decided by `seed`.
    pub fn new(seed: u64) -> Transients {
        Transients { random: Random::new(seed) }
    }

    /// Brings some transients into one shard and takes them out again. Returns what is to be freed once the
    /// lock has been released.
    pub fn visit(&mut self, keyspace: &Keyspace, settings: &Settings) -> Vec<Garbage> {
        let random = &mut self.random;
        let index = random.below(keyspace.shards() as u64) as usize;
        let count = CROWDS[random.below(CROWDS.len() as u64) as usize];
        let names: Vec<Vec<u8>> = (0..count).map(|_| name_in(keyspace, index, random)).collect();
        let mut shard = keyspace.shard(index);
        let dbs: Vec<u16> = shard.dbs().map(|(number, _)| number).collect();
        let db = dbs[random.below(dbs.len() as u64) as usize];
        let (stats, len_before) = (shard.stats, len(&shard, db));
        turn_back(&mut shard);
        if shard.next_due() <= AFTERWARDS.0 {
            // A client has written a deadline of 1970 (SET key value PXAT 1): nobody else may enforce it.
            keyspace.set_due(index, shard.next_due());
            return Vec::new();
        }
        let keys: Vec<Key<'_>> =
            names.iter().map(|name| Key::new(name, keyspace.hash(name), 0, db)).collect();
        let mut view = View::new(keyspace, Guards::Many(vec![shard]), BEGINNING, settings);
        stay(&mut view, &keys, random);
        let mut garbage = leave(&mut view, &keys, EXITS[random.below(EXITS.len() as u64) as usize]);
        // Nobody is told of keys that no client has written.
        drop(view.take_told());
        garbage.extend(view.take_garbage());
        let shard = view.shard_mut(&keys[0]);
        assert_eq!(len(shard, db), len_before, "transients left with keys of clients, or stayed");
        shard.stats = stats;
        keyspace.set_due(index, shard.next_due());
        garbage
    }
}

/// Turns the wheels of all databases back to a time at which no key of a client is due.
fn turn_back(shard: &mut Shard) {
    let (dbs, stats) = shard.dbs_mut();
    for (_, db) in dbs {
        db.expire(BEFORE, &mut 64, stats, &mut Vec::new(), &mut Teller::mute());
    }
}

fn len(shard: &Shard, db: u16) -> u64 {
    shard.db(db).map_or(0, |db| db.map.len())
}

/// A name of a key in this shard that no client will use.
fn name_in(keyspace: &Keyspace, shard: usize, random: &mut Random) -> Vec<u8> {
    loop {
        let mut name = vec![0; 12 + random.below(30) as usize];
        random.fill(&mut name);
        if keyspace.shard_number(keyspace.hash(&name)) == shard {
            return name;
        }
    }
}

/// Makes, reads, rewrites, renames and copies transients.
fn stay<'k>(view: &mut View<'k>, keys: &[Key<'k>], random: &mut Random) {
    let mut made: Vec<Option<Made>> = keys.iter().map(|_| None).collect();
    for (key, made) in keys.iter().zip(&mut made) {
        *made = Some(values::put(view, key, DEADLINE, random));
        if random.below(2) == 0 {
            assert!(view.set_deadline(key, Deadline::At(DEADLINE)), "a transient that was made is there");
        }
    }
    for _ in 0..random.below(keys.len() as u64 + 1) {
        let (from, to) = (random.below(keys.len() as u64) as usize, random.below(keys.len() as u64) as usize);
        let taken = match random.below(3) {
            0 => {
                made[to] = Some(values::put(view, &keys[to], DEADLINE, random));
                continue;
            }
            1 => made[from].take().and_then(|value| view.take(&keys[from]).zip(Some(value))),
            _ => made[from].clone().and_then(|value| view.copy(&keys[from]).zip(Some(value))),
        };
        if let Some((taken, value)) = taken {
            view.put_taken(&keys[to], taken);
            made[to] = Some(value);
        }
    }
    for (key, made) in keys.iter().zip(&made) {
        match made {
            Some(made) => made.check(view, key),
            None => assert!(!view.exists(key), "a transient that was renamed is gone"),
        }
    }
}

/// Removes all transients; those that this exit does not take, by an ordinary removal.
fn leave<'k>(view: &mut View<'k>, keys: &[Key<'k>], exit: Exit) -> Vec<Garbage> {
    let mut garbage = Vec::new();
    match exit {
        Exit::Removed => {}
        Exit::Buried => {
            view.set_now(AFTERWARDS);
            for key in keys {
                view.exists(key);
            }
        }
        Exit::Swept => {
            let shard = view.shard_mut(&keys[0]);
            let (dbs, stats) = shard.dbs_mut();
            for (_, db) in dbs {
                db.expire(AFTERWARDS, &mut u64::from(u32::MAX), stats, &mut garbage, &mut Teller::mute());
            }
        }
        Exit::EvictedSoonest => {
            let volatile = |view: &mut View<'_>, key| view.deadline(key) == Some(Deadline::At(DEADLINE));
            let count = keys.iter().filter(|key| volatile(view, key)).count();
            let (mut dbs, stats) = view.shard_mut(&keys[0]).dbs_mut();
            let (_, db) = dbs.find(|(number, _)| *number == keys[0].db()).expect("where transients came to");
            for _ in 0..count {
                assert!(
                    db.evict_soonest(BEGINNING, stats, &mut garbage, &mut Teller::mute()),
                    "a key with a deadline can be evicted"
                );
            }
            drop(dbs);
            keys.iter().for_each(|key| assert!(!volatile(view, key), "the nearest deadline goes first"));
        }
        Exit::Evicted => keys.iter().for_each(|key| evict(view, key)),
    }
    drop(view.take_told());
    garbage.extend(view.take_garbage());
    for key in keys {
        view.remove(key);
    }
    garbage
}

fn evict(view: &mut View<'_>, key: &Key<'_>) {
    let (map, seed, mut context) = view.open(key);
    if let Entry::Occupied(entry) = map.entry(seed, key.hash, key.bytes()) {
        context.timer.volatile.forget(crate::entry::Meta(entry.meta()), entry.inline(), entry.outside());
        let removed = map.evict(seed, key.hash, key.bytes()).expect("it was just seen");
        context.discard(removed.outside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expiry, Form, KeyspaceOptions};
    use base::hash::Seed;

    const NOW: Millis = Millis(1_790_000_000_000);

    fn keyspace(shard_bits: u32) -> Keyspace {
        Keyspace::new(KeyspaceOptions { shard_bits, databases: 16, seed: Seed::new(1, 2) })
    }

    /// Keys of a client, one in three of which falls due some time.
    fn fill(keyspace: &Keyspace, settings: &Settings) -> Vec<(Vec<u8>, Deadline)> {
        let mut keys = Vec::new();
        for n in 0..600_i64 {
            let name = format!("key:{n}").into_bytes();
            let deadline =
                if n % 3 == 0 { Deadline::At(Millis(NOW.0 + 1 + n * 7 % 1000)) } else { Deadline::Never };
            let (mut view, key) = keyspace.lock_one(0, NOW, settings, &name);
            view.put_string(&key, &name, Form::Auto, Expiry::Clear);
            view.set_deadline(&key, deadline);
            drop(view);
            keys.push((name, deadline));
        }
        keys
    }

    #[test]
    fn transients_leave_every_key_of_a_client_its_value_and_its_deadline() {
        for shard_bits in [0, 3] {
            let (keyspace, settings) = (keyspace(shard_bits), Settings::default());
            let keys = fill(&keyspace, &settings);
            let before = keyspace.stats();
            let mut transients = Transients::new(7);
            (0..300).for_each(|_| drop(transients.visit(&keyspace, &settings)));
            assert_eq!(keyspace.stats(), before, "nothing is counted");
            for (name, deadline) in &keys {
                let (mut view, key) = keyspace.lock_one(0, NOW, &settings, name);
                assert_eq!(view.deadline(&key), Some(*deadline));
            }
            for ms in [200, 600, 1001] {
                let now = Millis(NOW.0 + ms);
                for _ in 0..20 {
                    keyspace.expire(now, 10, &mut Vec::new());
                    drop(transients.visit(&keyspace, &settings));
                }
                while keyspace.expire(now, 100, &mut Vec::new()).is_some_and(|due| due <= now) {}
                let live = keys.iter().filter(|(_, deadline)| !deadline.is_past(now)).count();
                assert_eq!(keyspace.len(0), live as u64, "what is due goes on time, and nothing else");
            }
        }
    }

    #[test]
    fn a_client_s_deadline_of_1970_is_not_enforced_by_a_visit() {
        let (keyspace, settings) = (keyspace(0), Settings::default());
        let (mut view, key) = keyspace.lock_one(0, NOW, &settings, b"key");
        view.put_string(&key, b"value", Form::Auto, Expiry::At(Millis(1)));
        drop(view);
        let mut transients = Transients::new(7);
        (0..100).for_each(|_| drop(transients.visit(&keyspace, &settings)));
        assert_eq!(keyspace.len(0), 1);
        keyspace.expire(NOW, 10, &mut Vec::new());
        assert_eq!(keyspace.len(0), 0);
    }

    #[test]
    fn shadows_find_no_fault() {
        for seed in 0..4 {
            let mut shadow = Shadow::new(seed);
            (0..1_000).for_each(|_| drop(shadow.churn()));
        }
    }

    #[test]
    fn a_seed_names_what_a_shadow_does() {
        let lens = |seed| {
            let mut shadow = Shadow::new(seed);
            let mut len = || {
                drop(shadow.churn());
                shadow.keyspace().len(0)
            };
            (0..200).map(|_| len()).collect::<Vec<u64>>()
        };
        assert_ne!(lens(1), lens(2));
    }
}
