//! Job queues that people run, BullMQ, Celery and asynq, whose workers, adders and server are killed: some
//! hundred jobs each (`testkit::queues`; by hand and for longer `cargo xtask queues`). Then locks and rate
//! limiters of several libraries (`tests/queues`), each of which is a script or two.
//!
//! With the path of a redis-server in `SARDINE_CLIENTS_PEER` all of it runs against that one. What is used is
//! installed by `cargo xtask setup`; where it is missing the test says so, and fails where changes are
//! checked.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use std::path::Path;
use std::process::Command;
use testkit::queues::{Caution, Options, Program, Server, installed, run};
use testkit::redis_server::{is_installed, skip_without};
use testkit::scratch::Scratch;

const PEER: &str = "SARDINE_CLIENTS_PEER";

/// The program under test, with as many threads as make its workers meet.
fn server() -> Vec<String> {
    let peer = std::env::var(PEER).map(|peer| vec![peer]);
    peer.unwrap_or_else(|_| {
        [env!("CARGO_BIN_EXE_sardine"), "--worker-threads", "3"].map(String::from).to_vec()
    })
}

#[allow(clippy::disallowed_macros, reason = "a run tells its figures")]
fn nothing_is_lost_or_doubled(program: Program, jobs: u64, crashes: u64) {
    if !program.is_there() {
        return skip_without(program.name());
    }
    let options = Options {
        program,
        name: "the server under test".to_owned(),
        server: server(),
        jobs,
        seed: u64::from(std::process::id()),
        workers: 3,
        kills: 4,
        crashes,
        caution: Caution::Ask,
        is_hasty: true,
    };
    match run(&options) {
        Ok(report) => println!("{}: {report}", program.name()),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn bullmq_loses_and_doubles_nothing_when_workers_are_killed() {
    nothing_is_lost_or_doubled(Program::BullMq, 400, 0);
}

#[test]
fn bullmq_loses_and_doubles_nothing_when_the_server_is_killed() {
    nothing_is_lost_or_doubled(Program::BullMq, 400, 2);
}

#[test]
fn asynq_loses_and_doubles_nothing_when_workers_are_killed() {
    nothing_is_lost_or_doubled(Program::Asynq, 400, 0);
}

#[test]
fn asynq_loses_and_doubles_nothing_when_the_server_is_killed() {
    nothing_is_lost_or_doubled(Program::Asynq, 400, 2);
}

/// Only here nobody kills the server: what Celery makes of that, on redis-server too, is no matter of seconds
/// (`cargo xtask queues celery --append-only`).
#[test]
fn celery_loses_and_doubles_nothing_when_workers_are_killed() {
    nothing_is_lost_or_doubled(Program::Celery, 200, 0);
}

/// Runs a script or program that prints a line for each of its tests.
fn each_holds(tests_min: usize, command: &mut Command) {
    let mut server = Server::start(&server(), false).unwrap();
    let (host, port) = server.host_and_port();
    let told = command.args([host, &port.to_string()]).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    assert!(told.status.success(), "{command:?}: {}\n{out}\n{err}", told.status);
    let count = out.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(count >= tests_min, "it says what it has tested: {out}\n{err}");
    server.check().unwrap();
}

fn scripts() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/queues")
}

#[test]
fn locks_and_limiters_of_python() {
    let python = installed().join("venv/bin/python");
    if !python.exists() {
        return skip_without("the packages of tests/queues/requirements.txt");
    }
    each_holds(8, Command::new(python).arg(scripts().join("locks.py")));
}

#[test]
fn locks_and_limiters_of_node() {
    if !installed().join("node_modules/rate-limiter-flexible").exists() {
        return skip_without("the packages of tests/queues/package.json");
    }
    each_holds(7, Command::new("node").arg(scripts().join("locks.mjs")).arg(installed()));
}

#[test]
fn locks_and_limiters_of_go() {
    if !is_installed("go", "version") {
        return skip_without("Go");
    }
    let folder = Scratch::new("locks").unwrap();
    let program = folder.path().join("locks");
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&program).arg("./locks").current_dir(scripts().join("go"));
    assert!(go.status().unwrap().success());
    each_holds(4, &mut Command::new(program));
}
