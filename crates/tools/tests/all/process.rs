//! The program as scripts and service managers see it: what it prints, how it answers on a Unix socket, how
//! it ends.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use crate::home::Home;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// A server on a Unix socket of its own; killed when the test ends early.
struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    socket: PathBuf,
    log: String,
}

impl Server {
    fn start(name: &str) -> Server {
        Server::start_with(name, &[])
    }

    /// Starts it and reads its log until it is ready.
    fn start_with(name: &str, options: &[&str]) -> Server {
        let socket = socket_path(name);
        let mut command = sardine(&[
            "--port",
            "0",
            "--worker-threads",
            "1",
            "--save",
            "",
            "--enable-debug-command",
            "local",
        ]);
        command.arg("--unixsocket").arg(&socket).args(options).stdout(Stdio::piped());
        Server::serving(command, socket)
    }

    /// Starts this and reads its log until it is ready.
    fn serving(mut command: Command, socket: PathBuf) -> Server {
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut server = Server { child, out, socket, log: String::new() };
        while !server.log.contains("Ready to accept connections unix") {
            assert_ne!(server.out.read_line(&mut server.log).unwrap(), 0, "it ended: {}", server.log);
        }
        server
    }

    /// Sends a line and reads until the server closes.
    fn last_words(&self, line: &str) -> String {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Sends a line to a server that ends before it answers.
    fn provoke(&self, line: &str) {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.write_all(line.as_bytes()).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }

    /// Waits for the end by a signal: its number and the whole log.
    fn crash(mut self) -> (Option<i32>, String) {
        use std::os::unix::process::ExitStatusExt;
        let status = self.child.wait().unwrap();
        self.out.read_to_string(&mut self.log).unwrap();
        (status.signal(), std::mem::take(&mut self.log))
    }

    /// Waits for the end: the exit status and the whole log.
    fn end(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        self.out.read_to_string(&mut self.log).unwrap();
        (status.code(), std::mem::take(&mut self.log))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A server that was killed could not remove it.
        let _ = std::fs::remove_file(&self.socket);
    }
}

fn socket_path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("sardine-{}-{name}.sock", std::process::id()))
}

fn sardine(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sardine"));
    command.args(args);
    command
}

fn refused(args: &[&str]) -> String {
    let Output { status, stderr, .. } = sardine(args).output().unwrap();
    assert_eq!(status.code(), Some(1));
    String::from_utf8(stderr).unwrap()
}

#[test]
fn it_says_who_it_is_serves_and_ends_by_shutdown() {
    let server = Server::start("shutdown");
    let pid = server.child.id();
    assert!(server.log.contains(&format!(" PID: {pid}\n")), "{}", server.log);
    assert!(server.log.contains("Server initialized\n"), "{}", server.log);
    assert_eq!(
        server.last_words("PING\r\nCONFIG GET save\r\nQUIT\r\n"),
        "+PONG\r\n*2\r\n$4\r\nsave\r\n$0\r\n\r\n+OK\r\n"
    );
    let told = "used_memory_startup:";
    let memory = server.last_words("INFO memory\r\nQUIT\r\n");
    let startup = memory.lines().find_map(|l| l.strip_prefix(told)).unwrap().parse::<u64>().unwrap();
    assert!(startup > 0, "the program counts what it allocates");
    assert_eq!(server.last_words("SHUTDOWN NOSAVE\r\n"), "");
    let socket = server.socket.clone();
    let (status, log) = server.end();
    assert_eq!(status, Some(0));
    assert!(log.contains("User requested shutdown...") && log.contains("bye bye..."), "{log}");
    assert!(!socket.exists());
}

#[test]
fn it_ends_with_zero_on_sigterm() {
    let server = Server::start("sigterm");
    let pid = server.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let (status, log) = server.end();
    assert_eq!(status, Some(0));
    assert!(log.contains("Received SIGTERM scheduling shutdown..."), "{log}");
}

#[test]
fn signals_that_are_about_something_else_do_not_end_it() {
    let server = Server::start("ignored");
    let pid = server.child.id().to_string();
    for signal in ["-HUP", "-PIPE", "-ALRM", "-USR2", "-XFSZ"] {
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        assert_eq!(server.last_words("PING\r\nQUIT\r\n"), "+PONG\r\n+OK\r\n", "{signal}");
    }
    server.last_words("SHUTDOWN NOSAVE\r\n");
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn time_stands_still_for_a_script_until_others_are_told_to_wait() {
    let now =
        "local function now() local t = redis.call('TIME') return t[1] .. '.' .. t[2] end local b = now()";
    let still = "for i = 1, 100 do if now() ~= b then return 1 end end return 0";
    let waiting = "while now() == b do end return 1";
    for (threshold, script, answer) in [("1000000", still, ":0"), ("1", waiting, ":1")] {
        let server = Server::start_with("time", &["--busy-reply-threshold", threshold]);
        let told = server.last_words(&format!("EVAL \"{now} {script}\" 0\r\nQUIT\r\n"));
        assert_eq!(told, format!("{answer}\r\n+OK\r\n"), "{script}");
    }
}

#[test]
fn a_crash_is_reported_in_the_log_with_what_was_being_done() {
    for (word, signal, cause) in [
        ("PANIC", 6, "DEBUG PANIC called (crates/server/src/commands/debug/crash.rs:"),
        ("PANIC ALLOCATOR", 6, "00000000000"),
        ("ASSERT", 6, "DEBUG ASSERT called"),
        ("SEGFAULT", 11, "by signal 11"),
    ] {
        let server = Server::start_with("crash", &["--requirepass", "geheim"]);
        server.provoke(&format!("AUTH geheim\r\nCLIENT SETNAME fisher\r\nDEBUG {word}\r\n"));
        let (by, log) = server.crash();
        assert_eq!(by, Some(signal), "{word}: {log}");
        for part in [
            "\n=== SARDINE BUG REPORT START: ",
            &format!(" crashed: {cause}"),
            "\n------ STACK TRACE ------\n   0: ",
            "\nworker: 0 of 1\ncommand: debug\nclient: id=1 ",
            " name=fisher ",
            "\nlocked shards: [] of 256\n",
            "\nused_memory:",
            "\n=== SARDINE BUG REPORT END",
        ] {
            assert!(log.contains(part), "{word}: {part:?} is not in {log}");
        }
        assert!(!log.contains("geheim"), "{log}");
    }
}

#[test]
fn a_crash_report_can_be_turned_off_and_hide_the_client() {
    let server = Server::start_with("crash-off", &["--crash-log-enabled", "no"]);
    server.provoke("DEBUG PANIC\r\n");
    let (by, log) = server.crash();
    assert_eq!(by, Some(6));
    assert!(!log.contains("BUG REPORT"), "{log}");
    let server = Server::start_with("crash-hide", &["--hide-user-data-from-log", "yes"]);
    server.provoke("CLIENT SETNAME fisher\r\nDEBUG PANIC\r\n");
    let (_, log) = server.crash();
    assert!(log.contains("\nclient: id=1 ") && !log.contains("fisher"), "{log}");
}

/// As many clients are served as workers and their engines leave descriptors for; the others
/// get an error at once.
#[test]
fn clients_beyond_the_limit_of_open_files_are_told_so() {
    for engine in ["epoll", "auto"] {
        let socket = socket_path(&format!("files-{engine}"));
        let command = format!(
            "ulimit -n 100; exec {} --port 0 --worker-threads 16 --io-engine {engine} --unixsocket {}",
            env!("CARGO_BIN_EXE_sardine"),
            socket.display()
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).stdout(Stdio::piped());
        let server = Server::serving(shell, socket);
        let mut clients: Vec<UnixStream> =
            (0..210).map(|_| UnixStream::connect(&server.socket).unwrap()).collect();
        let (mut served, mut told) = (0, 0);
        for client in &mut clients {
            client.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
            let _ = client.write_all(b"PING\r\n");
            let mut answer = String::new();
            BufReader::new(client).read_line(&mut answer).unwrap();
            match answer.as_str() {
                "+PONG\r\n" => served += 1,
                "-ERR max number of clients reached\r\n" => told += 1,
                other => panic!("{engine}: {other:?} after {served} and {told}"),
            }
        }
        assert!(served >= 16, "{engine}: {served} are served, {told} told");
        // A client that is served ends the server: it may not have noticed yet that the others left, and
        // would turn a new one away.
        let _ = clients.iter_mut().map(|client| client.write_all(b"SHUTDOWN NOSAVE\r\n")).count();
        let (status, log) = server.end();
        assert_eq!(status, Some(0));
        assert!(log.matches("Accepting client connection").count() <= 1, "{log}");
    }
}

#[test]
fn the_log_says_why_users_keep_the_server_from_starting() {
    let (missing, socket) = ("/nonexistent/users.acl", socket_path("users"));
    for (args, words) in [
        (&["--aclfile", missing][..], "No such file or directory"),
        (&["--user", "bob", "on", "--aclfile", missing], "please do it in one of the two."),
        (&["--user", "a b", "on"], "Spaces not allowed in ACL usernames"),
    ] {
        let listening = ["--port", "0", "--unixsocket", socket.to_str().unwrap()];
        let Output { status, stdout, .. } = sardine(&[&listening[..], args].concat()).output().unwrap();
        let _ = std::fs::remove_file(&socket);
        let log = String::from_utf8(stdout).unwrap();
        assert!(log.contains(words), "{args:?}: {log}");
        assert_eq!(status.code(), Some(1));
    }
}

#[test]
fn a_limit_of_open_files_that_leaves_no_client_ends_the_start() {
    let command =
        format!("ulimit -n 60; exec {} --port 0 --worker-threads 16", env!("CARGO_BIN_EXE_sardine"));
    let Output { status, stdout, .. } = Command::new("sh").args(["-c", &command]).output().unwrap();
    let log = String::from_utf8(stdout).unwrap();
    // A user who may raise the limit gets one step further: there is no address to listen on.
    let words =
        ["Your current 'ulimit -n' of 60 is not enough for the server to start.", "not listen anywhere"];
    assert!(words.iter().any(|words| log.contains(words)), "{log}");
    assert_eq!(status.code(), Some(1));
}

#[test]
fn a_configuration_that_is_wrong_is_refused_before_anything_else() {
    let told = refused(&["--port", "abc"]);
    assert!(told.contains("FATAL CONFIG FILE ERROR"), "{told}");
    assert!(
        told.contains("at line 2\n>>> 'port \"abc\"'\nargument couldn't be parsed into an integer"),
        "{told}"
    );
    assert!(refused(&["--no-such-setting", "1"]).contains("Bad directive or wrong number of arguments"));
    let told = refused(&["--logfile", "/no/such/log"]);
    assert!(told.ends_with(" ***\nCan't open the log file: No such file or directory\n"), "{told}");
    assert!(refused(&["/no/such/file.conf"]).contains("can't open config file '/no/such/file.conf'"));
    assert!(refused(&["--cluster-enabled", "yes"]).contains("not supported: there is no cluster mode yet"));
}

#[test]
fn the_documents_are_printed_from_the_tables() {
    let text = |what| String::from_utf8(sardine(&["--dump-docs", what]).output().unwrap().stdout).unwrap();
    assert!(text("settings").contains("| `list-max-listpack-size`, `list-max-ziplist-size` | `-2` |"));
    assert!(text("commands").contains("| `PING [message]` |"));
    assert!(text("sample").contains("\n# port 6379\n"));
}

/// A number that INFO memory shows.
fn memory(server: &Server, field: &str) -> u64 {
    let info = server.last_words("INFO memory\r\nQUIT\r\n");
    let value = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.unwrap().trim().parse().unwrap()
}

#[test]
fn memory_purge_has_given_free_pages_back_when_it_answers() {
    let server = Server::start("purge");
    // Without the pause the background would give pages back by itself.
    server.last_words("DEBUG PAUSE-CRON 1\r\nDEBUG POPULATE 20000 key 2000\r\nQUIT\r\n");
    let full = memory(&server, "used_memory_rss");
    assert!(full > 40_000_000);
    let layout = server.last_words("MEMORY MALLOC-STATS\r\nMEMORY STATS\r\nMEMORY DOCTOR\r\nQUIT\r\n");
    for word in ["Arena: ", "given back", "keys.bytes-per-key\r\n:2", "remarkable"] {
        assert!(layout.contains(word), "{layout}");
    }
    server.last_words("FLUSHALL\r\nQUIT\r\n");
    while memory(&server, "lazyfree_pending_objects") > 0 {}
    assert!(memory(&server, "used_memory_rss") > 40_000_000);
    assert!(server.last_words("MEMORY PURGE\r\nQUIT\r\n").starts_with("+OK\r\n"));
    let empty = memory(&server, "used_memory_rss");
    assert!(empty < full - 30_000_000, "{full} {empty}");
}

/// Lines of level verbose, by which connections are traced.
#[test]
fn a_verbose_log_tells_who_comes_and_goes() {
    let mut home = Home::new("verbose");
    home.start(&["--save", "", "--loglevel", "verbose", "--timeout", "1"]);
    let connect = || UnixStream::connect(home.path.join("s")).unwrap();
    drop(connect());
    let mut confused = connect();
    confused.write_all(b"*1\r\n$99999999999\r\n").unwrap();
    let idle = connect();
    for told in [
        "- Accepted connection to s\n",
        "- Client closed connection id=",
        "- Protocol error (invalid bulk length) from client: id=",
        "- Closing idle client\n",
    ] {
        home.wait_for(told, |home| home.log().contains(told).then_some(()));
    }
    drop(idle);
    let mut home = Home::new("not-verbose");
    home.start(&["--save", ""]);
    assert!(!home.log().contains("Accepted"));
}

/// A file of one zone, as zic writes it, that is so far ahead of UTC all the year.
fn zone(rule: &str, seconds_ahead: i32, name: &[u8]) -> Vec<u8> {
    let counts = [0, 0, 0, 0, 1, name.len() as u32 + 1];
    let counts = counts.map(u32::to_be_bytes).concat();
    let part = [b"TZif2", &[0; 15][..], &counts, &seconds_ahead.to_be_bytes(), &[0, 0], name, &[0]].concat();
    [&part[..], &part, format!("\n{rule}\n").as_bytes()].concat()
}

#[test]
fn the_log_has_the_time_of_the_zone_that_tz_names() {
    let folder = std::env::temp_dir().join(format!("sardine-zones-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("Ocean")).unwrap();
    std::fs::write(folder.join("Ocean/Sargasso"), zone("<+0029>-0:29", 29 * 60, b"+0029")).unwrap();
    let socket = socket_path("zone");
    let mut command = sardine(&["--port", "0", "--worker-threads", "1", "--save", ""]);
    command.arg("--unixsocket").arg(&socket).stdout(Stdio::piped());
    command.env("TZDIR", &folder).env("TZ", "Ocean/Sargasso");
    let minute = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() / 60;
    let before = minute();
    let server = Server::serving(command, socket);
    let known = before..=minute();
    std::fs::remove_dir_all(&folder).unwrap();
    let shown = server.log.split(':').nth(2).and_then(|minute| minute.parse::<u64>().ok());
    let shown = shown.unwrap_or_else(|| panic!("no time in {}", server.log));
    assert!(known.clone().any(|minute| (minute + 29) % 60 == shown), "{known:?}: {}", server.log);
}

#[test]
fn others_may_not_write_the_append_only_file_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("sardine-umask-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let socket = socket_path("umask");
    let mut command = Command::new("sh");
    command.args(["-c", "umask 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_sardine")]);
    command.args(["--port", "0", "--worker-threads", "1", "--appendonly", "yes", "--unixsocket"]);
    command.arg(&socket).arg("--dir").arg(&folder).stdout(Stdio::piped());
    let server = Server::serving(command, socket);
    let appended = folder.join("appendonlydir");
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let modes: Vec<u32> =
        std::fs::read_dir(&appended).unwrap().map(|entry| mode(entry.unwrap().path())).collect();
    drop(server);
    assert_eq!(mode(appended), 0o755);
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(!modes.is_empty() && modes.iter().all(|mode| *mode == 0o644), "{modes:?}");
}
