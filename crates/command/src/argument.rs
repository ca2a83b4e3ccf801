//! Arguments as values: numbers with the refusals that Redis words for them, words in any case, ranges of
//! indexes. On the path of every request: nothing is allocated, nothing formatted but errors.
use crate::Error;
use base::text::parse_i64;
use base::word::is_same_word;

/// A signed 64-bit integer in its one canonical spelling: no `+`, no leading zero, no blanks.
pub(crate) fn int(text: &[u8]) -> Result<i64, Error> {
    parse_i64(text).ok_or_else(Error::not_an_integer)
}

/// A count of things: 0 or more.
pub(crate) fn count(text: &[u8]) -> Result<u64, Error> {
    parse_i64(text).and_then(|n| u64::try_from(n).ok()).ok_or_else(Error::not_positive)
}

/// An integer between two bounds, both included.
pub(crate) fn int_between(text: &[u8], min: i64, max: i64) -> Result<i64, Error> {
    let n = int(text)?;
    if (min..=max).contains(&n) { Ok(n) } else { Err(Error::not_between(min, max)) }
}

/// The number of a database, which must be below `databases`.
pub(crate) fn database(text: &[u8], databases: u16) -> Result<u16, Error> {
    let index = i32::try_from(int(text)?);
    let index = index.map_err(|_| Error::not_between(i64::from(i32::MIN), i64::from(i32::MAX)))?;
    nth_database(index, databases).ok_or_else(Error::no_such_db)
}

/// The database that `index` names, if there is one.
pub(crate) fn nth_database(index: i32, databases: u16) -> Option<u16> {
    u16::try_from(index).ok().filter(|db| *db < databases)
}

/// Whether `text` is the option `word` (given in upper case), in any case.
pub(crate) fn is_word(text: &[u8], word: &str) -> bool {
    is_same_word(text, word.as_bytes())
}

/// `first..=last` as users name positions (negative: from the end) within `len` elements: the position of the
/// first and how many there are. None where the range is empty.
pub(crate) fn span(first: i64, last: i64, len: u64) -> Option<(u64, u64)> {
    let first = from_end(first, len).max(0) as u64;
    let last = u64::try_from(from_end(last, len)).ok()?.min(len.checked_sub(1)?);
    (first <= last).then(|| (first, last - first + 1))
}

/// A position that may count from the end. Still negative where it lies before the first element.
pub(crate) fn from_end(index: i64, len: u64) -> i64 {
    if index < 0 { index.saturating_add_unsigned(len) } else { index }
}

/// The position of the element that `index` names among `len`, if there is one.
pub(crate) fn position(index: i64, len: u64) -> Option<u64> {
    u64::try_from(from_end(index, len)).ok().filter(|i| *i < len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_cut_to_what_exists() {
        assert_eq!(span(0, -1, 3), Some((0, 3)));
        assert_eq!(span(-100, 100, 3), Some((0, 3)));
        assert_eq!(span(-2, -2, 3), Some((1, 1)));
        assert_eq!(span(i64::MIN, i64::MAX, 3), Some((0, 3)));
    }

    #[test]
    fn a_span_of_nothing_is_none() {
        assert_eq!(span(0, -1, 0), None);
        assert_eq!(span(2, 1, 3), None);
        assert_eq!(span(3, 5, 3), None);
        assert_eq!(span(0, -4, 3), None);
        assert_eq!(span(i64::MAX, i64::MIN, 3), None);
    }

    #[test]
    fn a_position_counts_from_both_ends() {
        assert_eq!(position(-3, 3), Some(0));
        assert_eq!(position(-4, 3), None);
        assert_eq!(position(2, 3), Some(2));
        assert_eq!(position(3, 3), None);
        assert_eq!(position(i64::MIN, 3), None);
    }
}
