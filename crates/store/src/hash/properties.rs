//! Hashes against a tree of the standard library: edits, deadlines with time moved by hand, copies, walks,
//! names, and the sums over deadlines, small and large.
use crate::keyspace::tests::{NOW, keyspace, with};
use crate::{Deadline, Halt, Hash, Keyspace, Lifetime};
use base::random::Random;
use base::{Item, Millis};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

type Twin = BTreeMap<Vec<u8>, (Vec<u8>, Deadline)>;

fn owned(item: Item<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    item.append_to(&mut text);
    text
}

fn content(hash: &Hash<'_>) -> Twin {
    let mut all = Twin::new();
    hash.for_each_timed(&mut |field, value, deadline| {
        assert!(all.insert(owned(field), (owned(value), deadline)).is_none(), "a field twice");
    });
    let mut order = Vec::new();
    hash.for_each(&mut |field, value| order.push((owned(field), owned(value))));
    [1, 3, 100].into_iter().for_each(|at_once| assert_eq!(walked(hash, at_once), order));
    all
}

/// All fields with their values, so many at once.
fn walked(hash: &Hash<'_>, at_once: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut all, mut halt) = (Vec::new(), Some(Halt::START));
    while let Some(from) = halt {
        let end = all.len() + at_once;
        halt = hash.visit_from(from, &mut |field, value| {
            all.push((owned(field), owned(value)));
            if all.len() == end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
    all
}

/// How many fields there are to choose from, and how many of five are integers.
#[derive(Clone, Copy)]
struct Taste {
    fields: u64,
    ints: u64,
}

fn text(random: &mut Random, taste: Taste) -> Vec<u8> {
    let n = random.below(taste.fields);
    match n % 5 {
        kind if kind < taste.ints => n.to_string().into_bytes(),
        1 => format!("0{n}").into_bytes(),
        _ => format!("field:{n}").into_bytes(),
    }
}

fn value(random: &mut Random, taste: Taste) -> Vec<u8> {
    match random.below(40) {
        0 => vec![b'v'; random.below(700) as usize],
        kind if kind <= 8 * taste.ints => {
            (random.next_u64() as i64 >> random.below(64)).to_string().into_bytes()
        }
        _ => vec![b'w'; random.below(12) as usize],
    }
}

/// The fields that are not past their deadline at `now`.
fn live(twin: &Twin, now: Millis) -> Twin {
    twin.iter().filter(|(_, kept)| !kept.1.is_past(now)).map(|(f, v)| (f.clone(), v.clone())).collect()
}

/// One random edit of both.
fn edit(keyspace: &Keyspace, key: &str, twin: &mut Twin, random: &mut Random, now: Millis, taste: Taste) {
    let (field, new) = (text(random, taste), value(random, taste));
    let is_there = twin.get(&field).is_some_and(|kept| !kept.1.is_past(now));
    let later = Millis(now.0 + 1 + random.below(2000) as i64);
    with(keyspace, now, key, |view, key| match random.below(10) {
        0..4 => {
            let is_new = view.hash_or_new(key).unwrap().set(&field, &new, Lifetime::Endless);
            assert!(is_new || is_there);
            twin.insert(field, (new, Deadline::Never));
        }
        4 => {
            view.hash_or_new(key).unwrap().set(&field, &new, Lifetime::Kept);
            let deadline = if is_there { twin[&field].1 } else { Deadline::Never };
            twin.insert(field, (new, deadline));
        }
        5 => {
            view.hash_or_new(key).unwrap().set(&field, &new, Lifetime::Until(later));
            twin.insert(field, (new, Deadline::At(later)));
        }
        6 => {
            if let Some(mut hash) = view.hash_mut(key).unwrap()
                && hash.deadline(&field).is_some()
            {
                assert!(is_there);
                let deadline = if random.below(3) == 0 { Deadline::Never } else { Deadline::At(later) };
                hash.set_deadline(&field, deadline);
                twin.get_mut(&field).unwrap().1 = deadline;
            }
        }
        _ => {
            let is_removed = view.hash_mut(key).unwrap().is_some_and(|mut hash| hash.remove(&field));
            assert_eq!(is_removed, is_there);
            twin.remove(&field);
        }
    });
    twin.retain(|_, kept| !kept.1.is_past(now));
}

fn check(keyspace: &Keyspace, key: &str, twin: &Twin, now: Millis) {
    let twin = live(twin, now);
    with(keyspace, now, key, |view, key| {
        let hash = view.hash(key).unwrap();
        let found = hash.map_or_else(Twin::new, |hash| content(&hash));
        assert!(found == twin, "{} fields, {} in the twin", found.len(), twin.len());
        let Some(hash) = hash else { return };
        assert_eq!(hash.live_len(), twin.len() as u64);
        let (mut seen, mut cursor) = (BTreeSet::new(), 0);
        loop {
            cursor = hash.scan(cursor, 7, &mut |field, _| {
                seen.insert(owned(field));
            });
            if cursor == 0 {
                break;
            }
        }
        assert!(seen.iter().eq(twin.keys()));
        check_chosen(&hash);
        for (field, (value, deadline)) in &twin {
            assert_eq!(
                (hash.get(field).map(owned), hash.deadline(field)),
                (Some(value.clone()), Some(*deadline))
            );
        }
    });
}

/// Fields that are chosen by their numbers are those that a whole walk shows at these.
fn check_chosen(hash: &Hash<'_>) {
    let mut walk = Vec::new();
    hash.for_each(&mut |field, value| walk.push((owned(field), owned(value))));
    for chosen in [0, 1, 1 << 63, u64::MAX, 0x8421_0F00_1234_5678] {
        let mut shown = Vec::new();
        let _ = hash.visit_chosen(chosen, &mut |field, value| {
            shown.push((owned(field), owned(value)));
            ControlFlow::Continue(())
        });
        let expected = walk.iter().zip(0..64).filter(|(_, number)| chosen >> number & 1 == 1);
        assert!(shown.iter().eq(expected.map(|(pair, _)| pair)), "{chosen:x} of {} fields", walk.len());
    }
}

#[test]
fn hashes_agree_with_the_twin_whatever_their_size_and_fields_go_on_time() {
    for (seed, fields, ints) in [
        (0, 4, 1),
        (1, 12, 2),
        (2, 40, 1),
        (3, 300, 1),
        (4, 3000, 1),
        (5, 1500, 4),
        (6, 4000, 4),
        (7, 500, 3),
    ] {
        let taste = Taste { fields, ints };
        let mut random = Random::new(seed);
        let keyspace = keyspace(1);
        let (mut twin, mut copy, mut now) = (Twin::new(), Twin::new(), NOW);
        for turn in 0..4000 {
            edit(&keyspace, "h", &mut twin, &mut random, now, taste);
            if turn % 3 == 0 {
                edit(&keyspace, "copy", &mut copy, &mut random, now, taste);
            }
            if random.below(20) == 0 {
                now = Millis(now.0 + random.below(200) as i64);
            }
            if random.below(30) == 0 {
                keyspace.expire(now, 1 + random.below(300) as usize, &mut Vec::new());
            }
            if random.below(300) == 0 {
                let taken = with(&keyspace, now, "h", |view, key| view.copy(key));
                with(&keyspace, now, "copy", |view, key| {
                    view.remove(key);
                    taken.into_iter().for_each(|taken| view.put_taken(key, taken));
                });
                copy = live(&twin, now);
            }
            if turn % 50 == 0 {
                check(&keyspace, "h", &twin, now);
                check(&keyspace, "copy", &copy, now);
            }
        }
        while keyspace.expire(now, 50, &mut Vec::new()).is_some_and(|due| due <= now) {}
        let timed = |twin: &Twin| u64::from(live(twin, now).values().any(|kept| kept.1 != Deadline::Never));
        assert_eq!(keyspace.timed_hashes(0), timed(&twin) + timed(&copy), "seed {seed}");
        let far = Millis(now.0 + 10_000);
        while keyspace.expire(far, 50, &mut Vec::new()).is_some() {}
        assert_eq!(keyspace.timed_hashes(0), 0, "all that had a deadline has gone: seed {seed}");
        twin.retain(|_, kept| kept.1 == Deadline::Never);
        check(&keyspace, "h", &twin, far);
        assert_eq!(with(&keyspace, far, "h", |view, key| view.exists(key)), !twin.is_empty());
    }
}

#[test]
fn thousands_of_due_fields_go_in_small_steps_and_the_key_with_the_last() {
    const FIELDS: u64 = 20_000;
    let keyspace = keyspace(0);
    let due = Millis(NOW.0 + 1000);
    with(&keyspace, NOW, "h", |view, key| {
        let mut hash = view.hash_or_new(key).unwrap();
        (0..FIELDS).for_each(|n| {
            hash.set(format!("f{n}").as_bytes(), b"v", Lifetime::Until(due));
        });
    });
    assert_eq!(keyspace.timed_hashes(0), 1);
    keyspace.expire(Millis(due.0 - 1), 256, &mut Vec::new());
    assert_eq!((keyspace.stats().expired_fields, keyspace.len(0)), (0, 1));
    let mut steps = 0;
    while keyspace.len(0) > 0 {
        let before = keyspace.stats().expired_fields;
        keyspace.expire(due, 256, &mut Vec::new());
        let removed = keyspace.stats().expired_fields - before;
        assert!(removed <= 1024, "one call removed {removed} fields");
        steps += 1;
        assert!(steps < FIELDS, "a call that removes nothing");
    }
    let stats = keyspace.stats();
    assert_eq!((stats.expired_fields, stats.expired, stats.evicted), (FIELDS, 0, 0));
    assert_eq!((keyspace.timed_hashes(0), keyspace.soonest_due()), (0, None));
}

#[test]
fn fields_past_their_deadline_are_gone_for_readers_before_anybody_removes_them() {
    for fields in [3, 1000] {
        let keyspace = keyspace(0);
        with(&keyspace, NOW, "h", |view, key| {
            let mut hash = view.hash_or_new(key).unwrap();
            (0..fields).for_each(|n| {
                let lifetime =
                    if n % 2 == 0 { Lifetime::Until(Millis(NOW.0 + 10)) } else { Lifetime::Endless };
                hash.set(format!("f{n}").as_bytes(), b"v", lifetime);
            });
        });
        keyspace.rest_expiry();
        let now = Millis(NOW.0 + 10);
        with(&keyspace, now, "h", |view, key| {
            let hash = view.hash(key).unwrap().expect("half of it is alive");
            assert_eq!((hash.get(b"f0"), hash.deadline(b"f0")), (None, None));
            assert_eq!(hash.live_len(), fields / 2);
            assert!(content(&hash).values().all(|kept| kept.1 == Deadline::Never));
            let mut random = Random::new(1);
            (0..100).for_each(|_| {
                assert_ne!(hash.random(&mut random).map(|(field, _)| owned(field)), Some(b"f0".to_vec()))
            });
        });
        assert_eq!(keyspace.stats().expired_fields, 0, "expiry rests");
        keyspace.resume_expiry();
        let later = Millis(NOW.0 + 200);
        with(&keyspace, later, "h", |view, key| assert!(view.hash(key).is_ok()));
        assert!(keyspace.stats().expired_fields > 0, "a look removes again");
    }
}

#[test]
fn one_of_a_thousand_fields_that_is_alive_is_found_each_time() {
    let keyspace = keyspace(0);
    with(&keyspace, NOW, "h", |view, key| {
        let mut hash = view.hash_or_new(key).unwrap();
        (0..1000).for_each(|n| {
            let lifetime = if n == 500 { Lifetime::Endless } else { Lifetime::Until(Millis(NOW.0 + 10)) };
            hash.set(format!("f{n}").as_bytes(), b"v", lifetime);
        });
    });
    keyspace.rest_expiry();
    with(&keyspace, Millis(NOW.0 + 10), "h", |view, key| {
        let hash = view.hash(key).unwrap().expect("one is alive");
        let mut random = Random::new(1);
        for _ in 0..100 {
            assert_eq!(hash.random(&mut random).map(|(field, _)| owned(field)), Some(b"f500".to_vec()));
        }
    });
    with(&keyspace, NOW, "h", |view, key| view.hash_or_new(key).unwrap().remove(b"f500"));
    with(&keyspace, Millis(NOW.0 + 10), "h", |view, key| {
        assert!(view.hash(key).unwrap().is_none_or(|hash| hash.random(&mut Random::new(1)).is_none()));
    });
}

/// When its first leaf is full a hash moves integers to a map of their own: at the very write, perhaps, that
/// finds one of them.
#[test]
fn an_integer_that_is_there_is_written_again_however_many_fields_there_are() {
    for count in (1..=3).chain(60..=70).chain(120..400) {
        let keyspace = keyspace(1);
        let mut twin = Twin::new();
        with(&keyspace, NOW, "h", |view, key| {
            let mut set = |field: &str, value: &str| {
                let is_new =
                    view.hash_or_new(key).unwrap().set(field.as_bytes(), value.as_bytes(), Lifetime::Endless);
                let before = twin.insert(field.into(), (value.into(), Deadline::Never));
                assert_eq!(is_new, before.is_none(), "{count} fields: {field}");
            };
            set("7", "100");
            (1..count).for_each(|number| set(&format!("f{number}"), "v"));
            ["101", "1000000", "text", "5"].iter().for_each(|value| set("7", value));
        });
        check(&keyspace, "h", &twin, NOW);
    }
}

#[test]
fn a_small_hash_keeps_the_order_in_which_fields_came() {
    let keyspace = keyspace(0);
    with(&keyspace, NOW, "h", |view, key| {
        let mut hash = view.hash_or_new(key).unwrap();
        for field in ["c", "a", "10", "b"] {
            hash.set(field.as_bytes(), b"1", Lifetime::Endless);
        }
        hash.set(b"a", b"another value, and a longer one", Lifetime::Endless);
        hash.remove(b"c");
        hash.set(b"c", b"1", Lifetime::Endless);
    });
    let mut order = Vec::new();
    with(&keyspace, NOW, "h", |view, key| {
        view.hash(key).unwrap().unwrap().for_each(&mut |field, _| order.push(owned(field)));
    });
    assert_eq!(order, [b"a".to_vec(), b"10".to_vec(), b"b".to_vec(), b"c".to_vec()]);
}

#[test]
fn a_walk_shows_every_field_that_stays_whatever_its_value_becomes() {
    let fields: Vec<Vec<u8>> = (0..1500).map(|n| (n * 7 - 3000).to_string().into_bytes()).collect();
    for seed in 0..6 {
        let (keyspace, mut random) = (keyspace(0), Random::new(seed));
        let write = |field: &[u8], random: &mut Random| {
            let value = match random.below(3) {
                0 => b"text".to_vec(),
                _ => random.below(1000).to_string().into_bytes(),
            };
            let later = Lifetime::Until(Millis(NOW.0 + 1_000_000));
            let lifetime = if random.below(4) == 0 { later } else { Lifetime::Endless };
            with(&keyspace, NOW, "h", |view, key| {
                view.hash_or_new(key).unwrap().set(field, &value, lifetime);
            });
        };
        fields.iter().for_each(|field| write(field, &mut random));
        let (mut seen, mut cursor) = (BTreeSet::new(), 0);
        loop {
            cursor = with(&keyspace, NOW, "h", |view, key| {
                view.hash(key).unwrap().unwrap().scan(cursor, 10, &mut |field, _| {
                    seen.insert(owned(field));
                })
            });
            if cursor == 0 {
                break;
            }
            (0..20).for_each(|_| write(&fields[random.below(fields.len() as u64) as usize], &mut random));
        }
        assert!(fields.iter().all(|field| seen.contains(field)), "seed {seed}: {} seen", seen.len());
    }
}

#[test]
fn integers_with_integers_take_few_bytes_and_are_drawn_as_often_as_texts() {
    let keyspace = keyspace(0);
    with(&keyspace, NOW, "h", |view, key| {
        let mut hash = view.hash_or_new(key).unwrap();
        for n in 0..4000 {
            let (int, text) = (n.to_string(), format!("f{n}"));
            let field = if n < 3000 { &int } else { &text };
            assert!(hash.set(field.as_bytes(), int.as_bytes(), Lifetime::Endless));
        }
    });
    with(&keyspace, NOW, "h", |view, key| {
        let info = view.info(key).unwrap();
        assert_eq!((info.len, info.stats.ints.entries, info.stats.tagged.entries), (4000, 3000, 1000));
        assert!(info.stats.ints.allocated_bytes < 3000 * 5 / 2, "{:?}", info.stats.ints);
        let (mut random, mut texts) = (Random::new(3), 0);
        for _ in 0..20_000 {
            let (field, value) = view.hash(key).unwrap().unwrap().random(&mut random).unwrap();
            texts += u32::from(matches!(field, Item::Bytes(_)));
            assert_eq!(owned(field).strip_prefix(b"f").unwrap_or(&owned(field)), owned(value));
        }
        assert!((4600..5400).contains(&texts), "a quarter of 20,000 draws: {texts}");
    });
}
