//! Replies of Redis 8.0.2 to scripts, recorded by EVAL. In the files a script stands behind the protocols it
//! was run in (`*`: both, with the same reply), the reply on the line below.
use crate::host::Toy;
use crate::run_all;
use resp::Protocol;
use script::{Kind, Machine, Settings};

/// Undoes `\\`, `\n`, `\r`, `\t` and `\xHH`.
pub(crate) fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = text.bytes();
    let mut out = Vec::new();
    while let Some(b) = bytes.next() {
        let escaped = if b == b'\\' { bytes.next() } else { None };
        out.push(match escaped {
            None => b,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'x') => {
                let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            Some(other) => other,
        });
    }
    out
}

#[track_caller]
fn check(name: &str, recorded: &str) {
    let machine = Machine::new(Kind::Scripts, Settings::default());
    let mut wrong = Vec::new();
    let lines: Vec<&str> = recorded.lines().collect();
    for pair in lines.chunks_exact(2) {
        let (mark, script) = pair[0].split_at(2);
        let expected = unescape(pair[1].trim_start());
        let protocols: &[Protocol] = match mark {
            "2 " => &[Protocol::Resp2],
            "3 " => &[Protocol::Resp3],
            _ => &[Protocol::Resp2, Protocol::Resp3],
        };
        for protocol in protocols {
            let is_read_only = script.starts_with("#!lua flags=no-writes");
            let host = || Toy { is_read_only, ..Toy::default() };
            let hosts = &mut [&mut host(), &mut host()];
            for (_, reply) in run_all(&machine, &unescape(script), *protocol, hosts) {
                if reply != expected {
                    let (got, expected) = (reply.escape_ascii(), expected.escape_ascii());
                    wrong.push(format!("{protocol:?} {script}\n  got      {got}\n  expected {expected}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{name}: {} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn values_become_the_replies_that_redis_makes_of_them() {
    check("replies", include_str!("recorded/replies.txt"));
}

#[test]
fn errors_have_the_texts_that_redis_gives_them() {
    check("errors", include_str!("recorded/errors.txt"));
}

#[test]
fn lua_s_own_libraries_answer_as_redis_s_do() {
    check("standard", include_str!("recorded/standard.txt"));
}

#[test]
fn first_lines_and_chunks_are_refused_as_redis_does() {
    check("flags", include_str!("recorded/flags.txt"));
}

#[test]
fn the_libraries_answer_as_redis_s_do() {
    check("libraries", include_str!("recorded/libraries.txt"));
}
