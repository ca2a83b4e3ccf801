//! Eviction beside a key that is written: who goes, who stays, how many.
use super::choose_tests::names;
use crate::keyspace::tests::{NOW, keyspace};
use crate::{Beside, Eviction, Evictor, Expiry, Form, Keyspace, Policy, Settings};
use base::Millis;
use base::random::Random;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

fn settings(policy: Policy) -> Settings {
    Settings { eviction: Eviction { policy, ..Eviction::default() }, ..Settings::default() }
}

fn put(keyspace: &Keyspace, settings: &Settings, now: Millis, key: &str, expiry: Expiry) {
    let (mut view, key) = keyspace.lock_one(0, now, settings, key.as_bytes());
    view.put_string(&key, b"value", Form::Auto, expiry);
}

fn get(keyspace: &Keyspace, settings: &Settings, now: Millis, key: &str) -> bool {
    let (mut view, key) = keyspace.lock_one(0, now, settings, key.as_bytes());
    view.string(&key).is_ok_and(|value| value.is_some())
}

fn evict(
    keyspace: &Keyspace,
    evictor: &mut Evictor,
    settings: &Settings,
    now: Millis,
    key: &str,
    (excess_bytes, urgency): (u64, u32),
) -> u32 {
    let hash = keyspace.hash(key.as_bytes());
    let beside = Beside { db: 0, hash, coming_bytes: 20, excess_bytes, urgency };
    keyspace.evict_beside(evictor, now, &settings.eviction, &beside, &mut Vec::new())
}

fn later(s: i64) -> Millis {
    Millis(NOW.0 + s * 1000)
}

#[test]
fn the_key_that_is_written_stays_even_if_it_is_the_worst() {
    for policy in Policy::EVICTING.iter().copied() {
        let (keyspace, settings) = (keyspace(0), settings(policy));
        keyspace.tend_uses(NOW, &settings.eviction);
        let expiry = Expiry::At(later(1000));
        put(&keyspace, &settings, NOW, "counter", expiry);
        keyspace.tend_uses(later(2), &settings.eviction);
        (0..40).for_each(|n| put(&keyspace, &settings, later(2), &format!("k{n}"), expiry));
        let mut evictor = Evictor::new(1);
        let mut evicted = 0;
        for _ in 0..2000 {
            evicted += evict(&keyspace, &mut evictor, &settings, later(3), "counter", (1, Beside::URGENT));
        }
        let left = names(&keyspace);
        assert!(left.contains("counter"), "{policy:?}");
        // Only keys that share its tag are spared with it: one in 256.
        assert!(left.len() <= 3 && evicted as usize + left.len() == 41, "{policy:?}: {left:?}");
        assert_eq!(keyspace.stats().evicted, u64::from(evicted));
    }
}

/// Has an evictor see some leaves, so that it knows which keys are bad.
fn look_around(keyspace: &Keyspace, evictor: &mut Evictor, settings: &Settings, now: Millis) {
    for n in 0..20 {
        let evicted = evict(keyspace, evictor, settings, now, &format!("new{n}"), (1, 1));
        assert_eq!(evicted, 0, "as long as few leaves were seen nothing goes");
    }
}

#[test]
fn no_more_goes_than_is_over() {
    let (keyspace, settings) = (keyspace(0), settings(Policy::AllkeysLru));
    keyspace.tend_uses(NOW, &settings.eviction);
    (0..40).for_each(|n| put(&keyspace, &settings, NOW, &format!("k{n}"), Expiry::Clear));
    let mut evictor = Evictor::new(2);
    look_around(&keyspace, &mut evictor, &settings, NOW);
    for (excess, most) in [(0, 0), (1, 1), (15, 2), (40, 4), (1 << 30, 8)] {
        let evicted = evict(&keyspace, &mut evictor, &settings, NOW, "new", (excess, Beside::URGENT));
        assert!(evicted <= most && (evicted > 0) == (excess > 0), "{evicted} for {excess} bytes");
    }
    assert!(!Policy::NoEviction.evicts_beside());
}

#[test]
fn keys_without_a_deadline_stay_under_a_volatile_policy() {
    for policy in [Policy::VolatileLru, Policy::VolatileLfu, Policy::VolatileRandom, Policy::VolatileTtl] {
        let (keyspace, settings) = (keyspace(1), settings(policy));
        keyspace.tend_uses(NOW, &settings.eviction);
        for n in 0..400 {
            let expiry = if n % 4 == 0 { Expiry::At(later(1000)) } else { Expiry::Clear };
            put(&keyspace, &settings, NOW, &format!("k{n}"), expiry);
        }
        let mut evictor = Evictor::new(3);
        for n in 0..20_000 {
            evict(&keyspace, &mut evictor, &settings, NOW, &format!("new{n}"), (1 << 20, Beside::URGENT));
        }
        assert_eq!((keyspace.len(0), keyspace.volatile(0, NOW)), (300, (0, 0)), "{policy:?}");
    }
}

#[test]
fn what_is_past_its_deadline_counts_as_expired() {
    let (keyspace, settings) = (keyspace(0), settings(Policy::AllkeysLru));
    keyspace.tend_uses(NOW, &settings.eviction);
    (0..30).for_each(|n| put(&keyspace, &settings, NOW, &format!("k{n}"), Expiry::At(later(5))));
    let mut evictor = Evictor::new(4);
    look_around(&keyspace, &mut evictor, &settings, later(9));
    let evicted = evict(&keyspace, &mut evictor, &settings, later(9), "new", (1 << 20, Beside::URGENT));
    assert!(evicted > 0);
    assert_eq!((keyspace.stats().evicted, keyspace.stats().expired), (0, u64::from(evicted)));
}

/// Values that lie outside their entries bring more than the leaf has: a leaf that gets many of them loses
/// all of its keys that are due early, and keeps those that are due late.
#[test]
fn a_key_that_is_due_late_stays_while_others_are_due_early() {
    let (keyspace, settings) = (keyspace(1), settings(Policy::VolatileTtl));
    keyspace.tend_uses(NOW, &settings.eviction);
    for n in 0..4000 {
        put(&keyspace, &settings, NOW, &format!("early{n}"), Expiry::At(later(1000 + n % 10)));
    }
    let mut evictor = Evictor::new(6);
    for n in 0..400 {
        let key = format!("late{n}");
        for _ in 0..4 {
            if keyspace.stats().evicted > 3000 {
                break;
            }
            evict(&keyspace, &mut evictor, &settings, NOW, &key, (1 << 20, Beside::URGENT));
        }
        put(&keyspace, &settings, NOW, &key, Expiry::At(later(1_000_000)));
    }
    let names = (0..400).filter(|n| get(&keyspace, &settings, NOW, &format!("late{n}"))).count();
    let evicted = keyspace.stats().evicted;
    assert!(evicted > 1000 && names == 400, "{evicted} have gone, {names} of those that are due late stay");
}

/// Where many have to go they go from random leaves, the worst of each, and not too many of one.
#[test]
fn many_keys_go_from_many_leaves() {
    for policy in [Policy::AllkeysLru, Policy::AllkeysLfu, Policy::AllkeysRandom, Policy::VolatileLru] {
        let (keyspace, settings) = (keyspace(2), settings(policy));
        keyspace.tend_uses(NOW, &settings.eviction);
        for n in 0..8000 {
            put(&keyspace, &settings, NOW, &format!("k{n}"), Expiry::At(later(100_000)));
        }
        keyspace.tend_uses(later(2), &settings.eviction);
        for n in 0..4000 {
            assert!(get(&keyspace, &settings, later(2), &format!("k{}", 2 * n)));
        }
        let (mut evictor, mut garbage, mut gone) = (Evictor::new(7), Vec::new(), 0);
        for _ in 0..4000 {
            let eviction = &settings.eviction;
            let evicted = keyspace.evict_several(&mut evictor, later(3), eviction, 1 << 20, &mut garbage);
            assert!(evicted <= 8);
            gone += u64::from(evicted);
            if gone >= 2000 {
                break;
            }
        }
        let used = (0..4000).filter(|n| get(&keyspace, &settings, later(3), &format!("k{}", 2 * n))).count();
        assert!(gone >= 2000 && keyspace.len(0) == 8000 - gone, "{policy:?}: {gone}");
        let kept = if policy == Policy::AllkeysRandom { 2500..3600 } else { 3900..4001 };
        assert!(kept.contains(&used), "{policy:?}: {used} of the keys that were used are left");
    }
}

#[test]
fn no_key_goes_from_random_leaves_where_none_may() {
    for policy in [Policy::NoEviction, Policy::VolatileLru, Policy::VolatileLfu, Policy::VolatileRandom] {
        let (keyspace, settings) = (keyspace(2), settings(policy));
        keyspace.tend_uses(NOW, &settings.eviction);
        (0..2000).for_each(|n| put(&keyspace, &settings, NOW, &format!("k{n}"), Expiry::Clear));
        let (mut evictor, mut garbage) = (Evictor::new(8), Vec::new());
        for _ in 0..1000 {
            let eviction = &settings.eviction;
            assert_eq!(keyspace.evict_several(&mut evictor, NOW, eviction, 1 << 20, &mut garbage), 0);
        }
        assert_eq!((keyspace.len(0), keyspace.stats().evicted), (2000, 0), "{policy:?}");
    }
}

/// Of a leaf whose keys were all used lately none goes as long as other leaves have worse ones, though some
/// key of that leaf is its oldest.
#[test]
fn a_leaf_is_no_cache_of_its_own() {
    let (keyspace, settings) = (keyspace(0), settings(Policy::AllkeysLru));
    keyspace.tend_uses(NOW, &settings.eviction);
    (0..2000).for_each(|n| put(&keyspace, &settings, NOW, &format!("k{n}"), Expiry::Clear));
    keyspace.tend_uses(later(2), &settings.eviction);
    // All keys of the leaf of "k7" and of those around it.
    let order = |key: &str| keyspace.hash(key.as_bytes()).order();
    let middle = order("k7");
    let near: Vec<String> = (0..2000)
        .map(|n| format!("k{n}"))
        .filter(|key| order(key).abs_diff(middle) < u32::MAX / 16)
        .collect();
    near.iter().for_each(|key| assert!(get(&keyspace, &settings, later(2), key)));
    let mut evictor = Evictor::new(5);
    let mut random = Random::new(5);
    let mut there = 0;
    for n in 0..800 {
        let elsewhere = format!("new{}", random.next_u64());
        let key = if n % 16 == 0 { "k7" } else { &elsewhere };
        let evicted = evict(&keyspace, &mut evictor, &settings, later(3), key, (1, Beside::URGENT / 2));
        there += if n % 16 == 0 { evicted } else { 0 };
    }
    assert_eq!(there, 0, "every other leaf has worse keys");
    assert!(keyspace.stats().evicted > 150, "{} went elsewhere", keyspace.stats().evicted);
    near.iter().for_each(|key| assert!(get(&keyspace, &settings, later(3), key), "{key} was used lately"));
}

#[test]
fn a_cache_that_evicts_beside_what_comes_keeps_the_youngest_and_its_size() {
    const FITTING: i64 = 4000;
    let (keyspace, settings) = (keyspace(3), settings(Policy::AllkeysLru));
    keyspace.tend_uses(NOW, &settings.eviction);
    let mut evictor = Evictor::new(6);
    for n in 0..40_000_i64 {
        let (now, key) = (Millis(NOW.0 + n / 50), format!("k{n}"));
        let over = keyspace.len(0) as i64 - FITTING;
        if over > 0 {
            let urgency = (over as u32 / 4).clamp(1, Beside::URGENT);
            evict(&keyspace, &mut evictor, &settings, now, &key, (over as u64 * 12, urgency));
        }
        put(&keyspace, &settings, now, &key, Expiry::Clear);
        assert!(over < 4 * i64::from(Beside::URGENT) + 100, "{over} over at {n}");
    }
    let now = Millis(NOW.0 + 1000);
    let young = (40_000 - FITTING..40_000).filter(|n| get(&keyspace, &settings, now, &format!("k{n}")));
    let young = young.count() as i64;
    assert!(young * 100 > FITTING * 95, "{young} of the {FITTING} youngest are left");
}

#[test]
fn nearer_deadlines_go_before_later_ones_and_what_is_left_expires_on_time() {
    let (keyspace, settings) = (keyspace(2), settings(Policy::VolatileTtl));
    let mut random = Random::new(7);
    let mut evictor = Evictor::new(7);
    let mut deadlines = Vec::new();
    for n in 0..20_000_i64 {
        let key = format!("k{n}");
        let over = keyspace.len(0) as i64 - 4000;
        if over > 0 {
            let urgency = (over as u32 / 4).clamp(1, Beside::URGENT);
            evict(&keyspace, &mut evictor, &settings, NOW, &key, (over as u64 * 12, urgency));
        }
        deadlines.push(later(1000 + random.below(100_000) as i64));
        put(&keyspace, &settings, NOW, &key, Expiry::At(deadlines[n as usize]));
    }
    let left: Vec<Millis> =
        names(&keyspace).iter().map(|key| deadlines[key[1..].parse::<usize>().unwrap()]).collect();
    deadlines.sort_unstable();
    let bar = deadlines[deadlines.len() - 4000];
    let late = left.iter().filter(|deadline| **deadline >= bar).count();
    assert!(late > 3700, "of the 4000 latest deadlines {late} are left");
    let middle = deadlines[18_000];
    keyspace.expire(middle, usize::MAX, &mut Vec::new());
    assert_eq!(keyspace.len(0) as usize, left.iter().filter(|deadline| **deadline > middle).count());
}

/// Threads that write, read and evict beside each other's keys: every key is counted once, whichever way it
/// went, and those that their thread wrote a moment ago are there.
#[test]
fn threads_evict_beside_each_other_and_nothing_is_lost_or_counted_twice() {
    let (keyspace, settings) = (keyspace(2), settings(Policy::AllkeysLru));
    keyspace.tend_uses(NOW, &settings.eviction);
    let (written, evicted) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (keyspace, settings, written, evicted) = (&keyspace, &settings, &written, &evicted);
            scope.spawn(move || {
                let mut evictor = Evictor::new(thread);
                for n in 0..6000_i64 {
                    let (now, key) = (Millis(NOW.0 + n / 10), format!("{thread}:{n}"));
                    let over = (keyspace.len(0) as i64 - 3000).max(0);
                    if over > 0 {
                        let urgency = (over as u32 / 4).clamp(1, Beside::URGENT / 2);
                        let gone = evict(keyspace, &mut evictor, settings, now, &key, (over as u64, urgency));
                        evicted.fetch_add(u64::from(gone), Relaxed);
                    }
                    put(keyspace, settings, now, &key, Expiry::Clear);
                    written.fetch_add(1, Relaxed);
                }
            });
        }
    });
    let held = keyspace.len(0);
    assert_eq!(written.load(Relaxed), evicted.load(Relaxed) + held);
    assert_eq!(keyspace.stats().evicted, evicted.load(Relaxed));
    assert_eq!(names(&keyspace).len() as u64, held);
}
