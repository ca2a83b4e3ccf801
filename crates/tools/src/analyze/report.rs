//! What a report says, added up key by key.
use crate::analyze::prefix::prefix;
use crate::scratch::Found;
use crate::tally::Tally;
use base::Millis;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use store::Deadline;

/// More prefixes than these are added up as one, so that random names do not fill memory.
const PREFIXES_MAX: usize = 50_000;
const OTHERS: &str = "(other prefixes)";
const BIGGEST_MAX: usize = 20;
/// The classes of sizes end in front of these bytes.
const SIZES: [(u64, &str); 7] = [
    (64, "below 64 B"),
    (256, "64 to 255 B"),
    (1 << 10, "256 B to 1 KiB"),
    (16 << 10, "1 to 16 KiB"),
    (256 << 10, "16 to 256 KiB"),
    (4 << 20, "256 KiB to 4 MiB"),
    (u64::MAX, "4 MiB and more"),
];
/// The classes of times end in front of these seconds.
const TIMES: [(i64, &str); 4] =
    [(3600, "within an hour"), (86_400, "within a day"), (7 * 86_400, "within a week"), (i64::MAX, "longer")];

/// A large key: its bytes, database, name, type and elements.
pub(crate) type Big = (u64, u16, Vec<u8>, &'static str, u64);

#[derive(Default)]
pub(crate) struct Report {
    pub(crate) source: String,
    /// Who wrote or serves the data.
    pub(crate) writer: String,
    pub(crate) total: Tally,
    pub(crate) kinds: BTreeMap<&'static str, Tally>,
    pub(crate) prefixes: BTreeMap<String, BTreeMap<&'static str, Tally>>,
    pub(crate) sizes: [Tally; SIZES.len()],
    pub(crate) expiries: [Tally; TIMES.len()],
    pub(crate) endless: Tally,
    pub(crate) idles: [Tally; TIMES.len()],
    biggest: BinaryHeap<Reverse<Big>>,
    /// Keys that had expired, and were left out.
    pub(crate) expired: u64,
    /// What MEMORY USAGE says of all keys together; 0 where nobody says so.
    pub(crate) source_key_bytes: u64,
    /// What the source uses in all.
    pub(crate) source_bytes: Option<u64>,
    /// What the keys were measured to take in Sardine, all of it.
    pub(crate) sardine_bytes: u64,
    /// One key in so many was looked at. What is added up is multiplied by that.
    pub(crate) sample: u64,
    /// How many keys were.
    pub(crate) looked_at: u64,
    /// Keys that could not be read, and the first reason.
    pub(crate) unread: u64,
    pub(crate) why_unread: String,
}

impl Report {
    /// Adds a key, and how long it has not been used, where the source says that.
    pub(crate) fn add(&mut self, found: &Found<'_>, now: Millis, idle_s: Option<i64>) {
        let (tally, kind) = (found.tally(), found.info.kind.name());
        self.total.add(tally);
        self.kinds.entry(kind).or_default().add(tally);
        let mut prefix = prefix(found.name);
        if self.prefixes.len() >= PREFIXES_MAX && !self.prefixes.contains_key(&prefix) {
            prefix = OTHERS.into();
        }
        self.prefixes.entry(prefix).or_default().entry(kind).or_default().add(tally);
        let size = SIZES.iter().position(|(end, _)| tally.bytes < *end).unwrap_or(SIZES.len() - 1);
        self.sizes[size].add(tally);
        match found.deadline {
            Deadline::Never => self.endless.add(tally),
            Deadline::At(at) => self.expiries[time_class(at.since(now) / 1000)].add(tally),
        }
        if let Some(idle_s) = idle_s {
            self.idles[time_class(idle_s)].add(tally);
        }
        if self.biggest.len() < BIGGEST_MAX
            || self.biggest.peek().is_some_and(|least| least.0.0 < tally.bytes)
        {
            let big = (tally.bytes, found.db, found.name.to_vec(), kind, found.info.len);
            self.biggest.push(Reverse(big));
            if self.biggest.len() > BIGGEST_MAX {
                self.biggest.pop();
            }
        }
    }

    /// The sums become those of all keys, of which one in `sample` was looked at.
    pub(crate) fn multiply(&mut self) {
        self.looked_at = self.total.keys;
        let prefixes = self.prefixes.values_mut().flat_map(BTreeMap::values_mut);
        let classes = self.sizes.iter_mut().chain(&mut self.expiries).chain(&mut self.idles);
        let sums = [&mut self.total, &mut self.endless].into_iter().chain(self.kinds.values_mut());
        sums.chain(prefixes).chain(classes).for_each(|tally| tally.multiply(self.sample));
        for bytes in [&mut self.sardine_bytes, &mut self.source_key_bytes] {
            *bytes = bytes.saturating_mul(self.sample);
        }
    }

    /// What all takes beyond the keys and their shares of leaves: nodes, and the wheels of deadlines.
    pub(crate) fn beside_keys_bytes(&self) -> u64 {
        self.sardine_bytes.saturating_sub(self.total.bytes)
    }

    /// The biggest keys, the biggest first.
    pub(crate) fn biggest(&self) -> Vec<&Big> {
        let mut biggest: Vec<&Big> = self.biggest.iter().map(|big| &big.0).collect();
        biggest.sort_by(|a, b| b.cmp(a));
        biggest
    }

    /// The prefixes, those that take most first.
    pub(crate) fn by_prefix(&self) -> Vec<(&str, Tally, &BTreeMap<&'static str, Tally>)> {
        let sum = |kinds: &BTreeMap<_, Tally>| {
            kinds.values().fold(Tally::default(), |mut sum, tally| {
                sum.add(*tally);
                sum
            })
        };
        let mut all: Vec<_> =
            self.prefixes.iter().map(|(prefix, kinds)| (prefix.as_str(), sum(kinds), kinds)).collect();
        all.sort_by_key(|(_, tally, _)| Reverse(tally.bytes));
        all
    }

    pub(crate) fn by_size(&self) -> Vec<(&'static str, Tally)> {
        SIZES.iter().map(|(_, name)| *name).zip(self.sizes).collect()
    }

    pub(crate) fn by_expiry(&self) -> Vec<(&'static str, Tally)> {
        let timed = TIMES.iter().map(|(_, name)| *name).zip(self.expiries);
        std::iter::once(("never", self.endless)).chain(timed).collect()
    }

    /// Empty where the source tells no idle times.
    pub(crate) fn by_idle(&self) -> Vec<(&'static str, Tally)> {
        let names = ["less than an hour", "less than a day", "less than a week", "longer"];
        let all: Vec<_> = names.into_iter().zip(self.idles).collect();
        if all.iter().all(|(_, tally)| tally.keys == 0) { Vec::new() } else { all }
    }
}

fn time_class(seconds: i64) -> usize {
    TIMES.iter().position(|(end, _)| seconds < *end).unwrap_or(TIMES.len() - 1)
}
