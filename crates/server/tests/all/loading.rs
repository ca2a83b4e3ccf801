//! What clients are told while the data is loaded, and what comes of what they ask for then.
use crate::append_only::{FIRST, Folder, MANIFEST, ONE, SECOND, len, pushes, read};
use crate::client::Client;
use server::{AppendSync, Clock, Config, Log, Running, Snapshots};
use std::time::Duration;

/// Keys or commands of each file.
const COUNT: usize = 400;

fn begin(config: Config) -> Running {
    server::start_when(config, Clock::real(), Log::silent(), |_| {}).unwrap()
}

/// A server that has loaded its data, and what a client of it was answered meanwhile.
fn load_slowly(config: &Config, lines: &[&str]) -> (Running, Vec<String>) {
    loop {
        let snapshots = Snapshots { load_delay: 1000, ..Snapshots::never() };
        let server = begin(Config { snapshots, ..config.clone() });
        let told = std::thread::scope(|scope| {
            let load = scope.spawn(|| server.load());
            let mut client = Client::connect(&server);
            let answers: Vec<String> = lines.iter().map(|line| client.raw(line)).collect();
            let is_loading = client.info("loading") == "1";
            load.join().unwrap().unwrap();
            is_loading.then_some(answers)
        });
        // A machine that is very busy may have loaded it before.
        if let Some(answers) = told {
            return (server, answers);
        }
    }
}

#[test]
fn a_file_that_is_turned_on_while_data_is_loaded_begins_with_all_of_it() {
    let folder = Folder::new("load-on");
    let on = folder.config(AppendSync::Always);
    let mut off = on.clone();
    off.append.is_wanted = false;
    let server = folder.start_with(off.clone()).unwrap();
    let mut client = Client::connect(&server);
    client.check(&format!("DEBUG POPULATE {COUNT}"), "+OK\r\n");
    client.check("SAVE", "+OK\r\n");
    server.stop();
    let (server, answers) = load_slowly(&off, &["CONFIG SET appendonly yes", "INFO persistence"]);
    assert_eq!(answers[0], "+OK\r\n");
    assert!(answers[1].contains("aof_enabled:1") && answers[1].contains("aof_rewrite_in_progress:0"));
    let mut client = Client::connect(&server);
    client.wait_for_info("aof_rewrites", "1");
    client.check("SET more 1", "+OK\r\n");
    server.stop();
    let server = folder.start_with(on).unwrap();
    Client::connect(&server).check("DBSIZE", &format!(":{}\r\n", COUNT + 1));
}

#[test]
fn a_file_that_is_turned_off_while_it_is_loaded_stays_as_it_is() {
    let folder = Folder::new("load-off");
    folder.write(&[(MANIFEST, ONE), (FIRST, &pushes(COUNT))]);
    let (server, answers) =
        load_slowly(&folder.config(AppendSync::Always), &["CONFIG SET appendonly no", "PING"]);
    assert_eq!(answers, ["+OK\r\n", "-LOADING Redis is loading the dataset in memory\r\n"]);
    let mut client = Client::connect(&server);
    client.check("RPUSH l more", &format!(":{}\r\n", COUNT + 1));
    assert_eq!(client.info("aof_enabled"), "0");
    // Another server may have the folder.
    assert_eq!(len(&folder.start().unwrap()), COUNT);
    server.stop();
    assert_eq!(read(&folder.file(FIRST)), pushes(COUNT));
}

#[test]
fn a_file_that_is_turned_off_and_on_while_it_is_loaded_goes_on() {
    let folder = Folder::new("load-off-on");
    folder.write(&[(MANIFEST, ONE), (FIRST, &pushes(COUNT))]);
    let lines = ["CONFIG SET appendonly no", "CONFIG SET appendonly yes"];
    let (server, answers) = load_slowly(&folder.config(AppendSync::Always), &lines);
    assert_eq!(answers, ["+OK\r\n"; 2]);
    Client::connect(&server).check("RPUSH l more", &format!(":{}\r\n", COUNT + 1));
    server.stop();
    assert_eq!(len(&folder.start().unwrap()), COUNT + 1);
    assert!(!folder.file(SECOND).exists());
}

#[test]
fn the_folder_does_not_change_while_files_in_it_are_read() {
    let folder = Folder::new("load-dir");
    folder.write(&[(MANIFEST, ONE), (FIRST, &pushes(COUNT))]);
    let mut config = folder.config(AppendSync::No);
    config.enable_protected_configs = server::Allow::Local;
    let lines = ["CONFIG SET maxmemory x dir /nowhere", "CONFIG SET repl-diskless-load disabled"];
    let (_, answers) = load_slowly(&config, &lines);
    assert_eq!(answers, ["-LOADING Redis is loading the dataset in memory\r\n"; 2]);
}

/// Redis serves nobody before it has looked whether there is a file.
#[test]
fn where_there_is_nothing_to_load_nobody_is_told_that_it_is_being_loaded() {
    for is_wanted in [false, true] {
        let folder = Folder::new(&format!("load-nothing-{is_wanted}"));
        // The second time there are files, and nothing is in them.
        for _ in 0..2 {
            let mut config = folder.config(AppendSync::Always);
            config.append.is_wanted = is_wanted;
            let server = begin(config);
            let mut client = Client::connect(&server);
            client.send(b"PING\r\n");
            for _ in 0..100 {
                std::thread::park_timeout(Duration::from_millis(1));
                assert!(!client.has_received());
            }
            server.load().unwrap();
            client.expect("+PONG\r\n");
        }
    }
}

#[test]
fn a_dump_file_without_a_name_is_none() {
    let folder = Folder::new("load-nameless");
    let mut config = folder.config(AppendSync::No);
    (config.append.is_wanted, config.snapshots.file_name) = (false, "".into());
    let server = folder.start_with(config).unwrap();
    let mut client = Client::connect(&server);
    client.check("SET a 1", "+OK\r\n");
    client.check("SAVE", "-ERR\r\n");
    client.check("DEBUG RELOAD NOSAVE", "-ERR Error trying to load the RDB dump, check server logs.\r\n");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0);
}
