//! Which client has read which key, in about 10 bytes for each pair of both: names of keys are not kept.
//!
//! ```text
//! hash of the key   63                                       12 11      6 5     0
//!                   [ 52 bits, kept in the entry               | bucket | part  ]
//! entry   words[i]  [ hash 12 .. 56 (44 bits) | slot of the client (20 bits) ]
//!         tops[i]   [ hash 56 .. 64 (8 bits) ]
//! ```
//!
//! The table is cut into 64 parts, each behind a lock of its own, and a part into buckets of about 128
//! entries, which are searched from end to end. The number of the part and that of the bucket are the low
//! bits of the hash, so no bit of it is lost, and two keys are taken for one only where all 64 bits agree.
//! A part has 64 buckets at least. It grows by one bucket at a time (linear hashing): the entries of the next
//! bucket in turn are divided by one more bit of the hash, so no insertion takes longer than a bucket does.
//!
//! Cost of an entry: 9 bytes, up to an eighth more for the room that a bucket keeps, and 48 bytes for each
//! bucket. The test `a_million_keys_take_at_most_12_bytes_each` measures it.
use base::hash::Hash;
use base::random::Random;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number by which the table names a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(pub(crate) u32);

/// How many bits of an entry are the client's slot.
pub(crate) const SLOT_BITS: u32 = 20;
const PART_BITS: u32 = 6;
/// A part has at least this many buckets, as a power of two.
const BUCKET_BITS: u32 = 6;
/// How many bits of the hash follow from an entry's part and bucket.
const PLACE_BITS: u32 = PART_BITS + BUCKET_BITS;
/// How many bits of the hash lie in an entry's word.
const WORD_HASH_BITS: u32 = 64 - SLOT_BITS;
const _: () = assert!(PLACE_BITS + WORD_HASH_BITS + u8::BITS == 64, "no bit of the hash is lost");
/// A part gets one more bucket when its buckets hold more than this many entries in the mean.
const ENTRIES_MEAN: usize = 128;
/// A bucket that has no room for one more entry grows by an eighth, but by so many at least.
const ROOM_MIN: usize = 4;

/// Entries of keys whose hashes end with the same bits.
#[derive(Default)]
struct Bucket {
    words: Vec<u64>,
    tops: Vec<u8>,
}

impl Bucket {
    fn len(&self) -> usize {
        self.words.len()
    }

    /// What it has allocated.
    fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>() + self.tops.capacity()
    }

    /// Whether entry `index` is of this key.
    fn is_of(&self, index: usize, hash: Hash) -> bool {
        self.words[index] >> SLOT_BITS == word_hash(hash) && self.tops[index] == top(hash)
    }

    fn push(&mut self, word: u64, top: u8) {
        if self.words.len() == self.words.capacity() {
            let more = (self.words.len() / 8).max(ROOM_MIN);
            self.words.reserve_exact(more);
            self.tops.reserve_exact(more);
        }
        self.words.push(word);
        self.tops.push(top);
    }

    /// Takes out the entries for which `is_out` is true and calls `taken` with each, in no order. Gives room
    /// back if less than half of it is still used.
    fn take(&mut self, mut is_out: impl FnMut(&Bucket, usize) -> bool, mut taken: impl FnMut(u64, u8)) {
        let before = self.len();
        let mut index = 0;
        while index < self.len() {
            if is_out(self, index) {
                taken(self.words.swap_remove(index), self.tops.swap_remove(index));
            } else {
                index += 1;
            }
        }
        if self.len() < before && self.len() < self.words.capacity() / 2 {
            self.words.shrink_to_fit();
            self.tops.shrink_to_fit();
        }
    }
}

fn word_hash(hash: Hash) -> u64 {
    hash.0 << u8::BITS >> (u8::BITS + PLACE_BITS)
}

fn top(hash: Hash) -> u8 {
    (hash.0 >> (u64::BITS - u8::BITS)) as u8
}

/// The hash of an entry, whose lowest bits, those of its part and bucket, are `place`.
fn hash_of(word: u64, top: u8, place: u64) -> Hash {
    Hash(u64::from(top) << (u64::BITS - u8::BITS) | word >> SLOT_BITS << PLACE_BITS | place)
}

fn slot_of(word: u64) -> Slot {
    Slot((word & ((1 << SLOT_BITS) - 1)) as u32)
}

/// Entries of keys whose hashes have the same lowest 6 bits.
#[derive(Default)]
struct Part {
    /// None until somebody reads a key.
    buckets: Vec<Bucket>,
    entries: usize,
    keys: u64,
    /// What the buckets have allocated.
    bytes: usize,
}

impl Part {
    /// The bucket of this key, where there are `count` of them.
    fn index(hash: Hash, count: usize) -> usize {
        let rest = (hash.0 >> PART_BITS) as usize;
        let wide = rest & (count.next_power_of_two() - 1);
        if wide < count { wide } else { rest & (count.next_power_of_two() / 2 - 1) }
    }

    /// Works on one bucket and keeps count of what it takes.
    fn change<R>(&mut self, index: usize, work: impl FnOnce(&mut Bucket) -> R) -> R {
        let bucket = &mut self.buckets[index];
        let (bytes, entries) = (bucket.bytes(), bucket.len());
        let result = work(bucket);
        self.bytes = self.bytes + bucket.bytes() - bytes;
        self.entries = self.entries + bucket.len() - entries;
        result
    }

    /// Adds a bucket, and moves to it what belongs there from the bucket that has held its entries so far.
    fn grow(&mut self, part: u64) {
        let count = self.buckets.len();
        let from = count - count.next_power_of_two() / if count.is_power_of_two() { 1 } else { 2 };
        let place = part | (from as u64 & ((1 << BUCKET_BITS) - 1)) << PART_BITS;
        self.buckets.push(Bucket::default());
        let mut moved = Vec::new();
        let goes = |bucket: &Bucket, index: usize| {
            let hash = hash_of(bucket.words[index], bucket.tops[index], place);
            Part::index(hash, count + 1) == count
        };
        self.change(from, |bucket| bucket.take(goes, |word, top| moved.push((word, top))));
        self.change(count, |bucket| {
            bucket.words.reserve_exact(moved.len());
            bucket.tops.reserve_exact(moved.len());
            moved.into_iter().for_each(|(word, top)| bucket.push(word, top));
        });
    }

    fn all_bytes(&self) -> usize {
        self.bytes + self.buckets.capacity() * size_of::<Bucket>()
    }
}

/// See the file's opener.
pub(super) struct Table {
    parts: [Mutex<Part>; 1 << PART_BITS],
    /// INFO's tracking_total_keys and tracking_total_items.
    keys: AtomicU64,
    items: AtomicU64,
}

impl Table {
    /// An empty table. Each part allocates when it gets its first key.
    pub(super) fn new() -> Table {
        Table {
            parts: std::array::from_fn(|_| Mutex::default()),
            keys: AtomicU64::new(0),
            items: AtomicU64::new(0),
        }
    }

    /// How many keys it holds.
    pub(super) fn keys(&self) -> u64 {
        self.keys.load(Relaxed)
    }

    /// How many pairs of a key and a client it holds.
    pub(super) fn items(&self) -> u64 {
        self.items.load(Relaxed)
    }

    /// What it has allocated.
    pub(super) fn bytes(&self) -> usize {
        self.parts.iter().map(|part| locked(part).all_bytes()).sum()
    }

    /// Notes that this client has read this key. Returns whether that was not known. Searches one bucket.
    pub(super) fn insert(&self, hash: Hash, slot: Slot) -> bool {
        let number = part_of(hash);
        let mut part = locked(&self.parts[number]);
        if part.buckets.is_empty() {
            part.buckets.resize_with(1 << BUCKET_BITS, Bucket::default);
        }
        let index = Part::index(hash, part.buckets.len());
        let bucket = &part.buckets[index];
        let word = word_hash(hash) << SLOT_BITS | u64::from(slot.0);
        let mut is_known_key = false;
        for at in 0..bucket.len() {
            if bucket.is_of(at, hash) {
                is_known_key = true;
                if bucket.words[at] == word {
                    return false;
                }
            }
        }
        part.change(index, |bucket| bucket.push(word, top(hash)));
        if part.entries > part.buckets.len() * ENTRIES_MEAN {
            part.grow(number as u64);
        }
        part.keys += u64::from(!is_known_key);
        self.items.fetch_add(1, Relaxed);
        self.keys.fetch_add(u64::from(!is_known_key), Relaxed);
        true
    }

    /// Forgets this key. Returns who has read it.
    pub(super) fn take(&self, hash: Hash) -> Vec<Slot> {
        let mut part = locked(&self.parts[part_of(hash)]);
        let mut slots = Vec::new();
        if part.entries > 0 {
            let index = Part::index(hash, part.buckets.len());
            let is_of = |bucket: &Bucket, at: usize| bucket.is_of(at, hash);
            part.change(index, |bucket| bucket.take(is_of, |word, _| slots.push(slot_of(word))));
        }
        if !slots.is_empty() {
            part.keys -= 1;
            self.items.fetch_sub(slots.len() as u64, Relaxed);
            self.keys.fetch_sub(1, Relaxed);
        }
        slots
    }

    /// A key that somebody has read, chosen at random: an entry of the first bucket that is not empty from a
    /// random one on, so not every key is equally likely. None if there is no key.
    pub(super) fn any(&self, random: &mut Random) -> Option<Hash> {
        let start = random.below(self.parts.len() as u64) as usize;
        for number in (0..self.parts.len()).map(|step| (start + step) % self.parts.len()) {
            let part = locked(&self.parts[number]);
            if part.entries == 0 {
                continue;
            }
            let first = random.below(part.buckets.len() as u64) as usize;
            let turn = (0..part.buckets.len()).map(|step| (first + step) % part.buckets.len());
            let (index, bucket) = turn.map(|at| (at, &part.buckets[at])).find(|(_, b)| b.len() > 0)?;
            let at = random.below(bucket.len() as u64) as usize;
            let place = number as u64 | (index as u64 & ((1 << BUCKET_BITS) - 1)) << PART_BITS;
            return Some(hash_of(bucket.words[at], bucket.tops[at], place));
        }
        None
    }

    /// Forgets what the clients with these slots have read. Goes through the whole table.
    pub(super) fn forget(&self, is_gone: impl Fn(Slot) -> bool) {
        for (number, part) in self.parts.iter().enumerate() {
            let mut part = locked(part);
            for index in 0..part.buckets.len() {
                let place = number as u64 | (index as u64 & ((1 << BUCKET_BITS) - 1)) << PART_BITS;
                let mut gone = Vec::new();
                part.change(index, |bucket| {
                    let is_out = |bucket: &Bucket, at: usize| is_gone(slot_of(bucket.words[at]));
                    bucket.take(is_out, |word, top| gone.push(hash_of(word, top, place)));
                });
                self.items.fetch_sub(gone.len() as u64, Relaxed);
                gone.sort_unstable();
                gone.dedup();
                let bucket = &part.buckets[index];
                let is_left = |hash: &Hash| (0..bucket.len()).any(|at| bucket.is_of(at, *hash));
                let lost = gone.iter().filter(|hash| !is_left(hash)).count() as u64;
                part.keys -= lost;
                self.keys.fetch_sub(lost, Relaxed);
            }
        }
    }

    /// Forgets everything and gives all memory back.
    pub(super) fn clear(&self) {
        for part in &self.parts {
            let gone = std::mem::take(&mut *locked(part));
            self.items.fetch_sub(gone.entries as u64, Relaxed);
            self.keys.fetch_sub(gone.keys, Relaxed);
        }
    }
}

fn part_of(hash: Hash) -> usize {
    (hash.0 & ((1 << PART_BITS) - 1)) as usize
}

fn locked(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn no_bit_of_a_hash_is_lost() {
        let mut random = Random::new(11);
        for _ in 0..1000 {
            let hash = Hash(random.next_u64());
            let word = word_hash(hash) << SLOT_BITS | 7;
            assert_eq!(hash_of(word, top(hash), hash.0 & ((1 << PLACE_BITS) - 1)), hash);
            assert_eq!(slot_of(word), Slot(7));
        }
    }

    /// Compares the table with a map of sets, for few different hashes, so that many keys share a bucket.
    #[test]
    fn it_is_what_a_map_of_sets_would_be() {
        let mut random = Random::new(20);
        let table = Table::new();
        let mut model: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
        for step in 0..400_000_u64 {
            // Most hashes fall into one part, which has to grow many times.
            let hash = random.below(30_000).wrapping_mul(0x9E37_79B9_7F4A_7C15) & !63 | (step % 50 / 49);
            let slot = random.below(3) as u32;
            match random.below(10) {
                0 => {
                    let mut slots: Vec<u32> = table.take(Hash(hash)).iter().map(|slot| slot.0).collect();
                    slots.sort_unstable();
                    let expected: Vec<u32> = model.remove(&hash).unwrap_or_default().into_iter().collect();
                    assert_eq!(slots, expected);
                }
                _ => {
                    let is_new = model.entry(hash).or_default().insert(slot);
                    assert_eq!(table.insert(Hash(hash), Slot(slot)), is_new);
                }
            }
            if step % 100_000 == 70_000 {
                table.forget(|slot| slot == Slot(1));
                model.retain(|_, slots| {
                    slots.remove(&1);
                    !slots.is_empty()
                });
            }
        }
        assert_eq!(table.keys(), model.len() as u64);
        assert_eq!(table.items(), model.values().map(BTreeSet::len).sum::<usize>() as u64);
        for _ in 0..1000 {
            let hash = table.any(&mut random).expect("it holds keys");
            assert!(model.contains_key(&hash.0));
        }
        table.clear();
        assert_eq!((table.keys(), table.items(), table.bytes()), (0, 0, 0));
    }

    #[test]
    fn a_million_keys_take_at_most_12_bytes_each() {
        let table = Table::new();
        let mut random = Random::new(3);
        for count in 1..=1_600_000_u64 {
            table.insert(Hash(random.next_u64()), Slot(5));
            if count >= 1_000_000 && count % 100_000 == 0 {
                let each = table.bytes() as f64 / count as f64;
                assert!(each <= 12.0, "{each} at {count}");
            }
        }
    }
}
