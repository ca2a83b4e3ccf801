//! Sets of some dozen members that have a block of their own, edited one member a command, beside snapshots.
use super::read::Set;
use crate::keyspace::tests::{NOW, each_frozen, keyspace, text_of, with};
use crate::{Policy, SetMut};
use base::random::Random;

/// Members in the order in which they came.
type Twin = Vec<Vec<u8>>;

fn members(set: &Set<'_>) -> Twin {
    let mut all = Twin::new();
    set.for_each(&mut |member| all.push(text_of(member)));
    all
}

fn step(set: &mut SetMut<'_>, twin: &mut Twin, random: &mut Random) {
    for _ in 0..1 + random.below(4) / 3 {
        let number = random.below(40);
        let member = match number % 5 {
            0 => number.to_string().into_bytes(),
            _ => format!("member:{number}:{}", "x".repeat(number as usize)).into_bytes(),
        };
        let at = twin.iter().position(|other| *other == member);
        if random.below(3) == 0 && twin.len() > 1 {
            assert_eq!(set.remove(&member), at.is_some());
            at.map(|at| twin.remove(at));
        } else {
            assert_eq!(set.insert(&member), at.is_none());
            if at.is_none() {
                twin.push(member);
            }
        }
        assert_eq!(set.len(), twin.len() as u64);
    }
}

#[test]
fn members_that_come_and_go_show_in_no_snapshot_and_keep_their_order() {
    for seed in 0..60 {
        let (keyspace, mut random) = (keyspace(0), Random::new(seed));
        // A text first: integers alone would be sorted.
        let (mut twin, mut snapshots) = (vec![b"first".to_vec()], Vec::new());
        with(&keyspace, NOW, "tags", |view, key| view.set_or_new(key).expect("new").insert(b"first"));
        for _ in 0..120 {
            with(&keyspace, NOW, "tags", |view, key| {
                step(&mut view.set_or_new(key).expect("a set"), &mut twin, &mut random);
            });
            let seen = with(&keyspace, NOW, "tags", |view, key| {
                view.set(key).expect("a set").map(|it| members(&it))
            });
            assert_eq!(seen.as_ref(), Some(&twin), "seed {seed}");
            if random.below(6) == 0 {
                snapshots.push((keyspace.freeze(NOW, Policy::NoEviction), twin.clone()));
            }
        }
        for (frozen, twin) in snapshots {
            each_frozen(frozen, |entry| {
                assert_eq!(entry.value.set().map(|set| members(&set)), Some(twin.clone()), "seed {seed}");
            });
        }
    }
}

/// What tells an edit where the image lies from one by a draft: it is not opened.
#[test]
fn a_member_comes_and_goes_where_its_set_lies() {
    let keyspace = keyspace(0);
    let edit = |edit: &dyn Fn(&mut SetMut<'_>)| {
        with(&keyspace, NOW, "tags", |view, key| {
            let mut set = view.set_or_new(key).expect("a set");
            edit(&mut set);
            set.edit.is_untouched()
        })
    };
    for n in 0..20 {
        edit(&|set| assert!(set.insert(format!("{n}{}", "x".repeat(30)).as_bytes())));
    }
    for _ in 0..50 {
        assert!(edit(&|set| assert!(set.insert(b"new"))));
        assert!(edit(&|set| assert!(set.remove(b"new"))));
    }
}
