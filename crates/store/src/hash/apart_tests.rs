//! Hashes of a few fields that have a block of their own, edited one field a command, beside snapshots.
use crate::keyspace::tests::{NOW, each_frozen, keyspace, text_of, with};
use crate::{Hash, Key, Keyspace, Lifetime, Policy, Settings, View};
use base::Millis;
use base::random::Random;
use std::ops::ControlFlow;

/// Fields and values in their order.
type Twin = Vec<(Vec<u8>, Vec<u8>)>;

fn pairs_of(hash: &Hash<'_>) -> Twin {
    let mut pairs = Twin::new();
    let _ = hash.visit(&mut |field, value| {
        pairs.push((text_of(field), text_of(value)));
        ControlFlow::Continue(())
    });
    pairs
}

fn sorted(mut pairs: Twin) -> Twin {
    pairs.sort();
    pairs
}

fn value(random: &mut Random) -> Vec<u8> {
    match random.below(4) {
        0 => random.below(1 << 40).to_string().into_bytes(),
        _ => vec![b'a' + random.below(26) as u8; random.below(260) as usize],
    }
}

/// One command on a hash, and on its twin.
fn step(view: &mut View<'_>, key: &Key<'_>, twin: &mut Twin, random: &mut Random) {
    let mut hash = view.hash_or_new(key).expect("a hash");
    for _ in 0..1 + random.below(4) / 3 {
        let field = format!("field{}", random.below(14)).into_bytes();
        let at = twin.iter().position(|(name, _)| *name == field);
        if random.below(3) == 0 && twin.len() > 1 {
            assert_eq!(hash.remove(&field), at.is_some());
            at.map(|at| twin.remove(at));
        } else {
            let value = value(random);
            assert_eq!(hash.set(&field, &value, Lifetime::Endless), at.is_none());
            match at {
                Some(at) => twin[at].1 = value,
                None => twin.push((field, value)),
            }
        }
        assert_eq!(hash.len(), twin.len() as u64);
    }
}

fn settings(limit: u64) -> Settings {
    let mut settings = Settings::default();
    settings.hash.value = limit;
    settings
}

fn read(keyspace: &Keyspace) -> Twin {
    with(keyspace, NOW, "job", |view, key| pairs_of(&view.hash(key).expect("a hash").expect("it is there")))
}

/// With either name, "listpack" or "hashtable".
#[test]
fn fields_that_come_change_and_go_show_in_no_snapshot_and_keep_their_order() {
    for seed in 0..80 {
        let (keyspace, mut random) = (keyspace(0), Random::new(seed));
        let settings = settings(if seed % 2 == 0 { 64 } else { 512 });
        let (mut twin, mut snapshots, mut was_image) = (Twin::new(), Vec::new(), true);
        for _ in 0..100 {
            let (mut view, key) = keyspace.lock_one(0, NOW, &settings, b"job");
            step(&mut view, &key, &mut twin, &mut random);
            drop(view);
            // A tree has an order of its own, and so has the image that it becomes.
            let bytes: usize = twin.iter().map(|(field, value)| field.len() + value.len()).sum();
            was_image &= bytes < 1_900;
            let seen = read(&keyspace);
            if was_image {
                assert_eq!(seen, twin, "seed {seed}");
            }
            assert_eq!(sorted(seen), sorted(twin.clone()), "seed {seed}");
            if random.below(6) == 0 {
                snapshots.push((keyspace.freeze(NOW, Policy::NoEviction), twin.clone()));
            }
        }
        for (frozen, twin) in snapshots {
            let mut seen = Twin::new();
            each_frozen(frozen, |entry| {
                seen = pairs_of(&entry.value.hash().expect("a hash"));
            });
            assert_eq!(sorted(seen), sorted(twin), "seed {seed}");
        }
    }
}

/// What tells an edit where the image lies from one by a draft: it is not opened.
#[test]
fn a_field_comes_changes_and_goes_where_its_hash_lies() {
    let keyspace = keyspace(0);
    let edit = |edit: &dyn Fn(&mut crate::HashMut<'_>)| {
        with(&keyspace, NOW, "job", |view, key| {
            let mut hash = view.hash_or_new(key).expect("a hash");
            edit(&mut hash);
            hash.edit.is_untouched()
        })
    };
    for n in 0..6 {
        edit(&|hash| assert!(hash.set(format!("f{n}").as_bytes(), &[b'x'; 150], Lifetime::Endless)));
    }
    for _ in 0..50 {
        assert!(edit(&|hash| assert!(hash.set(b"new", b"value", Lifetime::Endless))));
        assert!(edit(&|hash| assert!(!hash.set(b"new", b"a longer value", Lifetime::Endless))));
        assert!(edit(&|hash| assert!(hash.remove(b"new"))));
    }
    let deadline = Millis(NOW.0 + 100);
    assert!(
        !edit(&|hash| assert!(hash.set(b"new", b"value", Lifetime::Until(deadline)))),
        "a deadline is settled"
    );
    assert!(
        !edit(&|hash| assert!(hash.set(b"other", b"value", Lifetime::Endless))),
        "so is what comes beside one"
    );
    let left =
        with(&keyspace, deadline, "job", |view, key| view.hash(key).map(|hash| hash.map(|it| it.live_len())));
    assert_eq!(left, Ok(Some(7)));
}
