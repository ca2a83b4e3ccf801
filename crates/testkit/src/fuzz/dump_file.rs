//! A dump file of any bytes, behind whose header stand those of the input, without a checksum: it is loaded,
//! or refused. What was loaded is the same once it was saved and loaded again.
use base::Millis;
use base::hash::Seed;
use disk::rdb::{
    About, FileForm, FileReader, Form, LoadCounts, LoadError, LoadRules, Output, Piece, Sorted, Sorter, dump,
    save_file,
};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::ControlFlow;
use store::{Deadline, FrozenEntry, Keyspace, KeyspaceOptions, Policy, Settings};

const VERSIONS: [&str; 6] = ["REDIS0003", "REDIS0009", "REDIS0010", "REDIS0011", "REDIS0012", "VALKEY080"];
const NOW: Millis = Millis(1_780_000_000_000);
const FORM: Form = Form { version: 12, compresses: false };

pub(super) fn run(data: &[u8]) {
    let Some((first, parts)) = data.split_first() else { return };
    let version = VERSIONS[usize::from(*first) % VERSIONS.len()];
    let file = [version.as_bytes(), parts, &[0xFF], &[0; 8]].concat();
    let (one, two) = (keyspace(1), keyspace(2));
    if load(&one, &file).is_err() {
        return;
    }
    load(&two, &saved(&one)).expect("what is saved is a dump file");
    assert!(contents(&one) == contents(&two), "and the same data");
}

fn keyspace(seed: u64) -> Keyspace {
    Keyspace::new(KeyspaceOptions { shard_bits: 1, databases: 4, seed: Seed::new(seed, 1) })
}

fn load(keyspace: &Keyspace, file: &[u8]) -> Result<LoadCounts, LoadError> {
    let settings = Settings::default();
    let go_on = || ControlFlow::Continue(());
    let rules = LoadRules { keyspace, settings: &settings, now: NOW, replaces: false, go_on: &go_on };
    let mut reader = FileReader::open(file, file.len() as u64, &settings, true)?;
    let sorted = Sorted::new(keyspace.shards(), reader.version());
    let mut counts = LoadCounts::default();
    let mut sorter = Sorter::new(&sorted);
    loop {
        match reader.next_piece()? {
            Piece::Batch(batch) => sorter.sort(&batch, &rules, &mut counts)?,
            Piece::Large => reader.load_key(&rules, &mut counts)?,
            Piece::About(..) | Piece::Function(_) | Piece::Module(_) => {}
            Piece::End => break,
        }
    }
    sorter.finish();
    (0..sorted.shards()).try_for_each(|shard| sorted.load(shard, &rules, &mut counts).map(drop))?;
    Ok(counts)
}

struct Memory(Vec<u8>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for Memory {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn saved(keyspace: &Keyspace) -> Vec<u8> {
    let form = FileForm { form: FORM, has_checksum: true, syncs: false };
    let frozen = keyspace.freeze(NOW, Policy::NoEviction);
    let mut memory = Memory(Vec::new());
    let settings = Settings::default();
    let go_on = &mut |_| ControlFlow::Continue(());
    save_file(frozen, &mut memory, (&About::default(), &settings, form), go_on).expect("memory has room");
    memory.0
}

/// Every key but hashes whose fields are all past their deadline, which are as good as gone.
fn contents(keyspace: &Keyspace) -> BTreeMap<(u16, Vec<u8>), (Deadline, Vec<u8>)> {
    let mut all = BTreeMap::new();
    for db in keyspace.freeze(NOW, Policy::NoEviction).into_dbs() {
        let number = db.number;
        let mut add = |entry: FrozenEntry<'_>| {
            if entry.value.hash().is_none_or(|hash| hash.live_len() > 0) {
                let value = dump(entry.value, &Settings::default(), FORM);
                all.insert((number, entry.key.to_vec()), (entry.deadline, value));
            }
            ControlFlow::Continue(())
        };
        let _ = db.into_shards().try_for_each(|shard| shard.visit(&mut add));
    }
    all
}
