//! Whole files: written from a keyspace, loaded into another, cut short, changed, and written to disks that
//! fail.
use super::kind::Type;
use super::load_file::{FileReader, LoadCounts, LoadError, LoadRules, Piece};
use super::save::Form as ValueForm;
use super::save_file::{About, FileForm, Output, SaveError, save_file};
use super::sort::{Sorted, Sorter};
use super::{VERSION_WRITTEN, payload};
use base::hash::Seed;
use base::random::Random;
use base::{Item, Millis};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use store::{
    Deadline, End, Expiry, Form, FrozenEntry, Id, Keyspace, KeyspaceOptions, Lifetime, Pairs, Policy,
    Precision, References, Settings, StreamLimits, Trim,
};

const NOW: Millis = Millis(1_780_000_000_000);
const LATER: Millis = Millis(1_790_000_000_000);

fn keyspace(seed: u64) -> Keyspace {
    Keyspace::new(KeyspaceOptions { shard_bits: 3, databases: 4, seed: Seed::new(seed, 1) })
}

fn edit(keyspace: &Keyspace, db: u16, key: &str, edit: impl FnOnce(&mut store::View<'_>, &store::Key<'_>)) {
    let settings = Settings::default();
    let (mut view, key) = keyspace.lock_one(db, NOW, &settings, key.as_bytes());
    edit(&mut view, &key);
}

/// An entry of a stream: a name, and a value.
struct OnePair<'v>(&'v str, &'v [u8]);

impl Pairs for OnePair<'_> {
    fn count(&self) -> usize {
        1
    }

    fn name(&self, _: usize) -> &[u8] {
        self.0.as_bytes()
    }

    fn value(&self, _: usize) -> Item<'_> {
        Item::classify(self.1)
    }

    fn text_bytes(&self) -> usize {
        self.0.len() + self.1.len()
    }
}

/// Some keys of every type; `large` adds one that does not fit a batch.
fn fill(keyspace: &Keyspace, large: bool) {
    let put = |db, key: &str, text: &str, expiry| {
        edit(keyspace, db, key, |view, key| view.put_string(key, text.as_bytes(), Form::Auto, expiry));
    };
    put(0, "int", "12345", Expiry::Clear);
    put(0, "text", &"text ".repeat(40), Expiry::At(LATER));
    put(3, "12", "", Expiry::Clear);
    let count = if large { 400_000 } else { 40 };
    edit(keyspace, 0, "list", |view, key| {
        let mut list = view.list_or_new(key).unwrap();
        (0..count).for_each(|n| list.push(End::Tail, format!("element {n}").as_bytes()));
    });
    edit(keyspace, 1, "ints", |view, key| {
        let mut set = view.set_or_new(key).unwrap();
        (0..20).for_each(|n| assert!(set.insert(format!("{}", n * n).as_bytes())));
    });
    edit(keyspace, 1, "words", |view, key| {
        let mut set = view.set_or_new(key).unwrap();
        (0..20).for_each(|n| assert!(set.insert(format!("word {n}").as_bytes())));
    });
    edit(keyspace, 1, "zset", |view, key| {
        let mut zset = view.zset_or_new(key).unwrap();
        for n in 0..20 {
            zset.update(format!("m{n}").as_bytes(), |_| Some(f64::from(n) / 3.0));
        }
    });
    edit(keyspace, 0, "hash", |view, key| {
        let mut hash = view.hash_or_new(key).unwrap();
        hash.set(b"endless", b"1", Lifetime::Endless);
        hash.set(b"timed", b"2", Lifetime::Until(LATER));
    });
    edit(keyspace, 2, "stream", |view, key| {
        let limits = view.settings().stream;
        let mut stream = view.stream_or_new(key).unwrap();
        (1..9).for_each(|ms| stream.add(Id { ms, seq: 0 }, &OnePair("field", b"value"), &limits));
        stream.create_group(b"group", Id { ms: 3, seq: 0 }, Some(3));
    });
}

/// Every key: its deadline, and its value as DUMP has it.
fn contents(keyspace: &Keyspace) -> BTreeMap<(u16, Vec<u8>), (Deadline, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let form = ValueForm { version: VERSION_WRITTEN, compresses: true };
    for db in keyspace.freeze(NOW, Policy::NoEviction).into_dbs() {
        let number = db.number;
        let mut add = |entry: FrozenEntry<'_>| {
            let value = payload::dump(entry.value, &Settings::default(), form);
            all.insert((number, entry.key.to_vec()), (entry.deadline, value));
            ControlFlow::Continue(())
        };
        let _ = db.into_shards().try_for_each(|shard| shard.visit(&mut add));
    }
    all
}

fn save(keyspace: &Keyspace, output: &mut dyn Output) -> Result<u64, SaveError> {
    let about =
        About { texts: vec![("redis-ver", "8.0.2".into())], functions: vec![Arc::from(&b"a library"[..])] };
    let form = ValueForm { version: VERSION_WRITTEN, compresses: true };
    let form = FileForm { form, has_checksum: true, syncs: true };
    let frozen = keyspace.freeze(NOW, Policy::NoEviction);
    save_file(frozen, output, (&about, &Settings::default(), form), &mut |_| ControlFlow::Continue(()))
}

/// A file in memory whose writes and syncs fail after so many.
struct Disk {
    bytes: Vec<u8>,
    calls_left: u64,
}

impl Disk {
    fn call(&mut self) -> io::Result<()> {
        self.calls_left = self.calls_left.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
        Ok(())
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.call()?;
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for Disk {
    fn sync(&mut self) -> io::Result<()> {
        self.call()
    }
}

fn saved(keyspace: &Keyspace) -> Vec<u8> {
    let mut disk = Disk { bytes: Vec::new(), calls_left: u64::MAX };
    save(keyspace, &mut disk).unwrap();
    disk.bytes
}

/// Loads a file. Returns what became of its keys, and how many of them were too large for a batch.
fn load(keyspace: &Keyspace, file: &[u8], now: Millis) -> Result<(LoadCounts, usize), LoadError> {
    load_with(keyspace, file, now, &Settings::default())
}

fn load_with(
    keyspace: &Keyspace,
    file: &[u8],
    now: Millis,
    settings: &Settings,
) -> Result<(LoadCounts, usize), LoadError> {
    let go_on = || ControlFlow::Continue(());
    let rules = LoadRules { keyspace, settings, now, replaces: false, go_on: &go_on };
    let mut reader = FileReader::open(file, file.len() as u64, settings, true)?;
    let sorted = Sorted::new(keyspace.shards(), reader.version());
    let (mut counts, mut large) = (LoadCounts::default(), 0);
    let mut sorter = Sorter::new(&sorted);
    loop {
        match reader.next_piece()? {
            Piece::Batch(batch) => sorter.sort(&batch, &rules, &mut counts)?,
            Piece::Large => {
                large += 1;
                reader.load_key(&rules, &mut counts)?;
            }
            Piece::About(..) | Piece::Function(_) | Piece::Module(_) => {}
            Piece::End => break,
        }
    }
    sorter.finish();
    for shard in 0..sorted.shards() {
        sorted.load(shard, &rules, &mut counts)?;
    }
    assert_eq!(sorted.bytes(), 0, "what was held is loaded");
    Ok((counts, large))
}

#[test]
fn what_is_saved_is_what_is_loaded() {
    for (has_large, large) in [(false, 0), (true, 1)] {
        let (before, after) = (keyspace(7), keyspace(8));
        fill(&before, has_large);
        let (counts, streamed) = load(&after, &saved(&before), NOW).unwrap();
        assert_eq!((counts, streamed), (LoadCounts { loaded: 9, ..LoadCounts::default() }, large));
        assert!(contents(&before) == contents(&after), "a value came back as another");
        let left = load(&keyspace(9), &saved(&before), Millis(LATER.0 + 1)).unwrap().0;
        assert_eq!((left.loaded, left.expired), (8, 1), "a key whose time is over is left out");
    }
}

#[test]
fn a_file_that_is_cut_or_changed_anywhere_is_refused() {
    let before = keyspace(7);
    fill(&before, false);
    let mut file = saved(&before);
    for len in 0..file.len() {
        assert!(load(&keyspace(8), &file[..len], NOW).is_err(), "the first {len} bytes");
    }
    // A version before the checksum came has none, so the version is left as it is.
    for at in (0..5).chain(9..file.len()) {
        for bit in [0, 3, 7] {
            file[at] ^= 1 << bit;
            assert!(load(&keyspace(8), &file, NOW).is_err(), "bit {bit} of byte {at}");
            file[at] ^= 1 << bit;
        }
    }
    // Without the checksum any byte may be another, and nothing worse comes of it.
    let end = file.len() - 8;
    file[end..].fill(0);
    for at in 0..end {
        for value in [0, 0x3F, 0x7F, 0x80, 0xC3, 0xFF] {
            let kept = std::mem::replace(&mut file[at], value);
            let _ = load(&keyspace(8), &file, NOW);
            file[at] = kept;
        }
    }
}

#[test]
fn a_disk_that_fails_at_any_call_is_told() {
    let before = keyspace(7);
    fill(&before, true);
    let mut calls = 0;
    loop {
        let mut disk = Disk { bytes: Vec::new(), calls_left: calls };
        match save(&before, &mut disk) {
            Ok(bytes) => break assert_eq!(bytes, disk.bytes.len() as u64),
            Err(SaveError::Io(error)) => assert_eq!(error.kind(), io::ErrorKind::StorageFull),
            Err(SaveError::GivenUp) => panic!("nobody has given it up"),
        }
        calls += 1;
    }
    assert!(calls > 3, "there were so few calls: {calls}");
}

#[test]
fn files_of_all_versions_and_both_names_are_read() {
    for (header, version) in [("REDIS0001", 1), ("REDIS0012", 12), ("VALKEY080", 80)] {
        let mut file = format!("{header}\u{0}\u{1}k\u{1}v").into_bytes();
        file.splice(9..9, [0xFE, 0, 0xFD, 0xFF, 0xFF, 0xFF, 0x7F]);
        file.push(0xFF);
        if version >= 5 {
            file.extend([0; 8]);
        }
        let after = keyspace(8);
        assert_eq!(load(&after, &file, NOW).unwrap().0.loaded, 1, "{header}");
        let (_, (deadline, _)) = contents(&after).pop_first().unwrap();
        assert_eq!(deadline, Deadline::At(Millis(i64::from(i32::MAX) * 1000)));
    }
    for (header, is_known) in [("REDIS0000", false), ("REDIS0081", false), ("REDIS0079", true)] {
        let opened = FileReader::open(header.as_bytes(), header.len() as u64, &Settings::default(), true);
        assert_eq!(opened.is_ok(), is_known, "{header}");
    }
}

#[test]
fn a_key_that_comes_twice_is_refused() {
    let file = b"REDIS0003\xFE\x00\x00\x01k\x01v\x00\x01k\x01w\xFF";
    assert!(matches!(load(&keyspace(8), file, NOW), Err(LoadError::Twice(0, key)) if key == b"k"));
    let elsewhere = b"REDIS0003\xFE\x00\x00\x01k\x01v\xFE\x02\x00\x01k\x01w\xFF";
    assert_eq!(load(&keyspace(8), elsewhere, NOW).unwrap().0.loaded, 2);
    let nowhere = b"REDIS0003\xFE\x09\x00\x01k\x01v\xFF";
    assert!(matches!(load(&keyspace(8), nowhere, NOW), Err(LoadError::Database(9))));
}

#[test]
fn what_modules_keep_beside_the_keys_is_passed_over() {
    let mut file = b"REDIS0010\xF7\x81\x00\x00\x00\x00\x00\x00\x04\x01\x02\x01".to_vec();
    // An integer, a double, a string, the end.
    file.extend(b"\x02\x05\x04\x00\x00\x00\x00\x00\x00\x00\x00\x05\x03abc\x00");
    file.extend(b"\xFE\x00\x00\x01k\x01v\xFF\x00\x00\x00\x00\x00\x00\x00\x00");
    assert_eq!(load(&keyspace(8), &file, NOW).unwrap().0.loaded, 1);
    let of_module = b"REDIS0010\xFE\x00\x07\x01k\x01\x00\xFF";
    assert!(matches!(load(&keyspace(8), of_module, NOW), Err(LoadError::Broken(_))));
}

/// How many nodes there are is known when they are written, where they are no more than is gathered for a
/// file, and before that otherwise.
#[test]
fn lists_and_streams_that_pass_what_is_gathered_are_saved_whole() {
    // What no compression makes shorter: so many elements of so many bytes.
    let sizes = [(1, 100), (63, 8_000), (64, 8_000), (65, 8_000), (131, 8_000), (133, 8_000), (300, 8_000)];
    let large = [(1, 1_100_000), (3, 600_000), (2, 1_000_000), (12, 100_000), (200_000, 3), (200_000, 9)];
    let (from, to) = (keyspace(1), keyspace(2));
    let mut random = Random::new(6);
    for (count, bytes) in sizes.into_iter().chain(large) {
        let mut element = vec![0; bytes];
        edit(&from, 0, &format!("list {count} {bytes}"), |view, key| {
            let mut list = view.list_or_new(key).unwrap();
            for _ in 0..count {
                random.fill(&mut element);
                list.push(End::Tail, &element);
            }
        });
        edit(&from, 0, &format!("stream {count} {bytes}"), |view, key| {
            let limits = view.settings().stream;
            let mut stream = view.stream_or_new(key).unwrap();
            for ms in 1..=count {
                random.fill(&mut element);
                stream.add(Id { ms, seq: 0 }, &OnePair("field", &element), &limits);
            }
        });
    }
    load(&to, &saved(&from), NOW).unwrap();
    assert!(contents(&from) == contents(&to), "the file has what payloads have, which are gathered whole");
}

/// Whoever trims a stream with `~` sees where its nodes end.
#[test]
fn the_nodes_of_a_stream_are_in_the_file_as_they_are() {
    let mut random = Random::new(7);
    for (bytes, entries) in [(4096, 100), (4096, 3), (300, 0), (0, 0), (4096, 9)] {
        for (others, gone) in [(0, 0), (0, 3), (9, 0), (2, 2)] {
            let limits = StreamLimits { bytes, entries };
            let (from, to) = (keyspace(1), keyspace(2));
            edit(&from, 0, "s", |view, key| {
                let mut stream = view.stream_or_new(key).unwrap();
                for ms in 1..=250 {
                    let mut value = vec![0; random.below(40) as usize];
                    random.fill(&mut value);
                    let number = random.below(1000).to_string();
                    let value = if ms % 2 == 0 { &value } else { number.as_bytes() };
                    let name = if others > 0 && random.below(others) == 0 { "other" } else { "field" };
                    stream.add(Id { ms, seq: 0 }, &OnePair(name, value), &limits);
                }
                for ms in (1..250).filter(|ms| gone > 0 && ms % gone == 0) {
                    assert!(stream.delete(Id { ms, seq: 0 }));
                }
            });
            load(&to, &saved(&from), NOW).unwrap();
            let shapes = [&from, &to].map(|keyspace| {
                let mut shape = Vec::new();
                edit(keyspace, 0, "s", |view, key| {
                    let mut stream = view.stream_or_new(key).unwrap();
                    let _ = stream.visit_nodes(&mut |node| {
                        let _ = node.visit(&mut |row| {
                            shape.push(row.id.ms);
                            ControlFlow::Continue(())
                        });
                        shape.push(0);
                        ControlFlow::Continue(())
                    });
                    shape.push(stream.nodes());
                    let precision = Precision::Leaves { entries_max: u64::MAX };
                    shape.push(stream.trim_with(Trim::MaxLen(40), precision, References::Keep));
                });
                shape
            });
            assert_eq!(shapes[0], shapes[1], "{bytes} bytes, {entries} entries, {others}, {gone}");
        }
    }
}

/// Some elements are gathered and built at once, the others added to them.
#[test]
fn collections_of_more_elements_than_are_gathered_at_once_are_loaded_whole() {
    const COUNT: u64 = 2500;
    let name = |n: u64| if n.is_multiple_of(3) { n.to_string() } else { format!("element {n}") }.into_bytes();
    let lifetime = |n: u64| if n.is_multiple_of(5) { Lifetime::Until(LATER) } else { Lifetime::Endless };
    let (from, to) = (keyspace(1), keyspace(2));
    edit(&from, 0, "set", |view, key| {
        let mut set = view.set_or_new(key).unwrap();
        (0..COUNT).for_each(|n| assert!(set.insert(&name(n))));
    });
    edit(&from, 0, "zset", |view, key| {
        let mut zset = view.zset_or_new(key).unwrap();
        (0..COUNT).for_each(|n| assert!(zset.update(&name(n), |_| Some((n % 700) as f64)).is_none()));
    });
    for (key, is_timed) in [("hash", false), ("timed", true)] {
        edit(&from, 0, key, |view, key| {
            let mut hash = view.hash_or_new(key).unwrap();
            let lifetime = |n| if is_timed { lifetime(n) } else { Lifetime::Endless };
            (0..COUNT).for_each(|n| assert!(hash.set(&name(n), &name(n + 1), lifetime(n))));
        });
    }
    load(&to, &saved(&from), NOW).unwrap();
    let text = |item: Item<'_>| {
        let mut text = Vec::new();
        item.append_to(&mut text);
        text
    };
    edit(&to, 0, "set", |view, key| {
        let set = view.set(key).unwrap().unwrap();
        assert!(set.len() == COUNT && (0..COUNT).all(|n| set.contains(&name(n))));
    });
    edit(&to, 0, "zset", |view, key| {
        let zset = view.zset(key).unwrap().unwrap();
        assert!(zset.len() == COUNT && (0..COUNT).all(|n| zset.score(&name(n)) == Some((n % 700) as f64)));
    });
    for key in ["hash", "timed"] {
        edit(&to, 0, key, |view, key| {
            let is_timed = key.bytes() == b"timed";
            let hash = view.hash(key).unwrap().unwrap();
            assert_eq!(hash.len(), COUNT);
            for n in 0..COUNT {
                assert_eq!(hash.get(&name(n)).map(text), Some(name(n + 1)));
                let due = hash.deadline(&name(n)) == Some(Deadline::At(LATER));
                assert_eq!(due, is_timed && n.is_multiple_of(5));
            }
        });
    }
}

/// What was taken once is loaded, whatever a client could send now: values, and blocks of elements none of
/// which is too long. An element that is too long is not.
#[test]
fn values_and_blocks_in_a_file_are_as_long_as_they_are() {
    let mut settings = Settings { proto_max_bulk_len_bytes: 100, ..Settings::default() };
    settings.lengths.element_bytes_max = 100;
    let (from, to) = (keyspace(1), keyspace(2));
    for (key, text) in [("string", "incompressible".to_owned()), ("long", "x".repeat(5000))] {
        edit(&from, 0, key, |view, key| view.put_string(key, text.as_bytes(), Form::Auto, Expiry::Clear));
    }
    edit(&from, 0, "hash", |view, key| {
        let mut hash = view.hash_or_new(key).unwrap();
        for n in 0..15 {
            hash.set(format!("{n:050}").as_bytes(), format!("{n:060}").as_bytes(), Lifetime::Endless);
        }
    });
    edit(&from, 0, "ints", |view, key| {
        let mut set = view.set_or_new(key).unwrap();
        (0..100).for_each(|n| assert!(set.insert(format!("{}", n * 1_000_003).as_bytes())));
    });
    edit(&from, 0, "stream", |view, key| {
        let limits = view.settings().stream;
        view.stream_or_new(key).unwrap().add(Id { ms: 1, seq: 0 }, &OnePair("field", &[b'v'; 300]), &limits);
    });
    load_with(&to, &saved(&from), NOW, &settings).unwrap();
    assert!(contents(&from) == contents(&to));
    for (field, value) in [(101, 1), (1, 101)] {
        let from = keyspace(1);
        edit(&from, 0, "hash", |view, key| {
            let mut hash = view.hash_or_new(key).unwrap();
            // Not compressed, and kept as one block by the settings of that time.
            hash.set(&vec![b'f'; field], &vec![b'v'; value], Lifetime::Endless);
        });
        let refused = load_with(&keyspace(2), &saved(&from), NOW, &settings);
        assert!(format!("{refused:?}").contains("longer than it may be"), "{field} {value}: {refused:?}");
    }
}

/// The limits of a type may allow any length; a block is in memory as a whole, and no server reads one of 4
/// GB.
#[test]
fn a_collection_of_many_bytes_is_no_block_whatever_the_limits_allow() {
    let mut settings = Settings::default();
    settings.hash.value = u64::MAX;
    (settings.zset.listpack_value_bytes, settings.set.listpack_value_bytes) = (u64::MAX, u64::MAX);
    let form = ValueForm { version: VERSION_WRITTEN, compresses: false };
    for (bytes, is_block) in [(200, true), (2000, false)] {
        let keyspace = keyspace(1);
        let text = |n: usize| format!("{n:0bytes$}").into_bytes();
        edit(&keyspace, 0, "hash", |view, key| {
            let mut hash = view.hash_or_new(key).unwrap();
            (0..40).for_each(|n| assert!(hash.set(&text(n), b"1", Lifetime::Endless)));
        });
        edit(&keyspace, 0, "timed", |view, key| {
            let mut hash = view.hash_or_new(key).unwrap();
            (0..40).for_each(|n| assert!(hash.set(&text(n), b"1", Lifetime::Until(LATER))));
        });
        edit(&keyspace, 0, "zset", |view, key| {
            let mut zset = view.zset_or_new(key).unwrap();
            (0..40).for_each(|n| assert!(zset.update(&text(n), |_| Some(1.5)).is_none()));
        });
        let mut kinds = Vec::new();
        for db in keyspace.freeze(NOW, Policy::NoEviction).into_dbs() {
            let mut add = |entry: FrozenEntry<'_>| {
                kinds.push((entry.key.to_vec(), payload::dump(entry.value, &settings, form)[0]));
                ControlFlow::Continue(())
            };
            let _ = db.into_shards().try_for_each(|shard| shard.visit(&mut add));
        }
        kinds.sort();
        let expected = match is_block {
            true => [Type::HashListpack, Type::TimedHashListpack, Type::ZSetListpack],
            false => [Type::Hash, Type::TimedHash, Type::ZSet],
        };
        assert_eq!(kinds.iter().map(|kind| kind.1).collect::<Vec<_>>(), expected.map(|kind| kind as u8));
    }
}

/// A length that goes beyond the end of the file is refused before the rest of the file is read for it.
#[test]
fn a_length_beyond_the_end_of_the_file_has_nothing_read() {
    struct Counting<'c>(&'c std::cell::Cell<usize>, usize);
    impl io::Read for Counting<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let head = b"REDIS0010\x00\x01k\x81\x00\x00\x01\x00\x00\x00\x00\x00";
            let len = buffer.len().min(self.1);
            buffer[..len].fill(0);
            if self.0.get() == 0 {
                buffer[..head.len()].copy_from_slice(head);
            }
            self.0.set(self.0.get() + len);
            self.1 -= len;
            Ok(len)
        }
    }
    const LEN: usize = 64 << 20;
    let (keyspace, settings, read) = (keyspace(1), Settings::default(), std::cell::Cell::new(0));
    let go_on = || ControlFlow::Continue(());
    let rules =
        LoadRules { keyspace: &keyspace, settings: &settings, now: NOW, replaces: false, go_on: &go_on };
    let mut reader = FileReader::open(Counting(&read, LEN), LEN as u64, &settings, true).unwrap();
    assert!(matches!(reader.next_piece(), Ok(Piece::Large)));
    let refused = reader.load_key(&rules, &mut LoadCounts::default());
    assert!(format!("{refused:?}").contains("the file ends too early"), "{refused:?}");
    assert!(read.get() < LEN / 4, "{} bytes were read", read.get());
}
