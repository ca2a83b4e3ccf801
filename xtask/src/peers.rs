//! `cargo xtask peers`: the servers that Sardine is compared with, Redis 8.0.2 and Valkey 8.1.1, from Debian
//! trixie into `target/peers`, whatever release this machine runs, and nothing of it installed.
//!
//! ```text
//! target/peers/redis-8.0.2/redis-server      a script that starts the program below, wherever the folder is
//!                          redis-cli         moved to, through the loader and with the libraries of trixie:
//!                          redis-benchmark   those of this machine may be too old
//!                          root/usr/...      the packages, unpacked
//! ```
//!
//! apt does the fetching, with lists and a cache of its own that go when it is done: from the mirror that
//! this machine's apt is told to use, through its proxy and its authentication, and only what Debian has
//! signed. What is there and works is left alone.
use crate::shell::{Outcome, target};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) struct Peer {
    /// `redis-8.0.2`
    pub(crate) folder: &'static str,
    /// What figures call it; its programs' names begin with it.
    pub(crate) name: &'static str,
    version: &'static str,
    packages: [&'static str; 2],
}

pub(crate) const PEERS: [Peer; 2] = [
    Peer {
        folder: "redis-8.0.2",
        name: "redis",
        version: "8.0.2",
        packages: ["redis-server", "redis-tools"],
    },
    Peer {
        folder: "valkey-8.1.1",
        name: "valkey",
        version: "8.1.1",
        packages: ["valkey-server", "valkey-tools"],
    },
];

/// What the programs are linked with, the C library and its loader first.
const LIBRARIES: [&str; 14] = [
    "libc6",
    "libgcc-s1",
    "libstdc++6",
    "libatomic1",
    "libcap2",
    "libhiredis1.1.0",
    "libjemalloc2",
    "liblua5.1-0",
    "liblz4-1",
    "liblzf1",
    "libssl3t64",
    "libsystemd0",
    "libzstd1",
    "zlib1g",
];

const SUITE: &str = "trixie";
/// The keys that sign Debian's archives, where the package of that name is installed; else apt uses those
/// that it trusts anyway.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

impl Peer {
    fn home(&self) -> PathBuf {
        target("peers").join(self.folder)
    }

    /// The server, where it was unpacked.
    pub(crate) fn server(&self) -> Option<PathBuf> {
        let program = self.home().join(format!("{}-server", self.name));
        program.exists().then_some(program)
    }

    /// Whether a server starts and is the one that is meant; else what it says.
    fn check(&self, home: &Path) -> Outcome {
        let program = home.join(format!("{}-server", self.name));
        let output = Command::new(&program).arg("--version").output();
        let output = output.map_err(|e| format!("{}: {e}", program.display()))?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        if said.contains(&format!("v={} ", self.version)) {
            return Ok(());
        }
        Err(format!(
            "{} is to be {} {}, and says: {}",
            program.display(),
            self.name,
            self.version,
            said.trim()
        ))
    }
}

pub(crate) fn run() -> Outcome {
    let (there, missing): (Vec<&Peer>, Vec<&Peer>) =
        PEERS.iter().partition(|peer| peer.check(&peer.home()).is_ok());
    there.iter().for_each(|peer| println!("unpacked: {}", peer.home().display()));
    if missing.is_empty() {
        return Ok(());
    }
    let scratch = Scratch::new()?;
    let packages = scratch.fetch(&missing)?;
    missing.iter().try_for_each(|peer| unpack(peer, &packages, &scratch))
}

/// A folder for apt and for what is not complete yet, removed in the end however that comes.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, String> {
        let folder = target("peers").join(format!("unpacking-{}", std::process::id()));
        let scratch = Scratch(folder);
        for name in ["lists/partial", "cache/archives/partial", "packages"] {
            make_folder(&scratch.0.join(name))?;
        }
        // dpkg's list of what is installed: here nothing is.
        write(&scratch.0.join("status"), "")?;
        Ok(scratch)
    }

    /// Downloads the packages of these peers, from the first of this machine's mirrors that has them.
    fn fetch(&self, peers: &[&Peer]) -> Result<PathBuf, String> {
        let mirrors = self.mirrors()?;
        if mirrors.is_empty() {
            let hint = "peers: apt knows no mirror of Debian on this machine; unpack the packages by hand";
            return Err(format!("{hint} ({})", self.0.with_file_name("redis-8.0.2").display()));
        }
        let mut failures = Vec::new();
        for mirror in mirrors {
            match self.fetch_from(&mirror, peers) {
                Ok(()) => return Ok(self.0.join("packages")),
                Err(why) => failures.push(format!("{mirror}: {why}")),
            }
        }
        let failures = failures.join("; ");
        Err(format!(
            "peers: nothing fetched ({failures}). Is the network there, and does apt-get update work?"
        ))
    }

    /// The roots of the archives that apt is told to use, and that have a release of Debian's.
    fn mirrors(&self) -> Result<Vec<String>, String> {
        let output = self.apt_get().args(["update", "--print-uris"]).output();
        let output =
            output.map_err(|e| format!("peers: apt-get, which fetches them, does not start: {e}"))?;
        if !output.status.success() {
            return Err(format!("peers: apt-get: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        Ok(mirrors(&String::from_utf8_lossy(&output.stdout)))
    }

    fn fetch_from(&self, mirror: &str, peers: &[&Peer]) -> Outcome {
        println!("fetching from {mirror}");
        let list = self.0.join("sources.list");
        let trust = if Path::new(KEYRING).exists() { format!(" signed-by={KEYRING}") } else { String::new() };
        write(&list, &format!("deb [target=Packages{trust}] {mirror} {SUITE} main\n"))?;
        let apt_get = |action: &[&str]| {
            let mut command = self.apt_get();
            command.args(["-o", &format!("Dir::Etc::SourceList={}", list.display())]);
            command.args(["-o", "Dir::Etc::SourceParts=-"]).args(action);
            run_silently(command.current_dir(self.0.join("packages")))
        };
        apt_get(&["update"])?;
        let packages: Vec<&str> = peers.iter().flat_map(|peer| peer.packages).chain(LIBRARIES).collect();
        apt_get(&[&["download"], &packages[..]].concat())
    }

    /// apt with the settings of this machine, but nothing of its state. It gives up soon where there is no
    /// network, and takes a list that it could not fetch for the failure that it is.
    fn apt_get(&self) -> Command {
        let place = |name: &str| self.0.join(name).display().to_string();
        let mut command = Command::new("apt-get");
        command.arg("-q").env("LC_ALL", "C");
        for setting in [
            format!("Dir::State={}", self.0.display()),
            format!("Dir::State::Lists={}", place("lists")),
            format!("Dir::State::Status={}", place("status")),
            format!("Dir::Cache={}", place("cache")),
            "APT::Sandbox::User=root".to_owned(),
            "APT::Update::Error-Mode=any".to_owned(),
            "Acquire::Retries=1".to_owned(),
            "Acquire::http::Timeout=20".to_owned(),
            "Acquire::https::Timeout=20".to_owned(),
            "Acquire::Languages=none".to_owned(),
        ] {
            command.args(["-o", &setting]);
        }
        command
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// From lines like `'http://HOST/debian/dists/bookworm/InRelease' NAME 0`; each root once, security archives
/// left out.
fn mirrors(uris: &str) -> Vec<String> {
    let mut mirrors: Vec<String> = Vec::new();
    for line in uris.lines() {
        let uri = line.split_whitespace().next().unwrap_or_default().trim_matches('\'');
        let Some((root, rest)) = uri.split_once("/dists/") else { continue };
        let suite = rest.split('/').next().unwrap_or_default();
        let is_debian = root.rsplit('/').any(|part| part == "debian") && !suite.ends_with("-security");
        if is_debian && !mirrors.iter().any(|known| known == root) {
            mirrors.push(root.to_owned());
        }
    }
    mirrors
}

/// Builds the peer's folder aside, and puts it into its place when it works.
fn unpack(peer: &Peer, packages: &Path, scratch: &Scratch) -> Outcome {
    let home = scratch.0.join(peer.folder);
    let root = home.join("root");
    make_folder(&root)?;
    let others: Vec<&str> =
        PEERS.iter().filter(|other| other.name != peer.name).flat_map(|other| other.packages).collect();
    for package in files(packages)? {
        let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !others.contains(&name.split('_').next().unwrap_or_default()) {
            run_silently(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&root))?;
        }
    }
    for part in ["etc", "usr/share", "var"] {
        let _ = fs::remove_dir_all(root.join(part));
    }
    let loader = loader(&root)?;
    for program in ["server", "cli", "benchmark"] {
        write_script(&home.join(format!("{}-{program}", peer.name)), &loader)?;
    }
    peer.check(&home)?;
    let _ = fs::remove_dir_all(peer.home());
    fs::rename(&home, peer.home()).map_err(|e| format!("{}: {e}", peer.home().display()))?;
    println!("unpacked: {}", peer.home().display());
    Ok(())
}

/// The loader of the unpacked C library, from `root` on: its folder holds the libraries too.
fn loader(root: &Path) -> Result<PathBuf, String> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folders = files(&root.join("usr/lib"))?;
    for folder in folders.iter().filter(|path| path.is_dir() && name(path).ends_with("-linux-gnu")) {
        if let Some(loader) = files(folder)?.iter().find(|path| name(path).starts_with("ld-linux")) {
            return Ok(loader.strip_prefix(root).unwrap_or(loader).to_path_buf());
        }
    }
    Err(format!("peers: no loader of programs below {}", root.display()))
}

/// The name by which a program was called is passed on: redis-server and redis-check-rdb are one program.
fn write_script(path: &Path, loader: &Path) -> Outcome {
    let program = path.file_name().unwrap_or_default().to_string_lossy();
    let (loader, libraries) = (loader.display(), loader.parent().unwrap_or(loader).display());
    let script = format!(
        "#!/bin/sh\n\
         root=$(dirname \"$(readlink -f \"$0\")\")/root\n\
         exec \"$root/{loader}\" --library-path \"$root/{libraries}\" \
         --argv0 {program} \"$root/usr/bin/{program}\" \"$@\"\n"
    );
    write(path, &script)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .map_err(|e| format!("{}: {e}", path.display()))
}

/// What a program says is shown only where it fails.
fn run_silently(command: &mut Command) -> Outcome {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{name}: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if output.status.success() { Ok(()) } else { Err(format!("{name}: {}", lines.join(" "))) }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn make_folder(path: &Path) -> Outcome {
    fs::create_dir_all(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &Path, text: &str) -> Outcome {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_are_the_roots_of_debians_archives() {
        let uris = "'http://host.example/debian/dists/bookworm/InRelease' host_InRelease 0 \n\
                    'http://host.example/debian/dists/bookworm-updates/InRelease' host_InRelease 0 \n\
                    'http://host.example/debian-security/dists/bookworm-security/InRelease' x 0 \n\
                    'https://other.example/node/dists/nodistro/InRelease' x 0 \n\
                    'https://mirror.example/pub/debian/dists/stable/InRelease' x 0 \n\
                    'https://flat.example/InRelease' x 0 \n";
        assert_eq!(mirrors(uris), ["http://host.example/debian", "https://mirror.example/pub/debian"]);
        assert_eq!(mirrors(""), [""; 0]);
    }
}
