//! Random streams of operations on the keyspace and on its naive twin, with time moved by hand; everything
//! they answer must agree, and after an expiry nothing that is due may be left, whatever leaves split and
//! merged meanwhile.
use crate::model::{Model, Text, Value, pop, push};
use crate::{
    AddError, Deadline, EditError, End, Expiry, Fill, Form, Growth, Key, Keyspace, KeyspaceOptions, Settings,
    View, WrongType,
};
use base::hash::Seed;
use base::random::Random;
use base::{Item, Millis};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

const DATABASES: u16 = 3;
const START_MS: i64 = 1_790_000_000_000;

struct Run {
    keyspace: Keyspace,
    settings: Settings,
    model: Model,
    random: Random,
    seed: u64,
    keys: u64,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = Random::new(seed);
        let options = KeyspaceOptions {
            shard_bits: [0, 0, 1, 3][random.below(4) as usize],
            databases: DATABASES,
            seed: Seed::new(seed, !seed),
        };
        let mut settings = Settings::default();
        settings.list.fill =
            [Fill::Bytes(8192), Fill::Entries(4), Fill::Bytes(4096)][random.below(3) as usize];
        let model = Model { now: START_MS, ..Model::default() };
        let keys = [4, 40, 400][random.below(3) as usize];
        Run { keyspace: Keyspace::new(options), settings, model, random, seed, keys }
    }

    fn key(&mut self) -> Text {
        format!("key:{}", self.random.below(self.keys)).into_bytes()
    }

    fn db(&mut self) -> u16 {
        self.random.below(4).saturating_sub(1) as u16
    }

    fn text(&mut self) -> Text {
        match self.random.below(8) {
            0 => Text::new(),
            1 => self.random.below(300).to_string().into_bytes(),
            2 => (self.random.next_u64() as i64).to_string().into_bytes(),
            3 => b"007".to_vec(),
            4 => vec![b'l'; 400 + self.random.below(400) as usize],
            5 => vec![b'm'; 40 + self.random.below(8) as usize],
            _ => vec![b's'; self.random.below(30) as usize],
        }
    }

    /// A moment in the near future mostly; now and then the past, or far away.
    fn moment(&mut self) -> Millis {
        let now = self.model.now;
        Millis(match self.random.below(12) {
            0 => now - self.random.below(1000) as i64,
            1 => now.saturating_add((self.random.next_u64() >> self.random.below(64)) as i64 & i64::MAX),
            2 => [i64::MAX, i64::MIN, 0, -1, now][self.random.below(5) as usize],
            3 => now + 1000,
            _ => now + self.random.below(3000) as i64,
        })
    }

    fn expiry(&mut self) -> Expiry {
        match self.random.below(4) {
            0 => Expiry::Clear,
            1 => Expiry::Keep,
            _ => Expiry::At(self.moment()),
        }
    }

    /// Runs `act` on the keyspace's view of one key.
    fn with<R>(&self, db: u16, key: &[u8], act: impl FnOnce(&mut View<'_>, &Key<'_>) -> R) -> R {
        let (mut view, key) = self.keyspace.lock_one(db, Millis(self.model.now), &self.settings, key);
        act(&mut view, &key)
    }

    fn step(&mut self) {
        self.model.expire();
        match self.random.below(20) {
            0..=3 => self.step_put(),
            4 => self.step_add(),
            5 => self.step_edit(),
            6 => self.step_remove(),
            7 => self.step_transfer(),
            8..=9 => self.step_deadline(),
            10..=14 => self.step_list(),
            15..=16 => self.model.now += [1, 7, 100, 2500][self.random.below(4) as usize],
            17..=18 => self.step_expire(),
            _ => self.step_rare(),
        }
        self.model.expire();
        let (db, key) = (self.db(), self.key());
        self.compare(db, &key);
    }

    fn step_put(&mut self) {
        let (db, key, text, expiry) = (self.db(), self.key(), self.text(), self.expiry());
        let form = [Form::Auto, Form::Text, Form::Raw][self.random.below(3) as usize];
        self.with(db, &key, |view, key| view.put_string(key, &text, form, expiry));
        self.model.put_string(db, &key, &text, expiry);
    }

    fn step_add(&mut self) {
        let (db, key) = (self.db(), self.key());
        let delta = (self.random.next_u64() >> self.random.below(64)) as i64;
        let sum = self.with(db, &key, |view, key| view.add(key, delta));
        assert_eq!(sum, self.model.add(db, &key, delta), "seed {}", self.seed);
    }

    fn step_edit(&mut self) {
        match self.random.below(4) {
            0 => self.step_append(),
            1 => self.step_set_range(),
            2 => self.step_edit_bytes(),
            _ => self.step_put_bytes(),
        }
    }

    fn step_append(&mut self) {
        let (db, key, text) = (self.db(), self.key(), self.text());
        let len = self.with(db, &key, |view, key| view.append(key, &text).map_err(wrong));
        let expected = self.model.edit(db, &key, |old| old.extend_from_slice(&text));
        assert_eq!(len, expected, "seed {}", self.seed);
    }

    fn step_set_range(&mut self) {
        let (db, key, text) = (self.db(), self.key(), self.text());
        let (start, text) = (self.length(), if text.is_empty() { vec![b'1'] } else { text });
        let len = self.with(db, &key, |view, key| view.set_range(key, start as u64, &text).map_err(wrong));
        let expected = self.model.edit(db, &key, |old| {
            old.resize(old.len().max(start + text.len()), 0);
            old[start..start + text.len()].copy_from_slice(&text);
        });
        assert_eq!(len, expected, "seed {}", self.seed);
    }

    fn step_edit_bytes(&mut self) {
        let (db, key, last) = (self.db(), self.key(), self.length());
        let old = self.model.string(db, &key);
        let seen = self.with(db, &key, |view, key| {
            view.edit_bytes(key, last as u64 + 1, |bytes, growth| {
                bytes[last] ^= 1;
                (bytes.len() as u64, growth)
            })
            .map_err(wrong)
        });
        let len = self.model.edit(db, &key, |old| {
            old.resize(old.len().max(last + 1), 0);
            old[last] ^= 1;
        });
        let is_longer = old.is_ok_and(|old| old.is_none_or(|old| old.len() <= last));
        let growth = if is_longer { Growth::Longer } else { Growth::None };
        assert_eq!(seen, len.map(|len| (len, growth)), "seed {}", self.seed);
    }

    fn step_put_bytes(&mut self) {
        let (db, key) = (self.db(), self.key());
        let text = if self.random.below(2) == 0 { self.text() } else { vec![b'p'; self.length()] };
        self.with(db, &key, |view, key| {
            drop(view.reclaim(key));
            view.put_bytes(key, text.clone());
        });
        self.model.put_string(db, &key, &text, Expiry::Clear);
    }

    /// Mostly a short length; now and then one beyond what a buffer keeps.
    fn length(&mut self) -> usize {
        let max = if self.random.below(16) == 0 { 40_000 } else { 700 };
        self.random.below(max) as usize
    }

    fn step_remove(&mut self) {
        let (db, key) = (self.db(), self.key());
        let existed = self.with(db, &key, |view, key| view.remove(key));
        assert_eq!(existed, self.model.remove(db, &key), "seed {}", self.seed);
    }

    /// A key is moved or copied, within its database or to another. What a copy shares shows when either is
    /// edited.
    fn step_transfer(&mut self) {
        let (from, to) = ((self.db(), self.key()), (self.db(), self.key()));
        let is_copy = self.random.below(2) == 0;
        let (mut view, keys) = self.keyspace.lock_named(
            from.0,
            Millis(self.model.now),
            &self.settings,
            &[&from.1[..], &to.1[..]],
        );
        let value = if is_copy { view.copy(&keys[0]) } else { view.take(&keys[0]) };
        let expected = if is_copy { self.model.copy(&from, &to) } else { self.model.rename(&from, &to) };
        assert_eq!(value.is_some(), expected, "seed {}", self.seed);
        if let Some(value) = value {
            view.put_taken(&keys[1].in_db(to.0), value);
        }
    }

    fn step_deadline(&mut self) {
        let (db, key) = (self.db(), self.key());
        let deadline = if self.random.below(4) == 0 { Deadline::Never } else { Deadline::At(self.moment()) };
        let existed = self.with(db, &key, |view, key| view.set_deadline(key, deadline));
        assert_eq!(existed, self.model.set_deadline(db, &key, deadline), "seed {}", self.seed);
    }

    fn step_list(&mut self) {
        let (db, key, times) = (self.db(), self.key(), self.random.below(12));
        let texts: Vec<Text> = (0..times).map(|_| self.text()).collect();
        let mut choices = self.random.clone();
        let mut expected = choices.clone();
        let done = self.with(db, &key, |view, key| {
            let mut list = view.list_or_new(key)?;
            texts.iter().for_each(|text| edit_ours(&mut list, text, &mut choices));
            Ok::<_, WrongType>(())
        });
        let model = self.model.list(db, &key, |list| {
            texts.iter().for_each(|text| edit_twin(list, text, &mut expected));
        });
        assert_eq!(done, model, "seed {}", self.seed);
        self.random = choices;
        self.random.next_u64();
    }

    fn step_expire(&mut self) {
        let mut garbage = Vec::new();
        let now = Millis(self.model.now);
        let next = loop {
            let next = self.keyspace.expire(now, 1 + self.random.below(50) as usize, &mut garbage);
            if next.is_none_or(|next| next > now) {
                break next;
            }
        };
        let mut volatile = 0;
        for db in 0..DATABASES {
            assert_eq!(
                self.keyspace.len(db),
                self.model.len(db),
                "seed {}: something due was left",
                self.seed
            );
            assert_eq!(self.keyspace.volatile(db, now), self.model.volatile(db), "seed {}", self.seed);
            volatile += self.keyspace.volatile(db, now).0;
        }
        assert!(next.is_some() || volatile == 0, "seed {}: volatile keys wait for nothing", self.seed);
    }

    fn step_rare(&mut self) {
        let now = Millis(self.model.now);
        match self.random.below(20) {
            0 => self.model.now += 1 << self.random.below(38),
            1 => {
                let db = [None, Some(0), Some(1)][self.random.below(3) as usize];
                // The keyspace counts overdue keys and the twin does not, so both are compared when there are
                // none.
                self.step_expire();
                assert_eq!(self.keyspace.flush(db).0, self.model.flush(db), "seed {}", self.seed);
            }
            2 => {
                let (a, b) = (self.db(), self.db());
                self.keyspace.swap(a, b, Millis(0));
                self.model.swap(a, b);
            }
            3..=10 => {
                let db = self.db();
                let mut names = Vec::new();
                self.keyspace.visit(db, now, &mut |key, _| {
                    names.push(key.to_vec());
                    std::ops::ControlFlow::Continue(())
                });
                names.sort();
                assert_eq!(names, self.model.names(db), "seed {}", self.seed);
            }
            _ => {
                let db = self.db();
                assert_eq!(scan_all(&self.keyspace, db, now, 1 + self.random.below(20)), {
                    self.model.names(db).into_iter().collect::<BTreeSet<_>>()
                });
            }
        }
    }

    /// One key, by every way of looking.
    fn compare(&self, db: u16, key: &[u8]) {
        let seed = self.seed;
        self.with(db, key, |view, token| {
            assert_eq!(view.exists(token), self.model.value(db, key).is_some(), "seed {seed}");
            assert_eq!(view.deadline(token), self.model.deadline(db, key), "seed {seed}");
            let text = view.string(token).map(|found| found.map(text_of));
            assert_eq!(text, self.model.string(db, key), "seed {seed}");
            let ours = view.list(token).map(|list| list.map(|list| collect(&list)));
            match self.model.value(db, key) {
                Some(Value::List(list)) => {
                    assert_eq!(ours, Ok(Some(list.iter().cloned().collect())), "seed {seed}")
                }
                Some(Value::Str(_)) => assert_eq!(ours, Err(WrongType), "seed {seed}"),
                None => assert_eq!(ours, Ok(None), "seed {seed}"),
            }
            check_info(view, token, self.model.value(db, key), &self.settings);
        });
    }
}

fn text_of(item: Item<'_>) -> Text {
    let mut text = Text::new();
    item.append_to(&mut text);
    text
}

fn collect(list: &crate::List<'_>) -> Vec<Text> {
    let mut all = Vec::new();
    list.visit(0, End::Tail, &mut |index, item| {
        assert_eq!(index, all.len() as u64);
        all.push(text_of(item));
        ControlFlow::Continue(())
    });
    assert_eq!(all.len() as u64, list.len());
    let mut back = Vec::new();
    list.visit(list.len() - 1, End::Head, &mut |_, item| {
        back.push(text_of(item));
        ControlFlow::Continue(())
    });
    assert!(back.iter().rev().eq(all.iter()));
    all
}

fn check_info(view: &mut View<'_>, key: &Key<'_>, value: Option<&Value>, settings: &Settings) {
    let info = view.info(key);
    assert_eq!(info.is_some(), value.is_some());
    let (Some(info), Some(value)) = (info, value) else { return };
    match value {
        Value::Str(text) => assert_eq!(info.len, text.len() as u64),
        Value::List(list) => {
            assert_eq!(info.len, list.len() as u64);
            if let Fill::Entries(limit) = settings.list.fill
                && list.len() > limit as usize
            {
                assert_eq!(info.encoding, "quicklist");
            }
        }
    }
    assert!(info.memory_bytes > 0 && info.serialized_bytes > 0);
}

/// One edit, chosen from the state of `choices` and the length alone, so that the twin makes the same.
fn edit_ours(list: &mut crate::ListMut<'_>, text: &[u8], choices: &mut Random) {
    let len = list.len();
    match choices.below(9) {
        0..=2 => list.push(End::Tail, text),
        3 => list.push(End::Head, text),
        4 => drop(list.pop(End::Head, |_| ())),
        5 => drop(list.pop(End::Tail, |_| ())),
        6 if len > 0 => list.set(choices.below(len), text),
        7 => list.insert(choices.below(len + 1), text),
        8 if len > 0 => {
            let index = choices.below(len);
            list.remove(index, choices.below(len - index + 1));
        }
        _ => {}
    }
}

fn edit_twin(list: &mut std::collections::VecDeque<Text>, text: &[u8], choices: &mut Random) {
    let len = list.len() as u64;
    match choices.below(9) {
        0..=2 => push(list, End::Tail, text),
        3 => push(list, End::Head, text),
        4 => drop(pop(list, End::Head)),
        5 => drop(pop(list, End::Tail)),
        6 if len > 0 => list[choices.below(len) as usize] = text.to_vec(),
        7 => list.insert(choices.below(len + 1) as usize, text.to_vec()),
        8 if len > 0 => {
            let index = choices.below(len) as usize;
            let count = choices.below(len - index as u64 + 1) as usize;
            list.drain(index..index + count);
        }
        _ => {}
    }
}

fn scan_all(keyspace: &Keyspace, db: u16, now: Millis, count: u64) -> BTreeSet<Text> {
    let (mut cursor, mut names) = (0, BTreeSet::new());
    loop {
        cursor = keyspace
            .scan(db, now, cursor, count, &mut |key, kind| {
                // A key without a kind is past its deadline.
                names.extend(kind.map(|_| key.to_vec()));
            })
            .next_cursor;
        if cursor == 0 {
            return names;
        }
    }
}

fn run(seed: u64, steps: u32) {
    let mut run = Run::new(seed);
    (0..steps).for_each(|_| run.step());
    run.model.expire();
    run.step_expire();
}

#[test]
fn agrees_with_its_naive_twin_over_random_streams_with_time_moved_by_hand() {
    (0..150).for_each(|seed| run(seed, 400));
}

#[test]
fn agrees_with_its_naive_twin_over_long_streams() {
    (1000..1010).for_each(|seed| run(seed, 8000));
}

/// Deadlines on keys that come and go, so that leaves with different earliest deadlines merge and split
/// again.
#[test]
fn nothing_due_is_left_however_leaves_merged_and_split_since() {
    for seed in 0..6 {
        let mut run = Run::new(seed);
        run.keys = 3000;
        for round in 0..40 {
            let sets_of_16 = if round % 4 < 2 { 15 } else { 1 };
            for _ in 0..1500 {
                let (key, at) = (run.key(), run.model.now + 1 + run.random.below(3000) as i64);
                if run.random.below(16) < sets_of_16 {
                    let expiry = Expiry::At(Millis(at));
                    run.with(0, &key, |view, key| view.put_string(key, b"v", Form::Auto, expiry));
                    run.model.put_string(0, &key, b"v", expiry);
                } else {
                    run.with(0, &key, |view, key| view.remove(key));
                    run.model.remove(0, &key);
                }
            }
            run.model.now += run.random.below(300) as i64;
            run.model.expire();
            run.step_expire();
        }
    }
}

#[test]
fn overflow_is_refused_and_leaves_the_value() {
    let run = Run::new(1);
    run.with(0, b"n", |view, key| {
        assert_eq!(view.add(key, i64::MAX), Ok(i64::MAX));
        assert_eq!(view.add(key, 1), Err(AddError::Overflow));
        assert_eq!(view.string(key), Ok(Some(Item::Int(i64::MAX))));
    });
}

/// Nobody has told these views to leave copies to others.
fn wrong(error: EditError) -> WrongType {
    assert_eq!(error, EditError::WrongType);
    WrongType
}
