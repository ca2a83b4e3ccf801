//! The life cycle of edited collections, the same questions to every type: what a panic leaves, what an empty
//! one leaves, both directions within one edit, what deadlines, copies and sums over deadlines come to.
use crate::entry::Meta;
use crate::keyspace::tests::{NOW, keyspace, set};
use crate::{
    Deadline, End, Expiry, HashMut, Id, Key, Keyspace, Kind, Lifetime, ListMut, SetMut, Settings, View,
    ZSetMut,
};
use base::{Item, Millis};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

const KINDS: [Kind; 4] = [Kind::List, Kind::Hash, Kind::Set, Kind::ZSet];
const LATER: Deadline = Deadline::At(Millis(NOW.0 + 5_000));
/// Inside the entry, and outside.
const LENGTHS: [u64; 2] = [3, 1_000];

enum Edited<'v> {
    List(ListMut<'v>),
    Hash(HashMut<'v>),
    Set(SetMut<'v>),
    ZSet(ZSetMut<'v>),
}

fn element(n: u64) -> String {
    format!("element:{n}")
}

impl<'v> Edited<'v> {
    fn open(view: &'v mut View<'_>, key: &Key<'v>, kind: Kind) -> Edited<'v> {
        match kind {
            Kind::List => Edited::List(view.list_or_new(key).expect("a list")),
            Kind::Hash => Edited::Hash(view.hash_or_new(key).expect("a hash")),
            Kind::Set => Edited::Set(view.set_or_new(key).expect("a set")),
            _ => Edited::ZSet(view.zset_or_new(key).expect("a sorted set")),
        }
    }

    /// Element `n` comes, behind those with smaller numbers.
    fn add(&mut self, n: u64) {
        let name = element(n);
        let text = name.as_bytes();
        match self {
            Edited::List(list) => list.push(End::Tail, text),
            Edited::Hash(hash) => drop(hash.set(text, b"value", Lifetime::Endless)),
            Edited::Set(set) => drop(set.insert(text)),
            Edited::ZSet(set) => drop(set.update(text, |_| Some(n as f64))),
        }
    }

    /// Element `n` goes, which of a list is the last.
    fn remove(&mut self, n: u64) {
        let name = element(n);
        let text = name.as_bytes();
        match self {
            Edited::List(list) => assert_eq!(list.pop(End::Tail, |item| item.len()), Some(text.len())),
            Edited::Hash(hash) => assert!(hash.remove(text)),
            Edited::Set(set) => assert!(set.remove(text)),
            Edited::ZSet(set) => assert_eq!(set.remove(text), Some(n as f64)),
        }
    }
}

fn fill(view: &mut View<'_>, key: &Key<'_>, kind: Kind, len: u64) {
    let mut edited = Edited::open(view, key, kind);
    (0..len).for_each(|n| edited.add(n));
}

/// All elements, sorted.
fn content(view: &mut View<'_>, key: &Key<'_>, kind: Kind) -> Vec<String> {
    let mut all = Vec::new();
    let mut add = |item: Item<'_>| {
        let mut text = Vec::new();
        item.append_to(&mut text);
        all.push(String::from_utf8(text).expect("as it was written"));
    };
    match kind {
        Kind::List => {
            if let Some(list) = view.list(key).expect("a list") {
                list.visit(0, End::Tail, &mut |_, item| {
                    add(item);
                    ControlFlow::Continue(())
                });
            }
        }
        Kind::Hash => {
            if let Some(hash) = view.hash(key).expect("a hash") {
                hash.for_each(&mut |field, _| add(field));
            }
        }
        Kind::Set => {
            if let Some(set) = view.set(key).expect("a set") {
                set.for_each(&mut add);
            }
        }
        _ => {
            if let Some(set) = view.zset(key).expect("a sorted set") {
                set.visit(0, End::Tail, &mut |entry| {
                    add(Item::Bytes(&entry.member.to_vec()));
                    ControlFlow::Continue(())
                });
            }
        }
    }
    all.sort();
    all
}

fn elements(numbers: impl Iterator<Item = u64>) -> Vec<String> {
    let mut all: Vec<String> = numbers.map(element).collect();
    all.sort();
    all
}

fn is_outside(view: &mut View<'_>, key: &Key<'_>) -> bool {
    view.look(key).is_some_and(|found| Meta(found.meta).shape().is_outside())
}

/// Calls `act` with a view of the keys `k` and `copy`.
fn on<R>(keyspace: &Keyspace, now: Millis, act: impl FnOnce(&mut View<'_>, &Key<'_>, &Key<'_>) -> R) -> R {
    let settings = Settings::default();
    let (mut view, keys) = keyspace.lock_named(0, now, &settings, &[b"k", b"copy"]);
    act(&mut view, &keys[0], &keys[1])
}

/// Adds an element, removes one, and panics. The view outlives it, as it does not in a server.
fn panic_half_way(view: &mut View<'_>, key: &Key<'_>, kind: Kind, len: u64) {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut edited = Edited::open(view, key, kind);
        edited.add(len);
        edited.remove(len);
        edited.add(len + 1);
        panic!("half-way, as the test wants it");
    }));
    assert!(outcome.is_err());
}

#[test]
fn a_panic_half_way_leaves_an_entry_as_it_was() {
    for kind in KINDS {
        on(&keyspace(0), NOW, |view, key, _| {
            panic_half_way(view, key, kind, 0);
            assert!(!view.exists(key), "{kind:?}: nothing was there");
            fill(view, key, kind, 3);
            view.set_deadline(key, LATER);
            panic_half_way(view, key, kind, 3);
            assert_eq!(content(view, key, kind), elements(0..3), "{kind:?}");
            assert_eq!(view.deadline(key), Some(LATER));
        });
    }
}

#[test]
fn a_panic_on_the_way_out_of_an_entry_leaves_it_as_it_was() {
    for kind in KINDS {
        on(&keyspace(0), NOW, |view, key, _| {
            fill(view, key, kind, 3);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let mut edited = Edited::open(view, key, kind);
                (3..1_000).for_each(|n| edited.add(n));
                panic!("half-way, as the test wants it");
            }));
            assert!(outcome.is_err());
            assert_eq!(content(view, key, kind), elements(0..3), "{kind:?}");
            fill(view, key, kind, 3);
        });
    }
}

#[test]
fn a_panic_after_the_last_element_went_leaves_no_empty_collection() {
    for kind in KINDS {
        let keyspace = keyspace(0);
        on(&keyspace, NOW, |view, key, _| {
            fill(view, key, kind, 1_000);
            view.set_deadline(key, LATER);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let mut edited = Edited::open(view, key, kind);
                (0..1_000).rev().for_each(|n| edited.remove(n));
                panic!("half-way, as the test wants it");
            }));
            assert!(outcome.is_err());
            assert!(!view.exists(key), "{kind:?}");
        });
        assert_eq!((keyspace.len(0), keyspace.volatile(0, NOW)), (0, (0, 0)), "{kind:?}");
    }
}

#[test]
fn nothing_is_left_of_an_overdue_value_where_a_new_collection_does_not_come_to_be() {
    for kind in KINDS {
        let keyspace = keyspace(0);
        set(&keyspace, "k", "old", Expiry::At(Millis(NOW.0 + 1)));
        on(&keyspace, Millis(NOW.0 + 1), |view, key, _| {
            drop(Edited::open(view, key, kind));
            assert!(!view.exists(key), "{kind:?}");
        });
        set(&keyspace, "k", "old", Expiry::At(Millis(NOW.0 + 1)));
        on(&keyspace, Millis(NOW.0 + 1), |view, key, _| {
            panic_half_way(view, key, kind, 0);
            assert!(!view.exists(key), "{kind:?}");
        });
        assert_eq!((keyspace.len(0), keyspace.volatile(0, NOW)), (0, (0, 0)), "{kind:?}");
    }
}

#[test]
fn a_stream_that_is_given_up_leaves_nothing_of_an_overdue_value() {
    let keyspace = keyspace(0);
    set(&keyspace, "k", "old", Expiry::At(Millis(NOW.0 + 1)));
    on(&keyspace, Millis(NOW.0 + 1), |view, key, _| {
        view.stream_or_new(key).expect("nothing is there").give_up();
        assert!(!view.exists(key));
    });
    assert_eq!(keyspace.len(0), 0);
    on(&keyspace, NOW, |view, key, _| {
        let mut stream = view.stream_or_new(key).expect("nothing is there");
        assert!(stream.create_group(b"group", Id::MIN, None));
        drop(stream);
        view.stream_or_new(key).expect("a stream").give_up();
        assert_eq!(view.stream(key).expect("a stream").map(|stream| stream.groups().len()), Some(1));
    });
}

#[test]
fn a_collection_that_loses_its_last_element_takes_its_key_along() {
    for (kind, len) in KINDS.into_iter().flat_map(|kind| LENGTHS.map(|len| (kind, len))) {
        let keyspace = keyspace(0);
        on(&keyspace, NOW, |view, key, _| {
            fill(view, key, kind, len);
            view.set_deadline(key, LATER);
            assert_eq!(is_outside(view, key), len > 100, "{kind:?}");
            let mut edited = Edited::open(view, key, kind);
            (0..len).rev().for_each(|n| edited.remove(n));
            drop(edited);
            assert!(!view.exists(key), "{kind:?} of {len}");
        });
        assert_eq!((keyspace.len(0), keyspace.volatile(0, NOW)), (0, (0, 0)), "{kind:?} of {len}");
    }
}

#[test]
fn a_collection_may_leave_its_entry_and_return_within_one_edit_and_copies_do_not_see_it() {
    for (kind, len) in KINDS.into_iter().flat_map(|kind| LENGTHS.map(|len| (kind, len))) {
        let keyspace = keyspace(0);
        on(&keyspace, NOW, |view, key, copy| {
            fill(view, key, kind, len);
            view.set_deadline(key, LATER);
            let taken = view.copy(key).expect("it is there");
            view.put_taken(copy, taken);
            let mut edited = Edited::open(view, key, kind);
            (len..len + 500).for_each(|n| edited.add(n));
            (2..len + 500).rev().for_each(|n| edited.remove(n));
            drop(edited);
            assert_eq!(content(view, key, kind), elements(0..2), "{kind:?} of {len}");
            assert_eq!(content(view, copy, kind), elements(0..len), "{kind:?} of {len}");
            assert!(!is_outside(view, key), "{kind:?} of {len}");
            assert_eq!([view.deadline(key), view.deadline(copy)], [Some(LATER); 2]);
        });
        assert_eq!(keyspace.volatile(0, NOW), (2, 5_000), "{kind:?} of {len}");
    }
}

#[test]
fn hashes_with_deadlines_are_counted_through_every_turn_of_their_life() {
    let keyspace = keyspace(0);
    let hashes = || keyspace.timed_hashes(0);
    let until = Lifetime::Until(Millis(NOW.0 + 700));
    on(&keyspace, NOW, |view, key, _| {
        view.hash_or_new(key).expect("a hash").set(b"timed", b"v", until);
    });
    assert_eq!(hashes(), 1, "inside");
    on(&keyspace, NOW, |view, key, _| fill(view, key, Kind::Hash, 1_000));
    assert_eq!(hashes(), 1, "outside");
    on(&keyspace, NOW, |view, key, _| {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut hash = view.hash_or_new(key).expect("a hash");
            hash.set_deadline(b"timed", Deadline::Never);
            panic!("half-way, as the test wants it");
        }));
        assert!(outcome.is_err());
    });
    assert_eq!(hashes(), 0, "what was edited where it lies counts as it is");
    on(&keyspace, NOW, |view, key, _| {
        let mut hash = view.hash_or_new(key).expect("a hash");
        hash.set_deadline(b"timed", LATER);
        (1..1_000).for_each(|n| assert!(hash.remove(element(n).as_bytes())));
    });
    assert_eq!(hashes(), 1, "inside again");
    let mut garbage = Vec::new();
    while keyspace
        .expire(Millis(NOW.0 + 5_000), 1_000, &mut garbage)
        .is_some_and(|due| due.0 <= NOW.0 + 5_000)
    {}
    assert_eq!(hashes(), 0, "the field went by itself");
    on(&keyspace, NOW, |view, key, _| assert_eq!(content(view, key, Kind::Hash), elements(0..1)));
}
