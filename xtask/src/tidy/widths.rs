//! Rules about how wide lines are. rustfmt keeps code within its own width and leaves comments and long
//! strings alone.
use super::Complaint;
use super::source::{Line, Source};

/// Two windows side by side show lines of this width.
pub(crate) const COMMENT_COLUMNS_MAX: usize = 110;
/// A line of code that rustfmt cannot break, a string above all, may be a little wider.
pub(crate) const CODE_COLUMNS_MAX: usize = 120;

pub(crate) fn comments(source: &Source) -> Vec<Complaint> {
    let message = format!("a comment of more than {COMMENT_COLUMNS_MAX} columns: break the line");
    complaints(source, wide_comments(source), &message)
}

pub(crate) fn code(source: &Source) -> Vec<Complaint> {
    let message =
        format!("code of more than {CODE_COLUMNS_MAX} columns: break the line, or the string in it");
    complaints(source, wide_code(source), &message)
}

fn complaints(source: &Source, lines: Vec<usize>, message: &str) -> Vec<Complaint> {
    lines.into_iter().map(|at| Complaint::new(source, at, message)).collect()
}

/// The lines that are nothing but a comment and too wide.
pub(crate) fn wide_comments(source: &Source) -> Vec<usize> {
    wide(source, Line::is_comment, COMMENT_COLUMNS_MAX)
}

/// The lines with code that are too wide.
pub(crate) fn wide_code(source: &Source) -> Vec<usize> {
    wide(source, |line| !line.is_comment(), CODE_COLUMNS_MAX)
}

fn wide(source: &Source, is_such: fn(&Line) -> bool, columns_max: usize) -> Vec<usize> {
    let is_wide = |line: &Line| is_such(line) && line.text.chars().count() > columns_max;
    let lines = source.lines.iter().enumerate();
    lines.filter(|(_, line)| is_wide(line)).map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn a_comment_has_a_hundred_and_ten_columns_at_most() {
        let comment = |columns: usize| format!("fn a() {{}}\n    // {}\n", "é".repeat(columns - 7));
        check(comments, "crates/disk/src/a.rs", &comment(110), &[]);
        check(comments, "crates/disk/src/a.rs", &comment(111), &[2]);
    }

    #[test]
    fn code_has_a_hundred_and_twenty_columns_at_most() {
        let code_of = |columns: usize| format!("const A: &str =\n    \"{}\";\n", "é".repeat(columns - 7));
        check(code, "crates/disk/src/a.rs", &code_of(120), &[]);
        check(code, "crates/disk/src/a.rs", &code_of(121), &[2]);
        check(code, "crates/disk/src/a.rs", &format!("// {}\n", "a".repeat(200)), &[]);
    }
}
