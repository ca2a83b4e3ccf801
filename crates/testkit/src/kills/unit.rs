//! What clients ask for: units, each of which is there as a whole after a kill or not at all. A unit is a
//! command, a transaction or a script; most make the same data wherever they run, so that a twin can follow.
//!
//! Client number `c` has database `c` to itself and database `c + 8` beside it. Database 15 is everybody's.
use crate::resp_value::Value;
use base::random::Random;

/// Which other database a client has: so many behind its own.
pub(super) const BESIDE: usize = 8;
/// What all clients share: the list of marks and the accounts.
pub(super) const SHARED_DB: usize = 15;
/// What `--large` fills, and what is in it.
pub(super) const LARGE_DB: usize = 14;
pub(super) const LARGE_KEYS: u64 = 200_000;
pub(super) const LARGE_ELEMENTS: u64 = 20_000;
/// The list of marks, and the accounts that money moves between.
pub(super) const MARKS: &str = "marks";
pub(super) const ACCOUNTS: &str = "accounts";
/// Keys that go by themselves.
pub(super) const PASSING: [&str; 3] = ["gone0", "gone1", "hgone"];
/// All keys of a client that do not.
pub(super) const NAMES: [&str; 29] = [
    "s0", "s1", "s2", "n0", "n1", "n2", "b0", "b1", "p0", "p1", "l0", "l1", "l2", "h0", "h1", "h2", "t0",
    "t1", "t2", "z0", "z1", "z2", "g0", "x0", "x1", "y0", "marked", "moved", "popped",
];
/// Those with more elements than fit a leaf or a batch.
pub(super) const LARGE_NAMES: [&str; 5] = ["L", "H", "T", "Z", "X"];
/// Streams whose groups are compared.
pub(super) const GROUPED: [&str; 2] = ["x0", "x1"];

/// Requests of every type. `k`, `m` and `x` are numbers of keys, `f` of fields, `v` is a value, `w` a text,
/// `n` the number of the unit, `c` and `d` are the client's databases.
const LINES: &[&str] = &[
    "SET s{k} {v}",
    "SET s{k} {w} EX 100000",
    "APPEND s{k} {w}",
    "SETRANGE s{k} {v} {w}",
    "GETEX s{k} PX 99999999",
    "GETDEL s{k}",
    "MSET s{k} {w} s{m} {v}",
    "MSETNX s{k} {w} n{m} {v}",
    "INCR n{k}",
    "DECRBY n{k} {v}",
    "INCRBYFLOAT n{k} 0.25",
    "SETBIT b{k} {v} 1",
    "BITFIELD b0 INCRBY u16 {f} {v} OVERFLOW FAIL INCRBY i8 3 {f}",
    "BITOP XOR b0 b1 s{k}",
    "PFADD p0 {v} {w}",
    "PFMERGE p1 p0",
    "LPUSH l{k} {v} {w}",
    "RPUSH l{k} {w}",
    "RPOP l{k}",
    "LPOP l{k} 2",
    "LMOVE l{k} l{m} LEFT RIGHT",
    "LMPOP 2 l{k} l{m} RIGHT COUNT 2",
    "LINSERT l{k} BEFORE {v} {w}",
    "LSET l{k} 0 {w}",
    "LREM l{k} 1 {v}",
    "LTRIM l{k} 0 40",
    "HSET h{k} f{f} {v} f{v} {w}",
    "HDEL h{k} f{f}",
    "HINCRBY h{k} n{f} {v}",
    "HINCRBYFLOAT h{k} n{f} 0.5",
    "HSETNX h{k} f{f} {w}",
    "HEXPIRE h{k} 100000 FIELDS 1 f{f}",
    "HPERSIST h{k} FIELDS 1 f{f}",
    "HSETEX h{k} EX 100000 FIELDS 1 e{f} {v}",
    "HGETDEL h{k} FIELDS 1 e{f}",
    "SADD t{k} {v} {w}",
    "SADD t{k} {v} {f} 7",
    "SREM t{k} {f}",
    "SMOVE t{k} t{m} {f}",
    "SUNIONSTORE t{k} t{m} t0",
    "SINTERSTORE t{k} t{m} t1",
    "SDIFFSTORE t{k} t{m} t2",
    "ZADD z{k} {v} m{f} {f}.5 {w}",
    "ZADD z{k} GT CH {v} m{f}",
    "ZINCRBY z{k} 1.25 m{f}",
    "ZREM z{k} m{f}",
    "ZPOPMIN z{k}",
    "ZMPOP 2 z{k} z{m} MAX COUNT 2",
    "ZREMRANGEBYRANK z{k} 30 -1",
    "ZUNIONSTORE z{k} 2 z{m} t{k} WEIGHTS 2 1",
    "ZRANGESTORE z{k} z{m} 0 20",
    "GEOADD g0 13.{v} 38.{f} p{f}",
    "XADD x{x} {n}-{f} f {v} g {w}",
    "XGROUP CREATE x{x} g 0 MKSTREAM",
    "XREADGROUP GROUP g c{m} COUNT 2 STREAMS x{x} >",
    "XAUTOCLAIM x{x} g c{m} 0 0 COUNT 3",
    "XACK x{x} g {n}-{f}",
    "XGROUP DESTROY x{x} g",
    "EXPIRE l{k} 100000",
    "PERSIST l{k}",
    "EXPIREAT t{k} 33000000000",
    "PEXPIREAT h{k} 1000",
    "RENAME s{k} s{m}",
    "RENAMENX l{k} l{m}",
    "COPY z{k} z{m} REPLACE",
    "COPY h{k} h{m} DB {d} REPLACE",
    "MOVE l{k} {d}",
    "MOVE x{x} {d}",
    "DEL s{k} h{m}",
    "UNLINK t{k} z{m} x{x}",
    "SORT t{k} ALPHA STORE l{m}",
    "SORT l{k} BY nosort GET s* STORE l{m}",
];
/// Of these one in so many lines is drawn.
const RARE: &[&str] = &["FLUSHDB", "SWAPDB {c} {d}", "FLUSHDB ASYNC", "DEL x0 x1 y0 popped"];
const RARE_ONE_IN: u64 = 120;

/// Runs the requests that its arguments are, each behind the number of its words. What the disk has refused
/// once is not tried again: the script is there as a whole or not at all.
const SCRIPT: &str = "local i = 1 while i <= #ARGV do local n = tonumber(ARGV[i]) \
    local r = redis.pcall(unpack(ARGV, i + 1, i + n)) \
    if type(r) == 'table' and r.err and string.find(r.err, 'MISCONF') then return r end \
    i = i + n + 1 end return i";
const POP: &str =
    "local m = redis.call('SPOP', KEYS[1]) if m then redis.call('RPUSH', KEYS[2], m) end return m";

pub(super) type Request = Vec<String>;

/// How a twin follows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Follow {
    /// By these requests.
    Requests(Vec<Request>),
    /// A member of this set, of which only the reply tells which, went to the list `popped`.
    Pop(String),
    /// An entry was added to the stream `y0` under the id that the reply tells.
    Add(String),
}

#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) requests: Vec<Request>,
    pub(super) follow: Follow,
    /// It has pushed its number to the list of marks.
    marks: bool,
    /// The last reply, once it has come.
    pub(super) reply: Option<Value>,
}

impl Unit {
    /// It was refused, because the disk cannot keep what it would do.
    pub(super) fn is_void(&self) -> bool {
        let Some(Value::Line(b'-', why)) = &self.reply else { return false };
        why.starts_with(b"EXECABORT") || why.windows(7).any(|word| word == b"MISCONF")
    }

    /// Its number is in the list of marks, if it is there.
    pub(super) fn is_mark(&self) -> bool {
        self.marks && !self.is_void()
    }
}

pub(super) fn words(line: &str) -> Request {
    line.split(' ').map(String::from).collect()
}

/// Draws the units of one client.
pub(super) struct Drawer {
    pub(super) client: usize,
    pub(super) random: Random,
    pub(super) is_large: bool,
    /// What the disk cannot keep is refused.
    pub(super) disk_fails: bool,
}

impl Drawer {
    fn below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }

    /// The unit of this number. `may_wonder`: a unit may come whose outcome only the reply tells; none may be
    /// sent behind it before that has come.
    pub(super) fn unit(&mut self, number: u64, may_wonder: bool) -> Unit {
        match self.below(40) {
            0..4 => self.mark(number),
            4..7 => self.transfer(),
            7 => self.passing(),
            8..10 if may_wonder => self.pop(),
            10..12 if may_wonder => self.add(),
            12 => self.library(number),
            13..19 => self.transaction(number),
            19..25 => self.script(number),
            25..28 if self.is_large => self.large(number),
            _ => {
                let line = self.line(number);
                same(vec![line.clone()], vec![line])
            }
        }
    }

    fn line(&mut self, number: u64) -> Request {
        let lines = if self.below(RARE_ONE_IN) == 0 { RARE } else { LINES };
        let line = lines[self.below(lines.len() as u64) as usize];
        self.fill(line, number)
    }

    fn lines(&mut self, number: u64) -> Vec<Request> {
        (0..1 + self.below(5)).map(|_| self.line(number)).collect()
    }

    /// Puts numbers and texts in the places of a line.
    fn fill(&mut self, line: &str, number: u64) -> Request {
        let mut text = String::new();
        let mut rest = line;
        while let Some((before, (name, after))) =
            rest.split_once('{').and_then(|(before, after)| Some((before, after.split_once('}')?)))
        {
            text.push_str(before);
            text.push_str(&match name {
                "k" | "m" => self.below(3).to_string(),
                "x" => self.below(2).to_string(),
                "f" => self.below(12).to_string(),
                "v" => self.below(1000).to_string(),
                "n" => number.to_string(),
                "c" => self.client.to_string(),
                "d" => (self.client + BESIDE).to_string(),
                _ => {
                    let most = if self.below(20) == 0 { 60 } else { 6 };
                    "text-".repeat(1 + self.below(most) as usize)
                }
            });
            rest = after;
        }
        text.push_str(rest);
        words(&text)
    }

    /// A transaction in the shared database, and what it leaves in the client's own.
    fn shared(&mut self, there: Vec<Request>, here: &str) -> Unit {
        let select = |db: usize| words(&format!("SELECT {db}"));
        let own = words(here);
        let mut requests = vec![words("MULTI"), select(SHARED_DB)];
        requests.extend(there);
        requests.extend([select(self.client), own.clone(), words("EXEC")]);
        same(requests, vec![own])
    }

    fn mark(&mut self, number: u64) -> Unit {
        let push = words(&format!("RPUSH {MARKS} {}:{number}", self.client));
        Unit { marks: true, ..self.shared(vec![push], &format!("SET marked {number}")) }
    }

    /// Money goes from one account to another: the sum stays 0.
    fn transfer(&mut self) -> Unit {
        let (from, to, amount) = (self.below(5), self.below(5), self.below(100));
        let moves = vec![
            words(&format!("HINCRBY {ACCOUNTS} {from} -{amount}")),
            words(&format!("HINCRBY {ACCOUNTS} {to} {amount}")),
        ];
        let unit = self.shared(moves, "INCR moved");
        if self.below(2) == 0 { unit } else { as_script(unit) }
    }

    /// Keys and fields that go by themselves, in a moment.
    fn passing(&mut self) -> Unit {
        let (key, ttl) = (self.below(2), 1 + self.below(4));
        let requests = match self.below(3) {
            0 => vec![
                format!("SET gone{key} x PX {ttl}"),
                format!("APPEND gone{key} y"),
                format!("PEXPIRE gone{key} 2"),
            ],
            1 => vec!["HSET hgone f 1".into(), format!("HPEXPIRE hgone {ttl} FIELDS 1 f")],
            _ => vec![format!("RPUSH gone{key} 1 2 3"), format!("PEXPIRE gone{key} {ttl}")],
        };
        let requests = requests.iter().map(|line| words(line));
        let requests = [vec![words("MULTI")], requests.collect(), vec![words("EXEC")]].concat();
        same(requests, Vec::new())
    }

    fn pop(&mut self) -> Unit {
        let set = format!("t{}", self.below(3));
        let request = ["EVAL", POP, "2", &set, "popped"].map(String::from).to_vec();
        Unit { follow: Follow::Pop(set), ..same(vec![request], Vec::new()) }
    }

    fn add(&mut self) -> Unit {
        let value = self.below(1000).to_string();
        let request = words(&format!("XADD y0 MAXLEN 50 * f {value}"));
        Unit { follow: Follow::Add(value), ..same(vec![request], Vec::new()) }
    }

    fn library(&mut self, number: u64) -> Unit {
        let client = self.client;
        let code = format!(
            "#!lua name=lib{client}\nredis.register_function{{function_name='f{client}', callback=function() \
             return {number} end, flags={{'no-writes'}}}}"
        );
        let request = ["FUNCTION", "LOAD", "REPLACE", &code].map(String::from).to_vec();
        same(vec![request.clone()], vec![request])
    }

    fn transaction(&mut self, number: u64) -> Unit {
        let mut lines = self.lines(number);
        // Some of its requests may be scripts. Of these each may be refused by itself.
        if !self.disk_fails && self.below(2) == 0 {
            for line in &mut lines {
                if self.below(2) == 0 {
                    *line = script_of(std::slice::from_ref(line));
                }
            }
        }
        let requests = [vec![words("MULTI")], lines, vec![words("EXEC")]].concat();
        same(requests.clone(), requests)
    }

    fn script(&mut self, number: u64) -> Unit {
        let request = script_of(&self.lines(number));
        same(vec![request.clone()], vec![request])
    }

    /// Something about the client's large values, or a key among very many.
    fn large(&mut self, number: u64) -> Unit {
        let at = self.below(LARGE_ELEMENTS);
        let line = match self.below(7) {
            0 => format!("HSET H f{at} {number}"),
            1 => format!("SADD T new-{number}"),
            2 => format!("ZADD Z {number} m{at}"),
            3 => format!("RPUSH L {number}"),
            4 => format!("LSET L {at} {number}"),
            5 => format!("XADD X {}-1 f {at}", number + 1_000_000),
            _ => {
                let key = self.below(LARGE_KEYS / BESIDE as u64) * BESIDE as u64 + self.client as u64;
                let select = |db: usize| words(&format!("SELECT {db}"));
                let set = words(&format!("SET key:{key} {number}"));
                let requests =
                    vec![words("MULTI"), select(LARGE_DB), set, select(self.client), words("EXEC")];
                return same(requests.clone(), requests);
            }
        };
        same(vec![words(&line)], vec![words(&line)])
    }
}

fn same(requests: Vec<Request>, follow: Vec<Request>) -> Unit {
    Unit { requests, follow: Follow::Requests(follow), marks: false, reply: None }
}

/// A script that runs these requests.
fn script_of(lines: &[Request]) -> Request {
    let mut request = ["EVAL", SCRIPT, "0"].map(String::from).to_vec();
    for line in lines {
        request.push(line.len().to_string());
        request.extend(line.iter().cloned());
    }
    request
}

/// The same as a script, where it was a transaction.
fn as_script(unit: Unit) -> Unit {
    let lines = &unit.requests[1..unit.requests.len() - 1];
    Unit { requests: vec![script_of(lines)], ..unit }
}

/// What fills a client's large values, as scripts.
pub(super) fn filling(client: usize) -> Vec<Unit> {
    let fill = |call: &str| {
        let text = format!("for i = 0, {LARGE_ELEMENTS} - 1 do redis.call({call}) end");
        let request = ["EVAL", &text, "0"].map(String::from).to_vec();
        same(vec![request.clone()], vec![request])
    };
    [
        "'RPUSH', 'L', 'element ' .. i",
        "'HSET', 'H', 'f' .. i, i",
        "'SADD', 'T', 'member ' .. i",
        "'ZADD', 'Z', i, 'm' .. i",
        "'XADD', 'X', i + 1 .. '-1', 'f', i",
    ]
    .map(|call| fill(&call.replace("element", &format!("element {client}"))))
    .to_vec()
}
