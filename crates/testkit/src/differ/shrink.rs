//! Delta debugging: from a stream that fails to one that still fails and from which nothing can be taken
//! away. First halves and smaller chunks of the requests go, then single ones, then arguments, then what is
//! left of them is made simpler.
use super::stream::Step;
use std::io;

/// After so many replays it is content with what it has.
const REPLAYS_MAX: usize = 3_000;

/// Whether a candidate still fails in the same way.
type Fails<'f> = &'f mut dyn FnMut(&[Step]) -> io::Result<bool>;

/// The shortest stream found that still `fails`.
pub(super) fn shrink(steps: Vec<Step>, fails: Fails<'_>) -> io::Result<Vec<Step>> {
    let mut shrinker = Shrinker { steps, fails, replays: 0 };
    loop {
        let before = shrinker.size();
        shrinker.drop_chunks()?;
        shrinker.simplify()?;
        if shrinker.size() == before || shrinker.replays >= REPLAYS_MAX {
            return Ok(shrinker.steps);
        }
    }
}

struct Shrinker<'f> {
    steps: Vec<Step>,
    fails: Fails<'f>,
    replays: usize,
}

impl Shrinker<'_> {
    /// How large a stream is: requests count first, then words, then bytes, then connections.
    fn size(&self) -> (usize, usize, usize, usize) {
        let words = || self.steps.iter().flat_map(|step| &step.request);
        let connections = self.steps.iter().map(|step| step.connection).sum();
        (self.steps.len(), words().count(), words().map(Vec::len).sum(), connections)
    }

    /// Keeps the candidate if it fails.
    fn try_steps(&mut self, candidate: Vec<Step>) -> io::Result<bool> {
        self.replays += 1;
        let is_better = self.replays < REPLAYS_MAX && (self.fails)(&candidate)?;
        if is_better {
            self.steps = candidate;
        }
        Ok(is_better)
    }

    fn drop_chunks(&mut self) -> io::Result<()> {
        let mut len = self.steps.len().div_ceil(2);
        while len > 0 {
            let mut start = 0;
            while start < self.steps.len() {
                let end = (start + len).min(self.steps.len());
                let candidate = [&self.steps[..start], &self.steps[end..]].concat();
                if candidate.is_empty() || !self.try_steps(candidate)? {
                    start = end;
                }
            }
            len = if len == 1 { 0 } else { len.div_ceil(2) };
        }
        Ok(())
    }

    fn simplify(&mut self) -> io::Result<()> {
        for at in 0..self.steps.len() {
            if self.steps[at].connection != 0 {
                let mut candidate = self.steps.clone();
                candidate[at].connection = 0;
                self.try_steps(candidate)?;
            }
            self.drop_words(at)?;
            for word in 1..self.steps[at].request.len() {
                self.shorten(at, word)?;
            }
        }
        Ok(())
    }

    /// Chunks of a request's arguments, from the end.
    fn drop_words(&mut self, at: usize) -> io::Result<()> {
        let mut len = self.steps[at].request.len() / 2;
        while len > 0 {
            let mut end = self.steps[at].request.len();
            while end > len {
                let mut candidate = self.steps.clone();
                candidate[at].request.drain(end - len..end);
                self.try_steps(candidate)?;
                end -= len;
            }
            len /= 2;
        }
        Ok(())
    }

    fn shorten(&mut self, at: usize, word: usize) -> io::Result<()> {
        for simpler in simpler(&self.steps[at].request[word]) {
            let mut candidate = self.steps.clone();
            candidate[at].request[word] = simpler;
            if self.try_steps(candidate)? {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Shorter words to try, the simplest first.
fn simpler(word: &[u8]) -> Vec<Vec<u8>> {
    let halves = [&word[..word.len() / 2], &word[word.len().div_ceil(2)..]];
    let candidates = [&b"1"[..], b"a", halves[0], halves[1]];
    let is_shorter = |simpler: &&[u8]| (1..word.len()).contains(&simpler.len());
    candidates.into_iter().filter(is_shorter).map(<[u8]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(lines: &[&str]) -> Vec<Step> {
        let request = |line: &&str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        lines.iter().map(|line| Step { connection: 1, request: request(line) }).collect()
    }

    fn shrunk(lines: &[&str], fails: impl Fn(&[String]) -> bool) -> Vec<String> {
        let text = |steps: &[Step]| -> Vec<String> {
            steps.iter().map(|step| String::from_utf8(step.request.join(&b' ')).unwrap()).collect()
        };
        text(&shrink(steps(lines), &mut |candidate| Ok(fails(&text(candidate)))).unwrap())
    }

    #[test]
    fn only_the_requests_that_it_takes_are_left() {
        let many: Vec<String> = (0..100).map(|n| format!("SET k{n} v")).collect();
        let lines: Vec<&str> = many.iter().map(String::as_str).collect();
        let left = shrunk(&lines, |lines| {
            lines.iter().any(|line| line.contains("k13 ")) && lines.iter().any(|line| line.contains("k77 "))
        });
        assert_eq!(left, ["SET k13 v", "SET k77 v"]);
    }

    #[test]
    fn arguments_are_taken_away_and_made_shorter() {
        let left = shrunk(&["RPUSH list element other third", "LLEN list"], |lines| {
            lines[0].starts_with("RPUSH") && lines[0].split(' ').count() > 2
        });
        assert_eq!(left, ["RPUSH 1 1"]);
    }

    #[test]
    fn what_cannot_be_shrunk_stays() {
        assert_eq!(shrunk(&["GET a"], |lines| lines == ["GET a"]), ["GET a"]);
    }

    #[test]
    fn connections_become_the_first() {
        let left = shrink(steps(&["GET a"]), &mut |_| Ok(true)).unwrap();
        assert_eq!(left[0].connection, 0);
    }
}
