//! What a key is said to take: what all of its nodes add up to, and what few of them tell.
use crate::keyspace::tests::{NOW, keyspace, set, with};
use crate::{End, Expiry, Id, Key, Keyspace, Lifetime, Pending, View};
use base::Item;
use pack::log::{Limits, Pairs};

struct Entry(String);

impl Pairs for Entry {
    fn count(&self) -> usize {
        1
    }
    fn name(&self, _index: usize) -> &[u8] {
        b"field"
    }
    fn value(&self, _index: usize) -> Item<'_> {
        Item::classify(self.0.as_bytes())
    }
    fn text_bytes(&self) -> usize {
        5 + self.0.len()
    }
}

const LIMITS: Limits = Limits { bytes: 4096, entries: 100 };

type FillKey = fn(&mut View<'_>, &Key<'_>, u64);

/// Texts of 10 to 29 bytes.
fn text(n: u64) -> String {
    format!("text-{n:0width$}", width = 5 + (n.wrapping_mul(0x9E37_79B9) >> 7) as usize % 20)
}

/// A value of each kind with so many elements.
const KINDS: [(&str, FillKey); 9] = [
    ("list", |view, key, len| {
        let mut list = view.list_or_new(key).unwrap();
        (0..len).for_each(|n| list.push(End::Tail, text(n).as_bytes()));
    }),
    ("integers", |view, key, len| {
        let mut set = view.set_or_new(key).unwrap();
        (0..len).for_each(|n| assert!(set.insert((n * n).to_string().as_bytes())));
    }),
    ("texts", |view, key, len| {
        let mut set = view.set_or_new(key).unwrap();
        (0..len).for_each(|n| assert!(set.insert(text(n).as_bytes())));
    }),
    ("both", |view, key, len| {
        let mut set = view.set_or_new(key).unwrap();
        (0..len).for_each(|n| {
            let member = if n % 3 == 0 { n.to_string() } else { text(n) };
            assert!(set.insert(member.as_bytes()));
        });
    }),
    ("hash", |view, key, len| fill_hash(view, key, (0..len).map(|n| (text(n), text(n * 7))))),
    ("counts", |view, key, len| {
        fill_hash(view, key, (0..len).map(|n| (n.to_string(), (n * 31).to_string())))
    }),
    ("few long values", |view, key, len| {
        let value = |n: u64| if n % 300 == 7 { "x".repeat(3000 + n as usize % 9999) } else { text(n) };
        fill_hash(view, key, (0..len).map(|n| (text(n), value(n))));
    }),
    ("zset", |view, key, len| {
        let mut set = view.zset_or_new(key).unwrap();
        (0..len).for_each(|n| assert_eq!(set.update(text(n).as_bytes(), |_| Some((n % 999) as f64)), None));
    }),
    ("stream", |view, key, len| {
        let mut stream = view.stream_or_new(key).unwrap();
        stream.create_group(b"group", Id::MIN, None);
        let consumer = stream.group_mut(b"group").unwrap().create_consumer(b"c", NOW).unwrap();
        for n in 0..len {
            let id = Id { ms: 1_000_000 + n * 3, seq: 0 };
            stream.add(id, &Entry(text(n)), &LIMITS);
            stream.group_mut(b"group").unwrap().hold(Pending { id, consumer, delivered: NOW, count: 1 });
        }
    }),
];

fn fill_hash(view: &mut View<'_>, key: &Key<'_>, pairs: impl Iterator<Item = (String, String)>) {
    let mut hash = view.hash_or_new(key).unwrap();
    pairs.for_each(|(field, value)| {
        assert!(hash.set(field.as_bytes(), value.as_bytes(), Lifetime::Endless));
    });
}

/// What all nodes of a value take, and what is told of it.
fn both(keyspace: &Keyspace, key: &str) -> (u64, u64) {
    with(keyspace, NOW, key, |view, key| {
        (view.info(key).expect("it is there").memory_bytes, view.memory_bytes(key).expect("it is there"))
    })
}

#[test]
fn of_a_small_value_all_is_told() {
    let keyspace = keyspace(0);
    assert_eq!(with(&keyspace, NOW, "none", |view, key| view.memory_bytes(key)), None);
    for text in ["v".to_owned(), "v".repeat(300), "v".repeat(100_000)] {
        set(&keyspace, "string", &text, Expiry::Clear);
        let (all, told) = both(&keyspace, "string");
        assert_eq!(all, told);
    }
    for (name, fill) in KINDS {
        for len in [1, 30, 200, 400] {
            let key = format!("{name}{len}");
            with(&keyspace, NOW, &key, |view, key| fill(view, key, len));
            let (all, told) = both(&keyspace, &key);
            assert_eq!(all, told, "{key}");
        }
    }
}

#[test]
fn of_a_large_value_few_leaves_tell_to_a_few_hundredths() {
    let keyspace = keyspace(0);
    for (name, fill) in KINDS {
        for len in [5_000, 60_000] {
            let key = format!("{name}{len}");
            with(&keyspace, NOW, &key, |view, key| fill(view, key, len));
            let (all, told) = both(&keyspace, &key);
            assert!(all.abs_diff(told) * 50 <= all, "{key}: {told} of {all} bytes");
        }
    }
}

/// Integers and texts lie apart, and neither tells what the other takes.
#[test]
fn what_a_dump_of_a_hash_takes_is_told_of_integers_and_texts_alike() {
    const EACH: u64 = 3000;
    let value = "v".repeat(100);
    let keyspace = keyspace(0);
    let told = with(&keyspace, NOW, "hash", |view, key| {
        let fields = (0..EACH).flat_map(|n| [(n.to_string(), n.to_string()), (text(n), value.clone())]);
        fill_hash(view, key, fields);
        view.info(key).expect("it is there").serialized_bytes
    });
    assert!((EACH * 100..EACH * 150).contains(&told), "{told}");
}
