//! Values of every type and of many sizes, made at random, and checks that they are still what they were.
use crate::{Acknowledgment, End, Expiry, Form, Id, Key, Kind, Lifetime, Member, Pairs, Settings, View};
use base::random::Random;
use base::{Item, Millis};

/// What a value must be when it is looked at again.
#[derive(Clone)]
pub(super) enum Made {
    Text(Vec<u8>),
    /// So many elements.
    Collection(Kind, u64),
}

impl Made {
    pub(super) fn check(&self, view: &mut View<'_>, key: &Key<'_>) {
        match self {
            Made::Text(text) => {
                let mut found = Vec::new();
                let item = view.string(key).expect("a string").expect("it is there");
                item.append_to(&mut found);
                assert_eq!(&found, text, "a string is what was written");
            }
            Made::Collection(kind, len) => {
                let found = match kind {
                    Kind::List => view.list(key).expect("a list").map_or(0, |list| list.len()),
                    Kind::Hash => view.hash(key).expect("a hash").map_or(0, |hash| hash.len()),
                    Kind::Set => view.set(key).expect("a set").map_or(0, |set| set.len()),
                    Kind::ZSet => view.zset(key).expect("a sorted set").map_or(0, |set| set.len()),
                    _ => view.stream(key).expect("a stream").map_or(0, |stream| stream.len()),
                };
                assert_eq!(found, *len, "{} has all its elements", kind.name());
            }
        }
    }
}

/// Writes a new value over what is there. Some fields of hashes fall due at `deadline`.
pub(super) fn put(view: &mut View<'_>, key: &Key<'_>, deadline: Millis, random: &mut Random) -> Made {
    let count = [3, 20, 150, 700][random.below(4) as usize];
    let count = 1 + random.below(count);
    view.remove(key);
    match random.below(8) {
        0..3 => put_text(view, key, random),
        3 => {
            let mut list = view.list_or_new(key).expect("nothing is there");
            for _ in 0..count {
                let end = if random.below(2) == 0 { End::Head } else { End::Tail };
                list.push(end, &word(random));
            }
            Made::Collection(Kind::List, list.len())
        }
        4 => {
            let mut hash = view.hash_or_new(key).expect("nothing is there");
            for _ in 0..count {
                let lifetime =
                    if random.below(8) == 0 { Lifetime::Until(deadline) } else { Lifetime::Endless };
                hash.set(&word(random), &word(random), lifetime);
            }
            Made::Collection(Kind::Hash, hash.len())
        }
        5 => {
            let mut set = view.set_or_new(key).expect("nothing is there");
            for _ in 0..count {
                set.insert(&word(random));
            }
            Made::Collection(Kind::Set, set.len())
        }
        6 => {
            let mut set = view.zset_or_new(key).expect("nothing is there");
            for _ in 0..count {
                let score = random.below(1000) as f64;
                set.update(&word(random), |_| Some(score));
            }
            Made::Collection(Kind::ZSet, set.len())
        }
        _ => put_stream(view, key, count, random),
    }
}

/// Writes a string: a short one, which lies inside its entry, or a longer one behind a pointer, in the arena
/// or in a mapping of its own.
fn put_text(view: &mut View<'_>, key: &Key<'_>, random: &mut Random) -> Made {
    let bytes_max = [20, 600, 40_000, 2_000_000][(random.below(64) as usize).saturating_sub(60).min(3)];
    let bytes_max = if random.below(4) == 0 { bytes_max.max(600) } else { bytes_max };
    let text = match random.below(3) {
        0 => random.below(1 << 40).to_string().into_bytes(),
        _ => vec![b'a' + random.below(26) as u8; random.below(bytes_max) as usize],
    };
    view.put_string(key, &text, Form::Auto, Expiry::Clear);
    if random.below(4) > 0 {
        return Made::Text(text);
    }
    let tail = word(random);
    view.append(key, &tail).expect("a string");
    Made::Text([text, tail].concat())
}

fn word(random: &mut Random) -> Vec<u8> {
    match random.below(4) {
        0 => random.below(1000).to_string().into_bytes(),
        1 => random.next_u64().to_string().into_bytes(),
        2 => format!("member:{}", random.below(5000)).into_bytes(),
        _ => vec![b'a' + random.below(26) as u8; random.below(90) as usize],
    }
}

/// An entry's one field.
struct Field(i64);

impl Pairs for Field {
    fn count(&self) -> usize {
        1
    }
    fn name(&self, _index: usize) -> &[u8] {
        b"field"
    }
    fn value(&self, _index: usize) -> Item<'_> {
        Item::Int(self.0)
    }
    fn text_bytes(&self) -> usize {
        12
    }
}

fn put_stream(view: &mut View<'_>, key: &Key<'_>, count: u64, random: &mut Random) -> Made {
    let (limits, now) = (Settings::default().stream, view.now());
    let mut stream = view.stream_or_new(key).expect("nothing is there");
    for ms in 1..=count {
        stream.add(Id { ms, seq: 0 }, &Field(random.below(1 << 30) as i64), &limits);
    }
    stream.create_group(b"group", Id::MIN, Some(0));
    let group = stream.group_mut(b"group").expect("it was just made");
    let consumer = group.create_consumer(b"consumer", now).expect("the first");
    let member = Member { group: b"group", consumer, now };
    stream.deliver(member, Some(count / 2), Acknowledgment::Awaited, &mut |_| {});
    Made::Collection(Kind::Stream, count)
}
