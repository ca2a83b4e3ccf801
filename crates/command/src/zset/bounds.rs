//! The ends of ranges as users write them: `5`, `(5`, `-inf` for scores; `[member`, `(member`, `-`, `+` for
//! members; ranks from either end. Each kind of range becomes a span of ranks.
use crate::Error;
use crate::argument::{int, span};
use store::{Bound, End, LexBound, RankSpan, ZSet};

/// What a range is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Rank,
    Score,
    Lex,
}

/// A range, read from its two arguments.
#[derive(Clone, Copy, Debug)]
pub(super) enum Range<'a> {
    /// The first and the last rank, both included, counted from the end at which the answer begins.
    Ranks(i64, i64),
    Scores(ScoreEnd, ScoreEnd),
    Members(LexBound<'a>, LexBound<'a>),
}

/// One end of a range of scores.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoreEnd {
    score: f64,
    is_included: bool,
}

impl<'a> Range<'a> {
    /// `min` and `max` in this order, also where the answer begins with the greatest.
    pub(super) fn parse(by: By, min: &'a [u8], max: &'a [u8]) -> Result<Range<'a>, Error> {
        Ok(match by {
            By::Rank => Range::Ranks(int(min)?, int(max)?),
            By::Score => Range::Scores(score_end(min)?, score_end(max)?),
            By::Lex => Range::Members(lex_bound(min)?, lex_bound(max)?),
        })
    }

    /// The entries in it, as a span of ranks from the least score. `towards` is where the answer goes.
    pub(super) fn span(&self, set: &ZSet<'_>, towards: End) -> RankSpan {
        match *self {
            Range::Ranks(first, last) => rank_span(first, last, set.len(), towards),
            Range::Scores(min, max) => {
                let start =
                    if min.is_included { Bound::least(min.score) } else { Bound::greatest(min.score) };
                let end = if max.is_included { Bound::greatest(max.score) } else { Bound::least(max.score) };
                set.span(&start, &end)
            }
            Range::Members(min, max) => {
                let from = if towards == End::Tail { End::Head } else { End::Tail };
                set.lex_span(min, max, from)
            }
        }
    }
}

/// The span of two ranks. In an answer that begins with the greatest score, ranks count from there.
fn rank_span(first: i64, last: i64, len: u64, towards: End) -> RankSpan {
    let Some((first, count)) = span(first, last, len) else { return RankSpan { first: 0, count: 0 } };
    match towards {
        End::Tail => RankSpan { first, count },
        End::Head => RankSpan { first: len - first - count, count },
    }
}

/// One end of a range of scores. Unlike a score to be stored it may not be hexadecimal, one that is too large
/// counts as infinite, and an empty text is 0.
fn score_end(text: &[u8]) -> Result<ScoreEnd, Error> {
    let (number, is_included) = match text {
        [b'(', rest @ ..] => (rest, false),
        all => (all, true),
    };
    let score = if number.is_empty() { Some(0.0) } else { decimal(number) };
    score.map(|score| ScoreEnd { score, is_included }).ok_or_else(Error::range_not_a_float)
}

fn decimal(text: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (!number.is_nan()).then_some(number)
}

fn lex_bound(text: &[u8]) -> Result<LexBound<'_>, Error> {
    match text {
        b"-" => Ok(LexBound::Least),
        b"+" => Ok(LexBound::Greatest),
        [b'[', member @ ..] => Ok(LexBound::Including(member)),
        [b'(', member @ ..] => Ok(LexBound::Excluding(member)),
        _ => Err(Error::range_not_lexical()),
    }
}
