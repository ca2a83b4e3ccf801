//! Every transcript of the data commands, replayed on the commands themselves: on one shard and on many, in both
//! protocols.
use resp::Protocol;
use std::path::{Path, PathBuf};
use testkit::bare::Bare;
use testkit::transcript::Transcript;

/// Families whose commands need a server around them are replayed elsewhere.
const FAMILIES: [&str; 3] = ["keys", "list", "string"];

fn files(family: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/transcripts").join(family);
    let mut files: Vec<PathBuf> = folder
        .read_dir()
        .expect("every family has its folder")
        .map(|entry| entry.expect("a folder can be read").path())
        .collect();
    files.sort();
    files
}

fn replay_all(shard_bits: u32, protocol: Protocol) {
    let mut failures = Vec::new();
    for path in FAMILIES.iter().flat_map(|family| files(family)) {
        let text = std::fs::read_to_string(&path).expect("a transcript is text");
        let transcript = Transcript::parse(&text).unwrap_or_else(|error| panic!("{path:?}: {error:?}"));
        for mismatch in transcript.replay(&mut Bare::new(shard_bits, 1), protocol) {
            failures.push(format!("{} {mismatch}", path.display()));
        }
    }
    assert!(failures.is_empty(), "{} replies differ\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn transcripts_hold_on_one_shard() {
    replay_all(0, Protocol::Resp2);
}

#[test]
fn transcripts_hold_on_many_shards() {
    replay_all(8, Protocol::Resp2);
}

#[test]
fn transcripts_hold_in_resp3() {
    replay_all(8, Protocol::Resp3);
}
