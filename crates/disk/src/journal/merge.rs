//! Puts records in order: each worker's come in ascending order of their numbers, and all numbers are used.
//!
//! ```text
//! lane 0   [ 0 3 4 ] [ 9 ]      each [ ] are records that their worker has published together
//! lane 1   [ 1 2 ] [ 7 8 ]
//! lane 2   [ 5 ]                 the next is 6: it has been taken, and is published before long
//! ```
use crate::journal::record::{Records, Run};
use std::collections::VecDeque;

/// The records of all lanes that have not come to their turn.
#[derive(Debug)]
pub struct Merge {
    next: u64,
    lanes: Box<[Lane]>,
    /// For each lane, where in what it has published the record is whose turn comes next.
    places: Box<[Place]>,
}

#[derive(Debug, Default)]
struct Lane {
    published: VecDeque<Records>,
    /// Those that have all come to their turn, emptied.
    spent: Vec<Records>,
}

/// So many of a lane's published records have come to their turn, and so many runs of the next.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    published: usize,
    runs: usize,
}

/// So many runs are handed on at a time.
const RUNS_MAX: usize = 1024;

impl Merge {
    /// For so many lanes; the first record will have the number `next`.
    pub fn new(lanes: usize, next: u64) -> Merge {
        let places = vec![Place::default(); lanes].into_boxed_slice();
        Merge { next, lanes: (0..lanes).map(|_| Lane::default()).collect(), places }
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
    pub fn push(&mut self, lane: usize, records: Records) {
        if !records.is_empty() {
            self.lanes[lane].published.push_back(records);
        }
    }

    /// The records of this lane that have all come to their turn, emptied, to be used again for their room.
    pub fn take_spent(&mut self, lane: usize) -> impl Iterator<Item = Records> {
        self.lanes[lane].spent.drain(..)
    }

    /// Hands on all records whose turn it is, in the order of their numbers, many at a time.
    pub fn drain(&mut self, take: &mut dyn FnMut(&[Run<'_>])) {
        loop {
            let runs = collect(&self.lanes, &mut self.places, &mut self.next);
            let are_all = runs.len() < RUNS_MAX;
            if !runs.is_empty() {
                take(&runs);
            }
            drop(runs);
            for (lane, place) in self.lanes.iter_mut().zip(&mut self.places) {
                for mut records in lane.published.drain(..std::mem::take(&mut place.published)) {
                    records.clear();
                    lane.spent.push(records);
                }
            }
            if are_all {
                return;
            }
        }
    }
}

/// The runs whose turn it is, up to [`RUNS_MAX`].
fn collect<'l>(lanes: &'l [Lane], places: &mut [Place], next: &mut u64) -> Vec<Run<'l>> {
    let mut runs = Vec::new();
    // The records of one batch often have neighbouring numbers: each lane is emptied as far as it goes.
    let (mut quiet_lanes, mut index) = (0, 0);
    while quiet_lanes < lanes.len() && runs.len() < RUNS_MAX {
        let before = *next;
        collect_lane(&lanes[index], &mut places[index], next, &mut runs);
        quiet_lanes = if *next == before { quiet_lanes + 1 } else { 1 };
        index = (index + 1) % lanes.len();
    }
    runs
}

fn collect_lane<'l>(lane: &'l Lane, place: &mut Place, next: &mut u64, runs: &mut Vec<Run<'l>>) {
    while runs.len() < RUNS_MAX
        && let Some(records) = lane.published.get(place.published)
    {
        let Some(run) = records.run(place.runs) else {
            *place = Place { published: place.published + 1, runs: 0 };
            continue;
        };
        if run.first != *next {
            assert!(run.first > *next, "each number is used once, in its worker's order");
            return;
        }
        *next = run.end;
        runs.push(run);
        place.runs += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Audience, Group};
    use base::random::Random;

    /// INCR k
    const COMMAND_BYTES: u64 = 21;

    #[test]
    fn whatever_the_workers_and_the_times_of_publishing_numbers_come_in_order() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let lanes = 1 + random.below(5) as usize;
            let mut merge = Merge::new(lanes, 5);
            let mut open: Vec<Records> = (0..lanes).map(|_| Records::default()).collect();
            let mut seen = Vec::new();
            let mut take = |runs: &[Run<'_>]| {
                for run in runs {
                    let len = run.words().map_or(0, |(_, words)| words.len());
                    assert_eq!(len as u64, (run.end - run.first) * COMMAND_BYTES);
                    seen.extend(run.first..run.end);
                }
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
            let spent: Vec<Records> =
                (0..lanes).flat_map(|lane| merge.take_spent(lane).collect::<Vec<_>>()).collect();
            assert!(!spent.is_empty());
            assert!(spent.iter().all(|records| records.is_empty() && records.room_bytes() > 0));
            assert!((0..lanes).all(|lane| merge.take_spent(lane).next().is_none()));
        }
    }

    #[test]
    fn more_records_than_are_handed_on_at_a_time_come_in_order_too() {
        let numbers = 5 * RUNS_MAX as u64;
        let (mut merge, mut lanes) = (Merge::new(2, 0), [Records::default(), Records::default()]);
        // Every second number is the other lane's, so that no two records are one run.
        (0..numbers).for_each(|number| lanes[number as usize % 2].add_words(number, 0, b"x"));
        let (mut next, mut turns) = (0, 0);
        let mut take = |runs: &[Run<'_>]| {
            assert!(!runs.is_empty() && runs.len() <= RUNS_MAX);
            runs.iter().for_each(|run| assert_eq!(run.first, std::mem::replace(&mut next, run.end)));
            turns += 1;
        };
        lanes.into_iter().enumerate().for_each(|(lane, records)| merge.push(lane, records));
        merge.drain(&mut take);
        assert_eq!((next, turns), (numbers, 5));
        assert!(merge.is_empty() && (0..2).all(|lane| merge.take_spent(lane).count() == 1));
    }
}
