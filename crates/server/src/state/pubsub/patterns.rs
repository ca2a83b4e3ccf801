//! The patterns of PSUBSCRIBE, indexed so that a message is compared with few of them.
//!
//! ```text
//! news.*          bucket "news." of prefixes
//! user:*:1000     bucket "user:" of prefixes, or if that is full ":1000" of suffixes
//! *sport*         bucket "port" of inner parts
//! *               the loose ones, which are always tried
//! ```
//!
//! Every text that a pattern matches has the pattern's literal parts (`base::glob_parts`). A pattern stands
//! in one bucket, under one of its parts: the first of prefix, suffix and inner parts whose bucket is not
//! full, otherwise the one whose bucket has the fewest. So patterns that share a beginning are told apart by
//! what else they have. A channel is looked up by as many of its beginnings and ends as there are lengths in
//! use, and by all its parts of up to four bytes if there are inner parts in use; what lies in the buckets
//! found is compared. A thousand patterns of which one matches take a look-up or two.
use super::few::Few;
use super::space::{Receivers, give_room_back};
use super::{Joined, Name};
use base::glob::matches;
use base::glob_parts::Parts;
use base::hash::{Map, Set};
use std::collections::BTreeMap;

/// A bucket with this many patterns is full: a new pattern goes to another if it can.
const BUCKET_FULL: usize = 16;
/// Prefixes and suffixes are looked at up to this length, so that there are not too many lengths.
const END_BYTES_MAX: usize = 64;
/// Inner parts are cut into pieces of this length; shorter ones have their own.
const INNER_BYTES_MAX: usize = 4;

#[derive(Default)]
pub(super) struct Patterns {
    /// Where each pattern stands.
    places: Map<Name, Place>,
    prefixes: Side,
    suffixes: Side,
    inners: Side,
    loose: Bucket,
    /// The number of the newest pattern; patterns are numbered in the order in which they come.
    last: u64,
}

struct Place {
    number: u64,
    part: Part,
}

/// Which part of a pattern is its key.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Prefix(Box<[u8]>),
    Suffix(Box<[u8]>),
    Inner(Box<[u8]>),
    None,
}

/// Patterns by one kind of their parts.
#[derive(Default)]
struct Side {
    buckets: Map<Box<[u8]>, Bucket>,
    /// How many buckets have keys of each length.
    lengths: BTreeMap<usize, usize>,
}

/// Patterns by their numbers. Where they are told apart well, most stand alone.
type Bucket = Few<u64, Pattern>;

struct Pattern {
    name: Name,
    receivers: Receivers,
}

/// A pattern that matches.
pub(super) struct Matching<'p> {
    number: u64,
    pub(super) name: &'p Name,
    pub(super) receivers: &'p Receivers,
}

impl Patterns {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// One connection of this worker more listens to what this pattern matches.
    pub(super) fn add(&mut self, pattern: &[u8], worker: usize) -> Joined {
        if let Some((name, Place { number, part })) = self.places.get_key_value(pattern) {
            let (name, number, part) = (Name::clone(name), *number, part.clone());
            if let Some(known) = self.bucket(&part).get_mut(number) {
                known.receivers.add(worker);
            }
            return Joined { name, is_first: false };
        }
        let (name, part) = (Name::from(pattern), self.choose(pattern));
        self.last += 1;
        let mut receivers = Receivers::default();
        receivers.add(worker);
        let number = self.last;
        self.bucket(&part).insert(number, Pattern { name: Name::clone(&name), receivers });
        self.places.insert(Name::clone(&name), Place { number, part });
        Joined { name, is_first: true }
    }

    /// One connection of this worker less listens to what this pattern matches.
    pub(super) fn remove(&mut self, pattern: &[u8], worker: usize) {
        let Some(Place { number, part }) = self.places.get(pattern) else { return };
        let (number, part) = (*number, part.clone());
        let bucket = self.bucket(&part);
        let Some(known) = bucket.get_mut(number) else { return };
        known.receivers.remove(worker);
        if !known.receivers.is_empty() {
            return;
        }
        bucket.remove(number);
        let is_empty = bucket.is_empty();
        self.places.remove(pattern);
        give_room_back(&mut self.places);
        if is_empty {
            match &part {
                Part::Prefix(key) => self.prefixes.remove(key),
                Part::Suffix(key) => self.suffixes.remove(key),
                Part::Inner(key) => self.inners.remove(key),
                Part::None => {}
            }
        }
    }

    /// Appends the patterns that match this channel, in the order in which they came.
    pub(super) fn find<'p>(&'p self, channel: &[u8], into: &mut Vec<Matching<'p>>) {
        let len = channel.len();
        for length in self.prefixes.lengths.range(..=len).map(|(length, _)| *length) {
            compare(self.prefixes.buckets.get(&channel[..length]), channel, into);
        }
        for length in self.suffixes.lengths.range(..=len).map(|(length, _)| *length) {
            compare(self.suffixes.buckets.get(&channel[len - length..]), channel, into);
        }
        for length in self.inners.lengths.range(..=len).map(|(length, _)| *length) {
            let mut seen = Set::default();
            for part in channel.windows(length) {
                let bucket = self.inners.buckets.get(part);
                if bucket.is_some() && seen.insert(part) {
                    compare(bucket, channel, into);
                }
            }
        }
        compare(Some(&self.loose), channel, into);
        into.sort_unstable_by_key(|matching| matching.number);
    }

    /// The part under which a new pattern is to stand.
    fn choose(&self, pattern: &[u8]) -> Part {
        let parts = Parts::of(pattern);
        let prefix = &parts.prefix[..parts.prefix.len().min(END_BYTES_MAX)];
        let suffix = &parts.suffix[parts.suffix.len().saturating_sub(END_BYTES_MAX)..];
        let pieces = parts.inner.iter().flat_map(|inner| inner.windows(inner.len().min(INNER_BYTES_MAX)));
        let prefix = (!prefix.is_empty()).then(|| (self.prefixes.load(prefix), Part::Prefix(prefix.into())));
        let suffix = (!suffix.is_empty()).then(|| (self.suffixes.load(suffix), Part::Suffix(suffix.into())));
        let ends = prefix.into_iter().chain(suffix);
        let mut best = (usize::MAX, Part::None);
        for (load, part) in ends.chain(pieces.map(|key| (self.inners.load(key), Part::Inner(key.into())))) {
            if load < BUCKET_FULL {
                return part;
            }
            if load < best.0 {
                best = (load, part);
            }
        }
        best.1
    }

    /// The bucket of this part; a new one where there is none.
    fn bucket(&mut self, part: &Part) -> &mut Bucket {
        match part {
            Part::Prefix(key) => self.prefixes.bucket(key),
            Part::Suffix(key) => self.suffixes.bucket(key),
            Part::Inner(key) => self.inners.bucket(key),
            Part::None => &mut self.loose,
        }
    }
}

impl Side {
    /// How many patterns stand under this key.
    fn load(&self, key: &[u8]) -> usize {
        self.buckets.get(key).map_or(0, Bucket::len)
    }

    fn bucket(&mut self, key: &[u8]) -> &mut Bucket {
        if !self.buckets.contains_key(key) {
            *self.lengths.entry(key.len()).or_default() += 1;
        }
        self.buckets.entry(key.into()).or_default()
    }

    /// Removes a bucket that has become empty.
    fn remove(&mut self, key: &[u8]) {
        if self.buckets.remove(key).is_some()
            && let Some(count) = self.lengths.get_mut(&key.len())
        {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&key.len());
            }
            give_room_back(&mut self.buckets);
        }
    }
}

/// Appends the patterns of a bucket that match.
fn compare<'p>(bucket: Option<&'p Bucket>, channel: &[u8], into: &mut Vec<Matching<'p>>) {
    let patterns = bucket.into_iter().flat_map(Bucket::iter);
    let matching = patterns.filter(|(_, pattern)| matches(&pattern.name, channel));
    into.extend(matching.map(|(number, Pattern { name, receivers })| Matching { number, name, receivers }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    /// The patterns that match, by the index.
    fn found(patterns: &Patterns, channel: &[u8]) -> Vec<Vec<u8>> {
        let mut matching = Vec::new();
        patterns.find(channel, &mut matching);
        matching.iter().map(|m| m.name.to_vec()).collect()
    }

    fn word(random: &mut Random, letters: &[u8], len_max: u64) -> Vec<u8> {
        (0..random.below(len_max + 1)).map(|_| letters[random.below(letters.len() as u64) as usize]).collect()
    }

    #[test]
    fn the_index_finds_what_trying_all_patterns_finds() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let (mut patterns, mut all) = (Patterns::default(), Vec::<(Vec<u8>, usize)>::new());
            for _ in 0..2000 {
                let pattern = word(&mut random, b"ab*?[]\\^-", 9);
                let worker = random.below(3) as usize;
                if random.below(3) > 0 && !all.contains(&(pattern.clone(), worker)) {
                    patterns.add(&pattern, worker);
                    all.push((pattern, worker));
                } else if !all.is_empty() {
                    let (pattern, worker) = all.remove(random.below(all.len() as u64) as usize);
                    patterns.remove(&pattern, worker);
                }
                let channel = word(&mut random, b"ab]\\", 12);
                let mut expected: Vec<Vec<u8>> = all.iter().map(|(pattern, _)| pattern.clone()).collect();
                expected.retain(|pattern| matches(pattern, &channel));
                let mut found = found(&patterns, &channel);
                expected.sort();
                found.sort();
                expected.dedup();
                assert_eq!(found, expected, "seed {seed}, channel {channel:?}");
            }
            all.into_iter().for_each(|(pattern, worker)| patterns.remove(&pattern, worker));
            assert_eq!(patterns.len(), 0);
            let sides = [&patterns.prefixes, &patterns.suffixes, &patterns.inners];
            assert!(sides.iter().all(|side| side.buckets.is_empty() && side.lengths.is_empty()));
            assert!(patterns.loose.is_empty());
        }
    }

    /// How many patterns are compared with this channel.
    fn compared(patterns: &Patterns, channel: &[u8]) -> usize {
        let (len, mut count) = (channel.len(), patterns.loose.len());
        let ends = |side: &Side, of: &dyn Fn(usize) -> Vec<u8>| -> usize {
            side.lengths.range(..=len).map(|(length, _)| side.load(&of(*length))).sum()
        };
        count += ends(&patterns.prefixes, &|length| channel[..length].to_vec());
        count += ends(&patterns.suffixes, &|length| channel[len - length..].to_vec());
        for length in patterns.inners.lengths.range(..=len).map(|(length, _)| *length) {
            let parts: Set<&[u8]> = channel.windows(length).collect();
            count += parts.iter().map(|part| patterns.inners.load(part)).sum::<usize>();
        }
        count
    }

    #[test]
    fn of_many_patterns_few_are_compared() {
        let shapes: [fn(u32) -> String; 6] = [
            |n| format!("news.{n}.*"),
            |n| format!("*.of.{n}"),
            |n| format!("user:*:{n}"),
            |n| format!("*<{n:06}>*"),
            |n| format!("a*<{n:06}>*z"),
            |n| format!("exact.{n}"),
        ];
        for shape in shapes {
            let mut patterns = Patterns::default();
            (0..100_000).for_each(|n| {
                patterns.add(shape(n).as_bytes(), 0);
            });
            let channel = shape(777).replace('*', "x");
            assert_eq!(found(&patterns, channel.as_bytes()), [shape(777).as_bytes()]);
            let compared = compared(&patterns, channel.as_bytes());
            assert!(compared <= 2000, "{compared} of patterns like {}", shape(777));
        }
    }
}
