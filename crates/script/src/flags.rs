//! The first line of a script, `#!lua flags=no-writes,allow-oom`, and the flags that it and functions have.

/// What a script declares of itself. [`Flags::default`] is a script without a first line of that kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

/// The flags in the order of their bits, as they are written.
const NAMES: [&str; 5] = ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];
/// Set for a script without a first line `#!`: its commands are judged one by one, as before flags existed.
const COMPATIBLE: u8 = 1 << 7;

impl Flags {
    pub const NO_WRITES: Flags = Flags(1);
    pub const ALLOW_OOM: Flags = Flags(2);
    pub const ALLOW_STALE: Flags = Flags(4);
    pub const NO_CLUSTER: Flags = Flags(8);
    pub const ALLOW_CROSS_SLOT_KEYS: Flags = Flags(16);
    /// A script that declares nothing because it has no first line of that kind.
    pub const UNDECLARED: Flags = Flags(COMPATIBLE);

    /// Those of a script with this text; None where its first line is wrong.
    pub fn of_script(body: &[u8]) -> Option<Flags> {
        split_script(body).ok().map(|(flags, _)| flags)
    }

    pub fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 == flag.0
    }

    /// The flag of that name. Redis compares without regard to case only for functions.
    pub(crate) fn named(name: &[u8]) -> Option<Flags> {
        NAMES.iter().position(|known| known.as_bytes() == name).map(|bit| Flags(1 << bit))
    }

    /// As [`Flags::named`], in any case.
    pub(crate) fn named_in_any_case(name: &[u8]) -> Option<Flags> {
        Flags::named(&name.to_ascii_lowercase())
    }

    pub(crate) fn add(&mut self, flag: Flags) {
        self.0 |= flag.0;
    }

    /// The names of the flags that are set, as FUNCTION LIST shows them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().enumerate().filter(move |(bit, _)| self.0 & (1 << bit) != 0).map(|(_, name)| *name)
    }
}

/// The words of a first line; None where its quotes do not match.
pub(crate) fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut line, mut spans) = (line.to_vec(), Vec::new());
    resp::split_line(&mut line, &mut spans).ok()?;
    Some(spans.iter().map(|span| line[span.start..][..span.len].to_vec()).collect())
}

/// Splits the first line off a script that begins with `#!`. The rest begins with the line's end, so that
/// lines keep their numbers. `Err` is the text that Redis 8.0.2 answers with, without its code.
pub(crate) fn split_script(body: &[u8]) -> Result<(Flags, &[u8]), Vec<u8>> {
    if !body.starts_with(b"#!") {
        return Ok((Flags::UNDECLARED, body));
    }
    let end = memchr::memchr(b'\n', body).ok_or_else(|| b"Invalid script shebang".to_vec())?;
    let words = words(&body[..end]).ok_or_else(|| b"Invalid engine in script shebang".to_vec())?;
    let (engine, options) = words.split_first().expect("the line begins with #!, which is no blank");
    if engine != b"#!lua" {
        return Err([b"Unexpected engine in script shebang: ", engine.as_slice()].concat());
    }
    let mut flags = Flags::default();
    for option in options {
        let Some(list) = option.strip_prefix(b"flags=") else {
            return Err([b"Unknown lua shebang option: ", option.as_slice()].concat());
        };
        for name in list.split(|b| *b == b',').filter(|_| !list.is_empty()) {
            let unknown = || [b"Unexpected flag in script shebang: ", name].concat();
            flags.add(Flags::named(name).ok_or_else(unknown)?);
        }
    }
    Ok((flags, &body[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_declares_flags() {
        let body = b"#!lua flags=no-writes,allow-stale\nreturn 1";
        let (flags, rest) = split_script(body).unwrap();
        assert_eq!(flags.names().collect::<Vec<_>>(), ["no-writes", "allow-stale"]);
        assert_eq!(rest, b"\nreturn 1");
        assert!(split_script(b"return 1").unwrap().0.has(Flags::UNDECLARED));
    }
}
