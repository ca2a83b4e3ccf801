//! The libraries of scripts that read bytes which a script may have from anywhere, and replies that a script
//! reads: any bytes are taken or refused, and the script goes on. What was read of JSON can be written, read
//! and written again, and is as long then. (MessagePack has no such form: what is in too many tables becomes
//! nil.)
//!
//! ```text
//! 0 | JSON        1 | MessagePack        2 | format of struct, 0, bytes
//! 3 | pattern, 0, text                   4 | RESP, as the reply of redis.call, returned to the client
//! ```
use crate::resp_value::Value;
use ::resp::{Args, Protocol, Reply};
use script::{AclCheck, Compiled, Host, Kind, LogLevel, Machine, Outcome, Settings, Stop};

/// A script for each of the first bytes. What it returns is true, but for the last.
const SCRIPTS: [&str; 5] = [
    "local is_value, value = pcall(cjson.decode, ARGV[1])
     if not is_value then return 1 end
     local is_text, text = pcall(cjson.encode, value)
     return (not is_text or #cjson.encode(cjson.decode(text)) == #text) and 1",
    "pcall(cmsgpack.unpack_one, ARGV[1], #ARGV[1] / 2) pcall(cmsgpack.unpack_limit, ARGV[1], 2, 1)
     local is_packed, packed = pcall(cmsgpack.pack, {pcall(cmsgpack.unpack, ARGV[1])})
     return (not is_packed or pcall(cmsgpack.unpack, packed) ~= nil) and 1",
    "pcall(struct.size, ARGV[1]) pcall(struct.unpack, ARGV[1], ARGV[2])
     pcall(struct.unpack, ARGV[1], ARGV[2], #ARGV[2] / 2)
     local values = {pcall(struct.unpack, ARGV[1], ARGV[2])}
     if not values[1] then return 1 end
     local is_packed, packed = pcall(struct.pack, ARGV[1], unpack(values, 2))
     return (not is_packed or pcall(struct.unpack, ARGV[1], packed)) and 1",
    "pcall(string.find, ARGV[2], ARGV[1]) pcall(string.match, ARGV[2], ARGV[1], -3)
     pcall(string.gsub, ARGV[2], ARGV[1], '%0%1') pcall(string.gsub, ARGV[2], ARGV[1], {a = 'b'}, 3)
     pcall(function() for a, b in string.gmatch(ARGV[2], ARGV[1]) do end end)
     pcall(string.format, ARGV[1], ARGV[2], 1, 2.5, ARGV[2])
     return 1",
    "redis.setresp(ARGV[2] == '3' and 3 or 2) return redis.pcall('reply', ARGV[1])",
];
/// An interpreter of this size ends a script that takes too much, and is whole again after it.
const SETTINGS: Settings = Settings { bytes_max: 8 << 20, instructions_between: 100 };
/// A pattern may try for ever.
const INTERRUPTS_MAX: usize = 200;
/// What may be left after a script.
const LEFT_BYTES_MAX: usize = 4 << 20;

thread_local! {
    static SCRIPTED: (Machine, [Compiled; 5]) = {
        let machine = Machine::new(Kind::Scripts, SETTINGS);
        let compiled = SCRIPTS.map(|body| machine.compile(body.as_bytes()).expect("it can be compiled"));
        (machine, compiled)
    };
}

pub(super) fn run(data: &[u8]) {
    let Some((first, bytes)) = data.split_first() else { return };
    let which = usize::from(*first) % SCRIPTS.len();
    let protocol = if first & 0x80 == 0 { Protocol::Resp2 } else { Protocol::Resp3 };
    let argv: [&[u8]; 2] = match which {
        2 | 3 => {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            [&bytes[..end], bytes.get(end + 1..).unwrap_or_default()]
        }
        _ => [bytes, if first & 0x40 == 0 { b"2" } else { b"3" }],
    };
    SCRIPTED.with(|(machine, compiled)| {
        let mut reply = Reply::new(protocol);
        let argv = argv.into_iter();
        let outcome =
            machine.run(&compiled[which], [].into_iter(), argv, &mut Answers::default(), &mut reply);
        machine.tidy();
        let (value, len) = Value::parse(&reply.out).expect("a reply is RESP").expect("a reply is whole");
        assert_eq!(len, reply.out.len(), "one script has one reply");
        match outcome {
            Outcome::Done => assert!(which == 4 || value.text() == Some(b"1"), "{value:?}"),
            Outcome::Failed { .. } => assert_eq!(which, 4, "{value:?}"),
            Outcome::Stopped => machine.collect_all(),
        }
        if machine.used_bytes() > LEFT_BYTES_MAX {
            machine.collect_all();
            assert!(machine.used_bytes() <= LEFT_BYTES_MAX, "{} bytes are left", machine.used_bytes());
        }
    });
}

/// A server whose replies are what the script sends it.
#[derive(Default)]
struct Answers {
    interrupts: usize,
}

impl Host for Answers {
    fn command(&mut self, args: Args<'_>, reply: &mut Reply) -> Result<(), Stop> {
        reply.append(args.at(1));
        Ok(())
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn acl_check(&mut self, _: Args<'_>) -> AclCheck {
        AclCheck::Allowed
    }

    fn interrupt(&mut self) -> Result<(), Stop> {
        self.interrupts += 1;
        if self.interrupts > INTERRUPTS_MAX { Err(Stop(b"ERR it takes too long".to_vec())) } else { Ok(()) }
    }
}
