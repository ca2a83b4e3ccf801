//! HyperLogLogs from any string: with a right header, or whatever is there. Estimates, additions and merges
//! answer or refuse, and what was merged is a sketch. (An addition may touch the sound beginning of a broken
//! one, as in Redis.)
use super::commands::ask;
use crate::bare_commands::BareCommands;
use crate::resp_value::Value;
use resp::Protocol;

/// Dense and sparse, the estimate known or to be made anew.
const HEADERS: [&[u8]; 4] = [
    b"HYLL\x00\0\0\0\0\0\0\0\0\0\0\0",
    b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0",
    b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80",
    b"",
];
const DENSE_BYTES: usize = 12_304;

pub(super) fn run(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let mut text = [HEADERS[usize::from(first & 3)], rest].concat();
    if first & 7 == 0 {
        text.resize(DENSE_BYTES, *first);
    }
    let mut bare = BareCommands::new(0, 1);
    bare.settings_mut().hll_sparse_bytes_max = u64::from(*first) * 16;
    let mut call = |words: &[&[u8]]| {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
        ask(&mut bare, Protocol::Resp2, &words)
    };
    call(&[b"SET", b"s", &text]);
    call(&[b"PFADD", b"other", b"a", b"b"]);
    call(&[b"PFCOUNT", b"s"]);
    call(&[b"PFCOUNT", b"s", b"other"]);
    for word in [&b"GETREG"[..], b"DECODE", b"ENCODING"] {
        call(&[b"PFDEBUG", word, b"s"]);
    }
    call(&[b"PFADD", b"s", rest, b"x", b"y"]);
    if !matches!(call(&[b"PFMERGE", b"sum", b"s", b"other"]), Value::Line(b'-', _)) {
        let count = call(&[b"PFCOUNT", b"sum"]);
        assert!(matches!(count, Value::Line(b':', _)), "what was merged is a sketch: {count:?}");
    }
}
