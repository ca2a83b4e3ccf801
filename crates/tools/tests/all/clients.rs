//! The clients that people use, against the program: redis-py, ioredis, go-redis, Jedis, redis-cli and
//! redis-benchmark. With the path of a redis-server in the variable [`PEER`] they run against that one, so
//! that a client's own behaviour can be told from a failure (`cargo xtask clients --redis`).
//!
//! What is used is installed by `cargo xtask setup` (target/clients of this repository, and Debian's
//! packages); where it is missing the test says so, and fails where changes are checked.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use std::fs::{self, File};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use testkit::certificates::Certificates;
use testkit::redis_server::skip_without;
use testkit::scratch::Scratch;

const WORDS: &str = "/usr/share/dict/web2";
/// How many times 20 ms a client may take: far more than the slowest of them does.
const PATIENCE: usize = 15_000;

/// Names the program that is served with instead of Sardine.
const PEER: &str = "SARDINE_CLIENTS_PEER";
/// How many jobs the queue has, and each other recipe, instead of [`JOBS`].
const JOBS_VARIABLE: &str = "SARDINE_JOBS";
const JOBS: usize = 2000;

/// A process that is killed when the test ends before it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Server {
    port: String,
    folder: Scratch,
    /// The certificates of a server whose only port is for TLS; None for the others.
    certificates: Option<Certificates>,
    _process: Running,
}

impl Server {
    fn start() -> Server {
        Server::start_with(&[])
    }

    /// A server that does all the time, at random, what it does rarely by itself.
    fn restless() -> Server {
        Server::start_with(&[("SARDINE_RESTLESS", "1")])
    }

    fn start_with(environment: &[(&str, &str)]) -> Server {
        // Somebody else may take a port between its choice and its use.
        let started = (0..10).find_map(|_| Server::try_start(environment, "--port", &[]));
        started.expect("a port that stays free")
    }

    fn with_engine(engine: &str) -> Server {
        let args: &[&str] = if std::env::var_os(PEER).is_some() { &[] } else { &["--io-engine", engine] };
        (0..10).find_map(|_| Server::try_start(&[], "--port", args)).expect("a port that stays free")
    }

    /// A server that nobody reaches without TLS, nor without a certificate, but by the Unix socket.
    fn secure(name: &str) -> Server {
        let files = Certificates::new(name);
        let [cert, key, ca] = ["server.crt", "server.key", "ca.crt"].map(|file| files.text(file));
        let args =
            ["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-ca-cert-file", &ca, "--port", "0"];
        let started = (0..10).find_map(|_| Server::try_start(&[], "--tls-port", &args));
        Server { certificates: Some(files), ..started.expect("a port that stays free") }
    }

    fn try_start(environment: &[(&str, &str)], port_name: &str, args: &[&str]) -> Option<Server> {
        let folder = Scratch::new("clients").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut program = match std::env::var_os(PEER) {
            Some(peer) => Command::new(peer),
            None => Command::new(env!("CARGO_BIN_EXE_sardine")),
        };
        if std::env::var_os(PEER).is_none() {
            program.args(["--worker-threads", "3"]);
        }
        let child = program
            .args(["--bind", "127.0.0.1", "--save", ""])
            .args(args)
            .args([port_name, &port.to_string()])
            .args(["--enable-debug-command", "local", "--unixsocket"])
            .arg(folder.path().join("socket"))
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut process = Running(child);
        for _ in 0..PATIENCE {
            if process.0.try_wait().unwrap().is_some() {
                return None;
            }
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(Server {
                    port: port.to_string(),
                    folder,
                    certificates: None,
                    _process: process,
                });
            }
            sleep(Duration::from_millis(20));
        }
        None
    }

    /// Runs redis-cli with these arguments and this input; what it printed.
    fn cli(&self, args: &[&str], input: &Path) -> Vec<u8> {
        let mut command = self.program("redis-cli");
        command.args(args).stdin(File::open(input).unwrap());
        self.run(&mut command)
    }

    /// redis-cli or redis-benchmark, told where the server is.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.args(["-p", &self.port]);
        if let Some(files) = &self.certificates {
            command.args(["--tls", "--cacert", &files.text("ca.crt")]);
            command.args(["--cert", &files.text("client.crt"), "--key", &files.text("client.key")]);
        }
        command
    }

    /// For the scripts: where the certificates are, if they need some.
    fn variables(&self) -> Option<(&'static str, String)> {
        let files = self.certificates.as_ref()?;
        Some(("CERTIFICATES", files.folder().display().to_string()))
    }

    /// Runs a program to its end; what it printed, if it did not fail.
    fn run(&self, command: &mut Command) -> Vec<u8> {
        self.run_for(PATIENCE, command)
    }

    /// As [`Server::run`], with another patience.
    fn run_for(&self, patience: usize, command: &mut Command) -> Vec<u8> {
        let (out, err) = (self.folder.path().join("out"), self.folder.path().join("err"));
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let mut process = Running(command.spawn().unwrap());
        for _ in 0..patience {
            if let Some(status) = process.0.try_wait().unwrap() {
                let (out, err) = (fs::read(&out).unwrap(), fs::read(&err).unwrap());
                let lossy =
                    |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(8000)]).into_owned();
                assert!(status.success(), "{command:?}: {status}\n{}\n{}", lossy(&out), lossy(&err));
                return out;
            }
            sleep(Duration::from_millis(20));
        }
        panic!("{command:?} does not end");
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where `cargo xtask setup` puts the libraries; None if this one is not there.
fn installed(path: &str) -> Option<PathBuf> {
    let path = repository().join("target/clients").join(path);
    path.exists().then_some(path)
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok()
}

#[test]
fn redis_py_in_anger() {
    redis_py(Server::start);
}

#[test]
fn redis_py_in_anger_on_a_restless_server() {
    redis_py(Server::restless);
}

#[test]
fn redis_py_in_anger_with_tls() {
    redis_py(|| Server::secure("redis-py"));
}

fn redis_py(start: fn() -> Server) {
    let Some(python) = installed("venv/bin/python") else { return skip_without("redis-py") };
    let server = start();
    let script = repository().join("tests/clients/redis_py.py");
    let told = server.run(
        Command::new(python)
            .arg(script)
            .arg(&server.port)
            .arg(server.folder.path().join("socket"))
            .envs(server.variables()),
    );
    assert!(String::from_utf8(told).unwrap().lines().count() > 10, "it says what it has tested");
}

#[test]
fn ioredis_in_anger() {
    ioredis(Server::start);
}

#[test]
fn ioredis_in_anger_on_a_restless_server() {
    ioredis(Server::restless);
}

#[test]
fn ioredis_in_anger_with_tls() {
    ioredis(|| Server::secure("ioredis"));
}

fn ioredis(start: fn() -> Server) {
    let Some(library) = installed("node_modules/ioredis") else { return skip_without("ioredis") };
    let server = start();
    let script = repository().join("tests/clients/ioredis.mjs");
    let folder = library.ancestors().nth(2).unwrap();
    let told = server.run(
        Command::new("node")
            .arg(script)
            .arg(&server.port)
            .arg(server.folder.path().join("socket"))
            .arg(folder)
            .envs(server.variables()),
    );
    assert!(String::from_utf8(told).unwrap().lines().count() > 5, "it says what it has tested");
}

/// Runs a client's tests against a server; they print a line for each that holds.
fn in_anger(server: &Server, tests_min: usize, client: &mut Command) {
    let told = server.run(client.envs(server.variables()));
    let told = String::from_utf8(told).unwrap();
    let count = told.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(count >= tests_min, "it says what it has tested: {told}");
}

#[test]
fn redis_py_between_clients() {
    redis_py_sessions(Server::start);
}

#[test]
fn redis_py_between_clients_on_a_restless_server() {
    redis_py_sessions(Server::restless);
}

#[test]
fn redis_py_between_clients_with_tls() {
    redis_py_sessions(|| Server::secure("redis-py-sessions"));
}

fn redis_py_sessions(start: fn() -> Server) {
    let Some(python) = installed("venv/bin/python") else { return skip_without("redis-py") };
    let server = start();
    let script = repository().join("tests/clients/redis_py_sessions.py");
    in_anger(&server, 10, Command::new(python).arg(script).arg(&server.port));
}

#[test]
fn go_redis_in_anger() {
    go_redis(Server::start);
}

#[test]
fn go_redis_in_anger_on_a_restless_server() {
    go_redis(Server::restless);
}

#[test]
fn go_redis_in_anger_with_tls() {
    go_redis(|| Server::secure("go-redis"));
}

fn go_redis(start: fn() -> Server) {
    if Command::new("go").arg("version").stdout(Stdio::null()).status().is_err() {
        return skip_without("Go");
    }
    let server = start();
    let program = server.folder.path().join("go_redis");
    let source = repository().join("tests/clients/go_redis");
    server.run(Command::new("go").args(["build", "-o"]).arg(&program).current_dir(source));
    in_anger(&server, 6, Command::new(program).arg(&server.port));
}

#[test]
fn jedis_in_anger() {
    jedis(Server::start);
}

#[test]
fn jedis_in_anger_on_a_restless_server() {
    jedis(Server::restless);
}

#[test]
fn jedis_in_anger_with_tls() {
    jedis(|| Server::secure("jedis"));
}

fn jedis(start: fn() -> Server) {
    let Some(libraries) = installed("jedis") else { return skip_without("Jedis") };
    let server = start();
    let source = repository().join("tests/clients/jedis/JedisInAnger.java");
    let mut java = Command::new("java");
    in_anger(&server, 6, java.arg("-cp").arg(libraries.join("*")).arg(source).arg(&server.port));
}

#[test]
fn jobs_are_neither_lost_nor_doubled_when_workers_are_killed() {
    jobs("epoll");
}

#[test]
fn jobs_are_neither_lost_nor_doubled_with_io_uring() {
    jobs("uring");
}

#[allow(clippy::disallowed_macros, reason = "a long run by hand tells its figures")]
fn jobs(engine: &str) {
    let Some(python) = installed("venv/bin/python") else { return skip_without("redis-py") };
    let count = std::env::var(JOBS_VARIABLE).map_or(JOBS, |count| count.parse().unwrap());
    let server = Server::with_engine(engine);
    let script = repository().join("tests/clients/jobs.py");
    let mut command = Command::new(python);
    let told = server.run_for(
        PATIENCE + count,
        command.arg(script).args([&server.port, &count.to_string()]).envs(server.variables()),
    );
    let told = String::from_utf8(told).unwrap();
    println!("{engine}\n{told}");
    assert_eq!(told.lines().filter(|line| line.starts_with("ok ")).count(), 4, "{told}");
}

/// What the tests of redis-cli need: the program, and the list of words, which is returned.
fn words() -> Option<Vec<u8>> {
    match (is_there("redis-cli"), fs::read(WORDS)) {
        (true, Ok(words)) => Some(words),
        (false, _) => {
            skip_without("redis-cli");
            None
        }
        (_, Err(_)) => {
            skip_without(WORDS);
            None
        }
    }
}

/// Compares lines, and fails with the number of the first that differs. Callers take off the end of line that
/// redis-cli adds where its output is no terminal.
fn assert_same_words(got: &[u8], expected: &[u8]) {
    let first = got.split(|b| *b == b'\n').zip(expected.split(|b| *b == b'\n')).position(|(g, e)| g != e);
    assert_eq!(first, None, "the first word that differs");
    assert_eq!(got.len(), expected.len());
}

#[test]
fn the_word_list_goes_in_by_mass_insertion_and_comes_back() {
    mass_insertion(Server::start);
}

#[test]
fn the_word_list_goes_in_and_comes_back_with_tls() {
    mass_insertion(|| Server::secure("redis-cli"));
}

fn mass_insertion(start: fn() -> Server) {
    let Some(words) = words() else { return };
    let server = start();
    let requests = server.folder.path().join("requests");
    let count = words.trim_ascii_end().split(|byte| *byte == b'\n').count();
    let mut file = std::io::BufWriter::new(File::create(&requests).unwrap());
    for word in words.trim_ascii_end().split(|byte| *byte == b'\n') {
        write!(file, "*3\r\n$5\r\nRPUSH\r\n$5\r\nwords\r\n${}\r\n", word.len()).unwrap();
        file.write_all(word).unwrap();
        file.write_all(b"\r\n").unwrap();
    }
    drop(file);
    let told = String::from_utf8(server.cli(&["--pipe"], &requests)).unwrap();
    assert!(told.contains(&format!("errors: 0, replies: {count}\n")), "{told}");
    let back = server.cli(&["LRANGE", "words", "0", "-1"], Path::new("/dev/null"));
    assert_same_words(back.trim_ascii_end(), words.trim_ascii_end());
}

#[test]
fn words_go_in_through_xargs_and_come_back() {
    let Some(words) = words() else { return };
    let server = Server::start();
    let some: Vec<&[u8]> = words.split(|byte| *byte == b'\n').take(20_000).collect();
    let some = some.join(&b'\n');
    let list = server.folder.path().join("words");
    fs::write(&list, &some).unwrap();
    server.run(
        Command::new("xargs")
            .args(["redis-cli", "-p", &server.port, "rpush", "words"])
            .stdin(File::open(&list).unwrap()),
    );
    let back = server.cli(&["LRANGE", "words", "0", "-1"], Path::new("/dev/null"));
    assert_same_words(back.trim_ascii_end(), &some);
}

#[test]
fn redis_benchmark_runs_through() {
    redis_benchmark(Server::start);
}

#[test]
fn redis_benchmark_runs_through_with_tls() {
    redis_benchmark(|| Server::secure("redis-benchmark"));
}

fn redis_benchmark(start: fn() -> Server) {
    if !is_there("redis-benchmark") {
        return skip_without("redis-benchmark");
    }
    let server = start();
    let tests = "ping,set,get,incr,lpush,rpush,lpop,rpop,mset,lrange_100";
    for more in [&["-P", "1"][..], &["-P", "16", "-r", "1000", "--threads", "2"]] {
        let told =
            server.run(server.program("redis-benchmark").args(["-t", tests, "-n", "2000", "-q"]).args(more));
        let told = String::from_utf8_lossy(&told).into_owned();
        assert_eq!(told.matches("requests per second").count(), 12, "{told}");
        assert!(!told.to_ascii_lowercase().contains("error"), "{told}");
    }
}
