//! The keyspace over the arena, as the program has it, edited by several threads while its data is moved
//! together. A program of its own, because the arena is its allocator.
use base::Millis;
use base::hash::Seed;
use base::random::Random;
use pack::arena::{self, Arena, Evacuation, Progress, Stubborn};
use pack::counted::Counted;
use std::alloc::System;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::{
    Acknowledgment, Deadline, Direction, End, Expiry, Form, Id, Key, Keyspace, KeyspaceOptions, Kind,
    Lifetime, Member, MoverStats, Pairs, Settings, StepLimits, View,
};

#[global_allocator]
static HEAP: Counted<Arena<System>> = Counted(Arena(System));

const NOW: Millis = Millis(1_790_000_000_000);
const LIMITS: StepLimits = StepLimits { effort: 60, len_max: 100 };

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Text(Vec<u8>),
    List(VecDeque<Vec<u8>>),
    Set(BTreeSet<Vec<u8>>),
    Hash(BTreeMap<Vec<u8>, (Vec<u8>, Deadline)>),
    ZSet(BTreeMap<Vec<u8>, u64>),
}

type Model = BTreeMap<String, (Value, Deadline)>;

/// One evacuation at a time, so one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_past(deadline: Deadline, now: Millis) -> bool {
    matches!(deadline, Deadline::At(at) if at <= now)
}

fn with<R>(keyspace: &Keyspace, now: Millis, key: &str, act: impl FnOnce(&mut View<'_>, &Key<'_>) -> R) -> R {
    let settings = Settings::default();
    let (mut view, key) = keyspace.lock_one(0, now, &settings, key.as_bytes());
    act(&mut view, &key)
}

fn some_bytes(random: &mut Random, max: u64) -> Vec<u8> {
    vec![b'a' + random.below(26) as u8; random.below(max) as usize]
}

/// One thread's keys, which nobody else writes.
fn edit(keyspace: &Keyspace, model: &mut Model, thread: u64, random: &mut Random) {
    let key = format!("{thread}:{}", random.below(4000));
    let deadline = if random.below(4) == 0 { Deadline::At(Millis(NOW.0 + 1000)) } else { Deadline::Never };
    with(keyspace, NOW, &key, |view, token| match random.below(14) {
        9..11 => {
            if view.kind(token) != Some(Kind::Hash) {
                view.remove(token);
                model.remove(&key);
            }
            let entry = model.entry(key.clone()).or_insert((Value::Hash(BTreeMap::new()), Deadline::Never));
            let Value::Hash(twin) = &mut entry.0 else { panic!("the other kinds were removed") };
            let mut hash = view.hash_or_new(token).expect("a hash");
            for _ in 0..1 + random.below(100) {
                let (field, value) = (some_bytes(random, 30), some_bytes(random, 900));
                let (deadline, lifetime) = match random.below(3) {
                    0 => (Deadline::At(Millis(NOW.0 + 1000)), Lifetime::Until(Millis(NOW.0 + 1000))),
                    _ => (Deadline::Never, Lifetime::Endless),
                };
                hash.set(&field, &value, lifetime);
                twin.insert(field, (value, deadline));
            }
        }
        0..4 => {
            view.remove(token);
            model.remove(&key);
        }
        4..7 => {
            let text = some_bytes(random, 3000);
            view.put_string(token, &text, Form::Auto, Expiry::Clear);
            view.set_deadline(token, deadline);
            model.insert(key.clone(), (Value::Text(text), deadline));
        }
        7..9 => {
            if view.kind(token) != Some(Kind::Set) {
                view.remove(token);
                model.remove(&key);
            }
            let entry = model.entry(key.clone()).or_insert((Value::Set(BTreeSet::new()), Deadline::Never));
            let Value::Set(twin) = &mut entry.0 else { panic!("the other kinds were removed") };
            let mut set = view.set_or_new(token).expect("a set");
            for _ in 0..1 + random.below(200) {
                let member = match random.below(2) {
                    0 => random.below(1 << 40).to_string().into_bytes(),
                    _ => some_bytes(random, 40),
                };
                assert_eq!(set.insert(&member), twin.insert(member));
            }
        }
        11..13 => edit_zset(view, token, model, &key, random),
        _ => {
            if view.kind(token) != Some(Kind::List) {
                view.remove(token);
                model.remove(&key);
            }
            let entry = model.entry(key.clone()).or_insert((Value::List(VecDeque::new()), Deadline::Never));
            let Value::List(twin) = &mut entry.0 else { panic!("the other kinds were removed") };
            let mut list = view.list_or_new(token).expect("a list");
            for _ in 0..1 + random.below(60) {
                let text = some_bytes(random, 60);
                list.push(End::Tail, &text);
                twin.push_back(text);
            }
        }
    });
}

/// Few scores in some sets, so that runs of them are long.
fn edit_zset(view: &mut View<'_>, token: &Key<'_>, model: &mut Model, key: &str, random: &mut Random) {
    if view.kind(token) != Some(Kind::ZSet) {
        view.remove(token);
        model.remove(key);
    }
    let entry = model.entry(key.to_owned()).or_insert((Value::ZSet(BTreeMap::new()), Deadline::Never));
    let Value::ZSet(twin) = &mut entry.0 else { panic!("the other kinds were removed") };
    let mut set = view.zset_or_new(token).expect("a sorted set");
    let scores = [1, 100_000][key.len() % 2];
    for _ in 0..1 + random.below(300) {
        let (member, score) = (format!("user:{}", random.below(1000)).into_bytes(), random.below(scores));
        let old = set.update(&member, |_| Some(score as f64));
        assert_eq!(old, twin.insert(member, score).map(|score| score as f64));
    }
}

fn check(keyspace: &Keyspace, now: Millis, model: &Model) {
    for (key, (value, deadline)) in model {
        with(keyspace, now, key, |view, token| match value {
            _ if is_past(*deadline, now) => assert!(!view.exists(token)),
            Value::Text(text) => {
                let mut found = Vec::new();
                view.string(token).expect("a string").expect("it is there").append_to(&mut found);
                assert_eq!(&found, text, "{key}");
            }
            Value::List(twin) => {
                let mut found = VecDeque::new();
                let list = view.list(token).expect("a list").expect("it is there");
                list.visit(0, End::Tail, &mut |_, item| {
                    let mut text = Vec::new();
                    item.append_to(&mut text);
                    found.push_back(text);
                    ControlFlow::Continue(())
                });
                assert_eq!(&found, twin, "{key}");
            }
            Value::ZSet(twin) => {
                let set = view.zset(token).expect("a sorted set").expect("it is there");
                assert_eq!(set.len(), twin.len() as u64, "{key}");
                for (member, score) in twin {
                    assert_eq!(set.score(member), Some(*score as f64), "{key}");
                }
                let mut seen = BTreeSet::new();
                set.scan(0, u64::MAX, &mut |entry| {
                    seen.insert(entry.member.to_vec());
                });
                assert!(seen.iter().all(|member| twin.contains_key(member)), "{key}");
            }
            Value::Set(twin) => {
                let mut found = BTreeSet::new();
                let set = view.set(token).expect("a set").expect("it is there");
                set.for_each(&mut |member| {
                    let mut text = Vec::new();
                    member.append_to(&mut text);
                    assert!(found.insert(text));
                });
                assert_eq!(&found, twin, "{key}");
            }
            Value::Hash(twin) => {
                let mut found = BTreeMap::new();
                if let Some(hash) = view.hash(token).expect("a hash") {
                    hash.for_each_timed(&mut |field, value, deadline| {
                        let (mut name, mut text) = (Vec::new(), Vec::new());
                        field.append_to(&mut name);
                        value.append_to(&mut text);
                        assert!(found.insert(name, (text, deadline)).is_none());
                    });
                }
                let live: BTreeMap<_, _> = twin
                    .iter()
                    .filter(|(_, kept)| !is_past(kept.1, now))
                    .map(|(f, v)| (f.clone(), v.clone()))
                    .collect();
                assert_eq!(found, live, "{key}");
            }
        });
    }
}

/// Whether anything of a value is left at this time.
fn is_live(value: &Value, deadline: Deadline, now: Millis) -> bool {
    let has_fields = match value {
        Value::Hash(twin) => twin.values().any(|kept| !is_past(kept.1, now)),
        _ => true,
    };
    has_fields && !is_past(deadline, now)
}

/// Moves all data once.
fn round(keyspace: &Keyspace, stubborn: &mut Stubborn) -> MoverStats {
    let mut evacuation = Evacuation::plan(stubborn).expect("no other goes on");
    while evacuation.close(300) == Progress::More {}
    let mut mover = keyspace.mover();
    while keyspace.relocate(&mut mover, LIMITS) == Progress::More {}
    evacuation.rewind();
    while evacuation.reopen(300, stubborn) == Progress::More {}
    while arena::purge(64) > 0 {}
    mover.stats
}

#[test]
fn threads_edit_and_keys_expire_while_everything_moves() {
    let _alone = alone();
    let keyspace = Keyspace::new(KeyspaceOptions { shard_bits: 3, databases: 16, seed: Seed::new(1, 2) });
    let is_over = AtomicBool::new(false);
    let models = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                let keyspace = &keyspace;
                scope.spawn(move || {
                    let (mut random, mut model) = (Random::new(thread), Model::new());
                    (0..8_000).for_each(|_| edit(keyspace, &mut model, thread, &mut random));
                    check(keyspace, NOW, &model);
                    model
                })
            })
            .collect();
        let mover = scope.spawn(|| {
            let mut stubborn = Stubborn::default();
            while !is_over.load(Ordering::Relaxed) {
                round(&keyspace, &mut stubborn);
            }
        });
        let models: Vec<Model> = threads.into_iter().map(|t| t.join().expect("an editor ends")).collect();
        is_over.store(true, Ordering::Relaxed);
        mover.join().expect("the mover ends");
        models
    });
    let stats = round(&keyspace, &mut Stubborn::default());
    assert!(stats.moves.moved + stats.moves.stayed > 1000 && stats.keys_moved + stats.keys_stayed > 100);
    let later = Millis(NOW.0 + 2000);
    while keyspace.expire(later, 10_000, &mut Vec::new()).is_some_and(|due| due <= later) {}
    models.iter().for_each(|model| check(&keyspace, later, model));
    let live = models.iter().flat_map(|model| model.values()).filter(|v| is_live(&v.0, v.1, later)).count();
    assert_eq!(keyspace.len(0), live as u64, "what is due has gone");
}

/// An entry's one field.
struct Numbered(i64);

impl Pairs for Numbered {
    fn count(&self) -> usize {
        1
    }
    fn name(&self, _index: usize) -> &[u8] {
        b"number"
    }
    fn value(&self, _index: usize) -> base::Item<'_> {
        base::Item::Int(self.0)
    }
    fn text_bytes(&self) -> usize {
        12
    }
}

/// What a stream holds, and how much of it is pending.
fn numbers(keyspace: &Keyspace, key: &str) -> (Vec<(u64, i64)>, u64) {
    with(keyspace, NOW, key, |view, key| {
        let stream = view.stream(key).expect("a stream").expect("it is there");
        let mut found = Vec::new();
        stream.visit(Id::MIN, Direction::Up, &mut |row| {
            row.for_each(&mut |_, value| {
                let base::Item::Int(n) = value else { panic!("a number was put in") };
                found.push((row.id.ms, n));
            });
            ControlFlow::Continue(())
        });
        (found, stream.group(b"g").map_or(0, |group| group.pending_len()))
    })
}

#[test]
fn streams_and_what_is_pending_in_them_survive_moves() {
    let _alone = alone();
    let keyspace = Keyspace::new(KeyspaceOptions { shard_bits: 2, databases: 16, seed: Seed::new(1, 2) });
    let limits = Settings::default().stream;
    let random_number = |ms: u64| (ms.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) as i64;
    let keys: Vec<String> = (0..200).map(|n| format!("stream:{n}")).collect();
    let member = |consumer| Member { group: b"g", consumer, now: NOW };
    // By turns, so that their leaves lie between each other's.
    for part in 0..20 {
        for key in &keys {
            with(&keyspace, NOW, key, |view, key| {
                let mut stream = view.stream_or_new(key).expect("a stream");
                let ids = part * 100 + 1..part * 100 + 101;
                ids.for_each(|ms| stream.add(Id { ms, seq: 0 }, &Numbered(random_number(ms)), &limits));
            });
        }
    }
    for key in &keys {
        with(&keyspace, NOW, key, |view, key| {
            let mut stream = view.stream_or_new(key).expect("a stream");
            stream.create_group(b"g", Id::MIN, Some(0));
            let group = stream.group_mut(b"g").expect("just created");
            let consumer = group.create_consumer(b"c", NOW).expect("the first");
            stream.deliver(member(consumer), Some(500), Acknowledgment::Awaited, &mut |_| {});
        });
    }
    // Sparse memory, so that there is something to move.
    for key in keys.iter().enumerate().filter(|(n, _)| n % 4 > 0).map(|(_, key)| key) {
        with(&keyspace, NOW, key, |view, key| assert!(view.remove(key)));
    }
    let stats = round(&keyspace, &mut Stubborn::default());
    assert!(stats.moves.moved > 50, "{stats:?}");
    for key in keys.iter().step_by(4) {
        let (found, pending) = numbers(&keyspace, key);
        assert!(found.into_iter().eq((1..2001).map(|ms| (ms, random_number(ms)))) && pending == 500);
    }
}

#[test]
fn memory_follows_the_data_down() {
    let _alone = alone();
    let keyspace = Keyspace::new(KeyspaceOptions { shard_bits: 4, databases: 16, seed: Seed::new(1, 2) });
    let mut random = Random::new(3);
    let names: Vec<String> = (0..40_000).map(|n| format!("key:{n}")).collect();
    for name in &names {
        let text = some_bytes(&mut random, 6000);
        with(&keyspace, NOW, name, |view, key| view.put_string(key, &text, Form::Auto, Expiry::Clear));
    }
    let full = arena::usage();
    for name in names.iter().filter(|_| random.below(10) > 1) {
        with(&keyspace, NOW, name, |view, key| assert!(view.remove(key)));
    }
    let mut stubborn = Stubborn::default();
    let stats = [round(&keyspace, &mut stubborn), round(&keyspace, &mut stubborn)];
    assert!(stats[0].keys_moved > 100);
    let after = arena::usage();
    assert!(after.used_bytes * 3 < full.used_bytes, "{full:?} {after:?}");
    assert!(after.resident_bytes * 10 < after.used_bytes * 13, "{full:?} {after:?}");
}
