//! Many clients at once that wait, watch, publish, listen, keep copies and are users, and that leave, are
//! killed, unblocked or changed at the same instant. Each thread drives hundreds of them over connections of
//! their own: none waits for a reply, whatever arrives is read, except by those who never read.
//!
//! They stay in the databases [`OWN_DBS`]. What they are told does not matter here (transcripts and histories
//! look at that): when all have left, nothing of them may be left in the server.
use super::Stage;
use crate::resp_client::{RespClient, request};
use base::random::Random;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::sleep;
use std::time::Duration;

/// What a thread drives.
const CLIENTS_PER_THREAD: u64 = 125;
/// Databases that hold nothing of anybody else; most are in the first.
const OWN_DBS: [&str; 2] = ["8", "9"];
const KEYS: u64 = 24;
const CHANNELS: u64 = 40;
const USERS: u64 = 12;
/// Between two looks at all clients of a thread.
const PAUSE: Duration = Duration::from_millis(2);
/// One look at all clients in so many ends with the leaving of many.
const CALAMITY_EVERY: u64 = 150;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Waiter,
    Pusher,
    Watcher,
    Publisher,
    Listener,
    /// Listens, and never reads.
    Deaf,
    /// Keeps copies of keys.
    Tracker,
    User,
    Administrator,
}

const ROLES: [Role; 16] = [
    Role::Waiter,
    Role::Waiter,
    Role::Waiter,
    Role::Waiter,
    Role::Pusher,
    Role::Pusher,
    Role::Watcher,
    Role::Watcher,
    Role::Publisher,
    Role::Listener,
    Role::Listener,
    Role::Deaf,
    Role::Tracker,
    Role::Tracker,
    Role::User,
    Role::Administrator,
];

struct Member {
    client: RespClient,
    id: String,
    role: Role,
    /// Nothing is asked before what was asked is answered.
    waits: bool,
}

struct Crowd<'s> {
    stage: &'s Stage,
    random: Random,
    members: Vec<Member>,
}

/// How many threads so many clients need.
pub(super) fn threads(clients: u64) -> u64 {
    clients.div_ceil(CLIENTS_PER_THREAD)
}

/// How many of them one thread drives.
pub(super) fn share(clients: u64, thread: u64) -> u64 {
    (clients - thread * CLIENTS_PER_THREAD).min(CLIENTS_PER_THREAD)
}

/// The names of all users that there may be.
pub(super) fn users() -> Vec<String> {
    (0..USERS).map(|number| format!("crowd-{number}")).collect()
}

/// Until the stage is over. A client that the server has closed is followed by another.
pub(super) fn run(stage: &Stage, clients: u64, seed: u64) {
    let mut crowd = Crowd { stage, random: Random::new(seed), members: Vec::new() };
    while !stage.is_over() {
        if let Err(error) = crowd.look(clients as usize) {
            stage.fail(format!("nobody can join the crowd: {error}"));
        }
        sleep(PAUSE);
    }
}

impl Crowd<'_> {
    /// All clients once: whoever is not there joins, what has arrived is read, some ask something.
    fn look(&mut self, count: usize) -> io::Result<()> {
        while self.members.len() < count {
            let member = self.join()?;
            self.members.push(member);
        }
        for at in (0..self.members.len()).rev() {
            if self.take_part(at).is_err() {
                self.members.swap_remove(at);
            }
        }
        if self.random.below(CALAMITY_EVERY) == 0 {
            self.calamity()?;
        }
        Ok(())
    }

    fn join(&mut self) -> io::Result<Member> {
        let mut client = RespClient::connect(&self.stage.process.address())?;
        let role = ROLES[self.random.below(ROLES.len() as u64) as usize];
        let db = OWN_DBS[usize::from(self.random.below(10) == 0)];
        let protocol = if role == Role::Tracker || self.random.below(2) == 0 { "3" } else { "2" };
        client.call(&["HELLO", protocol, "SETNAME", "crowd"])?;
        client.call(&["SELECT", db])?;
        let id = client.call(&["CLIENT", "ID"])?;
        let id = id.text().map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default();
        if role == Role::Deaf {
            client.send(&["SUBSCRIBE", "channel:0", "channel:1", "channel:2"])?;
            client.send(&["PSUBSCRIBE", "channel:*", "__key*"])?;
        }
        Ok(Member { client, id, role, waits: false })
    }

    fn take_part(&mut self, at: usize) -> io::Result<()> {
        let member = &mut self.members[at];
        if member.role == Role::Deaf {
            return Ok(());
        }
        while member.client.try_receive()?.is_some() {
            member.waits = false;
        }
        if member.waits || self.random.below(4) != 0 {
            return Ok(());
        }
        let role = member.role;
        // Some leave in the middle of whatever they do.
        if self.random.below(300) == 0 {
            return Err(io::ErrorKind::Other.into());
        }
        let lines = self.lines(role);
        let wire: Vec<u8> = lines.iter().flat_map(|line| request(&words(line))).collect();
        self.stage.requests.fetch_add(lines.len() as u64, Relaxed);
        let member = &mut self.members[at];
        member.waits = role == Role::Waiter;
        member.client.send_bytes(&wire)
    }

    fn lines(&mut self, role: Role) -> Vec<String> {
        match role {
            Role::Waiter => vec![self.wait()],
            Role::Pusher => vec![self.push()],
            Role::Watcher => self.watch(),
            Role::Publisher => vec![self.publish()],
            Role::Listener => vec![self.listen()],
            Role::Deaf => Vec::new(),
            Role::Tracker => self.track(),
            Role::User => self.be_user(),
            Role::Administrator => vec![self.administer()],
        }
    }

    fn key(&mut self, kind: char) -> String {
        format!("{kind}:{}", self.random.below(KEYS))
    }

    fn channel(&mut self) -> String {
        format!("channel:{}", self.random.below(CHANNELS))
    }

    fn wait(&mut self) -> String {
        let (list, other, sorted, stream) = (self.key('l'), self.key('l'), self.key('z'), self.key('x'));
        let (seconds, ms) = match self.random.below(4) {
            0 => ("0", "0"),
            1 => ("0.01", "10"),
            2 => ("0.3", "300"),
            _ => ("2", "2000"),
        };
        match self.random.below(10) {
            0 => format!("BLPOP {list} {other} {seconds}"),
            1 => format!("BRPOP {list} {other} {list} {seconds}"),
            2 => format!("BLMOVE {list} {other} LEFT RIGHT {seconds}"),
            3 => format!("BRPOPLPUSH {list} {other} {seconds}"),
            4 => format!("BLMPOP {seconds} 2 {list} {other} LEFT COUNT 3"),
            5 => format!("BZPOPMIN {sorted} {seconds}"),
            6 => format!("BZMPOP {seconds} 1 {sorted} MAX COUNT 2"),
            7 => format!("XREAD BLOCK {ms} STREAMS {stream} $"),
            8 => format!("XREADGROUP GROUP g me BLOCK {ms} STREAMS {stream} >"),
            _ => format!("BZPOPMAX {sorted} {seconds}"),
        }
    }

    fn push(&mut self) -> String {
        let (list, other, sorted, stream) = (self.key('l'), self.key('l'), self.key('z'), self.key('x'));
        match self.random.below(16) {
            0..4 => format!("RPUSH {list} a b c"),
            4 | 5 => format!("LPUSH {list} a"),
            6 => format!("LTRIM {list} 0 5"),
            7 => format!("RENAME {list} {other}"),
            8 => format!("DEL {list} {sorted}"),
            9 | 10 => format!("ZADD {sorted} 1 a 2 b 3 c"),
            11 | 12 => format!("XADD {stream} MAXLEN 20 * f v"),
            13 => format!("XGROUP CREATE {stream} g $ MKSTREAM"),
            14 => format!("PEXPIRE {list} 30"),
            _ => format!("XGROUP DESTROY {stream} g"),
        }
    }

    /// Not all of them come to the end.
    fn watch(&mut self) -> Vec<String> {
        let (key, other, list) = (self.key('s'), self.key('s'), self.key('l'));
        let lines = [
            format!("WATCH {key} {other} {list}"),
            format!("GET {key}"),
            "MULTI".to_owned(),
            format!("INCR {key}"),
            format!("RPUSH {list} {other}"),
            format!("BLPOP {other} 0"),
            ["EXEC", "EXEC", "DISCARD", "UNWATCH"][self.random.below(4) as usize].to_owned(),
        ];
        let count = if self.random.below(3) == 0 { self.random.below(7) } else { 7 };
        lines.into_iter().take(count as usize).collect()
    }

    fn publish(&mut self) -> String {
        let channel = self.channel();
        match self.random.below(5) {
            0 => format!("SPUBLISH {channel} {}", "shard".repeat(10)),
            1 => format!("PUBLISH {channel} {}", "long".repeat(1000)),
            _ => format!("PUBLISH {channel} message"),
        }
    }

    fn listen(&mut self) -> String {
        let (channel, other) = (self.channel(), self.channel());
        match self.random.below(12) {
            0..3 => format!("SUBSCRIBE {channel} {other}"),
            3 => format!("PSUBSCRIBE {channel}* ch*:{}", self.random.below(KEYS)),
            4 => "PSUBSCRIBE __keyevent@8__:*".to_owned(),
            5 => format!("SSUBSCRIBE {channel}"),
            6 => format!("UNSUBSCRIBE {channel}"),
            7 => "UNSUBSCRIBE".to_owned(),
            8 => "PUNSUBSCRIBE".to_owned(),
            9 => "SUNSUBSCRIBE".to_owned(),
            10 => "RESET".to_owned(),
            _ => "PING".to_owned(),
        }
    }

    fn track(&mut self) -> Vec<String> {
        let (key, other) = (self.key('s'), self.key('l'));
        let id = self.any_id();
        match self.random.below(12) {
            0 => vec!["CLIENT TRACKING ON".to_owned()],
            1 => vec!["CLIENT TRACKING OFF".to_owned()],
            2 => vec![format!("CLIENT TRACKING ON BCAST PREFIX s: PREFIX l:{} NOLOOP", self.random.below(9))],
            3 => vec![
                "CLIENT TRACKING ON OPTIN".to_owned(),
                "CLIENT CACHING YES".to_owned(),
                format!("GET {key}"),
            ],
            4 => vec![format!("CLIENT TRACKING ON REDIRECT {id}")],
            5 => vec!["MULTI".to_owned(), format!("GET {key}"), format!("SET {key} 1"), "EXEC".to_owned()],
            6 => vec![format!("SET {key} 1 PX 50")],
            7 => vec![format!("LRANGE {other} 0 -1"), "CLIENT TRACKINGINFO".to_owned()],
            _ => vec![format!("GET {key}"), format!("GET s:far:{}", self.random.below(5000))],
        }
    }

    fn be_user(&mut self) -> Vec<String> {
        let (name, key, channel) = (self.user(), self.key('s'), self.channel());
        let auth = format!("AUTH {name} secret");
        let then = match self.random.below(7) {
            0 => "RESET".to_owned(),
            1 => "MULTI".to_owned(),
            2 => "EXEC".to_owned(),
            3 => format!("SUBSCRIBE {channel}"),
            4 => format!("BLPOP l:0 {key} 0.05"),
            5 => format!("AUTH {name} guess"),
            _ => format!("SET {key} 1"),
        };
        vec![auth, then]
    }

    fn user(&mut self) -> String {
        format!("crowd-{}", self.random.below(USERS))
    }

    /// A client of this thread.
    fn any_id(&mut self) -> String {
        let at = self.random.below(self.members.len() as u64) as usize;
        self.members[at].id.clone()
    }

    fn administer(&mut self) -> String {
        let (name, id) = (self.user(), self.any_id());
        match self.random.below(24) {
            0..4 => format!("ACL SETUSER {name} on >secret +@all ~* &*"),
            4 => format!("ACL SETUSER {name} resetkeys ~s:* resetchannels &channel:1*"),
            5 => format!("ACL SETUSER {name} -@write (+@write ~l:* &channel:2)"),
            6 => format!("ACL SETUSER {name} off"),
            7 | 8 => format!("ACL DELUSER {name}"),
            9 => format!("CLIENT KILL USER {name}"),
            10 | 11 => format!("CLIENT KILL ID {id}"),
            12..16 => format!("CLIENT UNBLOCK {id} {}", ["TIMEOUT", "ERROR"][self.random.below(2) as usize]),
            16 => "CONFIG SET notify-keyspace-events KEA".to_owned(),
            17 => "CONFIG SET notify-keyspace-events Kg$".to_owned(),
            18 => "FLUSHDB".to_owned(),
            19 => format!("SWAPDB {} {}", OWN_DBS[0], OWN_DBS[1]),
            20 => "CLIENT LIST".to_owned(),
            21 => format!("CONFIG SET tracking-table-max-keys {}", 10 + self.random.below(5000)),
            22 => "ACL LOG".to_owned(),
            _ => "CLIENT PAUSE 20 WRITE".to_owned(),
        }
    }

    /// A third leaves, a third is killed and a third is unblocked, all at the same instant.
    fn calamity(&mut self) -> io::Result<()> {
        let mut killer = RespClient::connect(&self.stage.process.address())?;
        let mut wire = Vec::new();
        let mut asked = 0;
        for (at, member) in self.members.iter().enumerate() {
            match at % 3 {
                0 => {}
                1 => wire.extend(request(&["CLIENT", "KILL", "ID", &member.id])),
                _ => wire.extend(request(&["CLIENT", "UNBLOCK", &member.id])),
            }
            asked += usize::from(at % 3 != 0);
        }
        killer.send_bytes(&wire)?;
        let mut at = 0;
        self.members.retain(|_| {
            at += 1;
            at % 3 != 1
        });
        (0..asked).try_for_each(|_| killer.receive().map(drop))
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}
