//! Data commands with any arguments: each line of the input is a request as a person types it, quotes and
//! escapes included. A request has one reply, which is RESP; afterwards every key can be told about and read
//! as a whole.
use crate::bare_commands::BareCommands;
use crate::resp_value::Value;
use ::resp::Protocol;

/// The longest string: no offset can make one of half a gigabyte.
const STRING_BYTES_MAX: u64 = 64 << 10;
/// These commands answer as many elements as they are asked for: requests for more than [`REPEATED_MAX`] are
/// left out.
const REPEATING: [&[u8]; 3] = [b"SRANDMEMBER", b"HRANDFIELD", b"ZRANDMEMBER"];
const REPEATED_MAX: i64 = 1000;

pub(super) fn run(data: &[u8]) {
    let Some((first, lines)) = data.split_first() else { return };
    let mut bare = BareCommands::new(u32::from(first & 3), u64::from(*first));
    bare.settings_mut().proto_max_bulk_len_bytes = STRING_BYTES_MAX;
    let protocol = if first & 4 == 0 { Protocol::Resp2 } else { Protocol::Resp3 };
    for line in lines.split(|byte| *byte == b'\n') {
        if let Some(args) = words(line).filter(|args| is_bounded(args)) {
            ask(&mut bare, protocol, &args);
        }
    }
    look_at_all(&mut bare);
}

pub(super) fn ask(bare: &mut BareCommands, protocol: Protocol, args: &[Vec<u8>]) -> Value {
    let reply = bare.reply(protocol, args);
    let (value, len) = Value::parse(&reply).expect("a reply is RESP").expect("a reply is whole");
    assert_eq!(len, reply.len(), "one request has one reply");
    value
}

/// The words of a line, if it has any and its quotes are right.
fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut line, mut spans) = (line.to_vec(), Vec::new());
    ::resp::split_line(&mut line, &mut spans).ok()?;
    let words: Vec<Vec<u8>> = spans.iter().map(|span| line[span.start..][..span.len].to_vec()).collect();
    (!words.is_empty()).then_some(words)
}

fn is_bounded(args: &[Vec<u8>]) -> bool {
    let is_repeating = REPEATING.iter().any(|name| args[0].eq_ignore_ascii_case(name));
    let is_huge = |arg: &Vec<u8>| base::text::parse_i64(arg).is_some_and(|n| n < -REPEATED_MAX);
    !(is_repeating && args.iter().any(is_huge))
}

fn look_at_all(bare: &mut BareCommands) {
    let mut call = |words: &[&[u8]]| {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
        ask(bare, Protocol::Resp2, &words)
    };
    let Value::Aggregate(_, keys) = call(&[b"KEYS", b"*"]) else { return };
    for key in keys.iter().filter_map(Value::text) {
        let kind = call(&[b"TYPE", key]);
        let read: &[&[u8]] = match kind.text() {
            Some(b"list") => &[b"LRANGE", key, b"0", b"-1"],
            Some(b"hash") => &[b"HGETALL", key],
            Some(b"set") => &[b"SMEMBERS", key],
            Some(b"zset") => &[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"],
            Some(b"stream") => &[b"XRANGE", key, b"-", b"+"],
            _ => &[b"GET", key],
        };
        let content = call(read);
        assert!(!matches!(content, Value::Line(b'-', _)), "{kind:?} answers {content:?}");
        call(&[b"MEMORY", b"USAGE", key]);
        call(&[b"OBJECT", b"ENCODING", key]);
    }
}
