//! What the tests need beside Rust, installed where it is missing: Debian's packages with apt-get (as root),
//! client libraries of Python, Node and Java under `target/clients`, where the client tests look for them,
//! and below it in `queues` what the tests of job queues need.
//!
//! Whatever cannot be had is named with the command that would bring it, and the step fails: a test that is
//! skipped in silence is worse.
use crate::shell::{Outcome, execute, quiet, root, target};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Debian package and how to tell that it is there.
struct Package {
    name: &'static str,
    purpose: &'static str,
    is_installed: fn() -> bool,
}

const PACKAGES: [Package; 12] = [
    Package {
        name: "redis-server",
        purpose: "the peer whose answers are the expected ones",
        is_installed: || quiet(Command::new("redis-server").arg("--version")),
    },
    Package {
        name: "redis-tools",
        purpose: "redis-cli and redis-benchmark",
        is_installed: || quiet(Command::new("redis-cli").arg("--version")),
    },
    Package {
        name: "openssl",
        purpose: "makes the certificates of the tests of TLS",
        is_installed: || quiet(Command::new("openssl").arg("version")),
    },
    Package {
        name: "miscfiles",
        purpose: "the word list of the dictionary tests",
        is_installed: || Path::new("/usr/share/dict/web2").exists(),
    },
    Package {
        name: "valgrind",
        purpose: "memory checks of the packed structures",
        is_installed: || quiet(Command::new("valgrind").arg("--version")),
    },
    Package {
        name: "python3-pip",
        purpose: "the Python client",
        is_installed: || quiet(Command::new("python3").args(["-m", "pip", "--version"])),
    },
    Package {
        name: "python3-venv",
        purpose: "a place for the Python client",
        is_installed: || quiet(Command::new("python3").args(["-c", "import venv, ensurepip"])),
    },
    Package {
        name: "nodejs",
        purpose: "the JavaScript client",
        is_installed: || quiet(Command::new("node").arg("--version")),
    },
    Package {
        name: "npm",
        purpose: "brings the JavaScript client",
        is_installed: || quiet(Command::new("npm").arg("--version")),
    },
    Package {
        name: "golang-go",
        purpose: "the Go client",
        is_installed: || quiet(Command::new("go").arg("version")),
    },
    Package {
        name: "default-jdk-headless",
        purpose: "the Java client",
        is_installed: || quiet(Command::new("javac").arg("-version")),
    },
    Package {
        name: "maven",
        purpose: "brings the Java client",
        is_installed: || quiet(Command::new("mvn").arg("--version")),
    },
];

/// The authorities that Debian trusts to sign certificates.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

pub(crate) fn run() -> Outcome {
    let clients = [packages(), python_client(), node_client(), go_client(), java_client()];
    let queues = [queues_of_python(), queues_of_node(), queues_of_go()];
    let results = clients.into_iter().chain(queues);
    let failed: Vec<String> = results.filter_map(Result::err).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

fn packages() -> Outcome {
    let missing: Vec<&Package> = PACKAGES.iter().filter(|p| !(p.is_installed)()).collect();
    if missing.is_empty() {
        println!("installed: {}", PACKAGES.map(|p| p.name).join(", "));
        return Ok(());
    }
    missing.iter().for_each(|p| println!("missing: {} ({})", p.name, p.purpose));
    let names: Vec<&str> = missing.iter().map(|p| p.name).collect();
    let by_hand = |why: String| format!("{why}; run as root: apt-get install {}", names.join(" "));
    apt_get(&["update"]).map_err(by_hand)?;
    apt_get(&[&["-y", "--no-install-recommends", "install"], &names[..]].concat()).map_err(by_hand)?;
    stop_system_redis();
    let still: Vec<&str> = missing.iter().filter(|p| !(p.is_installed)()).map(|p| p.name).collect();
    if still.is_empty() { Ok(()) } else { Err(format!("installed, but not working: {}", still.join(", "))) }
}

/// Asks nothing, keeps settings that were edited, and tries again where a mirror fails once.
fn apt_get(action: &[&str]) -> Outcome {
    const OPTIONS: [&str; 5] = ["-q", "-o", "Acquire::Retries=3", "-o", "Dpkg::Options::=--force-confold"];
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout.trim_ascii() == b"0");
    if !is_root {
        return Err("packages are installed by root".to_string());
    }
    execute(Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(OPTIONS).args(action))
}

/// Debian starts the server it installs, if it can; the tests start their own.
fn stop_system_redis() {
    quiet(Command::new("service").args(["redis-server", "stop"]));
}

fn python_client() -> Outcome {
    let venv = target("clients").join("venv");
    let python = venv.join("bin/python");
    if quiet(Command::new(&python).args(["-c", "import redis"])) {
        println!("installed: redis-py in {}", venv.display());
        return Ok(());
    }
    execute(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
    execute(Command::new(&python).args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "redis",
    ]))
}

fn node_client() -> Outcome {
    let folder = target("clients");
    if folder.join("node_modules/ioredis/package.json").exists() {
        println!("installed: ioredis in {}", folder.display());
        return Ok(());
    }
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let options = ["install", "--no-save", "--no-audit", "--no-fund", "--fetch-retries=1"];
    execute(npm().arg("--prefix").arg(&folder).args(options).arg("ioredis@5"))
}

fn npm() -> Command {
    let mut npm = Command::new("npm");
    // Node knows its own list of authorities only, and tries for minutes where a machine has one more.
    if std::env::var_os("NODE_EXTRA_CA_CERTS").is_none() && Path::new(AUTHORITIES).exists() {
        npm.env("NODE_EXTRA_CA_CERTS", AUTHORITIES);
    }
    npm
}

/// Built once here, so that the tests find all of it in Go's own caches.
fn go_client() -> Outcome {
    let program = target("clients").join("go_redis");
    let source = root().join("tests/clients/go_redis");
    execute(Command::new("go").args(["build", "-o"]).arg(program).current_dir(source))
}

fn java_client() -> Outcome {
    let folder = target("clients").join("jedis");
    let is_there = std::fs::read_dir(&folder).is_ok_and(|mut files| {
        files.any(|file| file.is_ok_and(|file| file.file_name().to_string_lossy().starts_with("jedis-")))
    });
    if is_there {
        println!("installed: Jedis in {}", folder.display());
        return Ok(());
    }
    let source = root().join("tests/clients/jedis/pom.xml");
    let mut maven = Command::new("mvn");
    maven.args(["--quiet", "--batch-mode", "--file"]).arg(source).arg("dependency:copy-dependencies");
    execute(maven.arg(format!("-DoutputDirectory={}", folder.display())))
}

/// What the tests of job queues, locks and limiters need, at the versions that `tests/queues` names:
/// installed anew when those change.
fn queues_of_python() -> Outcome {
    let (folder, wanted) = queues("requirements.txt")?;
    let python = folder.join("venv/bin/python");
    if is_up_to_date(&folder, &wanted) && python.exists() {
        println!("installed: the Python packages of {}", wanted.display());
        return Ok(());
    }
    execute(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder.join("venv")))?;
    let options = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    execute(Command::new(python).args(options).arg(&wanted))?;
    remember(&folder, &wanted)
}

fn queues_of_node() -> Outcome {
    let (folder, wanted) = queues("package-lock.json")?;
    if is_up_to_date(&folder, &wanted) && folder.join("node_modules/bullmq").exists() {
        println!("installed: the npm packages of {}", wanted.display());
        return Ok(());
    }
    let (manifest, its) = (wanted.with_file_name("package.json"), folder.join("package.json"));
    std::fs::copy(&manifest, &its).map_err(|e| format!("{}: {e}", its.display()))?;
    remember(&folder, &wanted)?;
    // Their scripts, and what is optional, are faster forms of what is there in JavaScript too.
    let options =
        ["install", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund", "--fetch-retries=1"];
    if let Err(error) = execute(npm().arg("--prefix").arg(&folder).args(options)) {
        // The list would say that they are there.
        let _ = std::fs::remove_file(folder.join("package-lock.json"));
        return Err(error);
    }
    // npm may have written it anew.
    remember(&folder, &wanted)
}

fn queues_of_go() -> Outcome {
    let (folder, module) = queues("go")?;
    execute(Command::new("go").args(["build", "-o"]).arg(folder).args(["./..."]).current_dir(module))
}

/// The folder of the queues' packages, and a file of theirs in the repository.
fn queues(file: &str) -> Result<(PathBuf, PathBuf), String> {
    let folder = target("clients").join("queues");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok((folder, root().join("tests/queues").join(file)))
}

/// Whether the copy of this list in the folder is what it was installed from.
fn is_up_to_date(folder: &Path, wanted: &Path) -> bool {
    let copy = wanted.file_name().map(|name| folder.join(name));
    let read = |path: &Path| std::fs::read(path).ok();
    copy.is_some_and(|copy| read(&copy).is_some() && read(&copy) == read(wanted))
}

fn remember(folder: &Path, wanted: &Path) -> Outcome {
    let Some(name) = wanted.file_name() else { return Ok(()) };
    std::fs::copy(wanted, folder.join(name)).map(drop).map_err(|e| format!("{}: {e}", wanted.display()))
}
