//! The options that say how long a string lives (`EX`, `PX`, `EXAT`, `PXAT`, `KEEPTTL`, `PERSIST`), shared by
//! SET, SETEX, PSETEX and GETEX. Two different ones never go together; the same one twice does, and the last
//! counts.
use crate::Error;
use crate::argument::{int, is_word};
use base::Millis;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Milliseconds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Now,
    Epoch,
}

/// One of the options, with its value as text: the command decides when it is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime<'a> {
    Until { unit: Unit, from: From, text: &'a [u8] },
    Keep,
    Persist,
}

impl<'a> Lifetime<'a> {
    /// The option that begins at `word`, `next` being the argument after it; and how many arguments it takes.
    pub(crate) fn parse(word: &[u8], next: Option<&'a [u8]>) -> Option<(Lifetime<'a>, usize)> {
        if is_word(word, "KEEPTTL") {
            return Some((Lifetime::Keep, 1));
        }
        if is_word(word, "PERSIST") {
            return Some((Lifetime::Persist, 1));
        }
        let (unit, from) = unit_and_origin(word)?;
        Some((Lifetime::Until { unit, from, text: next? }, 2))
    }

    /// Whether the two may stand in one request.
    pub(crate) fn is_same_option(&self, other: &Lifetime<'_>) -> bool {
        use Lifetime::Until;
        match (self, other) {
            (Until { unit, from, .. }, Until { unit: other_unit, from: other_from, .. }) => {
                unit == other_unit && from == other_from
            }
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }
}

fn unit_and_origin(word: &[u8]) -> Option<(Unit, From)> {
    const OPTIONS: [(&str, Unit, From); 4] = [
        ("EX", Unit::Seconds, From::Now),
        ("PX", Unit::Milliseconds, From::Now),
        ("EXAT", Unit::Seconds, From::Epoch),
        ("PXAT", Unit::Milliseconds, From::Epoch),
    ];
    OPTIONS.iter().find(|(name, ..)| is_word(word, name)).map(|(_, unit, from)| (*unit, *from))
}

/// The deadline that the option's value says. An error that names `command` (lower case) if it is zero,
/// negative, or beyond 64 bits of milliseconds.
pub(crate) fn deadline(
    text: &[u8],
    unit: Unit,
    from: From,
    now: Millis,
    command: &str,
) -> Result<Millis, Error> {
    let n = int(text)?;
    let ms = if n > 0 { in_millis(n, unit) } else { None };
    ms.and_then(|ms| since(ms, from, now)).ok_or_else(|| Error::invalid_expire(command))
}

/// `n` units as milliseconds, if they fit.
pub(crate) fn in_millis(n: i64, unit: Unit) -> Option<i64> {
    match unit {
        Unit::Seconds => n.checked_mul(1000),
        Unit::Milliseconds => Some(n),
    }
}

/// `ms` counted from now or from the epoch, if 64 bits hold it. A time before now is a time: the caller
/// decides what it means.
pub(crate) fn since(ms: i64, from: From, now: Millis) -> Option<Millis> {
    match from {
        From::Now => ms.checked_add(now.0).map(Millis),
        From::Epoch => Some(Millis(ms)),
    }
}
