//! Append-only files of any bytes: the list of files, and commands. A list that is read is the same once it
//! was written and read again. Of commands the part that is good is read to its end, and to the same end by
//! the parser of requests, by which a server runs them; and what a server runs is good.
use disk::aof::commands::{CommandReader, Entry};
use disk::aof::manifest::Manifest;
use resp::{Args, Framing, Limits, Parsed, Parser};

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
    let (counts, end) = parsed(good);
    assert!(end == good.len() && counts == ends[..counts.len()], "both readers see the same commands");
    let (counts, _) = parsed(data);
    assert_eq!(counts, ends[..counts.len().min(ends.len())], "what a server runs is good");
}

/// How many words each command has, as a server sees them, and how many bytes it takes.
fn parsed(bytes: &[u8]) -> (Vec<usize>, usize) {
    const TIME_BYTES_MAX: usize = 128;
    let limits = Limits { bulk_len_bytes_max: i64::MAX as u64, ..Limits::default() };
    let (mut parser, mut at, mut counts) = (Parser::new(), 0, Vec::new());
    loop {
        let (begin, mut spans) = (at, Vec::new());
        match &bytes[at..] {
            [b'#', ..] => match bytes[at..].iter().take(TIME_BYTES_MAX).position(|byte| *byte == b'\n') {
                Some(len) => at += len + 1,
                None => return (counts, begin),
            },
            [b'*', b'1'..=b'9', ..] => {
                let framing = match parser.parse_plain(bytes, &mut at, &mut spans, &limits) {
                    Ok(Some(Parsed::Request(framing))) => framing,
                    _ => return (counts, begin),
                };
                if framing != Framing::Canonical && !Args::new(bytes, &spans).has_line_ends(begin) {
                    return (counts, begin);
                }
                counts.push(spans.len());
            }
            _ => return (counts, begin),
        }
    }
}
