//! All transcripts of the repository, and playing them.
use crate::transcript::{Peer, Source, Transcript};
use resp::Protocol;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A transcript and where it stands.
pub struct Script {
    /// `list/push.txt`
    pub name: String,
    pub transcript: Transcript,
}

/// tests/transcripts of this repository.
pub fn transcripts_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/transcripts")
}

/// The transcripts in a folder of families, in order. None at all is an error, also in one family: a replay
/// of nothing would pass.
pub fn load(folder: &Path) -> io::Result<Vec<Script>> {
    let mut scripts = Vec::new();
    for family in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
        let files: Vec<PathBuf> = entries(&family)?
            .into_iter()
            .filter(|path| path.extension().is_some_and(|e| e == "txt"))
            .collect();
        if files.is_empty() {
            return Err(io::Error::other(format!("no transcripts in {}", family.display())));
        }
        for file in files {
            scripts.push(read(folder, &file)?);
        }
    }
    if scripts.is_empty() {
        return Err(io::Error::other(format!("no families of transcripts in {}", folder.display())));
    }
    Ok(scripts)
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn read(folder: &Path, file: &Path) -> io::Result<Script> {
    let name = file.strip_prefix(folder).unwrap_or(file).display().to_string();
    let transcript = Transcript::parse(&fs::read_to_string(file)?)
        .map_err(|error| io::Error::other(format!("{name}:{}: {}", error.line_number, error.reason)))?;
    Ok(Script { name, transcript })
}

/// Plays every script that `source` allows to a peer of its own and fails with all replies that differ.
pub fn replay<P: Peer>(
    scripts: &[Script],
    protocol: Protocol,
    allows: impl Fn(&Script) -> bool,
    mut peer: impl FnMut() -> P,
) {
    let mut failures = Vec::new();
    let mut played_count = 0;
    for script in scripts.iter().filter(|script| allows(script)) {
        let mismatches = script.transcript.replay(&mut peer(), protocol);
        failures.extend(mismatches.iter().map(|mismatch| format!("{} {mismatch}", script.name)));
        played_count += 1;
    }
    assert_ne!(played_count, 0, "nothing was played");
    assert!(failures.is_empty(), "{} replies differ\n{}", failures.len(), failures.join("\n"));
}

/// What a redis-server can answer.
pub fn is_of_redis(script: &Script) -> bool {
    script.transcript.source == Source::Redis
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_folder_without_transcripts_is_an_error() {
        let folder = Scratch::new("suite").unwrap();
        assert!(load(folder.path()).is_err());
        fs::create_dir(folder.path().join("list")).unwrap();
        fs::write(folder.path().join("list/README.md"), "none").unwrap();
        assert!(load(folder.path()).is_err());
        fs::write(folder.path().join("list/push.txt"), "> PING\n+PONG\n").unwrap();
        assert_eq!(load(folder.path()).unwrap()[0].name, "list/push.txt");
    }

    #[test]
    fn a_transcript_that_cannot_be_read_is_named_with_its_line() {
        let folder = Scratch::new("suite").unwrap();
        fs::create_dir(folder.path().join("list")).unwrap();
        fs::write(folder.path().join("list/push.txt"), "> PING\n+PONG\nnonsense\n").unwrap();
        let told = load(folder.path()).err().unwrap().to_string();
        assert!(told.starts_with("list/push.txt:3: "), "{told}");
    }
}
