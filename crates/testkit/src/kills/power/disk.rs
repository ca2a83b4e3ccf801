//! A disk that keeps what it is told to keep, and of the rest what a seed says. It follows what a server does
//! to real files (`server::DiskWatch`), fails some of it, and knows what a failure of power would leave.
//!
//! ```text
//! node      safe | change, change, ...        what is on the disk for sure; what was written since
//! names     safe | change, change, ...        likewise, for the names in folders
//! ```
//!
//! A sync of a file makes the changes safe that were there when it began, a sync of a folder those of its
//! names. Of all others a failure of power leaves any part: the first of them, or some, in pieces of a
//! sector; what is missing before something that is there reads as zeros. A sync that fails may have lost
//! some of what it was to keep for good, whatever later ones say, as with Linux.
use base::random::Random;
use server::{DiskAct, DiskWatch};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread::{ThreadId, current};

/// What is written or not as a whole.
const SECTOR_BYTES: usize = 512;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// The content of a file, whatever its name.
#[derive(Clone, Debug, Default)]
struct Node {
    safe: Vec<u8>,
    changes: Vec<Change>,
    /// How long it is for those who read it.
    len: usize,
    /// How many changes were there and are not in `changes` any more.
    passed: usize,
    /// Whoever syncs it: how many changes there had been when he began, and how long it was.
    syncs: Vec<(ThreadId, usize, usize)>,
}

#[derive(Clone, Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Cut(usize),
}

/// Names that change in one step, with the nodes that they have then.
type Naming = Vec<(PathBuf, Option<usize>)>;

/// See the file's opener.
pub(super) struct SimulatedDisk(Mutex<State>);

struct State {
    random: Random,
    nodes: Vec<Node>,
    /// As the processes of the machine see them.
    names: BTreeMap<PathBuf, usize>,
    safe_names: BTreeMap<PathBuf, usize>,
    namings: Vec<Naming>,
    /// Folders that were made, and whether the folder above them was synced since.
    folders: BTreeMap<PathBuf, bool>,
    /// One call of so many fails; 0: none.
    fails_of: u64,
    failed: u64,
    /// A sync that fails loses something for good.
    loses: bool,
}

/// What a failure of power leaves of changes that are not safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    All,
    None,
    /// The first of them.
    First,
    /// Any of them, in pieces.
    Some,
}

impl Left {
    fn draw(random: &mut Random) -> Left {
        [Left::All, Left::None, Left::First, Left::Some][random.below(4) as usize]
    }

    /// For each of so many changes: whether it is there.
    fn choose(self, count: usize, random: &mut Random) -> Vec<bool> {
        let first = random.below(count as u64 + 1) as usize;
        (0..count)
            .map(|index| match self {
                Left::All => true,
                Left::None => false,
                Left::First => index < first,
                Left::Some => random.below(2) == 0,
            })
            .collect()
    }
}

/// What is in the folders after a failure of power.
pub(super) struct Image {
    files: BTreeMap<PathBuf, Vec<u8>>,
    folders: Vec<PathBuf>,
}

impl Image {
    /// Makes these files, which were in folder `from`, in a new folder.
    pub(super) fn write(&self, from: &Path, to: &Path) -> io::Result<()> {
        let moved = |path: &Path| path.strip_prefix(from).map(|rest| to.join(rest)).map_err(io::Error::other);
        for folder in &self.folders {
            fs::create_dir(moved(folder)?)?;
        }
        for (path, bytes) in &self.files {
            fs::write(moved(path)?, bytes)?;
        }
        Ok(())
    }
}

impl SimulatedDisk {
    /// A disk with what is in this folder, all of it safe.
    pub(super) fn of(folder: &Path, seed: u64, loses: bool) -> io::Result<SimulatedDisk> {
        let mut state = State {
            random: Random::new(seed),
            nodes: Vec::new(),
            names: BTreeMap::new(),
            safe_names: BTreeMap::new(),
            namings: Vec::new(),
            folders: BTreeMap::new(),
            fails_of: 0,
            failed: 0,
            loses,
        };
        state.take_in(folder)?;
        state.safe_names = state.names.clone();
        Ok(SimulatedDisk(Mutex::new(state)))
    }

    /// From here on one call of so many fails; 0: none does.
    pub(super) fn fail_one_of(&self, count: u64) {
        self.lock().fails_of = count;
    }

    /// How many calls have failed.
    pub(super) fn failed(&self) -> u64 {
        self.lock().failed
    }

    /// What would be there if the power failed now.
    pub(super) fn image(&self) -> Image {
        self.lock().image()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics with it")
    }
}

impl State {
    fn take_in(&mut self, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let about = fs::symlink_metadata(&path)?;
            if about.is_dir() {
                self.take_in(&path)?;
                self.folders.insert(path, true);
            } else if about.is_file() {
                let safe = fs::read(&path)?;
                self.names.insert(path, self.nodes.len());
                self.nodes.push(Node { len: safe.len(), safe, ..Node::default() });
            }
        }
        Ok(())
    }

    fn node(&mut self, path: &Path) -> io::Result<&mut Node> {
        let number = self.names.get(path).copied().ok_or(io::ErrorKind::NotFound)?;
        Ok(&mut self.nodes[number])
    }

    fn name(&mut self, naming: Naming) {
        for (path, node) in &naming {
            match node {
                Some(node) => drop(self.names.insert(path.clone(), *node)),
                None => drop(self.names.remove(path)),
            }
        }
        self.namings.push(naming);
    }

    fn done(&mut self, act: DiskAct<'_>) -> io::Result<()> {
        match act {
            DiskAct::Create(path) => {
                self.nodes.push(Node::default());
                self.name(vec![(path.into(), Some(self.nodes.len() - 1))]);
            }
            DiskAct::Write(path, bytes) => {
                let node = self.node(path)?;
                node.changes.push(Change::Write(node.len, bytes.to_vec()));
                node.len += bytes.len();
            }
            DiskAct::Cut(path, len) => {
                let node = self.node(path)?;
                node.changes.push(Change::Cut(len as usize));
                node.len = len as usize;
            }
            DiskAct::Sync(path) => self.node(path)?.end_sync(),
            DiskAct::Rename(from, to) => {
                let node = self.names.get(from).copied().ok_or(io::ErrorKind::NotFound)?;
                self.name(vec![(from.into(), None), (to.into(), Some(node))]);
            }
            DiskAct::Remove(path) => self.name(vec![(path.into(), None)]),
            DiskAct::MakeFolder(path) => drop(self.folders.insert(path.into(), false)),
            DiskAct::SyncFolder(folder) => self.sync_folder(folder),
        }
        Ok(())
    }

    fn sync_folder(&mut self, folder: &Path) {
        let is_there = |path: &Path| path.parent() == Some(folder);
        for naming in std::mem::take(&mut self.namings) {
            let (safe, rest): (Naming, Naming) = naming.into_iter().partition(|(path, _)| is_there(path));
            apply(&mut self.safe_names, &safe);
            if !rest.is_empty() {
                self.namings.push(rest);
            }
        }
        self.folders.iter_mut().filter(|(path, _)| is_there(path)).for_each(|(_, is_safe)| *is_safe = true);
    }

    /// Some of what a sync was to keep is lost for good.
    fn lose(&mut self, path: &Path) {
        let left = Left::draw(&mut self.random);
        let mut random = Random::new(self.random.next_u64());
        let Ok(node) = self.node(path) else { return };
        let chosen = left.choose(node.changes.len(), &mut random);
        node.safe = node.left(&chosen, (left == Left::Some).then_some(&mut random));
        node.passed += std::mem::take(&mut node.changes).len();
    }

    fn image(&mut self) -> Image {
        let mut random = Random::new(self.random.next_u64());
        let mut names = self.safe_names.clone();
        let left = Left::draw(&mut random);
        let chosen = left.choose(self.namings.len(), &mut random);
        let there = self.namings.iter().zip(chosen).filter(|(_, is_there)| *is_there);
        there.for_each(|(naming, _)| apply(&mut names, naming));
        let is_safe = |path: &PathBuf, random: &mut Random| self.folders[path] || random.below(2) == 0;
        let folders: Vec<PathBuf> =
            self.folders.keys().filter(|path| is_safe(path, &mut random)).cloned().collect();
        // What is in a folder goes with it.
        let is_lost = |path: &Path| {
            let parent = path.parent().map(Path::to_path_buf);
            parent.is_some_and(|parent| self.folders.contains_key(&parent) && !folders.contains(&parent))
        };
        let mut files = BTreeMap::new();
        for (path, node) in names.into_iter().filter(|(path, _)| !is_lost(path)) {
            let (left, node) = (Left::draw(&mut random), &self.nodes[node]);
            let chosen = left.choose(node.changes.len(), &mut random);
            files.insert(path, node.left(&chosen, (left == Left::Some).then_some(&mut random)));
        }
        Image { files, folders }
    }
}

fn apply(names: &mut BTreeMap<PathBuf, usize>, naming: &Naming) {
    for (path, node) in naming {
        match node {
            Some(node) => drop(names.insert(path.clone(), *node)),
            None => drop(names.remove(path)),
        }
    }
}

impl Node {
    fn begin_sync(&mut self) {
        self.syncs.push((current().id(), self.passed + self.changes.len(), self.len));
    }

    /// What was there when this thread began is safe.
    fn end_sync(&mut self) {
        let its = self.syncs.iter().position(|(thread, ..)| *thread == current().id());
        let Some((_, count, len)) = its.map(|its| self.syncs.remove(its)) else { return };
        // Another thread's sync, which began later, may have ended before.
        let Some(count) = count.checked_sub(self.passed) else { return };
        self.safe = self.left(&vec![true; count], None);
        self.changes.drain(..count);
        self.passed += count;
        // What was lost for good reads as zeros; how long the file is, is known.
        self.safe.resize(len, 0);
    }

    /// What is on the disk if these of its changes are; with `pieces` some sectors of each are not.
    fn left(&self, chosen: &[bool], mut pieces: Option<&mut Random>) -> Vec<u8> {
        let mut bytes = self.safe.clone();
        for (change, _) in self.changes.iter().zip(chosen).filter(|(_, is_there)| **is_there) {
            match change {
                Change::Cut(len) => bytes.truncate(*len),
                Change::Write(at, written) => {
                    let mut from = *at;
                    let end = at + written.len();
                    while from < end {
                        let to = ((from / SECTOR_BYTES + 1) * SECTOR_BYTES).min(end);
                        if pieces.as_mut().is_none_or(|random| random.below(3) > 0) {
                            bytes.resize(bytes.len().max(to), 0);
                            bytes[from..to].copy_from_slice(&written[from - at..to - at]);
                        }
                        from = to;
                    }
                }
            }
        }
        bytes
    }
}

impl DiskWatch for SimulatedDisk {
    fn before(&self, act: DiskAct<'_>) -> io::Result<usize> {
        let mut state = self.lock();
        let len = if let DiskAct::Write(_, bytes) = act { bytes.len() } else { 0 };
        let fails_of = state.fails_of;
        if fails_of == 0 || state.random.below(fails_of) > 0 {
            if let DiskAct::Sync(path) = act
                && let Ok(node) = state.node(path)
            {
                node.begin_sync();
            }
            return Ok(len);
        }
        state.failed += 1;
        match act {
            DiskAct::Sync(path) if state.loses => state.lose(path),
            // It may take some of it.
            DiskAct::Write(..) if len > 1 && state.random.below(2) == 0 => {
                return Ok(1 + state.random.below(len as u64 - 1) as usize);
            }
            _ => {}
        }
        Err(io::Error::from_raw_os_error(if state.random.below(2) == 0 { EIO } else { ENOSPC }))
    }

    fn after(&self, act: DiskAct<'_>) {
        // A file that was removed may be written to by whoever still has it open. Nobody reads that.
        let _ = self.lock().done(act);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_synced_is_there_and_of_the_rest_any_part() {
        let (folder, file, other) = (Path::new("/d"), Path::new("/d/a"), Path::new("/d/b"));
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let mut state = SimulatedDisk::of(&std::env::temp_dir().join("nothing-there"), seed, true);
            assert!(state.is_err(), "a folder has to be there");
            state = SimulatedDisk::of(crate::scratch::Scratch::new("power").unwrap().path(), seed, true);
            let disk = state.unwrap();
            for act in [
                DiskAct::Create(file),
                DiskAct::Write(file, b"safe"),
                DiskAct::Sync(file),
                DiskAct::SyncFolder(folder),
                DiskAct::Rename(file, other),
            ] {
                disk.before(act).unwrap();
                disk.after(act);
            }
            // This one comes while a sync is under way that has begun before it.
            let late = DiskAct::Write(other, &[b'x'; 600]);
            disk.before(DiskAct::Sync(other)).unwrap();
            disk.before(late).unwrap();
            disk.after(late);
            disk.after(DiskAct::Sync(other));
            let image = disk.image();
            assert_eq!(image.files.len(), 1);
            let (path, bytes) = image.files.into_iter().next().unwrap();
            assert!(bytes.starts_with(b"safe"));
            seen.insert((path, bytes.len(), bytes[4..].first().copied()));
        }
        // Under both names: nothing, the first sector, both, and the second behind zeros.
        assert_eq!(seen.len(), 8, "{seen:?}");
    }
}
