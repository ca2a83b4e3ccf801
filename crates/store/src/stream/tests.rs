//! Streams and their groups against naive twins, and what copies share.
use super::group::{ConsumerId, Group};
use super::pending::Pending;
use super::references::{Fate, References};
use super::tree::{Acknowledgment, Id, Member, Stream};
use base::random::Random;
use base::{Item, Millis};
use pack::log::{Limits, Pairs, Precision, Trim};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

const LIMITS: Limits = Limits { bytes: 4096, entries: 100 };

struct One(&'static [u8], i64);

impl Pairs for One {
    fn count(&self) -> usize {
        1
    }
    fn name(&self, _index: usize) -> &[u8] {
        self.0
    }
    fn value(&self, _index: usize) -> Item<'_> {
        Item::Int(self.1)
    }
    fn text_bytes(&self) -> usize {
        self.0.len() + 1
    }
}

fn id(ms: u64) -> Id {
    Id { ms, seq: 0 }
}

fn stream_of(count: u64) -> Stream {
    let mut stream = Stream::default();
    (1..=count).for_each(|ms| stream.add(id(ms), &One(b"n", ms as i64), &LIMITS));
    stream
}

fn consumer(stream: &mut Stream, group: &[u8], name: &[u8]) -> ConsumerId {
    let group = stream.group_mut(group).unwrap();
    group.find_consumer(name).or_else(|| group.create_consumer(name, Millis(0))).unwrap()
}

/// Gives `count` entries to a consumer.
fn give(stream: &mut Stream, name: &[u8], count: u64) -> u64 {
    let consumer = consumer(stream, b"g", name);
    let member = Member { group: b"g", consumer, now: Millis(7) };
    stream.deliver(member, Some(count), Acknowledgment::Awaited, &mut |_| {})
}

fn pending_ids(group: &Group, consumer: Option<ConsumerId>) -> Vec<u64> {
    let mut ids = Vec::new();
    let mut visit = |pending: Pending| {
        ids.push(pending.id.ms);
        ControlFlow::Continue(())
    };
    match consumer {
        None => group.visit_pending(Id::MIN, &mut visit),
        Some(consumer) => group.visit_pending_of(consumer, Id::MIN, &mut visit),
    }
    ids
}

#[test]
fn a_group_and_its_consumers_hold_what_a_map_holds() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut group = Group::new(b"g", Id::MIN, None);
        let mut twin: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        // Few consumers that hold much, or many that come and go.
        let (names, deletions) = [(5, 1), (60, 15)][seed as usize % 2];
        for _ in 0..3000 {
            let (name, ms) = (vec![b'a' + random.below(names) as u8], random.below(300));
            match random.below(39 + deletions) {
                0..20 => {
                    let consumer = group.find_consumer(&name);
                    let consumer = consumer.or_else(|| group.create_consumer(&name, Millis(0))).unwrap();
                    group.hold(Pending { id: id(ms), consumer, delivered: Millis(1), count: 1 });
                    twin.insert(ms, name);
                }
                20..39 => assert_eq!(group.release(id(ms)), twin.remove(&ms).is_some(), "seed {seed}"),
                _ => {
                    let held = twin.values().filter(|holder| **holder == name).count() as u64;
                    let is_there = group.find_consumer(&name).is_some();
                    assert_eq!(group.delete_consumer(&name), is_there.then_some(held), "seed {seed}");
                    twin.retain(|_, holder| *holder != name);
                }
            }
        }
        assert!(pending_ids(&group, None).iter().eq(twin.keys()), "seed {seed}");
        let names: Vec<Vec<u8>> = group.consumers().map(|consumer| consumer.name().to_vec()).collect();
        assert!(names.is_sorted());
        for name in names {
            let held = twin.iter().filter(|(_, holder)| **holder == name).map(|(ms, _)| *ms);
            assert!(pending_ids(&group, group.find_consumer(&name)).into_iter().eq(held), "seed {seed}");
        }
    }
}

#[test]
fn a_copy_and_its_source_go_their_own_ways() {
    let mut stream = stream_of(1000);
    stream.create_group(b"g", Id::MIN, Some(0));
    give(&mut stream, b"c", 300);
    let copy = stream.clone();
    stream.group_mut(b"g").unwrap().release(id(5));
    stream.delete(id(6));
    stream.destroy_group(b"g");
    stream.trim_with(Trim::MaxLen(10), Precision::Exact, References::Keep);
    let group = copy.group(b"g").unwrap();
    assert_eq!((copy.len(), group.pending_len(), copy.contains(id(6))), (1000, 300, true));
    assert_eq!(copy.lag(group), Some(700));
}

#[test]
fn delivered_entries_are_counted_until_a_tombstone_lies_ahead() {
    let mut stream = stream_of(10);
    stream.create_group(b"g", Id::MIN, None);
    assert_eq!(give(&mut stream, b"c", 4), 4);
    let read = |stream: &Stream| {
        let group = stream.group(b"g").unwrap();
        (group.entries_read(), stream.lag(group))
    };
    assert_eq!(read(&stream), (Some(4), Some(6)));
    stream.delete(id(8));
    assert_eq!(read(&stream).1, None);
    give(&mut stream, b"c", 100);
    assert_eq!(read(&stream), (Some(10), Some(0)));
}

#[test]
fn references_keep_an_entry_or_go_with_it() {
    let mut stream = stream_of(5);
    stream.create_group(b"g", Id::MIN, Some(0));
    give(&mut stream, b"c", 3);
    stream.group_mut(b"g").unwrap().release(id(1));
    let fates = [1, 2, 4, 9].map(|ms| stream.delete_with(id(ms), References::Respect));
    assert_eq!(fates, [Fate::Deleted, Fate::Kept, Fate::Kept, Fate::Missing]);
    assert_eq!(stream.delete_with(id(2), References::Keep), Fate::Deleted);
    assert_eq!(stream.group(b"g").unwrap().pending_len(), 2);
    assert_eq!(stream.delete_with(id(2), References::Delete), Fate::Released);
    assert_eq!(stream.delete_with(id(2), References::Delete), Fate::Missing);
    assert_eq!(stream.group(b"g").unwrap().pending_len(), 1);
    assert_eq!(stream.trim_with(Trim::MaxLen(0), Precision::Exact, References::Respect), 0);
    assert_eq!(stream.trim_with(Trim::MaxLen(1), Precision::Exact, References::Delete), 2);
    assert_eq!(stream.group(b"g").unwrap().pending_len(), 0);
}

/// Numbers of deleted consumers are given again, so a group has no more places than it had consumers at once.
#[test]
fn a_group_has_as_many_places_as_it_had_consumers_at_once() {
    let mut random = Random::new(7);
    let mut group = Group::new(b"g", Id::MIN, None);
    let (mut names, mut most) = (Vec::new(), 0);
    for round in 0..3_000_u32 {
        if random.below(2) == 0 && !names.is_empty() {
            let name: [u8; 4] = names.swap_remove(random.below(names.len() as u64) as usize);
            assert_eq!(group.delete_consumer(&name), Some(0));
        } else {
            let ConsumerId(number) = group.create_consumer(&round.to_be_bytes(), Millis(0)).unwrap();
            names.push(round.to_be_bytes());
            most = most.max(names.len());
            assert!((number as usize) < most, "{number} of {most}");
        }
    }
    assert_eq!(group.consumers().count(), names.len());
}

#[test]
fn consumers_that_were_deleted_leave_no_room_behind() {
    const COUNT: u32 = 10_000;
    let mut group = Group::new(b"g", Id::MIN, None);
    for number in 0..COUNT {
        group.create_consumer(&number.to_be_bytes(), Millis(0)).unwrap();
    }
    let full_bytes = group.own_bytes();
    // All but one, which may not be given another number.
    for number in (0..COUNT).rev().filter(|number| *number != COUNT / 2) {
        assert_eq!(group.delete_consumer(&number.to_be_bytes()), Some(0));
    }
    assert!(group.own_bytes() < full_bytes / 4, "{} of {full_bytes}", group.own_bytes());
    assert_eq!(group.delete_consumer(&(COUNT / 2).to_be_bytes()), Some(0));
    assert!(group.own_bytes() < 500, "{}", group.own_bytes());
}
