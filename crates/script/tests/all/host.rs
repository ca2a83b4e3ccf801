//! A server in a few lines: the commands that the recorded scripts run, answered as Redis 8.0.2 does.
use resp::{Args, Reply};
use script::{AclCheck, Host, LogLevel, Stop};
use std::collections::BTreeMap;

/// Keys of three types, and what the script has done.
#[derive(Default)]
pub(crate) struct Toy {
    pub(crate) strings: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) fields: BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>,
    pub(crate) logged: Vec<(LogLevel, Vec<u8>)>,
    pub(crate) commands: usize,
    pub(crate) interrupts: usize,
    /// The interrupt that ends the script.
    pub(crate) stop_at: Option<usize>,
    pub(crate) is_read_only: bool,
}

pub(crate) const KILLED: &str = "ERR Script killed by user with SCRIPT KILL.";

impl Host for Toy {
    fn command(&mut self, args: Args<'_>, reply: &mut Reply) -> Result<(), Stop> {
        self.commands += 1;
        let name = args.at(0).to_ascii_lowercase();
        let rest: Vec<&[u8]> = args.iter_from(1).collect();
        match (name.as_slice(), rest.as_slice()) {
            (b"ping", []) => reply.pong(),
            (b"echo", [text]) => reply.bulk(text),
            (b"set", [key, value]) => self.set(key, value, reply),
            (b"get", [key]) => match self.strings.get(*key) {
                Some(value) => reply.bulk(value),
                None => reply.null(),
            },
            (b"del", [key]) => {
                self.fields.remove(*key);
                reply.int(self.strings.remove(*key).is_some().into());
            }
            (b"incr", [key]) => self.incr(key, reply),
            (b"hset" | b"zadd" | b"sadd", [key, rest @ ..]) => self.add(&name, key, rest, reply),
            (b"hgetall", [key]) => self.hgetall(key, reply),
            (b"smembers", [key]) => {
                let members = self.fields.entry(key.to_vec()).or_default();
                reply.set(members.len());
                members.keys().for_each(|member| reply.bulk(member));
            }
            (b"zscore", [..]) => reply.double(1.5),
            (b"blpop", [..]) => reply.null_array(),
            (b"lolwut", []) => reply.verbatim("txt", b"art"),
            (b"reply", [bytes]) => reply.append(bytes),
            (b"stop", []) => return Err(Stop(b"ERR stopped by a command".to_vec())),
            (b"eval" | b"multi" | b"subscribe", _) => {
                reply.error("ERR This Redis command is not allowed from script");
            }
            (b"get" | b"set" | b"incr" | b"echo", _) => {
                reply.error("ERR Wrong number of args calling Redis command from script");
            }
            _ => reply.error("ERR Unknown Redis command called from script"),
        }
        Ok(())
    }

    fn log(&mut self, level: LogLevel, message: &[u8]) {
        self.logged.push((level, message.to_vec()));
    }

    fn acl_check(&mut self, args: Args<'_>) -> AclCheck {
        match (args.at(0), args.len()) {
            (b"get", 2) => AclCheck::Allowed,
            (b"get", _) => AclCheck::WrongArity,
            (b"set", _) => AclCheck::Denied,
            _ => AclCheck::UnknownCommand,
        }
    }

    fn interrupt(&mut self) -> Result<(), Stop> {
        self.interrupts += 1;
        match self.stop_at {
            Some(at) if self.interrupts >= at => Err(Stop(KILLED.into())),
            _ => Ok(()),
        }
    }
}

impl Toy {
    fn set(&mut self, key: &[u8], value: &[u8], reply: &mut Reply) {
        if self.is_read_only {
            return reply.error("ERR Write commands are not allowed from read-only scripts.");
        }
        self.strings.insert(key.to_vec(), value.to_vec());
        reply.ok();
    }

    fn incr(&mut self, key: &[u8], reply: &mut Reply) {
        let value = self.strings.entry(key.to_vec()).or_insert_with(|| b"0".to_vec());
        match base::text::parse_i64(value) {
            Some(n) => {
                *value = (n + 1).to_string().into_bytes();
                reply.int(n + 1);
            }
            None => reply.error("ERR value is not an integer or out of range"),
        }
    }

    fn add(&mut self, name: &[u8], key: &[u8], rest: &[&[u8]], reply: &mut Reply) {
        let fields = self.fields.entry(key.to_vec()).or_default();
        let width = if name == b"sadd" { 1 } else { 2 };
        for pair in rest.chunks(width) {
            fields.insert(pair[0].to_vec(), pair[width - 1].to_vec());
        }
        reply.int(fields.len() as i64);
    }

    fn hgetall(&mut self, key: &[u8], reply: &mut Reply) {
        let fields = self.fields.entry(key.to_vec()).or_default();
        reply.map(fields.len());
        for (field, value) in fields {
            reply.bulk(field);
            reply.bulk(value);
        }
    }
}
