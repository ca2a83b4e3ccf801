//! A file of commands, read one after the other.
//!
//! ```text
//! *3 CR LF $3 CR LF SET CR LF $1 CR LF a CR LF $1 CR LF 1 CR LF      a command, as clients send it
//! #TS:1795408961 CR LF                                              what follows was written at that time
//! ```
//!
//! A process that is killed while it writes leaves a part of a command at the end, and perhaps a transaction
//! (MULTI, commands) without its EXEC. [`CommandReader::good_bytes`] says up to where the file can be run.
use crate::source::{Broken, Source, Stream};
use std::io::{self, Read};

/// The longest line that stands for a number.
const LINE_BYTES_MAX: usize = 64;
/// The longest line that stands for a time, or says nothing.
const TIME_BYTES_MAX: usize = 128;
/// Commands have fewer words than that, as those of clients have.
const WORDS_MAX: u64 = 1 << 31;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub enum Entry<'e> {
    /// The words of a command.
    Command(&'e [Vec<u8>]),
    /// What follows was written at this time, in seconds of the Unix time.
    Time(i64),
}

/// Why the rest of a file cannot be read.
#[derive(Debug)]
pub enum CommandError {
    Io(io::Error),
    /// The file ends in the middle of something.
    Truncated(Broken),
    /// Its bytes are no command.
    Broken(Broken),
}

/// Reads a file of commands.
pub struct CommandReader<R> {
    stream: Stream<R>,
    words: Vec<Vec<u8>>,
    /// Where the last command or time has ended.
    end: u64,
    /// Where the transaction began that is open.
    open: Option<u64>,
}

impl<R: Read> CommandReader<R> {
    /// From the beginning of a file.
    pub fn new(input: R) -> CommandReader<R> {
        let mut stream = Stream::new(input);
        stream.stop_summing();
        CommandReader { stream, words: Vec::new(), end: 0, open: None }
    }

    /// Up to which byte the file can be run: to the end of the last whole command, or to the beginning of a
    /// transaction whose end has not come.
    pub fn good_bytes(&self) -> u64 {
        self.open.unwrap_or(self.end)
    }

    /// Whether a transaction has begun whose end has not come.
    pub fn is_in_transaction(&self) -> bool {
        self.open.is_some()
    }

    /// The next entry; None at the end of the file.
    pub fn next_entry(&mut self) -> Result<Option<Entry<'_>>, CommandError> {
        if self.stream.peek().is_none() {
            return match self.stream.error.take() {
                Some(error) => Err(CommandError::Io(error)),
                None => Ok(None),
            };
        }
        let begin = self.stream.at();
        let time = self.read().map_err(|fault| self.failed(fault))?;
        self.end = self.stream.at();
        match time {
            Some(time) => Ok(Some(Entry::Time(time))),
            None => {
                self.note_transaction(begin);
                Ok(Some(Entry::Command(&self.words)))
            }
        }
    }

    /// Whoever reads has looked at a command: whether it begins a transaction, or ends one.
    fn note_transaction(&mut self, begin: u64) {
        let [word] = &self.words[..] else { return };
        if word.eq_ignore_ascii_case(b"multi") {
            // What is within one that is open belongs to it.
            self.open.get_or_insert(begin);
        } else if word.eq_ignore_ascii_case(b"exec") {
            self.open = None;
        }
    }

    /// Reads a command into `words`, or a time.
    fn read(&mut self) -> Result<Option<i64>, Fault> {
        self.words.clear();
        if self.stream.peek() == Some(b'#') {
            return self.time().map(Some);
        }
        let count = self.number(b'*', "Expected prefix '*'")?;
        if count == 0 || count > WORDS_MAX {
            return Err(Fault::Wrong("a command has no words, or too many"));
        }
        for _ in 0..count {
            let len = self.number(b'$', "Expected prefix '$'")?;
            let word = self.stream.take(len).map_err(|_| Fault::Ended)?.to_vec();
            self.words.push(word);
            if self.stream.take(2).map_err(|_| Fault::Ended)? != b"\r\n" {
                return Err(Fault::Wrong("a word is longer than it is said to be"));
            }
        }
        Ok(None)
    }

    fn time(&mut self) -> Result<i64, Fault> {
        let line = self.stream.take_line(TIME_BYTES_MAX).ok_or(Fault::Ended)?;
        let line = line.strip_suffix(b"\n").ok_or(Fault::Wrong("a line is too long"))?;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let time = line.strip_prefix(b"#TS:").and_then(base::text::parse_i64);
        // A comment that is no time says nothing.
        Ok(time.unwrap_or(0))
    }

    fn number(&mut self, prefix: u8, what: &'static str) -> Result<u64, Fault> {
        // What begins otherwise is wrong, however early it ends.
        if self.stream.peek().is_some_and(|first| first != prefix) {
            return Err(Fault::Wrong(what));
        }
        let digits = &self.line()?[1..];
        let number = base::text::parse_i64(digits).and_then(|number| u64::try_from(number).ok());
        number.ok_or(Fault::Wrong("a length is no number"))
    }

    /// The next line, without its end.
    fn line(&mut self) -> Result<&[u8], Fault> {
        let line = self.stream.take_line(LINE_BYTES_MAX).ok_or(Fault::Ended)?;
        line.strip_suffix(b"\r\n").ok_or(Fault::Wrong("a line does not end, or is too long"))
    }

    fn failed(&mut self, fault: Fault) -> CommandError {
        if let Some(error) = self.stream.error.take() {
            return CommandError::Io(error);
        }
        let at = self.stream.at();
        match fault {
            Fault::Ended => CommandError::Truncated(Broken { what: "the file ends too early", at }),
            Fault::Wrong(what) => CommandError::Broken(Broken { what, at }),
        }
    }
}

/// What is wrong with a command.
enum Fault {
    Ended,
    Wrong(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    /// What a file holds, how it ends, and up to where it is good.
    fn read(bytes: &[u8]) -> (Vec<String>, String, u64) {
        let mut reader = CommandReader::new(bytes);
        let mut entries = Vec::new();
        let end = loop {
            match reader.next_entry() {
                Ok(Some(Entry::Time(time))) => entries.push(format!("#{time}")),
                Ok(Some(Entry::Command(words))) => {
                    entries.push(String::from_utf8_lossy(&words.join(&b' ')).into_owned());
                }
                Ok(None) => break "end".into(),
                Err(CommandError::Truncated(broken)) => break format!("truncated at {}", broken.at),
                Err(CommandError::Broken(broken)) => break format!("{} at {}", broken.what, broken.at),
                Err(CommandError::Io(error)) => break error.to_string(),
            }
        };
        (entries, end, reader.good_bytes())
    }

    const SET: &str = "*3\r\n$3\r\nset\r\n$1\r\na\r\n$2\r\n\r\n\r\n";

    #[test]
    fn commands_and_times_are_read() {
        let text = format!("#TS:1795408961\r\n{SET}*1\r\n$4\r\nPING\r\n");
        let good = text.len() as u64;
        let (entries, end, up_to) = read(text.as_bytes());
        assert_eq!(
            (entries, end, up_to),
            (vec!["#1795408961".into(), "set a \r\n".into(), "PING".into()], "end".into(), good)
        );
    }

    #[test]
    fn a_file_is_good_up_to_the_last_whole_command_wherever_it_is_cut() {
        let text = format!("{SET}{SET}");
        for len in 0..=text.len() {
            let whole = (len / SET.len() * SET.len()) as u64;
            let (entries, end, up_to) = read(&text.as_bytes()[..len]);
            assert_eq!((entries.len(), up_to), (len / SET.len(), whole), "{len}");
            assert_eq!(end == "end", len as u64 == whole, "{len}: {end}");
        }
    }

    #[test]
    fn a_transaction_without_its_end_is_not_good() {
        let multi = "*1\r\n$5\r\nMULTI\r\n";
        let exec = "*1\r\n$4\r\nexec\r\n";
        let whole = format!("{SET}{multi}{SET}{exec}");
        assert_eq!(read(whole.as_bytes()).2, whole.len() as u64);
        assert_eq!(read(format!("{SET}{multi}{SET}").as_bytes()).2, SET.len() as u64);
    }

    #[test]
    fn what_is_no_command_is_told_with_its_place() {
        for (text, what) in [
            ("PING\r\n", "Expected prefix '*'"),
            ("\0\0", "Expected prefix '*'"),
            ("*1\r\n+OK\r\n", "Expected prefix '$'"),
            ("*x\r\n", "a length is no number"),
            ("*-1\r\n", "a length is no number"),
            ("*0\r\n", "a command has no words, or too many"),
            ("*9999999999\r\n", "a command has no words, or too many"),
            ("*1\r\n$1\r\nabc\r\n", "a word is longer than it is said to be"),
            ("*1\n$1\r\na\r\n", "a line does not end, or is too long"),
        ] {
            let (_, end, up_to) = read(text.as_bytes());
            assert!(end.starts_with(what) && up_to == 0, "{text:?}: {end}");
        }
        // A length that the file cannot have takes no memory.
        assert!(read(b"*1\r\n$9223372036854775807\r\nabc").1.starts_with("truncated"));
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut random = Random::new(5);
        let pieces = ["*", "$", "1", "3", "\r\n", "a", "#TS:", "-", "MULTI", "EXEC", "$5\r\n", "*1\r\n"];
        for _ in 0..20_000 {
            let text: String = (0..random.below(16)).map(|_| pieces[random.below(12) as usize]).collect();
            let (_, _, up_to) = read(text.as_bytes());
            let (_, end, again) = read(&text.as_bytes()[..up_to as usize]);
            assert_eq!((end.as_str(), again), ("end", up_to), "{text:?}");
        }
    }
}
