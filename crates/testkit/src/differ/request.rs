//! One random request from a command's grammar: legal mostly, so that it does something; slightly wrong now
//! and then, because errors are answers too.
use super::focus::Focus;
use super::scripts;
use super::values::{
    self, DOUBLES, INTEGERS, KEY_POOLS, NUMBERS, NUMBERS_KEY, PATTERNS, STRINGS, WRONG_TIMES,
};
use super::vocabulary::Vocabulary;
use base::random::Random;
use command::{Arg, ArgKind};
use server::Grammar;

/// The most elements of one request: enough to make a list that leaves its keyspace entry, now and then.
const MANY_MAX: u64 = 600;
const LONG_MAX: u64 = 700;
const CONFIG_SET_PERCENT: u64 = 1;

/// Any request that a stream of this focus may have.
pub(super) fn any(random: &mut Random, focus: &Focus<'_>) -> Vec<Vec<u8>> {
    let is_setting = random.below(100) < CONFIG_SET_PERCENT && !focus.vocabulary.settings.is_empty();
    let mut request = if is_setting {
        config_set(random, focus.vocabulary)
    } else {
        let grammar = focus.command(random);
        of(random, focus, grammar)
    };
    spoil(random, &mut request);
    request
}

fn config_set(random: &mut Random, vocabulary: &Vocabulary) -> Vec<Vec<u8>> {
    let mut words = vec!["CONFIG", "SET"];
    for _ in 0..=random.below(2) {
        let (name, values) = vocabulary.settings[random.below(vocabulary.settings.len() as u64) as usize];
        words.extend([name, pick(random, values)]);
    }
    words.into_iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// A request of this command.
fn of(random: &mut Random, focus: &Focus<'_>, grammar: &Grammar) -> Vec<Vec<u8>> {
    let words = grammar.full_name.to_ascii_uppercase();
    let mut writer = Writer {
        random,
        focus,
        grammar,
        request: words.split('|').map(|word| word.as_bytes().to_vec()).collect(),
        numkeys: None,
        numfields: None,
    };
    if matches!(&*grammar.full_name, "eval" | "eval_ro" | "evalsha" | "evalsha_ro" | "script|load") {
        scripts::write(writer.random, focus, &mut writer.request);
        return writer.request;
    }
    writer.write_all(grammar.doc.args);
    if matches!(&*grammar.full_name, "scan" | "sscan" | "hscan") {
        writer.finish_scan();
    }
    writer.request
}

/// A request that a script runs.
pub(super) fn inner(random: &mut Random, focus: &Focus<'_>) -> Vec<Vec<u8>> {
    let grammar = focus.command(random);
    match grammar.full_name.starts_with("eval") {
        true => vec![b"GET".to_vec(), b"s:1".to_vec()],
        false => of(random, focus, grammar),
    }
}

fn pick(random: &mut Random, pool: &[&'static str]) -> &'static str {
    pool[random.below(pool.len() as u64) as usize]
}

struct Writer<'w> {
    random: &'w mut Random,
    focus: &'w Focus<'w>,
    grammar: &'w Grammar,
    request: Vec<Vec<u8>>,
    /// How many keys were announced.
    numkeys: Option<u64>,
    /// How many fields of a hash were.
    numfields: Option<u64>,
}

impl Writer<'_> {
    fn one_in(&mut self, n: u64) -> bool {
        self.random.below(n) == 0
    }

    /// Arguments in order, but neighbours that are all optional words in any order, and one of them twice now
    /// and then.
    fn write_all(&mut self, args: &'static [Arg]) {
        let is_option = |arg: &Arg| arg.optional && (arg.token.is_some() || arg.kind == ArgKind::OneOf);
        for part in args.chunk_by(|a, b| is_option(a) && is_option(b)) {
            let mut chosen: Vec<&Arg> = Vec::new();
            for arg in part.iter().filter(|arg| self.focus.vocabulary.knows(arg)) {
                if !arg.optional || self.one_in(3) {
                    chosen.push(arg);
                }
            }
            if is_option(&part[0]) {
                self.disorder(&mut chosen);
            }
            chosen.into_iter().for_each(|arg| self.write(arg));
        }
    }

    fn disorder(&mut self, options: &mut Vec<&Arg>) {
        if options.len() > 1 {
            let other = self.random.below(options.len() as u64) as usize;
            options.swap(0, other);
        }
        if self.one_in(30)
            && let Some(first) = options.first()
        {
            options.push(first);
        }
    }

    fn write(&mut self, arg: &Arg) {
        let times = if arg.multiple { self.times(arg) } else { 1 };
        for time in 0..times {
            if let Some(token) = arg.token.filter(|_| time == 0 || arg.multiple_token) {
                self.push(token);
            }
            self.write_value(arg);
        }
    }

    fn times(&mut self, arg: &Arg) -> u64 {
        if let Some(numfields) = self.numfields.take() {
            return numfields;
        }
        match (arg.kind, self.numkeys.take()) {
            (ArgKind::Key(_), Some(numkeys)) => numkeys,
            (ArgKind::String, _) if self.one_in(20) => self.random.below(MANY_MAX) + 1,
            _ => self.random.below(3) + 1,
        }
    }

    fn write_value(&mut self, arg: &Arg) {
        if let Some(pool) = values::pool(&self.grammar.full_name, arg.name).filter(|_| is_value(arg)) {
            return self.push_one_of(pool);
        }
        match arg.kind {
            ArgKind::PureToken => {}
            ArgKind::OneOf => self.write_one_of(arg),
            ArgKind::Block => self.write_all(arg.args),
            ArgKind::Key(_) => self.push_key(),
            ArgKind::String => self.write_string(arg.name),
            ArgKind::Double => self.push_one_of(&DOUBLES),
            ArgKind::Pattern => self.push_one_of(&PATTERNS),
            ArgKind::UnixTime => self.push_time(33_000_000_000, arg.name),
            ArgKind::Integer => self.write_integer(arg.name),
        }
    }

    /// Writes one of the alternatives, and now and then a second, which the first excludes.
    fn write_one_of(&mut self, arg: &Arg) {
        let known: Vec<&Arg> = arg.args.iter().filter(|arg| self.focus.vocabulary.knows(arg)).collect();
        if known.is_empty() {
            return;
        }
        for _ in 0..if self.one_in(25) { 2 } else { 1 } {
            let choice = self.random.below(known.len() as u64) as usize;
            self.write(known[choice]);
        }
    }

    fn write_string(&mut self, name: &str) {
        match (self.grammar.full_name.as_str(), name) {
            ("command|getkeys" | "command|getkeysandflags", "command") => self.write_request(),
            ("command|getkeys" | "command|getkeysandflags", _) => {}
            ("config|get", _) => self.write_setting(),
            _ if self.request.get(1).is_some_and(|key| key == NUMBERS_KEY) => self.push_one_of(&NUMBERS),
            _ => self.push_string(),
        }
    }

    /// A whole request as the argument of another.
    fn write_request(&mut self) {
        let grammar = self.focus.command(self.random);
        let mut request = of(self.random, self.focus, grammar);
        self.request.append(&mut request);
    }

    fn write_setting(&mut self) {
        let names = &self.focus.vocabulary.readable_settings;
        let count = names.len() as u64;
        match self.random.below(count + 1) {
            n if n < count => self.request.push(names[n as usize].clone().into_bytes()),
            _ => self.push("no-such-setting"),
        }
    }

    fn write_integer(&mut self, name: &str) {
        if name == "numkeys" || name == "numfields" {
            let count = self.random.below(3) + 1;
            *if name == "numkeys" { &mut self.numkeys } else { &mut self.numfields } = Some(count);
            return if self.one_in(20) { self.push_one_of(&INTEGERS) } else { self.push(&count.to_string()) };
        }
        if name.ends_with("seconds") {
            return if self.one_in(8) {
                self.push_one_of(&WRONG_TIMES)
            } else {
                self.push_time(100_000, name)
            };
        }
        self.push_one_of(&INTEGERS);
    }

    /// A time from `beginning` on. Times are thousands of seconds apart, so that two clocks which differ by a
    /// little order them alike.
    fn push_time(&mut self, beginning: u64, name: &str) {
        if self.one_in(12) {
            return self.push_one_of(&WRONG_TIMES);
        }
        let seconds = beginning + self.random.below(1_000_000) * 1_000;
        let is_millis = name.contains("milliseconds");
        self.push(&(if is_millis { seconds * 1_000 } else { seconds }).to_string());
    }

    /// A key, three times in four from the pool of the command's own type.
    fn push_key(&mut self) {
        let any = KEY_POOLS[self.random.below(KEY_POOLS.len() as u64) as usize];
        let home = values::home(self.grammar.doc.group).filter(|_| self.random.below(4) > 0);
        self.push_one_of(self.focus.keys(home.unwrap_or(any)));
    }

    fn push_string(&mut self) {
        match self.random.below(40) {
            0 => {
                let len = self.random.below(LONG_MAX) as usize;
                let mut bytes = vec![0; len];
                self.random.fill(&mut bytes);
                self.request.push(bytes);
            }
            1 => {
                let len = self.random.below(LONG_MAX) as usize;
                self.request.push(b"abcabdab".repeat(len / 8 + 1));
            }
            2..7 => {
                let number = self.random.next_u64() >> self.random.below(64);
                self.push(&(number as i64).to_string());
            }
            _ => self.push_one_of(&STRINGS),
        }
    }

    /// Asks for so many elements that one call walks through all: servers may end a step where they like.
    fn finish_scan(&mut self) {
        if !self.request.iter().any(|word| word == b"COUNT") {
            ["COUNT", "1000"].into_iter().for_each(|word| self.push(word));
        }
    }

    fn push_one_of(&mut self, texts: &[&'static str]) {
        let text = pick(self.random, texts);
        self.push(text);
    }

    fn push(&mut self, text: &str) {
        self.request.push(text.as_bytes().to_vec());
    }
}

/// Whether it is one word to be drawn, not a structure of others.
fn is_value(arg: &Arg) -> bool {
    !matches!(arg.kind, ArgKind::PureToken | ArgKind::OneOf | ArgKind::Block | ArgKind::Key(_))
}

/// Once in a while something is missing, too much, misplaced, unknown, or in another letter case.
fn spoil(random: &mut Random, request: &mut Vec<Vec<u8>>) {
    let last = request.len() - 1;
    let some = random.below(request.len() as u64) as usize;
    match random.below(100) {
        0 if last > 0 => drop(request.pop()),
        1 => request.push(b"surplus".to_vec()),
        2 if some > 0 => request.swap(some, last),
        3 if some > 0 => request[some] = pick(random, &STRINGS).as_bytes().to_vec(),
        4 if random.below(5) == 0 => request[0] = b"NOSUCH".to_vec(),
        5 if some > 1 => drop(request.remove(some)),
        6..12 => request[some].make_ascii_lowercase(),
        12..14 => request.iter_mut().for_each(|word| mix_case(random, word)),
        _ => {}
    }
}

fn mix_case(random: &mut Random, word: &mut [u8]) {
    // Keys keep their names: theirs are in lower case, and tokens are not.
    let is_token = word.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'-');
    for byte in word.iter_mut().filter(|_| is_token) {
        if random.below(2) == 0 {
            byte.make_ascii_lowercase();
        }
    }
}
