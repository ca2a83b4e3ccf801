//! Whether two replies have the same shape, by their lines: the same types, and the same keys in maps. What
//! one of them has more in an array is not compared, nor what stands below a line that was shortened.
//!
//! ```text
//! %2              %2
//!   $3 pid          $3 pid
//!   :17             :4711             any integer
//!   $5 names        $5 names
//!   *1              *2
//!     $1 a            $3 bcd          any string
//!                     $1 e            one more
//! ```

/// A value: its own line, and the lines of its elements.
struct Node<'l> {
    line: &'l str,
    elements: Vec<Node<'l>>,
}

/// See the file's opener. The first lines may be those of no value at all, such as none.
pub(crate) fn is_same(expected: &[String], actual: &[String]) -> bool {
    match (nodes(expected).first(), nodes(actual).first()) {
        (Some(expected), Some(actual)) => expected.is_like(actual),
        _ => false,
    }
}

/// The values of one depth, which is that of the first line.
fn nodes(lines: &[String]) -> Vec<Node<'_>> {
    let depth = |line: &String| line.len() - line.trim_start().len();
    let Some(own) = lines.first().map(depth) else { return Vec::new() };
    let starts: Vec<usize> = (0..lines.len()).filter(|n| depth(&lines[*n]) == own).collect();
    let ends = starts.iter().copied().skip(1).chain([lines.len()]);
    let node = |(start, end): (usize, usize)| Node {
        line: lines[start].trim_start(),
        elements: nodes(&lines[start + 1..end]),
    };
    starts.iter().copied().zip(ends).map(node).collect()
}

impl Node<'_> {
    fn mark(&self) -> Option<char> {
        self.line.chars().next()
    }

    fn is_like(&self, actual: &Node<'_>) -> bool {
        if self.mark() != actual.mark() {
            return false;
        }
        let is_map = self.mark() == Some('%');
        let is_shortened = self.elements.is_empty() || actual.elements.is_empty();
        let mut pairs = self.elements.iter().zip(&actual.elements).enumerate();
        is_shortened
            || !(is_map && self.elements.len() != actual.elements.len())
                && pairs.all(|(n, (one, other))| match is_map && n % 2 == 0 {
                    true => one.line == other.line,
                    false => one.is_like(other),
                })
    }
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn types_and_keys_are_compared_and_other_values_are_not() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<String>>();
        let is_like = |one: &str, other: &str| is_same(&lines(one), &lines(other));
        assert!(is_like("$3 abc", "$1 x") && is_like("$...", "$1 x") && is_like(":1", ":2"));
        assert!(!is_like("$3 abc", ":1") && !is_like("", "") && !is_like("$3 abc", ""));
        assert!(is_like("*2\n  :1\n  $1 a", "*1\n  :7") && is_like("*...", "*1\n  :7"));
        assert!(!is_like("*2\n  :1\n  $1 a", "*2\n  :7\n  :8"));
        let map = "%2\n  $1 a\n  :1\n  $1 b\n  *1\n    %1\n      $1 c\n      :1";
        assert!(is_like(map, "%2\n  $1 a\n  :9\n  $1 b\n  *1\n    %1\n      $1 c\n      :5"));
        assert!(!is_like(map, "%2\n  $1 a\n  :9\n  $1 b\n  *1\n    %1\n      $1 d\n      :5"));
        assert!(!is_like(map, "%1\n  $1 a\n  :9") && is_like("%2", map) && is_like("%...", map));
    }
}
