//! Strings and lists as commands see them: what they are called, where they lie, and what an edit leaves.
use crate::keyspace::tests::{NOW, each_frozen, keyspace, set, text_of, with};
use crate::{
    AddError, Deadline, EditError, End, Expiry, Fill, Form, Growth, KeyInfo, Keyspace, Kind, LookUp, Policy,
    Settings, WrongType,
};
use base::{Item, Millis};

fn info(keyspace: &Keyspace, key: &str) -> KeyInfo {
    with(keyspace, NOW, key, |view, key| view.info(key)).expect("the key is there")
}

fn encoding_of(value: &str, form: Form) -> &'static str {
    let keyspace = keyspace(0);
    with(&keyspace, NOW, "k", |view, key| view.put_string(key, value.as_bytes(), form, Expiry::Clear));
    info(&keyspace, "k").encoding
}

#[test]
fn a_string_goes_by_the_name_that_redis_gives_it() {
    let (short, long) = ("x".repeat(44), "x".repeat(45));
    let cases = [
        ("1", "int"),
        ("-9223372036854775808", "int"),
        ("9223372036854775808", "embstr"),
        ("007", "embstr"),
        ("3.5", "embstr"),
        ("", "embstr"),
        (&short[..], "embstr"),
        (&long[..], "raw"),
    ];
    for (value, name) in cases {
        assert_eq!(encoding_of(value, Form::Auto), name, "{value:?}");
        let as_text = if name == "int" { "embstr" } else { name };
        assert_eq!(encoding_of(value, Form::Text), as_text, "{value:?}");
        assert_eq!(encoding_of(value, Form::Raw), "raw", "{value:?}");
    }
    assert_eq!(encoding_of(&"x".repeat(5000), Form::Auto), "raw");
}

#[test]
fn append_and_set_range_make_a_string_raw_and_incr_makes_it_int_again() {
    let keyspace = keyspace(0);
    with(&keyspace, NOW, "k", |view, key| {
        assert_eq!(view.append(key, b"12"), Ok(2));
        assert_eq!(view.info(key).map(|info| info.encoding), Some("int"), "created by APPEND");
        assert_eq!(view.append(key, b"3"), Ok(3));
        assert_eq!(view.info(key).map(|info| info.encoding), Some("raw"));
        assert_eq!(view.string(key), Ok(Some(Item::Int(123))));
        assert_eq!(view.add(key, 1), Ok(124));
        assert_eq!(view.info(key).map(|info| info.encoding), Some("int"));
    });
    with(&keyspace, NOW, "r", |view, key| {
        assert_eq!(view.set_range(key, 3, b"x"), Ok(4));
        assert_eq!(view.string(key), Ok(Some(Item::Bytes(b"\0\0\0x"))));
        assert_eq!(view.info(key).map(|info| info.encoding), Some("raw"));
    });
}

#[test]
fn add_refuses_what_is_no_number_and_keeps_the_deadline() {
    let keyspace = keyspace(0);
    set(&keyspace, "n", "10", Expiry::At(Millis(NOW.0 + 5)));
    set(&keyspace, "spaced", " 1", Expiry::Clear);
    set(&keyspace, "zeros", "01", Expiry::Clear);
    set(&keyspace, "long", &"1".repeat(2000), Expiry::Clear);
    let add = |key, delta| with(&keyspace, NOW, key, |view, key| view.add(key, delta));
    assert_eq!(add("n", -300), Ok(-290));
    assert_eq!(with(&keyspace, NOW, "n", |v, k| v.deadline(k)), Some(Deadline::At(Millis(NOW.0 + 5))));
    for key in ["spaced", "zeros", "long"] {
        assert_eq!(add(key, 1), Err(AddError::NotAnInteger), "{key}");
    }
    with(&keyspace, NOW, "list", |view, key| view.list_or_new(key).expect("new").push(End::Head, b"1"));
    assert_eq!(add("list", 1), Err(AddError::WrongType));
    assert_eq!(with(&keyspace, Millis(NOW.0 + 5), "n", |v, k| v.add(k, 7)), Ok(7), "it had expired");
    assert_eq!(with(&keyspace, NOW, "n", |v, k| v.deadline(k)), Some(Deadline::Never));
}

#[test]
fn the_deadline_is_kept_cleared_or_set_as_the_write_says() {
    let keyspace = keyspace(0);
    let at = |ms| Millis(NOW.0 + ms);
    let deadline = || with(&keyspace, NOW, "k", |view, key| view.deadline(key));
    set(&keyspace, "k", "1", Expiry::At(at(100)));
    set(&keyspace, "k", "a longer value", Expiry::Keep);
    assert_eq!(deadline(), Some(Deadline::At(at(100))));
    set(&keyspace, "k", "v", Expiry::At(Millis(i64::MAX)));
    assert_eq!(deadline(), Some(Deadline::At(Millis(i64::MAX))));
    set(&keyspace, "k", "v", Expiry::Clear);
    assert_eq!(deadline(), Some(Deadline::Never));
    assert!(with(&keyspace, NOW, "k", |view, key| view.set_deadline(key, Deadline::At(at(7)))));
    assert_eq!(deadline(), Some(Deadline::At(at(7))));
    assert!(with(&keyspace, NOW, "k", |v, k| v.string(k) == Ok(Some(Item::Bytes(b"v")))));
    assert!(with(&keyspace, NOW, "k", |view, key| view.set_deadline(key, Deadline::At(NOW))));
    assert_eq!(deadline(), None, "a deadline that has passed removes the key");
    assert!(!with(&keyspace, NOW, "k", |view, key| view.set_deadline(key, Deadline::Never)));
}

#[test]
fn strings_move_outside_their_entry_and_back_with_their_length() {
    let keyspace = keyspace(0);
    set(&keyspace, "k", &"x".repeat(2048), Expiry::Clear);
    let inside = info(&keyspace, "k");
    assert!(inside.is_inline && (2048 + 20..2048 + 700).contains(&inside.memory_bytes), "{inside:?}");
    with(&keyspace, NOW, "k", |view, key| view.append(key, b"y").expect("a string"));
    let outside = info(&keyspace, "k");
    assert!(!outside.is_inline && outside.len == 2049 && outside.memory_bytes >= 2049 + 24);
    assert_eq!(outside.stats.outside.nodes, 1);
    set(&keyspace, "k", "short", Expiry::Clear);
    assert!(info(&keyspace, "k").is_inline);
}

#[test]
fn a_byte_far_out_is_set_without_copying_what_is_before_it() {
    let keyspace = keyspace(0);
    let set = |last: u64| {
        with(&keyspace, NOW, "k", |view, key| {
            let edit = |bytes: &mut [u8], growth| {
                bytes[last as usize] = 1;
                (bytes.as_ptr() as usize, bytes.len() as u64, growth)
            };
            view.edit_bytes(key, last + 1, edit).expect("a string")
        })
    };
    let (address, len, growth) = set(1 << 20);
    assert_eq!((len, growth), ((1 << 20) + 1, Growth::Longer));
    assert_eq!(set(7), (address, len, Growth::None));
    assert_eq!(info(&keyspace, "k").encoding, "raw");
    let outside = info(&keyspace, "k").stats.outside;
    assert_eq!(outside.used_bytes, outside.allocated_bytes, "no room to spare for a gap");
}

/// In the leaf of the keyspace, in a block of its own, and behind the entry; with a deadline before it, too.
#[test]
fn bytes_within_a_string_change_where_they_lie_and_in_no_copy_of_it() {
    let keyspace = keyspace(0);
    for (len, expiry) in [44, 45, 100, 500, 1_500, 3_000]
        .into_iter()
        .flat_map(|len| [(len, Expiry::Clear), (len, Expiry::At(Millis(NOW.0 + 9)))])
    {
        set(&keyspace, "k", &"x".repeat(len), expiry);
        let edit = || {
            with(&keyspace, NOW, "k", |view, key| {
                let edit = |bytes: &mut [u8], growth| {
                    bytes[len / 2] += 1;
                    (bytes.as_ptr().addr(), bytes.len(), growth)
                };
                view.edit_bytes(key, len as u64 / 2 + 1, edit).expect("a string")
            })
        };
        let first = edit();
        assert_eq!((first.1, first.2), (len, Growth::None));
        if len > 44 {
            assert_eq!(edit(), first, "{len} bytes: nothing has moved");
        }
        let expected =
            with(&keyspace, NOW, "k", |view, key| view.string(key).map(|it| it.map(|it| it.len())));
        assert_eq!(expected, Ok(Some(len)));
        let (frozen, before) = (keyspace.freeze(NOW, Policy::NoEviction), string_of(&keyspace, "k"));
        edit();
        assert_ne!(string_of(&keyspace, "k"), before, "{len} bytes");
        each_frozen(frozen, |entry| {
            assert_eq!(entry.value.string().map(text_of), Some(before.clone()), "{len} bytes");
        });
        assert_eq!(info(&keyspace, "k").encoding, "raw");
        let deadline = with(&keyspace, NOW, "k", |view, key| view.deadline(key));
        assert_eq!(deadline == Some(Deadline::Never), matches!(expiry, Expiry::Clear));
    }
    // What could be an integer is looked at again.
    set(&keyspace, "n", "1x3", Expiry::Clear);
    with(&keyspace, NOW, "n", |view, key| {
        assert_eq!(view.set_range(key, 1, b"2"), Ok(3));
        assert_eq!(view.add(key, 1), Ok(124));
    });
}

fn string_of(keyspace: &Keyspace, key: &str) -> Vec<u8> {
    with(keyspace, NOW, key, |view, key| view.string(key).expect("a string").map(text_of))
        .expect("it is there")
}

#[test]
fn only_the_room_of_a_large_string_of_one_owner_is_taken_back() {
    let keyspace = keyspace(3);
    let fill = |name: &str, len: usize| {
        with(&keyspace, NOW, name, |view, key| view.put_bytes(key, vec![7; len]));
    };
    let reclaim = |name: &str| with(&keyspace, NOW, name, |view, key| view.reclaim(key));
    fill("large", 2 << 20);
    assert_eq!(reclaim("large"), Some(vec![7; 2 << 20]));
    assert_eq!(
        with(&keyspace, NOW, "large", |view, key| view.string(key).expect("a string").map(|s| s.len())),
        Some(0)
    );
    fill("large", 2 << 20);
    fill("short", 1000);
    let settings = Settings::default();
    let (mut view, keys) = keyspace.lock_named(0, NOW, &settings, &[&b"large"[..], b"copy"]);
    let copy = view.copy(&keys[0]).expect("it is there");
    view.put_taken(&keys[1], copy);
    drop(view);
    for name in ["large", "short", "missing"] {
        assert_eq!(reclaim(name), None, "{name}");
    }
    assert_eq!(info(&keyspace, "copy").len, 2 << 20);
}

#[test]
fn strings_are_lent_side_by_side() {
    let keyspace = keyspace(3);
    set(&keyspace, "n", "123", Expiry::Clear);
    set(&keyspace, "gone", "x", Expiry::At(Millis(NOW.0 + 1)));
    set(&keyspace, "long", &"y".repeat(600), Expiry::Clear);
    let settings = Settings::default();
    let names: [&[u8]; 5] = [b"n", b"gone", b"long", b"missing", b"n"];
    let (mut view, keys) = keyspace.lock_named(0, Millis(NOW.0 + 1), &settings, &names);
    let long = "y".repeat(600);
    let expected =
        [Some(Item::Int(123)), None, Some(Item::Bytes(long.as_bytes())), None, Some(Item::Int(123))];
    assert_eq!(view.strings(&keys, LookUp::All).expect("strings alone"), expected);
    drop(view);
    with(&keyspace, NOW, "l", |view, key| view.list_or_new(key).expect("a list").push(End::Head, b"1"));
    for (look_up, hits) in [(LookUp::All, 3), (LookUp::UntilRefused, 1)] {
        let before = keyspace.stats().hits;
        let (mut view, keys) = keyspace.lock_named(0, NOW, &settings, &[&b"l"[..], b"n", b"long"]);
        view.count_lookups();
        assert_eq!(view.strings(&keys, look_up), Err(WrongType));
        drop(view);
        assert_eq!(keyspace.stats().hits - before, hits, "{look_up:?}");
    }
}

/// Pushes `values` one command at a time under `settings`, and names the list after each.
fn names(settings: &Settings, values: &[&str]) -> Vec<&'static str> {
    let keyspace = keyspace(0);
    let name_after = |value: &&str| {
        let (mut view, key) = keyspace.lock_one(0, NOW, settings, b"k");
        view.list_or_new(&key).expect("a list").push(End::Tail, value.as_bytes());
        view.info(&key).expect("it is there").encoding
    };
    values.iter().map(name_after).collect()
}

#[test]
fn a_list_is_a_quicklist_from_the_push_on_that_redis_makes_it_one() {
    let value = "x".repeat(100);
    let all = names(&Settings::default(), &[&value[..]; 90]);
    assert_eq!(all.iter().position(|name| *name == "quicklist"), Some(79));
    let mut settings = Settings::default();
    settings.list.fill = Fill::Entries(5);
    let all = names(&settings, &["1"; 7]);
    assert_eq!(all.iter().position(|name| *name == "quicklist"), Some(5));
}

#[test]
fn what_a_command_announces_is_weighed_as_plain_text_before_it_is_added() {
    let (keyspace, value) = (keyspace(0), "x".repeat(100));
    with(&keyspace, NOW, "k", |view, key| {
        let mut list = view.list_or_new(key).expect("a list");
        list.announce(81, 8100);
        (0..81).for_each(|_| list.push(End::Tail, value.as_bytes()));
    });
    assert_eq!(info(&keyspace, "k").encoding, "listpack");
}

#[test]
fn a_quicklist_is_a_listpack_again_at_half_the_limit() {
    let (keyspace, value) = (keyspace(0), "x".repeat(100));
    with(&keyspace, NOW, "k", |view, key| {
        let mut list = view.list_or_new(key).expect("a list");
        (0..300).for_each(|_| list.push(End::Tail, value.as_bytes()));
    });
    let pop = || {
        with(&keyspace, NOW, "k", |view, key| {
            view.list_mut(key).expect("a list").expect("it is there").pop(End::Head, |_| ());
        })
    };
    (0..260).for_each(|_| pop());
    assert_eq!((info(&keyspace, "k").len, info(&keyspace, "k").encoding), (40, "quicklist"));
    pop();
    assert_eq!(info(&keyspace, "k").encoding, "listpack");
    let mut settings = Settings::default();
    settings.list.fill = Fill::Entries(5);
    let (mut view, key) = keyspace.lock_one(0, NOW, &settings, b"few");
    (0..6).for_each(|_| view.list_or_new(&key).expect("a list").push(End::Tail, b"1"));
    for len in [5, 4, 3, 2] {
        view.list_mut(&key).expect("a list").expect("it is there").pop(End::Tail, |_| ());
        let name = if len == 2 { "listpack" } else { "quicklist" };
        assert_eq!(view.info(&key).map(|info| (info.len, info.encoding)), Some((len, name)));
    }
}

#[test]
fn a_large_cut_out_of_a_quicklist_still_finds_its_name() {
    let keyspace = keyspace(0);
    with(&keyspace, NOW, "k", |view, key| {
        let mut list = view.list_or_new(key).expect("a list");
        (0..20_000).for_each(|n: u32| list.push(End::Tail, n.to_string().as_bytes()));
    });
    let cut = |index, count| {
        with(&keyspace, NOW, "k", |view, key| {
            view.list_mut(key).expect("a list").expect("it is there").remove(index, count);
        })
    };
    cut(0, 10_000);
    assert_eq!(info(&keyspace, "k").encoding, "quicklist");
    cut(100, 9_900);
    assert_eq!((info(&keyspace, "k").len, info(&keyspace, "k").encoding), (100, "listpack"));
    cut(0, 100);
    assert_eq!(keyspace.len(0), 0, "an empty list takes its key with it");
}

#[test]
fn a_list_leaves_its_entry_when_it_grows_and_returns_when_it_is_short_again() {
    let keyspace = keyspace(0);
    let edit = |act: &dyn Fn(&mut crate::ListMut<'_>)| {
        with(&keyspace, NOW, "k", |view, key| act(&mut view.list_or_new(key).expect("a list")));
        info(&keyspace, "k").is_inline
    };
    assert!(edit(&|list| list.push(End::Head, b"first")));
    assert!(!edit(&|list| (0..60).for_each(|_| list.push(End::Tail, b"some more text"))));
    assert!(!edit(&|list| list.remove(1, 40)), "not at the same size");
    assert!(edit(&|list| list.remove(1, 19)));
    assert!(!edit(&|list| list.set(0, &[b'x'; 2100])));
    assert!(edit(&|list| list.set(0, b"x")));
    let all = with(&keyspace, NOW, "k", |view, key| {
        let list = view.list(key).expect("a list").expect("it is there");
        (0..list.len()).map(|n| list.get(n, |item| item.len()).expect("in range")).collect::<Vec<_>>()
    });
    assert_eq!(all, [1, 14]);
}

#[test]
fn a_list_keeps_its_deadline_through_edits_in_and_outside_its_entry() {
    let keyspace = keyspace(0);
    let at = Deadline::At(Millis(NOW.0 + 1000));
    with(&keyspace, NOW, "k", |view, key| {
        view.list_or_new(key).expect("a list").push(End::Tail, b"1");
        assert!(view.set_deadline(key, at));
        (0..200)
            .for_each(|_| view.list_or_new(key).expect("a list").push(End::Tail, b"twenty bytes of text"));
        assert_eq!(view.deadline(key), Some(at));
        assert!(view.set_deadline(key, Deadline::Never) && view.set_deadline(key, at));
        assert_eq!(view.list(key).expect("a list").map(|list| list.len()), Some(201));
        view.list_mut(key).expect("a list").expect("it is there").remove(1, 200);
        assert_eq!(view.deadline(key), Some(at));
    });
}

#[test]
fn a_new_list_nobody_pushes_to_is_not_there() {
    let keyspace = keyspace(0);
    with(&keyspace, NOW, "k", |view, key| {
        drop(view.list_or_new(key).expect("a list"));
        assert!(!view.exists(key));
        assert!(view.list_mut(key).expect("nothing").is_none());
    });
    assert_eq!(keyspace.len(0), 0);
}

#[test]
fn a_value_of_another_type_is_refused_and_stays() {
    let keyspace = keyspace(0);
    set(&keyspace, "s", "text", Expiry::Clear);
    with(&keyspace, NOW, "s", |view, key| {
        assert!(view.list(key).is_err() && view.list_mut(key).is_err() && view.list_or_new(key).is_err());
        assert_eq!(view.kind(key), Some(Kind::String));
        assert_eq!(view.kind(key).map(Kind::name), Some("string"));
    });
    with(&keyspace, NOW, "l", |view, key| {
        view.list_or_new(key).expect("a list").push(End::Head, b"1");
        assert_eq!(view.string(key), Err(WrongType));
        assert_eq!(view.append(key, b"x"), Err(EditError::WrongType));
        assert_eq!(view.set_range(key, 0, b"x"), Err(EditError::WrongType));
        assert_eq!(view.kind(key).map(Kind::name), Some("list"));
    });
}
