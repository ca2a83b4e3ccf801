//! Writes snapshots: SAVE, BGSAVE, save points, and what SHUTDOWN and DEBUG RELOAD need.
use super::file::NewFile;
use super::pace::Pace;
use crate::core::mailbox::Message;
use crate::core::server::Server;
use crate::core::session::ClientRecord;
use crate::state::REDIS_VERSION;
use crate::state::append_only::Phase;
use crate::state::config::{Config, SavePoint, reason};
use crate::state::disk::{Disk, DiskFile};
use crate::state::persistence::{Delay, Save};
use base::Millis;
use disk::aof::base::{BaseForm, save_commands};
use disk::rdb::{About, FileForm, Form, Output, SaveError, Step, save_file};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::Frozen;

/// After a failure the next attempt by a save point comes so many seconds later.
const RETRY_S: i64 = 5;

/// Why no snapshot is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// A snapshot is being written already.
    Busy,
    /// The system gives no thread.
    NoThread,
}

/// What follows when a snapshot in the background has ended.
pub(crate) enum Then {
    Nothing,
    /// This client is answered: it waits for it.
    Answer(Arc<ClientRecord>),
}

/// The data at one moment, and all that its file is made by.
pub(super) struct Image {
    pub(super) frozen: Frozen,
    config: Arc<Config>,
    about: About,
    changes: u64,
    disk: Arc<Disk>,
}

/// Which file is written.
pub(super) struct Target {
    pub(super) path: PathBuf,
    /// The words of its errors for where a new file is made.
    pub(super) place: &'static str,
    /// Whether it is synced every few megabytes.
    pub(super) syncs: bool,
    pub(super) content: Content,
}

/// In which form the data is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Dump,
    Commands,
}

/// Freezes the data, for a file of its own or as the base of an append-only file. The caller holds all gates.
pub(super) fn freeze(server: &Server, now: Millis, is_base: bool) -> Image {
    let config = server.config();
    let texts = vec![
        ("redis-ver", REDIS_VERSION.to_string()),
        ("redis-bits", usize::BITS.to_string()),
        ("ctime", (now.0 / 1000).to_string()),
        ("used-mem", pack::counted::used_bytes().to_string()),
        ("aof-base", u8::from(is_base).to_string()),
    ];
    let about = About { texts, functions: server.scripts.libraries.codes() };
    let frozen = server.keyspace.freeze(now, config.store.eviction.policy);
    let frozen = if is_base { frozen.with_overdue_fields() } else { frozen };
    let disk = Arc::clone(&server.persistence.disk);
    Image { frozen, about, changes: server.keyspace.stats().dirty, config, disk }
}

/// Freezes the data and has a thread write it. The caller holds all gates.
pub(crate) fn save_in_background(server: &Server, now: Millis, then: Then) -> Result<(), Refused> {
    let saves = &server.persistence.saves;
    // Whoever asks again and again while one is written must not have the data frozen each time.
    if saves.running().is_some() {
        return Err(Refused::Busy);
    }
    let image = freeze(server, now, false);
    let save = saves.begin(now, image.frozen.keys).ok_or(Refused::Busy)?;
    saves.count.fetch_add(1, Relaxed);
    if matches!(then, Then::Nothing) {
        saves.tried_s.store(now.0 / 1000, Relaxed);
    }
    let owner = server.shared();
    let write = move || {
        let done = write(&owner, image, &save);
        end_in_background(&owner, &save, done, &then);
    };
    match std::thread::Builder::new().name("sardine-save".into()).spawn(write) {
        Ok(thread) => {
            server.persistence.keep_thread(thread);
            Ok(())
        }
        Err(error) => {
            server.log.warning(&format!("Can't save in background: no thread: {}", reason(&error)));
            saves.end();
            server.note_snapshot(false);
            Err(Refused::NoThread)
        }
    }
}

/// Writes the data before it returns, while the caller holds all gates. If another snapshot is being written,
/// that is given up: it would take the place of this one when it ends, with older data. False if it cannot be
/// written; the log says why.
pub(crate) fn save_now(server: &Server, now: Millis) -> bool {
    server.persistence.end();
    let saves = &server.persistence.saves;
    let image = freeze(server, now, false);
    let (changes, keys) = (image.changes, image.frozen.keys);
    let Some(save) = saves.begin(now, keys) else {
        server.log.warning("Can't save: another snapshot is being written");
        return false;
    };
    let done = write(server, image, &save);
    if done.is_ok() {
        note_success(server, changes);
    }
    saves.end();
    done.is_ok()
}

/// All databases were emptied, and the caller holds all gates still. A snapshot of what was there is given
/// up, and where there are save points the file is made empty at once: what was deleted must not come back
/// with the next start.
pub(crate) fn save_emptied(server: &Server, now: Millis) {
    server.persistence.end();
    if !server.config().snapshots.points().is_empty() {
        save_now(server, now);
    }
}

/// Saves what has to be saved before the server ends, while the caller holds all gates: `saves` is what was
/// asked for, None where the save points decide. False if the server has to go on, because it cannot save;
/// unless it is forced to end.
pub(crate) fn save_to_end(server: &Server, now: Millis, (saves, is_forced): (Option<bool>, bool)) -> bool {
    server.log.notice("User requested shutdown...");
    let may_end = save_last(server, now, (saves, is_forced));
    if !may_end {
        server.log.warning("Errors trying to shut down the server. Check the logs for more information.");
        // So a signal that had asked for it may ask again.
        server.ending.call_off();
    }
    may_end
}

fn save_last(server: &Server, now: Millis, (saves, is_forced): (Option<bool>, bool)) -> bool {
    if server.persistence.saves.running().is_some() {
        server.log.warning("A snapshot is being written in the background. It is given up!");
    }
    server.persistence.end();
    if !end_append_only(server, is_forced) {
        return false;
    }
    let has_points = !server.config().snapshots.points().is_empty();
    if !saves.unwrap_or(has_points) || server.persistence.is_loading() {
        return true;
    }
    server.log.notice("Saving the final RDB snapshot before exiting.");
    tell_status(server, "Saving the final RDB snapshot");
    let is_saved = save_now(server, now);
    if !is_saved {
        let why = match is_forced {
            true => "Error trying to save the DB, exiting nonetheless, as it was asked for.",
            false => "Error trying to save the DB, can't exit.",
        };
        server.log.warning(why);
        tell_status(server, why);
    }
    is_saved || is_forced
}

/// Tells the service manager what the server does.
fn tell_status(server: &Server, text: &str) {
    if let Err(error) = server.config().supervisor.tell(&format!("STATUS={text}\n")) {
        server.log.warning(&format!("systemd supervision error: {error}"));
    }
}

/// Puts the append-only file on the disk before the server ends. False if the server has to go on, because
/// the file has no base yet.
fn end_append_only(server: &Server, is_forced: bool) -> bool {
    if server.append.is_beginning() && !is_forced {
        const WHY: &str = "Writing initial AOF, can't exit.";
        server.log.warning(WHY);
        tell_status(server, WHY);
        return false;
    }
    if server.append.is_moving() && !is_forced {
        server.log.warning("The AOF moves to the folder that the configuration file names, can't exit.");
        return false;
    }
    if server.append.phase() != Phase::Off {
        server.log.notice("Calling fsync() on the AOF file.");
        server.journal.settle();
    }
    if server.append.has_failed() {
        server.log.warning(&format!("Fail to fsync the AOF file: {}.", server.append.failure()));
    }
    true
}

/// Begins a snapshot if a save point asks for one. The caller holds no gate.
pub(crate) fn save_if_due(server: &Server, config: &Config, now: Millis) {
    let saves = &server.persistence.saves;
    let points = config.snapshots.points();
    let (now_s, last_s) = (now.0 / 1000, saves.last_s.load(Relaxed));
    let is_late = |seconds: i64| now_s - last_s > seconds;
    let may_try = !saves.has_failed() || now_s - saves.tried_s.load(Relaxed) > RETRY_S;
    let is_possible = may_try && !server.persistence.is_loading() && saves.running().is_none();
    if !is_possible || !points.iter().any(|point| is_late(point.seconds)) {
        return;
    }
    let changes = server.changes_since_save();
    let is_due = |point: &&SavePoint| changes >= point.changes.max(1) && is_late(point.seconds);
    if let Some(point) = points.iter().find(is_due)
        && !server.moving.puts_off()
    {
        // While a script runs for long there is no instant to save. The next tick tries again.
        let Ok(all) = server.try_enter_alone() else { return };
        server.log.notice(&format!("{changes} changes in {} seconds. Saving...", point.seconds));
        // Nobody is answered, so it does not matter why it was not begun: the log knows.
        let _ = save_in_background(server, now, Then::Nothing);
        drop(all);
    }
}

/// What a snapshot in the background came to.
fn end_in_background(server: &Server, save: &Save, done: Result<u64, ()>, then: &Then) {
    if let Then::Answer(client) = then {
        return end_in_foreground(server, client, done);
    }
    let saves = &server.persistence.saves;
    let now = server.clock.now();
    saves.took_s.store((now.0 - save.began.0) / 1000, Relaxed);
    match done {
        Ok(changes) => {
            note_success(server, changes);
            server.log.notice("Background saving terminated with success");
        }
        Err(()) if save.is_given_up() => server.log.warning("Background saving was given up"),
        Err(()) => {
            server.log.warning("Background saving error");
            server.note_snapshot(false);
        }
    }
    saves.end();
}

/// What a snapshot came to for which a client waits. That it has failed is told to that client alone.
fn end_in_foreground(server: &Server, client: &ClientRecord, done: Result<u64, ()>) {
    let saves = &server.persistence.saves;
    if let Ok(changes) = done {
        note_success(server, changes);
    }
    saves.end();
    if client.end_waiting() {
        let reply: &[u8] = if done.is_ok() { b"+OK\r\n" } else { b"-ERR\r\n" };
        server.mailboxes[client.worker].send(Message::Served(client.id, reply.to_vec()));
    }
}

/// A snapshot is written: writes are refused no longer.
fn note_success(server: &Server, changes: u64) {
    server.persistence.saves.note_saved(server.clock.now(), changes);
    server.note_snapshot(true);
}

/// Writes the file and puts it in its place. Returns how many changes the data had had; where there is an
/// error the log says which.
fn write(server: &Server, image: Image, save: &Save) -> Result<u64, ()> {
    let changes = image.changes;
    if image.config.snapshots.file_name.as_os_str().is_empty() {
        server.log.warning("The dump file has no name: 'dbfilename' is empty");
        return Err(());
    }
    let target = Target {
        path: image.config.dir.join(&image.config.snapshots.file_name),
        place: "a temp RDB file (in server root dir",
        syncs: image.config.snapshots.syncs,
        content: Content::Dump,
    };
    match write_file(server, image, save, &target) {
        Ok(_) => {
            server.log.notice("DB saved on disk");
            Ok(changes)
        }
        Err(why) => {
            why.iter().for_each(|why| server.log.warning(why));
            Err(())
        }
    }
}

/// The new file, for as long as the snapshot is wanted. A value may have any size, so it is not enough to
/// look between two keys: whoever has given the snapshot up waits for its end, and may hold up everybody
/// meanwhile.
struct Wanted<'w> {
    file: &'w mut DiskFile,
    save: &'w Save,
    pace: &'w Pace,
}

impl Wanted<'_> {
    fn check(&self) -> io::Result<()> {
        if self.save.is_given_up() { Err(io::Error::other("the snapshot was given up")) } else { Ok(()) }
    }
}

impl Write for Wanted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        let count = self.file.write(bytes);
        self.pace.look();
        count
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Output for Wanted<'_> {
    fn sync(&mut self) -> io::Result<()> {
        self.check()?;
        let done = self.file.sync();
        if done.is_ok() {
            self.file.leave_memory();
        }
        self.pace.look();
        done
    }
}

/// An error says why, unless the snapshot was given up.
pub(super) fn write_file(
    server: &Server,
    image: Image,
    save: &Save,
    target: &Target,
) -> Result<u64, Option<String>> {
    let Image { frozen, config, about, disk, .. } = image;
    let settings = &config.snapshots;
    let folder = target.path.parent().unwrap_or(&config.dir);
    let place = folder.display();
    let mut new = NewFile::create(&disk, folder).map_err(|error| {
        let why = reason(&error);
        Some(format!("Failed opening {} {place}) for saving: {why}", target.place))
    })?;
    let delay = Delay::new(settings.save_delay);
    let pace = Pace::new();
    let mut go_on = |step| {
        pace.pass();
        match step {
            Step::Freed => ControlFlow::Continue(()),
            Step::Key => {
                delay.pass(|| server.config().snapshots.save_delay);
                save.note_key()
            }
        }
    };
    let mut output = Wanted { file: &mut new.file, save, pace: &pace };
    let written = match target.content {
        Content::Dump => {
            let form = FileForm {
                form: Form { version: settings.version, compresses: config.store.rdb_compresses },
                has_checksum: settings.has_checksum,
                syncs: target.syncs,
            };
            save_file(frozen, &mut output, (&about, &config.store, form), &mut go_on)
        }
        Content::Commands => {
            let time = config.append.has_times.then_some(save.began.0 / 1000);
            let form = BaseForm { functions: &about.functions, time, syncs: target.syncs };
            save_commands(frozen, &mut output, form, &mut go_on)
        }
    };
    let bytes = match written {
        _ if save.is_given_up() => return Err(None),
        Ok(bytes) => bytes,
        Err(SaveError::GivenUp) => return Err(None),
        Err(SaveError::Io(error)) => {
            return Err(Some(format!("Write error while saving DB to the disk: {}", reason(&error))));
        }
    };
    let temporary = new.path().display().to_string();
    let name = target.path.file_name().unwrap_or_default();
    new.put_in_place(&target.path).map_err(|error| {
        Some(format!(
            "Error moving temp DB file {temporary} on the final destination {} (in server root dir {place}): {}",
            name.display(),
            reason(&error)
        ))
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::persistence::Persistence;

    #[test]
    fn nothing_is_written_of_a_value_once_its_snapshot_is_given_up() {
        let new = &mut NewFile::create(&Arc::default(), &std::env::temp_dir()).unwrap();
        let saves = Persistence::new(Millis(0)).saves;
        let save = &saves.begin(Millis(0), 1).unwrap();
        let mut output = Wanted { file: &mut new.file, save, pace: &Pace::new() };
        output.write_all(b"a part").unwrap();
        output.sync().unwrap();
        saves.give_up();
        assert!(output.write_all(b"the rest").is_err() && output.sync().is_err());
        assert_eq!(std::fs::metadata(new.path()).unwrap().len(), 6);
    }
}
