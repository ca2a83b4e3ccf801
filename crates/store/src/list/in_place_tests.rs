//! Lists of a few elements of some hundred bytes, pushed and popped one element a command, beside snapshots.
use crate::keyspace::tests::{NOW, each_frozen, keyspace, text_of, with};
use crate::{Deadline, End, Keyspace, List, Policy};
use base::Millis;
use base::random::Random;
use std::collections::VecDeque;
use std::ops::ControlFlow;

type Texts = VecDeque<Vec<u8>>;

fn texts_of(list: &List<'_>) -> Texts {
    let mut texts = Texts::new();
    list.visit(0, End::Tail, &mut |_, item| {
        texts.push_back(text_of(item));
        ControlFlow::Continue(())
    });
    texts
}

fn read(keyspace: &Keyspace, key: &str) -> Texts {
    with(keyspace, NOW, key, |view, key| {
        view.list(key).expect("a list").map_or_else(Texts::new, |list| texts_of(&list))
    })
}

/// A text of 20 to 400 bytes, or an integer.
fn text(random: &mut Random) -> Vec<u8> {
    match random.below(8) {
        0 => random.below(100_000).to_string().into_bytes(),
        _ => vec![b'a' + random.below(26) as u8; 20 + random.below(380) as usize],
    }
}

/// One command at the ends of a list, and of its twin. Sometimes it edits more than once.
fn step(keyspace: &Keyspace, key: &str, twin: &mut Texts, random: &mut Random) {
    let (end, text, is_short) =
        (if random.below(2) == 0 { End::Head } else { End::Tail }, text(random), twin.len() < 3);
    with(keyspace, NOW, key, |view, key| {
        let mut list = view.list_or_new(key).expect("a list");
        for _ in 0..1 + random.below(4) / 3 {
            match random.below(if is_short { 3 } else { 8 }) {
                0..=2 => {
                    list.push(end, &text);
                    if end == End::Head {
                        twin.push_front(text.clone())
                    } else {
                        twin.push_back(text.clone())
                    }
                }
                3 | 4 => {
                    let taken = list.pop(end, text_of);
                    assert_eq!(taken, if end == End::Head { twin.pop_front() } else { twin.pop_back() });
                }
                5 | 6 => {
                    let count = random.below(5).min(twin.len() as u64);
                    let mut taken = Texts::new();
                    list.pop_many(end, count, &mut |item| {
                        taken.push_back(text_of(item));
                    });
                    let mut expected = Texts::new();
                    let mut pop = || if end == End::Head { twin.pop_front() } else { twin.pop_back() };
                    expected.extend((0..count).filter_map(|_| pop()));
                    assert_eq!(taken, expected);
                }
                _ => {
                    let (len, count) = (twin.len() as u64, random.below(3).min(twin.len() as u64));
                    let from = if end == End::Head { 0 } else { len - count };
                    list.remove(from, count);
                    twin.drain(from as usize..(from + count) as usize);
                }
            }
            assert_eq!(list.len(), twin.len() as u64);
        }
    });
}

#[test]
fn pushes_and_pops_at_the_ends_show_in_no_snapshot_and_keep_the_deadline() {
    let deadline = Millis(NOW.0 + 1_000);
    for seed in 0..60 {
        let (keyspace, mut random) = (keyspace(0), Random::new(seed));
        let (mut twin, mut snapshots) = (Texts::new(), Vec::new());
        for _ in 0..80 {
            step(&keyspace, "queue", &mut twin, &mut random);
            assert_eq!(read(&keyspace, "queue"), twin, "seed {seed}");
            with(&keyspace, NOW, "queue", |view, key| view.set_deadline(key, Deadline::At(deadline)));
            if random.below(6) == 0 {
                snapshots.push((keyspace.freeze(NOW, Policy::NoEviction), twin.clone()));
            }
        }
        for (frozen, twin) in snapshots {
            let mut seen = Texts::new();
            each_frozen(frozen, |entry| {
                seen = texts_of(&entry.value.list().expect("a list"));
            });
            assert_eq!(seen, twin, "seed {seed}");
        }
        let left = with(&keyspace, deadline, "queue", |view, key| view.list(key).expect("none").is_some());
        assert!(!left, "seed {seed}: the deadline is kept");
    }
}

/// What tells an edit where the image lies from one by a draft: the block stays where it is.
#[test]
fn an_element_of_a_list_that_lies_apart_comes_and_goes_where_it_lies() {
    let keyspace = keyspace(0);
    let address = || {
        with(&keyspace, NOW, "queue", |view, key| {
            let list = view.list(key).expect("a list").expect("it is there");
            list.get(0, |item| match item {
                base::Item::Bytes(text) => text.as_ptr().addr(),
                base::Item::Int(_) => 0,
            })
        })
    };
    let push = |len: usize| {
        with(&keyspace, NOW, "queue", |view, key| {
            view.list_or_new(key).expect("a list").push(End::Tail, &vec![b'x'; len]);
        });
    };
    (0..4).for_each(|_| push(300));
    push(40);
    let before = address();
    for _ in 0..100 {
        let len = with(&keyspace, NOW, "queue", |view, key| {
            let mut list = view.list_mut(key).expect("a list").expect("it is there");
            list.pop(End::Tail, |_| ());
            assert!(list.image().is_some(), "it was not opened");
            list.len()
        });
        assert_eq!(len, 4);
        push(40);
        assert_eq!(address(), before);
    }
}
