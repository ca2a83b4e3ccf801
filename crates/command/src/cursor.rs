//! What SCAN and its kin (HSCAN, SSCAN, ZSCAN) have in common: how a cursor reads, what MATCH and COUNT ask
//! for, and the form of the reply. A cursor is the position of a walk, which clients see as another number
//! that tells them nothing of hashes.
use crate::Error;
use crate::argument::{int, is_word};
use base::permutation::Permutation;
use base::text::I64Text;
use base::{Item, glob};
use resp::{Args, Reply};

/// A cursor as C's `strtoull` reads it: spaces and a sign may stand before it, nothing after it. A negative
/// number in the usual form is refused, as Redis does. Returns the position that the cursor stands for.
pub(crate) fn cursor(text: &[u8], hidden_by: &Permutation) -> Result<u64, Error> {
    read(text).map(|number| hidden_by.show(number)).ok_or_else(Error::invalid_cursor)
}

fn read(text: &[u8]) -> Option<u64> {
    if let Some(n) = base::text::parse_i64(text) {
        return u64::try_from(n).ok();
    }
    let text = text.trim_ascii_start();
    let (digits, is_negative) = match text {
        [b'-', digits @ ..] => (digits, true),
        [b'+', digits @ ..] => (digits, false),
        digits => (digits, false),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let n: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(if is_negative { n.wrapping_neg() } else { n })
}

/// The number behind COUNT: 0 or less is a syntax error, as in Redis.
pub(crate) fn count(text: &[u8]) -> Result<u64, Error> {
    u64::try_from(int(text)?).ok().filter(|n| *n > 0).ok_or_else(Error::syntax)
}

/// MATCH's pattern; one of `*` matches everything and is not tried.
pub(crate) fn pattern(text: &[u8]) -> Option<&[u8]> {
    (text != b"*").then_some(text)
}

/// What a scan of one value's elements asks for.
pub(crate) struct Filter<'a> {
    pub(crate) pattern: Option<&'a [u8]>,
    pub(crate) count: u64,
    pub(crate) shows_values: bool,
}

impl<'a> Filter<'a> {
    /// Reads the options that stand behind key and cursor. NOVALUES is for hashes alone.
    pub(crate) fn parse(args: &Args<'a>) -> Result<Filter<'a>, Error> {
        Filter::read(args, Some(Error::novalues_without_hash))
    }

    /// As [`Filter::parse`], for a hash, which may have NOVALUES.
    pub(crate) fn parse_of_hash(args: &Args<'a>) -> Result<Filter<'a>, Error> {
        Filter::read(args, None)
    }

    /// Reads the options; `no_values` is the error for NOVALUES, if it is refused.
    fn read(args: &Args<'a>, no_values: Option<fn() -> Error>) -> Result<Filter<'a>, Error> {
        let mut filter = Filter { pattern: None, count: 10, shows_values: true };
        let mut words = args.iter_from(3);
        while let Some(word) = words.next() {
            if is_word(word, "NOVALUES") {
                if let Some(refusal) = no_values {
                    return Err(refusal());
                }
                filter.shows_values = false;
                continue;
            }
            let value = words.next().ok_or_else(Error::syntax)?;
            if is_word(word, "COUNT") {
                filter.count = count(value)?;
            } else if is_word(word, "MATCH") {
                filter.pattern = pattern(value);
            } else {
                return Err(Error::syntax());
            }
        }
        Ok(filter)
    }

    pub(crate) fn takes(&self, element: Item<'_>) -> bool {
        self.pattern.is_none_or(|pattern| match element {
            Item::Bytes(text) => glob::matches(pattern, text),
            Item::Int(n) => glob::matches(pattern, I64Text::new().format(n)),
        })
    }
}

/// The reply: the cursor comes first and is known last. The elements are written by `scan`, which returns the
/// next position and how many replies it has written.
pub(crate) fn answer(
    reply: &mut Reply,
    hidden_by: &Permutation,
    scan: impl FnOnce(&mut Reply) -> (u64, usize),
) {
    let header = reply.deferred();
    let (next, written) = scan(reply);
    reply.fill_with(header, |front| {
        front.array(2);
        front.bulk(I64Text::new().format_u64(hidden_by.hide(next)));
        front.array(written);
    });
}
