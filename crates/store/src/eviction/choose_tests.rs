//! Eviction: who goes under each policy, from few keys and from many.
use crate::keyspace::tests::{NOW, keyspace, set, with};
use crate::{Deadline, End, Eviction, Evictor, Expiry, Keyspace, Lifetime, Outcome, Policy};
use base::Millis;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const VOLATILE: [Policy; 4] =
    [Policy::VolatileLru, Policy::VolatileLfu, Policy::VolatileRandom, Policy::VolatileTtl];
const ALL_KEYS: [Policy; 3] = [Policy::AllkeysLru, Policy::AllkeysLfu, Policy::AllkeysRandom];

fn later(ms: i64) -> Expiry {
    Expiry::At(Millis(NOW.0 + ms))
}

fn evict(keyspace: &Keyspace, evictor: &mut Evictor, policy: Policy) -> Outcome {
    let eviction = Eviction { policy, ..Eviction::default() };
    keyspace.evict(evictor, NOW, &eviction, &mut Vec::new())
}

pub(crate) fn names(keyspace: &Keyspace) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    keyspace.visit(0, NOW, &mut |key, _| {
        names.insert(String::from_utf8_lossy(key).into_owned());
        std::ops::ControlFlow::Continue(())
    });
    names
}

#[test]
fn every_key_goes_one_at_a_time_and_then_there_is_nothing() {
    for policy in ALL_KEYS {
        for shard_bits in [0, 8] {
            let keyspace = keyspace(shard_bits);
            (0..500).for_each(|n| set(&keyspace, &format!("k{n}"), "v", Expiry::Clear));
            with(&keyspace, NOW, "list", |view, key| {
                view.list_or_new(key).expect("it is new").push(End::Head, b"x");
            });
            let mut evictor = Evictor::new(1);
            for left in (0..501).rev() {
                assert_eq!(evict(&keyspace, &mut evictor, policy), Outcome::Key);
                assert_eq!(keyspace.len(0), left, "{policy:?}");
            }
            assert_eq!(evict(&keyspace, &mut evictor, policy), Outcome::Nothing);
            assert_eq!((keyspace.stats().evicted, keyspace.stats().expired), (501, 0));
        }
    }
}

#[test]
fn volatile_policies_spare_keys_without_a_deadline_however_few_have_one() {
    for policy in VOLATILE {
        for volatile in [3, 400] {
            let keyspace = keyspace(2);
            for n in 0..2000 {
                let expiry = if n < volatile { later(60_000 + n) } else { Expiry::Clear };
                set(&keyspace, &format!("k{n}"), "v", expiry);
            }
            let mut evictor = Evictor::new(2);
            while evict(&keyspace, &mut evictor, policy) == Outcome::Key {}
            assert_eq!(keyspace.stats().evicted, volatile as u64, "{policy:?}");
            assert_eq!(keyspace.volatile(0, NOW), (0, 0));
            assert_eq!(names(&keyspace).len() as i64, 2000 - volatile);
        }
    }
}

#[test]
fn nothing_goes_where_nothing_may() {
    let keyspace = keyspace(2);
    set(&keyspace, "k", "v", later(1000));
    assert_eq!(evict(&keyspace, &mut Evictor::new(3), Policy::NoEviction), Outcome::Nothing);
    assert_eq!(keyspace.len(0), 1);
}

#[test]
fn the_nearest_deadlines_go_first() {
    let keyspace = keyspace(4);
    // In an order that has nothing to do with the names, seconds to weeks away.
    let key = |n: i64| format!("k{}", n * 7919 % 1000);
    (0..1000).for_each(|n| set(&keyspace, &key(n), "v", later(1000 + n * n * 1000)));
    let mut evictor = Evictor::new(4);
    (0..300).for_each(|_| assert_eq!(evict(&keyspace, &mut evictor, Policy::VolatileTtl), Outcome::Key));
    let left = names(&keyspace);
    let spared = (0..250).filter(|n| left.contains(&key(*n))).count();
    assert!(spared <= 12, "{spared} of the 250 nearest are still there");
}

/// The leaf's note is that of the field, and so tells nothing of the keys beside it.
#[test]
fn a_key_is_found_by_its_deadline_beside_fields_that_fall_due_before_it() {
    let keyspace = keyspace(0);
    for n in 0..30 {
        with(&keyspace, NOW, &format!("hash{n}"), |view, key| {
            let mut hash = view.hash_or_new(key).unwrap();
            hash.set(b"f", b"v", Lifetime::Until(Millis(NOW.0 + 10 + n)));
        });
    }
    (0..300).for_each(|n| set(&keyspace, &format!("k{n}"), "v", later(1000 + n % 3 * 1000)));
    let mut evictor = Evictor::new(8);
    for nearest in 0..3 {
        (0..100).for_each(|_| assert_eq!(evict(&keyspace, &mut evictor, Policy::VolatileTtl), Outcome::Key));
        let left = names(&keyspace);
        let gone = (0..300).filter(|n| n % 3 <= nearest && !left.contains(&format!("k{n}"))).count();
        assert_eq!(gone as i64, 100 * (nearest + 1), "the nearest deadlines go first");
    }
    assert_eq!(evict(&keyspace, &mut evictor, Policy::VolatileTtl), Outcome::Nothing);
    assert_eq!(keyspace.len(0), 30, "fields do not go before their time");
    keyspace.expire(Millis(NOW.0 + 40), usize::MAX, &mut Vec::new());
    assert_eq!(keyspace.len(0), 0, "and then they do");
}

#[test]
fn keys_of_equal_deadlines_go_one_at_a_time() {
    let keyspace = keyspace(0);
    (0..200).for_each(|n| set(&keyspace, &format!("k{n}"), "v", later(5000)));
    let mut evictor = Evictor::new(5);
    for left in (0..200).rev() {
        assert_eq!(evict(&keyspace, &mut evictor, Policy::VolatileTtl), Outcome::Key);
        assert_eq!(keyspace.len(0), left);
    }
    assert_eq!(evict(&keyspace, &mut evictor, Policy::VolatileTtl), Outcome::Nothing);
}

#[test]
fn what_an_eviction_leaves_expires_on_time() {
    let keyspace = keyspace(2);
    (0..1000).for_each(|n| set(&keyspace, &format!("k{n}"), "v", later(1000 + n % 100)));
    let mut evictor = Evictor::new(6);
    for policy in [Policy::VolatileTtl, Policy::VolatileRandom, Policy::AllkeysRandom] {
        (0..100).for_each(|_| assert_eq!(evict(&keyspace, &mut evictor, policy), Outcome::Key));
    }
    assert_eq!(keyspace.len(0), 700);
    keyspace.expire(Millis(NOW.0 + 1099), usize::MAX, &mut Vec::new());
    assert_eq!((keyspace.len(0), keyspace.stats().expired), (0, 700));
}

#[test]
fn databases_lose_keys_by_their_share() {
    let keyspace = keyspace(1);
    let settings = crate::Settings::default();
    for n in 0..4000 {
        let (db, name) = (if n % 4 == 0 { 9 } else { 0 }, format!("k{n}"));
        let (mut view, key) = keyspace.lock_one(db, NOW, &settings, name.as_bytes());
        view.put_string(&key, b"v", crate::Form::Auto, Expiry::Clear);
    }
    let mut evictor = Evictor::new(7);
    (0..2000).for_each(|_| assert_eq!(evict(&keyspace, &mut evictor, Policy::AllkeysRandom), Outcome::Key));
    assert!((400..600).contains(&keyspace.len(9)), "{} of 1000 are left", keyspace.len(9));
}

/// After a search in vain no further one is made, so whatever gives a key a deadline has to end that.
#[test]
fn a_key_that_gets_a_deadline_after_a_search_in_vain_goes() {
    let put = |keyspace: &Keyspace| set(keyspace, "new", "v", later(5000));
    let expire = |keyspace: &Keyspace| {
        with(keyspace, NOW, "k7", |view, key| {
            assert!(view.set_deadline(key, Deadline::At(Millis(NOW.0 + 5000))));
        });
    };
    let rename = |keyspace: &Keyspace| {
        set(keyspace, "from", "v", later(5000));
        let taken = with(keyspace, NOW, "from", |view, key| view.take(key)).unwrap();
        assert_eq!(keyspace.volatile(0, NOW).0, 0);
        assert_eq!(evict(keyspace, &mut Evictor::new(9), Policy::VolatileTtl), Outcome::Nothing);
        with(keyspace, NOW, "k8", |view, key| view.put_taken(key, taken));
    };
    let swap = |keyspace: &Keyspace| {
        let settings = crate::Settings::default();
        let (mut view, key) = keyspace.lock_one(9, NOW, &settings, b"k");
        view.put_string(&key, b"v", crate::Form::Auto, later(5000));
        drop(view);
        keyspace.swap(0, 9, NOW);
    };
    let ways: [&dyn Fn(&Keyspace); 4] = [&put, &expire, &rename, &swap];
    for policy in VOLATILE {
        for shard_bits in [0, 8] {
            let keyspace = keyspace(shard_bits);
            (0..100).for_each(|n| set(&keyspace, &format!("k{n}"), "v", Expiry::Clear));
            // Fields that wait, and wheels with items of keys that are gone.
            for n in 0..20 {
                with(&keyspace, NOW, &format!("hash{n}"), |view, key| {
                    let lifetime = Lifetime::Until(Millis(NOW.0 + 10 + n));
                    view.hash_or_new(key).unwrap().set(b"f", b"v", lifetime);
                });
                set(&keyspace, &format!("gone{n}"), "v", later(100));
                with(&keyspace, NOW, &format!("gone{n}"), |view, key| assert!(view.remove(key)));
            }
            let mut evictor = Evictor::new(2);
            for (gone, way) in (0..).zip(ways) {
                for _ in 0..3 {
                    assert_eq!(evict(&keyspace, &mut evictor, policy), Outcome::Nothing);
                    assert!(keyspace.supply.is_spent(), "{policy:?}");
                }
                way(&keyspace);
                assert_eq!(evict(&keyspace, &mut evictor, policy), Outcome::Key, "{policy:?}");
                assert_eq!(keyspace.stats().evicted, gone + 1);
            }
        }
    }
}

/// Few keys have a deadline, and each goes long before it. The leaves in which they were are known to the
/// wheel only until it is drawn from.
#[test]
fn leaves_whose_keys_have_gone_are_forgotten() {
    let keyspace = keyspace(0);
    (0..20_000).for_each(|n| set(&keyspace, &format!("k{n}"), "v", Expiry::Clear));
    for policy in [Policy::VolatileLru, Policy::VolatileLfu, Policy::VolatileRandom] {
        let mut evictor = Evictor::new(5);
        for n in 0..5_000 {
            set(&keyspace, &format!("timed{n}"), "v", later(1_000_000 + n));
            if n >= 50 {
                assert_eq!(evict(&keyspace, &mut evictor, policy), Outcome::Key);
            }
        }
        assert_eq!(keyspace.volatile(0, NOW).0, 50);
        let items = keyspace.shard(0).db(0).and_then(|db| db.wheel.as_ref().map(|wheel| wheel.len()));
        assert!(items.is_some_and(|items| (10..250).contains(&items)), "{items:?} {policy:?}");
        while evict(&keyspace, &mut evictor, policy) == Outcome::Key {}
        assert_eq!(keyspace.len(0), 20_000);
    }
    // What is left is found when its time comes.
    (0..5_000).for_each(|n| set(&keyspace, &format!("timed{n}"), "v", later(1_000_000 + n)));
    let mut evictor = Evictor::new(6);
    (0..3_000).for_each(|_| assert_eq!(evict(&keyspace, &mut evictor, Policy::VolatileLru), Outcome::Key));
    keyspace.expire(Millis(NOW.0 + 2_000_000), usize::MAX, &mut Vec::new());
    assert_eq!((keyspace.len(0), keyspace.stats().expired), (20_000, 2_000));
}

/// Leaves in which a field is due at last, and keys with nearer deadlines come and go: by eviction, or by the
/// clock.
#[test]
fn leaves_are_not_scheduled_ever_again_for_the_same_time() {
    let far = Lifetime::Until(Millis(NOW.0 + 500_000_000));
    for policy in [Some(Policy::VolatileLru), Some(Policy::VolatileTtl), None] {
        let keyspace = keyspace(0);
        (0..10_000).for_each(|n| set(&keyspace, &format!("k{n}"), "v", Expiry::Clear));
        for n in 0..1_000 {
            with(&keyspace, NOW, &format!("hash{n}"), |view, key| {
                view.hash_or_new(key).unwrap().set(b"f", b"v", far);
            });
        }
        let mut evictor = Evictor::new(7);
        let mut now = NOW;
        for n in 0..30_000 {
            with(&keyspace, now, &format!("timed{n}"), |view, key| {
                view.put_string(key, b"v", crate::Form::Auto, Expiry::At(Millis(now.0 + 100)));
            });
            match policy {
                Some(policy) if n >= 50 => {
                    assert_eq!(evict(&keyspace, &mut evictor, policy), Outcome::Key, "{policy:?} {n}");
                }
                Some(_) => {}
                None => now.0 += 5,
            }
            keyspace.expire(now, 100, &mut Vec::new());
        }
        let items = keyspace.shard(0).db(0).and_then(|db| db.wheel.as_ref().map(|wheel| wheel.len()));
        assert!(items.is_some_and(|items| items < 2_500), "{items:?} {policy:?}");
        with(&keyspace, now, "hash7", |view, key| assert_eq!(view.hash(key).unwrap().unwrap().len(), 1));
    }
}

/// A search lets go of a shard in which it has found a key, to look into others, or keeps the key in mind for
/// the next search. Meanwhile its deadline may be taken away.
#[test]
fn a_key_that_loses_its_deadline_while_another_thread_evicts_stays() {
    for (policy, others) in [Policy::VolatileLru, Policy::VolatileLfu].into_iter().zip([0, 5_000]) {
        let keyspace = keyspace(2);
        (0..others).for_each(|n| set(&keyspace, &format!("k{n}"), "v", Expiry::Clear));
        let (is_over, mut lost) = (AtomicBool::new(false), 0);
        std::thread::scope(|scope| {
            let evicts = scope.spawn(|| {
                let mut evictor = Evictor::new(9);
                while !is_over.load(Relaxed) {
                    evict(&keyspace, &mut evictor, policy);
                }
            });
            for n in 0..20_000 {
                let name = format!("timed{}", n % 64);
                set(&keyspace, &name, "v", later(1_000_000 + n));
                // Others stand beside it, so that it is not found at once.
                set(&keyspace, &format!("other{}", n % 32), "v", later(1_000_000 + n));
                let persists =
                    with(&keyspace, NOW, &name, |view, key| view.set_deadline(key, Deadline::Never));
                let is_there = with(&keyspace, NOW, &name, |view, key| view.exists(key));
                lost += usize::from(persists && !is_there);
                with(&keyspace, NOW, &name, |view, key| view.remove(key));
            }
            is_over.store(true, Relaxed);
            evicts.join().expect("it ends");
        });
        assert!(keyspace.stats().evicted > 1_000);
        assert_eq!(lost, 0, "{policy:?}");
    }
}
