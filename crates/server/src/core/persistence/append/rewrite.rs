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
//! Where the settings name another folder by then, all is made there, and a second writer has what comes
//! meanwhile, so that one of both folders is whole at any moment:
//!
//! ```text
//! all gates: freeze, and write to file 1 in the new folder too
//! base 1 is written there
//! the disk has all of file 1; what is acknowledged from here on is in both folders
//! base 1 and file 1 are listed there               a crash from here on: either folder has everything
//! all gates: the old folder is left, as it is      ... the new one has
//! ```
//!
//! One thread does this, one thing after the other. It starts with the first that is asked for.
use super::super::save::{Content, Image, Target, freeze, write_file};
use super::files::{
    claim_at, create_increment, folder, is_at, manifest_path, next_base, next_increment, open_increment, os,
    read_manifest, remove, set_aside, shown, told_aside, write_manifest,
};
use super::tail;
use super::writer::{Role, Standing, Writer};
use crate::core::journal;
use crate::core::server::Server;
use crate::state::append_only::{Files, Opened, Order, Phase};
use crate::state::clock::Stopwatch;
use crate::state::config::{AppendSync, Config, reason};
use crate::state::journal::Place;
use crate::state::lock::lock;
use crate::state::persistence::Save;
use disk::aof::manifest::{Manifest, Part};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// From so many failures in a row on the next attempt comes later: a minute, twice as long after each, an
/// hour at most.
const FAILURES_MAX: u64 = 3;
const DELAY_S_MAX: i64 = 3600;
/// What begins and fails is tried again after so many seconds at least.
const RETRY_S: i64 = 1;
/// Before a file is left its content is synced so often, or until that takes less than this: then there is
/// little left for which the writer has to wait.
const EARLY_SYNCS_MAX: usize = 5;
const EARLY_SYNC_IS_SHORT: Duration = Duration::from_millis(5);

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
            Order::Tail => tail::begin_anew(server, &server.config()),
            Order::Rewrite => rewrite(server),
            Order::Stop => stop(server),
        }
    }
}

/// The server ends. Nothing is written any more.
pub(crate) fn end(server: &Server) {
    server.append.end();
}

/// The data is loaded from the file, which has this last increment: what changes it is appended from here on.
/// Nobody is served yet.
pub(crate) fn turn_on_at_start(server: &Server, config: &Config, file: Opened) -> io::Result<()> {
    let (all, mut rest) = journal::enter_at_rest(server);
    let next = server.journal.position(&all);
    let writer = Writer::new(server, &Role::new(Standing::Alone), file, next);
    let reader = journal::attach(server, (&all, &mut rest), Box::new(writer))?;
    *lock(&server.append.reader) = Some(reader);
    server.append.enter(Phase::On);
    server.journal.be_urgent(server.append.sync() == AppendSync::Always);
    drop((all, rest));
    tail::begin(server, config);
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
    if !is_elsewhere(server, &server.config()) {
        server.append.note_to_move(false);
    }
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

/// What a rewrite comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A base that nothing is appended to.
    BaseAlone,
    /// The file is turned on.
    Begins,
    /// It goes on in its folder.
    GoesOn,
    /// It goes on in another: the settings name one, or somebody has put one in the place of the first, or
    /// has removed that.
    Moves,
}

impl Way {
    fn of(server: &Server, config: &Config) -> Way {
        match server.append.phase() {
            Phase::On if is_elsewhere(server, config) => Way::Moves,
            Phase::On => Way::GoesOn,
            _ if server.append.is_wanted() => Way::Begins,
            _ => Way::BaseAlone,
        }
    }

    /// Where it is kept which files there are.
    fn files(self, server: &Server) -> &Mutex<Files> {
        if self == Way::Moves { &server.append.elsewhere } else { &server.append.files }
    }
}

/// Whether there is an append-only file and its folder is not, or not any more, what the settings say.
fn is_elsewhere(server: &Server, config: &Config) -> bool {
    let files = lock(&server.append.files);
    files.claim.as_ref().is_some_and(|claim| !is_at(claim, &folder(config)))
}

/// The folder of the files. Where it is not that of the present ones it is claimed, made if it is not there,
/// and looked through.
fn claimed(server: &Server, config: &Config, way: Way) -> Result<PathBuf, Option<String>> {
    let (disk, mut files) = (&server.persistence.disk, lock(way.files(server)));
    let failed = failed("Error opening the folder of the append only file");
    if way == Way::GoesOn {
        // A folder above it may have got another name.
        files.folder = std::fs::canonicalize(folder(config)).unwrap_or(std::mem::take(&mut files.folder));
        return Ok(files.folder.clone());
    }
    let (claim, folder) = claim_at(disk, &folder(config)).map_err(&failed)?;
    // Files of an earlier time are replaced, and their numbers go on.
    let found = read_manifest(&manifest_path(&folder, config)).map_err(Some)?;
    let tried = if files.folder == folder { std::mem::take(&mut files.tried) } else { Vec::new() };
    if found.is_none() {
        let aside = set_aside(disk, (&folder, config), &tried).map_err(&failed)?;
        told_aside(&aside).iter().for_each(|text| server.log.warning(text));
    }
    if way == Way::Moves {
        let text = format!("The append-only file moves to {}", folder.display());
        server.log.notice(&text);
    }
    *files = Files { folder: folder.clone(), manifest: found.unwrap_or_default(), tried, claim: Some(claim) };
    Ok(folder)
}

/// Makes the file of this increment.
fn create(server: &Server, folder: &Path, part: &Part) -> Result<Opened, Option<String>> {
    let file = create_increment(&server.persistence.disk, folder, part)
        .map_err(failed("Can't open the append-only file"))?;
    Ok(Opened { number: part.number, file, len: 0 })
}

/// Chooses a file that is made next.
fn tried(files: &Mutex<Files>, choose: impl FnOnce(&Files) -> Part) -> Part {
    let mut files = lock(files);
    let part = choose(&files);
    files.tried.push(part.clone());
    part
}

fn failed(what: &str) -> impl Fn(io::Error) -> Option<String> {
    move |error| Some(format!("{what}: {}", reason(&error)))
}

/// An error says why, unless it was given up.
fn try_to_rewrite(server: &Server, config: &Config) -> Result<(), Option<String>> {
    let way = Way::of(server, config);
    let done = rewrite_by(server, config, way);
    if way == Way::Moves {
        lock(&server.append.elsewhere).claim = None;
    }
    done
}

fn rewrite_by(server: &Server, config: &Config, way: Way) -> Result<(), Option<String>> {
    let append = &server.append;
    let (folder, files) = (claimed(server, config, way)?, way.files(server));
    let increment = (way != Way::BaseAlone).then(|| tried(files, |files| next_increment(config, files)));
    let file = increment.as_ref().map(|part| create(server, &folder, part)).transpose()?;
    let former = lock(files).manifest.clone();
    if let Some(part) = increment.iter().find(|_| way == Way::GoesOn) {
        let mut listed = former.clone();
        listed.increments.push(part.clone());
        list(server, (config, files), listed).map_err(failed("Error trying to persist the AOF manifest"))?;
    }
    if way == Way::GoesOn {
        sync_early(server, &folder, former.increments.last());
    }
    let begun = freeze_and_switch(server, file, way)?;
    let base = tried(files, |files| next_base(config, files));
    let target = Target {
        path: folder.join(os(&base.name)),
        place: "the new AOF base (in",
        syncs: config.append.syncs_rewrites,
        content: match config.append.begins_with_dump {
            true => Content::Dump,
            false => Content::Commands,
        },
    };
    let Begun { image, save, position, writer } = begun;
    let bytes = match write_file(server, image, &save, &target) {
        Ok(bytes) => bytes,
        Err(why) => {
            // It is also given up when what comes meanwhile cannot be written.
            let why = why.or_else(|| writer.as_ref().and_then(|(_, role)| role.failure()));
            let why = why.or_else(|| append.has_failed().then(|| append.failure()));
            if let Some((reader, _)) = writer {
                leave(server, way, reader);
                drop(remove(&server.persistence.disk, &folder, increment.as_slice()));
            }
            return Err(why);
        }
    };
    if way != Way::BaseAlone {
        // Before the files count, so that what is answered from then on is safe.
        tail::begin_if_needed(server, config);
    }
    let done = count_both(server, way, writer.as_ref())
        .and_then(|()| finish(server, (config, files, way), (base, increment), bytes));
    if let Err(error) = done {
        // The disk may have the new list all the same, so what is on it stays there.
        if let Some((reader, _)) = writer {
            leave(server, way, reader);
        }
        return Err(failed("Error trying to persist the AOF manifest")(error));
    }
    if let Some((reader, role)) = writer.filter(|_| way == Way::Moves) {
        take_over(server, config, reader, &role);
    }
    if way != Way::BaseAlone {
        append.enter(Phase::On);
        // Who waits for the disk has waited for this too.
        server.mailboxes.iter().for_each(|mailbox| mailbox.wake());
    }
    if append.cover(position) || way == Way::Moves {
        // Replies may wait for just that. And whoever writes to another folder has not told its lengths yet.
        server.journal.settle();
    }
    append.bytes_at_begin.store(append.bytes(), Relaxed);
    Ok(())
}

/// The writer does not go on with the next file before the disk has this one, and nothing is written
/// meanwhile. So the most of it is put on the disk before, while it goes on.
fn sync_early(server: &Server, folder: &Path, part: Option<&Part>) {
    // Under `always` all of it is there.
    if server.append.sync() == AppendSync::Always {
        return;
    }
    let Some(part) = part else { return };
    for _ in 0..EARLY_SYNCS_MAX {
        let began = Stopwatch::start();
        // Not by the writer's own descriptor, which would not be told again of what fails here.
        let Ok(file) = open_increment(&server.persistence.disk, folder, part) else { return };
        if file.sync().is_err() {
            // What was written so far is in the snapshot that is about to be taken.
            return server.append.doubt(server.journal.taken());
        }
        if began.elapsed_ns() < EARLY_SYNC_IS_SHORT.as_nanos() as u64 {
            return;
        }
    }
}

/// A snapshot that is to be written, and what was written is to go with it.
struct Begun {
    image: Image,
    save: Arc<Save>,
    /// The first record that the snapshot does not have.
    position: u64,
    /// The reader of the journal that writes what comes behind it, if that has begun with the snapshot.
    writer: Option<(u64, Arc<Role>)>,
}

/// The instant of the snapshot: what comes after it goes to `file`, if there is one.
fn freeze_and_switch(server: &Server, file: Option<Opened>, way: Way) -> Result<Begun, Option<String>> {
    let append = &server.append;
    let (all, mut rest) = match way {
        Way::Begins | Way::Moves => {
            let (all, rest) = journal::enter_at_rest(server);
            (all, Some(rest))
        }
        // A writer that waits for its disk hears of the next file when it comes to that.
        Way::GoesOn | Way::BaseAlone => (server.enter_alone(), None),
    };
    let now = server.clock.now();
    let position = server.journal.position(&all);
    let mut writer = None;
    match (file, &mut rest) {
        (Some(file), None) => {
            server.journal.tail.note_cut(file.number, position);
            append.cut(position, file);
        }
        (Some(file), Some(rest)) if way == Way::Moves => {
            let role = Role::new(Standing::Beside);
            let beside = Box::new(Writer::new(server, &role, file, position));
            let reader = server.journal.attach((&all, rest), &server.keyspace, (Place::First, beside));
            writer = Some((reader, role));
        }
        (Some(file), Some(rest)) => {
            let role = Role::new(Standing::Alone);
            let first = Box::new(Writer::new(server, &role, file, position));
            let reader = journal::attach(server, (&all, rest), first)
                .map_err(|error| Some(format!("no thread for the append-only file: {}", reason(&error))))?;
            *lock(&append.reader) = Some(reader);
            writer = Some((reader, role));
            server.journal.be_urgent(append.sync() == AppendSync::Always);
            append.enter(Phase::Beginning);
        }
        (None, _) => {}
    }
    let image = freeze(server, now, true);
    let save = append.rewrites.begin(Save::new(now, image.frozen.keys));
    drop((all, rest));
    // The former file is finished before the disk is busy with the snapshot.
    server.journal.look_again();
    // It may have been turned off while nobody could be told to give up.
    if writer.is_some() && !append.is_wanted() {
        save.give_up();
    }
    Ok(Begun { image, save, position, writer })
}

/// Before the files in another folder are listed: they have all that anybody was told, and from here on
/// nobody is told what they do not have. So both folders are whole until one is left.
fn count_both(server: &Server, way: Way, writer: Option<&(u64, Arc<Role>)>) -> io::Result<()> {
    let Some((_, role)) = writer.filter(|_| way == Way::Moves) else { return Ok(()) };
    // With all gates everything that was answered is published, so both writers get it.
    let all = server.enter_alone();
    role.set(Standing::Both);
    // The tail is in one of them.
    server.journal.tail.distrust(server.journal.position(&all));
    server.append.count_elsewhere();
    drop(all);
    server.journal.settle();
    role.failure().map_or(Ok(()), |why| Err(io::Error::other(why)))
}

/// The files in another folder are listed: those of the former one are not written to any more.
fn take_over(server: &Server, config: &Config, reader: u64, role: &Role) {
    let append = &server.append;
    let folder = lock(&append.elsewhere).folder.clone();
    let tail = tail::make(server, config, &folder);
    let (all, mut rest) = journal::enter_at_rest(server);
    server.journal.set_tail(&all, tail);
    let former = lock(&append.reader).replace(reader);
    // The new folder gets all that the former one does not have yet.
    let part_with = |former| server.journal.part_with((&all, &mut rest), &server.keyspace, former);
    let former = former.and_then(part_with);
    append.forget_cuts();
    append.forget_doubts();
    role.set(Standing::Alone);
    append.count_one();
    let next = std::mem::take(&mut *lock(&append.elsewhere));
    let former_files = std::mem::replace(&mut *lock(&append.files), next);
    append.note_success(&server.persistence);
    drop((all, rest));
    drop(former);
    tail::remove(server, config, &former_files);
}

/// The snapshot is written: it and what was written since are listed, and nothing else.
fn finish(
    server: &Server,
    (config, files, way): (&Config, &Mutex<Files>, Way),
    (base, increment): (Part, Option<Part>),
    bytes: u64,
) -> io::Result<()> {
    let folder = lock(files).folder.clone();
    let former = lock(files).manifest.clone();
    let increments = increment.into_iter().collect();
    let manifest = Manifest { base: Some(base), increments, history: Vec::new() };
    let kept = |part: &Part| manifest.base.as_ref() == Some(part) || manifest.increments.contains(part);
    let all = former.base.into_iter().chain(former.increments).chain(former.history);
    let mut history: Vec<Part> = all.filter(|part| !kept(part)).collect();
    if way == Way::Moves && !history.is_empty() {
        // Whoever has put them there may have meant something by it.
        let names: Vec<String> = history.iter().map(|part| shown(&part.name)).collect();
        server.log.warning(&format!("No list names these files any more, which stay: {}", names.join(", ")));
        history.clear();
    }
    list(server, (config, files), Manifest { history: history.clone(), ..manifest.clone() })?;
    // What attempts before this one have left is not in the list that the disk has now.
    let mut tried = std::mem::take(&mut lock(files).tried);
    tried.retain(|part| !kept(part) && !history.contains(part));
    let left = remove(&server.persistence.disk, &folder, &[history, tried].concat());
    let append = &server.append;
    append.base_bytes.store(bytes, Relaxed);
    append.former_bytes.store(0, Relaxed);
    // What cannot be removed now stays on the list, so the next start or rewrite tries again. If what is gone
    // cannot be taken off the list, the next list leaves it out.
    if list(server, (config, files), Manifest { history: left, ..manifest }).is_err() {
        server.log.warning("The AOF manifest still lists files that were removed");
    }
    Ok(())
}

/// Makes this the list of files.
fn list(server: &Server, (config, files): (&Config, &Mutex<Files>), manifest: Manifest) -> io::Result<()> {
    let folder = lock(files).folder.clone();
    write_manifest(&server.persistence.disk, (&folder, config), &manifest)?;
    lock(files).manifest = manifest;
    Ok(())
}

/// Turns it off: what was appended is put on the disk, and its files stay as they are.
fn stop(server: &Server) {
    server.log.notice("Turning the append-only file off");
    let reader = *lock(&server.append.reader);
    if let Some(reader) = reader {
        journal::finish(server, reader, || server.append.enter(Phase::Ending));
        leave(server, Way::GoesOn, reader);
    }
}

/// Nothing is appended by this reader any more, not even what waits for its turn.
fn leave(server: &Server, way: Way, reader: u64) {
    let (append, mut former) = (&server.append, None);
    let (all, mut rest) = journal::enter_at_rest(server);
    let parted = server.journal.part_with((&all, &mut rest), &server.keyspace, reader);
    if way == Way::Moves {
        append.count_one();
        server.journal.tail.trust_again(server.journal.taken());
    } else {
        *lock(&append.reader) = None;
        server.journal.set_tail(&all, None);
        let mut files = lock(&append.files);
        former = Some(Files { folder: files.folder.clone(), claim: files.claim.take(), ..Files::default() });
        drop(files);
        append.forget_cuts();
        append.enter(Phase::Off);
        append.note_to_move(false);
        append.note_success(&server.persistence);
    }
    drop((all, rest));
    drop(parted);
    if let Some(former) = former {
        // Before the folder may be another server's.
        tail::remove(server, &server.config(), &former);
    }
    server.journal.look_again();
    // Nothing is kept for a disk that is not written to.
    server.mailboxes.iter().for_each(|mailbox| mailbox.wake());
}

/// The configuration file says from here on where the next start looks for the append-only file: if it is not
/// there, it moves.
pub(crate) fn follow(server: &Server, config: &Config) {
    if is_elsewhere(server, config) {
        server.append.note_to_move(true);
        // If one is under way, that follows: [`rewrite_if_due`].
        order(server);
    }
}

/// Tells the log that the settings name another folder than the one that is appended to.
pub(crate) fn tell_of_move(server: &Server, config: &Config) {
    if is_elsewhere(server, config) {
        let folder = lock(&server.append.files).folder.display().to_string();
        server.log.warning(&format!(
            "The append-only file stays in {folder} until BGREWRITEAOF or CONFIG REWRITE has it begin anew in 'dir'"
        ));
    }
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
        Phase::On if append.is_to_move() => order(server),
        Phase::On if config.append.growth_percent > 0 => {
            let (bytes, before) = (append.bytes(), append.bytes_at_begin.load(Relaxed).max(1));
            let growth = (u128::from(bytes) * 100 / u128::from(before)).saturating_sub(100);
            let is_due =
                bytes > config.append.rewrite_bytes_min && growth >= u128::from(config.append.growth_percent);
            if is_due && !server.moving.puts_off() {
                server.log.notice(&format!("Starting automatic rewriting of AOF on {growth}% growth"));
                order(server);
            }
        }
        _ => {}
    }
}

/// Has the thread begin it anew. Without a thread it is tried again later.
fn order(server: &Server) {
    with_thread(server, || {
        server.append.order_rewrite();
    });
}

/// Gives an order where there is a thread to carry it out.
fn with_thread(server: &Server, order: impl FnOnce()) {
    match start(server) {
        Ok(()) => order(),
        Err(error) => server.log.warning(&format!("no thread for the append-only file: {}", reason(&error))),
    }
}

/// The tail is lost, which is news.
pub(super) fn tell_tail_is_lost(server: &Server) {
    server.log.warning(
        "The tail of the append-only file was removed, or can't be written any more: another is to be made",
    );
}

/// There is no tail, or it is lost: another is made.
pub(super) fn replace_tail(server: &Server) {
    with_thread(server, || server.append.order_tail());
}

/// The names of what is listed, for the log.
pub(super) fn names(manifest: &Manifest) -> String {
    let parts = manifest.base.iter().chain(&manifest.increments);
    parts.map(|part| shown(&part.name)).collect::<Vec<_>>().join(", ")
}
