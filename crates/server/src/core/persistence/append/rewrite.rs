//! The append-only file is turned on and off, and begins anew: by a snapshot in the place of all that was
//! written before.
//!
//! ```text
//! file 7 is listed behind base 3, files 4 to 6     a crash from here on: all of these are loaded
//! all gates: freeze, and write to file 7           ... 6 ends where the snapshot was taken
//! base 4 is written
//! base 4 and file 7 are listed, and nothing else   a crash from here on: these are loaded
//! base 3, files 4 to 6 are removed
//! ```
//!
//! One thread does this, one thing after the other. It starts with the first that is asked for.
use super::super::save::{Content, Target, freeze, write_file};
use super::files::{
    claim_at, create_increment, folder, is_at, manifest_path, next_base, next_increment, os, read_manifest,
    remove, set_aside, shown, told_aside, write_manifest,
};
use super::writer::Writer;
use crate::core::journal;
use crate::core::server::Server;
use crate::state::append_only::{Files, Order, Phase, lock};
use crate::state::config::{AppendSync, Config, reason};
use crate::state::disk::DiskFile;
use crate::state::persistence::{Save, UNWRITTEN};
use disk::aof::manifest::{Manifest, Part};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// From so many failures in a row on the next attempt comes later: a minute, twice as long after each, an
/// hour at most.
const FAILURES_MAX: u64 = 3;
const DELAY_S_MAX: i64 = 3600;
/// What begins and fails is tried again after so many seconds at least.
const RETRY_S: i64 = 1;

/// Starts the thread that turns the file on and off, if it does not run yet.
pub(crate) fn start(server: &Server) -> io::Result<()> {
    let mut thread = lock(&server.append.thread);
    if thread.is_none() {
        let owner = server.shared();
        let builder = std::thread::Builder::new().name("sardine-append".into());
        *thread = Some(builder.spawn(move || work(&owner))?);
    }
    Ok(())
}

fn work(server: &Server) {
    loop {
        match server.append.next_order() {
            Order::End => return,
            Order::Rewrite => rewrite(server),
            Order::Stop => stop(server),
        }
    }
}

/// The server ends. Nothing is written any more.
pub(crate) fn end(server: &Server) {
    server.append.end();
}

/// The data is loaded from the file, whose last increment is so long: what changes it is appended from here
/// on. Nobody is served yet.
pub(crate) fn turn_on_at_start(server: &Server, file: DiskFile, len: u64) -> io::Result<()> {
    let all = server.enter_alone();
    let next = server.journal.position(&all);
    let writer = Writer::new(server, file, len, next);
    let reader = journal::attach(server, &all, Box::new(writer))?;
    *lock(&server.append.reader) = Some(reader);
    server.append.enter(Phase::On);
    server.journal.be_urgent(server.append.sync() == AppendSync::Always);
    drop(all);
    Ok(())
}

/// The data is loaded: if the settings have turned the file on or off meanwhile, that is done now.
pub(crate) fn go_on(server: &Server) {
    if server.append.note_loaded() {
        // Without a thread it is tried again ten times a second: [`rewrite_if_due`].
        let _ = start(server);
    }
}

/// Begins the file anew, or for the first time.
fn rewrite(server: &Server) {
    let began_us = server.clock.steady_us();
    let config = server.config();
    let done = try_to_rewrite(server, &config);
    let now_us = server.clock.steady_us();
    match &done {
        Ok(()) => server.log.notice("Background AOF rewrite finished successfully"),
        Err(None) => server.log.notice("Background AOF rewrite was given up"),
        Err(Some(why)) => {
            server.log.warning(why);
            server.log.warning("Background AOF rewrite terminated with error");
        }
    }
    if server.append.phase() == Phase::Off {
        lock(&server.append.files).claim = None;
    }
    // That nobody wants it any more is no failure.
    let is_done = match done {
        Err(None) => None,
        done => Some(done.is_ok()),
    };
    server.append.rewrites.end(is_done, (now_us - began_us) / 1_000_000, now_us);
}

/// The folder of the files, and which are listed. If somebody has removed the folder it is made again, and
/// what is in memory comes into it.
fn claimed(server: &Server, config: &Config) -> Result<(PathBuf, Manifest), Option<String>> {
    let (disk, mut files) = (&server.persistence.disk, lock(&server.append.files));
    let failed = failed("Error opening the folder of the append only file");
    match &files.claim {
        Some(claim) if is_at(claim, &files.folder) => {}
        Some(_) => {
            server.log.warning("The folder of the append-only file was removed: it is made again");
            let (claim, folder) = claim_at(disk, &files.folder).map_err(&failed)?;
            (files.claim, files.folder) = (Some(claim), folder);
        }
        None => {
            let (claim, folder) = claim_at(disk, &folder(config)).map_err(&failed)?;
            // Files of an earlier time are replaced, and their numbers go on.
            let found = read_manifest(&manifest_path(&folder, config)).map_err(Some)?;
            let tried = if files.folder == folder { std::mem::take(&mut files.tried) } else { Vec::new() };
            if found.is_none() {
                let aside = set_aside(disk, (&folder, config), &tried).map_err(&failed)?;
                told_aside(&aside).iter().for_each(|text| server.log.warning(text));
            }
            *files = Files { folder, manifest: found.unwrap_or_default(), tried, claim: Some(claim) };
        }
    }
    Ok((files.folder.clone(), files.manifest.clone()))
}

/// Chooses a file that is made next.
fn tried(server: &Server, choose: impl FnOnce(&Files) -> Part) -> Part {
    let mut files = lock(&server.append.files);
    let part = choose(&files);
    files.tried.push(part.clone());
    part
}

fn failed(what: &str) -> impl Fn(io::Error) -> Option<String> {
    move |error| Some(format!("{what}: {}", reason(&error)))
}

/// An error says why, unless it was given up.
fn try_to_rewrite(server: &Server, config: &Config) -> Result<(), Option<String>> {
    let append = &server.append;
    let (folder, before) = claimed(server, config)?;
    let is_on = append.phase() == Phase::On;
    let is_appended = is_on || append.is_wanted();
    let increment = is_appended.then(|| tried(server, |files| next_increment(config, files)));
    let file = match &increment {
        Some(part) => Some(
            create_increment(&server.persistence.disk, &folder, part)
                .map_err(failed("Can't open the append-only file"))?,
        ),
        None => None,
    };
    if let Some(part) = increment.iter().find(|_| is_on) {
        let mut listed = before.clone();
        listed.increments.push(part.clone());
        list(server, config, listed).map_err(failed("Error trying to persist the AOF manifest"))?;
    }
    let (image, save, position) = freeze_and_switch(server, file, is_on)?;
    let base = tried(server, |files| next_base(config, files));
    let target = Target {
        path: folder.join(os(&base.name)),
        place: "the new AOF base (in",
        syncs: config.append.syncs_rewrites,
        content: match config.append.begins_with_dump {
            true => Content::Dump,
            false => Content::Commands,
        },
    };
    let is_begun = is_appended && !is_on;
    let bytes = match write_file(image, &save, &target) {
        Ok(bytes) => bytes,
        Err(why) => {
            // It is also given up when what comes meanwhile cannot be written.
            let why = why.or_else(|| append.has_failed().then(|| append.failure()));
            if is_begun {
                leave(server);
                drop(remove(&server.persistence.disk, &folder, increment.as_slice()));
            }
            return Err(why);
        }
    };
    if let Err(error) = finish(server, config, (base, increment), bytes) {
        // The disk may have the new list all the same, so what is on it stays there.
        if is_begun {
            leave(server);
        }
        return Err(failed("Error trying to persist the AOF manifest")(error));
    }
    if is_appended {
        append.enter(Phase::On);
        // Who waits for the disk has waited for this too.
        server.mailboxes.iter().for_each(|mailbox| mailbox.wake());
    }
    if append.cover(position) {
        // Replies may wait for just that.
        server.journal.settle();
    }
    Ok(())
}

/// The instant of the snapshot: what comes after it goes to `file`, if there is one. Returns the first record
/// that the snapshot does not have.
fn freeze_and_switch(
    server: &Server,
    file: Option<DiskFile>,
    is_on: bool,
) -> Result<(super::super::save::Image, Arc<Save>, u64), Option<String>> {
    let append = &server.append;
    let all = server.enter_alone();
    let now = server.clock.now();
    let position = server.journal.position(&all);
    match file {
        Some(file) if is_on => append.cut(position, file),
        Some(file) => {
            let writer = Writer::new(server, file, 0, position);
            let reader = journal::attach(server, &all, Box::new(writer))
                .map_err(|error| Some(format!("no thread for the append-only file: {}", reason(&error))))?;
            *lock(&append.reader) = Some(reader);
            server.journal.be_urgent(append.sync() == AppendSync::Always);
            append.enter(Phase::Beginning);
        }
        None => {}
    }
    let image = freeze(server, now, true);
    let save = append.rewrites.begin(Save::new(now, image.frozen.keys));
    drop(all);
    // It may have been turned off while nobody could be told to give up.
    if append.phase() == Phase::Beginning && !append.is_wanted() {
        save.give_up();
    }
    Ok((image, save, position))
}

/// The snapshot is written: it and what was written since are listed, and nothing else.
fn finish(
    server: &Server,
    config: &Config,
    (base, increment): (Part, Option<Part>),
    bytes: u64,
) -> io::Result<()> {
    let files = lock(&server.append.files);
    let (folder, former) = (files.folder.clone(), files.manifest.clone());
    drop(files);
    let increments = increment.into_iter().collect();
    let manifest = Manifest { base: Some(base), increments, history: Vec::new() };
    let kept = |part: &Part| manifest.base.as_ref() == Some(part) || manifest.increments.contains(part);
    let all = former.base.into_iter().chain(former.increments).chain(former.history);
    let history: Vec<Part> = all.filter(|part| !kept(part)).collect();
    list(server, config, Manifest { history: history.clone(), ..manifest.clone() })?;
    // What attempts before this one have left is not in the list that the disk has now.
    let mut tried = std::mem::take(&mut lock(&server.append.files).tried);
    tried.retain(|part| !kept(part) && !history.contains(part));
    let left = remove(&server.persistence.disk, &folder, &[history, tried].concat());
    let append = &server.append;
    append.base_bytes.store(bytes, Relaxed);
    append.former_bytes.store(0, Relaxed);
    append.bytes_at_begin.store(append.bytes(), Relaxed);
    // What cannot be removed now stays on the list, so the next start or rewrite tries again. If what is gone
    // cannot be taken off the list, the next list leaves it out.
    if list(server, config, Manifest { history: left, ..manifest }).is_err() {
        server.log.warning("The AOF manifest still lists files that were removed");
    }
    Ok(())
}

/// Makes this the list of files.
fn list(server: &Server, config: &Config, manifest: Manifest) -> io::Result<()> {
    let folder = lock(&server.append.files).folder.clone();
    write_manifest(&server.persistence.disk, (&folder, config), &manifest)?;
    lock(&server.append.files).manifest = manifest;
    Ok(())
}

/// Turns it off: what was appended is put on the disk, and its files stay as they are.
fn stop(server: &Server) {
    server.log.notice("Turning the append-only file off");
    // Outside the gates: it waits for the disk.
    server.journal.settle();
    leave(server);
}

/// Nothing is appended any more.
fn leave(server: &Server) {
    let append = &server.append;
    let all = server.enter_alone();
    if let Some(reader) = lock(&append.reader).take() {
        server.journal.detach(&all, &server.keyspace, reader);
    }
    lock(&append.files).claim = None;
    append.forget_cuts();
    append.enter(Phase::Off);
    append.note_failure(None);
    server.persistence.refuse(UNWRITTEN, false);
    drop(all);
    // Nothing is kept for a disk that is not written to.
    server.mailboxes.iter().for_each(|mailbox| mailbox.wake());
}

/// Begins it anew if it has grown so much that the settings ask for that, or has to.
pub(crate) fn rewrite_if_due(server: &Server, config: &Config) {
    let append = &server.append;
    let rewrites = &append.rewrites;
    if append.is_rewriting() || server.persistence.is_loading() {
        return;
    }
    let failures = rewrites.failures.load(Relaxed);
    let delay_s = match failures {
        0 => 0,
        few if few < FAILURES_MAX => RETRY_S,
        many => (60_i64 << (many - FAILURES_MAX).min(6)).min(DELAY_S_MAX),
    };
    let ended_us = rewrites.ended_us.load(Relaxed);
    if failures > 0 && server.clock.steady_us() - ended_us < delay_s * 1_000_000 {
        return;
    }
    match append.phase() {
        Phase::Off if append.is_wanted() => order(server),
        // There was no thread to turn it off.
        Phase::On if !append.is_wanted() => drop(start(server)),
        Phase::On if append.is_doubtful() && !append.has_failed() => {
            server.log.warning("A part of the append-only file may be missing: it begins anew");
            order(server);
        }
        Phase::On if config.append.growth_percent > 0 => {
            let (bytes, before) = (append.bytes(), append.bytes_at_begin.load(Relaxed).max(1));
            let growth = (u128::from(bytes) * 100 / u128::from(before)).saturating_sub(100);
            if bytes > config.append.rewrite_bytes_min && growth >= u128::from(config.append.growth_percent) {
                server.log.notice(&format!("Starting automatic rewriting of AOF on {growth}% growth"));
                order(server);
            }
        }
        _ => {}
    }
}

/// Has the thread begin it anew. Without a thread it is tried again later.
fn order(server: &Server) {
    match start(server) {
        Ok(()) => drop(server.append.order_rewrite()),
        Err(error) => server.log.warning(&format!("no thread for the append-only file: {}", reason(&error))),
    }
}

/// The names of what is listed, for the log.
pub(super) fn names(manifest: &Manifest) -> String {
    let parts = manifest.base.iter().chain(&manifest.increments);
    parts.map(|part| shown(&part.name)).collect::<Vec<_>>().join(", ")
}
