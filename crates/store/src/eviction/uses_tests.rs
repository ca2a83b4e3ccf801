//! When and how often keys were used: what counts as a use, what is told of it, and who goes by it.
use crate::eviction::choose_tests::names;
use crate::keyspace::tests::{NOW, keyspace};
use crate::{
    Deadline, End, Eviction, Evictor, Expiry, Form, Key, Keyspace, Outcome, Policy, Settings, Usage, View,
};
use base::Millis;

fn at(s: i64) -> Millis {
    Millis(NOW.0 + s * 1000)
}

fn settings(policy: Policy) -> Settings {
    Settings { eviction: Eviction { policy, ..Eviction::default() }, ..Settings::default() }
}

fn with<R>(
    keyspace: &Keyspace,
    settings: &Settings,
    now: Millis,
    key: &str,
    act: impl FnOnce(&mut View<'_>, &Key<'_>) -> R,
) -> R {
    let (mut view, key) = keyspace.lock_one(0, now, settings, key.as_bytes());
    act(&mut view, &key)
}

fn set(keyspace: &Keyspace, settings: &Settings, now: Millis, key: &str) {
    with(keyspace, settings, now, key, |view, key| {
        view.put_string(key, b"v", Form::Auto, Expiry::Clear);
    });
}

fn get(keyspace: &Keyspace, settings: &Settings, now: Millis, key: &str) {
    with(keyspace, settings, now, key, |view, key| assert!(view.string(key).unwrap().is_some()));
}

fn usage(keyspace: &Keyspace, settings: &Settings, now: Millis, key: &str) -> Usage {
    with(keyspace, settings, now, key, |view, key| view.usage(key).unwrap())
}

/// As OBJECT IDLETIME asks.
fn idle(keyspace: &Keyspace, settings: &Settings, now: Millis, key: &str) -> Usage {
    with(keyspace, settings, now, key, |view, key| view.idle(key).unwrap())
}

/// As the server does ten times a second.
fn tend(keyspace: &Keyspace, settings: &Settings, from_s: i64, to_s: i64) {
    for tenth in from_s * 10..to_s * 10 {
        keyspace.tend_uses(Millis(NOW.0 + tenth * 100), &settings.eviction);
    }
}

#[test]
fn without_a_policy_that_asks_nothing_is_kept_until_somebody_asks() {
    for policy in [Policy::NoEviction, Policy::AllkeysRandom, Policy::VolatileTtl] {
        let (keyspace, off) = (keyspace(0), settings(policy));
        tend(&keyspace, &off, 0, 5);
        set(&keyspace, &off, at(0), "k");
        set(&keyspace, &off, at(0), "other");
        get(&keyspace, &off, at(1), "k");
        assert_eq!(usage(&keyspace, &off, at(2), "k"), Usage::Untracked);
        let plain = keyspace.tree_stats(0).tagged.used_bytes;
        // Uses before that are not known, but a key is never said to be idle for longer than it is.
        assert_eq!(idle(&keyspace, &off, at(100), "k"), Usage::IdleMs(0));
        assert_eq!(keyspace.tree_stats(0).tagged.used_bytes, plain, "a question is no use");
        tend(&keyspace, &off, 100, 130);
        get(&keyspace, &off, at(130), "k");
        assert_eq!(keyspace.tree_stats(0).tagged.used_bytes, plain + 2, "one byte an entry");
        tend(&keyspace, &off, 130, 140);
        let Usage::IdleMs(ms) = idle(&keyspace, &off, at(140), "k") else { panic!() };
        assert!((9_000..=11_000).contains(&ms), "{ms}");
        assert_eq!(
            idle(&keyspace, &off, at(140), "other"),
            Usage::IdleMs(40_000),
            "since the first question"
        );
        set(&keyspace, &off, at(140), "new");
        let Usage::IdleMs(ms) = idle(&keyspace, &off, at(150), "new") else { panic!() };
        assert!((9_000..=11_000).contains(&ms), "{ms}");
    }
}

#[test]
fn idle_times_stay_true_after_a_policy_that_went_by_them_has_gone() {
    let (keyspace, lru, off) = (keyspace(0), settings(Policy::AllkeysLru), settings(Policy::NoEviction));
    keyspace.go_by(lru.eviction.policy);
    tend(&keyspace, &lru, 0, 5);
    set(&keyspace, &lru, at(5), "k");
    keyspace.go_by(off.eviction.policy);
    tend(&keyspace, &off, 5, 100);
    get(&keyspace, &off, at(100), "k");
    keyspace.go_by(lru.eviction.policy);
    tend(&keyspace, &lru, 100, 110);
    let Usage::IdleMs(ms) = usage(&keyspace, &lru, at(110), "k") else { panic!() };
    assert!((9_000..=11_000).contains(&ms), "{ms}");
}

#[test]
fn what_the_keyspace_was_told_of_the_policy_decides_whether_uses_are_kept() {
    let (keyspace, off, lfu) = (keyspace(0), settings(Policy::NoEviction), settings(Policy::AllkeysLfu));
    keyspace.go_by(off.eviction.policy);
    set(&keyspace, &off, at(0), "k");
    let plain = keyspace.tree_stats(0).tagged.used_bytes;
    keyspace.go_by(lfu.eviction.policy);
    get(&keyspace, &off, at(1), "k");
    assert_eq!(keyspace.tree_stats(0).tagged.used_bytes, plain, "that command was under the policy before");
    get(&keyspace, &lfu, at(1), "k");
    assert_eq!(keyspace.tree_stats(0).tagged.used_bytes, plain + 1);
    keyspace.go_by(off.eviction.policy);
    set(&keyspace, &off, at(2), "other");
    // After the first question uses are recorded again, under every policy.
    assert_eq!(idle(&keyspace, &off, at(50), "other"), Usage::IdleMs(0));
    keyspace.go_by(off.eviction.policy);
    tend(&keyspace, &off, 50, 60);
    get(&keyspace, &off, at(60), "other");
    let Usage::IdleMs(ms) = idle(&keyspace, &off, at(70), "other") else { panic!() };
    assert!((9_000..=11_000).contains(&ms), "{ms}");
}

#[test]
fn small_integers_are_shared_unless_the_uses_of_each_count() {
    let share = |policy, limits_memory| Settings { limits_memory, ..settings(policy) }.shares_integers();
    let counting = [Policy::AllkeysLru, Policy::AllkeysLfu, Policy::VolatileLru, Policy::VolatileLfu];
    for policy in counting {
        assert_eq!([false, true].map(|limits| share(policy, limits)), [true, false], "{policy:?}");
    }
    for policy in [Policy::AllkeysRandom, Policy::VolatileRandom, Policy::VolatileTtl, Policy::NoEviction] {
        assert!(share(policy, true), "{policy:?}");
    }
}

#[test]
fn a_use_ends_the_idle_time_and_a_question_does_not() {
    let (keyspace, lru) = (keyspace(2), settings(Policy::VolatileLru));
    let uses: [fn(&mut View<'_>, &Key<'_>); 6] = [
        |view, key| assert!(view.string(key).unwrap().is_some()),
        |view, key| assert!(view.append(key, b"x").is_ok()),
        |view, key| assert!(view.touch(key)),
        |view, key| view.put_string(key, b"w", Form::Auto, Expiry::Keep),
        |view, key| assert!(view.set_deadline(key, Deadline::At(at(9000)))),
        |view, key| assert!(view.list_mut(key).is_err()),
    ];
    let questions: [fn(&mut View<'_>, &Key<'_>); 6] = [
        |view, key| assert!(view.exists(key)),
        |view, key| assert!(view.kind(key).is_some()),
        |view, key| assert!(view.deadline(key).is_some()),
        |view, key| assert!(view.info(key).is_some()),
        |view, key| assert!(view.usage(key).is_some()),
        |view, key| {
            view.leave_no_trace();
            assert!(view.string(key).unwrap().is_some());
        },
    ];
    tend(&keyspace, &lru, 0, 1);
    let acts = uses.into_iter().map(|act| (act, 0)).chain(questions.into_iter().map(|act| (act, 30_000)));
    for (n, (act, expected)) in acts.enumerate() {
        let start = 1 + n as i64 * 40;
        tend(&keyspace, &lru, start, start + 1);
        set(&keyspace, &lru, at(start), "k");
        tend(&keyspace, &lru, start + 1, start + 31);
        with(&keyspace, &lru, at(start + 30), "k", act);
        let Usage::IdleMs(ms) = usage(&keyspace, &lru, at(start + 30), "k") else { panic!() };
        assert!((ms - expected).abs() <= 1000, "act {n}: {ms}");
    }
}

#[test]
fn idle_times_of_hours_are_told_within_an_eighth_while_all_else_goes_on() {
    let (keyspace, lru) = (keyspace(1), settings(Policy::AllkeysLru));
    let mut begun = Vec::new();
    for s in 0..20_000 {
        tend(&keyspace, &lru, s, s + 1);
        if s % 97 == 0 {
            set(&keyspace, &lru, at(s), &format!("k{s}"));
            begun.push(s);
        }
    }
    for s in begun {
        let Usage::IdleMs(ms) = usage(&keyspace, &lru, at(20_000), &format!("k{s}")) else { panic!() };
        let truth = (20_000 - s) * 1000;
        assert!(ms >= truth - 2000 && ms <= truth + truth / 8 + 2000, "{ms} for {truth}");
    }
}

/// Of 1000 keys every fifth was used lately. How many of those are among the 500 that stay. Under a policy
/// that is for keys with a deadline there are others beside them, which have none.
fn lately_used_that_stay(policy: Policy, use_it: fn(&Keyspace, &Settings, &str)) -> usize {
    let (keyspace, settings) = (keyspace(4), settings(policy));
    tend(&keyspace, &settings, 0, 1);
    (0..1000).for_each(|n| set(&keyspace, &settings, at(1), &format!("k{n}")));
    if policy.is_volatile() {
        let due = Deadline::At(at(1_000_000));
        let expire = |view: &mut View<'_>, key: &Key<'_>| assert!(view.set_deadline(key, due));
        (0..1000).for_each(|n| with(&keyspace, &settings, at(1), &format!("k{n}"), expire));
        (0..30_000).for_each(|n| set(&keyspace, &settings, at(1), &format!("stays{n}")));
    }
    tend(&keyspace, &settings, 1, 30);
    (0..1000).step_by(5).for_each(|n| use_it(&keyspace, &settings, &format!("k{n}")));
    tend(&keyspace, &settings, 30, 35);
    let mut evictor = Evictor::new(1);
    for _ in 0..500 {
        assert_eq!(keyspace.evict(&mut evictor, at(35), &settings.eviction, &mut Vec::new()), Outcome::Key);
    }
    let others = if policy.is_volatile() { 30_000 } else { 0 };
    assert_eq!(keyspace.len(0), 500 + others);
    let stays = |n: &usize| with(&keyspace, &settings, at(35), &format!("k{n}"), |v, k| v.exists(k));
    (0..1000).step_by(5).filter(stays).count()
}

#[test]
fn the_least_recently_used_go_first() {
    for policy in [Policy::AllkeysLru, Policy::VolatileLru] {
        let stay = lately_used_that_stay(policy, |keyspace, settings, key| {
            get(keyspace, settings, at(29), key);
        });
        assert!(stay >= 198, "{stay} of 200, {policy:?}");
    }
}

#[test]
fn the_least_frequently_used_go_first() {
    for policy in [Policy::AllkeysLfu, Policy::VolatileLfu] {
        let stay = lately_used_that_stay(policy, |keyspace, settings, key| {
            (0..50).for_each(|_| get(keyspace, settings, at(2), key));
        });
        assert!(stay >= 198, "{stay} of 200, {policy:?}");
    }
}

/// A search for one of few keys keeps others in mind, which are used before it is their turn.
#[test]
fn a_key_that_was_met_and_is_used_then_stays() {
    let (keyspace, lru) = (keyspace(2), settings(Policy::VolatileLru));
    let evict = |evictor: &mut Evictor| {
        assert_eq!(keyspace.evict(evictor, at(35), &lru.eviction, &mut Vec::new()), Outcome::Key);
    };
    tend(&keyspace, &lru, 0, 1);
    (0..10_000).for_each(|n| set(&keyspace, &lru, at(1), &format!("stays{n}")));
    for n in 0..100 {
        with(&keyspace, &lru, at(1), &format!("k{n}"), |view, key| {
            view.put_string(key, b"v", Form::Auto, Expiry::At(at(1_000_000)));
        });
    }
    tend(&keyspace, &lru, 1, 30);
    let mut evictor = Evictor::new(1);
    (0..20).for_each(|_| evict(&mut evictor));
    let left = || names(&keyspace).into_iter().filter(|name| name.starts_with('k'));
    let used: Vec<String> = left().step_by(2).collect();
    used.iter().for_each(|name| get(&keyspace, &lru, at(30), name));
    tend(&keyspace, &lru, 30, 35);
    (0..30).for_each(|_| evict(&mut evictor));
    let stay = left().filter(|name| used.contains(name)).count();
    assert!(stay >= 39, "{stay} of 40");
}

#[test]
fn what_was_never_used_since_uses_are_kept_goes_before_what_was() {
    let (keyspace, lru) = (keyspace(0), settings(Policy::AllkeysLru));
    let off = settings(Policy::NoEviction);
    (0..100).for_each(|n| set(&keyspace, &off, at(0), &format!("k{n}")));
    tend(&keyspace, &lru, 0, 10);
    (0..100).step_by(2).for_each(|n| get(&keyspace, &lru, at(10), &format!("k{n}")));
    let mut evictor = Evictor::new(1);
    (0..50).for_each(|_| {
        let _ = keyspace.evict(&mut evictor, at(10), &lru.eviction, &mut Vec::new());
    });
    let left = |n: &i32| with(&keyspace, &lru, at(10), &format!("k{n}"), |view, key| view.exists(key));
    let unused = (0..100).filter(left).filter(|n| n % 2 == 1).count();
    assert!(unused <= 10, "{unused} of 50");
}

#[test]
fn counters_rise_ever_more_slowly_begin_at_five_and_fall_by_the_minute() {
    let (keyspace, lfu) = (keyspace(3), settings(Policy::AllkeysLfu));
    tend(&keyspace, &lfu, 0, 1);
    set(&keyspace, &lfu, at(1), "k");
    assert_eq!(usage(&keyspace, &lfu, at(1), "k"), Usage::Frequency(5));
    let mut counts = Vec::new();
    for uses in [100, 900, 9000] {
        (0..uses).for_each(|_| get(&keyspace, &lfu, at(1), "k"));
        let Usage::Frequency(count) = usage(&keyspace, &lfu, at(1), "k") else { panic!() };
        counts.push(count);
    }
    // Redis's own table has 10, 18 and 49 after so many.
    assert!((8..=13).contains(&counts[0]), "{counts:?}");
    assert!((14..=25).contains(&counts[1]) && (38..=60).contains(&counts[2]), "{counts:?}");
    tend(&keyspace, &lfu, 1, 200);
    assert_eq!(usage(&keyspace, &lfu, at(200), "k"), Usage::Frequency(counts[2] - 3));
}

#[test]
fn a_change_from_one_policy_to_the_other_begins_anew() {
    let (keyspace, lfu, lru) = (keyspace(2), settings(Policy::AllkeysLfu), settings(Policy::AllkeysLru));
    tend(&keyspace, &lfu, 0, 1);
    (0..300).for_each(|n| set(&keyspace, &lfu, at(0), &format!("k{n}")));
    tend(&keyspace, &lru, 1, 20);
    for n in 0..300 {
        let Usage::IdleMs(ms) = usage(&keyspace, &lru, at(20), &format!("k{n}")) else { panic!() };
        assert!((18_000..=20_000).contains(&ms), "{ms}: not used since uses are kept so");
    }
    tend(&keyspace, &lfu, 20, 21);
    assert_eq!(usage(&keyspace, &lfu, at(21), "k7"), Usage::Frequency(0));
}

#[test]
fn lists_are_used_too_inside_their_entry_and_outside() {
    let (keyspace, lru) = (keyspace(0), settings(Policy::AllkeysLru));
    tend(&keyspace, &lru, 0, 1);
    for (key, len) in [("short", 3), ("long", 3000)] {
        with(&keyspace, &lru, at(1), key, |view, key| {
            let mut list = view.list_or_new(key).unwrap();
            (0..len).for_each(|_| list.push(End::Tail, b"element"));
        });
    }
    tend(&keyspace, &lru, 1, 60);
    for key in ["short", "long"] {
        with(&keyspace, &lru, at(60), key, |view, key| assert!(view.list(key).unwrap().is_some()));
        let Usage::IdleMs(ms) = usage(&keyspace, &lru, at(60), key) else { panic!() };
        assert!(ms <= 1000);
    }
}

#[test]
fn a_fast_turnover_is_told_apart_within_a_second() {
    let (keyspace, lru) = (keyspace(4), settings(Policy::AllkeysLru));
    tend(&keyspace, &lru, 0, 2);
    let mut evictor = Evictor::new(9);
    // A cache of 2000 keys through which 20,000 pass while the clock hardly moves.
    for n in 0..20_000_i64 {
        let now = Millis(at(2).0 + n / 50);
        set(&keyspace, &lru, now, &format!("k{n}"));
        if n >= 2000 {
            assert_eq!(keyspace.evict(&mut evictor, now, &lru.eviction, &mut Vec::new()), Outcome::Key);
        }
    }
    let left = |n: &i64| with(&keyspace, &lru, at(3), &format!("k{n}"), |view, key| view.exists(key));
    let young = (18_000..20_000).filter(left).count();
    assert!(young > 1850, "{young} of the 2000 youngest are left");
}

fn set_idle(keyspace: &Keyspace, settings: &Settings, now: Millis, key: &str, idle_s: i64) {
    set(keyspace, settings, now, key);
    with(keyspace, settings, now, key, |view, key| view.set_usage(key, Usage::IdleMs(idle_s * 1000)));
}

#[track_caller]
fn assert_idle(keyspace: &Keyspace, settings: &Settings, now: Millis, key: &str, idle_s: i64) {
    let Usage::IdleMs(ms) = usage(keyspace, settings, now, key) else { panic!() };
    let (truth, error) = (idle_s * 1000, idle_s * 1000 / 7 + 2000);
    assert!((ms - truth).abs() <= error, "{key}: {ms} for {truth}");
}

#[test]
fn an_idle_time_older_than_all_that_is_recorded_is_kept() {
    let (keyspace, lru, lfu) = (keyspace(2), settings(Policy::AllkeysLru), settings(Policy::AllkeysLfu));
    // After a change of policy nothing is left of what was recorded before.
    for (policy, from, to) in [(&lru, 0, 2), (&lfu, 2, 4), (&lru, 4, 6)] {
        keyspace.go_by(policy.eviction.policy);
        tend(&keyspace, policy, from, to);
        set(&keyspace, policy, at(to), "k");
    }
    set_idle(&keyspace, &lru, at(6), "restored", 1000);
    assert_idle(&keyspace, &lru, at(6), "restored", 1000);
    // After some rounds nothing is left of the first code.
    tend(&keyspace, &lru, 6, 400);
    set_idle(&keyspace, &lru, at(400), "older", 100_000);
    tend(&keyspace, &lru, 400, 1000);
    assert_idle(&keyspace, &lru, at(1000), "restored", 1994);
    assert_idle(&keyspace, &lru, at(1000), "older", 100_600);
    assert_idle(&keyspace, &lru, at(1000), "k", 994);
}

#[test]
fn an_idle_time_that_is_given_while_codes_are_being_replaced_stays_true() {
    let (keyspace, lru) = (keyspace(4), settings(Policy::AllkeysLru));
    for s in 0..3000 {
        tend(&keyspace, &lru, s, s + 1);
        // One that was used a while ago, whose code may just then be on its way out.
        set_idle(&keyspace, &lru, at(s), &format!("k{s}"), 1 + s * 7 % 600);
        if s % 50 == 49 {
            for n in (0..=s).step_by(7) {
                assert_idle(&keyspace, &lru, at(s), &format!("k{n}"), s - n + 1 + n * 7 % 600);
            }
        }
    }
}

#[test]
fn uses_after_a_change_of_policy_outlive_the_round_that_follows_it() {
    let (keyspace, lru, lfu) = (keyspace(4), settings(Policy::AllkeysLru), settings(Policy::AllkeysLfu));
    keyspace.go_by(lfu.eviction.policy);
    (0..250_000).for_each(|n| set(&keyspace, &lfu, at(0), &format!("k{n}")));
    tend(&keyspace, &lfu, 0, 1);
    keyspace.go_by(lru.eviction.policy);
    // The hand has passed some of the leaves, and the code of that second is no longer the present one.
    let used = |s: i64| (0..20).map(move |n| format!("k{}", s * 1000 + n));
    for s in 1..30 {
        keyspace.tend_uses(at(s), &lru.eviction);
        used(s).for_each(|key| get(&keyspace, &lru, at(s), &key));
    }
    tend(&keyspace, &lru, 30, 400);
    for s in 1..30 {
        for key in used(s) {
            let Usage::IdleMs(ms) = usage(&keyspace, &lru, at(400), &key) else { panic!() };
            // A key that the hand had not passed then counts as used when the policy changed.
            let oldest = (400 - 1) * 1000;
            assert!(ms >= (400 - s) * 1000 - 2000 && ms <= oldest + oldest / 7 + 2000, "{key}: {ms}");
        }
    }
}

#[test]
fn counts_are_kept_once_the_change_to_them_has_ended() {
    let (lru, lfu) = (settings(Policy::AllkeysLru), settings(Policy::AllkeysLfu));
    // Many leaves in few shards, and shards of one leaf each.
    for (shard_bits, keys) in [(4, 250_000), (12, 20_000)] {
        let keyspace = keyspace(shard_bits);
        keyspace.go_by(lru.eviction.policy);
        (0..keys).for_each(|n| set(&keyspace, &lru, at(0), &format!("k{n}")));
        tend(&keyspace, &lru, 0, 3);
        keyspace.go_by(lfu.eviction.policy);
        assert!(
            keyspace.tend_uses(at(3), &lfu.eviction),
            "a round over {keys} keys takes more than one call"
        );
        keyspace.end_change_of_uses();
        let used: Vec<String> = (0..keys).step_by(1000).map(|n| format!("k{n}")).collect();
        used.iter().for_each(|key| get(&keyspace, &lfu, at(3), key));
        assert!(!keyspace.tend_uses(at(4), &lfu.eviction));
        tend(&keyspace, &lfu, 4, 10);
        for key in &used {
            assert_eq!(usage(&keyspace, &lfu, at(10), key), Usage::Frequency(1), "{key}");
        }
        assert_eq!(usage(&keyspace, &lfu, at(10), "k1"), Usage::Frequency(0));
    }
}
