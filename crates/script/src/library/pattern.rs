//! Lua's patterns, matched so that they can be interrupted.
//!
//! Lua's own matcher backtracks in C, where no hook reaches it: a pattern like `.-.-.-.-b` on a long string
//! runs for hours. This one counts its steps, and its owner asks after some thousands of them whether to go
//! on. What it matches, and the errors of malformed patterns, are the same. Its recursion is bounded: Lua
//! 5.1 lets patterns of a hundred thousand items overflow the stack of the thread.

/// A pattern has no more captures than this.
pub(crate) const CAPTURES_MAX: usize = 32;
/// How deep quantifiers and captures may lie in each other's wake.
const DEPTH_MAX: u32 = 400;

/// Why a match ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The pattern is malformed, and this is what is wrong with it.
    Pattern(&'static str),
    /// The counter of steps said no.
    Stopped,
}

type Matched = Result<Option<usize>, Fault>;

/// Where a capture lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    /// Begun, not ended yet.
    Open(usize),
    /// A part of the subject: its start and its length.
    Part(usize, usize),
    /// `()`: a place, counted from 0.
    Place(usize),
}

/// A match under way.
pub(crate) struct Matcher<'a> {
    subject: &'a [u8],
    pattern: &'a [u8],
    captures: [Capture; CAPTURES_MAX],
    level: usize,
    depth: u32,
    /// Asked after every step, with how many steps it stands for; false to stop.
    go_on: &'a mut dyn FnMut(u32) -> bool,
}

const ESCAPE: u8 = b'%';

/// Whether a pattern is nothing but plain text.
pub(crate) fn is_plain(pattern: &[u8]) -> bool {
    !pattern.iter().any(|b| b"^$*+?.([%-".contains(b))
}

impl<'a> Matcher<'a> {
    pub(crate) fn new(
        subject: &'a [u8],
        pattern: &'a [u8],
        go_on: &'a mut dyn FnMut(u32) -> bool,
    ) -> Matcher<'a> {
        Matcher { subject, pattern, captures: [Capture::Open(0); CAPTURES_MAX], level: 0, depth: 0, go_on }
    }

    /// Matches the whole pattern (without its `^`) at `start`, and says where the match ends.
    pub(crate) fn match_at(&mut self, start: usize) -> Matched {
        self.level = 0;
        self.depth = 0;
        self.run(start, 0)
    }

    /// The captures of the last match.
    pub(crate) fn captures(&self) -> &[Capture] {
        &self.captures[..self.level]
    }

    fn step(&mut self) -> Result<(), Fault> {
        if (self.go_on)(1) { Ok(()) } else { Err(Fault::Stopped) }
    }

    /// Matches the pattern from `p` on at `s`, one level deeper.
    fn run(&mut self, s: usize, p: usize) -> Matched {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Fault::Pattern("pattern too complex"));
        }
        let matched = self.run_here(s, p);
        self.depth -= 1;
        matched
    }

    fn run_here(&mut self, mut s: usize, mut p: usize) -> Matched {
        loop {
            self.step()?;
            let Some(&first) = self.pattern.get(p) else { return Ok(Some(s)) };
            match (first, self.pattern.get(p + 1)) {
                (b'(', Some(b')')) => return self.start_capture(s, p + 2, Capture::Place(s)),
                (b'(', _) => return self.start_capture(s, p + 1, Capture::Open(s)),
                (b')', _) => return self.end_capture(s, p + 1),
                (b'$', None) => return Ok((s == self.subject.len()).then_some(s)),
                (ESCAPE, Some(b'b')) => match self.balance(s, p + 2)? {
                    Some(end) => (s, p) = (end, p + 4),
                    None => return Ok(None),
                },
                (ESCAPE, Some(b'f')) => match self.frontier(s, p + 2)? {
                    Some(next) => p = next,
                    None => return Ok(None),
                },
                (ESCAPE, Some(digit)) if digit.is_ascii_digit() => match self.back(s, *digit)? {
                    Some(end) => (s, p) = (end, p + 2),
                    None => return Ok(None),
                },
                _ => match self.single(s, p)? {
                    Next::Go(next_s, next_p) => (s, p) = (next_s, next_p),
                    Next::End(matched) => return Ok(matched),
                },
            }
        }
    }

    /// One character or class, and the quantifier behind it.
    fn single(&mut self, s: usize, p: usize) -> Result<Next, Fault> {
        let end = self.class_end(p)?;
        let is_matched = |this: &Self| s < this.subject.len() && this.is_single(this.subject[s], p, end);
        match self.pattern.get(end) {
            Some(b'?') => {
                if is_matched(self)
                    && let Some(matched) = self.run(s + 1, end + 1)?
                {
                    return Ok(Next::End(Some(matched)));
                }
                Ok(Next::Go(s, end + 1))
            }
            Some(b'*') => self.longest(s, p, end).map(Next::End),
            Some(b'+') if is_matched(self) => self.longest(s + 1, p, end).map(Next::End),
            Some(b'+') => Ok(Next::End(None)),
            Some(b'-') => self.shortest(s, p, end).map(Next::End),
            _ if is_matched(self) => Ok(Next::Go(s + 1, end)),
            _ => Ok(Next::End(None)),
        }
    }

    /// As many as there are, then fewer.
    fn longest(&mut self, s: usize, p: usize, end: usize) -> Matched {
        let rest = &self.subject[s..];
        let mut count = rest.iter().take_while(|b| self.is_single(**b, p, end)).count();
        if !(self.go_on)((count / 64) as u32) {
            return Err(Fault::Stopped);
        }
        loop {
            if let Some(matched) = self.run(s + count, end + 1)? {
                return Ok(Some(matched));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    /// None, then more.
    fn shortest(&mut self, mut s: usize, p: usize, end: usize) -> Matched {
        loop {
            if let Some(matched) = self.run(s, end + 1)? {
                return Ok(Some(matched));
            }
            if s >= self.subject.len() || !self.is_single(self.subject[s], p, end) {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn start_capture(&mut self, s: usize, p: usize, capture: Capture) -> Matched {
        if self.level >= CAPTURES_MAX {
            return Err(Fault::Pattern("too many captures"));
        }
        self.captures[self.level] = capture;
        self.level += 1;
        let matched = self.run(s, p)?;
        if matched.is_none() {
            self.level -= 1;
        }
        Ok(matched)
    }

    fn end_capture(&mut self, s: usize, p: usize) -> Matched {
        let open = self.captures[..self.level].iter().rposition(|c| matches!(c, Capture::Open(_)));
        let index = open.ok_or(Fault::Pattern("invalid pattern capture"))?;
        let Capture::Open(start) = self.captures[index] else { return Ok(None) };
        self.captures[index] = Capture::Part(start, s - start);
        let matched = self.run(s, p)?;
        if matched.is_none() {
            self.captures[index] = Capture::Open(start);
        }
        Ok(matched)
    }

    /// `%bxy`: from an x to the y that belongs to it.
    fn balance(&mut self, s: usize, p: usize) -> Matched {
        let (Some(&open), Some(&close)) = (self.pattern.get(p), self.pattern.get(p + 1)) else {
            return Err(Fault::Pattern("unbalanced pattern"));
        };
        if self.subject.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1_usize;
        for (index, b) in self.subject.iter().enumerate().skip(s + 1) {
            if *b == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(index + 1));
                }
            } else if *b == open {
                depth += 1;
            }
        }
        let all = (self.subject.len() - s) / 64;
        if (self.go_on)(all as u32) { Ok(None) } else { Err(Fault::Stopped) }
    }

    /// `%f[set]`: a place where the set begins to hold. Says where the pattern goes on.
    fn frontier(&mut self, s: usize, p: usize) -> Matched {
        if self.pattern.get(p) != Some(&b'[') {
            return Err(Fault::Pattern("missing '[' after '%f' in pattern"));
        }
        let end = self.class_end(p)?;
        let before = if s == 0 { 0 } else { self.subject[s - 1] };
        let here = self.subject.get(s).copied().unwrap_or(0);
        Ok((!self.in_set(before, p, end - 1) && self.in_set(here, p, end - 1)).then_some(end))
    }

    /// `%1`: what a capture has matched, again.
    fn back(&mut self, s: usize, digit: u8) -> Matched {
        let index = (digit as usize).wrapping_sub(b'1' as usize);
        let capture = self.captures[..self.level].get(index);
        let Some(Capture::Part(start, len)) = capture.copied() else {
            return match capture {
                // A place has the length that no string reaches, so it never matches again.
                Some(Capture::Place(_)) => Ok(None),
                _ => Err(Fault::Pattern("invalid capture index")),
            };
        };
        let text = &self.subject[start..start + len];
        Ok(self.subject[s..].starts_with(text).then_some(s + len))
    }

    /// Where the character or class that begins at `p` ends.
    fn class_end(&self, p: usize) -> Result<usize, Fault> {
        match self.pattern[p] {
            ESCAPE if p + 1 >= self.pattern.len() => Err(Fault::Pattern("malformed pattern (ends with '%')")),
            ESCAPE => Ok(p + 2),
            b'[' => self.set_end(p + 1),
            _ => Ok(p + 1),
        }
    }

    /// Where the set whose inside begins at `p` ends. A bracket right at its front is one of its members.
    fn set_end(&self, mut p: usize) -> Result<usize, Fault> {
        let missing = Fault::Pattern("malformed pattern (missing ']')");
        if self.pattern.get(p) == Some(&b'^') {
            p += 1;
        }
        loop {
            let b = *self.pattern.get(p).ok_or(missing)?;
            p += 1;
            if b == ESCAPE {
                if p >= self.pattern.len() {
                    return Err(missing);
                }
                p += 1;
            }
            if self.pattern.get(p).ok_or(missing)? == &b']' {
                return Ok(p + 1);
            }
        }
    }

    fn is_single(&self, b: u8, p: usize, end: usize) -> bool {
        match self.pattern[p] {
            b'.' => true,
            ESCAPE => is_in_class(b, self.pattern[p + 1]),
            b'[' => self.in_set(b, p, end - 1),
            other => other == b,
        }
    }

    /// Whether the set from `p` (its opening bracket) to `last` (its closing one) holds `b`.
    fn in_set(&self, b: u8, mut p: usize, last: usize) -> bool {
        let is_complement = self.pattern.get(p + 1) == Some(&b'^');
        p += 1 + usize::from(is_complement);
        while p < last {
            let first = self.pattern[p];
            if first == ESCAPE {
                p += 1;
                if is_in_class(b, self.pattern[p]) {
                    return !is_complement;
                }
            } else if self.pattern.get(p + 1) == Some(&b'-') && p + 2 < last {
                if (first..=self.pattern[p + 2]).contains(&b) {
                    return !is_complement;
                }
                p += 2;
            } else if first == b {
                return !is_complement;
            }
            p += 1;
        }
        is_complement
    }
}

/// How the walk through a pattern goes on.
enum Next {
    Go(usize, usize),
    End(Option<usize>),
}

/// `%a` and its kin in the locale "C"; `%A` is what `%a` is not. Any other character stands for itself.
fn is_in_class(b: u8, class: u8) -> bool {
    let is_in = match class.to_ascii_lowercase() {
        b'a' => b.is_ascii_alphabetic(),
        b'c' => b.is_ascii_control(),
        b'd' => b.is_ascii_digit(),
        b'l' => b.is_ascii_lowercase(),
        b'p' => b.is_ascii_punctuation(),
        b's' => b.is_ascii_whitespace() || b == 0x0B,
        b'u' => b.is_ascii_uppercase(),
        b'w' => b.is_ascii_alphanumeric(),
        b'x' => b.is_ascii_hexdigit(),
        b'z' => b == 0,
        _ => return class == b,
    };
    is_in != class.is_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_backtracks_for_ever_is_stopped() {
        let subject = vec![b'a'; 4000];
        let mut left = 100_000_u32;
        let mut go_on = |n: u32| {
            left = left.saturating_sub(n);
            left > 0
        };
        let mut matcher = Matcher::new(&subject, b".-.-.-.-.-.-b", &mut go_on);
        assert_eq!(matcher.match_at(0), Err(Fault::Stopped));
    }

    #[test]
    fn nesting_is_bounded() {
        let pattern = b".?".repeat(100_000);
        let subject = vec![b'a'; 200_000];
        let mut go_on = |_: u32| true;
        let matched = Matcher::new(&subject, &pattern, &mut go_on).match_at(0);
        assert_eq!(matched, Err(Fault::Pattern("pattern too complex")));
    }
}
