//! The program as scripts and service managers see it: what it prints, how it answers on a Unix socket, how it ends.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
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
    /// Starts it and reads its log until it is ready.
    fn start(name: &str) -> Server {
        let socket = std::env::temp_dir().join(format!("sardine-{}-{name}.sock", std::process::id()));
        let mut child = sardine(&["--port", "0", "--worker-threads", "1", "--save", ""])
            .arg("--unixsocket")
            .arg(&socket)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
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
    }
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
fn a_configuration_that_is_wrong_is_refused_before_anything_else() {
    let told = refused(&["--port", "abc"]);
    assert!(told.contains("FATAL CONFIG FILE ERROR"), "{told}");
    assert!(
        told.contains("at line 2\n>>> 'port \"abc\"'\nargument couldn't be parsed into an integer"),
        "{told}"
    );
    assert!(refused(&["--no-such-setting", "1"]).contains("Bad directive or wrong number of arguments"));
    assert!(refused(&["/no/such/file.conf"]).contains("can't open config file '/no/such/file.conf'"));
    assert!(refused(&["--appendonly", "yes"]).contains("not supported: there is no append-only file yet"));
}

#[test]
fn the_documents_are_printed_from_the_tables() {
    let text = |what| String::from_utf8(sardine(&["--dump-docs", what]).output().unwrap().stdout).unwrap();
    assert!(text("settings").contains("| `list-max-listpack-size`, `list-max-ziplist-size` | `-2` |"));
    assert!(text("commands").contains("| `PING [message]` |"));
    assert!(text("sample").contains("\n# port 6379\n"));
}
