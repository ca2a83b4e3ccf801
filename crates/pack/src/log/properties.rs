//! Logs against their naive twin: seeded streams of edits, with limits that change and clones that are held.
use super::*;
use crate::model::seeds;
use base::Item;
use base::random::Random;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;
type Twin = BTreeMap<Id, Fields>;

impl Pairs for Fields {
    fn count(&self) -> usize {
        self.len()
    }
    fn name(&self, index: usize) -> &[u8] {
        &self[index].0
    }
    fn value(&self, index: usize) -> Item<'_> {
        Item::classify(&self[index].1)
    }
    fn text_bytes(&self) -> usize {
        self.iter().map(|(name, value)| name.len() + value.len()).sum()
    }
}

fn fields(row: &Row<'_>) -> Fields {
    let mut all = Vec::new();
    row.for_each(&mut |name, value| {
        let mut text = Vec::new();
        value.append_to(&mut text);
        all.push((name.to_vec(), text));
    });
    assert_eq!(all.len(), row.fields());
    all
}

fn collect(log: &Log, from: Id, direction: Direction, count: usize) -> Vec<(Id, Fields)> {
    let mut all = Vec::new();
    log.visit(from, direction, &mut |row| {
        all.push((row.id, fields(row)));
        if all.len() == count { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    all
}

fn check(log: &Log, twin: &Twin) {
    assert_eq!(log.len(), twin.len() as u64);
    let owned = |(id, fields): (&Id, &Fields)| (*id, fields.clone());
    assert!(collect(log, Id::MIN, Direction::Up, 0).into_iter().eq(twin.iter().map(owned)));
    assert!(collect(log, Id::MAX, Direction::Down, 0).into_iter().eq(twin.iter().rev().map(owned)));
    assert_eq!(log.first_id(), twin.keys().next().copied());
    let some = twin.keys().copied().step_by(twin.len() / 4 + 1).chain([Id::MIN, Id::MAX]).collect::<Vec<_>>();
    for (start, end) in some.iter().flat_map(|start| some.iter().map(move |end| (*start, *end))) {
        let expected = if start <= end { twin.range(start..=end).count() } else { 0 };
        assert_eq!(log.count_between((start, end)), expected as u64, "{start:?} to {end:?}");
    }
    assert_eq!(log.last_id(), twin.keys().next_back().copied());
    let stats = log.stats();
    assert_eq!(stats.rows.entries + stats.columns.entries, log.len());
    let mut by_leaves = Vec::new();
    let _ = log.visit_leaves(&mut |leaf| {
        let (before, have_same) = (by_leaves.len(), leaf.have_same_names());
        let _ = leaf.visit(&mut |row| {
            by_leaves.push((row.id, fields(row)));
            ControlFlow::Continue(())
        });
        let names =
            |(_, fields): &(Id, Fields)| fields.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let own = &by_leaves[before..];
        assert!(!own.is_empty() && (!have_same || own.iter().all(|row| names(row) == names(&own[0]))));
        ControlFlow::Continue(())
    });
    assert!(by_leaves.into_iter().eq(twin.iter().map(owned)));
    let mut bases = Vec::new();
    log.for_each_base(&mut |base| bases.push(base));
    assert!(bases.is_sorted() && bases.len() as u64 == stats.rows.nodes + stats.columns.nodes);
}

struct Run {
    random: Random,
    log: Log,
    twin: Twin,
    limits: Limits,
    last: Id,
    shapes: u64,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = Random::new(seed);
        let limits = Limits {
            bytes: [0, 200, 1000, 4096, 20_000][random.below(5) as usize],
            entries: [0, 1, 7, 100, 300][random.below(5) as usize],
        };
        let shapes = 1 + random.below(20);
        Run { random, log: Log::new(), twin: Twin::new(), limits, last: Id::MIN, shapes }
    }

    fn append(&mut self) {
        let fields = self.fields();
        self.next_id();
        self.log.append(self.last, &fields, &self.limits);
        self.twin.insert(self.last, fields);
    }

    fn next_id(&mut self) {
        let ms = self.last.ms + [0, 0, 1, 3, 1000, 1 << 40][self.random.below(6) as usize];
        let seq = if ms == self.last.ms {
            self.last.seq + 1 + self.random.below(300)
        } else {
            self.random.below(2)
        };
        self.last = Id { ms, seq };
    }

    /// Entries with the same names come together, as a node of a file does: as columns, or one by one.
    fn node(&mut self) {
        let (names, count) = (self.fields(), 1 + self.random.below(150));
        let entries: Vec<(Id, Fields)> = (0..count)
            .map(|_| {
                self.next_id();
                let own = self.fields().into_iter().cycle().map(|(_, value)| value);
                (self.last, names.iter().map(|(name, _)| name.clone()).zip(own).collect())
            })
            .collect();
        let value = |(_, value): &(Vec<u8>, Vec<u8>)| value.clone();
        let values: Vec<Vec<u8>> = entries.iter().flat_map(|(_, fields)| fields.iter().map(value)).collect();
        let sheet = Sheet {
            ids: entries.iter().map(|(id, _)| *id).collect(),
            values: values.iter().map(|value| Item::classify(value)).collect(),
        };
        let size =
            NodeSize { bytes: self.random.below(5000) as u32, added: (count + self.random.below(50)) as u32 };
        match self.random.below(3) {
            0 => {
                for (index, (id, fields)) in entries.iter().enumerate() {
                    match index {
                        0 => self.log.append_apart(*id, fields),
                        _ => self.log.append(*id, fields, &Limits { bytes: 0, entries: 0 }),
                    }
                }
                self.log.note_node(size);
            }
            number => self.log.append_sheet(&names, &sheet, size, number == 1),
        }
        if self.random.below(3) == 0 {
            self.log.fit();
        }
        self.twin.extend(entries);
    }

    fn fields(&mut self) -> Fields {
        let shape = self.random.below(self.shapes);
        (0..1 + shape % 5)
            .map(|index| {
                let value = match self.random.below(6) {
                    0 => vec![b'v'; self.random.below(300) as usize],
                    1 => (self.random.next_u64() as i64 >> self.random.below(64)).to_string().into_bytes(),
                    _ => self.random.below(1000).to_string().into_bytes(),
                };
                (format!("field{index}:{shape}").into_bytes(), value)
            })
            .collect()
    }

    /// An id that is there, mostly.
    fn any_id(&mut self) -> Id {
        let id = Id { ms: self.random.below(self.last.ms + 2), seq: self.random.below(3) };
        self.twin.range(id..).next().map_or(id, |(id, _)| *id)
    }

    /// Entries come, and the newest go: as often, so that the last leaf and the one before stay what they are
    /// for long.
    fn come_and_go(&mut self) {
        for _ in 0..self.random.below(20) {
            if self.random.below(2) == 0 {
                self.append();
            } else if let Some((newest, _)) = self.twin.pop_last() {
                assert!(self.log.contains(newest) && self.log.remove(newest) && !self.log.contains(newest));
            }
            assert_eq!(self.log.last_id(), self.twin.keys().next_back().copied());
        }
    }

    fn edit(&mut self) {
        match self.random.below(16) {
            15 => self.node(),
            0..=6 => (0..self.random.below(20)).for_each(|_| self.append()),
            7..=9 => {
                let id = self.any_id();
                assert_eq!(self.log.contains(id), self.twin.contains_key(&id));
                assert_eq!(self.log.remove(id), self.twin.remove(&id).is_some());
            }
            10 => self.trim(),
            11..=13 => self.come_and_go(),
            _ => {
                let id = self.any_id();
                let up = collect(&self.log, id, Direction::Up, 5);
                assert!(up.iter().map(|(id, _)| *id).eq(self.twin.range(id..).take(5).map(|(id, _)| *id)));
                let down = collect(&self.log, id, Direction::Down, 5);
                assert!(
                    down.iter().map(|(id, _)| *id).eq(self
                        .twin
                        .range(..=id)
                        .rev()
                        .take(5)
                        .map(|(id, _)| *id))
                );
            }
        }
    }

    fn trim(&mut self) {
        let max = self.twin.len() as u64 * 9 / 10;
        let id = self.any_id();
        let trim = if self.random.below(2) == 0 { Trim::MaxLen(max) } else { Trim::MinId(id) };
        let stays = |(index, other): (usize, &Id)| match trim {
            Trim::MaxLen(max) => self.twin.len() as u64 - index as u64 <= max,
            Trim::MinId(id) => *other >= id,
        };
        let goes = self.twin.keys().enumerate().take_while(|key| !stays(*key)).count() as u64;
        let precision = match self.random.below(3) {
            0 => Precision::Exact,
            1 => Precision::Leaves { entries_max: 10 },
            _ => Precision::Leaves { entries_max: u64::MAX },
        };
        let gone = self.log.trim(trim, precision);
        match precision {
            Precision::Exact => assert_eq!(gone, goes),
            Precision::Leaves { entries_max } => assert!(gone <= goes.min(entries_max)),
        }
        (0..gone).for_each(|_| drop(self.twin.pop_first()));
    }
}

fn run(seed: u64) {
    let mut run = Run::new(seed);
    let mut held = (run.log.clone(), run.twin.clone());
    for step in 0..300 {
        run.edit();
        if step % 30 == 0 {
            check(&run.log, &run.twin);
            check(&held.0, &held.1);
        }
        if step % 70 == 0 {
            held = (run.log.clone(), run.twin.clone());
        }
    }
    check(&run.log, &run.twin);
    check(&held.0, &held.1);
}

#[test]
fn a_log_holds_what_an_ordered_map_holds() {
    for seed in seeds(200) {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// `count` entries of one field with a text of `len` bytes.
fn uniform(count: u64, len: usize, limits: &Limits) -> Log {
    let mut log = Log::new();
    let fields = vec![(b"f".to_vec(), vec![b'v'; len])];
    (1..=count).for_each(|ms| log.append(Id { ms, seq: 0 }, &fields, limits));
    log
}

#[test]
fn leaves_end_where_the_nodes_of_redis_do() {
    let limits = Limits { bytes: 4096, entries: 100 };
    let stats = uniform(1000, 5, &limits).stats();
    assert_eq!((stats.rows.nodes, stats.columns.nodes), (1, 9));
    assert_eq!(bases(&uniform(100, 200, &limits)), [1, 20, 39, 58, 77, 96]);
}

fn bases(log: &Log) -> Vec<u64> {
    let mut bases = Vec::new();
    log.for_each_base(&mut |base| bases.push(base.ms));
    bases
}

/// A job is added and deleted when it is done, behind others that stay.
#[test]
fn newest_entries_that_come_and_go_leave_the_leaf_before_as_it_is() {
    let limits = Limits { bytes: 4096, entries: 100 };
    let job = vec![(b"f".to_vec(), b"v".to_vec())];
    for stay in 1..=301 {
        let mut log = uniform(stay, 5, &limits);
        // Nodes of Redis, as base, entries, and entries that ever came.
        let mut nodes: Vec<(u64, u64, u64)> = (1..=stay)
            .step_by(100)
            .map(|base| (base, 100.min(stay + 1 - base), 100.min(stay + 1 - base)))
            .collect();
        let mut sealed = None;
        for ms in 1000..1200 {
            log.append(Id { ms, seq: 0 }, &job, &limits);
            match nodes.last_mut() {
                Some((_, count, added)) if *added < 100 => (*count, *added) = (*count + 1, *added + 1),
                _ => nodes.push((ms, 1, 1)),
            }
            assert!(bases(&log).iter().eq(nodes.iter().map(|(base, ..)| base)));
            assert!(log.remove(Id { ms, seq: 0 }));
            let (_, count, _) = nodes.last_mut().expect("others stay");
            *count -= 1;
            if *count == 0 {
                nodes.pop();
                // A leaf that is full was closed when the job came, three times if it stays of rows.
                let last = log.tail.as_ref().expect("others stay");
                let same = sealed.get_or_insert_with(|| last.clone());
                assert!(ms < 1110 || same.is_same(last), "{stay} entries, {ms}");
                sealed = (ms >= 1110).then(|| last.clone());
            }
            assert!(bases(&log).iter().eq(nodes.iter().map(|(base, ..)| base)));
        }
        assert_eq!((log.len(), log.last_id()), (stay, Some(Id { ms: stay, seq: 0 })));
        assert_eq!(log.count_between((Id::MIN, Id::MAX)), stay);
    }
}

/// Entries for which the leaf is full come and go, and between them shorter ones that still fit, for which it
/// becomes rows again.
#[test]
fn a_leaf_is_closed_three_times_at_most() {
    let limits = Limits { bytes: 4096, entries: 100 };
    let [short, long] = [5, 3000].map(|len| vec![(b"f".to_vec(), vec![b'v'; len])]);
    let mut log = uniform(50, 30, &limits);
    let mut kinds = Vec::new();
    for ms in (100..120).step_by(2) {
        log.append(Id { ms, seq: 0 }, &long, &limits);
        kinds.push(log.stats().columns.nodes);
        let held = log.clone();
        assert!(log.remove(Id { ms, seq: 0 }));
        log.append(Id { ms: ms + 1, seq: 0 }, &short, &limits);
        assert_eq!(bases(&log), [1]);
        assert_eq!((held.len(), held.last_id()), (log.len(), Some(Id { ms, seq: 0 })));
        assert!(held.contains(Id { ms: 50, seq: 0 }) && !held.contains(Id { ms: ms + 1, seq: 0 }));
    }
    assert_eq!(kinds, [1, 1, 1, 0, 0, 0, 0, 0, 0, 0]);
    let ids: Vec<u64> = collect(&log, Id::MIN, Direction::Up, 0).iter().map(|(id, _)| id.ms).collect();
    assert!(ids.into_iter().eq((1..=50).chain((101..120).step_by(2))));
}

#[test]
fn entries_taken_off_the_front_one_by_one_leave_nothing_behind() {
    let limits = Limits { bytes: 4096, entries: 100 };
    let mut log = uniform(10_000, 30, &limits);
    for max in (0..10_000).rev() {
        assert_eq!(log.trim(Trim::MaxLen(max), Precision::Exact), 1);
        let stats = if max % 50 == 0 { log.stats() } else { continue };
        assert!(stats.allocated_bytes() < 5000 + log.len() * 60, "{} entries: {stats:?}", log.len());
    }
    assert!(log.is_empty() && log.stats().allocated_bytes() == 0);
}
