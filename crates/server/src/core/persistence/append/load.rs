//! Loads the append-only file, when the server starts: its base, then its increments in their order.
//!
//! What may be wrong with it: only the last increment may end in the middle of a command or a transaction,
//! because a crash leaves that; or the one before it, where nothing was written to the last one yet.
//! `aof-load-truncated` says whether the end is cut off then. All else keeps the server from starting, with
//! the file and the place, and changes nothing.
//!
//! Where nothing is there yet, the files are made. As in Redis a dump file is not looked at: the append-only
//! file is what holds the data.
use super::super::load::{load_dump, open};
use super::files::{
    claim_at, create_increment, folder, length, manifest_path, move_single, next_increment, open_increment,
    os, read_manifest, remove, set_aside, shown, single_file, take_over_single, told_aside, write_manifest,
};
use super::replay::{End, Replay, Replayed};
use super::rewrite::{names, turn_on_at_start};
use super::tail;
use crate::core::memory_limit::free_flushed;
use crate::core::server::Server;
use crate::state::append_only::{Files, Opened};
use crate::state::config::{Config, reason};
use crate::state::disk::{Disk, DiskFile, leave_memory};
use crate::state::lock::lock;
use disk::aof::manifest::{Manifest, Part};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::BEFORE_ALL;

/// What dump files begin with, those of Redis and those of Valkey 9.
const DUMP_MARKS: [&[u8]; 2] = [b"REDIS", b"VALKE"];
/// How the names of bases end that are dump files.
const DUMP_NAME: &[u8] = b".base.rdb";

/// Whether there is anything to load, or what keeps it from being loaded.
pub(crate) fn has_data(config: &Config) -> bool {
    let folder = folder(config);
    match read_manifest(&manifest_path(&folder, config)) {
        Ok(None) => single_file(config).is_file(),
        Ok(Some(manifest)) => manifest.parts().any(|part| length(&folder, part) != Ok(0)),
        Err(_) => true,
    }
}

/// Loads it, and has what changes the data appended from here on.
pub(crate) fn load(server: &Server) -> Result<(), String> {
    let (config, disk) = (&server.config(), &server.persistence.disk);
    let began_us = server.clock.steady_us();
    let fatal = |what: &str, error: &io::Error| format!("Fatal error: {what}: {}. Exiting.", reason(error));
    let path = folder(config);
    let what = format!("Can't use the folder of the append-only file, {}", path.display());
    let (claim, folder) = claim_at(disk, &path).map_err(|error| fatal(&what, &error))?;
    // A server that was killed, or whose disk has failed, may have left names that the disk does not have
    // yet.
    disk.sync_folder(&folder).map_err(|error| fatal(&what, &error))?;
    let manifest = match find(disk, config)? {
        Some(manifest) => {
            tail::complete(server, config, &manifest)?;
            load_parts(server, config, (&folder, &manifest), false)?;
            let seconds = (server.clock.steady_us() - began_us) as f64 / 1e6;
            server.log.notice(&format!("DB loaded from append only file: {seconds:.3} seconds"));
            manifest
        }
        None => {
            let aside = set_aside(disk, (&folder, config), &[])
                .map_err(|error| fatal("Can't rename files that no list names", &error))?;
            told_aside(&aside).iter().for_each(|text| server.log.warning(text));
            Manifest::default()
        }
    };
    let (manifest, file) = go_on_with(disk, (&folder, config), manifest)
        .map_err(|error| fatal("Can't open the append-only file", &error))?;
    let last = manifest.increments.last();
    let (number, len) =
        (last.map_or(0, |part| part.number), last.map_or(Ok(0), |part| length(&folder, part))?);
    let sum = |parts: &[Part]| parts.iter().map(|part| length(&folder, part)).sum::<Result<u64, String>>();
    let append = &server.append;
    let base_bytes = sum(manifest.base.as_slice())?;
    let former = manifest.increments.split_last().map_or(&[][..], |(_, former)| former);
    // Former increments are not written to, and go with the base when it is replaced.
    append.base_bytes.store(base_bytes + sum(former)?, Relaxed);
    // How long all was when the base was written is not known any more.
    append.bytes_at_begin.store(base_bytes, Relaxed);
    append.current_bytes.store(len, Relaxed);
    if !append.is_wanted() {
        server.log.notice("The append-only file was turned off while it was loaded");
        return Ok(());
    }
    *lock(&append.files) = Files { folder, manifest, tried: Vec::new(), claim: Some(claim) };
    let file = Opened { number, file, len };
    turn_on_at_start(server, config, file)
        .map_err(|error| fatal("Can't append to the append-only file", &error))
}

/// Loads it again (DEBUG LOADAOF), while the caller holds all gates. What is there goes before.
pub(crate) fn load_again(server: &Server, config: &Config) -> Result<(), String> {
    free_flushed(server, &mut server.keyspace.flush(None).1);
    let files = lock(&server.append.files);
    let (folder, manifest) = (files.folder.clone(), files.manifest.clone());
    drop(files);
    load_parts(server, config, (&folder, &manifest), true)
}

/// The list of files; None where there are none.
fn find(disk: &Arc<Disk>, config: &Config) -> Result<Option<Manifest>, String> {
    let fatal =
        |error: io::Error| format!("Fatal error: can't take over the append-only file: {}", reason(&error));
    match read_manifest(&manifest_path(&folder(config), config))? {
        Some(manifest) => {
            move_single(disk, config, &manifest).map_err(fatal)?;
            Ok(Some(manifest))
        }
        None if single_file(config).is_file() => take_over_single(disk, config).map(Some).map_err(fatal),
        None => Ok(None),
    }
}

/// The last increment is gone on with; a list without one gets one, and files that are not needed any more
/// go.
fn go_on_with(
    disk: &Arc<Disk>,
    (folder, config): (&Path, &Config),
    manifest: Manifest,
) -> io::Result<(Manifest, DiskFile)> {
    let left = remove(disk, folder, &manifest.history);
    let mut next = Manifest { history: left, ..manifest.clone() };
    let file = match manifest.increments.last() {
        Some(last) => open_increment(disk, folder, last)?,
        None => {
            let part = next_increment(config, &Files { manifest: manifest.clone(), ..Files::default() });
            let file = create_increment(disk, folder, &part)?;
            next.increments.push(part);
            file
        }
    };
    if next != manifest {
        write_manifest(disk, (folder, config), &next)?;
    }
    Ok((next, file))
}

/// Loads all files that are listed. `is_alone`: the caller holds all gates.
fn load_parts(
    server: &Server,
    config: &Config,
    (folder, manifest): (&Path, &Manifest),
    is_alone: bool,
) -> Result<(), String> {
    let parts: Vec<&Part> = manifest.base.iter().chain(&manifest.increments).collect();
    let lengths = parts.iter().map(|part| length(folder, part)).collect::<Result<Vec<u64>, String>>()?;
    server.log.notice(&format!("Loading the append-only file: {}", names(manifest)));
    server.persistence.loading.begin(server.clock.now(), lengths.iter().sum());
    server.scripts.libraries.flush();
    for (index, part) in parts.iter().enumerate() {
        let began_us = server.clock.steady_us();
        let is_base = manifest.base.as_ref() == Some(*part);
        // A rewrite lists the next file before the last one is on the disk; no base before all of it is.
        let behind = &lengths[index + 1..];
        let is_last = behind.is_empty() || !is_base && behind.iter().all(|bytes| *bytes == 0);
        load_part(server, config, (folder, part), (is_base, is_last, is_alone))?;
        let seconds = (server.clock.steady_us() - began_us) as f64 / 1e6;
        let what = if is_base { "base" } else { "incr" };
        server.log.notice(&format!("DB loaded from {what} file {}: {seconds:.3} seconds", shown(&part.name)));
    }
    let loading = &server.persistence.loading;
    loading.end(loading.keys.load(Relaxed), 0);
    let failed = loading.failed.load(Relaxed);
    if failed > 0 {
        server.log.warning(&format!(
            "{failed} of the commands in the append-only file could not be run, and have changed nothing"
        ));
    }
    // At a start the commands of the file are changes since the last snapshot, as in Redis.
    if is_alone {
        note_unchanged(server);
    }
    Ok(())
}

/// What was loaded does not count as changed since the last snapshot.
fn note_unchanged(server: &Server) {
    server.persistence.saves.saved_changes.store(server.keyspace.stats().dirty, Relaxed);
}

/// Loads one file: a dump file, which commands may follow, or commands.
fn load_part(
    server: &Server,
    config: &Config,
    (folder, part): (&Path, &Part),
    (is_base, is_last, is_alone): (bool, bool, bool),
) -> Result<(), String> {
    let path = folder.join(os(&part.name));
    let fatal =
        |why: &str| format!("Fatal error loading the append only file {}: {why}. Exiting.", path.display());
    let io_fatal = |error: io::Error| fatal(&reason(&error));
    let (mut file, bytes) = open(&path).map_err(io_fatal)?;
    let mut mark = Vec::new();
    file.by_ref().take(DUMP_MARKS[0].len() as u64).read_to_end(&mut mark).map_err(io_fatal)?;
    file.rewind().map_err(io_fatal)?;
    let mut first = 0;
    let is_dump = DUMP_MARKS.contains(&&mark[..]);
    if is_base && !is_dump && part.name.ends_with(DUMP_NAME) {
        return Err(fatal("it does not begin like a dump file"));
    }
    if is_base && is_dump {
        let dump = file.try_clone().map_err(io_fatal)?;
        // When keys were used last is kept as how long that is ago.
        server.keyspace.set_replay_clock(server.clock.now());
        (_, first) = load_dump(server, config, dump, (BEFORE_ALL, false)).map_err(|why| fatal(&why))?;
        note_unchanged(server);
        file.seek(SeekFrom::Start(first)).map_err(io_fatal)?;
    }
    let again = file.try_clone().map_err(io_fatal)?;
    let replayed = Replay::new(server, file, first, is_alone).run(config.worker_threads);
    let replayed = replayed.map_err(|why| fatal(&why))?;
    // What is appended from here on would stand behind something else than what was loaded.
    let bytes_now = again.metadata().map_err(io_fatal)?.len();
    if bytes_now != bytes {
        return Err(fatal(&format!("it had {bytes} bytes and has {bytes_now} now: somebody changes it")));
    }
    leave_memory(&again);
    if replayed.end == End::Whole {
        return Ok(());
    }
    let shown = path.display();
    let Replayed { good_bytes, end } = replayed;
    if !is_last {
        return Err(fatal(&format!(
            "it ends too early (at byte {bytes}), and it is not the last file. Its last whole command ends at byte \
             {good_bytes}"
        )));
    }
    if end == End::InTransaction {
        server.log.warning("Revert incomplete MULTI/EXEC transaction from AOF file");
    }
    server.log.warning(&format!("!!! Warning: short read while loading the AOF file {shown}!!!"));
    if !config.append.may_be_truncated {
        return Err(fatal(
            "Unexpected end of file reading the append only file. You can: 1) Make a backup of your AOF file, then use \
             sardine check --fix <filename.manifest>. 2) Alternatively you can set the 'aof-load-truncated' \
             configuration option to yes and restart the server",
        ));
    }
    server.log.warning(&format!("AOF {shown} loaded anyway because aof-load-truncated is enabled"));
    server.log.warning(&format!("Truncating the AOF {shown} at offset {good_bytes}"));
    let cut = server.persistence.disk.open(path.clone()).and_then(|file| {
        file.cut(good_bytes)?;
        file.sync()
    });
    cut.map_err(io_fatal)
}
