//! Append-only files of any bytes: the list of files, and commands. A list that is read is the same once it
//! was written and read again. Of commands the part that is good is read to its end, and to the same end by
//! the parser of requests, by which a server runs them.
use disk::aof::commands::{CommandReader, Entry};
use disk::aof::manifest::Manifest;
use resp::{Limits, Parsed, Parser};

pub(super) fn run(data: &[u8]) {
    if let Ok(manifest) = Manifest::parse(data) {
        assert_eq!(Manifest::parse(&manifest.text()), Ok(manifest), "what is written is what is read");
    }
    let mut reader = CommandReader::new(data);
    let mut ends = Vec::new();
    loop {
        match reader.next_entry() {
            Ok(Some(Entry::Command(words))) => ends.push(words.len()),
            Ok(Some(Entry::Time(_))) => {}
            Ok(None) | Err(_) => break,
        }
    }
    let good = &data[..reader.good_bytes() as usize];
    let mut again = CommandReader::new(good);
    while again.next_entry().expect("it is good").is_some() {}
    assert!(!again.is_in_transaction());
    assert_eq!(parsed(good), ends[..parsed(good).len()], "both readers see the same commands");
}

/// How many words each command has, as the parser of requests sees them.
fn parsed(bytes: &[u8]) -> Vec<usize> {
    let limits = Limits { bulk_len_bytes_max: i64::MAX as u64, ..Limits::default() };
    let (mut parser, mut at, mut counts) = (Parser::new(), 0, Vec::new());
    while at < bytes.len() {
        if bytes[at] == b'#' {
            let line = bytes[at..].iter().position(|byte| *byte == b'\n');
            at += line.expect("a time is a whole line") + 1;
            continue;
        }
        let mut spans = Vec::new();
        match parser.parse_plain(bytes, &mut at, &mut spans, &limits) {
            Ok(Some(Parsed::Request(_))) => counts.push(spans.len()),
            other => panic!("what is good is no request: {other:?}"),
        }
    }
    counts
}
