//! The program in the background and under a service manager.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use std::io::{Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder of a test's own, gone when the test ends; the server in it, if one is left, as well.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Home {
        let path = std::env::temp_dir().join(format!("sardine-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Home(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    /// Sends a line over the socket of the server in here and reads until it closes; None if nobody is there.
    fn ask(&self, line: &str) -> Option<String> {
        let mut stream = UnixStream::connect(self.0.join("s")).ok()?;
        stream.write_all(line.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    /// A server in the background is nobody's child to wait for. So this asks again until `done`, for
    /// half a minute at most.
    fn wait_for<T>(&self, what: &str, done: impl Fn(&Home) -> Option<T>) -> T {
        for _ in 0..3000 {
            if let Some(value) = done(self) {
                return value;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(10));
        }
        panic!("no {what}: {}", self.read("log"));
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = self.ask("SHUTDOWN NOSAVE\r\n");
        // A server in the background removes files of its own here until it has ended.
        for _ in 0..500 {
            if std::fs::remove_dir_all(&self.0).is_ok() {
                break;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(10));
        }
    }
}

fn sardine(home: &Home) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sardine"));
    command.env_remove("NOTIFY_SOCKET").env_remove("UPSTART_JOB");
    command.current_dir(&home.0).args(["--port", "0", "--worker-threads", "1", "--unixsocket", "s"]);
    command
}

#[test]
fn daemonize_leaves_a_server_of_its_own_that_writes_and_removes_its_pidfile() {
    let home = Home::new("daemon");
    let files = ["--pidfile", &home.path("pid"), "--logfile", &home.path("log")];
    let status = sardine(&home).args(["--daemonize", "yes"]).args(files).status().unwrap();
    assert_eq!(status.code(), Some(0));
    home.wait_for("answer", |home| home.ask("PING\r\nQUIT\r\n"));
    let pid: u32 = home.read("pid").trim().parse().unwrap();
    let told = home.ask("INFO server\r\nQUIT\r\n").unwrap();
    assert!(told.contains(&format!("process_id:{pid}\r\n")) && told.contains("process_supervised:no\r\n"));
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // After the name in brackets: state, parent, group, session.
    let session = stat.rsplit(')').next().unwrap().split_whitespace().nth(3).unwrap().to_owned();
    assert_eq!(session, pid.to_string(), "it leads a session");
    home.ask("SHUTDOWN NOSAVE\r\n");
    home.wait_for("end", |home| home.read("log").contains("bye bye").then_some(()));
    assert!(home.read("log").contains("* Removing the pid file.\n"), "{}", home.read("log"));
    assert!(!Path::new(&home.path("pid")).exists());
}

#[test]
fn a_log_that_cannot_be_opened_is_told_before_it_goes_to_the_background() {
    let home = Home::new("no-log");
    let files = ["--pidfile", &home.path("pid"), "--logfile", &home.path("no/such/log")];
    let output = sardine(&home).args(["--daemonize", "yes"]).args(files).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.ends_with("Can't open the log file: No such file or directory\n"), "{told}");
    assert!(home.ask("PING\r\n").is_none() && !Path::new(&home.path("pid")).exists());
}

#[test]
fn a_server_that_does_not_start_leaves_the_pidfile_of_the_one_that_runs() {
    let home = Home::new("pidfile");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    std::fs::write(home.path("pid"), "12345\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_sardine"))
        .current_dir(&home.0)
        .args(["--port", &port, "--bind", "127.0.0.1", "--pidfile", &home.path("pid")])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stdout).unwrap();
    assert!(log.contains(&format!("# Failed listening on port {port} (tcp), aborting.\n")), "{log}");
    assert_eq!(home.read("pid"), "12345\n");
}

#[test]
fn an_address_that_may_be_missing_is_told_of_when_it_is() {
    let home = Home::new("optional-address");
    // An address of RFC 5737, which no host has.
    let output = Command::new(env!("CARGO_BIN_EXE_sardine"))
        .current_dir(&home.0)
        .args(["--port", "6379", "--bind", "-192.0.2.1"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stdout).unwrap();
    let address = "# Warning: Could not create server TCP listening socket 192.0.2.1:6379: bind: ";
    assert!(log.contains(&format!("{address}Cannot assign requested address")), "{log}");
    assert!(log.contains("# Configured to not listen anywhere, exiting."), "{log}");
}

#[test]
fn the_kernel_is_told_how_readily_to_end_the_server() {
    let home = Home::new("oom");
    let score = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
    let mut child = sardine(&home)
        .args(["--oom-score-adj", "absolute", "--oom-score-adj-values", "700", "0", "0"])
        .args(["--logfile", &home.path("log")])
        .spawn()
        .unwrap();
    home.wait_for("answer", |home| home.ask("PING\r\nQUIT\r\n"));
    assert_eq!(score(child.id()).trim(), "700");
    let changed = home.ask("CONFIG SET oom-score-adj-values \"800 0 0\"\r\nQUIT\r\n");
    assert_eq!(changed.as_deref(), Some("+OK\r\n+OK\r\n"));
    assert_eq!(score(child.id()).trim(), "800");
    home.ask("SHUTDOWN\r\n");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_limit_below_what_is_in_use_and_a_client_that_is_closed_are_told_of_in_the_log() {
    let home = Home::new("low-limit");
    let mut child = sardine(&home).args(["--logfile", &home.path("log")]).spawn().unwrap();
    let set = home.wait_for("answer", |home| {
        home.ask("CLIENT SETNAME talker\r\nCONFIG SET maxmemory 100\r\nCONFIG SET maxmemory 0\r\nQUIT\r\n")
    });
    assert_eq!(set, "+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
    home.ask("CONFIG SET client-query-buffer-limit 1mb\r\nQUIT\r\n");
    let long = format!("CLIENT SETNAME talker\r\n*1\r\n$3000000\r\n{}", "x".repeat(2_000_000));
    home.ask(&long);
    home.ask("SHUTDOWN\r\n");
    assert!(child.wait().unwrap().success());
    let log = home.read("log");
    assert_eq!(log.matches("# WARNING: maxmemory is set to 100 bytes now, and ").count(), 1, "{log}");
    let closed =
        log.lines().find(|line| line.contains("has sent more than client-query-buffer-limit allows"));
    assert!(
        closed.is_some_and(|line| line.contains("# Client id=") && line.contains("name=talker")),
        "{log}"
    );
}

#[test]
fn what_is_accepted_without_effect_is_warned_of_in_the_log() {
    let home = Home::new("warned");
    let mut child =
        sardine(&home).args(["--socket-mark-id", "5", "--logfile", &home.path("log")]).spawn().unwrap();
    let shown = home.wait_for("answer", |home| home.ask("CONFIG GET socket-mark-id\r\nSHUTDOWN\r\n"));
    assert!(child.wait().unwrap().success());
    assert_eq!(shown, "*2\r\n$14\r\nsocket-mark-id\r\n$1\r\n5\r\n");
    assert_eq!(home.read("log").matches("# WARNING: 'socket-mark-id 5' has no effect: ").count(), 1);
}

#[test]
fn what_was_read_from_standard_input_goes_along_to_the_background() {
    let home = Home::new("daemon-stdin");
    let mut child =
        sardine(&home).args(["--logfile", &home.path("log"), "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let lines = format!("daemonize yes\npidfile {}\nmaxclients 77\n", home.path("pid"));
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let answer = home.wait_for("answer", |home| home.ask("CONFIG GET maxclients\r\nQUIT\r\n"));
    assert!(answer.contains("\r\n77\r\n"), "{answer}");
}

#[test]
fn what_is_wrong_is_told_before_the_server_goes_to_the_background() {
    let home = Home::new("daemon-wrong");
    let output = sardine(&home).args(["--daemonize", "yes", "--hz", "x"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains(">>> 'hz \"x\"'"));
}

#[test]
fn systemd_is_told_when_the_server_serves_and_when_it_ends() {
    let home = Home::new("systemd");
    let manager = UnixDatagram::bind(home.path("notify")).unwrap();
    // Under a service manager the process that was started has to be the server itself, `daemonize` or not.
    let mut child = sardine(&home)
        .args(["--supervised", "systemd", "--daemonize", "yes", "--logfile", &home.path("log")])
        .env("NOTIFY_SOCKET", home.path("notify"))
        .spawn()
        .unwrap();
    let heard = || {
        let mut bytes = [0; 256];
        let len = manager.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..len].to_vec()).unwrap()
    };
    assert_eq!(heard(), "STATUS=Sardine is loading...\n");
    assert_eq!(heard(), "STATUS=Ready to accept connections\nREADY=1\n");
    let told = home.ask("INFO server\r\nQUIT\r\n").unwrap();
    assert!(told.contains(&format!("process_id:{}\r\n", child.id())));
    assert!(told.contains("process_supervised:systemd\r\n"), "{told}");
    // Nothing can take the place of a folder: the server goes on, and does not say that it ends.
    std::fs::create_dir(home.path("dump.rdb")).unwrap();
    assert!(home.ask("SHUTDOWN SAVE\r\nQUIT\r\n").unwrap().contains("Errors trying to SHUTDOWN"));
    assert_eq!(heard(), "STATUS=Saving the final RDB snapshot\n");
    assert_eq!(heard(), "STATUS=Error trying to save the DB, can't exit.\n");
    std::fs::remove_dir(home.path("dump.rdb")).unwrap();
    home.ask("SHUTDOWN SAVE\r\n");
    assert_eq!(heard(), "STATUS=Saving the final RDB snapshot\n");
    assert_eq!(heard(), "STOPPING=1\n");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_rewritten_configuration_is_what_the_next_start_reads() {
    let home = Home::new("rewrite");
    std::fs::write(home.path("a.conf"), "# mine\nmaxclients 50\ndaemonize no\n").unwrap();
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sardine"));
        let options = ["a.conf", "--port", "0", "--worker-threads", "1", "--unixsocket", "s"];
        command.current_dir(&home.0).args(options).args(["--logfile", &home.path("log")]);
        command.spawn().unwrap()
    };
    let mut first = start();
    let commands = "CONFIG SET maxclients 60 hz 20\r\nCONFIG REWRITE\r\nSHUTDOWN\r\n";
    assert_eq!(home.wait_for("answer", |home| home.ask(commands)), "+OK\r\n+OK\r\n");
    assert!(first.wait().unwrap().success());
    assert!(home.read("a.conf").starts_with("# mine\nmaxclients 60\ndaemonize no\n\n# Generated"));
    let mut second = start();
    let shown = home.wait_for("answer", |home| home.ask("CONFIG GET maxclients hz\r\nSHUTDOWN\r\n"));
    assert!(second.wait().unwrap().success());
    assert!(shown.contains("\r\n60\r\n") && shown.contains("\r\n20\r\n"), "{shown}");
}
