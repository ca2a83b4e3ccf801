//! The scores of one leaf in the fewest bytes that are exact: a base, and for each score its distance from it
//! in 0 to 8 bytes.
//!
//! A *scale* maps doubles to integers, called levels, that rise with them:
//!
//! | scale | the level of a score | which scores it can say |
//! |---|---|---|
//! | decimal, 0..=15 digits | the score times 10 to the digits | exact decimals: 7, 12.5, 1700000000.123 |
//! | bits, shifted by 0, 4 .. 60 | the double's bits, signed, less these zeros | what ends in them; 0: all |
//!
//! So counters and times take a byte or two whatever their size, money a byte or two, floats of 32 bits at
//! most five, and all scores of a leaf that are equal none. What is stored for a score is its *code*: its
//! level less the base, unsigned. Three scores 1000, 1001, 1005 fit the frame decimal 0, base 1000, width 1:
//! `00 01 05`.
//!
//! Searches never decode: a score that is looked for becomes a range of codes once ([`Frame::span`]), and
//! codes compare as integers. -0 equals 0 wherever scores are compared, and keeps its sign: under the one
//! scale that can say it, the two have neighbouring levels, so that the range of a zero holds both.

use crate::code::fixed_width::fits;
use crate::code::short_int::{int_len, read_int};
use crate::code::words::bytes_of;

/// How doubles become levels. 0..=15: decimal digits; 16..=31: bits, shifted by four times the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale(u8);

/// Scales are below this.
const SCALES: u8 = 32;
/// The first of the scales that take bits.
const BITS: u8 = 16;
const SHIFT_STEP: u32 = 4;
const SIGN: u64 = 1 << 63;

const POWERS: [f64; BITS as usize] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// No decimal level is farther from 0. Whole numbers are exact up to here; with digits the limit is so low
/// that two neighbours never round to the same double.
const WHOLE_MAX: i64 = 1 << 53;
const DECIMAL_MAX: i64 = 1 << 51;

impl Scale {
    const WHOLE: Scale = Scale(0);

    fn decimal(digits: u8) -> Scale {
        assert!(digits < BITS, "{digits} digits");
        Scale(digits)
    }

    /// The bits of scores that all end in `zeros` zeros.
    fn bits(zeros: u32) -> Scale {
        Scale(BITS + (zeros.min(60) / SHIFT_STEP) as u8)
    }

    fn shift(self) -> u32 {
        debug_assert!(!self.is_decimal() && self.0 < SCALES, "{self:?}");
        u32::from(self.0 - BITS) * SHIFT_STEP
    }

    fn is_decimal(self) -> bool {
        self.0 < BITS
    }

    fn level_max(self) -> i64 {
        if self == Scale::WHOLE { WHOLE_MAX } else { DECIMAL_MAX }
    }

    /// The level that means exactly this score; None where the scale has none.
    #[inline]
    fn level(self, score: f64) -> Option<i64> {
        if self == Scale::WHOLE {
            let level = score as i64;
            let is_exact = (level as f64).to_bits() == score.to_bits();
            return (is_exact && level.unsigned_abs() <= WHOLE_MAX as u64).then_some(level);
        }
        if self.is_decimal() {
            // This rounding is right wherever the score is such a decimal, and the result is checked below.
            // `f64::round` would be a call.
            let product = score * POWERS[usize::from(self.0)];
            let level = (product + 0.5_f64.copysign(product)) as i64;
            let is_near = level.unsigned_abs() <= DECIMAL_MAX as u64;
            return (is_near && self.value(level).to_bits() == score.to_bits()).then_some(level);
        }
        self.level_of_bits(score)
    }

    fn level_of_bits(self, score: f64) -> Option<i64> {
        let (bits, shift) = (score.to_bits(), self.shift());
        let magnitude = bits & !SIGN;
        if shift == 0 {
            return Some(if bits & SIGN == 0 { magnitude as i64 } else { !(magnitude as i64) });
        }
        // Only the positive zero has a level on these scales.
        let is_exact = magnitude & ((1 << shift) - 1) == 0 && bits != SIGN;
        let level = (magnitude >> shift) as i64;
        is_exact.then_some(if bits & SIGN == 0 { level } else { -level })
    }

    #[inline]
    fn value(self, level: i64) -> f64 {
        if self == Scale::WHOLE {
            return level as f64;
        }
        if self.is_decimal() {
            return level as f64 / POWERS[usize::from(self.0)];
        }
        let shift = self.shift();
        f64::from_bits(match (shift, level < 0) {
            (0, true) => !level as u64 | SIGN,
            (_, true) => level.unsigned_abs() << shift | SIGN,
            (_, false) => (level as u64) << shift,
        })
    }

    /// The least level whose score is not below `score`, and the greatest whose score is not above it.
    #[inline]
    fn around(self, score: f64) -> (i64, i64) {
        if self == Scale::WHOLE {
            // All scores beyond the levels have the same answer, so they are clamped to a range in which the
            // conversion is exact. `f64::floor` would be a call.
            let score = score.clamp(-(WHOLE_MAX as f64) - 2.0, WHOLE_MAX as f64 + 2.0);
            let near = score as i64;
            let high = near - i64::from(near as f64 > score);
            return (high + i64::from((high as f64) < score), high);
        }
        if self.is_decimal() { self.around_decimal(score) } else { self.around_bits(score) }
    }

    /// [`Scale::around`] on a decimal scale. The product may be off by a rounding, so the level is corrected
    /// in steps of one, of which there are a few at most.
    fn around_decimal(self, score: f64) -> (i64, i64) {
        let max = self.level_max();
        let guess = score * POWERS[usize::from(self.0)];
        let mut low = guess.clamp(-(max as f64), max as f64) as i64;
        while low >= -max && self.value(low) >= score {
            low -= 1;
        }
        while low <= max && self.value(low) < score {
            low += 1;
        }
        let is_exact = low <= max && self.value(low) == score;
        (low, if is_exact { low } else { low - 1 })
    }

    fn around_bits(self, score: f64) -> (i64, i64) {
        let (bits, shift) = (score.to_bits(), self.shift());
        let magnitude = bits & !SIGN;
        let level = (magnitude >> shift) as i64;
        let is_exact = magnitude & ((1 << shift) - 1) == 0;
        match (shift, magnitude, bits & SIGN == 0) {
            (0, 0, _) => (-1, 0),
            (0, _, true) => (level, level),
            (0, _, false) => (!level, !level),
            (_, _, true) => (if is_exact { level } else { level + 1 }, level),
            (_, _, false) => (-level, if is_exact { -level } else { -level - 1 }),
        }
    }
}

/// How the scores of one leaf are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    scale: Scale,
    /// Bytes of a code, 0..=8.
    pub(crate) width: usize,
    base: i64,
}

/// A range of codes. The codes before it are those of lesser scores, the codes behind it those of greater
/// ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    /// The first code behind the range.
    pub(crate) end: u64,
}

impl Frame {
    /// The frame of a leaf without entries.
    pub(crate) const EMPTY: Frame = Frame { scale: Scale::WHOLE, width: 0, base: 0 };

    /// In line, so that what a search needs at once does not go through memory.
    #[inline(always)]
    fn new(scale: u8, width: usize, base: i64) -> Frame {
        assert!(scale < SCALES && width <= 8, "no frame has scale {scale}, width {width}");
        Frame { scale: Scale(scale), width, base }
    }

    /// The frame that a leaf's header says, and how many bytes its base takes there: `widths` has the bytes
    /// of a code in bits 0..4 and those of the base in bits 4..8, and `rest` begins with the base.
    #[inline(always)]
    pub(crate) fn read(scale: u8, widths: u8, rest: &[u8]) -> (Frame, usize) {
        let base_width = usize::from(widths >> 4);
        let base = match rest.first_chunk() {
            _ if base_width == 0 => 0,
            // Nearly always at least a whole word follows.
            Some(word) if base_width <= 8 => {
                let spare = 64 - 8 * base_width as u32;
                i64::from_le_bytes(*word) << spare >> spare
            }
            _ => read_int(&rest[..base_width]),
        };
        (Frame::new(scale, usize::from(widths & 15), base), base_width)
    }

    /// The scale as a number below 32, for a leaf's header.
    pub(crate) fn scale(&self) -> u8 {
        self.scale.0
    }

    /// The byte of widths that [`Frame::read`] takes.
    pub(crate) fn widths(&self) -> u8 {
        self.width as u8 | (self.base_width() as u8) << 4
    }

    /// How many bytes the base takes in a header: none where it is 0.
    pub(crate) fn base_width(&self) -> usize {
        if self.base == 0 { 0 } else { int_len(self.base) }
    }

    /// Appends the base in these bytes.
    pub(crate) fn write_base(&self, target: &mut Vec<u8>) {
        debug_assert!(self.base_width() <= 8 && self.width <= 8, "{self:?}");
        target.extend_from_slice(&self.base.to_le_bytes()[..self.base_width()]);
    }

    /// The frame in which these scores take the fewest bytes, with room around them for the next ones if it
    /// costs none.
    pub(crate) fn fit(scores: &[f64]) -> Frame {
        if let Some((low, high)) = whole_span(scores) {
            return Frame::of_span(Scale::WHOLE, low, high);
        }
        let Some(digits) = digits_of(scores) else { return Frame::of_bits(scores) };
        let decimal = Frame::spanning(Scale::decimal(digits), scores);
        if digits == 0 || decimal.width <= 4 {
            return decimal;
        }
        let bits = Frame::of_bits(scores);
        if bits.width < decimal.width { bits } else { decimal }
    }

    fn of_bits(scores: &[f64]) -> Frame {
        let zeros = |score: &f64| match score.to_bits() {
            SIGN => 0,
            bits => bits.trailing_zeros(),
        };
        Frame::spanning(Scale::bits(scores.iter().map(zeros).min().unwrap_or(0)), scores)
    }

    /// The narrowest frame on this scale, on which every score has a level.
    fn spanning(scale: Scale, scores: &[f64]) -> Frame {
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        for score in scores {
            let level = scale.level(*score).expect("the scale was chosen for these scores");
            (low, high) = (low.min(level), high.max(level));
        }
        if low > high { Frame::EMPTY } else { Frame::of_span(scale, low, high) }
    }

    /// The narrowest frame on this scale for levels from `low` to `high`.
    fn of_span(scale: Scale, low: i64, high: i64) -> Frame {
        let span = high.wrapping_sub(low) as u64;
        let width = bytes_of(span);
        if width == 0 || width == 8 {
            return Frame { scale, width, base: low };
        }
        if low >= 0 && bytes_of(high as u64) == width {
            return Frame { scale, width, base: 0 };
        }
        let room = (1_u64 << (8 * width)) - 1 - span;
        Frame { scale, width, base: low.saturating_sub_unsigned(room / 2) }
    }

    /// What is stored for a score; None where the frame cannot say it.
    #[inline]
    pub(crate) fn code(&self, score: f64) -> Option<u64> {
        let level = self.scale.level(score)?;
        let code = level.wrapping_sub(self.base) as u64;
        (level >= self.base && fits(code, self.width)).then_some(code)
    }

    /// The score that a code stands for.
    #[inline]
    pub(crate) fn score(&self, code: u64) -> f64 {
        debug_assert!(fits(code, self.width), "{code} in {self:?}");
        self.scale.value(self.base.wrapping_add(code as i64))
    }

    /// As [`Frame::span`], for a score that is looked for in the leaf: None where the frame cannot say it, so
    /// that no entry has it. Cheaper, because a score that has a code is found without rounding.
    #[inline]
    pub(crate) fn span_of_own(&self, score: f64) -> Option<Span> {
        // The two zeros are equal as scores, but have different codes.
        if score == 0.0 {
            return Some(self.span(score));
        }
        let code = self.code(score)?;
        debug_assert!(fits(code, self.width), "{score} in {self:?}");
        Some(Span { start: code, end: code.saturating_add(1) })
    }

    /// The codes of all scores equal to this one.
    #[inline]
    pub(crate) fn span(&self, score: f64) -> Span {
        let (low, high) = self.scale.around(score);
        let code = |level: i64| if level < self.base { 0 } else { level.wrapping_sub(self.base) as u64 };
        Span { start: code(low), end: if high < self.base { 0 } else { code(high).saturating_add(1) } }
    }
}

/// The least and the greatest of these scores, if all are whole numbers; None where there are none.
fn whole_span(scores: &[f64]) -> Option<(i64, i64)> {
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    for score in scores {
        let level = Scale::WHOLE.level(*score)?;
        (low, high) = (low.min(level), high.max(level));
    }
    (low <= high).then_some((low, high))
}

/// The least number of decimal digits that says all of them exactly.
fn digits_of(scores: &[f64]) -> Option<u8> {
    let mut digits = 0;
    for score in scores {
        while Scale::decimal(digits).level(*score).is_none() {
            digits += 1;
            if digits == BITS {
                return None;
            }
        }
    }
    let all_fit = digits == 0 || scores.iter().all(|score| Scale::decimal(digits).level(*score).is_some());
    all_fit.then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    /// Scores to many tastes, ordered as Redis orders them.
    fn any_scores(random: &mut Random) -> Vec<f64> {
        let count = random.below(100) + 1;
        let taste = random.below(9);
        let mut scores: Vec<f64> = (0..count).map(|_| any_score(random, taste)).collect();
        scores.sort_by(|a, b| a.partial_cmp(b).unwrap());
        scores
    }

    fn any_score(random: &mut Random, taste: u64) -> f64 {
        match taste {
            0 => random.below(1000) as f64,
            1 => 1.7e9 + random.below(100_000) as f64,
            2 => random.below(10_000) as f64 / 100.0,
            3 => random.unit_f64(),
            4 => random.unit_f64() as f32 as f64,
            5 => [0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324][random.below(6) as usize],
            6 => [
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::MAX,
                f64::MIN,
                0.0,
                1e15,
                i64::MIN as f64,
                -(WHOLE_MAX as f64),
            ][random.below(8) as usize],
            7 => (random.next_u64() as i64 >> random.below(64)) as f64,
            _ => loop {
                let score = f64::from_bits(random.next_u64());
                if !score.is_nan() {
                    break score;
                }
            },
        }
    }

    #[test]
    fn every_score_of_a_fitted_frame_comes_back_to_the_bit() {
        let mut random = Random::new(5);
        for _ in 0..20_000 {
            let scores = any_scores(&mut random);
            let frame = Frame::fit(&scores);
            let mut head = Vec::new();
            frame.write_base(&mut head);
            head.push(0xEE);
            let (again, base_width) = Frame::read(frame.scale(), frame.widths(), &head);
            assert_eq!((again, base_width), (frame, head.len() - 1));
            for score in &scores {
                let code = again.code(*score).unwrap_or_else(|| panic!("{score} of {scores:?} in {frame:?}"));
                assert_eq!(frame.score(code).to_bits(), score.to_bits(), "{scores:?} {frame:?}");
            }
        }
    }

    #[test]
    fn a_span_separates_the_lesser_from_the_greater() {
        let mut random = Random::new(6);
        for _ in 0..20_000 {
            let (scores, taste) = (any_scores(&mut random), random.below(9));
            let frame = Frame::fit(&scores);
            let foreign = any_score(&mut random, taste);
            let own = scores[random.below(scores.len() as u64) as usize];
            for wanted in [foreign, own, own + 0.5, own - 0.001, -own] {
                let span = frame.span(wanted);
                for score in &scores {
                    let code = frame.code(*score).unwrap();
                    let seen = (code < span.start, code < span.end);
                    assert_eq!(seen, (*score < wanted, *score <= wanted), "{wanted} {score} {frame:?}");
                }
            }
        }
    }

    #[test]
    fn scores_take_the_fewest_bytes() {
        let width = |scores: &[f64]| Frame::fit(scores).width;
        assert_eq!(width(&[7.0, 7.0, 7.0]), 0);
        assert_eq!(width(&[1000.0, 1001.0, 1005.0]), 1);
        assert_eq!(width(&[1.7e12, 1.7e12 + 255.0]), 1);
        assert_eq!(width(&[0.01, 99.99]), 2);
        assert_eq!(width(&[-300.0, 300.0]), 2);
        assert_eq!(width(&[0.0, f64::from(1.0_f32 / 3.0)]), 5);
        assert_eq!(width(&[f64::from(1.0_f32 / 3.0), f64::from(0.7_f32)]), 4);
        assert_eq!(width(&[f64::NEG_INFINITY, f64::INFINITY]), 2);
        assert_eq!(width(&[-0.0, 0.0]), 1);
        assert_eq!(width(&[std::f64::consts::PI, -std::f64::consts::E]), 8);
    }
}
