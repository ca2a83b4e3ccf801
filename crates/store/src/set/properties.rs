//! Sets in the keyspace against the standard library's, small and large, with copies held, merged, scanned
//! and popped, and the names that thresholds and history give them.
use super::fresh::{Body, NewSet};
use super::merge::Merge;
use super::name::Name;
use super::read::Set;
use crate::keyspace::tests::NOW;
use crate::{Halt, Key, Keyspace, KeyspaceOptions, Settings, View};
use base::hash::Seed;
use base::random::Random;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

type Text = Vec<u8>;
type Twin = BTreeSet<Text>;

struct Run {
    keyspace: Keyspace,
    settings: Settings,
    twins: [Twin; 3],
    random: Random,
    seed: u64,
}

fn text(member: base::Item<'_>) -> Text {
    let mut text = Vec::new();
    member.append_to(&mut text);
    text
}

fn members(set: Option<Set<'_>>) -> Vec<Text> {
    let mut all = Vec::new();
    if let Some(set) = set {
        set.for_each(&mut |member| all.push(text(member)));
        assert_eq!(all.len() as u64, set.len());
        [1, 3, 100].into_iter().for_each(|at_once| assert_eq!(walked(&set, at_once), all));
    }
    all
}

/// All members, so many at once.
fn walked(set: &Set<'_>, at_once: usize) -> Vec<Text> {
    let (mut all, mut halt) = (Vec::new(), Some(Halt::START));
    while let Some(from) = halt {
        let end = all.len() + at_once;
        halt = set.visit_from(from, &mut |member| {
            all.push(text(member));
            if all.len() == end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
    all
}

impl Run {
    fn new(seed: u64) -> Run {
        let options = KeyspaceOptions { shard_bits: 1, databases: 1, seed: Seed::new(seed, !seed) };
        let mut settings = Settings::default();
        if seed.is_multiple_of(3) {
            settings.set =
                crate::SetLimits { intset_entries: 8, listpack_entries: 6, listpack_value_bytes: 10 };
        }
        let twins = [Twin::new(), Twin::new(), Twin::new()];
        Run { keyspace: Keyspace::new(options), settings, twins, random: Random::new(seed), seed }
    }

    fn on<R>(&self, act: impl FnOnce(&mut View<'_>, &[Key<'_>]) -> R) -> R {
        let names: [&[u8]; 4] = [b"a", b"b", b"c", b"result"];
        let (mut view, keys) = self.keyspace.lock_named(0, NOW, &self.settings, &names);
        act(&mut view, &keys)
    }

    /// Members as sets meet them, few enough that sets have some in common.
    fn member(&mut self) -> Text {
        let random = &mut self.random;
        match self.seed % 5 {
            0 => random.below(40).to_string().into_bytes(),
            1 => (random.below(900) as i64 * 1_000_003).to_string().into_bytes(),
            2 => format!("tag{}", random.below(300)).into_bytes(),
            3 => match random.below(12) {
                0 => vec![b'x'; random.below(400) as usize],
                1 => format!("00{}", random.below(9)).into_bytes(),
                2..=6 => (random.below(60) as i64 - 30).to_string().into_bytes(),
                _ => format!("m{}", random.below(60)).into_bytes(),
            },
            _ => (random.below(6000) as i64).to_string().into_bytes(),
        }
    }

    fn step(&mut self) {
        let which = self.random.below(3) as usize;
        match self.random.below(16) {
            0..=7 => self.add(which),
            8..=10 => self.remove(which),
            11 => self.pop(which),
            12 => self.copy(which),
            13 => self.merge(),
            14 => self.sample(which),
            _ => self.scan(which),
        }
        let (twin, is_there) = (&self.twins[which], self.random.below(2) == 0);
        let probe = twin.iter().nth(twin.len() / 2).filter(|_| is_there).cloned();
        let probe = probe.unwrap_or_else(|| b"nobody".to_vec());
        self.on(|view, keys| {
            let set = view.set(&keys[which]).expect("a set");
            let found = set.is_some_and(|set| set.contains(&probe));
            assert_eq!(found, self.twins[which].contains(&probe), "seed {}", self.seed);
        });
    }

    fn add(&mut self, which: usize) {
        let count = [1, 1, 1, 5, 40][self.random.below(5) as usize];
        let members: Vec<Text> = (0..count).map(|_| self.member()).collect();
        let added = self.on(|view, keys| {
            let mut set = view.set_or_new(&keys[which]).expect("a set");
            set.announce(count);
            members.iter().map(|member| u64::from(set.insert(member))).sum::<u64>()
        });
        let twin = &mut self.twins[which];
        let expected: u64 = members.into_iter().map(|member| u64::from(twin.insert(member))).sum();
        assert_eq!(added, expected, "seed {}", self.seed);
    }

    fn remove(&mut self, which: usize) {
        let mut gone: Vec<Text> = (0..self.random.below(4)).map(|_| self.member()).collect();
        let most = self.random.below(30) as usize;
        gone.extend(self.twins[which].iter().take(most).cloned());
        let removed = self.on(|view, keys| {
            let Some(mut set) = view.set_mut(&keys[which]).expect("a set") else { return 0 };
            gone.iter().map(|member| u64::from(set.remove(member))).sum::<u64>()
        });
        let twin = &mut self.twins[which];
        let expected: u64 = gone.iter().map(|member| u64::from(twin.remove(member))).sum();
        assert_eq!(removed, expected, "seed {}", self.seed);
    }

    fn pop(&mut self, which: usize) {
        let len = self.twins[which].len() as u64;
        let count = [1, 3, len / 2, len.saturating_sub(2), len][self.random.below(5) as usize];
        let mut popped = Vec::new();
        self.on(|view, keys| {
            if let Some(mut set) = view.set_mut(&keys[which]).expect("a set").filter(|_| count > 0) {
                set.pop(count, &mut |member| popped.push(text(member)));
            }
        });
        assert_eq!(popped.len() as u64, count.min(len));
        for member in popped {
            assert!(self.twins[which].remove(&member), "popped twice, or never there");
        }
    }

    /// The copy shares leaves with what it was made from.
    fn copy(&mut self, which: usize) {
        let other = (which + 1) % 3;
        self.on(|view, keys| match view.copy(&keys[which]) {
            Some(taken) => view.put_taken(&keys[other], taken),
            None => assert_eq!(view.remove(&keys[other]), !self.twins[other].is_empty()),
        });
        self.twins[other] = self.twins[which].clone();
    }

    fn merge(&mut self) {
        let [a, b, c] = &self.twins;
        let cases = [
            (Merge::Intersection, a & &(b & c)),
            (Merge::Union, a | &(b | c)),
            (Merge::Difference, a - &(b | c)),
        ];
        for (merge, expected) in cases {
            self.on(|view, keys| {
                let result = view.merge(&keys[..3], merge).expect("sets");
                let mut told = Twin::new();
                result.for_each(&mut |member| assert!(told.insert(text(member)), "told twice"));
                assert_eq!((&told, result.len()), (&expected, expected.len() as u64), "{merge:?}");
                view.put_set(&keys[3], result);
                let stored: Twin = members(view.set(&keys[3]).expect("a set")).into_iter().collect();
                assert_eq!(stored, expected, "{merge:?}");
                let mut shown = Twin::new();
                let visited = view.visit_merged(&keys[..3], merge, &mut |member| {
                    assert!(shown.insert(text(member)), "shown twice");
                    ControlFlow::Continue(())
                });
                visited.expect("sets");
                assert_eq!(shown, expected, "{merge:?}");
            });
        }
    }

    fn sample(&mut self, which: usize) {
        let len = self.twins[which].len() as u64;
        let count = [1, len / 5, len / 2, len + 1][self.random.below(4) as usize];
        let mut random = self.random.clone();
        let mut sample = Twin::new();
        self.on(|view, keys| {
            if let Some(set) = view.set(&keys[which]).expect("a set") {
                set.sample(count, &mut random, &mut |member| {
                    assert!(sample.insert(text(member)));
                    std::ops::ControlFlow::Continue(())
                });
            }
        });
        self.random = random;
        assert_eq!(sample.len() as u64, count.min(len));
        assert!(sample.is_subset(&self.twins[which]));
    }

    /// A walk shows every member that is there all the time, whatever else comes and goes.
    fn scan(&mut self, which: usize) {
        let stays: Vec<Text> = self.twins[which].iter().step_by(2).cloned().collect();
        let (mut cursor, mut seen) = (0, Twin::new());
        for call in 0.. {
            assert!(call < 10_000, "a scan comes to its end, seed {}", self.seed);
            cursor = self.on(|view, keys| {
                let set = view.set(&keys[which]).expect("a set");
                set.map_or(0, |set| {
                    set.scan(cursor, 3, &mut |member| {
                        seen.insert(text(member));
                    })
                })
            });
            assert!(cursor < 1 << 53);
            if cursor == 0 {
                break;
            }
            let member = self.member();
            if !stays.contains(&member) {
                self.on(|view, keys| {
                    let mut set = view.set_or_new(&keys[which]).expect("a set");
                    if !set.insert(&member) {
                        set.remove(&member);
                    }
                });
                if !self.twins[which].remove(&member) {
                    self.twins[which].insert(member);
                }
            }
        }
        assert!(stays.iter().all(|member| seen.contains(member)), "seed {}", self.seed);
    }

    fn compare(&self) {
        self.on(|view, keys| {
            for (key, twin) in keys.iter().zip(&self.twins) {
                let all: Twin = members(view.set(key).expect("a set")).into_iter().collect();
                assert_eq!(&all, twin, "seed {}", self.seed);
                let info = view.info(key);
                assert_eq!(info.is_some(), !twin.is_empty());
                assert_eq!(info.map_or(0, |info| info.len), twin.len() as u64);
            }
        });
    }
}

#[test]
fn random_edits_and_merges_agree_with_sets_of_the_standard_library() {
    for seed in 0..30 {
        let mut run = Run::new(seed);
        for step in 0..400 {
            run.step();
            if step % 50 == 0 {
                run.compare();
            }
        }
        run.compare();
    }
}

fn encoding(run: &Run, key: usize) -> &'static str {
    run.on(|view, keys| view.info(&keys[key]).expect("it is there").encoding)
}

fn add(run: &Run, members: &[&str]) {
    run.on(|view, keys| {
        let mut set = view.set_or_new(&keys[0]).expect("a set");
        set.announce(members.len() as u64);
        for member in members {
            set.insert(member.as_bytes());
        }
    });
}

fn order(run: &Run) -> Vec<String> {
    let all = run.on(|view, keys| members(view.set(&keys[0]).expect("a set")));
    all.into_iter().map(|text| String::from_utf8(text).expect("it was text")).collect()
}

#[test]
fn small_sets_answer_integers_in_order_and_anything_else_in_the_order_it_came() {
    let run = Run::new(1);
    add(&run, &["5", "-3", "300"]);
    assert_eq!((encoding(&run, 0), order(&run)), ("intset", vec!["-3".into(), "5".into(), "300".into()]));
    add(&run, &["x"]);
    add(&run, &["1"]);
    assert_eq!(encoding(&run, 0), "listpack");
    assert_eq!(order(&run), ["-3", "5", "300", "x", "1"]);
}

#[test]
fn a_name_once_lost_does_not_come_back() {
    let run = Run::new(1);
    (0..513).for_each(|n: u32| add(&run, &[&n.to_string()]));
    assert_eq!(encoding(&run, 0), "hashtable");
    run.on(|view, keys| {
        let mut set = view.set_mut(&keys[0]).expect("a set").expect("it is there");
        (1..513).for_each(|n: u32| assert!(set.remove(n.to_string().as_bytes())));
    });
    assert_eq!((encoding(&run, 0), order(&run)), ("hashtable", vec!["0".into()]));
}

/// What OBJECT ENCODING would say, whether it lies inside, and the members in their order.
fn shape(set: &NewSet<'_>) -> (Name, bool, Vec<Text>) {
    let mut all = Vec::new();
    set.for_each(&mut |member| all.push(text(member)));
    match &set.body {
        Body::Image(name, _) => (*name, true, all),
        Body::Members(members) => (members.name, false, all),
    }
}

#[test]
fn integers_added_in_one_go_make_the_set_that_they_make_one_by_one() {
    let seed = Seed::new(1, 2);
    let mut random = Random::new(3);
    let mut seen = BTreeSet::new();
    for turn in 0..600 {
        let intset_entries = [8, 50, 512][turn % 3];
        let limits = crate::SetLimits { intset_entries, listpack_entries: 6, listpack_value_bytes: 10 };
        let count = [1, 7, 8, 9, 50, 51, 95, 96, 191, 192, 512, 513, 700][random.below(13) as usize];
        // Of one width, because images of integers and of items else have room for different numbers.
        let span = [1 << 15, 1 << 40][random.below(2) as usize];
        let values: BTreeSet<i64> =
            (0..count).map(|_| span - 1 - random.below(span as u64 / 3) as i64).collect();
        let values: Vec<i64> = values.into_iter().collect();
        let [mut at_once, mut one_by_one] = [0, 1].map(|_| NewSet::new(Name::Intset, &seed, &limits));
        at_once.add_ints(&values);
        values.iter().for_each(|value| assert!(one_by_one.insert(base::Item::Int(*value))));
        assert_eq!(shape(&at_once), shape(&one_by_one), "{} of {intset_entries}", values.len());
        seen.insert((at_once.len() <= intset_entries, shape(&at_once).1));
    }
    assert_eq!(seen.len(), 4, "inside and outside, below and beyond the limit");
}

#[test]
fn one_text_among_many_integers_costs_one_entry() {
    let run = Run::new(1);
    let numbers: Vec<String> = (0..10_000).map(|n| (n * 7_919_000_001_i64 % (1 << 40)).to_string()).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    add(&run, &numbers);
    let before = run.on(|view, keys| view.info(&keys[0]).expect("it is there").memory_bytes);
    add(&run, &["one text"]);
    let after = run.on(|view, keys| view.info(&keys[0]).expect("it is there").memory_bytes);
    assert!(after - before < 150, "{before} {after}");
    assert!(before < 10_000 * 9 / 2, "{before}");
}
