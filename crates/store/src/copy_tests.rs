//! Copies of values: what they share with their source, that later writes to one do not show in the other,
//! and who frees what.
use crate::keyspace::tests::{NOW, keyspace, set, with};
use crate::{Deadline, End, Expiry, Key, Keyspace, Settings, View};
use base::random::Random;
use base::{Item, Millis};
use std::collections::VecDeque;
use std::ops::ControlFlow;

#[test]
fn a_copy_lies_where_its_source_does_until_one_of_them_is_written() {
    let (keyspace, settings) = (keyspace(4), Settings::default());
    let text = "x".repeat(3000);
    set(&keyspace, "a", &text, Expiry::At(Millis(NOW.0 + 500)));
    let (mut view, keys) = keyspace.lock_named(0, NOW, &settings, &[b"a", b"b"]);
    let copies = [keys[1], keys[1].in_db(9)];
    for key in &copies {
        let value = view.copy(&keys[0]).expect("it is there");
        view.put_taken(key, value);
    }
    let mut address = |key: &Key<'_>| match view.string(key) {
        Ok(Some(Item::Bytes(bytes))) => bytes.as_ptr_range(),
        other => panic!("{other:?}"),
    };
    assert!(copies.iter().all(|key| address(key) == address(&keys[0])));
    view.append(&copies[0], b"y").expect("a string");
    view.remove(&keys[0]);
    let mut read = |key: Key<'_>| view.string(&key).expect("a string").map(|item| item.len());
    assert_eq!([keys[0], copies[0], copies[1]].map(&mut read), [None, Some(3001), Some(3000)]);
    assert_eq!(view.deadline(&copies[1]), Some(Deadline::At(Millis(NOW.0 + 500))));
    drop(view);
    assert_eq!((keyspace.volatile(0, NOW), keyspace.volatile(9, NOW)), ((1, 500), (1, 500)));
}

#[test]
fn what_a_copy_still_holds_is_no_garbage_and_the_last_owner_leaves_it() {
    let keyspace = keyspace(0);
    set(&keyspace, "text", &"x".repeat(6 << 20), Expiry::Clear);
    let settings = Settings::default();
    let (mut view, keys) = keyspace.lock_named(0, NOW, &settings, &[b"text", b"copy"]);
    let value = view.copy(&keys[0]).expect("it is there");
    view.put_taken(&keys[1], value);
    assert!(view.remove(&keys[0]) && view.take_garbage().is_empty());
    assert!(view.remove(&keys[1]) && view.take_garbage().len() == 1);
}

#[test]
fn what_was_kept_of_a_large_value_is_garbage_only_where_the_value_is_gone() {
    let (keyspace, settings) = (keyspace(4), Settings::default());
    let (mut view, keys) = keyspace.lock_named(0, NOW, &settings, &[b"list"]);
    for text in elements(200_000) {
        view.list_or_new(&keys[0]).expect("a list").push(End::Tail, &text);
    }
    let mut keep = |change: &dyn Fn(&mut View<'_>)| {
        let kept = view.keep(&keys[0], &mut Vec::new()).expect("no string").expect("it is there");
        change(&mut view);
        let garbage = kept.into_garbage();
        pack::end_keeping();
        garbage.is_some()
    };
    let set = |view: &mut View<'_>| view.list_or_new(&keys[0]).expect("a list").set(100_000, b"x");
    assert!(!keep(&|_| {}) && !keep(&set) && !keep(&set));
    assert!(keep(&|view| assert!(view.remove(&keys[0]))));
}

/// Copies `from` over `to`.
fn copy(keyspace: &Keyspace, from: &str, to: &str) {
    let settings = Settings::default();
    let (mut view, keys) = keyspace.lock_named(0, NOW, &settings, &[from.as_bytes(), to.as_bytes()]);
    let value = view.copy(&keys[0]).expect("it is there");
    view.put_taken(&keys[1], value);
}

/// A long list of texts and numbers.
fn elements(count: u64) -> VecDeque<Vec<u8>> {
    let text = |n: u64| if n.is_multiple_of(3) { format!("element {n}") } else { (n * 7919).to_string() };
    (0..count).map(|n| text(n).into_bytes()).collect()
}

fn content(keyspace: &Keyspace, key: &str) -> VecDeque<Vec<u8>> {
    with(keyspace, NOW, key, |view, key| {
        let mut all = VecDeque::new();
        let list = view.list(key).expect("a list").expect("it is there");
        list.visit(0, End::Tail, &mut |_, item| {
            let mut text = Vec::new();
            item.append_to(&mut text);
            all.push_back(text);
            ControlFlow::Continue(())
        });
        all
    })
}

/// One random edit of the list and of its twin.
fn edit(keyspace: &Keyspace, key: &str, twin: &mut VecDeque<Vec<u8>>, random: &mut Random) {
    let (index, len) = (random.below(twin.len() as u64), twin.len() as u64);
    let text = random.below(1 << 20).to_string().into_bytes();
    with(keyspace, NOW, key, |view, key| {
        let mut list = view.list_or_new(key).expect("a list");
        assert_eq!(list.len(), len);
        match random.below(6) {
            0 => {
                list.push(End::Head, &text);
                twin.push_front(text);
            }
            1 => {
                list.push(End::Tail, &text);
                twin.push_back(text);
            }
            2 => {
                list.set(index, &text);
                twin[index as usize] = text;
            }
            3 => {
                list.insert(index, &text);
                twin.insert(index as usize, text);
            }
            4 if len > 1 => {
                list.pop(End::Head, |_| ());
                twin.pop_front();
            }
            _ if len > 10 => {
                let count = random.below((len - index).min(8)) + 1;
                list.remove(index, count);
                drop(twin.drain(index as usize..(index + count) as usize));
            }
            _ => {}
        }
    });
}

#[test]
fn copies_of_one_long_list_are_edited_by_several_threads_and_none_sees_the_others() {
    const THREADS: u64 = 4;
    let keyspace = keyspace(4);
    let source = elements(20_000);
    with(&keyspace, NOW, "source", |view, key| {
        let mut list = view.list_or_new(key).expect("a list");
        source.iter().for_each(|text| list.push(End::Tail, text));
    });
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (keyspace, source) = (&keyspace, &source);
            scope.spawn(move || {
                let (name, mut random) = (format!("copy:{thread}"), Random::new(thread));
                for round in 0..6 {
                    copy(keyspace, "source", &name);
                    let mut twin = source.clone();
                    (0..300).for_each(|_| edit(keyspace, &name, &mut twin, &mut random));
                    assert!(content(keyspace, &name) == twin, "thread {thread}, round {round}");
                }
            });
        }
    });
    assert!(content(&keyspace, "source") == source);
}

#[test]
fn a_copy_of_a_copy_outlives_both_and_the_source_can_be_edited_first() {
    for count in [5, 100, 5_000] {
        let (keyspace, mut random) = (keyspace(2), Random::new(count));
        let mut source = elements(count);
        with(&keyspace, NOW, "a", |view, key| {
            let mut list = view.list_or_new(key).expect("a list");
            source.iter().for_each(|text| list.push(End::Tail, text));
        });
        let copied = source.clone();
        copy(&keyspace, "a", "b");
        copy(&keyspace, "b", "c");
        (0..200).for_each(|_| edit(&keyspace, "a", &mut source, &mut random));
        for key in ["a", "b"] {
            with(&keyspace, NOW, key, |view, key| assert!(view.remove(key)));
        }
        assert!(content(&keyspace, "c") == copied, "{count} elements");
    }
}

#[test]
fn what_a_value_is_moved_over_is_freed_in_the_background_where_it_is_large() {
    let keyspace = keyspace(0);
    set(&keyspace, "large", &"x".repeat(6 << 20), Expiry::Clear);
    set(&keyspace, "small", "v", Expiry::Clear);
    let settings = Settings::default();
    let (mut view, keys) = keyspace.lock_named(0, NOW, &settings, &[b"small", b"large"]);
    let value = view.take(&keys[0]).expect("it is there");
    view.put_taken(&keys[1], value);
    assert_eq!(view.take_garbage().len(), 1);
    assert_eq!(view.string(&keys[1]), Ok(Some(Item::Bytes(b"v"))));
}
