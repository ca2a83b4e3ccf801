//! The queues that can be driven, and how the processes of each are started.
use super::server::Server;
use crate::redis_server::is_installed;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// npm, on ioredis: everything it does is a script, and most of its keys are declared.
    BullMq,
    /// PyPI, through kombu, on redis-py: lists and hashes, transactions, results that expire; few scripts.
    Celery,
    /// Go, on go-redis: scripts with keys that are made from arguments.
    Asynq,
}

/// What a process of a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Add,
    Work,
    Watch,
}

/// What all processes of a run are told.
pub(super) struct Task<'r> {
    pub(super) program: Program,
    pub(super) server: &'r Server,
    pub(super) seed: u64,
    pub(super) jobs: u64,
    pub(super) is_hasty: bool,
    /// One unit of so many is held until its worker is killed.
    pub(super) hold: u64,
    /// Where the run may put files.
    pub(super) folder: &'r Path,
}

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where `cargo xtask setup` installs what the queues need.
pub fn installed() -> PathBuf {
    root().join("target/clients/queues")
}

impl Program {
    pub const ALL: [Program; 3] = [Program::BullMq, Program::Celery, Program::Asynq];

    pub fn name(self) -> &'static str {
        match self {
            Program::BullMq => "bullmq",
            Program::Celery => "celery",
            Program::Asynq => "asynq",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Program> {
        Program::ALL.into_iter().find(|program| program.name() == name)
    }

    /// Whether what it needs is on this machine.
    pub fn is_there(self) -> bool {
        match self {
            Program::BullMq => installed().join("node_modules/bullmq").exists(),
            Program::Celery => installed().join("venv/bin/celery").exists(),
            Program::Asynq => is_installed("go", "version"),
        }
    }

    /// Builds what has to be built into the run's folder.
    pub(super) fn prepare(self, folder: &Path) -> Result<(), String> {
        if self != Program::Asynq {
            return Ok(());
        }
        let mut go = Command::new("go");
        go.args(["build", "-o"]).arg(folder.join("asynq")).arg("./asynq");
        let built = go.current_dir(root().join("tests/queues/go")).stdin(Stdio::null()).status();
        match built {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("go build of asynq's program: {status}")),
            Err(error) => Err(format!("go, which builds asynq's program: {error}")),
        }
    }
}

impl Task<'_> {
    /// The command of a role. `done` are units that need not be added again, beside those before `next`.
    pub(super) fn command(&self, role: Role, next: u64, done: &[u64]) -> Command {
        let scripts = root().join("tests/queues");
        let mut command = match self.program {
            Program::BullMq => Command::new("node"),
            Program::Celery => Command::new(installed().join("venv/bin/python")),
            Program::Asynq => Command::new(self.folder.join("asynq")),
        };
        match self.program {
            Program::BullMq => command.arg(scripts.join("bullmq.mjs")),
            Program::Celery => command.arg(scripts.join("celery_queue.py")),
            Program::Asynq => &mut command,
        };
        command.arg(match role {
            Role::Add => "add",
            Role::Work => "work",
            Role::Watch => "watch",
        });
        if self.program == Program::BullMq {
            command.arg(installed());
        }
        let (host, port) = self.server.host_and_port();
        let done: Vec<String> = done.iter().map(u64::to_string).collect();
        command.args([host, &port.to_string()]);
        command.args([self.seed, self.jobs, self.hold, next].map(|number| number.to_string()));
        command
            .arg(done.join(","))
            .arg(if self.is_hasty { "hasty" } else { "patient" })
            .current_dir(self.folder);
        command
    }
}
