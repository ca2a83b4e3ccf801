//! Deadlines, with time moved by hand: lazily and by the clock, to the millisecond, in bounded steps.
use crate::keyspace::tests::{NOW, keyspace, set, with};
use crate::{Deadline, End, Expiry, Form, Keyspace, Settings};
use base::Millis;
use base::random::Random;

fn at(ms: i64) -> Millis {
    Millis(NOW.0 + ms)
}

/// Expires with an unlimited budget.
fn expire(keyspace: &Keyspace, now: Millis) -> Option<Millis> {
    keyspace.expire(now, usize::MAX, &mut Vec::new())
}

#[test]
fn every_way_to_look_at_a_key_past_its_deadline_finds_it_gone_and_removes_it() {
    let looks: [fn(&mut crate::View<'_>, &crate::Key<'_>) -> bool; 9] = [
        |view, key| view.exists(key),
        |view, key| view.kind(key).is_some(),
        |view, key| view.deadline(key).is_some(),
        |view, key| view.string(key).is_ok_and(|found| found.is_some()),
        |view, key| view.list(key).is_ok_and(|found| found.is_some()),
        |view, key| view.info(key).is_some(),
        |view, key| view.remove(key),
        |view, key| view.set_deadline(key, Deadline::Never),
        |view, key| view.take(key).is_some(),
    ];
    for (n, look) in looks.into_iter().enumerate() {
        let keyspace = keyspace(0);
        set(&keyspace, "k", "v", Expiry::At(at(10)));
        assert!(with(&keyspace, at(9), "k", |view, key| view.exists(key)));
        assert_eq!(keyspace.len(0), 1);
        assert!(!with(&keyspace, at(10), "k", look), "way {n}");
        assert_eq!((keyspace.len(0), keyspace.stats().expired), (0, 1), "way {n}");
        assert_eq!(keyspace.volatile(0, NOW).0, 0);
    }
}

#[test]
fn while_expiry_rests_keys_past_their_deadline_stay_and_nobody_sees_them() {
    let keyspace = keyspace(2);
    for key in ["a", "b", "c"] {
        set(&keyspace, key, "v", Expiry::At(at(10)));
    }
    keyspace.rest_expiry();
    assert_eq!(keyspace.soonest_due(), None, "nobody need wake for it");
    assert_eq!(expire(&keyspace, at(50)), None);
    assert!(!with(&keyspace, at(50), "a", |view, key| view.exists(key)));
    assert!(with(&keyspace, at(50), "a", |view, key| view.string(key).is_ok_and(|found| found.is_none())));
    assert_eq!((keyspace.len(0), keyspace.stats().expired), (3, 0));
    // A write replaces the value of an expired key.
    set(&keyspace, "b", "w", Expiry::Clear);
    keyspace.resume_expiry();
    assert!(!with(&keyspace, at(100), "a", |view, key| view.exists(key)));
    assert_eq!(keyspace.len(0), 2, "the rest is over: a look removes again");
    assert_eq!(expire(&keyspace, at(100)), None);
    assert_eq!((keyspace.len(0), keyspace.stats().expired), (1, 2));
    keyspace.rest_expiry();
    set(&keyspace, "d", "v", Expiry::At(at(200)));
    keyspace.resume_expiry();
    assert_eq!(keyspace.soonest_due(), Some(at(200)), "what came meanwhile is known");
    assert_eq!(expire(&keyspace, at(210)), None);
    assert_eq!(keyspace.len(0), 1);
}

#[test]
fn a_write_to_a_key_past_its_deadline_begins_anew() {
    let keyspace = keyspace(0);
    for key in ["append", "add", "list", "keep", "range"] {
        set(&keyspace, key, "5", Expiry::At(at(10)));
    }
    let write = |key, act: &dyn Fn(&mut crate::View<'_>, &crate::Key<'_>)| {
        with(&keyspace, at(11), key, |view, key| {
            act(view, key);
            assert_eq!(view.deadline(key), Some(Deadline::Never));
        });
    };
    write("append", &|view, key| assert_eq!(view.append(key, b"x"), Ok(1)));
    write("add", &|view, key| assert_eq!(view.add(key, 2), Ok(2)));
    write("list", &|view, key| view.list_or_new(key).expect("it is gone").push(End::Head, b"1"));
    write("keep", &|view, key| view.put_string(key, b"v", Form::Auto, Expiry::Keep));
    write("range", &|view, key| assert_eq!(view.set_range(key, 1, b"x"), Ok(2)));
    assert_eq!(keyspace.stats().expired, 5);
    assert_eq!(keyspace.volatile(0, NOW), (0, 0));
    // An overdue string is no wrong type for a list command that only reads: the key is absent.
    set(&keyspace, "s", "5", Expiry::At(at(10)));
    with(&keyspace, at(11), "s", |view, key| drop(view.list_or_new(key).expect("it is gone")));
    assert_eq!(keyspace.len(0), 5);
}

#[test]
fn volatile_keys_each_go_in_the_millisecond_they_are_due() {
    let (keyspace, mut random) = (keyspace(6), Random::new(3));
    let keys = if cfg!(debug_assertions) { 30_000 } else { 1_000_000 };
    let mut due = vec![0_u32; 2001];
    for n in 0..keys {
        let ms = 1 + random.below(2000);
        due[ms as usize] += 1;
        set(&keyspace, &format!("key:{n}"), "value", Expiry::At(at(ms as i64)));
    }
    let mut left = keys;
    for (ms, gone) in due.into_iter().enumerate() {
        expire(&keyspace, at(ms as i64));
        left -= u64::from(gone);
        if ms % 16 == 0 {
            assert_eq!(keyspace.len(0), left, "after {ms} ms");
        }
    }
    assert_eq!((keyspace.len(0), keyspace.stats().expired), (0, keys));
    assert_eq!(keyspace.soonest_due(), None);
}

#[test]
fn the_answer_of_expire_is_early_enough_to_be_on_time() {
    let keyspace = keyspace(3);
    for ms in [3, 70, 5000, 3_600_000, 400 * 86_400_000] {
        set(&keyspace, &format!("k{ms}"), "v", Expiry::At(at(ms)));
    }
    let (mut now, mut calls) = (NOW, 0);
    while let Some(next) = expire(&keyspace, now) {
        assert!(next > now);
        (now, calls) = (next, calls + 1);
        with(&keyspace, now, "k5000", |view, key| {
            assert_eq!(view.exists(key), now < at(5000));
        });
    }
    assert_eq!(now, at(400 * 86_400_000));
    assert!(calls < 60, "a few calls a key, not one a tick: {calls}");
}

#[test]
fn a_budget_ends_a_call_and_the_next_goes_on_where_it_stopped() {
    let keyspace = keyspace(3);
    (0..5000).for_each(|n| set(&keyspace, &format!("key:{n}"), "v", Expiry::At(at(10))));
    let (mut calls, mut before) = (0, 5000);
    while keyspace.expire(at(10), 100, &mut Vec::new()).is_some_and(|next| next <= at(10)) {
        let left = keyspace.len(0);
        assert!(before - left <= 700, "a call removed {}", before - left);
        (before, calls) = (left, calls + 1);
    }
    assert_eq!(keyspace.len(0), 0);
    assert!(calls > 7);
}

#[test]
fn the_first_deadline_of_a_shard_does_not_look_at_all_its_keys() {
    let keyspace = keyspace(0);
    (1..=4000).for_each(|n| set(&keyspace, &format!("key:{n}"), "v", Expiry::At(at(1000 * n))));
    expire(&keyspace, at(0));
    let (budget, mut garbage) = (16, Vec::new());
    let next = keyspace.expire(at(1000), budget, &mut garbage);
    assert!(next > Some(at(1000)), "one key was due, so a small budget is left over: {next:?}");
    assert_eq!(keyspace.len(0), 3999);
}

#[test]
fn deadlines_at_the_ends_of_time_hold() {
    let keyspace = keyspace(0);
    for ms in [i64::MIN, -1, 0, 1, i64::MAX] {
        set(&keyspace, &format!("k{ms}"), "v", Expiry::At(Millis(ms)));
    }
    assert!(expire(&keyspace, NOW).is_some());
    assert_eq!(keyspace.len(0), 1);
    assert!(with(&keyspace, Millis(i64::MAX - 1), &format!("k{}", i64::MAX), |view, key| view.exists(key)));
    assert_eq!(keyspace.volatile(0, NOW), (1, i64::MAX - NOW.0));
}

#[test]
fn a_key_refreshed_all_the_time_stays_and_one_forgotten_goes() {
    let keyspace = keyspace(0);
    set(&keyspace, "forgotten", "v", Expiry::At(at(1000)));
    for ms in 0..3000 {
        set(&keyspace, "session", "v", Expiry::At(at(ms + 500)));
        expire(&keyspace, at(ms));
        assert_eq!(keyspace.len(0), if ms < 1000 { 2 } else { 1 }, "after {ms} ms");
    }
    expire(&keyspace, at(3500));
    assert_eq!(keyspace.len(0), 0);
}

#[test]
fn a_clock_set_back_keeps_keys_and_their_deadlines() {
    let keyspace = keyspace(0);
    set(&keyspace, "k", "v", Expiry::At(at(5000)));
    expire(&keyspace, at(4000));
    expire(&keyspace, at(-86_400_000));
    set(&keyspace, "j", "v", Expiry::At(at(-80_000_000)));
    expire(&keyspace, at(-79_999_999));
    assert_eq!(keyspace.len(0), 1);
    expire(&keyspace, at(4999));
    assert_eq!(keyspace.len(0), 1);
    expire(&keyspace, at(5000));
    assert_eq!(keyspace.len(0), 0);
}

#[test]
fn the_timers_of_volatile_keys_take_less_than_two_bytes_each() {
    let (keyspace, keys) = (keyspace(2), 20_000);
    (0..keys).for_each(|n| set(&keyspace, &format!("key:{n}"), "v", Expiry::At(at(60_000 + n / 100))));
    assert!(
        keyspace.wheel_bytes(Some(0)) < 2 * keys as u64 + 4 * 3000,
        "{} bytes",
        keyspace.wheel_bytes(Some(0))
    );
}

#[test]
fn large_values_that_expire_are_left_for_the_background() {
    let (keyspace, settings) = (keyspace(0), Settings::default());
    let (mut view, key) = keyspace.lock_one(0, NOW, &settings, b"l");
    let mut list = view.list_or_new(&key).expect("a list");
    (0..50_000).for_each(|n: u32| list.push(End::Tail, n.to_string().as_bytes()));
    drop(list);
    assert!(view.set_deadline(&key, Deadline::At(at(5))));
    drop(view);
    let mut garbage = Vec::new();
    keyspace.expire(at(5), 100, &mut garbage);
    assert_eq!((garbage.len(), keyspace.stats().lazyfreed), (1, 0), "as Redis counts, by default");
}

/// What a server does at its turns: expires what is due, and whatever else the keyspace asks to be called
/// for.
fn turn(keyspace: &Keyspace, now: Millis) {
    while keyspace.soonest_due().is_some_and(|due| due <= now) {
        keyspace.expire(now, 256, &mut Vec::new());
    }
}

const YEARS_MS: i64 = 10 * 365 * 86_400_000;

#[test]
fn keys_that_go_before_their_deadline_leave_nothing_in_the_timers() {
    let keyspace = keyspace(2);
    for n in 0..50_000 {
        let key = format!("session:{}", n % 50);
        set(&keyspace, &key, "v", Expiry::At(at(n + YEARS_MS)));
        assert!(with(&keyspace, at(n), &key, |view, key| view.remove(key)));
        turn(&keyspace, at(n));
    }
    assert!(keyspace.wheel_bytes(Some(0)) < 4 * 3000, "{} bytes", keyspace.wheel_bytes(Some(0)));
}

#[test]
fn a_deadline_that_comes_nearer_all_the_time_leaves_nothing_in_the_timers() {
    let keyspace = keyspace(0);
    for n in 0..50_000 {
        set(&keyspace, "k", "v", Expiry::At(at(YEARS_MS - n)));
        turn(&keyspace, at(n));
    }
    assert!(keyspace.wheel_bytes(Some(0)) < 3000, "{} bytes", keyspace.wheel_bytes(Some(0)));
    turn(&keyspace, at(YEARS_MS - 50_000));
    assert_eq!(keyspace.len(0), 1);
    turn(&keyspace, at(YEARS_MS - 49_999));
    assert_eq!(keyspace.len(0), 0);
}

#[test]
fn timers_stay_few_and_true_while_keys_come_and_go_and_leaves_split_and_join() {
    let seed = 7;
    let (keyspace, mut random) = (keyspace(1), Random::new(seed));
    let mut deadlines = std::collections::BTreeMap::new();
    let mut now = 0;
    for round in 0..30 {
        // The number of keys rises and falls, so that leaves do split and join.
        let wanted = if round % 2 == 0 { 4000 } else { 200 };
        while deadlines.len() != wanted {
            let name = random.below(20_000);
            if deadlines.len() < wanted {
                let bits = 10 + 3 * random.below(8);
                let due = now + 1 + random.below(1 << bits) as i64;
                set(&keyspace, &format!("k{name}"), "v", Expiry::At(at(due)));
                deadlines.insert(name, due);
            } else if let Some(name) = deadlines.range(name..).next().map(|(name, _)| *name) {
                deadlines.remove(&name);
                with(&keyspace, at(now), &format!("k{name}"), |view, key| view.remove(key));
            }
        }
        assert!(
            keyspace.wheel_bytes(Some(0)) < 2 * 9000,
            "{} bytes in round {round}",
            keyspace.wheel_bytes(Some(0))
        );
        for _ in 0..20 {
            now += random.below(50) as i64;
            turn(&keyspace, at(now));
            deadlines.retain(|_, due| *due > now);
            assert_eq!(keyspace.len(0), deadlines.len() as u64, "seed {seed}, round {round}, at {now} ms");
        }
    }
    while let Some(due) = deadlines.values().min().copied() {
        turn(&keyspace, at(due - 1));
        assert_eq!(keyspace.len(0), deadlines.len() as u64, "seed {seed}, before {due} ms");
        turn(&keyspace, at(due));
        deadlines.retain(|_, other| *other > due);
        assert_eq!(keyspace.len(0), deadlines.len() as u64, "seed {seed}, at {due} ms");
    }
}

/// What a wheel says of itself may be earlier than any deadline in it. Whoever makes that the due time of a
/// shard has to make it everybody's, or deadlines that come behind it are not looked for.
#[test]
fn a_deadline_is_on_time_after_another_database_was_emptied() {
    let days = 100 * 86_400_000;
    for ms in (1..days).step_by(days as usize / 97) {
        let keyspace = keyspace(0);
        set(&keyspace, "later", "v", Expiry::At(at(days)));
        keyspace.flush(Some(1));
        set(&keyspace, "soon", "v", Expiry::At(at(ms)));
        assert!(keyspace.soonest_due().is_some_and(|due| due <= at(ms)), "{ms}");
        turn(&keyspace, at(ms));
        assert_eq!(keyspace.len(0), 1, "{ms}");
    }
}

/// Of keys of one leaf, some with deadlines that the clock had already reached when it was put back.
#[test]
fn a_clock_put_back_by_half_a_second_removes_no_key_before_its_time() {
    let keyspace = keyspace(0);
    set(&keyspace, "first", "v", Expiry::At(at(10_000)));
    expire(&keyspace, at(10_000));
    assert_eq!(keyspace.len(0), 0, "the wheels have turned this far");
    for after in [100, 200, 300, 400, 450, 600] {
        set(&keyspace, &format!("k{after}"), "v", Expiry::At(at(9_500 + after)));
    }
    for (now, left) in [(9_500, 6), (9_599, 6), (9_600, 5), (9_750, 4), (9_949, 2), (9_950, 1), (10_100, 0)] {
        let next = expire(&keyspace, at(now));
        assert_eq!(keyspace.len(0), left, "at {now}");
        assert!(next.is_none_or(|next| next > at(now)), "at {now}: {next:?}");
    }
}
