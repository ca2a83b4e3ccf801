//! The keyspace as a whole, as commands and the server use it: locks, databases, counters, scans, flushes.
use crate::{
    Deadline, End, Expiry, Form, Frozen, FrozenEntry, Garbage, Key, Keyspace, KeyspaceOptions, Kind,
    Settings, View,
};
use base::hash::Seed;
use base::random::Random;
use base::{Item, Millis};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

pub(crate) const NOW: Millis = Millis(1_790_000_000_000);

pub(crate) fn keyspace(shard_bits: u32) -> Keyspace {
    Keyspace::new(KeyspaceOptions { shard_bits, databases: 16, seed: Seed::new(11, 12) })
}

pub(crate) fn with<R>(
    keyspace: &Keyspace,
    now: Millis,
    key: &str,
    act: impl FnOnce(&mut View<'_>, &Key<'_>) -> R,
) -> R {
    let settings = Settings::default();
    let (mut view, key) = keyspace.lock_one(0, now, &settings, key.as_bytes());
    act(&mut view, &key)
}

/// Shows all that was frozen.
pub(crate) fn each_frozen(frozen: Frozen, mut show: impl FnMut(FrozenEntry<'_>)) {
    for shard in frozen.into_dbs().flat_map(|db| db.into_shards()) {
        let _ = shard.visit(&mut |entry| {
            show(entry);
            ControlFlow::Continue(())
        });
    }
}

/// The text of an element.
pub(crate) fn text_of(item: Item<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    item.append_to(&mut text);
    text
}

pub(crate) fn set(keyspace: &Keyspace, key: &str, value: &str, expiry: Expiry) {
    with(keyspace, NOW, key, |view, key| view.put_string(key, value.as_bytes(), Form::Auto, expiry));
}

fn fill(keyspace: &Keyspace, keys: u32) {
    (0..keys).for_each(|n| set(keyspace, &format!("key:{n}"), "v", Expiry::Clear));
}

#[test]
fn many_keys_lock_each_shard_once_and_tokens_keep_the_order_of_the_keys() {
    let keyspace = keyspace(2);
    let names: Vec<String> = (0..50).map(|n| format!("k{}", n % 30)).collect();
    let keys: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    let settings = Settings::default();
    let (mut view, tokens) = keyspace.lock_named(3, NOW, &settings, &keys);
    for (name, token) in names.iter().zip(tokens.iter()) {
        assert_eq!(token.bytes(), name.as_bytes());
        view.put_string(token, name.as_bytes(), Form::Auto, Expiry::Clear);
    }
    for (name, token) in names.iter().zip(tokens.iter()) {
        assert_eq!(view.string(token), Ok(Some(base::Item::Bytes(name.as_bytes()))));
    }
    view.dirty(5);
    drop(view);
    assert_eq!((keyspace.len(3), keyspace.len(0)), (30, 0));
    assert_eq!(keyspace.stats().dirty, 5);
}

#[test]
fn a_view_of_no_key_holds_nothing_and_may_be_asked_all_the_same() {
    let (keyspace, settings) = (keyspace(2), Settings::default());
    let (mut view, tokens) = keyspace.lock_named(0, NOW, &settings, &[]);
    assert!(tokens.is_empty());
    assert_eq!(keyspace.len(0), 0, "no shard is locked");
    view.dirty(1);
    assert!(view.take_garbage().is_empty());
    assert_eq!(view.now(), NOW);
}

#[test]
fn two_keys_locked_in_both_orders_by_many_threads_never_wait_for_each_other() {
    const ROUNDS: i64 = 3000;
    let keyspace = keyspace(3);
    let names = [b"a".as_slice(), b"b", b"c", b"d"];
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let keyspace = &keyspace;
            scope.spawn(move || {
                let (settings, mut random) = (Settings::default(), Random::new(thread));
                for _ in 0..ROUNDS {
                    let pair = [names[random.below(4) as usize], names[random.below(4) as usize]];
                    let (mut view, keys) = keyspace.lock_named(0, NOW, &settings, &pair);
                    view.add(&keys[0], 1).expect("it is a number");
                    view.add(&keys[1], -1).expect("it is a number");
                }
            });
        }
    });
    let sum = |key: &&[u8]| {
        let settings = Settings::default();
        let (mut view, key) = keyspace.lock_one(0, NOW, &settings, key);
        view.add(&key, 0).expect("it is a number")
    };
    assert_eq!(names.iter().map(sum).sum::<i64>(), 0);
}

#[test]
fn a_key_hashed_once_for_its_batch_is_found_and_prefetching_it_changes_nothing() {
    let (keyspace, settings) = (keyspace(4), Settings::default());
    set(&keyspace, "k", "v", Expiry::Clear);
    let hash = keyspace.hash(b"k");
    keyspace.prefetch_hashed(0, hash);
    keyspace.prefetch(9, b"k");
    let (mut view, key) = keyspace.lock_one_hashed(0, NOW, &settings, b"k", hash);
    keyspace.prefetch_hashed(0, hash);
    assert!(view.exists(&key));
}

#[test]
fn lookups_count_as_hits_and_misses_only_once_they_are_asked_to() {
    let keyspace = keyspace(1);
    set(&keyspace, "k", "v", Expiry::At(Millis(NOW.0 + 10)));
    let look = |now, key, counted: bool| {
        with(&keyspace, now, key, |view, key| {
            if counted {
                view.count_lookups();
            }
            view.string(key).is_ok_and(|found| found.is_some())
        })
    };
    assert!(look(NOW, "k", false) && look(NOW, "k", true) && !look(NOW, "none", true));
    assert!(!look(Millis(NOW.0 + 10), "k", true), "overdue");
    let stats = keyspace.stats();
    assert_eq!((stats.hits, stats.misses, stats.expired), (1, 2, 1));
    keyspace.dirty(3);
    keyspace.reset_stats();
    let stats = keyspace.stats();
    assert_eq!((stats.hits, stats.misses, stats.expired, stats.dirty), (0, 0, 0, 3));
}

#[test]
fn scan_shows_every_key_that_stays_whatever_comes_and_goes_meanwhile() {
    for shard_bits in [0, 2, 5] {
        let keyspace = keyspace(shard_bits);
        fill(&keyspace, 500);
        let (mut cursor, mut seen, mut round) = (0, BTreeSet::new(), 0);
        loop {
            let visit = &mut |key: &[u8], kind| {
                assert_eq!(kind, Some(Kind::String));
                seen.insert(key.to_vec());
            };
            cursor = keyspace.scan(0, NOW, cursor, 7, visit).next_cursor;
            if cursor == 0 {
                break;
            }
            // Leaves split while others come, and merge while they go.
            for n in 0..40 {
                let name = format!("other:{}", n + round / 2 * 40);
                match round % 2 {
                    0 => set(&keyspace, &name, "v", Expiry::Clear),
                    _ => drop(with(&keyspace, NOW, &name, |view, key| view.remove(key))),
                }
            }
            round += 1;
        }
        assert!((0..500).all(|n| seen.contains(format!("key:{n}").as_bytes())), "{shard_bits} bits");
    }
}

#[test]
fn what_a_scan_met_past_its_deadline_is_removed_unless_expiry_rests_or_it_was_written_since() {
    let (keyspace, later) = (keyspace(1), Millis(NOW.0 + 10));
    for key in ["late", "renewed"] {
        set(&keyspace, key, "v", Expiry::At(Millis(NOW.0 + 1)));
    }
    set(&keyspace, "stays", "v", Expiry::Clear);
    let met = [&b"late"[..], b"renewed", b"stays", b"missing"].map(<[u8]>::to_vec);
    keyspace.rest_expiry();
    keyspace.remove_overdue(0, later, &met, &mut Vec::new());
    assert_eq!(keyspace.len(0), 3);
    keyspace.resume_expiry();
    set(&keyspace, "renewed", "w", Expiry::Clear);
    keyspace.remove_overdue(0, later, &met, &mut Vec::new());
    assert_eq!((keyspace.len(0), keyspace.stats().expired), (2, 1));
    assert_eq!(keyspace.volatile(0, later), (0, 0));
}

#[test]
fn scan_returns_about_as_many_keys_as_asked_and_nothing_overdue() {
    let keyspace = keyspace(3);
    fill(&keyspace, 2000);
    set(&keyspace, "late", "v", Expiry::At(Millis(NOW.0 + 1)));
    let (mut cursor, mut total) = (0, 0);
    loop {
        let mut seen = 0;
        cursor = keyspace
            .scan(0, Millis(NOW.0 + 1), cursor, 100, &mut |key, kind| {
                assert_eq!(kind.is_none(), key == b"late");
                seen += u64::from(kind.is_some());
            })
            .next_cursor;
        total += seen;
        assert!(seen <= 200 && (seen >= 100 || cursor == 0));
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(total, 2000);
}

#[test]
fn scan_takes_any_cursor_and_ends() {
    let keyspace = keyspace(2);
    fill(&keyspace, 100);
    for cursor in [1, 1 << 31, 3 << 32 | 77, 4 << 32, u64::MAX, 1 << 63] {
        let mut next = cursor;
        while next != 0 {
            next = keyspace.scan(0, NOW, next, u64::MAX, &mut |_, _| {}).next_cursor;
        }
    }
    // A database to which nothing was written, and a walk that goes on after a flush.
    assert_eq!(keyspace.scan(7, NOW, 0, 10, &mut |_, _| panic!("empty")).next_cursor, 0);
    let cursor = keyspace.scan(0, NOW, 0, 10, &mut |_, _| {}).next_cursor;
    keyspace.flush(None);
    assert_eq!(keyspace.scan(0, NOW, cursor, 10, &mut |_, _| panic!("flushed")).next_cursor, 0);
}

#[test]
fn flush_empties_one_database_or_all_and_forgets_their_deadlines() {
    let (keyspace, settings) = (keyspace(3), Settings::default());
    for db in [0, 1, 5] {
        for n in 0..100_u32 {
            let name = n.to_le_bytes();
            let (mut view, key) = keyspace.lock_one(db, NOW, &settings, &name);
            let expiry = if n < 10 { Expiry::At(Millis(NOW.0 + 50)) } else { Expiry::Clear };
            view.put_string(&key, b"v", Form::Auto, expiry);
        }
    }
    assert_eq!(keyspace.flush(Some(1)).0, 100);
    assert_eq!([0, 1, 5].map(|db| keyspace.len(db)), [100, 0, 100]);
    assert_eq!(keyspace.volatile(1, NOW), (0, 0));
    assert_eq!(keyspace.volatile(5, NOW), (10, 50));
    let (keys, garbage) = keyspace.flush(None);
    assert_eq!(keys, 200);
    assert!(!garbage.is_empty() && garbage.len() <= 16, "whole trees, not keys");
    let mut garbage: Vec<Garbage> = Vec::new();
    assert_eq!(keyspace.expire(Millis(NOW.0 + 100), 1000, &mut garbage), None);
    assert_eq!(keyspace.stats().expired, 0);
}

#[test]
fn a_database_costs_the_same_whatever_its_number_and_nothing_once_it_was_flushed() {
    let settings = Settings::default();
    let options = KeyspaceOptions { shard_bits: 2, databases: u16::MAX, seed: Seed::new(11, 12) };
    let keyspace = Keyspace::new(options);
    let made = || (0..keyspace.shards()).map(|index| keyspace.shard(index).dbs().count()).max();
    for db in [60_000, 2, u16::MAX - 1] {
        for n in 0..100_u32 {
            let name = n.to_le_bytes();
            let (mut view, key) = keyspace.lock_one(db, NOW, &settings, &name);
            view.put_string(&key, b"v", Form::Auto, Expiry::Clear);
        }
    }
    assert_eq!(made(), Some(4), "database 0 and three others");
    keyspace.swap(2, 77, NOW);
    assert_eq!([2, 77, 60_000, 60_001].map(|db| keyspace.len(db)), [0, 100, 100, 0]);
    assert_eq!(made(), Some(4));
    keyspace.flush(Some(60_000));
    assert_eq!((keyspace.len(60_000), made()), (0, Some(3)));
    keyspace.flush(None);
    assert_eq!((keyspace.len(77), made()), (0, Some(1)));
}

#[test]
fn what_is_large_is_left_for_the_background_and_what_is_small_is_not() {
    let keyspace = keyspace(0);
    let push = |key: &str, count: u32| {
        with(&keyspace, NOW, key, |view, key| {
            let mut list = view.list_or_new(key).expect("it is a list");
            (0..count).for_each(|n| list.push(End::Tail, n.to_string().as_bytes()));
        });
    };
    let garbage_of = |key: &str, act: &dyn Fn(&mut View<'_>, &Key<'_>)| {
        with(&keyspace, NOW, key, |view, key| {
            act(view, key);
            view.take_garbage().len()
        })
    };
    let remove = |view: &mut View<'_>, key: &Key<'_>| assert!(view.remove(key));
    push("large", 100_000);
    push("small", 10);
    assert_eq!(garbage_of("small", &remove), 0);
    assert_eq!(garbage_of("large", &remove), 1);
    push("large", 100_000);
    assert_eq!(garbage_of("large", &|view, key| view.put_string(key, b"v", Form::Auto, Expiry::Clear)), 1);
    set(&keyspace, "text", &"x".repeat(6 << 20), Expiry::Clear);
    assert_eq!(garbage_of("text", &remove), 1);
}

#[test]
fn a_value_moves_to_another_key_with_its_deadline_and_replaces_what_was_there() {
    let (keyspace, settings) = (keyspace(4), Settings::default());
    let at = Deadline::At(Millis(NOW.0 + 500));
    set(&keyspace, "a", &"x".repeat(3000), Expiry::At(Millis(NOW.0 + 500)));
    set(&keyspace, "b", "old", Expiry::At(Millis(NOW.0 + 9)));
    let (mut view, keys) = keyspace.lock_named(0, NOW, &settings, &[b"a", b"b"]);
    let taken = view.take(&keys[0]).expect("it is there");
    view.put_taken(&keys[1], taken);
    assert!(!view.exists(&keys[0]));
    assert_eq!(view.deadline(&keys[1]), Some(at));
    assert_eq!(view.string(&keys[1]).expect("a string").map(|item| item.len()), Some(3000));
    drop(view);
    assert_eq!(keyspace.volatile(0, NOW), (1, 500));
}

#[test]
fn swapped_databases_keep_their_deadlines_and_expire_on_time() {
    let (keyspace, settings) = (keyspace(3), Settings::default());
    for n in 0..200_u32 {
        let name = n.to_le_bytes();
        let (mut view, key) = keyspace.lock_one(4, NOW, &settings, &name);
        view.put_string(&key, b"v", Form::Auto, Expiry::At(Millis(NOW.0 + 1 + i64::from(n % 50))));
    }
    keyspace.swap(4, 0, Millis(0));
    keyspace.swap(2, 15, Millis(0));
    assert_eq!([0, 4].map(|db| keyspace.len(db)), [200, 0]);
    assert_eq!(keyspace.volatile(0, NOW).0, 200);
    let mut garbage: Vec<Garbage> = Vec::new();
    for ms in 1..=50_u64 {
        assert!(keyspace.soonest_due().is_some_and(|due| due.0 <= NOW.0 + ms as i64), "{ms}");
        keyspace.expire(Millis(NOW.0 + ms as i64), 1000, &mut garbage);
        assert_eq!(keyspace.len(0), 200 - 4 * ms);
    }
}

/// Whether so many draws of each of `names` are what chance gives: chi-square within five deviations.
fn is_uniform(keyspace: &Keyspace, names: &[String], seed: u64) -> bool {
    const DRAWS: usize = 60;
    let (mut drawn, mut random) = (BTreeMap::<Vec<u8>, u32>::new(), Random::new(seed));
    for _ in 0..names.len() * DRAWS {
        let is_found = keyspace
            .random_key(0, NOW, &mut random, &mut |key, _| *drawn.entry(key.to_vec()).or_default() += 1);
        assert!(is_found);
    }
    let times = |name: &String| f64::from(drawn.get(name.as_bytes()).copied().unwrap_or(0));
    let expected = DRAWS as f64;
    let sum: f64 = names.iter().map(|name| (times(name) - expected).powi(2) / expected).sum();
    let freedom = names.len() as f64 - 1.0;
    sum < freedom + 5.0 * (2.0 * freedom).sqrt()
}

#[test]
fn random_keys_are_uniform_in_trees_that_have_grown_and_in_those_that_have_shrunk() {
    for (shard_bits, kept) in [(0, 40), (0, 1000), (3, 300)] {
        let keyspace = keyspace(shard_bits);
        fill(&keyspace, 30_000);
        let mut names: Vec<String> = (0..30_000).map(|n| format!("key:{n}")).collect();
        let mut random = Random::new(kept);
        while names.len() as u64 > kept {
            let name = names.swap_remove(random.below(names.len() as u64) as usize);
            assert!(with(&keyspace, NOW, &name, |view, key| view.remove(key)));
        }
        assert!(is_uniform(&keyspace, &names, 1), "{kept} left of 30,000 on {shard_bits} bits");
    }
}

#[test]
fn a_random_key_is_found_among_any_number_of_those_past_their_deadline() {
    let keyspace = keyspace(2);
    for n in 0..5_000 {
        set(&keyspace, &format!("late:{n}"), "v", Expiry::At(NOW));
    }
    assert!(!keyspace.random_key(0, NOW, &mut Random::new(1), &mut |_, _| panic!("all are gone")));
    let names: Vec<String> = (0..5).map(|n| format!("key:{n}")).collect();
    fill(&keyspace, 5);
    assert!(is_uniform(&keyspace, &names, 2));
}

#[test]
fn a_random_key_is_any_of_the_live_ones() {
    let keyspace = keyspace(3);
    let mut random = Random::new(5);
    assert!(!keyspace.random_key(0, NOW, &mut random, &mut |_, _| panic!("empty")));
    fill(&keyspace, 20);
    set(&keyspace, "late", "v", Expiry::At(Millis(NOW.0 + 1)));
    let mut drawn: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    for _ in 0..4000 {
        let found = keyspace.random_key(0, Millis(NOW.0 + 1), &mut random, &mut |key, _| {
            *drawn.entry(key.to_vec()).or_default() += 1;
        });
        assert!(found);
    }
    assert!(drawn.len() == 20 && drawn.values().all(|times| (100..320).contains(times)), "{drawn:?}");
}

/// What the trees hold, each under its lock.
fn counted(keyspace: &Keyspace, db: u16) -> u64 {
    (0..keyspace.shards()).map(|index| keyspace.shard(index).db(db).map_or(0, |db| db.map.len())).sum()
}

#[test]
fn the_number_of_keys_is_exact_without_a_lock_whatever_was_done_in_any_database() {
    for seed in 0..20 {
        let (keyspace, mut random) = (keyspace(2), Random::new(seed));
        let settings = Settings::default();
        for step in 0..400 {
            let name = format!("k{}", random.below(60));
            let (db, other) = (random.below(4) as u16, random.below(4) as u16);
            let now = Millis(NOW.0 + step);
            match random.below(12) {
                0 => drop(keyspace.flush((db > 0).then_some(db))),
                1 => keyspace.swap(db, other, Millis(0)),
                2 => drop(keyspace.expire(now, 100, &mut Vec::new())),
                _ => {
                    let (mut view, key) = keyspace.lock_one(db, now, &settings, name.as_bytes());
                    match random.below(6) {
                        0 => drop(view.remove(&key)),
                        1 => {
                            let deadline = Deadline::At(Millis(now.0 + random.below(20) as i64));
                            view.set_deadline(&key, deadline);
                        }
                        2 => drop(view.exists(&key)),
                        3 => {
                            if let Some(taken) = view.take(&key) {
                                view.put_taken(&key.in_db(other), taken);
                            }
                        }
                        _ => view.put_string(&key, b"v", Form::Auto, Expiry::Clear),
                    }
                }
            }
            for db in 0..16 {
                assert_eq!(keyspace.len(db), counted(&keyspace, db), "seed {seed}, step {step}, db {db}");
            }
        }
    }
}

#[test]
fn the_number_of_keys_is_told_while_another_thread_holds_a_shard() {
    let keyspace = keyspace(2);
    fill(&keyspace, 100);
    let held = keyspace.shard(1);
    std::thread::scope(|scope| {
        let told = scope.spawn(|| keyspace.len(0)).join().expect("nobody panics");
        assert_eq!(told, 100);
    });
    drop(held);
}
