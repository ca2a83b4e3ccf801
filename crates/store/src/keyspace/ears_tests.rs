//! What is told of keys, to whom, and when: by commands, by lookups, by the clock, by eviction.
use crate::event::{Classes, Event, Listener, Told};
use crate::keyspace::tests::{NOW, keyspace, with};
use crate::{Deadline, End, Eviction, Evictor, Expiry, Form, Keyspace, Lifetime, Outcome, Policy};
use base::Millis;
use std::sync::{Arc, Mutex};

/// Writes down what it hears.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    fn note(&self, line: String) {
        self.0.lock().expect("no test panics with it").push(line);
    }

    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no test panics with it"))
    }
}

impl Listener for Recorder {
    fn hear(&self, told: &[Told]) {
        for Told { db, key, event, .. } in told {
            self.note(format!("{db} {} {}", String::from_utf8_lossy(key), event.name));
        }
    }

    fn flush(&self, keyspace: &Keyspace, db: Option<u16>) {
        self.note(format!("flush {db:?} of {}", keyspace.len(0)));
    }

    fn swap(&self, _: &Keyspace, (a, b): (u16, u16), _: Millis) {
        self.note(format!("swap {a} {b}"));
    }
}

const ALL: Classes = Classes(0x3FFC);

fn heard(shard_bits: u32, classes: Classes) -> (Keyspace, Recorder) {
    let (mut keyspace, recorder) = (keyspace(shard_bits), Recorder::default());
    keyspace.listen(Box::new(recorder.clone()));
    keyspace.hear_classes(classes);
    (keyspace, recorder)
}

fn later(ms: i64) -> Millis {
    Millis(NOW.0 + ms)
}

fn put(keyspace: &Keyspace, now: Millis, key: &str, expiry: Expiry) {
    with(keyspace, now, key, |view, key| {
        view.put_string(key, b"v", Form::Auto, expiry);
        view.changed(key, 1, Event::string("set"));
    });
}

#[test]
fn a_command_tells_before_its_shard_is_let_go_and_a_key_that_comes_to_be_first() {
    let (keyspace, recorder) = heard(2, ALL);
    with(&keyspace, NOW, "k", |view, key| {
        view.put_string(key, b"v", Form::Auto, Expiry::Clear);
        view.changed(key, 1, Event::string("set"));
        view.touched(key, Event::EXPIRE);
        view.changed(key, 0, Event::DEL);
        assert!(recorder.taken().is_empty(), "it may still change its mind");
    });
    assert_eq!(recorder.taken(), ["0 k new", "0 k set", "0 k expire"]);
    put(&keyspace, NOW, "k", Expiry::Clear);
    assert_eq!(recorder.taken(), ["0 k set"]);
}

#[test]
fn what_becomes_empty_is_told_to_be_gone() {
    let (keyspace, recorder) = heard(2, ALL);
    with(&keyspace, NOW, "l", |view, key| {
        let mut list = view.list_or_new(key).expect("it is new");
        list.push(End::Tail, b"a");
        list.push(End::Tail, b"b");
        drop(list);
        view.changed(key, 2, Event::list("rpush"));
    });
    assert_eq!(recorder.taken(), ["0 l new", "0 l rpush"]);
    for told in [vec!["0 l lpop"], vec!["0 l lpop", "0 l del"]] {
        with(&keyspace, NOW, "l", |view, key| {
            view.list_mut(key).expect("a list").expect("there").pop(End::Head, |_| ());
            view.reduced(key, 1, Event::list("lpop"));
        });
        assert_eq!(recorder.taken(), told);
    }
}

#[test]
fn only_what_somebody_listens_to_is_told() {
    let (keyspace, recorder) = heard(0, Classes::NONE);
    put(&keyspace, NOW, "a", Expiry::Clear);
    assert!(recorder.taken().is_empty());
    keyspace.hear_classes(Classes::LIST);
    put(&keyspace, NOW, "a", Expiry::Clear);
    assert!(recorder.taken().is_empty(), "a string is of no interest");
    keyspace.hear_every_change(true);
    put(&keyspace, NOW, "b", Expiry::Clear);
    keyspace.hear_classes(Classes::NONE);
    put(&keyspace, NOW, "b", Expiry::Clear);
    assert_eq!(recorder.taken(), ["0 b set", "0 b set"], "that it is new is no change by itself");
    keyspace.hear_every_change(false);
    put(&keyspace, NOW, "b", Expiry::Clear);
    assert!(recorder.taken().is_empty(), "nobody hears every change any more");
    keyspace.open_ear(b"a");
    keyspace.open_ear(b"a");
    keyspace.close_ear(b"a");
    put(&keyspace, NOW, "a", Expiry::Clear);
    let end = |key: &str| keyspace.hash(key.as_bytes()).0 & 63;
    let other = (0..).map(|n| format!("k{n}")).find(|key| end(key) != end("a"));
    put(&keyspace, NOW, &other.expect("hashes differ"), Expiry::Clear);
    assert_eq!(recorder.taken(), ["0 a set"]);
    keyspace.close_ear(b"a");
    put(&keyspace, NOW, "a", Expiry::Clear);
    assert!(recorder.taken().is_empty(), "the last has gone");
}

#[test]
fn a_lookup_tells_a_key_past_its_deadline_once_and_a_miss_behind_it() {
    let (keyspace, recorder) = heard(2, ALL);
    put(&keyspace, NOW, "k", Expiry::At(later(10)));
    recorder.taken();
    with(&keyspace, later(10), "k", |view, key| {
        view.count_lookups();
        assert!(!view.exists(key));
        view.ignore_lookups();
        assert!(!view.exists(key));
    });
    assert_eq!(recorder.taken(), ["0 k expired", "0 k keymiss"]);
    assert_eq!((keyspace.len(0), keyspace.stats().expired), (0, 1));
}

#[test]
fn a_write_over_a_key_past_its_deadline_tells_that_it_expired_and_is_new() {
    let (keyspace, recorder) = heard(2, ALL);
    for key in ["string", "list", "taken", "removed"] {
        put(&keyspace, NOW, key, Expiry::At(later(10)));
    }
    recorder.taken();
    put(&keyspace, later(10), "string", Expiry::Clear);
    assert_eq!(recorder.taken(), ["0 string expired", "0 string new", "0 string set"]);
    with(&keyspace, later(10), "list", |view, key| {
        view.list_or_new(key).expect("nothing is there").push(End::Head, b"x");
        view.changed(key, 1, Event::list("lpush"));
    });
    assert_eq!(recorder.taken(), ["0 list expired", "0 list new", "0 list lpush"]);
    with(&keyspace, later(10), "taken", |view, key| assert!(view.take(key).is_none()));
    with(&keyspace, later(10), "removed", |view, key| assert!(!view.remove(key)));
    assert_eq!(recorder.taken(), ["0 taken expired", "0 removed expired"]);
    assert_eq!(keyspace.stats().expired, 4);
}

#[test]
fn the_clock_and_eviction_tell_what_goes() {
    let (keyspace, recorder) = heard(2, ALL);
    put(&keyspace, NOW, "due", Expiry::At(later(10)));
    put(&keyspace, NOW, "stays", Expiry::Clear);
    recorder.taken();
    keyspace.expire(later(10), 100, &mut Vec::new());
    assert_eq!(recorder.taken(), ["0 due expired"]);
    for policy in [Policy::AllkeysLru, Policy::VolatileTtl] {
        put(&keyspace, NOW, "goes", Expiry::At(later(1000)));
        with(&keyspace, NOW, "stays", |view, key| view.remove(key));
        recorder.taken();
        let eviction = Eviction { policy, ..Eviction::default() };
        let outcome = keyspace.evict(&mut Evictor::new(1), NOW, &eviction, &mut Vec::new());
        assert_eq!((outcome, recorder.taken()), (Outcome::Key, vec!["0 goes evicted".to_owned()]));
    }
    put(&keyspace, NOW, "scanned", Expiry::At(later(10)));
    recorder.taken();
    keyspace.remove_overdue(0, later(10), &[b"scanned".to_vec()], &mut Vec::new());
    assert_eq!(recorder.taken(), ["0 scanned expired"]);
}

#[test]
fn fields_that_expire_are_told_and_the_hash_that_they_leave_empty() {
    let (keyspace, recorder) = heard(2, ALL);
    let fill = |key: &str, fields: u32| {
        with(&keyspace, NOW, key, |view, key| {
            let mut hash = view.hash_or_new(key).expect("it is new");
            hash.expect_deadlines();
            for n in 0..fields {
                hash.set(format!("f{n}").as_bytes(), b"v", Lifetime::Until(later(10)));
            }
            hash.set(b"last", b"v", Lifetime::Until(later(20)));
        });
    };
    // Small and in its entry; large and outside, where the last field goes by itself.
    for (key, fields) in [("small", 3), ("large", 100)] {
        fill(key, fields);
        recorder.taken();
        while keyspace.expire(later(10), 1000, &mut Vec::new()).is_some_and(|due| due <= later(10)) {}
        assert_eq!(recorder.taken(), [format!("0 {key} hexpired")]);
        keyspace.expire(later(20), 1000, &mut Vec::new());
        assert_eq!(recorder.taken(), [format!("0 {key} hexpired"), format!("0 {key} del")]);
    }
    fill("looked-at", 1);
    recorder.taken();
    with(&keyspace, later(20), "looked-at", |view, key| assert!(view.hash(key).expect("a hash").is_some()));
    assert_eq!(recorder.taken(), ["0 looked-at hexpired", "0 looked-at del"]);
}

#[test]
fn flushes_and_swaps_are_told_before_they_happen() {
    let (keyspace, recorder) = heard(2, Classes::NONE);
    put(&keyspace, NOW, "k", Expiry::Clear);
    keyspace.swap(0, 1, Millis(0));
    keyspace.swap(0, 1, Millis(0));
    keyspace.flush(None);
    assert_eq!(recorder.taken(), ["swap 0 1", "swap 0 1", "flush None of 1"]);
}

#[test]
fn a_value_that_moves_to_another_key_makes_it_a_new_one() {
    let (keyspace, recorder) = heard(2, ALL);
    put(&keyspace, NOW, "k", Expiry::Clear);
    recorder.taken();
    with(&keyspace, NOW, "k", |view, key| {
        let taken = view.copy(key).expect("it is there");
        let other = key.in_db(3);
        view.put_taken(&other, taken);
        view.changed(&other, 1, Event::generic("copy_to"));
        assert_eq!(view.deadline(&other), Some(Deadline::Never));
    });
    assert_eq!(recorder.taken(), ["3 k new", "3 k copy_to"]);
}
