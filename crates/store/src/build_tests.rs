//! Collections that are built at once beside the same ones made element by element: the same content, order,
//! name and sums, and the same after further edits. What holds an element twice is refused.
use crate::keyspace::tests::{NOW, keyspace, with};
use crate::{Deadline, End, Fill, HashLimits, Keyspace, Lifetime, NewField, Settings, ZEntry, ZMember};
use base::random::Random;
use base::{Item, Millis};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Lengths at which collections leave their entry, are more than a leaf, or many leaves.
fn len(random: &mut Random) -> u64 {
    match random.below(12) {
        0..5 => random.below(12),
        5..8 => random.below(70),
        8..10 => 100 + random.below(110),
        10 => random.below(700),
        _ => random.below(4000),
    }
}

/// Limits by which small collections change their names, in half of the cases.
fn settings(random: &mut Random) -> Settings {
    let mut settings = Settings::default();
    if random.below(2) == 0 {
        settings.hash = HashLimits { entries: random.below(40), value: random.below(20) };
        settings.set.intset_entries = random.below(40);
        settings.set.listpack_entries = random.below(40);
        settings.set.listpack_value_bytes = random.below(20);
        settings.zset.listpack_entries = random.below(40);
        settings.zset.listpack_value_bytes = random.below(20);
        settings.list.fill = match random.below(2) {
            0 => Fill::Bytes(40 + random.below(500) as u32),
            _ => Fill::Entries(1 + random.below(40) as u32),
        };
    }
    settings
}

/// What a collection is made of: how many of five elements are integers, and how long texts are.
#[derive(Clone, Copy)]
struct Taste {
    ints: u64,
    text_bytes: u64,
}

fn taste(random: &mut Random) -> Taste {
    let text_bytes = [4, 12, 12, 40, 300][random.below(5) as usize];
    Taste { ints: [0, 0, 1, 4, 5][random.below(5) as usize], text_bytes }
}

fn text(random: &mut Random, taste: Taste) -> Vec<u8> {
    if random.below(5) < taste.ints {
        return (random.next_u64() as i64 >> (20 + random.below(44))).to_string().into_bytes();
    }
    let mut text = b"element:".to_vec();
    text.truncate(random.below(9) as usize);
    text.extend_from_slice(random.next_u64().to_string().as_bytes());
    text.resize(random.below(taste.text_bytes + 1).max(3) as usize, b'x');
    text
}

/// Texts, each once.
fn texts(random: &mut Random, taste: Taste) -> Vec<Vec<u8>> {
    let mut seen = BTreeSet::new();
    (0..len(random)).map(|_| text(random, taste)).filter(|text| seen.insert(text.clone())).collect()
}

fn items(texts: &[Vec<u8>]) -> Vec<Item<'_>> {
    texts.iter().map(|text| Item::classify(text)).collect()
}

fn entries_of<'t>(scored: impl Iterator<Item = (f64, &'t Vec<u8>)>) -> Vec<ZEntry<'t>> {
    let entry = |(score, text): (f64, &'t Vec<u8>)| ZEntry { score, member: ZMember::classify(text) };
    scored.map(entry).collect()
}

fn owned(item: Item<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    item.append_to(&mut text);
    text
}

/// Calls `edit` under both keys.
fn both(
    keyspace: &Keyspace,
    settings: &Settings,
    mut edit: impl FnMut(&mut crate::View<'_>, &crate::Key<'_>),
) {
    for key in [&b"built"[..], b"grown"] {
        let (mut view, key) = keyspace.lock_one(0, NOW, settings, key);
        edit(&mut view, &key);
    }
}

/// What both keys hold, after it was found to be the same; sorted, where the order need not be.
fn same<T: PartialEq + Ord + std::fmt::Debug>(
    keyspace: &Keyspace,
    settings: &Settings,
    is_ordered: bool,
    read: impl Fn(&mut crate::View<'_>, &crate::Key<'_>) -> Vec<T>,
) {
    let (mut seen, mut names, mut is_small) = (Vec::new(), Vec::new(), true);
    both(keyspace, settings, |view, key| {
        seen.push(read(view, key));
        let info = view.info(key);
        is_small &= info.as_ref().is_none_or(|info| info.is_inline || info.stats.tagged.nodes < 2);
        names.push(info.map(|info| (info.encoding, info.len)));
    });
    assert_eq!(names[0], names[1]);
    // One leaf keeps the order in which its elements came.
    if !is_ordered && !is_small {
        seen.iter_mut().for_each(|all| all.sort());
    }
    let differing = seen[0].iter().zip(&seen[1]).find(|(one, other)| one != other);
    assert!(seen[0].len() == seen[1].len() && differing.is_none(), "{differing:?}");
}

#[test]
fn a_list_that_is_built_is_the_one_that_is_pushed() {
    for seed in 0..120 {
        let mut random = Random::new(seed);
        let (keyspace, settings, taste) = (keyspace(0), settings(&mut random), taste(&mut random));
        let texts: Vec<Vec<u8>> = (0..len(&mut random)).map(|_| text(&mut random, taste)).collect();
        let cut = random.below(texts.len() as u64 + 1) as usize;
        both(&keyspace, &settings, |view, key| {
            let mut list = view.list_or_new(key).expect("nothing else is there");
            if key.bytes() == b"built" {
                list.append(&items(&texts[..cut]));
                list.append(&items(&texts[cut..]));
            } else {
                texts.iter().for_each(|text| list.push(End::Tail, text));
            }
        });
        let read = |view: &mut crate::View<'_>, key: &crate::Key<'_>| {
            let mut all = Vec::new();
            if let Some(list) = view.list(key).expect("a list") {
                list.visit(0, End::Tail, &mut |_, item| {
                    all.push(owned(item));
                    ControlFlow::Continue(())
                });
            }
            all
        };
        same(&keyspace, &settings, true, read);
        for step in 0..40 {
            let (text, at) = (text(&mut random, taste), random.next_u64());
            both(&keyspace, &settings, |view, key| {
                let mut list = view.list_or_new(key).expect("a list");
                match (step + at) % 5 {
                    0 => list.push(End::Head, &text),
                    1 => list.push(End::Tail, &text),
                    2 => list.insert(at % (list.len() + 1), &text),
                    3 if list.len() > 0 => list.remove(at % list.len(), 1),
                    _ => drop(list.pop(End::Tail, |_| ())),
                }
            });
        }
        same(&keyspace, &settings, true, read);
    }
}

#[test]
fn a_set_that_is_built_is_the_one_that_is_added_to() {
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let (keyspace, settings, taste) = (keyspace(0), settings(&mut random), taste(&mut random));
        let texts = texts(&mut random, taste);
        both(&keyspace, &settings, |view, key| {
            let mut set = view.set_or_new(key).expect("nothing else is there");
            if key.bytes() == b"built" {
                assert!(set.build(&items(&texts)));
            } else {
                texts.iter().for_each(|text| assert!(set.insert(text)));
            }
        });
        let read = |view: &mut crate::View<'_>, key: &crate::Key<'_>| {
            let mut all = Vec::new();
            if let Some(set) = view.set(key).expect("a set") {
                set.for_each(&mut |member| all.push(owned(member)));
                assert!(all.iter().all(|member| set.contains(member)));
            }
            all
        };
        same(&keyspace, &settings, false, read);
        for _ in 0..60 {
            let new = text(&mut random, taste);
            let old = texts.get(random.below(texts.len().max(1) as u64) as usize).cloned();
            both(&keyspace, &settings, |view, key| {
                let mut set = view.set_or_new(key).expect("a set");
                set.insert(&new);
                old.iter().for_each(|old| {
                    set.remove(old);
                });
            });
        }
        same(&keyspace, &settings, false, read);
    }
}

#[test]
fn a_sorted_set_that_is_built_is_the_one_that_is_added_to() {
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let (keyspace, settings, taste) = (keyspace(0), settings(&mut random), taste(&mut random));
        let scores = 1 + random.below(1000);
        let mut score = || random.below(scores) as f64 / 4.0 - 20.0;
        let texts: Vec<(f64, Vec<u8>)> =
            texts(&mut Random::new(seed), taste).into_iter().map(|text| (score(), text)).collect();
        both(&keyspace, &settings, |view, key| {
            let mut set = view.zset_or_new(key).expect("nothing else is there");
            if key.bytes() == b"built" {
                let mut entries = entries_of(texts.iter().map(|(score, text)| (*score, text)));
                assert!(set.build(&mut entries));
            } else {
                texts.iter().for_each(|(score, text)| assert_eq!(set.update(text, |_| Some(*score)), None));
            }
        });
        let read = |view: &mut crate::View<'_>, key: &crate::Key<'_>| {
            let mut all = Vec::new();
            if let Some(set) = view.zset(key).expect("a sorted set") {
                set.visit(0, End::Tail, &mut |entry| {
                    let (member, rank) = (entry.member.to_vec(), all.len() as u64);
                    assert_eq!(set.rank(&member), Some((rank, entry.score)));
                    all.push((entry.score.to_bits(), member));
                    ControlFlow::Continue(())
                });
            }
            all
        };
        same(&keyspace, &settings, true, read);
        let mut random = Random::new(seed + 1000);
        for _ in 0..60 {
            let (new, score) = (text(&mut random, taste), random.below(scores) as f64);
            let old =
                texts.get(random.below(texts.len().max(1) as u64) as usize).map(|(_, text)| text.clone());
            both(&keyspace, &settings, |view, key| {
                let mut set = view.zset_or_new(key).expect("a sorted set");
                set.update(&new, |_| Some(score));
                match &old {
                    Some(old) if score > 9.0 => {
                        set.update(old, |_| Some(score));
                    }
                    Some(old) => {
                        set.remove(old);
                    }
                    None => {}
                }
            });
        }
        same(&keyspace, &settings, true, read);
    }
}

#[test]
fn a_hash_that_is_built_is_the_one_that_is_written_to() {
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let (keyspace, settings, taste) = (keyspace(0), settings(&mut random), taste(&mut random));
        let is_timed = random.below(3) == 0;
        let deadline = |random: &mut Random| match random.below(4) {
            0 if is_timed => Deadline::At(Millis(NOW.0 + 1 + random.below(5000) as i64)),
            _ => Deadline::Never,
        };
        let fields: Vec<(Vec<u8>, Vec<u8>, Deadline)> = texts(&mut random, taste)
            .into_iter()
            .map(|field| (field, text(&mut random, taste), deadline(&mut random)))
            .collect();
        both(&keyspace, &settings, |view, key| {
            let mut hash = view.hash_or_new(key).expect("nothing else is there");
            if key.bytes() == b"built" {
                let mut new = Vec::new();
                for (field, value, deadline) in &fields {
                    let (field, value) = (Item::classify(field), Item::classify(value));
                    new.push(NewField { field, value, deadline: *deadline });
                }
                assert!(hash.build(&new));
            } else {
                for (field, value, deadline) in &fields {
                    assert!(hash.set(field, value, lifetime(*deadline)));
                }
            }
        });
        let read = |view: &mut crate::View<'_>, key: &crate::Key<'_>| {
            let mut all = Vec::new();
            if let Some(hash) = view.hash(key).expect("a hash") {
                hash.for_each_timed(&mut |field, value, deadline| {
                    all.push((owned(field), owned(value), format!("{deadline:?}")));
                });
                assert!(all.iter().all(|(field, ..)| hash.get(field).is_some()));
            }
            all
        };
        same(&keyspace, &settings, false, read);
        for _ in 0..60 {
            let (new, value, due) =
                (text(&mut random, taste), text(&mut random, taste), deadline(&mut random));
            let old =
                fields.get(random.below(fields.len().max(1) as u64) as usize).map(|(old, ..)| old.clone());
            both(&keyspace, &settings, |view, key| {
                let mut hash = view.hash_or_new(key).expect("a hash");
                hash.set(&new, &value, lifetime(due));
                old.iter().for_each(|old| {
                    hash.remove(old);
                });
            });
        }
        same(&keyspace, &settings, false, read);
        // Fields fall due under both keys.
        let later = Millis(NOW.0 + 6000);
        let live = ["built", "grown"].map(|key| {
            let timed = with(&keyspace, NOW, key, |view, key| view.hash(key).map(|hash| hash.is_some()));
            assert!(timed.is_ok());
            with(&keyspace, later, key, |view, key| {
                view.hash(key).expect("a hash").map_or(0, |hash| hash.live_len())
            })
        });
        assert_eq!(live[0], live[1]);
    }
}

fn lifetime(deadline: Deadline) -> Lifetime {
    match deadline {
        Deadline::Never => Lifetime::Endless,
        Deadline::At(due) => Lifetime::Until(due),
    }
}

#[test]
fn what_holds_an_element_twice_is_refused_and_leaves_no_key() {
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let (keyspace, settings, taste) = (keyspace(0), settings(&mut random), taste(&mut random));
        let mut texts = texts(&mut random, taste);
        if texts.is_empty() {
            continue;
        }
        let (from, to) = (random.below(texts.len() as u64), random.below(texts.len() as u64 + 1));
        texts.insert(to as usize, texts[from as usize].clone());
        let items = items(&texts);
        let (mut view, key) = keyspace.lock_one(0, NOW, &settings, b"k");
        assert!(!view.set_or_new(&key).expect("nothing is there").build(&items), "{texts:?}");
        let mut entries: Vec<ZEntry<'_>> = items
            .iter()
            .map(|item| ZEntry { score: random.below(9) as f64, member: ZMember::of_item(*item) })
            .collect();
        assert!(!view.zset_or_new(&key).expect("nothing is there").build(&mut entries));
        let fields: Vec<NewField<'_>> = items
            .iter()
            .map(|item| {
                let value =
                    if random.below(2) == 0 { Item::Int(random.below(9) as i64) } else { Item::Bytes(b"v") };
                NewField { field: *item, value, deadline: Deadline::Never }
            })
            .collect();
        assert!(!view.hash_or_new(&key).expect("nothing is there").build(&fields));
        assert!(!view.exists(&key));
    }
}

#[test]
fn what_is_built_takes_no_more_memory_than_what_grew() {
    let mut more = Vec::new();
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let (keyspace, settings, taste) = (keyspace(0), Settings::default(), taste(&mut random));
        let texts: Vec<Vec<u8>> = {
            let mut seen = BTreeSet::new();
            let count = [8, 150, 400, 3000][random.below(4) as usize];
            (0..count).map(|_| text(&mut random, taste)).filter(|text| seen.insert(text.clone())).collect()
        };
        let kind = seed % 4;
        both(&keyspace, &settings, |view, key| {
            let (items, is_built) = (items(&texts), key.bytes() == b"built");
            match kind {
                0 => {
                    let mut set = view.set_or_new(key).expect("new");
                    match is_built {
                        true => assert!(set.build(&items)),
                        false => texts.iter().for_each(|text| {
                            set.insert(text);
                        }),
                    }
                }
                1 => {
                    let mut set = view.zset_or_new(key).expect("new");
                    let mut entries = entries_of((0..).map(f64::from).zip(&texts));
                    match is_built {
                        true => assert!(set.build(&mut entries)),
                        false => (0..).zip(&texts).for_each(|(at, text)| {
                            set.update(text, |_| Some(f64::from(at)));
                        }),
                    }
                }
                2 => {
                    let mut hash = view.hash_or_new(key).expect("new");
                    match is_built {
                        true => {
                            let new = NewField {
                                field: Item::Int(0),
                                value: Item::Int(7),
                                deadline: Deadline::Never,
                            };
                            let fields: Vec<NewField<'_>> =
                                items.iter().map(|item| NewField { field: *item, ..new }).collect();
                            assert!(hash.build(&fields));
                        }
                        false => texts.iter().for_each(|text| {
                            hash.set(text, b"7", Lifetime::Endless);
                        }),
                    }
                }
                _ => {
                    let mut list = view.list_or_new(key).expect("new");
                    match is_built {
                        true => list.append(&items),
                        false => texts.iter().for_each(|text| list.push(End::Tail, text)),
                    }
                }
            }
        });
        let bytes = ["built", "grown"].map(|key| {
            with(&keyspace, NOW, key, |view, key| view.info(key)).map_or(0, |info| info.memory_bytes)
        });
        // Smaller leaves of clumped integers may be a little tighter than full ones.
        if bytes[0] > bytes[1] + bytes[1] / 12 {
            more.push((seed, kind, texts.len(), taste.ints, taste.text_bytes, bytes));
        }
    }
    assert!(more.is_empty(), "{more:?}");
}

/// So many texts, behind some integers or before them, and the first texts again.
fn some_twice(count: u32, repeated: u32) -> Vec<Vec<u8>> {
    let text = |n: u32| format!("element {n}").into_bytes();
    let ints = |n: u32| (0..n).map(|n| (n * 7 % 1000).to_string().into_bytes());
    let (before, behind) = if count.is_multiple_of(2) { (count / 9 * 2, 0) } else { (0, count / 9) };
    ints(before.min(900))
        .chain((0..count).map(text))
        .chain(ints(behind.min(900)))
        .chain((0..repeated).map(text))
        .collect()
}

/// In most cases limits below what the sets, or their integers, come to.
fn sometimes_narrow(count: u32) -> Settings {
    let mut settings = Settings::default();
    if !count.is_multiple_of(3) {
        (settings.set.intset_entries, settings.set.listpack_entries) = (3, [200, 40][count as usize % 2]);
    }
    settings
}

/// SADD, ZADD and HSET: what is laid out at once and what follows one by one are what all would have been one
/// by one, with elements that are there twice, and on top of what is there.
#[test]
fn what_a_command_brings_at_once_is_what_it_brings_one_by_one() {
    for (count, repeated, before) in [
        (7, 0, 0),
        (8, 0, 0),
        (8, 1, 0),
        (40, 0, 0),
        (64, 1, 0),
        (130, 0, 0),
        (600, 0, 0),
        (600, 0, 3),
        (65_600, 0, 0),
        (65_600, 1, 0),
    ] {
        let (keyspace, settings) = (keyspace(0), sometimes_narrow(count));
        let texts = some_twice(count, repeated);
        let words: Vec<&[u8]> = texts.iter().flat_map(|text| [&text[..], b"value"]).collect();
        let is_built = texts.len() >= 8 && before == 0 && repeated == 0;
        both(&keyspace, &settings, |view, key| {
            let mut set = view.set_or_new(key).expect("a set");
            (0..before).for_each(|n| assert!(set.insert(&[b'a' + n])));
            set.announce(texts.len() as u64);
            let members = texts.iter().map(Vec::as_slice);
            let built = if key.bytes() == b"built" { set.build_new(members) } else { 0 };
            assert!((built > 0) == (is_built && key.bytes() == b"built") || repeated > 0);
            texts[built..].iter().for_each(|text| {
                set.insert(text);
            });
        });
        same(&keyspace, &settings, false, |view, key| {
            let mut all = Vec::new();
            view.set(key).expect("a set").expect("there").for_each(&mut |member| all.push(owned(member)));
            all
        });
        both(&keyspace, &settings, |view, key| {
            view.remove(key);
            let mut set = view.zset_or_new(key).expect("a sorted set");
            (0..before).for_each(|n| assert!(set.update(&[b'a' + n], |_| Some(1.0)).is_none()));
            set.announce(texts.len() as u64, texts[0].len());
            let scored = || (0..texts.len()).map(|n| ((n * 7 % 100) as f64, &texts[n][..]));
            let built = if key.bytes() == b"built" { set.build_new(scored()) } else { 0 };
            scored().skip(built).for_each(|(score, member)| {
                set.update(member, |_| Some(score));
            });
        });
        same(&keyspace, &settings, true, |view, key| {
            let mut all = Vec::new();
            view.zset(key).expect("a sorted set").expect("there").visit(0, End::Head, &mut |entry| {
                all.push((entry.member.to_vec(), entry.score as u64));
                ControlFlow::Continue(())
            });
            all
        });
        both(&keyspace, &settings, |view, key| {
            view.remove(key);
            let mut hash = view.hash_or_new(key).expect("a hash");
            (0..before).for_each(|n| assert!(hash.set(&[b'a' + n], b"v", Lifetime::Endless)));
            hash.announce(texts.len() as u64);
            let built = if key.bytes() == b"built" { hash.build_new(words.iter().copied()) } else { 0 };
            texts[built..].iter().for_each(|text| {
                hash.set(text, b"value", Lifetime::Endless);
            });
        });
        same(&keyspace, &settings, false, |view, key| {
            let mut all = Vec::new();
            let hash = view.hash(key).expect("a hash").expect("there");
            hash.for_each(&mut |field, value| all.push((owned(field), owned(value))));
            all
        });
    }
}
