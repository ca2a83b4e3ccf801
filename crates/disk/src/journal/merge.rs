//! Puts records in order: each worker's come in ascending order of their numbers, and all numbers are used.
//!
//! ```text
//! lane 0   [ 0 3 4 ] [ 9 ]      each [ ] is a buffer that its worker has published at the end of a batch
//! lane 1   [ 1 2 ] [ 7 8 ]
//! lane 2   [ 5 ]                 the next is 6: it has been taken, and is published before long
//! ```
use crate::journal::record::Record;
use std::collections::VecDeque;

/// The records of all lanes that have not come to their turn.
#[derive(Debug)]
pub struct Merge {
    next: u64,
    lanes: Box<[Lane]>,
}

#[derive(Debug, Default)]
struct Lane {
    published: VecDeque<Published>,
    /// Buffers whose records have all come to their turn, emptied.
    spent: Vec<Vec<u8>>,
}

/// A buffer of records.
#[derive(Debug)]
struct Published {
    buffer: Vec<u8>,
    /// How much of it has come to its turn.
    done: usize,
}

impl Merge {
    /// For so many lanes; the first record will have the number `next`.
    pub fn new(lanes: usize, next: u64) -> Merge {
        Merge { next, lanes: (0..lanes).map(|_| Lane::default()).collect() }
    }

    /// The number of the record that comes next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether it holds no record.
    pub fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.published.is_empty())
    }

    /// A worker has published these records, whose numbers are greater than those that it published before.
    pub fn push(&mut self, lane: usize, buffer: Vec<u8>) {
        if !buffer.is_empty() {
            self.lanes[lane].published.push_back(Published { buffer, done: 0 });
        }
    }

    /// The buffers of this lane whose records have all come to their turn, emptied, to be used again.
    pub fn take_spent(&mut self, lane: usize) -> impl Iterator<Item = Vec<u8>> {
        self.lanes[lane].spent.drain(..)
    }

    /// Hands on all records whose turn it is, in the order of their numbers.
    pub fn drain(&mut self, take: &mut dyn FnMut(&Record<'_>)) {
        // The records of one batch often have neighbouring numbers: each lane is emptied as far as it goes.
        let mut quiet_lanes = 0;
        let mut lane = 0;
        while quiet_lanes < self.lanes.len() {
            let before = self.next;
            self.drain_lane(lane, take);
            quiet_lanes = if self.next == before { quiet_lanes + 1 } else { 1 };
            lane = (lane + 1) % self.lanes.len();
        }
    }

    fn drain_lane(&mut self, lane: usize, take: &mut dyn FnMut(&Record<'_>)) {
        let lane = &mut self.lanes[lane];
        while let Some(published) = lane.published.front_mut() {
            while let Some((record, len)) = Record::first(&published.buffer[published.done..]) {
                if record.number != self.next {
                    assert!(record.number > self.next, "each number is used once, in its worker's order");
                    return;
                }
                take(&record);
                self.next += 1;
                published.done += len;
            }
            if let Some(Published { mut buffer, .. }) = lane.published.pop_front() {
                buffer.clear();
                lane.spent.push(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Audience, Group};
    use base::random::Random;

    #[test]
    fn whatever_the_workers_and_the_times_of_publishing_numbers_come_in_order() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let lanes = 1 + random.below(5) as usize;
            let mut merge = Merge::new(lanes, 5);
            let mut open: Vec<Vec<u8>> = vec![Vec::new(); lanes];
            let mut seen = Vec::new();
            let mut take = |record: &Record<'_>| {
                assert_eq!(record.frames().count(), 1);
                seen.push(record.number);
            };
            for number in 5..205 {
                let lane = random.below(lanes as u64) as usize;
                let mut group = Group::default();
                group.add(0, Audience::Everybody, [&b"INCR"[..], b"k"].into_iter());
                group.finish(number, &mut open[lane]);
                if random.below(3) == 0 {
                    let lane = random.below(lanes as u64) as usize;
                    merge.push(lane, std::mem::take(&mut open[lane]));
                    merge.drain(&mut take);
                }
            }
            for (lane, buffer) in open.into_iter().enumerate() {
                merge.push(lane, buffer);
            }
            merge.drain(&mut take);
            assert_eq!(seen, (5..205).collect::<Vec<_>>(), "seed {seed}");
            assert!(merge.is_empty());
            let spent: Vec<Vec<u8>> =
                (0..lanes).flat_map(|lane| merge.take_spent(lane).collect::<Vec<_>>()).collect();
            assert!(
                !spent.is_empty() && spent.iter().all(|buffer| buffer.is_empty() && buffer.capacity() > 0)
            );
            assert!((0..lanes).all(|lane| merge.take_spent(lane).next().is_none()));
        }
    }
}
