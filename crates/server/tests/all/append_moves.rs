//! The append-only file moves to another folder when it begins anew, and one of both folders is whole at any
//! moment. Here somebody has renamed the folder: the next file begins in a new one of the old name, as it
//! does in another place after CONFIG SET dir (`crates/tools/tests/all/append_only.rs`). And what comes of a
//! beginning that fails.
use crate::append_only::{FIRST, Folder, MANIFEST, ONE, len, pushes, read};
use crate::client::{Client, start};
use server::{AppendSync, Config, DiskAct, DiskWatch};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex};

const STARTED: &str = "+Background append only file rewriting started\r\n";

fn push(client: &mut Client, acknowledged: &AtomicUsize) {
    client.check("RPUSH l x", &format!(":{}\r\n", acknowledged.load(SeqCst) + 1));
    acknowledged.fetch_add(1, SeqCst);
}

/// A disk of which a kill between any two calls of the system would leave what is copied.
struct Copied {
    home: PathBuf,
    acknowledged: AtomicUsize,
    state: Mutex<Copying>,
    ended: Condvar,
}

#[derive(Default)]
struct Copying {
    is_on: bool,
    /// A call has begun and not ended: what is there may be half of something.
    is_amid: bool,
    acts: usize,
    /// What was acknowledged before each copy was made, and where it is.
    copies: Vec<(usize, PathBuf)>,
}

impl Copied {
    fn set(&self, is_on: bool) {
        self.state.lock().unwrap().is_on = is_on;
    }

    fn copy(&self, state: &mut Copying) {
        let acknowledged = self.acknowledged.load(SeqCst);
        let target = self.home.join(format!("copy-{}", state.copies.len()));
        for folder in ["old", "appendonlydir"] {
            let Ok(entries) = std::fs::read_dir(self.home.join(folder)) else { continue };
            std::fs::create_dir_all(target.join(folder)).unwrap();
            for path in entries.map(|entry| entry.unwrap().path()) {
                std::fs::copy(&path, target.join(folder).join(path.file_name().unwrap())).unwrap();
            }
        }
        state.copies.push((acknowledged, target));
    }
}

/// Whether a call will do anything: else nobody is told that it has ended.
fn is_done(act: &DiskAct<'_>) -> bool {
    match act {
        DiskAct::Create(path) | DiskAct::MakeFolder(path) => !path.exists(),
        DiskAct::Remove(path) => path.exists(),
        _ => true,
    }
}

impl DiskWatch for Copied {
    fn before(&self, act: DiskAct<'_>) -> io::Result<usize> {
        let mut state = self.ended.wait_while(self.state.lock().unwrap(), |state| state.is_amid).unwrap();
        state.acts += 1;
        // There are very many of these.
        let is_often = matches!(act, DiskAct::Write(..) | DiskAct::Sync(_));
        if state.is_on && (!is_often || state.acts.is_multiple_of(5)) {
            self.copy(&mut state);
        }
        state.is_amid = is_done(&act);
        Ok(if let DiskAct::Write(_, bytes) = act { bytes.len() } else { 0 })
    }

    fn after(&self, _: DiskAct<'_>) {
        self.state.lock().unwrap().is_amid = false;
        self.ended.notify_one();
    }
}

/// How many of the list are there after a start with these files.
fn kept(folder: &Folder, home: &Path, name: &str) -> usize {
    let mut config = folder.config(AppendSync::Always);
    (config.dir, config.append.folder) = (home.into(), name.into());
    len(&folder.start_with(config).unwrap())
}

#[test]
fn a_kill_at_any_moment_of_a_move_leaves_all_that_was_acknowledged_in_one_folder() {
    let folder = Folder::new("move-killed");
    let server = start(folder.config(AppendSync::Always));
    let disk = Arc::new(Copied {
        home: folder.0.clone(),
        acknowledged: AtomicUsize::new(0),
        state: Mutex::default(),
        ended: Condvar::new(),
    });
    server.watch_disk(disk.clone());
    let mut client = Client::connect(&server);
    client.check("DEBUG POPULATE 100", "+OK\r\n");
    client.check("CONFIG SET rdb-key-save-delay 500", "+OK\r\n");
    push(&mut client, &disk.acknowledged);
    std::fs::rename(folder.0.join("appendonlydir"), folder.0.join("old")).unwrap();
    disk.set(true);
    client.check("BGREWRITEAOF", STARTED);
    while client.info("aof_rewrites") == "0" {
        push(&mut client, &disk.acknowledged);
    }
    (0..10).for_each(|_| push(&mut client, &disk.acknowledged));
    disk.set(false);
    server.stop();
    let copies = std::mem::take(&mut disk.state.lock().unwrap().copies);
    let mut listed = 0;
    for (acknowledged, home) in &copies {
        let is_listed = home.join("appendonlydir").join(MANIFEST).exists();
        listed += usize::from(is_listed);
        let kept = kept(&folder, home, if is_listed { "appendonlydir" } else { "old" });
        assert!(kept >= *acknowledged, "{kept} of {acknowledged} are in {}", home.display());
    }
    assert!(listed > 0 && listed < copies.len());
    assert_eq!(len(&folder.start().unwrap()), disk.acknowledged.load(SeqCst));
}

/// A disk that takes nothing that is written to files in one folder.
struct FullFolder {
    folder: PathBuf,
    is_full: AtomicBool,
}

impl DiskWatch for FullFolder {
    fn before(&self, act: DiskAct<'_>) -> io::Result<usize> {
        match act {
            DiskAct::Write(path, _) if self.is_full.load(SeqCst) && path.starts_with(&self.folder) => {
                Err(io::Error::from_raw_os_error(28))
            }
            DiskAct::Write(_, bytes) => Ok(bytes.len()),
            _ => Ok(0),
        }
    }

    fn after(&self, _: DiskAct<'_>) {}
}

#[test]
fn a_file_that_cannot_move_goes_on_where_it_is() {
    for sync in [AppendSync::Always, AppendSync::EverySecond] {
        let folder = Folder::new("move-full");
        let server = start(Config { dir: std::fs::canonicalize(&folder.0).unwrap(), ..folder.config(sync) });
        // What was written under this name is in the folder that is renamed, and stays open.
        let former = folder.file("").canonicalize().unwrap();
        let disk = Arc::new(FullFolder { folder: former.with_file_name("other"), is_full: true.into() });
        server.watch_disk(disk.clone());
        let (mut client, acknowledged) = (Client::connect(&server), AtomicUsize::new(0));
        push(&mut client, &acknowledged);
        std::fs::create_dir(&disk.folder).unwrap();
        std::fs::rename(&former, folder.0.join("old")).unwrap();
        std::os::unix::fs::symlink(&disk.folder, &former).unwrap();
        client.check("BGREWRITEAOF", STARTED);
        client.wait_for_info("aof_last_bgrewrite_status", "err");
        push(&mut client, &acknowledged);
        client.check("WAITAOF 1 0 0", "*2\r\n:1\r\n:0\r\n");
        assert_eq!(client.info("aof_last_write_status"), "ok");
        disk.is_full.store(false, SeqCst);
        client.check("BGREWRITEAOF", STARTED);
        client.wait_for_info("aof_rewrites", "1");
        push(&mut client, &acknowledged);
        client.check("WAITAOF 1 0 0", "*2\r\n:1\r\n:0\r\n");
        server.stop();
        assert_eq!(kept(&folder, &folder.0, "old"), 2);
        assert_eq!(len(&folder.start().unwrap()), 3);
    }
}

#[test]
fn files_that_are_in_the_folder_to_which_it_moves_are_not_written_over() {
    let folder = Folder::new("move-found");
    let server = start(folder.config(AppendSync::Always));
    let (mut client, acknowledged) = (Client::connect(&server), AtomicUsize::new(0));
    push(&mut client, &acknowledged);
    std::fs::rename(folder.0.join("appendonlydir"), folder.0.join("old")).unwrap();
    folder.write(&[(MANIFEST, ONE), (FIRST, &pushes(7))]);
    client.check("BGREWRITEAOF", STARTED);
    client.wait_for_info("aof_rewrites", "1");
    push(&mut client, &acknowledged);
    server.stop();
    assert_eq!(len(&folder.start().unwrap()), 2);
    assert_eq!(read(&folder.file(FIRST)), pushes(7));
}

#[test]
fn what_the_files_take_is_known_when_they_have_moved() {
    for _ in 0..10 {
        let folder = Folder::new("move-sizes");
        let server = start(folder.config(AppendSync::EverySecond));
        let mut client = Client::connect(&server);
        (0..50).for_each(|_| client.check(&format!("SET x {}", "x".repeat(2000)), "+OK\r\n"));
        client.check("SET x short", "+OK\r\n");
        client.wait_for_info("aof_buffer_length", "0");
        std::fs::rename(folder.0.join("appendonlydir"), folder.0.join("old")).unwrap();
        client.check("BGREWRITEAOF", STARTED);
        client.wait_for_info("aof_rewrites", "1");
        let (base, now) = (client.info("aof_base_size"), client.info("aof_current_size"));
        assert!(base == now && base.parse::<u64>().unwrap() < 1000, "{base} {now}");
    }
}

#[test]
fn it_moves_when_the_configuration_file_names_the_other_folder() {
    let folder = Folder::new("move-rewrite");
    let file = Some(folder.0.join("conf"));
    std::fs::write(folder.0.join("conf"), "").unwrap();
    let server = start(Config { file, ..folder.config(AppendSync::EverySecond) });
    let (mut client, acknowledged) = (Client::connect(&server), AtomicUsize::new(0));
    push(&mut client, &acknowledged);
    client.check("CONFIG REWRITE", "+OK\r\n");
    assert_eq!(client.info("aof_rewrite_in_progress"), "0");
    std::fs::rename(folder.0.join("appendonlydir"), folder.0.join("old")).unwrap();
    client.check("CONFIG REWRITE", "+OK\r\n");
    client.wait_for_info("aof_rewrites", "1");
    push(&mut client, &acknowledged);
    server.stop();
    assert_eq!(len(&folder.start().unwrap()), 2);
}

/// The disk takes its time to sync the file that is left: until a write of `late` has come.
struct Slow {
    file: PathBuf,
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl DiskWatch for Slow {
    fn before(&self, act: DiskAct<'_>) -> io::Result<usize> {
        let mut state = self.state.lock().unwrap();
        match act {
            DiskAct::Sync(path) if path == self.file && !state.1 => {
                state.0 = true;
                self.changed.notify_all();
                drop(self.changed.wait_while(state, |(_, is_written)| !*is_written).unwrap());
                Ok(0)
            }
            DiskAct::Write(_, bytes) => {
                if bytes.windows(4).any(|word| word == b"late") {
                    state.1 = true;
                    self.changed.notify_all();
                }
                Ok(bytes.len())
            }
            _ => Ok(0),
        }
    }

    fn after(&self, _: DiskAct<'_>) {}
}

/// A process that is killed meanwhile would lose what is not written.
#[test]
fn what_is_answered_while_the_former_file_is_synced_is_written() {
    let folder = Folder::new("move-slow");
    let server = start(folder.config(AppendSync::No));
    let file = folder.file(FIRST).canonicalize().unwrap();
    let disk = Arc::new(Slow { file, state: Mutex::default(), changed: Condvar::new() });
    server.watch_disk(disk.clone());
    let mut client = Client::connect(&server);
    client.check("RPUSH l early", ":1\r\n");
    client.check("BGREWRITEAOF", STARTED);
    drop(disk.changed.wait_while(disk.state.lock().unwrap(), |(is_synced, _)| !*is_synced).unwrap());
    client.check("RPUSH l late", ":2\r\n");
    client.wait_for_info("aof_rewrites", "1");
    server.stop();
    assert_eq!(len(&folder.start().unwrap()), 2);
}

#[test]
fn a_rewrite_that_cannot_begin_is_refused_and_the_log_knows_why() {
    let folder = Folder::new("impossible");
    let server = start(folder.config(AppendSync::Always));
    let mut client = Client::connect(&server);
    std::fs::rename(folder.0.join("appendonlydir"), folder.0.join("old")).unwrap();
    std::fs::write(folder.0.join("appendonlydir"), "").unwrap();
    let error = "-ERR Can't execute an AOF background rewriting. Please check the server logs for more \
                 information.\r\n";
    client.check("BGREWRITEAOF", error);
    assert_eq!(client.info("aof_last_bgrewrite_status"), "err");
    client.check("RPUSH l 1", ":1\r\n");
}

#[test]
fn an_attempt_to_begin_that_fails_is_followed_by_another() {
    let folder = Folder::new("followed");
    let mut off = folder.config(AppendSync::EverySecond);
    off.append.is_wanted = false;
    let server = folder.start_with(off).unwrap();
    let mut client = Client::connect(&server);
    client.check("DEBUG DISK FULL", "+OK\r\n");
    client.check("CONFIG SET appendonly yes", "+OK\r\n");
    client.wait_for_info("aof_rewrite_scheduled", "1");
    client.check("DEBUG DISK OK", "+OK\r\n");
    client.wait_for_info("aof_rewrites", "1");
    assert_eq!(client.info("aof_rewrite_scheduled"), "0");
    client.check("CONFIG RESETSTAT", "+OK\r\n");
    assert_eq!(client.info("aof_rewrites"), "0");
}
