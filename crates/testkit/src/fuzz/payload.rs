//! RESTORE of any bytes behind which stand a version and their checksum: they are a value, or refused, and
//! then nothing has changed. A value is the same after DUMP and RESTORE, once more too.
use super::commands::ask;
use crate::bare_commands::BareCommands;
use crate::resp_value::Value;
use ::resp::Protocol;
use disk::rdb::seal;

const VERSIONS: [u16; 5] = [6, 9, 10, 12, 80];

pub(super) fn run(data: &[u8]) {
    let Some((first, value)) = data.split_first() else { return };
    let payload = seal(value.to_vec(), VERSIONS[usize::from(*first) % VERSIONS.len()]);
    let mut bare = BareCommands::new(u32::from(first & 3), u64::from(*first));
    call(&mut bare, &[b"SET", b"a", b"before"]);
    let restored = call(&mut bare, &[b"RESTORE", b"a", b"0", &payload, b"REPLACE"]);
    if restored.text() != Some(b"OK") {
        assert_eq!(
            call(&mut bare, &[b"GET", b"a"]).text(),
            Some(&b"before"[..]),
            "what is refused is not kept"
        );
        return;
    }
    let value = look(&mut bare, b"a");
    for key in [&b"b"[..], b"c"] {
        let dump = call(&mut bare, &[b"DUMP", b"a"]);
        let Some(dump) = dump.text() else {
            // All its fields are past their deadlines.
            assert_eq!(call(&mut bare, &[b"EXISTS", b"a"]).text(), Some(&b"0"[..]));
            return;
        };
        let restored = call(&mut bare, &[b"RESTORE", key, b"0", dump]);
        assert_eq!(restored.text(), Some(&b"OK"[..]), "what DUMP answers is a value");
        assert_eq!(look(&mut bare, key), value, "and the same one");
    }
}

fn call(bare: &mut BareCommands, words: &[&[u8]]) -> Value {
    let words: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
    ask(bare, Protocol::Resp2, &words)
}

/// All that can be read of a key.
fn look(bare: &mut BareCommands, key: &[u8]) -> Vec<Value> {
    let kind = call(bare, &[b"TYPE", key]);
    let requests: &[&[&[u8]]] = match kind.text() {
        Some(b"list") => &[&[b"LRANGE", key, b"0", b"-1"]],
        Some(b"hash") => &[&[b"HGETALL", key]],
        Some(b"set") => &[&[b"SMEMBERS", key]],
        Some(b"zset") => &[&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]],
        Some(b"stream") => &[&[b"XRANGE", key, b"-", b"+"], &[b"XINFO", b"GROUPS", key]],
        _ => &[&[b"GET", key]],
    };
    let mut seen = vec![kind];
    for request in requests {
        let mut reply = call(bare, request);
        if request[0] == b"SMEMBERS" || request[0] == b"HGETALL" {
            reply.sort();
        }
        seen.push(reply);
    }
    seen
}
