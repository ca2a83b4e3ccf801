//! A process that is killed at any moment, played through: whatever its tail and its files were then, the
//! files have after the next start what was answered, in order and nothing else.
use super::*;
use crate::journal::{Audience, Group};
use base::random::Random;
use std::collections::BTreeMap;
use std::sync::Mutex;

const ORIGIN: Origin = Origin { boot: [7; 16], made_ns: 99 };
const LANES: usize = 3;
const RING_BYTES: usize = RING_BYTES_MAX;
const LANE_BYTES: usize = HEAD_BYTES + RING_BYTES;

/// What changes outside of the process.
#[derive(Clone)]
enum Act {
    Put(usize, Vec<u8>),
    /// Bytes are appended to the increment with this number.
    Append(u64, Vec<u8>),
    /// These increments are listed, behind a base that has all records below a number.
    List(Vec<u64>, u64),
    /// Records below this number may be answered from here on.
    Answer(u64),
    /// This one is exposed, and is not answered with them.
    Owe(u64),
}

#[derive(Clone, Default)]
struct Acts(Arc<Mutex<Vec<Act>>>);

impl Acts {
    fn add(&self, act: Act) {
        self.0.lock().unwrap().push(act);
    }
}

/// A part of the tail's memory.
struct Part(Acts, usize);

impl Memory for Part {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        // The process may be killed within a copy.
        let (one, other) = bytes.split_at(bytes.len() / 2);
        self.0.add(Act::Put(self.1 + at, one.to_vec()));
        self.0.add(Act::Put(self.1 + at + one.len(), other.to_vec()));
    }

    fn put_word(&mut self, at: usize, word: u64) {
        self.0.add(Act::Put(self.1 + at, word.to_ne_bytes().to_vec()));
    }

    fn address(&self, _: usize) -> *const u8 {
        std::ptr::null()
    }
}

/// The commands of a record, each with its database.
type Commands = Vec<(u16, String)>;

/// The process.
struct Process {
    acts: Acts,
    random: Random,
    head: Head<Part>,
    rings: Vec<Ring<Part>>,
    written: Arc<AtomicU64>,
    exposed: u64,
    /// A record is exposed and nobody has heard of it yet: for so many steps more. It is not published
    /// either.
    hidden: Option<(u64, u64)>,
    /// What was recorded, and how much of that the writer has taken.
    records: Vec<(Records, Commands)>,
    taken: u64,
    stream: Stream,
    place: Place,
    listed: Vec<u64>,
    base: u64,
    cuts: VecDeque<(u64, u64)>,
}

impl Process {
    fn begin(seed: u64) -> Process {
        let (acts, written) = (Acts::default(), Arc::new(AtomicU64::new(0)));
        acts.add(Act::List(vec![1], 0));
        let lane = |lane| Part(acts.clone(), HEAD_BYTES + lane * LANE_BYTES);
        let rings =
            (0..LANES).map(|index| Ring::begin(lane(index), RING_BYTES, Arc::clone(&written))).collect();
        let mut process = Process {
            random: Random::new(seed),
            head: Head::begin(Part(acts.clone(), 0), ORIGIN, LANES),
            rings,
            written,
            exposed: 0,
            hidden: None,
            records: Vec::new(),
            taken: 0,
            stream: Stream::for_files(),
            place: Place { file: 1, len: 0, next: 0, db: None },
            listed: vec![1],
            base: 0,
            cuts: VecDeque::new(),
            acts,
        };
        // Nobody is answered before the first time.
        process.write_all();
        process
    }

    fn next(&self) -> u64 {
        self.records.len() as u64
    }

    /// How many records the writer can see.
    fn published(&self) -> u64 {
        self.hidden.map_or(self.next(), |(number, _)| number)
    }

    fn step(&mut self) {
        if let Some((number, left)) = self.hidden {
            self.hidden = (left > 0).then(|| (number, left - 1));
            if left == 0 {
                self.expose(number);
            }
        }
        match self.random.below(20) {
            0..12 => self.record(),
            12..14 => self.write_some(),
            14..18 => self.write_all(),
            18 => self.cut(),
            _ => self.begin_anew(),
        }
        let answerable = if self.exposed <= self.place.next { self.next() } else { self.place.next };
        self.acts.add(Act::Answer(answerable));
    }

    fn record(&mut self) {
        let number = self.next();
        let (mut group, mut commands) = (Group::default(), Vec::new());
        let len = if self.random.below(30) == 0 { RING_BYTES } else { self.random.below(90) as usize };
        for part in 0..[1, 1, 1, 2, 3][self.random.below(5) as usize] {
            let db = self.random.below(3) as u16;
            let audience = match self.random.below(6) {
                0 => Audience::Replicas,
                _ => Audience::Everybody,
            };
            let (key, value) = (format!("k{number}.{part}"), "v".repeat(len));
            group.add(db, audience, ["SET", &key, &value].map(str::as_bytes).into_iter());
            if audience == Audience::Everybody {
                commands.push((db, format!("SET {key} {value}")));
            }
        }
        let ring = &mut self.rings[self.random.below(LANES as u64) as usize];
        let mut records = Records::default();
        let frames = group.frames().to_vec();
        group.finish(number, &mut records);
        let kept = match records.run(0).unwrap().words() {
            Some((db, words)) => ring.keep(number, Kept::Words(db, words)),
            None => ring.keep(number, Kept::Frames(&frames)),
        };
        self.records.push((records, commands));
        if kept {
            return;
        }
        self.acts.add(Act::Owe(number));
        match self.random.below(2) {
            0 if self.hidden.is_none() => self.hidden = Some((number, self.random.below(4))),
            _ => self.expose(number),
        }
    }

    fn expose(&mut self, number: u64) {
        self.exposed = self.exposed.max(number + 1);
        self.head.stop_at(self.next());
    }

    /// The next record that the writer takes; it goes on with another file where that begins.
    fn take(&mut self, out: &mut Vec<u8>) {
        while let Some((file, _)) = self.cuts.pop_front_if(|(_, from)| self.taken >= *from) {
            self.append(out);
            self.place = Place { file, len: 0, ..self.place };
            self.stream.begin_anew();
        }
        if self.random.below(8) == 0 {
            out.extend_from_slice(b"#TS:1795408961\r\n");
        }
        let run = self.records[self.taken as usize].0.run(0).unwrap();
        // What a base has already need not be written.
        if self.taken >= self.base {
            self.stream.write(&run, out);
        }
        self.taken += 1;
    }

    fn append(&mut self, out: &mut Vec<u8>) {
        let bytes = std::mem::take(out);
        self.place.len += bytes.len() as u64;
        let cut = self.random.below(bytes.len() as u64 + 1) as usize;
        self.acts.add(Act::Append(self.place.file, bytes[..cut].to_vec()));
        self.acts.add(Act::Append(self.place.file, bytes[cut..].to_vec()));
    }

    /// Writes some records, and tells nobody.
    fn write_some(&mut self) {
        let mut out = Vec::new();
        for _ in 0..self.random.below(4).min(self.published() - self.taken) {
            self.take(&mut out);
        }
        self.append(&mut out);
    }

    fn write_all(&mut self) {
        let mut out = Vec::new();
        while self.taken < self.published() {
            self.take(&mut out);
        }
        self.append(&mut out);
        self.place = Place { next: self.taken, db: self.stream.db(), ..self.place };
        self.head.commit(self.place, self.exposed);
        note_written(&self.written, self.taken);
    }

    /// Another file is listed, and begins here.
    fn cut(&mut self) {
        if self.cuts.len() < 2 {
            let (file, from) = (self.listed.last().unwrap() + 1, self.next());
            self.listed.push(file);
            self.acts.add(Act::List(self.listed.clone(), self.base));
            self.head.note_cut(file, from);
            self.cuts.push_back((file, from));
        }
    }

    /// A base has what is before the last file that was listed.
    fn begin_anew(&mut self) {
        if let Some((file, from)) = self.cuts.back().copied() {
            (self.listed, self.base) = (vec![file], from);
            self.acts.add(Act::List(self.listed.clone(), from));
        }
    }
}

/// What a kill leaves.
struct Scene {
    tail: Vec<u8>,
    files: BTreeMap<u64, Vec<u8>>,
    listed: Vec<u64>,
    base: u64,
    answered: u64,
    owed: Vec<u64>,
}

impl Scene {
    fn after(acts: &[Act]) -> Scene {
        let tail = vec![0; HEAD_BYTES + LANES * LANE_BYTES];
        let mut scene =
            Scene { tail, files: BTreeMap::new(), listed: vec![], base: 0, answered: 0, owed: vec![] };
        for act in acts {
            match act {
                Act::Put(at, bytes) => scene.tail[*at..at + bytes.len()].copy_from_slice(bytes),
                Act::Append(file, bytes) => scene.files.entry(*file).or_default().extend_from_slice(bytes),
                Act::List(files, base) => (scene.listed, scene.base) = (files.clone(), *base),
                Act::Answer(number) => scene.answered = scene.answered.max(*number),
                Act::Owe(number) => scene.owed.push(*number),
            }
        }
        scene
    }

    fn increments(&self) -> Vec<(u64, u64)> {
        let len = |file| self.files.get(file).map_or(0, |bytes| bytes.len() as u64);
        self.listed.iter().map(|file| (*file, len(file))).collect()
    }

    /// What the next start does.
    fn complete(&mut self) {
        let Some(left) = Left::read(&self.tail, ORIGIN).unwrap() else { return };
        let increments = self.increments();
        let target = left.target(&increments).expect("one of the files goes on");
        let file = self.files.entry(increments[target.index].0).or_default();
        match left.missing(&target, &file[target.len as usize..]) {
            Missing::Nothing => {}
            Missing::Some { stays, bytes } => {
                file.truncate(target.len as usize + stays as usize);
                file.extend_from_slice(&bytes);
            }
            Missing::Other => panic!("the file is ours"),
        }
    }

    /// The commands of all files, but for one that does not end, or its transaction.
    fn commands(&self) -> Commands {
        let mut all = Vec::new();
        for file in &self.listed {
            let bytes = self.files.get(file).map_or(&[][..], |bytes| bytes);
            let (mut reader, mut db, mut open) = (CommandReader::new(bytes), 0, None);
            while let Ok(Some(entry)) = reader.next_entry() {
                let Entry::Command(words) = entry else { continue };
                let text = words.join(&b' ');
                let text = String::from_utf8(text).unwrap();
                match text.split_once(' ') {
                    Some(("SELECT", number)) => db = number.parse().unwrap(),
                    None if text == "MULTI" => open = Some(all.len()),
                    None => open = None,
                    _ => all.push((db, text)),
                }
            }
            all.truncate(open.unwrap_or(all.len()));
        }
        all
    }
}

#[test]
fn whenever_the_process_is_killed_the_files_get_what_was_answered() {
    let (mut completed, mut exposed, mut skipped) = (0, 0, 0);
    for seed in 0..150 {
        let mut process = Process::begin(seed);
        (0..120).for_each(|_| process.step());
        exposed += u32::from(process.exposed > 0);
        let acts = process.acts.0.lock().unwrap().clone();
        for _ in 0..60 {
            let kill = process.random.below(acts.len() as u64 + 1) as usize;
            let mut scene = Scene::after(&acts[..kill]);
            let before = scene.commands().len();
            scene.complete();
            let found = scene.commands();
            completed += u32::from(found.len() > before);
            let what = format!("seed {seed}, killed at {kill} of {}", acts.len());
            let mut rest = &found[..];
            for (number, (_, commands)) in (scene.base..).zip(&process.records[scene.base as usize..]) {
                match rest.strip_prefix(&commands[..]) {
                    Some(behind) => rest = behind,
                    None if scene.owed.contains(&number) => skipped += 1,
                    None if number >= scene.answered => break,
                    None => panic!("{what}: record {number} of {} is missing", scene.answered),
                }
            }
            assert!(rest.is_empty(), "{what}: {rest:?} is there in part, or without what comes before");
            let again = scene.files.clone();
            scene.complete();
            assert!(scene.files == again, "{what}: completed twice");
        }
    }
    let counts = (completed, exposed, skipped);
    assert!(completed > 1000 && exposed > 20 && skipped > 100, "{counts:?}");
}

#[test]
fn a_file_that_somebody_else_has_written_to_is_left_alone() {
    let mut process = Process::begin(3);
    process.record();
    process.write_all();
    (0..3).for_each(|_| process.record());
    let acts = process.acts.0.lock().unwrap().clone();
    let scene = Scene::after(&acts);
    let left = Left::read(&scene.tail, ORIGIN).unwrap().unwrap();
    let target = left.target(&scene.increments()).unwrap();
    assert!(matches!(left.missing(&target, b""), Missing::Some { stays: 0, .. }));
    assert_eq!(left.missing(&target, b"*1\r\n$4\r\nPING\r\n"), Missing::Other);
    assert_eq!(left.target(&[(1, target.len - 1)]), None, "it is shorter");
    assert_eq!(left.target(&[(1, target.len), (2, 1)]), None, "nobody knows what the next one begins with");
    assert_eq!(left.target(&[(2, 0)]), None);
    assert_eq!(left.target(&[]), None);
}

#[test]
fn a_tail_of_another_time_does_not_count() {
    let mut process = Process::begin(3);
    process.record();
    let tail = Scene::after(&process.acts.0.lock().unwrap()).tail;
    assert!(Left::read(&tail, ORIGIN).unwrap().is_some());
    assert!(Left::read(&tail, Origin { boot: [8; 16], ..ORIGIN }).is_err(), "another boot");
    assert!(Left::read(&tail, Origin { made_ns: 1, ..ORIGIN }).is_err(), "a copy");
    assert!(Left::read(&tail[..HEAD_BYTES], ORIGIN).is_err());
    assert!(Left::read(&[], ORIGIN).unwrap().is_none());
    assert!(Left::read(&vec![0; tail.len()], ORIGIN).unwrap().is_none(), "never begun");
}

/// A copy reads one part after the other, while all are written to.
#[test]
fn a_copy_whose_parts_are_of_different_moments_is_refused() {
    let mut process = Process::begin(4);
    let mut keep_until = |end: u64| {
        (process.next()..end).for_each(|number| {
            let ring = &mut process.rings[number as usize % LANES];
            assert!(ring.keep(number, Kept::Words(0, b"*1\r\n$4\r\nPING\r\n")));
            process.records.push((Records::default(), Vec::new()));
        });
        Scene::after(&process.acts.0.lock().unwrap()).tail
    };
    let (early, late) = (keep_until(2), keep_until(60));
    assert!(Left::read(&early, ORIGIN).unwrap().is_some() && Left::read(&late, ORIGIN).unwrap().is_some());
    for behind in [HEAD_BYTES + LANE_BYTES, HEAD_BYTES + 2 * LANE_BYTES] {
        let copy = [&early[..behind], &late[behind..]].concat();
        assert!(Left::read(&copy, ORIGIN).is_err(), "{behind}");
    }
}

#[test]
fn any_bytes_are_read_or_refused() {
    let mut process = Process::begin(5);
    (0..12).for_each(|_| process.record());
    let tail = Scene::after(&process.acts.0.lock().unwrap()).tail;
    let mut random = Random::new(1);
    let mut refused = 0;
    for _ in 0..20_000 {
        let mut damaged = tail.clone();
        for _ in 0..1 + random.below(3) {
            // The head, the slots, the lanes' heads and what they begin with.
            let area = [0, 64, 1024, HEAD_BYTES, 2 * HEAD_BYTES, HEAD_BYTES + LANE_BYTES];
            let at = area[random.below(6) as usize] + random.below(80) as usize;
            damaged[at] = random.below(256) as u8;
        }
        match Left::read(&damaged, ORIGIN) {
            Ok(Some(left)) => {
                for increments in [&[(1, 0)][..], &[(1, u64::MAX), (2, 0)], &[(0, 9), (7, 0)]] {
                    let target = left.target(increments);
                    target.iter().for_each(|target| drop(left.missing(target, b"#\r\n*3\r\n$3\r\nSET")));
                }
            }
            Ok(None) => refused += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 1000, "{refused}");
}
