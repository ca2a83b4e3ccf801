//! Commands that wait for a key: what such a command leaves where it has found nothing.
//!
//! The function of such a command ([`DataRun::Blocking`](crate::DataRun)) tries once. It answers, or it
//! fails, or it leaves a [`Wait`] in its call and answers nothing. Whoever runs commands then keeps the
//! request, and runs it again, whole, when one of its keys has changed and holds a value of the type that it
//! waits for. Where a command may not wait (in EXEC, in a script) it answers [`Wait::nothing`].
use crate::long_double::LongDouble;
use crate::{Call, Error};
use base::Millis;
use resp::Reply;
use store::Kind;

/// What a command waits for.
pub struct Wait {
    /// For how long at most, in milliseconds; None: without end.
    pub timeout: Option<Millis>,
    /// It is tried again when one of its keys holds such a value.
    pub kind: Kind,
    /// It is tried again also when a key is gone or holds a value of another type: it waits in a group of a
    /// stream, and will say that there is none.
    pub ends_without_key: bool,
    /// Arguments that mean something else when it is tried again, and what they meant now: `$` of XREAD. In
    /// the order of their places.
    pub resolved: Vec<(usize, Vec<u8>)>,
    /// It waits for the first of its keys alone: the others are not looked at before that one is there.
    pub is_of_source: bool,
    /// What it answers where it may not wait.
    pub nothing: fn(&mut Reply),
}

impl Wait {
    /// For a list or a sorted set under one of the command's keys.
    pub(crate) fn of(kind: Kind, timeout: Option<Millis>) -> Wait {
        let nothing = Reply::null_array;
        Wait { timeout, kind, ends_without_key: false, resolved: Vec::new(), is_of_source: false, nothing }
    }

    /// What it answers when its time is over, whatever the command.
    pub fn late(reply: &mut Reply) {
        reply.null_array();
    }
}

impl Call<'_, '_> {
    /// There is nothing yet.
    pub(crate) fn wait(&mut self, wait: Wait) {
        self.wait = Some(Box::new(wait));
    }

    /// Answers for a command that has found nothing and may not wait.
    #[inline]
    pub fn give_up_waiting(&mut self) {
        if let Some(wait) = self.wait.take() {
            (wait.nothing)(self.reply);
        }
    }
}

/// A timeout in seconds, with a fraction; None where it is 0, which is without end. It is a whole number of
/// milliseconds, rounded up as in Redis: what is left of -0.0009 seconds is 0.
pub(crate) fn seconds(text: &[u8], now: Millis) -> Result<Option<Millis>, Error> {
    let ms = match base::text::parse_i64(text) {
        // Nearly always; what is too small is negative all the same.
        Some(seconds) if seconds <= i64::MAX / 1000 => Some(seconds.saturating_mul(1000)),
        _ => {
            let seconds = LongDouble::parse(text).ok_or_else(Error::timeout_not_a_float)?;
            seconds.thousandfold_rounded_up()
        }
    };
    checked(ms.ok_or_else(Error::timeout_out_of_range)?, now)
}

/// A timeout in milliseconds.
pub(crate) fn milliseconds(text: &[u8], now: Millis) -> Result<Option<Millis>, Error> {
    checked(base::text::parse_i64(text).ok_or_else(Error::timeout_not_an_integer)?, now)
}

fn checked(timeout_ms: i64, now: Millis) -> Result<Option<Millis>, Error> {
    match timeout_ms {
        ..0 => Err(Error::timeout_negative()),
        0 => Ok(None),
        _ if timeout_ms > i64::MAX - now.0 => Err(Error::timeout_out_of_range()),
        _ => Ok(Some(Millis(timeout_ms))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_790_000_000_000);

    #[test]
    fn timeouts_are_whole_milliseconds_rounded_up() {
        let cases = [
            ("0", None),
            ("0.0", None),
            ("0.001", Some(1)),
            ("1.1", Some(1100)),
            ("0.0001", Some(1)),
            ("1e-10", Some(1)),
            ("4.9e-324", Some(1)),
            ("1e-4000", Some(1)),
            ("-0.0009", None),
            ("-0.001", None),
            ("0x10", Some(16_000)),
            ("+7", Some(7000)),
            ("7", Some(7000)),
        ];
        for (text, ms) in cases {
            assert_eq!(seconds(text.as_bytes(), NOW), Ok(ms.map(Millis)), "{text}");
        }
        assert_eq!(milliseconds(b"5", NOW), Ok(Some(Millis(5))));
    }

    #[test]
    fn what_is_no_time_is_told_apart() {
        let text = |error: Result<_, Error>| {
            String::from_utf8_lossy(error.expect_err("it is no timeout").text()).into_owned()
        };
        for (given, expected) in [
            ("abc", "ERR timeout is not a float or out of range"),
            ("nan", "ERR timeout is not a float or out of range"),
            ("-1", "ERR timeout is negative"),
            ("-0.0011", "ERR timeout is negative"),
            ("-9223372036854775808", "ERR timeout is negative"),
            ("-1e400", "ERR timeout is negative"),
            ("-inf", "ERR timeout is negative"),
            ("-1e300", "ERR timeout is negative"),
            ("1e300", "ERR timeout is out of range"),
            ("inf", "ERR timeout is out of range"),
            ("1e400", "ERR timeout is out of range"),
            ("9223372036854775", "ERR timeout is out of range"),
        ] {
            assert_eq!(text(seconds(given.as_bytes(), NOW)), expected, "{given}");
        }
        assert_eq!(text(milliseconds(b"1.5", NOW)), "ERR timeout is not an integer or out of range");
        assert_eq!(text(milliseconds(b"9223372036854775807", NOW)), "ERR timeout is out of range");
    }
}
