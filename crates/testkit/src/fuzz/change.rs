//! Random changes of an input: bits, bytes, numbers at which code decides, pieces taken out, doubled, or put
//! in from another input.
use base::random::Random;

const LEN_MAX: usize = 2048;
/// Words of the languages that the targets read.
const WORDS: [&[u8]; 24] = [
    b"\r\n",
    b"\n",
    b"*1\r\n$4\r\n",
    b"$-1\r\n",
    b"\"",
    b"'",
    b"\\x00",
    b" ",
    b"[",
    b"]",
    b"*",
    b"?",
    b"\\",
    b"-",
    b"0",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"1e308",
    b"inf",
    b"HYLL",
    b"0x1p-1074",
    b"SET k ",
    b"maxmemory ",
    b"u63 ",
];
const BYTES: [u8; 10] = [0, 1, 7, 8, 63, 64, 127, 128, 254, 255];

/// A changed copy of `input`, with pieces of `other`.
pub fn change(input: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..1 + random.below(8) {
        change_once(&mut bytes, other, random);
    }
    bytes.truncate(LEN_MAX);
    bytes
}

fn change_once(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let mut below = |n: usize| random.below(n as u64 + 1) as usize;
    let at = below(bytes.len());
    match below(8) {
        0 if at < bytes.len() => bytes[at] ^= 1 << below(7),
        1 if at < bytes.len() => bytes[at] = BYTES[below(BYTES.len() - 1)],
        2 if at < bytes.len() => bytes[at] = below(255) as u8,
        3 => drop(bytes.drain(at..at + below((bytes.len() - at).min(64)))),
        4 => {
            let end = at + below((bytes.len() - at).min(64));
            let piece = bytes[at..end].to_vec();
            bytes.splice(end..end, piece);
        }
        5 => {
            let from = below(other.len());
            let piece = other[from..from + below((other.len() - from).min(128))].to_vec();
            bytes.splice(at..at, piece);
        }
        6 => drop(bytes.splice(at..at, WORDS[below(WORDS.len() - 1)].iter().copied())),
        _ => {
            let fresh: Vec<u8> = (0..below(32)).map(|_| below(255) as u8).collect();
            bytes.splice(at..at, fresh);
        }
    }
}
