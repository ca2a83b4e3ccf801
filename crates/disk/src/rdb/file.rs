//! A dump file: every key of every database, as it was at one moment.
//!
//! ```text
//! file   = "REDIS" | version: 4 digits | part ... | FF | checksum: u64, lowest byte first |
//!          "VALKEY" | version: 3 digits | ...
//! part   = FA | name | text |                       what is known of the server that wrote it
//!          FE | number: length |                    a database begins
//!          FB | keys: length | with deadline: length |    how many it has, about
//!          FC | deadline: i64 in milliseconds |     of the key that comes next; FD in seconds: i32
//!          F8 | idle: length in seconds |           likewise; F9 its counter of uses: u8
//!          type | key: string | value |
//!          F5 | library: string |                   functions
//!          F7 | module | value |                    what a module keeps beside the keys
//!          F4 | slot | keys | with deadline |       a slot of a cluster begins: three lengths
//! ```
//!
//! `FE 00 FB 01 00 00 01 6B 01 76` is database 0 with one key, "k", without a deadline, whose value is the
//! string "v". The checksum is that of all bytes before it; 0 means that there is none. It is there since
//! version 5.
use super::kind::Type;
use super::read::Reader;
use crate::source::Broken;
use crate::source::Source;
use base::Millis;
use store::{Deadline, Usage};

/// What a byte means where a type may stand.
pub(super) mod mark {
    pub(in super::super) const SLOT_IMPORT: u8 = 0xF3;
    pub(in super::super) const SLOT: u8 = 0xF4;
    pub(in super::super) const FUNCTION: u8 = 0xF5;
    pub(in super::super) const OLD_FUNCTION: u8 = 0xF6;
    pub(in super::super) const MODULE: u8 = 0xF7;
    pub(in super::super) const IDLE: u8 = 0xF8;
    pub(in super::super) const FREQUENCY: u8 = 0xF9;
    pub(in super::super) const ABOUT: u8 = 0xFA;
    pub(in super::super) const SIZES: u8 = 0xFB;
    pub(in super::super) const DEADLINE_MS: u8 = 0xFC;
    pub(in super::super) const DEADLINE_S: u8 = 0xFD;
    pub(in super::super) const DATABASE: u8 = 0xFE;
    pub(in super::super) const END: u8 = 0xFF;
}

/// The version from which on a file ends with a checksum.
pub(super) const VERSION_CHECKSUM: u16 = 5;
/// How many bytes name the format and its version.
pub(super) const HEADER_BYTES: usize = 9;

/// The first bytes of a file of this version.
pub(super) fn header(version: u16) -> String {
    format!("REDIS{version:04}")
}

/// The version that the first bytes of a file tell. None if they are not those of a dump file.
pub(super) fn version(header: &[u8; HEADER_BYTES]) -> Option<u16> {
    let digits = header.strip_prefix(b"REDIS").or_else(|| header.strip_prefix(b"VALKEY"))?;
    let version = std::str::from_utf8(digits).ok()?;
    version.bytes().all(|digit| digit.is_ascii_digit()).then(|| version.parse().ok())?
}

/// What comes next in a file.
pub(super) enum Part {
    /// A key, its name first, then its value.
    Key(Head),
    /// The database that the keys from here on belong to.
    Database(u64),
    /// What is known of the writer: a name and a text follow.
    About,
    /// A library of functions: a string follows.
    Function,
    /// What module so-and-so keeps: values follow.
    Module(u64),
    /// Nothing of interest, all of which was read.
    Skipped,
    End,
}

/// What stands in front of a key.
pub(super) struct Head {
    pub(super) kind: Type,
    pub(super) deadline: Deadline,
    pub(super) usage: Usage,
}

/// Reads what comes next, as far as [`Part`] says.
pub(super) fn next_part(reader: &mut Reader<impl Source>) -> Result<Part, Broken> {
    let (mut deadline, mut usage) = (Deadline::Never, Usage::Untracked);
    loop {
        match reader.byte()? {
            mark::DEADLINE_MS => deadline = Deadline::At(Millis(reader.millis()?)),
            mark::DEADLINE_S => {
                let seconds = i32::from_le_bytes(reader.array()?);
                deadline = Deadline::At(Millis(i64::from(seconds) * 1000));
            }
            mark::IDLE => {
                let seconds = i64::try_from(reader.length()?).unwrap_or(i64::MAX);
                usage = Usage::IdleMs(seconds.saturating_mul(1000));
            }
            mark::FREQUENCY => usage = Usage::Frequency(reader.byte()?),
            mark::DATABASE => return Ok(Part::Database(reader.length()?)),
            mark::ABOUT => return Ok(Part::About),
            mark::FUNCTION => return Ok(Part::Function),
            mark::MODULE => return Ok(Part::Module(reader.length()?)),
            mark::END => return Ok(Part::End),
            mark::SIZES => return skipped(reader, 2),
            mark::SLOT => return skipped(reader, 3),
            mark::SLOT_IMPORT => {
                reader.string()?;
                for _ in 0..reader.length()? {
                    skipped(reader, 2)?;
                }
                return Ok(Part::Skipped);
            }
            mark::OLD_FUNCTION => {
                return reader.broken("functions are in the form of a test version of Redis 7.0");
            }
            6 | 7 => return reader.broken("a value belongs to a module, and there are no modules"),
            number => {
                let Some(kind) = Type::of(number, reader.version) else {
                    return reader.broken("a value is of a type that is not known");
                };
                return Ok(Part::Key(Head { kind, deadline, usage }));
            }
        }
    }
}

fn skipped(reader: &mut Reader<impl Source>, lengths: usize) -> Result<Part, Broken> {
    for _ in 0..lengths {
        reader.length()?;
    }
    Ok(Part::Skipped)
}

/// The name of a module, of which a file has the 9 letters and the version in one number.
pub(super) fn module_name(id: u64) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let letter = |index: u32| char::from(LETTERS[(id >> (10 + 6 * index) & 63) as usize]);
    (0..9).rev().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_tells_the_version() {
        assert_eq!(version(b"REDIS0010"), Some(10));
        assert_eq!(version(b"REDIS0001"), Some(1));
        assert_eq!(version(b"VALKEY080"), Some(80));
        for bad in [b"REDIS00a1", b"REDIS+001", b"redis0010", b"VALKEYx80", b"*1\r\n$4\r\nP"] {
            assert_eq!(version(bad), None, "{bad:?}");
        }
        assert_eq!(version(header(12).as_bytes().try_into().unwrap()), Some(12));
    }
}
