//! Random requests drawn from the grammars of the command tables: valid ones mostly, over few keys, so that they meet. A
//! command that is added to a table is in the stream at once.
use base::random::Random;
use command::{Arg, ArgKind, Command, DataRun, FAMILIES};

const KEYS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "{tag}:g"];
const INTEGERS: [&str; 16] = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "-2",
    "-3",
    "5",
    "10",
    "-10",
    "100",
    "20",
    "9223372036854775807",
    "-9223372036854775808",
    "x",
    "1.5",
];
/// Past, out of range, or none. No time is near: two clocks that differ a little would tell.
const WRONG_TIMES: [&str; 6] = ["0", "-1", "-100", "x", "9223372036854775807", "-9223372036854775808"];
const DOUBLES: [&str; 9] = ["0", "1", "0.1", "-2.5", "3.0e3", "1e-17", "123456789.125", "inf", "y"];
const STRINGS: [&str; 14] = [
    "",
    "a",
    "b",
    "abc",
    "1",
    "-1",
    "10",
    "3.5",
    "007",
    "9223372036854775807",
    "b c\r\n",
    "-0",
    "0123456789012345678901234567890123456789012345678901234567890123456789",
    "01234567890123456789012345678901234567890123",
];
const PATTERNS: [&str; 5] = ["*", "a*", "[a-c]", "?", "nothing"];
/// So many elements at once make a list long enough to leave its keyspace entry, now and then.
const MANY_MAX: u64 = 600;

pub struct RandomCommands {
    random: Random,
    rows: Vec<Row>,
}

struct Row {
    words: Vec<&'static str>,
    args: &'static [Arg],
}

impl RandomCommands {
    /// All data commands but those for which `skips` says so by their full name ("object|freq").
    pub fn new(seed: u64, skips: impl Fn(&str) -> bool) -> RandomCommands {
        let mut rows = Vec::new();
        for command in FAMILIES.iter().copied().flatten() {
            append_rows(command, &[], &mut rows);
        }
        rows.retain(|row| !skips(&row.words.join("|").to_ascii_lowercase()));
        RandomCommands { random: Random::new(seed), rows }
    }

    pub fn request(&mut self) -> Vec<Vec<u8>> {
        let row = &self.rows[self.random.below(self.rows.len() as u64) as usize];
        let mut request: Vec<Vec<u8>> = row.words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let mut writer = Writer { random: &mut self.random, request: &mut request, numkeys: None };
        writer.write_all(row.args);
        self.spoil(&mut request);
        request
    }

    /// Once in a while an argument is missing, or one too many.
    fn spoil(&mut self, request: &mut Vec<Vec<u8>>) {
        match self.random.below(60) {
            0 => drop(request.pop()),
            1 => request.push(b"surplus".to_vec()),
            _ => {}
        }
        if request.is_empty() {
            request.push(b"GET".to_vec());
        }
    }
}

fn append_rows(command: &'static Command, container: &[&'static str], rows: &mut Vec<Row>) {
    let words: Vec<&'static str> = container.iter().copied().chain([command.name]).collect();
    if matches!(command.run, DataRun::Container) {
        return command.subcommands.iter().for_each(|sub| append_rows(sub, &words, rows));
    }
    rows.push(Row { words, args: command.doc.args });
}

struct Writer<'w> {
    random: &'w mut Random,
    request: &'w mut Vec<Vec<u8>>,
    /// How many keys were announced.
    numkeys: Option<u64>,
}

impl Writer<'_> {
    fn write_all(&mut self, args: &[Arg]) {
        for arg in args {
            if !arg.optional || self.random.below(3) == 0 {
                self.write(arg);
            }
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
        match (arg.kind, self.numkeys.take()) {
            (ArgKind::Key(_), Some(numkeys)) => numkeys,
            (ArgKind::String, _) if self.random.below(20) == 0 => self.random.below(MANY_MAX) + 1,
            _ => self.random.below(3) + 1,
        }
    }

    fn write_value(&mut self, arg: &Arg) {
        match arg.kind {
            ArgKind::PureToken => {}
            ArgKind::OneOf => {
                let choice = self.random.below(arg.args.len() as u64) as usize;
                self.write(&arg.args[choice]);
            }
            ArgKind::Block => self.write_all(arg.args),
            ArgKind::Key(_) => self.push_one_of(&KEYS),
            ArgKind::String => self.push_one_of(&STRINGS),
            ArgKind::Double => self.push_one_of(&DOUBLES),
            ArgKind::Pattern => self.push_one_of(&PATTERNS),
            ArgKind::UnixTime => self.push_time(33_000_000_000, arg.name),
            ArgKind::Integer => self.write_integer(arg.name),
        }
    }

    fn write_integer(&mut self, name: &str) {
        if name == "numkeys" {
            let numkeys = self.random.below(3) + 1;
            self.numkeys = Some(numkeys);
            return self.push(&numkeys.to_string());
        }
        if name.ends_with("seconds") {
            return match self.random.below(8) {
                0 => self.push_one_of(&WRONG_TIMES),
                _ => self.push_time(100_000, name),
            };
        }
        self.push_one_of(&INTEGERS);
    }

    /// Times lie far apart, so that two clocks that differ by a little order them alike.
    fn push_time(&mut self, beginning: u64, name: &str) {
        let seconds = beginning + self.random.below(1_000_000) * 1_000;
        let is_millis = name.contains("milliseconds");
        self.push(&(if is_millis { seconds * 1_000 } else { seconds }).to_string());
    }

    fn push_one_of(&mut self, texts: &[&str]) {
        let choice = self.random.below(texts.len() as u64) as usize;
        self.push(texts[choice]);
    }

    fn push(&mut self, text: &str) {
        self.request.push(text.as_bytes().to_vec());
    }
}
